"use strict";
/* Models × columns: search, facets, metrics, averages over the columns shown, intervals and ties. */
(() => {
  const E = T.element, AVERAGE = "average", MEAN_RANK = "mean rank", { ANY } = T.columns, NARROW = 640;
  let folded = null; // whether the controls are open, once toggled

  const LABELS = { pretraining: "training data" };
  function facets(index, query) {
    return T.KEYS.map((key) => {
      const counts = new Map();
      for (const each of index.models) counts.set(each[key], (counts.get(each[key]) || 0) + 1);
      if (counts.size < 2) return null;
      const options = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 60).map(([value, count]) => ({ value, text: `${value} (${count.toLocaleString("en")})` }));
      return T.choose(LABELS[key] || key, key, [{ value: "", text: "all" }, ...options], query.get(key) || "");
    });
  }
  const compared = (a, b, up) => (Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : up ? a - b : b - a);

  async function render(state, main, current) {
    const index = await T.index(), { query } = state, search = T.selection(index, query);
    if (!index.models.length) return main.replaceChildren(E("h1", {}, "There are no results yet"), E("p", {}, "Run some with testbed run, or import a table with testbed import FILE."));
    const metric = query.get("metric") || "", task = T.columns.taskOf(index, query, search), { places, missed } = T.columns.chosen(index, query, search, task);
    if (places.length > 24) main.replaceChildren(E("p", { class: "note" }, `Loading ${places.length} columns …`));
    const every = (await Promise.all(places.map((at) => T.column(at, metric || null)))).filter(Boolean);
    if (!current()) return null;
    const pinned = new Set(T.pins());
    let rows = index.models.filter((each) => pinned.has(each.name) || search.model(each)).map((each) => each.at);
    if (every.length) rows = rows.filter((at) => (query.has("pin") && pinned.has(index.models[at].name)) || every.some((of) => !Number.isNaN(of.value[at])));
    const loaded = fullFirst(every.filter((of) => rows.some((at) => !Number.isNaN(of.value[at]))), rows, query.get("cols") || search.hasColumns), means = averages(query, loaded.map((of) => T.leaders.among(of, rows)), index.models.length);
    const { key, up } = sorting(query, loaded, means), first = loaded.find((of) => of.name === key) || loaded.find((of) => T.direction(of)), by = means[key] || loaded.find((of) => of.name === key);
    if (key === "model") { if (!up) rows.reverse(); }
    else if (by) rows.sort((a, b) => compared(by.value[a], by.value[b], up) || a - b);
    rows = T.models.first(rows, (at) => index.models[at].name);
    const names = T.models.cells(rows.map((at) => index.models[at].name)), menu = T.columns.menu(loaded.map((of) => of.name), query.get("task"), { key, up });
    T.chosen.pair = first ? T.chosen.pairOn(index, first) : null;
    const shown = { index, rows, loaded, means, names, menu, ranked: first && T.leaders.among(first, rows), intervals: query.get("ci") === "1", trained: rows.some((at) => index.models[at].pretraining !== index.models[rows[0]].pretraining) }, shaded = query.get("ties") !== "0";
    const ties = () => loaded.map((of) => T.leaders.ties(index, of, rows));
    shown.tied = shaded ? ties() : [];
    const table = T.table({ id: "board", caption: `${T.numbers.counted(rows.length, "model")} × ${T.numbers.counted(loaded.length, "column")}`, columns: heads(shown), count: rows.length, searched: true, onmove: menu.move, sort: { key, up }, onsort: (name) => sort(name, key, up, loaded), rowAt: (place) => cells(shown, rows[place]) });
    const answer = T.leaders.line(index, shown.ranked), told = () => note(shown, key, up, places.length - loaded.length), noted = E("p", { class: "note", id: "about-table", "aria-live": "polite" }, told());
    main.replaceChildren(E("h1", {}, "Leaderboard"), answer, ...[T.columns.tabs(index, task)].filter(Boolean), controls(index, query, metric, task, places), ...problems(search, missed),
      table, noted, T.exports("results", { rows: () => texts(shown), tex: async () => { await Promise.all(loaded.map((of) => T.leaders.load(index, of))); return T.results(index, rows, loaded, ties()); } }));
    T.leaders.test(index, [first, ...(shaded ? loaded : [])].filter(Boolean), current, (of) => {
      answer.say();
      if (shaded) shown.tied[loaded.indexOf(of)] = T.leaders.ties(index, of, rows);
      noted.textContent = told();
      table.repaint();
    });
    return null;
  }
  const SPARSE = 0.25;
  /* Columns that few of the models have after those that most have, unless the columns were chosen. */
  function fullFirst(columns, rows, asked) {
    if (asked) return columns;
    const filled = new Map(columns.map((of) => [of, rows.reduce((sum, at) => sum + !Number.isNaN(of.value[at]), 0)])), most = Math.max(0, ...filled.values());
    return [...columns.filter((of) => filled.get(of) >= SPARSE * most), ...columns.filter((of) => filled.get(of) < SPARSE * most)];
  }
  /* The mean of the columns with rates where higher is better, and the mean rank over those with a direction. */
  function averages(query, loaded, number) {
    const alike = loaded.filter((of) => of.percent && T.direction(of) > 0), directed = loaded.filter((of) => T.direction(of)), found = {};
    if (query.get("mean") !== "1") return found;
    if (alike.length > 1) found[AVERAGE] = T.leaders.mean(alike.map((of) => of.value), number);
    if (directed.length > 1) found[MEAN_RANK] = T.leaders.mean(directed.map((of) => T.leaders.ranks(of)), number);
    return found;
  }
  function sorting(query, loaded, means) {
    const given = query.get("sort"), known = given === "model" || given in means || loaded.some((of) => of.name === given);
    const key = known ? given : loaded.length && T.direction(loaded[0]) ? loaded[0].name : "model";
    return { key, up: query.get("up") ? query.get("up") === "1" : rising(key, loaded) };
  }
  /* Whether the first click sorts ascending: names, and metrics where lower is better. */
  const rising = (key, loaded) => key === "model" || key === MEAN_RANK || loaded.some((of) => of.name === key && T.direction(of) < 0);
  function sort(name, key, up, loaded) {
    const next = name === key ? !up : rising(name, loaded);
    T.change({ sort: name, up: next ? "1" : "0" });
    T.announce(`sorted by ${name}, ${next ? "ascending" : "descending"}`);
  }
  function controls(index, query, metric, task, places) {
    const check = (label, key, on, off) => E("label", { class: "check" }, E("input", { type: "checkbox", id: `check-${key}`, checked: (query.get(key) ?? off) === on, onchange: (event) => T.change({ [key]: event.target.checked === (on === "1") ? "1" : "0" }) }), label);
    const made = E("details", { class: "fold", open: folded === null ? innerWidth > NARROW : !folded, ontoggle: () => { folded = !made.open; } }, E("summary", { id: "fold" }, "Search, columns and filters"),
      E("div", { class: "controls" }, T.box("Models and columns", "find", query.get("find"), { placeholder: "resnet* type:standard on:imagenet-*", size: 34 }), T.columns.picker(index, query, task, places),
        T.choose("Metric", "metric", [{ value: "", text: "main metric of each setting" }, ...index.metrics], metric), ...facets(index, query),
        check("average and mean rank", "mean", "1", "0"), check("95 % intervals", "ci", "1", "0"), check("shade ties with the best", "ties", "1", "1"),
        E("button", { type: "button", id: "clear", onclick: () => { location.hash = T.link("leaderboard", [], Object.fromEntries(["find", "cols", "widths", "task", "metric", ...T.KEYS].map((each) => [each, null]))); } }, "Clear")));
    return made;
  }
  /* The parts of the search and of the list of columns that were not understood. */
  function problems(search, missed) {
    const said = [...search.missed.map((word) => `no model and no column has “${word}” in its name`), ...missed.map((word) => `no column is named “${word}” or matches it`)];
    return said.length ? [E("p", { class: "problem", role: "alert" }, `Not understood: ${said.join("; ")}.`)] : [];
  }
  function note({ rows, loaded, means, tied, index }, key, up, empty) {
    const said = [`${T.numbers.counted(rows.length, "model")} × ${T.numbers.counted(loaded.length, "column")}, ${key === "model" ? `sorted by name, ${up ? "from A" : "from Z"}` : `sorted by ${key}, ${up ? "the lowest" : "the highest"} first`}`];
    if (empty > 0) said.push(`${empty} ${empty === 1 ? "column" : "columns"} without a value of these models left out`);
    const unknown = loaded.filter((of) => !T.direction(of)), isPublished = (origin) => origin.startsWith("published"), marked = (key, test) => loaded.some((of) => Object.entries(of[key]).some(([at, each]) => test(each) && rows.includes(Number(at))));
    if (unknown.length) said.push(`neither ranked nor shaded: ${unknown.map((of) => `${of.name} (${of.metric}: ${T.directed(of)})`).join(", ")}`);
    said.push(...T.leaders.legend(tied));
    if (marked("published", (each) => each.differs)) said.push("* differs from the published value (point at it)");
    if (loaded.some((of) => of.origins.some(isPublished) && rows.some((at) => isPublished(of.origin[at])))) said.push("† published, not measured here");
    if (marked("unread", () => true)) said.push("‡ some samples could not be read (listed on the number's page)");
    const average = means[AVERAGE];
    if (average && average.of < loaded.length) said.push(`the average covers the ${average.of} columns with rates where higher is better`);
    if (average) said.push(average.lacking ? `${average.lacking} models have missing columns and no average` : "all models have all of the columns");
    return `${said.join("; ")}.`;
  }
  const label = (of) => (of.metric === "top1" || of.name.endsWith(`_${of.metric}`) ? of.name : `${of.name} (${of.metric})`);
  function heads({ loaded, means, menu, trained, ranked }) {
    const short = T.models.shortened(loaded.map(label)), shown = (of) => short.get(label(of)), about = (of) => (shown(of) === label(of) ? T.directed(of) : `${label(of)}: ${T.directed(of)}`);
    return [{ key: "model", label: "model", heading: true, sortable: true },
      ...(ranked ? [{ key: "rank", label: "rank", number: true, title: `on ${ranked.name}, with its 95 % interval where the models are ranked on the same samples` }] : []),
      ...Object.keys(means).map((key) => ({ key, label: key, number: true, sortable: true })),
      ...loaded.map((of) => ({ key: of.name, label: shown(of), number: true, sortable: true, menu: menu.of, width: menu.width(of.name), onsize: (width) => menu.resize(of.name, width), title: about(of) })),
      ...(trained ? [{ key: "pretraining", label: LABELS.pretraining }] : [])];
  }
  function number(of, at, intervals) {
    if (Number.isNaN(of.value[at])) return "–";
    const shown = (value) => T.numbers.shown(of, value), text = shown(of.value[at]);
    const [low, high] = intervals ? T.interval(of, at) : [NaN, NaN];
    return high > low ? `${text} [${shown(low)}, ${shown(high)}]` : text;
  }
  function cells({ index, loaded, means, names, tied, intervals, trained, ranked }, at) {
    const { name, pretraining } = index.models[at];
    const own = loaded.map((of, place) => {
      const { text, title, class: mark } = T.beside(of, at, number(of, at, intervals)), id = of.id[at];
      return { title, text: id ? E("a", { href: T.link("cell", [id]), onclick: (event) => T.drawer(event, id, of.metric) }, text) : text, class: [mark, tied[place] && tied[place].has(at) && "tied"].filter(Boolean).join(" ") };
    });
    return { pinned: names.pinned(name), cells: [names.cell(name), ...(ranked ? [T.leaders.rankText(index, ranked, at)] : []),
      ...Object.values(means).map(({ value }) => T.percent(value[at])), ...own, ...(trained ? [pretraining] : [])] };
  }
  function texts({ index, rows, loaded, means, ranked }) {
    const mean = (key, value) => (key === MEAN_RANK ? T.measured(value, "rank") : T.measured(value / 100, T.numbers.FRACTION));
    return [["model", "model_type", ...(ranked ? ["rank"] : []), ...Object.keys(means), ...loaded.map((of) => label(of))],
      ...rows.map((at) => [index.models[at].name, index.models[at].type, ...(ranked ? [T.leaders.rankText(index, ranked, at)] : []), ...Object.entries(means).map(([key, { value }]) => mean(key, value[at])), ...loaded.map((of) => T.result(of, at))])];
  }
  T.label = label;
  T.view("leaderboard", { title: () => "Leaderboard", nav: "Leaderboard", render });
})();
