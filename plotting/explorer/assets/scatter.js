"use strict";
/* Two columns against each other with a line, and effective robustness to it. */
(() => {
  const E = T.element, MIDDLE = "imagenetv2-matched-frequency-format-val";
  const style = (index, type) => index.styles.find((each) => each.name === type) || { colour: "#777777", symbol: "circle" };
  const LEAST = 5, LINES = 24; // models of a line, and lines of a list

  /* The columns that are rates of which more is better. */
  const accuracies = (index) => index.columns.filter((each) => each.percent && T.direction(each) > 0);
  const task = (index, name) => index.columns[index.columnOf.get(name)].task;
  function axes(index, query) {
    const usable = accuracies(index).map((each) => each.name), has = (name) => usable.includes(name), x = has(query.get("x")) ? query.get("x") : has("val") ? "val" : usable[0];
    const y = has(query.get("y")) ? query.get("y") : x === "val" && has(MIDDLE) ? MIDDLE : usable.find((name) => name !== x && task(index, name) === task(index, x)) || x;
    const scale = T.SCALES[query.get("scale")] ? query.get("scale") : "logit", least = query.get("least");
    return { x, y, scale, least: least === null ? (x === "val" ? 55 : 0) : Number(least) || 0, baseline: query.get("baseline"), hidden: new Set((query.get("hide") || "").split("|").filter(Boolean)) };
  }
  function controls(index, given) {
    const names = accuracies(index).map((each) => ({ value: each.name, text: each.name, group: each.group }));
    return E("div", { class: "controls" }, T.choose("x", "x", names, given.x, { least: null }), T.choose("y", "y", names, given.y), T.choose("scale", "scale", ["logit", "probit", "linear"], given.scale),
      T.choose("line through", "baseline", [{ value: "", text: "usual" }, ...index.baselines], given.baseline || ""),
      T.box("x at least, %", "least", String(given.least), { type: "number", min: 0, max: 100, step: 5, style: "width: 5em" }),
      E("button", { type: "button", id: "swap", onclick: () => T.change({ x: given.y, y: given.x, least: null }) }, "⇄ swap"));
  }
  function types(index, given) {
    return E("fieldset", { class: "types" }, E("legend", { class: "hidden" }, "Kinds of models"), ...index.kinds.map((type, at) => E("label", {},
      E("input", { type: "checkbox", id: `type-${at}`, checked: !given.hidden.has(type), onchange: (event) => {
        const hidden = new Set(given.hidden);
        if (event.target.checked) hidden.delete(type); else hidden.add(type);
        T.change({ hide: [...hidden].join("|") || null });
      } }), T.mark(style(index, type)), type)));
  }
  const only = (index) => (each) => each.model.pretraining === index.imagenetOnly;
  /* What the line goes through, of the index's baselines: what the address says, else the first that these models have. */
  function baselineOf(index, given, every) {
    if (index.baselines.some(({ value }) => value === given.baseline)) return given.baseline;
    if (every.some((each) => each.model.type === index.standard)) return "standard";
    return every.filter(only(index)).length >= index.fewest ? "imagenet-1k" : "all";
  }
  function fitted(index, baseline, every) {
    const test = { standard: (each) => each.model.type === index.standard, "imagenet-1k": only(index), all: () => true }[baseline];
    return every.filter((each) => test(each) && !index.notFitted.some((word) => each.model.lower.includes(word)));
  }
  /* The models that have both, and the line through those of the baseline. */
  async function pairs(index, given) {
    const [x, y] = await Promise.all([given.x, given.y].map((name) => T.column(index.columnOf.get(name))));
    const every = index.models.filter(({ at }) => x.value[at] >= given.least && !Number.isNaN(y.value[at])).map((model) => ({ model, x: x.value[model.at], y: y.value[model.at], own: Boolean(x.id[model.at] || y.id[model.at]) }));
    const baseline = baselineOf(index, given, every), line = T.fit(fitted(index, baseline, every), given.scale);
    const through = index.baselines.find(({ value }) => value === baseline).text;
    return { x, y, line, through, rows: every.filter((each) => !given.hidden.has(each.model.kind)) };
  }
  const said = (of, at) => { const [low, high] = T.interval(of, at); return `${of.name}: ${T.percent(of.value[at])} %${high > low ? ` (${T.percent(low)} to ${T.percent(high)})` : ""}`; };
  const described = (line, through) => `the line through ${line.n.toLocaleString("en")} ${through.replace(/^all /, "")}: slope ${line.slope.toFixed(3)}, intercept ${line.intercept.toFixed(3)}, r ${line.r.toFixed(3)}, r² ${(line.r ** 2).toFixed(3)}`;

  /* The lines from x to the other columns of its task that many models have: how many models it goes through, slope and r². */
  async function others(index, given) {
    const own = index.columns[index.columnOf.get(given.x)], usable = accuracies(index).filter((each) => each.task === own.task && each.metric === own.metric && each !== own);
    const columns = T.usual(index.columns, usable.map((each) => index.columnOf.get(each.name)), LINES).map((at) => index.columns[at]);
    const found = await Promise.all(columns.map(async (each) => ({ each, ...await pairs(index, { ...given, y: each.name }) })));
    const rows = found.filter(({ line }) => line && line.n >= LEAST);
    if (!rows.length) return E("span", {});
    return E("details", { open: true }, E("summary", {}, `Lines from ${given.x}`), T.table({ id: "lines", caption: `Lines from ${given.x}`, count: rows.length,
      columns: [{ key: "y", label: "to", heading: true }, { key: "n", label: "models", number: true }, { key: "through", label: "through" }, { key: "slope", label: "slope", number: true }, { key: "r2", label: "r²", number: true }],
      rowAt: (at) => { const { each, line, through } = rows[at]; return { cells: [{ text: E("a", { href: T.link("plot", [], { x: given.x, y: each.name, scale: given.scale, least: given.least, baseline: given.baseline }) }, T.name(each.name)) }, line.n.toLocaleString("en"), through, line.slope.toFixed(3), (line.r ** 2).toFixed(3)] }; } }));
  }

  async function plotView(state, main, current) {
    const index = await T.index();
    if (accuracies(index).length < 2) throw new Error("A plot needs accuracies on two settings");
    const given = axes(index, state.query), { x, y, line, through, rows } = await pairs(index, given), [to] = T.SCALES[given.scale], pinned = new Set(T.pins());
    if (!current()) return;
    const some = rows.some((each) => each.own) && rows.some((each) => !each.own);
    const points = rows.map((each) => ({ x: to(each.x), y: to(each.y), style: style(index, each.model.kind), own: some && each.own, heading: each.model.name, href: T.link("model", [each.model.name]), pinned: pinned.has(each.model.name),
      bars: [[x, each.x, 0], [y, each.y, 1]].flatMap(([of, , up]) => { const [a, b] = T.interval(of, each.model.at).map(to); return isFinite(a) && isFinite(b) ? [up ? [to(each.x), a, to(each.x), b] : [a, to(each.y), b, to(each.y)]] : []; }),
      lines: () => [each.model.kind, ...(each.own ? ["measured here"] : []), said(x, each.model.at), said(y, each.model.at), ...(line ? [`effective robustness: ${T.points(each.y - line.predict(each.x))} points`] : [])] })).filter((each) => isFinite(each.x) && isFinite(each.y)).sort((a, b) => a.own - b.own);
    const note = E("p", { class: "note", "aria-live": "polite" }, `${points.length.toLocaleString("en")} models${some ? `, of which ${points.filter((each) => each.own).length} measured here (outlined)` : ""}${line ? `; ${described(line, through)}` : "; too few for a line"}${rows.length > points.length ? `; ${rows.length - points.length} at 0 % or 100 % have no place on this scale` : ""}`);
    if (!points.length) { main.replaceChildren(E("h1", {}, `${given.y} against ${given.x}`), controls(index, given), types(index, given), note); return; }
    const steps = (f) => Array.from({ length: 121 }, (_, step) => { const low = Math.min(...points.map((each) => each.x)), high = Math.max(...points.map((each) => each.x)), v = low + (high - low) * (step / 110 - 0.04); return [v, f(v)]; });
    const drawn = T.plot({ label: `${given.y} against ${given.x}`, xLabel: `${given.x} (%)`, yLabel: `${given.y} (%)`, points, to,
      lines: [{ points: steps((v) => v), colour: "--text", width: 1.2, dash: true }, ...(line ? [{ points: steps((v) => line.slope * v + line.intercept), colour: "#d55e00", width: 2 }] : [])] });
    T.shownPlot = drawn;
    main.replaceChildren(E("h1", {}, T.name(`${given.y} against ${given.x}`)), controls(index, given), types(index, given), T.exports(`${given.y}-${given.x}`, { svg: drawn.svg, rows: () => [["model", "model_type", given.x, given.y], ...rows.map((each) => [each.model.name, each.model.type, each.x, each.y])] }), drawn.box, note);
    drawn.paint();
  }
  async function robustnessView(state, main, current) {
    const index = await T.index();
    if (!accuracies(index).length) throw new Error("There are no accuracies");
    const given = axes(index, state.query), { line, through, rows } = await pairs(index, given), lines = await others(index, given);
    if (!current()) return;
    const sorted = line ? rows.map((each) => ({ ...each, over: each.y - line.predict(each.x) })).sort((a, b) => b.over - a.over) : [];
    const head = [{ key: "place", label: "#", number: true }, { key: "model", label: "model", heading: true }, { key: "type", label: "type" }, { key: "x", label: given.x, number: true }, { key: "y", label: given.y, number: true }, { key: "over", label: "effective robustness", number: true }];
    const cells = (each, at) => [at + 1, { text: E("a", { href: T.link("model", [each.model.name]) }, T.name(each.model.name)) }, each.model.type, T.percent(each.x), T.percent(each.y), Number.isFinite(each.over) ? T.points(each.over) : "–"];
    main.replaceChildren(E("h1", {}, "Effective robustness"), controls(index, given), types(index, given),
      E("p", { class: "note" }, line ? `Accuracy on ${given.y} above what the line predicts from ${given.x}, in points; ${described(line, through)}` : "Too few models for a line"), lines,
      T.exports("effective-robustness", { rows: () => [head.map((each) => each.label), ...sorted.map((each, at) => [at + 1, each.model.name, each.model.type, each.x, each.y, each.over])] }),
      T.table({ id: "robustness", caption: "Models by effective robustness", columns: head, count: sorted.length, rowAt: (at) => ({ cells: cells(sorted[at], at) }) }));
  }
  T.view("plot", { title: () => "Plot", nav: "Plot", render: plotView });
  T.view("robustness", { title: () => "Effective robustness", nav: "Effective robustness", render: robustnessView });
})();
