"use strict";
/* Two models on the same samples, as testbed.metrics.paired: McNemar's exact test, the interval of the difference. */
(() => {
  const DRAWS = 10000, LEVEL = 0.95, FEW = 1000, Z = 1.959963984540054;

  /* Uniform numbers in (0, 1) from a seed (mulberry32), so that pages are reproducible. */
  function generator(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
    };
  }
  /* ln n!, exact sums up to 256 and Stirling's series above. */
  const LOGS = [0];
  for (let n = 1; n <= 256; n += 1) LOGS.push(LOGS[n - 1] + Math.log(n));
  const logFactorial = (n) => (n <= 256 ? LOGS[n] : (n + 0.5) * Math.log(n) - n + 0.9189385332046727 + 1 / (12 * n) - 1 / (360 * n ** 3));

  function mcnemar(first, second) {
    if (first === second) return 1;
    const n = first + second, fewer = Math.min(first, second);
    let tail = 0;
    for (let k = fewer; k >= 0; k -= 1) {
      const term = Math.exp(logFactorial(n) - logFactorial(k) - logFactorial(n - k) - n * Math.LN2);
      tail += term;
      if (term < tail * 1e-17) break;
    }
    return Math.min(1, 2 * tail);
  }
  function percentiles(means) {
    const sorted = Float64Array.from(means).sort(), at = (share) => {
      const place = share * (sorted.length - 1), low = Math.floor(place), rest = place - low;
      return sorted[low] + (rest ? rest * (sorted[low + 1] - sorted[low]) : 0);
    };
    return [at((1 - LEVEL) / 2), at((1 + LEVEL) / 2)];
  }
  /* Where a growing function is 0, between two places. */
  function root(of, low, high) {
    for (let step = 0; step < 80; step += 1) {
      const middle = (low + high) / 2;
      if (of(middle) < 0) low = middle; else high = middle;
    }
    return (low + high) / 2;
  }
  /* Tango's score interval (1998) of the difference of two models that are right alone so often, of n samples. */
  function tango(won, lost, n) {
    const score = (value) => {
      const middle = -won - lost + (2 * n - won + lost) * value, share = (Math.sqrt(Math.max(0, middle * middle + 8 * n * lost * value * (1 - value))) - middle) / (4 * n);
      const variance = n * (2 * share + value * (1 - value)), apart = won - lost - n * value;
      return variance > 0 ? -apart / Math.sqrt(variance) : apart === 0 ? 0 : apart > 0 ? -Infinity : Infinity;
    };
    return [root((value) => score(value) + Z, -1, 1), root((value) => score(value) - Z, -1, 1)];
  }
  /* An integral by tanh-sinh quadrature, for functions without a slope at an end. */
  function integral(of, from, to) {
    let sum = 0;
    for (let step = -45; step <= 45; step += 1) {
      const at = (Math.PI / 2) * Math.sinh(step * 0.08);
      sum += (0.08 * (Math.PI / 2) * Math.cosh(step * 0.08) * of((from + to) / 2 + ((to - from) / 2) * Math.tanh(at))) / Math.cosh(at) ** 2;
    }
    return (sum * (to - from)) / 2;
  }
  /* The share of Student's distribution below t >= 0, and its 97.5 % quantile; degrees of freedom may be fractions. */
  function studentBelow(t, freedom) {
    const density = (angle) => Math.max(0, Math.cos(angle)) ** (freedom - 1);
    return (1 + integral(density, 0, Math.atan(t / Math.sqrt(freedom))) / integral(density, 0, Math.PI / 2)) / 2;
  }
  function student(freedom) {
    if (freedom <= 100) return root((t) => studentBelow(t, freedom) - (1 + LEVEL) / 2, 0, 16);
    const powers = [(Z ** 3 + Z) / 4, (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / 96, (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / 384];
    return powers.reduce((sum, term, at) => sum + term / freedom ** (at + 1), Z);
  }
  /* Satterthwaite's degrees of freedom of a mean over clusters; see testbed.metrics.inference.clusters.freedom. */
  function freedom(sizes) {
    const size = total(sizes), shares = sizes.map((each) => each / size), parts = shares.map((share) => share * share / (1 - share)), squares = (values) => total(values.map((each) => each * each));
    return Math.max(1, 1 / (squares(shares) + total(parts) ** 2 - squares(parts)));
  }
  /* The interval of a mean difference: Tango's for scores of 0 and 1, else Student's over clusters; see testbed.metrics.inference.paired.difference_interval. */
  function interval(differences, sums, sizes, binary) {
    const n = sums.length, size = total(sizes), mean = total(sums) / size, alone = n === size, first = differences[0];
    const right = (number) => tango(first > 0 ? number : 0, first < 0 ? number : 0, number);
    if (binary && alone) return tango(differences.filter((each) => each > 0).length, differences.filter((each) => each < 0).length, n);
    const spread = sums.reduce((all, each, at) => all + ((each - mean * sizes[at]) * (size - size / n) / (size - sizes[at])) ** 2, 0);
    const error = n > 1 ? Math.sqrt(n / (n - 1) * spread) / size : 0; // the jackknife over clusters
    if (error > 1e-12 * Math.abs(mean)) { const half = student(freedom(sizes)) * error; return [mean - half, mean + half]; }
    return binary && differences.every((each) => each === first) ? right(n) : [NaN, NaN];
  }
  const total = (values) => values.reduce((sum, each) => sum + each, 0);
  /* The sums of values over clusters, and their sizes; of samples that are alone the values themselves. */
  function collapsed(values, clusters) {
    const place = new Map(), sums = [], sizes = [];
    values.forEach((value, at) => {
      const key = clusters ? clusters[at] : at;
      if (!place.has(key)) { place.set(key, sums.length); sums.push(0); sizes.push(0); }
      sums[place.get(key)] += value;
      sizes[place.get(key)] += 1;
    });
    return [sums, sizes];
  }
  /* The p-value of random signs, or of its normal limit. */
  function signFlips(differences) {
    const n = differences.length, own = Math.abs(differences.reduce((sum, each) => sum + each, 0)), squares = differences.reduce((sum, each) => sum + each * each, 0);
    if (!squares) return 1;
    const bound = Math.min(1, 2 * Math.exp(-(own * own) / (2 * squares)));
    if (n > FEW) return Math.min(bound, erfc(own / Math.sqrt(2 * squares)));
    const random = generator(n + 7);
    let large = 0;
    for (let draw = 0; draw < DRAWS; draw += 1) {
      let sum = 0;
      for (let each = 0; each < n; each += 1) sum += random() < 0.5 ? differences[each] : -differences[each];
      if (Math.abs(sum) >= own * (1 - 1e-12)) large += 1;
    }
    return Math.min((large + 1) / (DRAWS + 1), bound);
  }
  /* Press et al.'s fit of erfc, to seven digits. */
  function erfc(x) {
    const t = 1 / (1 + 0.5 * x);
    const terms = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
    return t * Math.exp(-x * x + terms.reduceRight((sum, term) => sum * t + term, 0));
  }

  const SIGNIFICANT = 0.05;
  /* The better of two models, or the higher one if the direction is unknown; "tied" if the test finds no difference. */
  T.verdict = function ({ n, difference, p }, larger) {
    if (!n) return "–";
    if (!(p < SIGNIFICANT) || !difference) return "tied";
    return larger === null ? `${difference > 0 ? "A" : "B"} is higher` : `${difference > 0 === larger ? "A" : "B"} is better`;
  };
  T.random = generator;
  T.percentiles = percentiles;
  /* Scores of two models on the same samples, and the cluster of each sample, if there are clusters. */
  T.paired = function (first, second, clusters) {
    const n = first.length, differences = first.map((each, place) => each - second[place]);
    const binary = [first, second].every((scores) => scores.every((each) => each === 0 || each === 1));
    const more = differences.filter((each) => each > 0).length, less = differences.filter((each) => each < 0).length;
    const [sums, sizes] = collapsed(differences, clusters), alone = sums.length === n;
    const mean = (scores) => (n ? scores.reduce((sum, each) => sum + each, 0) / n : NaN);
    const [low, high] = !n ? [NaN, NaN] : interval(differences, sums, sizes, binary);
    return { n, binary, first: mean(first), second: mean(second), difference: mean(differences), low, high, p: !n ? NaN : binary && alone ? mcnemar(more, less) : signFlips(sums), only_first: more, only_second: less, clusters: alone ? null : sums.length };
  };
})();
