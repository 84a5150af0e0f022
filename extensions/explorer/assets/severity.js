"use strict";
/* Results by the severity of corruptions: a row for each model, a column for each severity, and the curves. */
(() => {
  const E = T.element, NAMED = /^(.+)\.(\d)(_in-memory|_on-disk|)$/, SHOWN = 8, NARROW = 300;
  const SIZE = { height: 420, left: 66, right: 220, top: 12, bottom: 48, title: 34, sheet: 900 }, LINE = 17, DASHES = [null, "7 3", "2 3", "7 3 2 3"], CAP = 4;

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
  /* The corruption to begin with: the first that models were measured on here, or that most models have. */
  function usual(index, all) {
    const most = (key, on) => Math.min(...[...on.values()].map((at) => index.columns[at][key])), own = [...all].filter(([, on]) => most("own", on));
    return (own.length ? own : [...all]).reduce((best, each) => (most("models", each[1]) > most("models", best[1]) ? each : best))[0];
  }
  async function render(state, main, current) {
    const index = await T.index(), all = corruptions(index), { query } = state;
    if (!all.size) throw new Error("No corruption has results of two severities");
    const name = all.has(query.get("of")) ? query.get("of") : usual(index, all), levels = [...all.get(name)].sort(([a], [b]) => a - b);
    const first = index.columns[levels[0][1]], cleanName = (await T.load("cleans"))[index.settings[first.setting].name], clean = index.columnOf.get(cleanName);
    if (clean !== undefined && index.columns[clean].metric === first.metric) levels.unshift([0, clean]);
    const loaded = await Promise.all(levels.map(async ([level, at]) => [level, await T.column(at)]));
    if (!current()) return;
    const pinned = new Set(T.pins()), asked = T.words(query.get("models"), "|"), search = T.parse(query.get("find"));
    const corrupted = loaded.filter(([level]) => level), mean = (at) => corrupted.reduce((sum, [, of]) => sum + of.value[at], 0) / corrupted.length;
    const rows = index.models.filter((each) => !Number.isNaN(mean(each.at)) && (asked.length ? asked.includes(each.name) || pinned.has(each.name) : search.model(each) || pinned.has(each.name))).sort((a, b) => Number(pinned.has(b.name)) - Number(pinned.has(a.name)) || T.direction(corrupted[0][1]) * (mean(b.at) - mean(a.at)) || a.at - b.at);
    const [, of] = corrupted[0], names = T.models.shortened(rows.map((each) => each.name)), drawn = (width, title) => curves(coloured(index, rows.slice(0, SHOWN)), loaded, width, title), holder = E("div", { class: "curves" }, drawn(Math.max(main.clientWidth - 32, 300), null));
    main.replaceChildren(E("h1", {}, T.name(name)), E("div", { class: "controls" }, T.choose("Corruption", "of", [...all.keys()], name), T.box("Models", "find", query.get("find"), { placeholder: "resnet*" }), asked.length ? E("button", { type: "button", id: "all-models", onclick: () => T.change({ models: null }) }, "All models") : null),
      E("p", { class: "note" }, `${T.numbers.counted(rows.length, "model")}; curves of ${T.direction(of) ? "the best" : "the first"} ${Math.min(SHOWN, rows.length)}, pinned ones first, with intervals of 95 %. ${levels[0][0] ? "The clean setting has no results here." : `Severity 0: ${cleanName}, which is not in the mean.`}`), holder,
      T.exports(name, { svg: () => new XMLSerializer().serializeToString(drawn(SIZE.sheet, name)), title: `${name}, by severity`, best: { index, models: rows.map(({ at }) => at), columns: loaded.map(([, one]) => one) }, rows: (cell = T.result) => [["model", "mean", ...levels.map(([level]) => severityName(level))], ...rows.map((each) => [each.name, T.measured(of.percent ? mean(each.at) / 100 : mean(each.at), of.unit), ...loaded.map(([, one]) => cell(one, each.at))])] }),
      T.table({ id: "severity", caption: `${name}, by severity`, count: rows.length, columns: [{ key: "model", label: "model", heading: true }, { key: "mean", label: "mean", number: true }, ...levels.map(([level]) => ({ key: String(level), label: severityName(level), number: true }))],
        rowAt: (at) => ({ pinned: pinned.has(rows[at].name), cells: [{ text: T.models.link(rows[at].name, names.get(rows[at].name)) }, T.numbers.shown(of, mean(rows[at].at)), ...loaded.map(([, one]) => T.numbers.shown(one, one.value[rows[at].at]))] }) }));
  }
  const severityName = (level) => (level ? `severity ${level}` : "clean");
  /* A colour for each curve: the model's own, or, if a curve before it has that, one that no other curve has. */
  function coloured(index, rows) {
    const palette = index.colours.slice(0, -1), taken = new Set(), own = rows.map(({ style }) => { const free = palette.includes(style.colour) && !taken.has(style.colour); if (free) taken.add(style.colour); return free; });
    const left = palette.filter((each) => !taken.has(each));
    return rows.map((each, at) => ({ ...each, style: own[at] ? each.style : { ...each.style, colour: left.shift() } }));
  }
  /* Places that are a line apart at least, near those that are wanted. */
  function apart(wanted, least) {
    const order = wanted.map((_, at) => at).sort((a, b) => wanted[a] - wanted[b]), found = [...wanted];
    order.forEach((at, place) => { found[at] = Math.max(least, wanted[at], place ? found[order[place - 1]] + LINE : least); });
    return found;
  }
  /* Lines with symbols and bars in the models' colours, each with its name at its end; dashes distinguish lines besides colours. */
  function curves(rows, loaded, width, title) {
    const right = Math.min(Math.max(...rows.map((each) => 34 + 7.6 * each.name.length), 120), Math.max(SIZE.right, width * 0.3), width * 0.4), { left } = SIZE, top = SIZE.top + (title ? SIZE.title : 0), height = SIZE.height + top, bottom = height - SIZE.bottom, end = width - right, [, first] = loaded[0];
    const levels = loaded.map(([level]) => level), values = rows.flatMap((each) => loaded.flatMap(([, of]) => [of.value[each.at], ...T.interval(of, each.at)])).filter((each) => !Number.isNaN(each));
    const low = Math.min(...values), high = Math.max(...values), edge = (high - low) * 0.05 || 1;
    const x = (level) => left + 12 + (level - levels[0]) / (levels.at(-1) - levels[0]) * (end - left - 24), y = (value) => top + (high + edge - value) / (high - low + 2 * edge) * (bottom - top);
    const root = E("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Curves by severity; the table below has the numbers", "font-family": "Helvetica, Arial, sans-serif", "font-size": 13 });
    const text = (said, attributes) => E("text", { fill: "#1d1d1f", ...attributes }, said), line = (x1, y1, x2, y2, attributes) => E("line", { x1, y1, x2, y2, ...attributes });
    if (title) root.append(E("rect", { width: "100%", height: "100%", fill: "#fff" }), text(title, { x: width / 2, y: 26, "text-anchor": "middle", "font-size": 17, "font-weight": 700 }));
    for (const v of T.round(low - edge, high + edge)) root.append(line(left, y(v), end, y(v), { class: "grid", stroke: "#d9d9de" }), text(String(v), { x: left - 8, y: y(v) + 4, "text-anchor": "end" }));
    for (const level of levels) root.append(text(level || end - left < NARROW ? String(level) : "0 (clean)", { x: x(level), y: bottom + 18, "text-anchor": "middle" }));
    root.append(text("severity; bars: 95 %", { x: (left + end) / 2, y: height - 8, "text-anchor": "middle" }), text(`${first.metric}${first.percent ? " (%)" : first.unit ? ` (${first.unit})` : ""}`, { transform: `translate(15 ${(top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }));
    const names = apart(rows.map((each) => y(loaded.at(-1)[1].value[each.at]) + 4), top + 8);
    const short = T.models.shortened(rows.map(({ name }) => name), Math.max(8, Math.floor((right - 30) / 7.6)));
    rows.forEach((each, at) => {
      const { colour, symbol } = each.style, points = loaded.filter(([, of]) => !Number.isNaN(of.value[each.at])), dark = colour === "#000000" ? "black" : null, stroke = { stroke: colour, class: dark };
      for (const [level, of] of points) {
        const [a, b] = T.interval(of, each.at), place = x(level);
        if (b > a) root.append(...[[place, y(a), place, y(b)], [place - CAP, y(a), place + CAP, y(a)], [place - CAP, y(b), place + CAP, y(b)]].map((ends) => line(...ends, { ...stroke, opacity: 0.6 })));
      }
      root.append(E("polyline", { points: points.map(([level, of]) => `${x(level).toFixed(1)},${y(of.value[each.at]).toFixed(1)}`).join(" "), fill: "none", ...stroke, "stroke-width": 2, "stroke-dasharray": DASHES[at % DASHES.length] }));
      for (const [level, of] of points) root.append(E("path", { d: T.paths[symbol], fill: colour, class: dark && "black-mark", transform: `translate(${x(level).toFixed(1)} ${y(of.value[each.at]).toFixed(1)})` }));
      root.append(line(end, names[at] - 4, end + 20, names[at] - 4, { ...stroke, "stroke-width": 2, "stroke-dasharray": DASHES[at % DASHES.length] }), E("path", { d: T.paths[symbol], fill: colour, class: dark && "black-mark", transform: `translate(${end + 10} ${names[at] - 4})` }), text(short.get(each.name), { x: end + 26, y: names[at] }));
    });
    return root;
  }
  T.view("severity", { title: () => "Severity", nav: "Severity", render });
  T.view("training", { title: () => "Training", nav: "Training", optional: true, render: async (...given) => { await (T.training || T.run("training.js")); return T.training(...given); } });
})();
