"use strict";
/* Models that are chosen by their checkboxes and kept in the address, the bar that leads to their comparison, and their table side by side. */
(() => {
  const E = T.element, chosen = new Set(), BAR = "chosen", PARTS = 24; // columns that are loaded at once

  /* A bar at the foot of the page while models are chosen. */
  function draw() {
    const names = [...chosen], old = T.at(BAR), compared = names.length === 2 ? `${names[0]} and ${names[1]}` : `${names.length} models`;
    if (!names.length) { if (old) old.remove(); return; }
    const bar = E("div", { id: BAR, role: "region", "aria-label": "Chosen models" }, E("span", {}, names.length === 1 ? "1 model is chosen" : `${names.length} models are chosen`),
      E("button", { type: "button", id: "compare-chosen", disabled: names.length < 2, "aria-label": names.length < 2 ? "Compare; choose another model" : `Compare ${compared}`, onclick: compare }, "Compare"),
      E("button", { type: "button", id: "choose-none", onclick: () => { chosen.clear(); document.querySelectorAll(".choose").forEach((each) => { each.checked = false; }); keep(); } }, "Clear"));
    if (old) old.replaceWith(bar); else T.at("about").before(bar);
  }
  function keep() {
    T.choice([...chosen]);
    draw();
  }
  /* Takes the models that the address names, or writes those that are chosen into one that names none; whether they are others than before. */
  function synced() {
    const named = T.choice(), others = named && (named.length !== chosen.size || !named.every((name) => chosen.has(name)));
    if (others) { chosen.clear(); named.forEach((name) => chosen.add(name)); }
    if (!named && chosen.size) T.choice([...chosen]);
    draw();
    return Boolean(others);
  }
  /* Two with samples of the column that the view is about: these sample by sample; else a table. */
  function compare() {
    const names = [...chosen], pair = names.length === 2 && T.chosen.pair && T.chosen.pair(...names);
    location.hash = pair ? T.link("compare", pair) : T.link("models", [], { models: names.map(T.quoted).join("|") });
  }
  function set(name, on) {
    if (on) chosen.add(name); else chosen.delete(name);
    keep();
    T.announce(`${chosen.size} ${chosen.size === 1 ? "model" : "models"} chosen`);
  }
  /* For two models, their evaluations on a column whose models have stored samples. */
  function pairOn(index, of) {
    const { setting } = index.columns[index.columnOf.get(of.name)] || {}, sampled = setting !== null && setting !== undefined && index.settings[setting].samples;
    return (...names) => { const ids = names.map((name) => of.id[index.modelOf.get(name)?.at]); return sampled && ids.every(Boolean) ? ids : null; };
  }

  const shown = (of, at) => T.numbers.shown(of, of.value[at]);
  async function render(state, main, current) {
    const index = await T.index(), asked = T.words(state.query.get("models"), "|"), models = asked.map((name) => index.modelOf.get(name)).filter(Boolean), rows = [];
    if (models.length < 2) throw new Error("Choose two models or more, by the checkboxes before their names");
    for (let first = 0; first < index.columns.length; first += PARTS) {
      const places = index.columns.map((_, at) => at).slice(first, first + PARTS), loaded = await Promise.all(places.map((place) => T.column(place)));
      if (!current()) return;
      loaded.forEach((of) => { const count = models.filter(({ at }) => !Number.isNaN(of.value[at])).length; if (count) rows.push({ of, count, about: index.columns[index.columnOf.get(of.name)] }); });
    }
    rows.sort((a, b) => b.count - a.count || (a.about.first ?? Infinity) - (b.about.first ?? Infinity));
    const short = T.models.shortened(asked), settings = T.models.shortened(rows.map(({ of }) => of.name)), two = models.length === 2, [a, b] = models, difference = (of) => of.value[a.at] - of.value[b.at];
    const points = (of) => (of.percent ? T.points(difference(of)) : T.numbers.bare(difference(of), of.unit, true));
    const samples = ({ of }) => { const ids = pairOn(index, of)(a.name, b.name); return ids ? E("a", { href: T.link("compare", ids) }, "compare samples") : ""; };
    const paired = two && rows.some(({ of }) => pairOn(index, of)(a.name, b.name)), head = [{ key: "column", label: "setting", heading: true }, { key: "metric", label: "metric" }, ...models.map(({ name }, at) => ({ key: `model-${at}`, label: short.get(name), title: name, number: true })), ...(two ? [{ key: "difference", label: "difference", number: true }] : []), ...(paired ? [{ key: "samples", label: "on the same samples" }] : [])];
    main.replaceChildren(E("h1", {}, `${models.length} models`), E("ul", { class: "legend" }, ...models.map(({ name, style }) => E("li", {}, T.mark(style), T.models.link(name, name)))),
      E("p", { class: "note" }, two ? `The difference is the first minus the second${paired ? "; it is tested where “compare samples” leads" : ", and not tested: no samples of both are stored"}.` : "Settings that most of them have come first."),
      T.exports("models", { title: `Results of ${models.length} models`, rows: () => [["setting", "metric", ...models.map(({ name }) => name)], ...rows.map(({ of }) => [of.name, of.metric, ...models.map(({ at }) => T.result(of, at))])] }),
      T.table({ id: "models", caption: "Results of the chosen models", count: rows.length, columns: head,
        rowAt: (at) => { const { of } = rows[at]; return { cells: [{ text: T.models.link(of.name, settings.get(of.name), "setting") }, of.metric, ...models.map((model) => T.beside(of, model.at, shown(of, model.at))), ...(two ? [points(of)] : []), ...(paired ? [{ text: samples(rows[at]) }] : [])] }; } }));
  }
  T.chosen = { has: (name) => chosen.has(name), set, synced, pairOn, pair: null };
  T.view("models", { title: () => "Models", render });
})();
