"use strict";
/* The page of a model: all its results; and of a setting: all models on it. */
(() => {
  const E = T.element, PARTS = 24; // columns that are loaded at once
  const shown = (of, at) => T.numbers.shown(of, of.value[at]);
  const spread = (of, at) => T.numbers.spread(of, ...T.interval(of, at)), { count } = T.numbers;

  async function modelView(state, main, current) {
    const index = await T.index(), name = state.parts.join("/"), model = index.modelOf.get(name), rows = [];
    if (!model) throw new Error(`There is no model ${name}`);
    for (let first = 0; first < index.columns.length; first += PARTS) {
      const places = index.columns.map((_, at) => at).slice(first, first + PARTS);
      for (const [at, of] of await Promise.all(places.map(async (place) => [place, await T.column(place)]))) {
        if (!Number.isNaN(of.value[model.at])) rows.push({ about: index.columns[at], of });
      }
      if (!current()) return;
    }
    const rank = (of) => { const way = T.direction(of); let better = 0; for (const each of of.value) if (way * each > way * of.value[model.at]) better += 1; return way ? better + 1 : "–"; };
    const on = T.pins().includes(name), settings = T.models.shortened(rows.map(({ about }) => about.name));
    main.replaceChildren(E("h1", {}, T.name(name)), E("p", { class: "note" }, `type: ${model.type}; family: ${model.family}; training data: ${model.pretraining}; parameters: ${model.params === null ? "not known" : model.params.toLocaleString("en")}; in the store since ${model.date}; results on ${rows.length} of ${index.columns.length} columns. `,
      E("button", { type: "button", id: "pin", "aria-pressed": on ? "true" : "false", onclick: () => T.pin(name) }, on ? "★ pinned" : "☆ pin"), " ", E("a", { href: T.link("severity", [], { models: T.quoted(name) }) }, "By severity"), ...(index.disagreements ? [" ", E("a", { id: "published-about", href: T.link("published", [name], {}) }, "What is published")] : [])),
    T.exports(name, { title: `Results of ${name}`, rows: () => [["column", "metric", "value", "rank", "models"], ...rows.map(({ about, of }) => [about.name, of.metric, T.result(of, model.at), rank(of), of.count])] }),
    T.table({ id: "model", caption: `Results of ${name}`, count: rows.length,
      columns: [{ key: "column", label: "setting", heading: true }, { key: "value", label: "value", number: true }, { key: "interval", label: "95 %", number: true }, { key: "rank", label: "rank", number: true }, { key: "metric", label: "metric" }, { key: "group", label: "group" }, { key: "source", label: "source" }],
      rowAt: (at) => {
        const { about, of } = rows[at], id = of.id[model.at];
        return { cells: [{ text: T.models.link(about.name, settings.get(about.name), "setting") }, T.beside(of, model.at, shown(of, model.at)), spread(of, model.at), `${T.direction(of) ? count(rank(of)) : "–"} of ${count(of.count)}`, of.metric, about.group,
          { text: id ? E("a", { href: T.link("cell", [id]), onclick: (event) => T.drawer(event, id, of.metric) }, "run here") : of.origin[model.at] }] };
      } }));
  }
  async function settingView(state, main, current) {
    const index = await T.index(), name = state.parts.join("/"), place = index.columnOf.get(name);
    if (place === undefined) throw new Error(`There is no setting ${name}`);
    const about = index.columns[place], of = await T.column(place, state.query.get("metric")) || await T.column(place), other = await T.partner(index, about), search = T.selection(index, state.query), pins = new Set(T.pins());
    if (!current()) return;
    const rows = T.models.first(index.models.filter((each) => !Number.isNaN(of.value[each.at]) && (pins.has(each.name) || search.model(each))).sort((a, b) => T.direction(of) * (of.value[b.at] - of.value[a.at]) || a.at - b.at), (each) => each.name), names = T.models.cells(rows.map((each) => each.name)), models = rows.map(({ at }) => at);
    const setting = about.setting === null ? { name: null, metrics: [], samples: false } : index.settings[about.setting], ties = () => T.leaders.ties(index, of, models), among = T.leaders.among(of, models), answer = T.leaders.line(index, among);
    T.chosen.pair = T.chosen.pairOn(index, of);
    let tied = ties();
    const legend = () => T.leaders.legend([tied]).map((said) => `${said}.`).join(""), meaning = E("p", { class: "note", id: "shading" }, legend());
    const links = [...(other ? [E("a", { href: T.link("plot", [], other), id: "plot-with" }, other.x === name ? `Plot ${other.y} against it` : `Plot against ${other.x}`)] : []), ...(setting.samples ? [E("a", { href: T.link("samples", [setting.name]) }, "Samples")] : [])];
    const table = T.table({ id: "setting", caption: `Models on ${name}`, count: rows.length, searched: true,
      columns: [{ key: "place", label: "rank", number: true }, { key: "model", label: "model", heading: true }, { key: "value", label: `${of.metric}${of.percent ? ", %" : of.unit ? `, ${of.unit}` : ""}`, number: true }, { key: "interval", label: "95 %", number: true }, { key: "type", label: "type" }, { key: "cell", label: "evaluation" }],
      rowAt: (at) => {
        const { at: model, name: title, type } = rows[at], id = of.id[model], { class: mark, ...value } = T.beside(of, model, shown(of, model));
        return { pinned: names.pinned(title), cells: [T.leaders.rankText(index, among, model), names.cell(title), { ...value, class: [mark, tied.has(model) && "tied"].filter(Boolean).join(" ") }, spread(of, model), type, { text: id ? E("a", { href: T.link("cell", [id]), onclick: (event) => T.drawer(event, id, of.metric) }, "run here") : of.origin[model] }] };
      } });
    main.replaceChildren(E("h1", {}, T.name(name)), answer, E("p", { class: "note" }, `${about.group}${about.n ? `; ${about.n.toLocaleString("en")} samples` : ""}; ${T.numbers.counted(rows.length, "model")}; ${of.metric}: ${T.directed(of)}. `, ...links.flatMap((each) => [each, " "])),
      E("div", { class: "controls" }, T.models.finder(state.query), setting.metrics.length > 1 ? T.choose("Metric", "metric", setting.metrics, of.metric) : null), ...[T.samples.comparing(rows.filter(({ at }) => of.id[at]).map(({ at, name: model }) => ({ id: of.id[at], model })), state.query)].filter(Boolean),
      T.exports(name, { title: `Results on ${name}`, rows: () => [["model", "model_type", of.metric], ...rows.map((each) => [each.name, each.type, T.result(of, each.at)])], tex: async () => { await T.leaders.load(index, of); return T.results(index, models, [of], [ties()]); } }), table, meaning);
    T.leaders.test(index, [of], current, () => { answer.say(); tied = ties(); meaning.textContent = legend(); table.repaint(); });
  }
  T.view("model", { title: (state) => state.parts.join("/"), render: modelView });
  T.view("setting", { title: (state) => state.parts.join("/"), render: settingView });
})();
