"use strict";
/* Two models on the same samples, as testbed.metrics.paired: McNemar's exact test, the bootstrap interval of the difference. */
(() => {
  const DRAWS = 10000, LEVEL = 0.95;

  /* Uniform numbers in (0, 1) from a seed (mulberry32), so that a page says the same each time. */
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
  /* A binomial number: by inversion for few expected, else by rejection (Hörmann 1993, BTRS). */
  function binomial(n, p, random) {
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1) return n;
    if (p > 0.5) return n - binomial(n, 1 - p, random);
    if (n * p < 10) {
      const ratio = p / (1 - p);
      let chance = Math.exp(n * Math.log1p(-p)), u = random(), k = 0;
      while (u > chance && k < n) { u -= chance; k += 1; chance *= (ratio * (n - k + 1)) / k; }
      return k;
    }
    const spread = Math.sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, vr = 0.92 - 4.2 / b;
    const alpha = (2.83 + 5.1 / b) * spread, mode = Math.floor((n + 1) * p), odds = Math.log(p / (1 - p));
    for (;;) {
      const u = random() - 0.5, us = 0.5 - Math.abs(u), k = Math.floor((2 * a / us + b) * u + c);
      if (k < 0 || k > n) continue;
      let v = random();
      if (us >= 0.07 && v <= vr) return k;
      v = Math.log((v * alpha) / (a / (us * us) + b));
      if (v <= logFactorial(mode) + logFactorial(n - mode) - logFactorial(k) - logFactorial(n - k) + (k - mode) * odds) return k;
    }
  }
  function percentiles(means) {
    const sorted = Float64Array.from(means).sort(), at = (share) => {
      const place = share * (sorted.length - 1), low = Math.floor(place), rest = place - low;
      return sorted[low] + (rest ? rest * (sorted[low + 1] - sorted[low]) : 0);
    };
    return [at((1 - LEVEL) / 2), at((1 + LEVEL) / 2)];
  }
  function binaryInterval(first, second, n) {
    const random = generator(n * 31 + first), means = new Float64Array(DRAWS);
    for (let draw = 0; draw < DRAWS; draw += 1) {
      const more = binomial(n, first / n, random), less = binomial(n - more, n > first ? second / (n - first) : 0, random);
      means[draw] = (more - less) / n;
    }
    return percentiles(means);
  }
  /* Of other scores than 0 and 1, and where samples come in clusters, clusters are drawn, or with many of them the normal limit of that is taken. */
  const FEW = 1000;
  function interval(sums, sizes) {
    const n = sums.length, size = total(sizes), mean = total(sums) / size;
    if (n > FEW) {
      const half = 1.959963984540054 * Math.sqrt(sums.reduce((all, each, at) => all + (each - mean * sizes[at]) ** 2, 0)) / size;
      return [mean - half, mean + half];
    }
    const random = generator(n), means = new Float64Array(DRAWS);
    for (let draw = 0; draw < DRAWS; draw += 1) {
      let sum = 0, drawn = 0;
      for (let each = 0; each < n; each += 1) { const at = Math.floor(random() * n); sum += sums[at]; drawn += sizes[at]; }
      means[draw] = sum / drawn;
    }
    return percentiles(means);
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

  T.random = generator;
  T.percentiles = percentiles;
  /* Scores of two models on the same samples, and the cluster of each sample, if there are clusters. */
  T.paired = function (first, second, clusters) {
    const n = first.length, differences = first.map((each, place) => each - second[place]);
    const binary = [first, second].every((scores) => scores.every((each) => each === 0 || each === 1));
    const more = differences.filter((each) => each > 0).length, less = differences.filter((each) => each < 0).length;
    const [sums, sizes] = collapsed(differences, clusters), alone = sums.length === n;
    const mean = (scores) => (n ? scores.reduce((sum, each) => sum + each, 0) / n : NaN);
    const [low, high] = !n ? [NaN, NaN] : binary && alone ? binaryInterval(more, less, n) : interval(sums, sizes);
    return { n, binary, first: mean(first), second: mean(second), difference: mean(differences), low, high, p: !n ? NaN : binary && alone ? mcnemar(more, less) : signFlips(sums), only_first: more, only_second: less, clusters: alone ? null : sums.length };
  };
})();
