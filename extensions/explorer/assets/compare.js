"use strict";
/* Two evaluations side by side: the table of right and wrong, its test, and the samples of each of its cells. */
(() => {
  const S = () => T.samples;
  const E = (...given) => T.element(...given);
  const CELLS = [["both", "both right"], ["a", "only A right"], ["b", "only B right"], ["none", "both wrong"]];
  const ONE = { true: "only one right", false: "different" };
  const LEVELS = [["a", "A higher"], ["b", "B higher"], ["both", "the same"]];

  const all = (meta) => Array.from({ length: meta.n }, (_, position) => position);
  /* All common samples, also in an export: positions in the first one's setting and in the second one's. */
  async function shared(a, b, metaA, metaB) {
    const positions = all(metaA);
    if (metaA.dataset === metaB.dataset) return positions.map((each) => [each, each]);
    const theirs = all(metaB), there = new Map((await S().ids(metaB, theirs)).map((id, place) => [id, theirs[place]]));
    return (await S().ids(metaA, positions)).map((id, place) => [positions[place], there.get(id)]).filter(([, other]) => other !== undefined);
  }
  const sure = (said, position) => (said.confidence ? said.confidence[position] : NaN);
  function tests(a, b, found, meta, query) {
    const least = S().share(query.get("least"), -1), most = S().share(query.get("most"), 2), inside = S().within(found, meta, query), made = [([one]) => inside(one)];
    if (least >= 0 || most <= 1) {
      made.push(([one, other]) => [sure(a, one), sure(b, other)].some((each) => each >= least && each <= most));
    }
    if (query.get("differ")) made.push(([one, other]) => (a.prediction && b.prediction ? a.prediction[one] !== b.prediction[other] : a.values[one] !== b.values[other]));
    return (pair) => made.every((test) => test(pair));
  }
  const cellOf = (x, y, binary) => (binary ? (x >= S().RIGHT ? (y >= S().RIGHT ? "both" : "a") : y >= S().RIGHT ? "b" : "none") : x > y ? "a" : x < y ? "b" : "both");

  function labels(a, b, metaA, metaB) {
    return a.model === b.model ? [`${a.model} on ${metaA.setting}`, `${b.model} on ${metaB.setting}`] : [a.model, b.model];
  }
  /* A cell of the table is a button that shows its samples. */
  function cellButton(key, count, chosen) {
    return E("button", { type: "button", id: `cell-${key}`, "aria-pressed": key === chosen ? "true" : "false", onclick: () => T.change({ cell: key, page: null }) }, count.toLocaleString("en"));
  }
  function squares(counts, names, chosen) {
    const row = (name, keys) => E("tr", {}, E("th", { scope: "row" }, name), ...keys.map((key) => E("td", {}, cellButton(key, counts[key], chosen))), E("td", { class: "number" }, (counts[keys[0]] + counts[keys[1]]).toLocaleString("en")));
    return E("table", { class: "squares" }, E("caption", {}, "A: ", T.name(names[0]), E("br"), "B: ", T.name(names[1]), E("br"), "Click a cell to list its samples."),
      E("thead", {}, E("tr", {}, E("td"), E("th", { scope: "col" }, "B right"), E("th", { scope: "col" }, "B wrong"), E("th", { scope: "col" }, "sum"))),
      E("tbody", {}, row("A right", ["both", "a"]), row("A wrong", ["b", "none"]),
        E("tr", {}, E("th", { scope: "row" }, "sum"), E("td", { class: "number" }, (counts.both + counts.b).toLocaleString("en")), E("td", { class: "number" }, (counts.a + counts.none).toLocaleString("en")), E("td", { class: "number" }, (counts.both + counts.a + counts.b + counts.none).toLocaleString("en")))));
  }
  function levels(counts, names, chosen) {
    return E("table", { class: "squares" }, E("caption", {}, "A: ", T.name(names[0]), E("br"), "B: ", T.name(names[1]), E("br"), "Click a cell to list its samples."),
      E("thead", {}, E("tr", {}, ...LEVELS.map(([, text]) => E("th", { scope: "col" }, text)))), E("tbody", {}, E("tr", {}, ...LEVELS.map(([key]) => E("td", {}, cellButton(key, counts[key], chosen))))));
  }
  function statistics(found, score, meta, names) {
    const N = T.numbers, unit = found.binary ? N.FRACTION : meta.unit, value = (mean) => `${N.meanScore(mean, unit)}${unit && unit !== N.FRACTION ? ` ${unit}` : ""}`;
    const counted = found.n.toLocaleString("en") + (found.clusters ? ` in ${found.clusters.toLocaleString("en")} groups` : "");
    const rows = [["samples", counted], [`${score} of A`, value(found.first)], [`${score} of B`, value(found.second)],
      ["A − B", `${N.difference(found.difference, unit)}${unit && unit !== N.FRACTION ? ` ${unit}` : ""}`], ["verdict", T.verdict(found, meta.larger)], ["95 % interval", N.ends(found.low, found.high, unit, true)], ["p", N.pValue(found.p)]];
    const cell = (given, low = NaN, high = NaN) => ({ value: given, unit, low, high, n: found.n, metric: score }), end = (given) => Number(given.toPrecision(10));
    const table = () => [["evaluation", score], [`A: ${names[0]}`, cell(found.first)], [`B: ${names[1]}`, cell(found.second)], ["A − B", cell(found.difference, end(found.low), end(found.high))]];
    return E("div", {}, E("dl", { class: "facts", id: "statistics" }, ...rows.flatMap(([name, value]) => [E("dt", {}, name), E("dd", {}, value)])),
      E("p", { class: "note" }, found.binary && !found.clusters ? "p: McNemar’s exact test. Interval: Tango’s score interval." : `p: random signs (with more than 1,000 ${found.clusters ? "groups" : "samples"}, their normal limit). Interval: Student’s t.${found.clusters ? " Whole groups of samples of the data set are drawn and tested." : ""}`,
        " Both cover the filtered samples; a single comparison needs no Holm correction. Tied: p ≥ 0.05."),
      T.exports("comparison", { rows: table, title: `A and B on the same samples: ${T.verdict(found, meta.larger)}, p ${/^[<>]/.test(N.pValue(found.p)) ? "" : "= "}${N.pValue(found.p)}` }));
  }
  function controls(found, meta, query, logits) {
    return E("div", { class: "controls", role: "group", "aria-label": "Filters" }, S().classSelect(meta, found, query), ...S().sliceSelects(found, query),
      S().select("Answers", "differ", query, [["", "all"], ["1", "that differ"]]),
      ...(logits ? [S().bound("Confidence of A or B from, %", "least", query), S().bound("to, %", "most", query)] : []),
      E("button", { type: "button", onclick: () => T.change({ class: null, slice: null, differ: null, least: null, most: null, page: null, cell: null }) }, "Clear"));
  }

  /* The outputs of an evaluation for each sample; an error names its setting if there are none. */
  async function arraysOf(id) {
    try {
      return await S().arrays(id);
    } catch (error) {
      if (!error.missing) throw error;
      throw new Error(T.lacking((await T.cell.find(Number(id))).setting));
    }
  }
  /* Two evaluations, and the samples that both have. */
  async function pairOf(ids) {
    const [a, b] = await Promise.all(ids.map(arraysOf)), [metaA, metaB] = await Promise.all([S().numbered(a.setting), S().numbered(b.setting)]);
    const [found, pairs] = await Promise.all([S().filters(metaA), shared(a, b, metaA, metaB)]);
    return { a, b, metaA, metaB, found, pairs };
  }
  /* The scores of both on samples that pass a test, and what is said of their difference. */
  function scored({ a, b, found, pairs }, test) {
    const kept = pairs.filter((pair) => test(pair) && !isNaN(a.values[pair[0]]) && !isNaN(b.values[pair[1]]));
    const first = kept.map(([one]) => a.values[one]), second = kept.map(([, other]) => b.values[other]), together = found.clusters && kept.map(([one]) => found.clusters[one]);
    return { kept, first, second, said: T.paired(first, second, together) };
  }
  T.compared = async (ids) => { const both = await pairOf(ids); return { ...scored(both, () => true).said, score: both.a.score, larger: both.metaA.larger }; };

  async function render(state, main) {
    const query = state.query;
    try {
      const both = await pairOf(state.parts.slice(0, 2)), { a, b, metaA, metaB, found } = both;
      const { kept, first, second, said } = scored(both, tests(a, b, found, metaA, query));
      const cells = kept.map((_, place) => cellOf(first[place], second[place], said.binary)), counts = { both: 0, a: 0, b: 0, none: 0 };
      for (const each of cells) counts[each] += 1;
      const wanted = [...(said.binary ? CELLS : LEVELS), ["one", ONE[said.binary]]], chosen = wanted.some(([key]) => key === query.get("cell")) ? query.get("cell") : "a";
      const positions = kept.filter((_, place) => (chosen === "one" ? ["a", "b"].includes(cells[place]) : cells[place] === chosen)), names = labels(a, b, metaA, metaB), other = new Map(positions), shown = positions.map(([one]) => one).filter((each) => S().rankOf(metaA, each) >= 0);
      const tell = (position) => lines(a, b, metaA, metaB, found, position, other.get(position));
      const swap = T.link("compare", [state.parts[1], state.parts[0]], { ...Object.fromEntries(query), cell: { a: "b", b: "a" }[query.get("cell")] || query.get("cell") || null });
      main.replaceChildren(E("h1", {}, T.name(names[0]), " and ", T.name(names[1])),
        E("p", { class: "note" }, a.setting === b.setting ? E("span", {}, "On ", E("a", { href: T.link("samples", [metaA.setting]) }, T.name(metaA.setting)), ". ") : "Samples are matched by their ids. ",
          E("a", { href: swap }, "Swap A and B"), ". ", E("a", { href: T.link("difference", state.parts.slice(0, 2)) }, "How the evaluations differ"), "."),
        controls(found, metaA, query, Boolean(a.confidence || b.confidence)),
        E("div", { class: "comparison" }, E("div", {}, said.binary ? squares(counts, names, chosen) : levels(counts, names, chosen), E("p", { class: "squares" }, `${ONE[said.binary][0].toUpperCase()}${ONE[said.binary].slice(1)}: `, cellButton("one", counts.a + counts.b, chosen))), statistics(said, a.score, metaA, names)),
        E("h2", { id: "samples" }, `${wanted.find(([key]) => key === chosen)[1][0].toUpperCase()}${wanted.find(([key]) => key === chosen)[1].slice(1)}: ${positions.length.toLocaleString("en")} samples`),
        shown.length < positions.length ? E("p", { class: "note" }, `${shown.length.toLocaleString("en")} of them are in this export.`) : "",
        await S().gallery(metaA, shown, query, tell));
      T.announce(`${kept.length} samples`);
    } catch (error) { S().failure(main, error); }
  }
  function lines(a, b, metaA, metaB, found, one, other) {
    const made = [], label = found.target[one];
    if (!isNaN(label)) made.push(S().className(metaA, label));
    const say = (letter, said, meta, position) => (said.prediction && !isNaN(said.prediction[position])
      ? `${letter}: ${S().className(meta, said.prediction[position])}${said.confidence ? ` ${S().percent(said.confidence[position], 0)}` : ""}` : `${letter}: ${S().number(said.values[position])}`);
    return [...made, say("A", a, metaA, one), say("B", b, metaB, other)];
  }

  T.view("compare", { title: () => "Comparison", render });
})();
