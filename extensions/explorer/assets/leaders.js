"use strict";
/* Rankings: the summary of testbed rank, ranks with their intervals, mean ranks, averages and ties. */
(() => {
  const E = T.element, NAMED = 3, TIED = 5, Z = 1.959963985; // columns of a note, and models of a line; tied ones; standard errors of an interval of 95 %

  // Paired tests, which take the server a moment ----------------------------------------------------------------------

  const known = new WeakMap(); // column → its tests; null if its values have none
  const place = (index, of) => { const at = index.columnOf.get(of.name); return at !== undefined && index.columns[at].ranked && index.columns[at].metric === of.metric ? at : -1; };
  /* The tests of a column's own metric; undefined until they are loaded. */
  const testsOf = (index, of) => { const own = of.whole || of; return known.has(own) || place(index, own) >= 0 ? known.get(own) : null; };
  async function load(index, given) {
    const of = given.whole || given;
    if (testsOf(index, of) !== undefined) return;
    const doc = await T.load(`leaders/${place(index, of)}`).catch(() => ({ words: "", models: [] })), at = new Map(doc.models.map((model, order) => [model, order]));
    const tied = (model) => new Set(doc.ties[at.get(model)].flatMap((from, end, ends) => (end % 2 ? [] : doc.models.slice(from, ends[end + 1]))));
    known.set(of, doc.models.length ? { words: doc.words, models: doc.models, has: (model) => at.has(model), rank: (model) => doc.ranks[at.get(model)], tied } : null);
  }
  /* Loads the tests of columns, one column after another, and calls `then` after each. */
  async function test(index, columns, current, then) {
    for (const of of columns) if (current() && testsOf(index, of) === undefined) { await load(index, of); if (current()) then(of); }
  }
  /* A column with the values of some models alone, for what speaks of these; itself if no other model has one. */
  function among(of, models) {
    const value = new Float64Array(of.value.length).fill(NaN);
    let count = 0;
    for (const at of models) { value[at] = of.value[at]; count += !Number.isNaN(value[at]); }
    return count === of.valued ? of : { ...of, value, count, valued: count, whole: of };
  }
  /* The line about the models that are shown, where others are not. */
  function ofShown(index, of, tests) {
    const way = T.direction(of), name = (at) => index.models[at].name, told = (at) => `${T.numbers.shown(of, of.value[at])}${of.percent ? " %" : ""}`;
    const models = index.models.map(({ at }) => at).filter((at) => !Number.isNaN(of.value[at])).sort((a, b) => way * (of.value[b] - of.value[a]) || a - b), [best] = models;
    if (!way || tests === undefined || best === undefined) return "";
    if (models.length === 1) return `${name(best)} ${told(best)} (${of.metric}), the only model shown`;
    if (!tests || !tests.has(best)) return `${way > 0 ? "highest" : "lowest"} ${of.metric} of the models shown: ${models.slice(0, NAMED).map((at) => `${name(at)} ${told(at)}`).join(", ")}; the differences are not tested`;
    const equal = models.filter((at) => of.value[at] === of.value[best]), tied = models.filter((at) => !equal.includes(at) && tests.has(at) && tests.tied(best).has(at));
    const names = (list) => `${list.slice(0, TIED).map(name).join(", ")}${list.length > TIED ? ` and ${list.length - TIED} more` : ""}`;
    return [equal.length > 1 ? `${names(equal)} lead the models shown, each with ${told(best)}` : `${name(best)} ${told(best)} leads the models shown`, ...(tied.length ? [`tied with ${names(tied)} (Holm, over all ${tests.models.length.toLocaleString("en")} models)`] : [])].join("; ");
  }
  /* A text whose names may break between their parts, and nowhere else. */
  const breakable = (text) => text.split(/( )/).map((word) => (/[a-z]/i.test(word) ? T.name(word) : word));
  /* The line: of the tests where there are some; else the order. */
  function line(index, of) {
    const made = E("p", { id: "answer", "aria-live": "polite" });
    made.say = () => {
      const tests = of ? testsOf(index, of) : null, words = !of ? "" : of.whole ? ofShown(index, of, tests) : tests ? tests.words : tests === null ? of.order : "";
      if (words && !made.childElementCount) made.replaceChildren(E("strong", {}, of.name), ": ", ...breakable(`${words.replaceAll(" %", "\u00a0%")}.`));
    };
    made.say();
    return made;
  }

  // Ranks ------------------------------------------------------------------------------------------------------------

  /* The rank of a model by its value, from 1, and where two are equal the same, or the mean of the ranks that they share; NaN
     without a value or a direction. */
  const inOrder = new WeakMap();
  function rank(of, at, shared) {
    const way = T.direction(of), own = way * of.value[at];
    if (!way || Number.isNaN(own)) return NaN;
    if (!inOrder.has(of)) inOrder.set(of, of.value.filter((each) => !Number.isNaN(each)).map((each) => -way * each).sort());
    const first = before(inOrder.get(of), (each) => each < -own);
    return shared ? (first + 1 + before(inOrder.get(of), (each) => each <= -own)) / 2 : first + 1;
  }
  /* How many of ordered numbers a test holds for, which are the first. */
  function before(numbers, test) {
    let low = 0, high = numbers.length;
    while (low < high) { const middle = (low + high) >> 1; if (test(numbers[middle])) low = middle + 1; else high = middle; }
    return low;
  }
  const ranks = (of) => of.value.map((_, at) => rank(of, at, true));
  /* A rank, and its interval where the models were ranked on the same samples and no others are there. */
  function rankText(index, of, at) {
    const tests = testsOf(index, of), placed = rank(of, at);
    if (Number.isNaN(placed)) return "–";
    const [own, low, high] = tests && tests.models.length === of.count ? tests.rank(at) : [placed];
    return high > low ? `${own} (${low}–${high})` : T.numbers.count(own);
  }
  /* The mean over columns, for models that have all of them. */
  function mean(parts, number) {
    const value = new Float64Array(number).fill(NaN);
    let lacking = 0;
    for (let at = 0; at < number; at += 1) {
      let sum = 0, there = 0;
      for (const each of parts) if (!Number.isNaN(each[at])) { sum += each[at]; there += 1; }
      if (there === parts.length) value[at] = sum / there;
      else if (there) lacking += 1;
    }
    return { value, lacking, of: parts.length };
  }

  // Ties -------------------------------------------------------------------------------------------------------------

  const NONE = { any: false, paired: false, unpaired: false, has: () => false };
  /* Which of some models do not differ significantly from the best of them, as in testbed grid: by the paired tests, and
     those without samples by the 95 % interval of the difference of two independent results. None of a single result. */
  function ties(index, of, models) {
    const tests = testsOf(index, of), way = T.direction(of);
    if (!way || tests === undefined) return NONE;
    let count = 0, alone = 0, most = -Infinity, best = [];
    for (const at of models) {
      const value = way * of.value[at];
      if (Number.isNaN(value)) continue;
      count += 1;
      if (!tests || !tests.has(at)) alone += 1;
      if (value > most) { most = value; best = [at]; } else if (value === most) best.push(at);
    }
    if (count < 2) return NONE;
    const shown = tests && best.some(tests.has) ? new Set(models) : null, first = shown && tests.models.find((at) => shown.has(at)), tied = shown && tests.tied(first);
    const squared = (at) => (of.error[at] >= 0 ? of.error[at] ** 2 : of.rate && of.n[at] > 0 ? of.value[at] * (100 - of.value[at]) / of.n[at] : NaN), own = squared(best[0]);
    const has = (at) => way * of.value[at] === most || at === first || (tied && tests.has(at) ? tied.has(at) : (way * of.value[at] - most) ** 2 <= Z ** 2 * (squared(at) + own));
    return { name: of.name, any: true, paired: Boolean(tied), unpaired: !tied || alone > 0, has };
  }
  /* What shading means, for a note: nothing if nothing is shaded. */
  function legend(shaded) {
    const some = shaded.filter((each) => each.any), alone = some.filter((each) => each.unpaired).map((each) => each.name), independent = "as if the models had seen different samples";
    if (!some.length) return [];
    if (!some.some((each) => each.paired)) return [`shaded: does not differ from the best of its column by more than chance (95 %, ${independent}: these values have no paired tests)`];
    const listed = `${alone.slice(0, NAMED).join(", ")}${alone.length > NAMED ? ` and ${alone.length - NAMED} more` : ""}`;
    return [`shaded: does not differ significantly from the best of its column (paired tests, Holm${alone.length ? `; values of ${listed} that have none: 95 %, ${independent}` : ""})`];
  }
  T.leaders = { load, test, among, line, ranks, rankText, mean, ties, legend };
})();
