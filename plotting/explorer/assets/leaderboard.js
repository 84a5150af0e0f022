"use strict";
/* Models × columns: search, facets, metrics, averages over the columns shown, intervals and ties. */
(() => {
  const E = T.element, USUAL = 12, AVERAGE = "average", ANY = "all";

  const listed = (query) => (query.get("cols") || "").split("|").filter(Boolean);
  /* The task whose columns are shown: that of the address; without one the first, unless columns are named. */
  function taskOf(index, query, search) {
    if (query.get("task")) return query.get("task");
    return listed(query).length || search.hasColumns ? ANY : index.tasks[0];
  }
  /* The columns that the address chooses: those that on: or group: of the search match, or that a list names; else the usual ones of the task. */
  function chosen({ columns }, query, search, task) {
    const names = listed(query), every = columns.map((_, at) => at).filter((at) => task === ANY || columns[at].task === task);
    if (names.length) {
      const known = new Set(columns.map((each) => each.name)), tests = names.map((each) => (known.has(each) ? (column) => column.name === each : T.parse(`on:${each}`).column));
      return every.filter((at) => tests.some((test) => test(columns[at])) && search.column(columns[at]));
    }
    const found = every.filter((at) => search.column(columns[at]));
    return search.hasColumns ? found : T.usual(columns, found, USUAL).sort((a, b) => a - b);
  }
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
  /* The mean over columns, for models that have all of them. */
  function average(parts, number) {
    const value = new Float64Array(number).fill(NaN);
    let lacking = 0;
    for (let at = 0; at < number; at += 1) {
      const own = parts.map((each) => each.value[at]), there = own.filter((each) => !Number.isNaN(each)).length;
      if (there === own.length) value[at] = own.reduce((sum, each) => sum + each, 0) / own.length;
      else if (there) lacking += 1;
    }
    return { value, lacking };
  }
  /* Which models do not differ from the best one by the 95 % interval of the difference of two independent results. */
  function ties(of, models) {
    const error = (at) => (of.error[at] >= 0 ? of.error[at] : of.rate && of.n[at] > 0 ? Math.sqrt(of.value[at] * (100 - of.value[at]) / of.n[at]) : NaN);
    const way = T.direction(of);
    let best = -1;
    for (const at of way ? models : []) if (!Number.isNaN(of.value[at]) && (best < 0 || way * of.value[at] > way * of.value[best])) best = at;
    if (best < 0) return new Set();
    return new Set(models.filter((at) => at === best || Math.abs(of.value[at] - of.value[best]) <= 1.959963985 * Math.hypot(error(at), error(best))));
  }
  const compared = (a, b, up) => (Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : up ? a - b : b - a);

  async function render(state, main, current) {
    const index = await T.index(), { query } = state, search = T.parse(query.get("find"));
    if (!index.models.length) return main.replaceChildren(E("h1", {}, "There are no results yet"), E("p", {}, "Run some with testbed run, or import a table with testbed import FILE."));
    const metric = query.get("metric") || "", task = taskOf(index, query, search), places = chosen(index, query, search, task);
    if (places.length > 24) main.replaceChildren(E("p", { class: "note" }, `Loading ${places.length} columns …`));
    const loaded = (await Promise.all(places.map(async (at) => ({ at, of: await T.column(at, metric || null) })))).filter(({ of }) => of);
    if (!current()) return null;
    const pinned = new Set(T.pins()), wanted = T.KEYS.map((key) => [key, query.get(key)]).filter(([, value]) => value);
    let rows = index.models.filter((each) => pinned.has(each.name) || (search.model(each) && wanted.every(([key, value]) => each[key] === value))).map((each) => each.at);
    if (loaded.length) rows = rows.filter((at) => pinned.has(index.models[at].name) || loaded.some(({ of }) => !Number.isNaN(of.value[at])));
    const alike = loaded.filter(({ of }) => of.percent && T.direction(of) > 0);
    const mean = query.get("mean") === "1" && alike.length > 1 ? { ...average(alike.map(({ of }) => of), index.models.length), of: alike.length } : null;
    const { key, up } = sorting(query, loaded, mean), by = key === AVERAGE ? mean.value : (loaded.find(({ of }) => of.name === key) || {}).of;
    const value = by && (by.value || by);
    if (key === "model") { if (up) rows.reverse(); }
    else if (value) rows.sort((a, b) => compared(value[a], value[b], up) || a - b);
    rows = [...rows.filter((at) => pinned.has(index.models[at].name)), ...rows.filter((at) => !pinned.has(index.models[at].name))];
    const tied = query.get("ties") === "0" ? [] : loaded.map(({ of }) => ties(of, rows)), intervals = query.get("ci") === "1";
    const trained = new Set(rows.map((at) => index.models[at].pretraining)).size > 1;
    main.replaceChildren(E("h1", {}, "Leaderboard"), controls(index, query, metric, task), note(rows, loaded, mean, key, up, tied.length > 0),
      T.exports("results", { rows: () => texts(index, rows, loaded, mean) }),
      T.table({ id: "board", caption: `${rows.length} models × ${loaded.length} columns`, columns: heads(loaded, mean, trained), count: rows.length, sort: { key, up }, onsort: (name) => sort(name, key, up, loaded),
        rowAt: (place) => cells(index, rows[place], loaded, mean, tied, intervals, pinned, trained) }));
    return null;
  }
  function sorting(query, loaded, mean) {
    const given = query.get("sort"), known = given === "model" || (given === AVERAGE && mean) || loaded.some(({ of }) => of.name === given);
    const key = known ? given : loaded.length && T.direction(loaded[0].of) ? loaded[0].of.name : "model", of = (loaded.find((each) => each.of.name === key) || {}).of;
    return { key, up: query.get("up") ? query.get("up") === "1" : key === "model" ? false : Boolean(of && T.direction(of) < 0) };
  }
  function sort(name, key, up, loaded) {
    const of = (loaded.find((each) => each.of.name === name) || {}).of, first = Boolean(of && T.direction(of) < 0), next = name === key ? !up : first;
    T.change({ sort: name, up: next ? "1" : "0" });
    T.announce(`sorted by ${name}, ${next ? "ascending" : "descending"}`);
  }
  function controls(index, query, metric, task) {
    const number = task === ANY ? index.columns.length : index.columns.filter((each) => each.task === task).length;
    const check = (label, key, on, off) => E("label", { class: "check" }, E("input", { type: "checkbox", id: `check-${key}`, checked: (query.get(key) ?? off) === on, onchange: (event) => T.change({ [key]: event.target.checked === (on === "1") ? "1" : "0" }) }), label);
    return E("div", { class: "controls" }, index.tasks.length > 1 ? T.choose("Task", "task", [...index.tasks, { value: ANY, text: "all tasks" }], task, { cols: null, sort: null, up: null }) : null,
      T.box("Models and columns", "find", query.get("find"), { placeholder: "resnet* type:standard on:imagenet-*", size: 30 }),
      T.box("Columns, between |", "cols", query.get("cols"), { placeholder: "val|imagenet-r|avg_*", size: 22 }),
      T.choose("Metric", "metric", [{ value: "", text: "main metric of each setting" }, ...index.metrics], metric), ...facets(index, query),
      check("average of the columns", "mean", "1", "0"), check("95 % intervals", "ci", "1", "0"), check("shade ties with the best", "ties", "1", "1"),
      E("button", { type: "button", id: "all-columns", onclick: () => T.change({ cols: "*", task }) }, `All ${number} columns`),
      E("button", { type: "button", id: "clear", onclick: () => { location.hash = T.link("leaderboard", [], {}); } }, "Clear"));
  }
  function note(rows, loaded, mean, key, up, tied) {
    const said = [`${rows.length.toLocaleString("en")} models × ${loaded.length} columns, ${key === "model" ? "sorted by name" : `sorted by ${key}, ${up ? "the lowest" : "the highest"} first`}`];
    const unknown = loaded.filter(({ of }) => !T.direction(of));
    if (unknown.length) said.push(`neither ranked nor shaded: ${unknown.map(({ of }) => `${of.name} (${of.metric}: ${T.directed(of)})`).join(", ")}`);
    if (tied) said.push("shaded: does not differ from the best of its column by more than chance (95 %, as if the models had seen different samples; Compare has the paired test)");
    if (loaded.some(({ of }) => rows.some((at) => (of.published[at] || {}).differs))) said.push("* differs from what is published, which pointing at it shows");
    if (loaded.some(({ of }) => rows.some((at) => of.origin[at].startsWith("published") && !Number.isNaN(of.value[at])))) said.push("† published, not measured here");
    if (loaded.some(({ of }) => rows.some((at) => of.unread[at]))) said.push("‡ some samples could not be read, which the number's page names");
    if (mean && mean.of < loaded.length) said.push(`the average is of the ${mean.of} columns that are rates of which more is better`);
    if (mean) said.push(mean.lacking ? `${mean.lacking} models lack some of the columns and have no average` : "all models have all of the columns");
    return E("p", { class: "note", "aria-live": "polite" }, `${said.join("; ")}.`);
  }
  const label = (of) => (of.metric === "top1" || of.name.endsWith(`_${of.metric}`) ? of.name : `${of.name} (${of.metric})`);
  function heads(loaded, mean, trained) {
    return [{ key: "model", label: "model", heading: true, sortable: true },
      ...(mean ? [{ key: AVERAGE, label: "average", number: true, sortable: true }] : []),
      ...loaded.map(({ of }) => ({ key: of.name, label: label(of), number: true, sortable: true, href: T.link("setting", [of.name]), title: T.directed(of) })),
      ...(trained ? [{ key: "pretraining", label: LABELS.pretraining }] : [])];
  }
  function number(of, at, intervals) {
    if (Number.isNaN(of.value[at])) return "–";
    const text = of.percent ? T.percent(of.value[at]) : String(Number(of.value[at].toPrecision(4)));
    const [low, high] = intervals ? T.interval(of, at) : [NaN, NaN];
    return high > low ? `${text} [${Number(low.toPrecision(4))}, ${Number(high.toPrecision(4))}]` : text;
  }
  function cells(index, at, loaded, mean, tied, intervals, pinned, trained) {
    const { name, pretraining } = index.models[at], on = pinned.has(name);
    const toggle = E("button", { type: "button", class: "pin", "aria-pressed": on ? "true" : "false", "aria-label": `pin ${name}`, title: "Pinned models stay on top in all views", onclick: () => T.pin(name) }, on ? "★" : "☆");
    const own = loaded.map(({ of }, place) => {
      const { text, title, class: mark } = T.beside(of, at, number(of, at, intervals)), id = of.id[at];
      return { title, text: id ? E("a", { href: T.link("cell", [id]), onclick: (event) => T.drawer(event, id, of.metric) }, text) : text, class: [mark, tied[place] && tied[place].has(at) && "tied"].filter(Boolean).join(" ") };
    });
    return { pinned: on, cells: [{ text: E("span", { class: "named" }, toggle, E("a", { href: T.link("model", [name]) }, T.name(name))) }, ...(mean ? [T.percent(mean.value[at])] : []), ...own, ...(trained ? [pretraining] : [])] };
  }
  function texts(index, rows, loaded, mean) {
    const plain = (value) => (Number.isNaN(value) ? "" : String(Number(value.toPrecision(8))));
    return [["model", "model_type", ...(mean ? ["average"] : []), ...loaded.map(({ of }) => label(of))],
      ...rows.map((at) => [index.models[at].name, index.models[at].type, ...(mean ? [plain(mean.value[at])] : []), ...loaded.map(({ of }) => plain(of.value[at]))])];
  }
  T.label = label;
  T.view("leaderboard", { title: () => "Leaderboard", nav: "Leaderboard", render });
})();
