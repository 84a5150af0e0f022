"use strict";
/* Numbers for people, as in testbed.formatting: fixed decimals for each metric, thousands separators, a true minus sign. */
(() => {
  const MINUS = "−", NONE = "–", FRACTION = "fraction", DECIMALS = { [FRACTION]: 2, percent: 2, "%": 2, points: 2, rank: 2, words: 2, sentences: 2 }, OTHER = 4, LARGEST = 1e15, SMALLEST_P = 1e-4, COARSE = 2;
  const lacking = (value) => value === null || value === undefined || Number.isNaN(value);
  const decimalsOf = (unit) => DECIMALS[unit] ?? OTHER;
  const power = (size, digits) => size.toExponential(digits).replace("+", "").replace("-", MINUS);
  /* A number with this many decimals; one that these cannot show has a power of ten. */
  function fixed(value, decimals, signed, separated = true) {
    const size = Math.abs(value);
    let text = size === Infinity ? "∞" : size >= LARGEST ? power(size, 3) : size.toFixed(decimals), zero = false;
    if (size < LARGEST) {
      if (separated) text = text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
      if (!/[1-9]/.test(text)) { if (size && decimals > COARSE) text = power(size, 1); else zero = true; }
    }
    return `${zero ? "" : value < 0 ? MINUS : signed && value > 0 ? "+" : ""}${text}`;
  }
  const percent = (value, digits) => (lacking(value) ? NONE : fixed(value, digits ?? 2)); // of what is in percent already
  const points = (value) => fixed(value, 2, true);
  /* A value of the store, without its unit; rates in percent. */
  const bare = (value, unit, signed) => (lacking(value) ? NONE : fixed(unit === FRACTION ? 100 * value : value, decimalsOf(unit), signed));
  const meanScore = (value, unit) => `${bare(value, unit)}${unit === FRACTION && !lacking(value) ? " %" : ""}`;
  const difference = (value, unit) => `${bare(value, unit, true)}${unit === FRACTION ? " points" : ""}`;
  const ends = (low, high, unit, signed) => (lacking(low) || lacking(high) ? NONE : `[${bare(low, unit, signed)}, ${bare(high, unit, signed)}]`);
  const pValue = (value) => (lacking(value) ? NONE : value < SMALLEST_P ? `<${fixed(SMALLEST_P, 4)}` : fixed(value, 4));
  const COUNTS = new Intl.NumberFormat("en"), count = (number) => COUNTS.format(number); // toLocaleString is slow
  const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
  /* The 95 % interval of a number of a column, in its unit; nothing of a number without spread. */
  const spread = (of, low, high) => (high > low ? `[${shown(of, low)}, ${shown(of, high)}]` : NONE);
  /* A number of a column of the page, whose rates are in percent. */
  const shown = (of, value) => (lacking(value) ? NONE : fixed(value, of.percent ? DECIMALS[FRACTION] : decimalsOf(of.unit)));
  Object.assign(T, { percent, points, numbers: { FRACTION, decimalsOf, fixed, bare, meanScore, difference, ends, pValue, count, counted, shown, spread } });
})();
