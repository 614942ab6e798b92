/* The page: a budget is chosen, and numbers, figures and rows follow. */

const data = JSON.parse(document.getElementById("data").textContent);
const lists = data.lists.map((one) => new RankedList(one));
const names = data.lists.map((one) => one.name);
/* The first list says what is shared: how many rows there are, and of which class. */
const list = lists[0];
const one = (selector) => document.querySelector(selector);
const all = (selector) => Array.from(document.querySelectorAll(selector));
const slider = one("#slider");
const field = one("#budget-value");
const PLANE = data.plane;

const formatCount = (x) =>
  Math.abs(x - Math.round(x)) < 1e-9
    ? Math.round(x).toLocaleString("en-US")
    : x.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

function formatPercent(share) {
  if (!Number.isFinite(share)) return "–";
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value}\u00a0%`;
  if (value >= 99.95) return `${Math.min(value, 99.999).toFixed(3)}\u00a0%`;
  return value >= 10 ? `${value.toFixed(1)}\u00a0%` : `${Number(value.toPrecision(3))}\u00a0%`;
}

const formatLimits = ([lower, upper]) => `${formatPercent(lower)} – ${formatPercent(upper)}`;
const tidy = (value, digits) => Number(value.toPrecision(digits));
/* A rate in percent with four digits, never less than the rate. */
const roundedUp = (rate) => Math.min(tidy(100 * rate * (1 + 5e-4), 4), 100);

/* What each way of saying a budget means: places of the slider, and from a value to a cut and back. */
const modes = {
  k: {
    stops: data.stops.alerts,
    unit: "alerts",
    bounds: [1, list.total],
    cut: (of, value) => of.byCount(value),
    from: (numbers) => Math.max(1, Math.round(numbers.alerts)),
    clean: (value) => Math.round(value),
    words: (value) => (value === 1 ? "1 alert" : `${formatCount(value)} alerts`),
  },
  fpr: {
    stops: [0, ...data.stops.false_alarms.map((count) => roundedUp(count / list.negatives))],
    unit: "% of negatives",
    bounds: [0, 100],
    cut: (of, value) => of.byRate(value / 100),
    from: (numbers) => roundedUp(numbers.fpr),
    clean: (value) => value,
    words: (value) => `false positive rate at most ${formatPercent(value / 100)}`,
  },
  precision: {
    stops: Array.from({ length: 201 }, (_, i) => i / 2),
    unit: "% of alerts",
    bounds: [0, 100],
    cut: (of, value) => of.byPrecision(value / 100),
    from: (numbers) => (Number.isFinite(numbers.precision) ? Math.floor(1000 * numbers.precision) / 10 : 100),
    clean: (value) => value,
    words: (value) => `precision at least ${formatPercent(value / 100)}`,
  },
};

const state = { mode: data.budget.mode, value: data.budget.value, numbers: null };

/* The place of the slider nearest to a value. */
function nearestStop(stops, value) {
  let best = 0;
  for (let i = 1; i < stops.length; i++) {
    if (Math.abs(stops[i] - value) < Math.abs(stops[best] - value)) best = i;
  }
  return best;
}

function setBudget(mode, value, from) {
  const rule = modes[mode];
  const [low, high] = rule.bounds;
  if (!Number.isFinite(value)) return;
  state.mode = mode;
  state.value = rule.clean(Math.min(Math.max(value, low), high));
  one(`input[name="mode"][value="${mode}"]`).checked = true;
  slider.max = String(rule.stops.length - 1);
  if (from !== "slider") slider.value = String(nearestStop(rule.stops, state.value));
  [field.min, field.max] = rule.bounds.map(String);
  if (from !== "field") field.value = String(state.value);
  one("#budget-unit").textContent = rule.unit;
  slider.setAttribute("aria-valuetext", rule.words(state.value));
  show(rule);
}

function show(rule) {
  const found = lists.map((of) => rule.cut(of, state.value));
  const cuts = found.map((cut, i) => (cut === null ? lists[i].cut(0) : cut));
  const numbers = cuts.map((cut, i) => lists[i].numbers(cut));
  state.numbers = numbers[0];
  cuts.forEach((cut, i) => {
    const threshold = lists[i].threshold(cut);
    showNumbers(i, numbers[i], threshold);
    showLimits(i, numbers[i]);
    showBars(i, numbers[i]);
    showMarks(i, numbers[i], threshold);
    if (i > 0) showDifference(i, cuts);
  });
  all("#top-rows tbody tr").forEach((row) => {
    row.classList.toggle("taken", Number(row.dataset.rank) <= numbers[0].alerts + 1e-9);
  });
  one("#budget-note").textContent = found.map((cut, i) => noteOn(cut, cuts[i], i)).filter(Boolean).join(" ");
  announce(rule, numbers);
}

function write(i, name, value, text) {
  all(`[data-list="${i}"][data-number="${name}"]`).forEach((place) => {
    place.textContent = text;
    place.dataset.value = String(value);
  });
}

function showNumbers(i, numbers, threshold) {
  ["alerts", "caught", "missed", "false_alarms"].forEach((name) =>
    write(i, name, numbers[name], formatCount(numbers[name])));
  ["precision", "recall", "fpr"].forEach((name) => write(i, name, numbers[name], formatPercent(numbers[name])));
  write(i, "lift", numbers.lift, Number.isFinite(numbers.lift) ? `${tidy(numbers.lift, 3)} ×` : "–");
  write(i, "threshold", threshold.value, threshold.text.replace("-", "−"));
  one(`[data-list="${i}"][data-rule="threshold"]`).textContent = threshold.rule;
}

function showLimits(i, numbers) {
  const pairs = {
    precision: [numbers.caught, numbers.alerts],
    recall: [numbers.caught, list.positives],
    fpr: [numbers.false_alarms, list.negatives],
  };
  Object.entries(pairs).forEach(([name, [successes, trials]]) => {
    const place = one(`[data-list="${i}"][data-limits="${name}"]`);
    const limits = trials > 0 ? proportionLimits(successes, trials, data.confidence) : [NaN, NaN];
    place.textContent = trials > 0 ? formatLimits(limits) : "–";
    place.dataset.lower = String(limits[0]);
    place.dataset.upper = String(limits[1]);
  });
}

function showBars(i, numbers) {
  const widths = { caught: numbers.recall, right: numbers.precision || 0 };
  all(`[data-list="${i}"][data-bar]`).forEach((bar) => (bar.style.width = `${100 * widths[bar.dataset.bar]}%`));
}

const formatSigned = (x) => {
  const rounded = Math.round(x);
  return rounded === 0 ? "0" : `${rounded > 0 ? "+" : "−"}${Math.abs(rounded).toLocaleString("en-US")}`;
};

/* By how much the first list finds more than another. */
function showDifference(i, cuts) {
  const { onlyFirst, onlySecond, both } = heldByOne(list, cuts[0], lists[i], cuts[i]);
  const [lower, upper] =
    state.mode === "k"
      ? independentLimits(onlyFirst, onlySecond, state.value - both, data.confidence)
      : pairedLimits(onlyFirst, onlySecond, list.positives, data.confidence);
  const value = cuts[0].tp - cuts[i].tp;
  const place = one(`[data-difference="${i}"]`);
  const head = Math.abs(value) < 1e-9
    ? `${names[0]} finds as many as ${names[i]}`
    : `${names[0]} finds ${formatCount(Math.abs(value))} ${value > 0 ? "more" : "fewer"} than ${names[i]}`;
  const limits = [lower, upper].map(formatSigned).join(" to ");
  const verdict = lower > 0 || upper < 0 ? "Chance does not explain that." : "That may be chance.";
  place.textContent = `${head} (${data.level} limits of the difference: ${limits}). ${verdict}`;
  Object.assign(place.dataset, { value: String(value), lower: String(lower), upper: String(upper) });
}

/* From a value to a place in [0, 1] on an axis, as the figures were drawn. */
function placeOn(axis, value) {
  if (axis.kind === "linear") return (value - axis.low) / (axis.high - axis.low);
  const place = Math.log(Math.max(value, axis.low) / axis.low) / Math.log(axis.high / axis.low);
  if (axis.kind === "log") return place;
  return value > 0 ? PLANE.after_zero + (1 - PLANE.after_zero) * place : 0;
}

function valueAt(axis, place) {
  if (axis.kind === "linear") return axis.low + place * (axis.high - axis.low);
  if (axis.kind === "log0") {
    if (place < PLANE.after_zero / 2) return 0;
    place = Math.max(0, (place - PLANE.after_zero) / (1 - PLANE.after_zero));
  }
  return axis.low * (axis.high / axis.low) ** place;
}

function mark(name, i, x, y) {
  const scales = data.figures[name];
  const group = one(`#figure-${name} .marker.list-${i}`);
  const across = placeOn(scales.x, x);
  const seen = Number.isFinite(across) && across >= -1e-9 && across <= 1 + 1e-9 && !Number.isNaN(y);
  group.toggleAttribute("hidden", !seen);
  if (!seen) return;
  const left = PLANE.left + (PLANE.right - PLANE.left) * across;
  const set = (selector, values) =>
    Object.entries(values).forEach(([key, value]) =>
      group.querySelectorAll(selector).forEach((part) => part.setAttribute(key, String(value))));
  set(".down", { x1: left, x2: left, y1: PLANE.top, y2: PLANE.bottom });
  group.classList.toggle("line-only", y === null);
  if (y === null) return;
  const top = PLANE.bottom - (PLANE.bottom - PLANE.top) * placeOn(scales.y, y);
  set(".across", { x1: PLANE.left, x2: PLANE.right, y1: top, y2: top });
  set("circle", { cx: left, cy: top });
}

