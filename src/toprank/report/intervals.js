/* Exact limits of a binomial proportion (Clopper and Pearson), by bisection of the incomplete beta function. */

/* Stirling's series, after moving the argument to where it is accurate. */
function logGamma(x) {
  let moved = 0;
  while (x < 15) {
    moved += Math.log(x);
    x += 1;
  }
  const square = 1 / (x * x);
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - moved;
}

/* The continued fraction of the incomplete beta function from its far end; it takes about sqrt(max(a, b)) terms. */
function betaFraction(x, a, b) {
  let tail = 0;
  for (let m = Math.ceil(40 + 2 * Math.sqrt(Math.max(a, b))); m >= 1; m--) {
    tail = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)) / (1 + tail);
    tail = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)) / (1 + tail);
  }
  return 1 / (1 + (-(a + b) * x) / (a + 1) / (1 + tail));
}

/* The share of a beta distribution below x. */
function betaShare(x, a, b, logBeta) {
  if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) - logBeta);
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(1 - x, b, a)) / b;
}

function betaQuantile(share, a, b) {
  const logBeta = logGamma(a) + logGamma(b) - logGamma(a + b);
  let low = 0;
  let high = 1;
  for (let i = 0; i < 50; i++) {
    const middle = (low + high) / 2;
    if (betaShare(middle, a, b, logBeta) < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

function proportionLimits(successes, trials, confidence) {
  const tail = (1 - confidence) / 2;
  const failures = Math.max(trials - successes, 0);
  return [
    successes > 0 ? betaQuantile(tail, successes, failures + 1) : 0,
    failures > 0 ? betaQuantile(1 - tail, successes + 1, failures) : 1,
  ];
}
