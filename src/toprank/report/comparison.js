/* Two lists of the same rows: who is held by one of them alone, and the limits of the difference. */

/* Expected numbers of positives that only the first, only the second, and both lists hold, where both are cut. */
function heldByOne(first, firstCut, second, secondCut) {
  const share = (run, cut) => (run < cut.run ? 1 : run === cut.run && cut.part > 0 ? cut.part / cut.tied : 0);
  let onlyFirst = 0;
  let onlySecond = 0;
  let both = 0;
  for (let i = 0; i < first.runOfPositive.length; i++) {
    const a = share(first.runOfPositive[i], firstCut);
    const b = share(second.runOfPositive[i], secondCut);
    onlyFirst += a * (1 - b);
    onlySecond += b * (1 - a);
    both += a * b;
  }
  return { onlyFirst, onlySecond, both };
}

/* The quantile of the normal distribution above one half, by bisection of a series of its share (Marsaglia). */
function normalQuantile(share) {
  let low = 0;
  let high = 8;
  for (let i = 0; i < 60; i++) {
    const x = (low + high) / 2;
    let term = x;
    let sum = x;
    for (let k = 3; k < 400; k += 2) sum += term *= (x * x) / k;
    if (0.5 + (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI) < share) low = x;
    else high = x;
  }
  return (low + high) / 2;
}

/* Limits of the difference of two independent counts of as many trials (Newcombe), as independent_limits of Python. */
function independentLimits(first, second, trials, confidence) {
  if (trials <= 0) return [0, 0];
  const z = normalQuantile(0.5 + confidence / 2);
  const counts = [Math.min(first, trials), Math.min(second, trials)];
  const [[lowFirst, highFirst], [lowSecond, highSecond]] = counts.map((count) => {
    const half = z * Math.sqrt((count * (trials - count)) / trials + (z * z) / 4);
    return [-half, half].map((side) => ((count + (z * z) / 2 + side) * trials) / (trials + z * z));
  });
  const value = counts[0] - counts[1];
  return [
    value - Math.hypot(counts[0] - lowFirst, highSecond - counts[1]),
    value + Math.hypot(highFirst - counts[0], counts[1] - lowSecond),
  ];
}

/* Limits of the difference of two counts of the same trials (Tango), as paired_share_limits of Python. */
function pairedLimits(onlyFirst, onlySecond, trials, confidence) {
  const z = normalQuantile(0.5 + confidence / 2);
  const estimate = (onlyFirst - onlySecond) / trials;
  const statistic = (delta) => {
    const linear = (2 * trials - onlyFirst + onlySecond) * delta - onlyFirst - onlySecond;
    const constant = -onlySecond * delta * (1 - delta);
    const q = (Math.sqrt(Math.max(linear * linear - 8 * trials * constant, 0)) - linear) / (4 * trials);
    const variance = trials * (2 * q + delta * (1 - delta));
    const distance = onlyFirst - onlySecond - trials * delta;
    return variance > 0 ? distance / Math.sqrt(variance) : distance < 0 ? -Infinity : Infinity;
  };
  const crossing = (level, low, high) => {
    for (let i = 0; i < 60; i++) {
      const middle = (low + high) / 2;
      if (statistic(middle) > level) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  };
  return [crossing(z, -1, estimate), crossing(-z, estimate, 1)].map((share) => share * trials);
}