function showMarks(i, numbers, threshold) {
  mark("roc", i, numbers.fpr, numbers.recall);
  mark("precision-at-k", i, numbers.alerts, numbers.precision);
  mark("precision-recall", i, numbers.recall, numbers.precision);
  mark(`densities-${i}`, i, threshold.value, null);
}

function noteOn(found, cut, i) {
  const whose = lists.length > 1 ? `${names[i]}: ` : "";
  if (found === null) {
    const best = formatPercent(lists[i].bestPrecision());
    return `${whose}No threshold reaches this precision on these rows; the highest is ${best}.`;
  }
  if (cut.part > 0) {
    return `${whose}The list ends among ${formatCount(cut.tied)} rows of equal score, of which ${formatCount(cut.part)} fit; ` +
      "the counts are expected values of a random choice.";
  }
  return cut.run === 0 ? `${whose}No row can be taken within this budget.` : "";
}

let waiting = 0;
function announce(rule, numbers) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const said = numbers.map((found, i) =>
      `${lists.length > 1 ? `${names[i]}: ` : ""}${formatCount(found.caught)} of ${formatCount(list.positives)} positives ` +
      `caught, ${formatCount(found.missed)} missed, ${formatCount(found.false_alarms)} false alarms, ` +
      `precision ${formatPercent(found.precision)}.`);
    one("#live").textContent = `${rule.words(state.value)}: ${said.join(" ")} ${one("#budget-note").textContent}`;
  }, 300);
}

