/* The ranked list: counts of positives and negatives down to each distinct score, unfolded from the embedded text. */

const ROUNDING = 1e-12;

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

class RankedList {
  constructor(data) {
    this.nRuns = data.n_runs;
    this.exact = data.exact;
    this.step = data.step;
    this.single = data.bytes === 4;
    const scores = new DataView(bytesOf(data.scores).buffer);
    this.scores = Float64Array.from({ length: scores.byteLength / data.bytes }, (_, i) =>
      this.single ? scores.getFloat32(4 * i, true) : scores.getFloat64(8 * i, true));
    this.unfold(bytesOf(data.runs));
    this.positives = this.tp[this.nRuns];
    this.negatives = this.fp[this.nRuns];
    this.total = this.positives + this.negatives;
    if (data.positives !== undefined) this.runOfPositive = new Uint32Array(bytesOf(data.positives).buffer);
  }

  /* tp[r] and fp[r] count the rows of the first r runs. */
  unfold(bytes) {
    this.tp = new Uint32Array(this.nRuns + 1);
    this.fp = new Uint32Array(this.nRuns + 1);
    let at = 0;
    let run = 0;
    const next = () => {
      let value = 0;
      for (let factor = 1; ; factor *= 128) {
        const byte = bytes[at++];
        value += (byte & 127) * factor;
        if (byte < 128) return value;
      }
    };
    const add = (positives, negatives) => {
      this.tp[run + 1] = this.tp[run] + positives;
      this.fp[run + 1] = this.fp[run] + negatives;
      run += 1;
    };
    while (at < bytes.length) {
      const first = next();
      const isLast = at === bytes.length;
      const gap = isLast ? first : Math.floor(first / 2);
      for (let i = 0; i < gap; i++) add(0, 1);
      if (isLast) break;
      if (first % 2 === 1) add(1, 0);
      else add(next(), next());
    }
  }

  /* The largest number of runs r for which within(r) holds; it holds for 0 and, once it fails, for none after. */
  most(within) {
    let low = 0;
    let high = this.nRuns;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (within(middle)) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  cut(run) {
    return { run, part: 0, tied: 0, tp: this.tp[run], fp: this.fp[run] };
  }

  /* The k best rows; of a run that fits in part, the expected counts of a random choice. */
  byCount(k) {
    const run = this.most((r) => this.tp[r] + this.fp[r] <= k);
    const cut = this.cut(run);
    cut.part = k - cut.tp - cut.fp;
    if (cut.part > 0) {
      const positives = this.tp[run + 1] - this.tp[run];
      cut.tied = positives + this.fp[run + 1] - this.fp[run];
      cut.tp += (cut.part * positives) / cut.tied;
      cut.fp = k - cut.tp;
    }
    return cut;
  }

  /* The lowest threshold whose false positive rate is at most this. */
  byRate(rate) {
    const allowed = rate * this.negatives * (1 + ROUNDING);
    return this.cut(this.most((r) => this.fp[r] <= allowed));
  }

  /* The lowest threshold whose precision is at least this; null if there is none. */
  byPrecision(precision) {
    for (let r = this.nRuns; r > 0; r--) {
      if (this.tp[r] >= precision * (this.tp[r] + this.fp[r]) * (1 - ROUNDING)) return this.cut(r);
    }
    return null;
  }

  bestPrecision() {
    let best = 0;
    for (let r = 1; r <= this.nRuns; r++) best = Math.max(best, this.tp[r] / (this.tp[r] + this.fp[r]));
    return best;
  }

  numbers(cut) {
    const alerts = cut.tp + cut.fp;
    const precision = alerts > 0 ? cut.tp / alerts : NaN;
    return {
      alerts,
      caught: cut.tp,
      missed: this.positives - cut.tp,
      false_alarms: cut.fp,
      precision,
      recall: cut.tp / this.positives,
      fpr: cut.fp / this.negatives,
      lift: (precision * this.total) / this.positives,
    };
  }

  /* The score of a run, as far as it is stored: the stored ones next to it from above and below. */
  scoreOf(run) {
    if (run < this.exact) return [this.scores[run], this.scores[run]];
    const place = (run - this.exact) / this.step;
    const last = this.scores.length - 1;
    if (run === this.nRuns - 1) return [this.scores[last], this.scores[last]];
    const above = this.exact + Math.floor(place);
    return [this.scores[above], this.scores[Number.isInteger(place) ? above : Math.min(above + 1, last)]];
  }

  /* A number of few digits such that exactly the rows above it are taken; inside a tie, the tied score. */
  threshold(cut) {
    if (cut.run === this.nRuns) return { value: -Infinity, text: "none", rule: "every row is an alert" };
    const [above, below] = this.scoreOf(cut.run);
    const tied = () => this.shortest(below, (x) => this.stored(x) === below);
    if (above !== below) return { value: NaN, text: tied(), rule: `or more, at most ${above.toPrecision(6)}` };
    if (cut.part > 0) return { value: below, text: tied(), rule: "scores above it, and some of those equal" };
    const lowest = cut.run === 0 ? Infinity : this.scoreOf(cut.run - 1)[1];
    const middle = cut.run === 0 ? below : below / 2 + lowest / 2;
    const between = (x) => below <= x && x < lowest;
    const text = this.shortest(middle, (x) => between(x) && between(this.stored(x))) || String(below);
    return { value: Number(text), text, rule: "alert if the score is above it" };
  }

  /* A number in the precision of the scores. */
  stored(x) {
    return this.single ? Math.fround(x) : x;
  }

  /* The shortest decimal form of a value that passes a test, from three digits on. */
  shortest(value, passes) {
    for (let digits = 3; digits <= 17; digits++) {
      const text = String(Number(value.toPrecision(digits)));
      if (passes(Number(text))) return text;
    }
    return "";
  }
}
