"use strict";
/* What is published: its sources, and who reports what for a model, or for one of its cells. */
(() => {
  const E = T.element, PER_DOCUMENT = 16, NOTHING = "Nothing is published for this cell.";
  const where = (text, link) => ({ text: link ? E("a", { href: link, rel: "noreferrer" }, text) : text });

  /* The sources, or the models and the files of one. */
  async function sourcesView(query, main, current) {
    const index = await T.index(), files = index.disagreements ? await T.load("claims/sources") : [], names = [...new Set(files.map(({ name }) => name))], source = names.find((each) => each === query.get("source"));
    const of = source && (await T.load("claims/models"))[source];
    if (!current()) return;
    if (!files.length) { main.replaceChildren(E("h1", {}, "Published values"), E("p", {}, "Nothing is published in this store.")); return; }
    const models = E("input", { id: "of-model", list: "names", type: "search", placeholder: "a model" }), go = (event) => { event.preventDefault(); if (models.value) location.hash = T.link("published", [models.value], { source }); };
    const head = [{ key: "date", label: "date" }, { key: "file", label: "file" }, { key: "rows", label: "rows", number: true }], shown = source ? files.filter(({ name }) => name === source) : [];
    main.replaceChildren(E("h1", {}, source ? "Published by " : "Published values", source ? T.name(source) : ""), E("div", { class: "controls" }, T.choose("Source", "source", [{ value: "", text: "all" }, ...names.map((value) => ({ value, text: value }))], source || ""), E("form", { class: "controls", onsubmit: go }, E("label", {}, "What is published about", models), E("button", { id: "of-model-go" }, "Show"))),
      ...(source ? [ofSource(index, source, of), T.table({ id: "files", caption: `Files of ${source}`, count: shown.length, columns: [{ ...head[1], heading: true }, head[0], head[2]], rowAt: (at) => ({ cells: [where(shown[at].file, shown[at].link), shown[at].date || "–", T.numbers.count(shown[at].rows)] }) })]
        : [bySource(names, files, head)]));
  }
  function bySource(names, files, head) {
    return T.table({ id: "sources", caption: "Sources of published values", count: names.length, columns: [{ key: "name", label: "source", heading: true }, ...head], rowAt: (at) => {
      const own = files.filter(({ name }) => name === names[at]), [{ file, link }] = own;
      return { cells: [{ text: E("a", { href: T.link("published", [], { source: names[at] }) }, T.name(names[at])) }, own.map(({ date }) => date || "").sort().at(-1) || "–", own.length > 1 ? T.numbers.counted(own.length, "file") : where(file, link), T.numbers.count(own.reduce((sum, { rows }) => sum + rows, 0))] };
    } });
  }
  function ofSource(index, source, { models, values, others }) {
    const name = (at) => index.models[models[at]].name, short = T.models.shortened(models.map((_, at) => name(at)));
    return E("div", {}, others ? E("p", { class: "note" }, `${T.numbers.counted(others, "value")} of models that are not in this store; `, E("code", {}, `testbed published list ${source}`), " lists all") : null,
      T.table({ id: "models", caption: `Models of ${source}`, count: models.length, columns: [{ key: "model", label: "model", heading: true }, { key: "values", label: "values", number: true }], rowAt: (at) => ({ cells: [{ text: E("a", { href: T.link("published", [name(at)], { source }), title: name(at) }, short.get(name(at))) }, T.numbers.count(values[at])] }) }));
  }
  /* A published value in a table that is exported. */
  const claimed = (metric, value, unit, n, source) => ({ ...T.measured(value ?? NaN, unit), n: n ?? NaN, metric, origin: `published (${source})` });
  async function modelView(name, query, main, current) {
    const index = await T.index(), model = index.modelOf.get(name);
    if (!model) throw new Error(`There is no model ${name}`);
    const every = (((await T.find(`claims/${Math.floor(model.at / PER_DOCUMENT)}`)) || {})[name] || []), on = query.get("on"), source = query.get("source");
    if (!current()) return;
    const rows = every.filter(([setting, , , , , , , from]) => (!on || setting === on) && (!source || from === source)), unique = (place) => [...new Set(every.map((each) => each[place]))].map((each) => ({ value: each, text: each }));
    main.replaceChildren(E("h1", {}, "Published about ", T.name(name)), E("div", { class: "controls" }, T.choose("Setting", "on", [{ value: "", text: "all" }, ...unique(0), ...(on && !every.some(([setting]) => setting === on) ? [{ value: on, text: on }] : [])], on || ""), T.choose("Source", "source", [{ value: "", text: "all" }, ...unique(7)], source || "")),
      ...(rows.length ? [T.exports(`published-${name}`, { title: `Published about ${name}`, rows: () => [["setting", "metric", "value", "source", "date", "conditions"], ...rows.map(([setting, metric, part, value, unit, n, told, from, date]) => [setting, part ? `${metric} (${part})` : metric, claimed(metric, value, unit, n, from), from, date, told])] }), T.table({ id: "claims", caption: `Published about ${name}`, count: rows.length,
        columns: [{ key: "setting", label: "setting", heading: true }, { key: "metric", label: "metric" }, { key: "value", label: "value", number: true }, { key: "n", label: "n", number: true }, { key: "source", label: "source" }, { key: "date", label: "date" }, { key: "conditions", label: "prompts, image size, …" }, { key: "place", label: "place" }],
        rowAt: (at) => {
          const [setting, metric, part, value, unit, n, told, from, date, place, link] = rows[at];
          return { cells: [{ text: index.columnOf.has(setting) ? E("a", { href: T.link("setting", [setting]) }, T.name(setting)) : T.name(setting) }, part ? `${metric} (${part})` : metric, `${T.numbers.meanScore(value, unit)}${unit && unit !== T.numbers.FRACTION ? ` ${unit}` : ""}`, n === null ? "–" : T.numbers.count(n), T.name(from), date || "–", told || "–", where(place, link)] };
        } })] : [E("p", { id: "nothing" }, on ? NOTHING : "Nothing is published about this model.")]),
      E("p", {}, E("a", { href: T.link("published", [], {}) }, "All sources")));
  }
  const name = (state) => state.parts.join("/");
  T.view("published", { title: (state) => name(state) || "Published values", nav: "Published", optional: true, render: (state, main, current) => (state.parts.length ? modelView(name(state), state.query, main, current) : sourcesView(state.query, main, current)) });
  T.index().then((index) => { T.at("views").querySelector('[data-view="published"]').hidden = !index.disagreements; }, () => {});
})();