/* A click on a figure chooses the budget there. */
const clicks = {
  roc: (x) => setBudget("fpr", tidy(100 * x, 4)),
  "precision-at-k": (x) => setBudget("k", x),
  "precision-recall": (x) => {
    const run = list.most((r) => list.tp[r] < x * list.positives * (1 - ROUNDING));
    const next = Math.min(run + 1, list.nRuns);
    setBudget("k", list.tp[next] + list.fp[next]);
  },
};
lists.forEach((of, i) => {
  clicks[`densities-${i}`] = (x) => {
    const run = of.most((r) => r === 0 || of.scoreOf(r - 1)[0] > x);
    setBudget("k", of.tp[run] + of.fp[run]);
  };
});

Object.entries(clicks).forEach(([name, choose]) => {
  one(`#figure-${name}`).addEventListener("click", (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = (((event.clientX - box.left) / box.width) * PLANE.width - PLANE.left) / (PLANE.right - PLANE.left);
    choose(valueAt(data.figures[name].x, Math.min(Math.max(place, 0), 1)));
  });
});

all('input[name="mode"]').forEach((radio) =>
  radio.addEventListener("change", () => setBudget(radio.value, modes[radio.value].from(state.numbers))));
slider.addEventListener("input", () => setBudget(state.mode, modes[state.mode].stops[Number(slider.value)], "slider"));
field.addEventListener("input", () => field.value !== "" && setBudget(state.mode, Number(field.value), "field"));
field.addEventListener("change", () => setBudget(state.mode, state.value));
if (data.own_alerts > 0) one("#own-threshold").addEventListener("click", () => setBudget("k", data.own_alerts));
one("#budget").classList.add("live");
setBudget(state.mode, state.value);
