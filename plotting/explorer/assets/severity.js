"use strict";
/* Results by the severity of corruptions: a row for each model, a column for each severity, and the curves. */
(() => {
  const E = T.element, NAMED = /^(.+)\.(\d)(_in-memory|_on-disk|)$/, SHOWN = 8;
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B07800", "#2F83B5", "#8C6D31", "#555555"];

  function corruptions(index) {
    const found = new Map();
    index.columns.forEach((each, at) => {
      const [, name, level, form] = NAMED.exec(each.name) || [];
      if (!name || each.setting === null) return;
      if (!found.has(name + form)) found.set(name + form, new Map());
      found.get(name + form).set(Number(level), at);
    });
    return new Map([...found].filter(([, on]) => on.size > 1).sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  async function render(state, main, current) {
    const index = await T.index(), all = corruptions(index), { query } = state;
    if (!all.size) throw new Error("No corruption has results of two severities");
    const name = all.has(query.get("of")) ? query.get("of") : [...all.keys()][0], levels = [...all.get(name)].sort(([a], [b]) => a - b);
    const loaded = await Promise.all(levels.map(async ([level, at]) => [level, await T.column(at)]));
    if (!current()) return;
    const pinned = new Set(T.pins()), asked = (query.get("models") || "").split("|").filter(Boolean), search = T.parse(query.get("find"));
    const mean = (at) => loaded.reduce((sum, [, of]) => sum + of.value[at], 0) / loaded.length;
    const rows = index.models.filter((each) => !Number.isNaN(mean(each.at)) && (asked.length ? asked.includes(each.name) || pinned.has(each.name) : search.model(each) || pinned.has(each.name))).sort((a, b) => Number(pinned.has(b.name)) - Number(pinned.has(a.name)) || T.direction(loaded[0][1]) * (mean(b.at) - mean(a.at)) || a.at - b.at);
    const picture = svg(rows.slice(0, SHOWN), loaded), [, of] = loaded[0];
    const holder = E("div", { class: "curves" });
    holder.append(...picture.nodes);
    main.replaceChildren(E("h1", {}, T.name(name)), E("div", { class: "controls" }, T.choose("Corruption", "of", [...all.keys()], name), T.box("Models", "find", query.get("find"), { placeholder: "resnet*" }), asked.length ? E("button", { type: "button", id: "all-models", onclick: () => T.change({ models: null }) }, "All models") : null),
      E("p", { class: "note" }, `${rows.length} models; curves of ${T.direction(of) ? "the best" : "the first"} ${Math.min(SHOWN, rows.length)}, pinned ones first, with intervals of 95 %.`), holder,
      T.exports(name, { svg: () => picture.text, rows: () => [["model", ...levels.map(([level]) => `severity ${level}`)], ...rows.map((each) => [each.name, ...loaded.map(([, one]) => one.value[each.at])])] }),
      T.table({ id: "severity", caption: `${name}, by severity`, count: rows.length, columns: [{ key: "model", label: "model", heading: true }, { key: "mean", label: "mean", number: true }, ...levels.map(([level]) => ({ key: String(level), label: `severity ${level}`, number: true }))],
        rowAt: (at) => ({ pinned: pinned.has(rows[at].name), cells: [{ text: E("a", { href: T.link("model", [rows[at].name]) }, T.name(rows[at].name)) }, of.percent ? T.percent(mean(rows[at].at)) : mean(rows[at].at).toPrecision(4), ...loaded.map(([, one]) => (one.percent ? T.percent(one.value[rows[at].at]) : one.value[rows[at].at].toPrecision(4)))] }) }));
  }
  /* Lines with bars; as nodes of the page, and as text for a file. */
  function svg(rows, loaded) {
    const width = 720, height = 330, left = 50, bottom = 40, right = 200, levels = loaded.map(([level]) => level), values = rows.flatMap((each) => loaded.flatMap(([, of]) => [of.value[each.at], ...T.interval(of, each.at)])).filter((each) => !Number.isNaN(each));
    const low = Math.min(...values), high = Math.max(...values), edge = (high - low) * 0.05 || 1, x = (level) => left + (level - levels[0]) / (levels[levels.length - 1] - levels[0]) * (width - left - right), y = (value) => 10 + (high + edge - value) / (high - low + 2 * edge) * (height - bottom - 10);
    const root = E("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Curves by severity; the table below has the numbers", xmlns: "http://www.w3.org/2000/svg" });
    for (let step = 0; step <= 4; step += 1) { const v = low + (high - low) * step / 4; root.append(E("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "grid", stroke: "#d9d9de" }), E("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end", "font-size": 12 }, v.toPrecision(3))); }
    for (const level of levels) root.append(E("text", { x: x(level), y: height - 20, "text-anchor": "middle", "font-size": 12 }, String(level)));
    root.append(E("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle", "font-size": 12 }, "severity"));
    rows.forEach((each, at) => {
      const colour = COLOURS[at], points = loaded.map(([level, of]) => `${x(level).toFixed(1)},${y(of.value[each.at]).toFixed(1)}`).join(" ");
      for (const [level, of] of loaded) { const [a, b] = T.interval(of, each.at); if (b > a) root.append(E("line", { x1: x(level), x2: x(level), y1: y(a), y2: y(b), stroke: colour, opacity: 0.5 })); }
      root.append(E("polyline", { points, fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": at > 3 ? "6 3" : null }), E("text", { x: width - right + 12, y: 20 + 18 * at, "font-size": 12 }, each.name.length > 28 ? `${each.name.slice(0, 27)}…` : each.name), E("line", { x1: width - right - 8, x2: width - right + 8, y1: 16 + 18 * at, y2: 16 + 18 * at, stroke: colour, "stroke-width": 3, "stroke-dasharray": at > 3 ? "6 3" : null }));
    });
    return { nodes: [root], text: new XMLSerializer().serializeToString(root) };
  }
  T.view("severity", { title: () => "Severity", nav: "Severity", render });
})();
