"use strict";
/* Disagreements between measured and published values, and between sources. */
(() => {
  const E = T.element;

  async function render(state, main, current) {
    const index = await T.index(), doc = index.disagreements ? await T.load("disagreements") : { sources: [], measured: [] };
    if (!current()) return;
    const selected = T.selection(index, state.query), pinned = new Set(T.pins()), some = (rows, name) => T.models.first(rows.filter((row) => pinned.has(name(row)) || !selected.any || (index.modelOf.has(name(row)) && selected.model(index.modelOf.get(name(row))))), name);
    const short = T.models.shortened([...doc.measured.map((each) => each.model), ...doc.sources.flatMap((each) => each.pairs.map((pair) => pair.values[0].model))]);
    const model = (name) => ({ text: index.modelOf.has(name) ? T.models.link(name, short.get(name)) : T.name(name) });
    const own = some(doc.measured, (each) => each.model), sources = doc.sources.map((each) => ({ ...each, pairs: some(each.pairs, (pair) => pair.values[0].model) }));
    const setting = (name) => ({ text: index.columnOf.has(name) ? E("a", { href: T.link("setting", [name]) }, T.name(name)) : T.name(name) });
    main.replaceChildren(E("h1", {}, "Disagreements"), E("p", { class: "note" }, "Two values with the same weights, setting and metric disagree if they differ: measured values by more than chance, values of two sources by more than one point."),
      ...(doc.sources.length || doc.measured.length ? [E("div", { class: "controls" }, T.models.finder(state.query))] : []),
      ...(own.length ? [E("h2", {}, "Measured here"), measured(own, model, setting)] : []),
      ...sources.flatMap((each, at) => [E("h2", {}, each.names.join(" and ")), E("p", { class: "note" }, `${each.summary}.`), ...(each.pairs.length ? [pairs(each, at, model, setting)] : [])]),
      ...(doc.sources.length || doc.measured.length ? [] : [E("p", {}, "No two values with the same weights, setting and metric disagree.")]));
  }
  function measured(rows, model, setting) {
    return T.table({ id: "measured", caption: "Measured here", count: rows.length, columns: [{ key: "model", label: "model", heading: true }, { key: "setting", label: "setting" }, { key: "line", label: "difference" }],
      rowAt: (at) => { const { evaluation, line, ...each } = rows[at]; return { pinned: T.pins().includes(each.model), cells: [model(each.model), setting(each.setting), { text: E("a", { href: T.link("cell", [evaluation]), onclick: (event) => T.drawer(event, evaluation) }, line) }] }; } });
  }
  function pairs({ names, pairs: rows }, at, model, setting) {
    const value = (each) => ({ text: T.percent(100 * each.value), title: `${each.model}: ${each.where}` });
    return T.table({ id: `disagree-${at}`, caption: names.join(" and "), count: rows.length,
      columns: [{ key: "points", label: "points", number: true }, { key: "model", label: "model", heading: true }, { key: "setting", label: "setting" }, { key: "metric", label: "metric" }, ...names.map((name, side) => ({ key: `value-${side}`, label: name, number: true }))],
      rowAt: (place) => { const each = rows[place]; return { pinned: T.pins().includes(each.values[0].model), cells: [T.points(each.points), model(each.values[0].model), setting(each.setting), [each.metric, each.slice].filter(Boolean).join(", "), ...each.values.map(value)] }; } });
  }
  T.view("disagreements", { title: () => "Disagreements", nav: "Disagreements", optional: true, render });
})();
