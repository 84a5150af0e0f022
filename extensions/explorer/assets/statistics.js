"use strict";
/* Scales, lines and intervals, as in Python; rates in percent. */
(() => {
  const SCALES = {
    linear: [(p) => p / 100, (z) => 100 * z],
    logit: [(p) => Math.log(p / (100 - p)), (z) => 100 / (1 + Math.exp(-z))],
    probit: [(p) => quantile(p / 100), (z) => 100 * normal(z)],
  };
  /* The normal distribution (Press et al.'s fit of erfc) and its quantile (Acklam's), to six digits and more. */
  function normal(z) {
    const t = 1 / (1 + 0.5 * Math.abs(z) / Math.SQRT2), x = Math.abs(z) / Math.SQRT2;
    const terms = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
    const tail = t * Math.exp(-x * x + terms.reduceRight((sum, term) => sum * t + term, 0));
    return z >= 0 ? 1 - tail / 2 : tail / 2;
  }
  function quantile(p) {
    if (p <= 0) return -Infinity;
    if (p >= 1) return Infinity;
    const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
    const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
    const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
    const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
    const poly = (terms, x) => terms.reduce((sum, term) => sum * x + term, 0);
    if (p < 0.02425) { const q = Math.sqrt(-2 * Math.log(p)); return poly(c, q) / (poly(d, q) * q + 1); }
    if (p > 0.97575) return -quantile(1 - p);
    const q = p - 0.5, r = q * q;
    return (poly(a, r) * q) / (poly(b, r) * r + 1);
  }
  /* The line through points { x, y }, fitted on a scale; null if there are too few. */
  function fit(points, scale) {
    const [to, from] = SCALES[scale], used = points.map(({ x, y }) => [to(x), to(y)]).filter(([x, y]) => isFinite(x) && isFinite(y));
    if (new Set(used.map(([x]) => x)).size < 2) return null;
    let mx = 0, my = 0, sxx = 0, sxy = 0, syy = 0;
    for (const [x, y] of used) { mx += x / used.length; my += y / used.length; }
    for (const [x, y] of used) { sxx += (x - mx) ** 2; sxy += (x - mx) * (y - my); syy += (y - my) ** 2; }
    const slope = sxy / sxx, intercept = my - slope * mx;
    return { slope, intercept, r: syy ? sxy / Math.sqrt(sxx * syy) : 0, n: used.length, predict: (x) => from(slope * to(x) + intercept) };
  }
  const RESAMPLES = 1000, DRAWS = 2e6, FEWEST = 100; // of many models fewer resamples
  /* The 95 % bootstrap band of the line of `fit`: [low, high] at positions of the scale. */
  function band(points, scale, places) {
    const [to] = SCALES[scale], used = points.map(({ x, y }) => [to(x), to(y)]).filter(([x, y]) => isFinite(x) && isFinite(y)), n = used.length, random = T.random(n), lines = [];
    for (let left = Math.max(FEWEST, Math.min(RESAMPLES, Math.round(DRAWS / n))); left > 0; left -= 1) {
      let sx = 0, sy = 0, sxx = 0, sxy = 0;
      for (let draw = 0; draw < n; draw += 1) { const [x, y] = used[Math.floor(random() * n)]; sx += x; sy += y; sxx += x * x; sxy += x * y; }
      const spread = sxx - sx * sx / n, slope = (sxy - sx * sy / n) / spread;
      if (spread > 1e-9 * Math.max(sxx, 1e-300)) lines.push([slope, (sy - slope * sx) / n]);
    }
    return places.map((x) => T.percentiles(lines.map(([slope, intercept]) => slope * x + intercept)));
  }
  const STEPS = [50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01], DECADES = [50, ...[10, 1, 0.1, 0.01, 20, 5, 2, 0.5, 0.2, 30, 40].flatMap((each) => [each, 100 - each])], MOST = 9, ENOUGH = 5, GAP = 2.5;
  /* Round percentages between two places of a scale, as testbed.plotting.style.percent_ticks chooses them. */
  function ticks(low, high, to) {
    const apart = (high - low) / MOST, inside = (percents) => percents.map((tick) => ({ tick, place: to(tick) })).filter(({ place }) => place >= low && place <= high), chosen = [];
    for (const step of STEPS) {
      const here = inside(Array.from({ length: Math.round(100 / step) - 1 }, (_, at) => Math.round((at + 1) * step * 100) / 100));
      const places = [low, ...here.map(({ place }) => place), high], steps = places.slice(1).map((each, at) => each - places[at]);
      if (here.length >= ENOUGH && Math.min(...steps.slice(1, -1)) >= apart && Math.max(...steps) <= GAP * apart) return here;
      const most = step >= 5 ? MOST : step >= 1 ? 4 : 3;
      for (const each of chosen.length ? here : [...inside(DECADES), ...here]) {
        if (chosen.some(({ place }) => Math.abs(place - each.place) < apart)) continue;
        const others = [low, high, ...chosen.map(({ place }) => place)], gap = Math.min(...others.filter((other) => other >= each.place)) - Math.max(...others.filter((other) => other <= each.place));
        if (chosen.length < most || gap > GAP * apart) chosen.push(each);
      }
      const ends = [low, high, ...chosen.map(({ place }) => place)].sort((a, b) => a - b);
      if (here.length > MOST + 1 && chosen.length >= 4 && ends.every((each, at) => !at || each - ends[at - 1] <= GAP * apart)) break; // finer ones are too near each other, and leave no gap to fill
    }
    return chosen.sort((a, b) => a.place - b.place);
  }
  /* Round numbers between two. */
  function round(low, high, parts = 5) {
    const rough = (high - low) / parts, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
    return Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, at) => Number(((Math.ceil(low / step) + at) * step).toPrecision(12)));
  }
  Object.assign(T, { SCALES, fit, band, ticks, round });
})();
