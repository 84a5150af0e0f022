"use strict";
/* A scatter plot of two columns with a line, and effective robustness relative to it. */
(() => {
  const E = T.element, MIDDLE = "imagenetv2-matched-frequency-format-val";
  const NARROW = 640, LINES = 24, TRIED = 12, USUAL_LEAST = 55, ENOUGH = 0.9; // lines of a list; columns that axes are chosen from; accuracy on val, %; of the most models that a pair has

  /* The columns with rates where higher is better. */
  const accuracies = (index) => index.columns.filter((each) => each.percent && T.direction(each) > 0);
  const least = (x) => (x.name === "val" ? USUAL_LEAST : 0);
  /* Among columns that a study of robustness begins with: the first, and the largest shift from it, the one with the largest
     mean drop, of those that most of its models and, where there are, the pinned ones have; null without two of them. */
  async function firstShift(index, usable, x) {
    const of = (each) => T.column(index.columnOf.get(each.name)), firsts = usable.filter((each) => each.first !== null).sort((a, b) => a.first - b.first), from = x || firsts.find((each) => each.first === 0);
    if (!from) return null;
    const base = await of(from), models = index.models.filter(({ at }) => base.value[at] >= least(from)), pinned = new Set(T.pins()), found = [];
    for (const each of firsts.filter((one) => one !== from && one.task === from.task)) {
      const there = await of(each), shared = models.filter(({ at }) => !Number.isNaN(there.value[at]));
      if (shared.length >= index.fewest && shared.length > models.length / 2) found.push({ each, own: shared.filter(({ name }) => pinned.has(name)).length, drop: shared.reduce((sum, { at }) => sum + base.value[at] - there.value[at], 0) / shared.length });
    }
    return found.length ? { x: from, y: found.sort((a, b) => b.own - a.own || b.drop - a.drop)[0].each } : null;
  }
  /* Two columns of one task, if the address has none: as above; else those that many models have, of the first task and the first columns in which there are enough. */
  async function firstPair(index, usable, x, y) {
    const shift = y ? null : await firstShift(index, usable, x);
    if (shift) return shift;
    let most = { shared: 0, x: x || y || usable[0], y: y || x || usable[0] };
    for (const task of [...new Set([x || y, ...usable].filter(Boolean).map((each) => each.task))]) {
      const own = usable.filter((each) => each.task === task), few = T.usual(index.columns, own.map((each) => index.columnOf.get(each.name)), TRIED).sort((a, b) => a - b).map((at) => index.columns[at]);
      const firsts = x ? [x] : few, seconds = y ? [y] : [...few.filter((each) => each.name === MIDDLE), ...few.filter((each) => each.name !== MIDDLE)], found = [];
      const values = new Map(await Promise.all([...new Set([...firsts, ...seconds])].map(async (each) => [each, await T.column(index.columnOf.get(each.name))])));
      const shared = (a, b) => index.models.filter(({ at }) => values.get(a).value[at] >= least(a) && [a, b].every((each) => values.get(each).value[at] > 0 && values.get(each).value[at] < 100)).length;
      for (const a of firsts) for (const b of seconds) if (a !== b) found.push({ x: a, y: b, shared: shared(a, b) });
      const here = Math.max(0, ...found.map((each) => each.shared)), pair = found.find((each) => each.shared && each.shared >= ENOUGH * here);
      if (pair && pair.shared >= index.fewest) return pair;
      if (pair && pair.shared > most.shared) most = pair;
    }
    return most;
  }
  /* Another column of its task to plot a column with, which two of its models have at least: { x, y }; null if there is none. */
  async function partner(index, about) {
    const usable = accuracies(index), own = usable.includes(about) ? usable.filter((each) => each.task === about.task && each !== about) : [], value = async (each) => (await T.column(index.columnOf.get(each.name))).value;
    const few = T.usual(index.columns, own.map((each) => index.columnOf.get(each.name)), TRIED).sort((a, b) => a - b).map((at) => index.columns[at]), first = few.every((each) => index.columnOf.get(each.name) > index.columnOf.get(about.name));
    const [here, wanted] = [few.length && await value(about), first ? few.filter((each) => each.name === MIDDLE) : []];
    for (const each of new Set([...wanted, ...few])) {
      const there = await value(each);
      if (here.filter((one, at) => !Number.isNaN(one) && !Number.isNaN(there[at])).length > 1) return first ? { x: about.name, y: each.name } : { x: each.name, y: about.name };
    }
    return null;
  }
  async function axes(index, query) {
    const usable = accuracies(index), named = (key) => usable.find((each) => each.name === query.get(key)), given = { x: named("x"), y: named("y") };
    const { x, y } = given.x && given.y ? given : await firstPair(index, usable, given.x, given.y);
    const scale = T.SCALES[query.get("scale")] ? query.get("scale") : "logit", asked = query.get("least");
    return { x: x.name, y: y.name, scale, least: asked === null ? least(x) : Number(asked) || 0, baseline: query.get("baseline"), hidden: new Set(T.words(query.get("hide"), "|")) };
  }
  function controls(index, given) {
    const names = accuracies(index).map((each) => ({ value: each.name, text: each.name, group: each.group }));
    return E("div", { class: "controls" }, T.models.finder(T.state().query), T.choose("x", "x", names, given.x, { y: given.y, least: null }), T.choose("y", "y", names, given.y, { x: given.x }), T.choose("scale", "scale", ["logit", "probit", "linear"], given.scale),
      T.choose("line through", "baseline", [{ value: "", text: "usual" }, ...index.baselines], given.baseline || ""),
      T.box("x at least, %", "least", String(given.least), { type: "number", min: 0, max: 100, step: 5, style: "width: 5em" }),
      E("button", { type: "button", id: "swap", onclick: () => T.change({ x: given.y, y: given.x, least: null }) }, "⇄ swap"));
  }
  function types(index, given) {
    return E("fieldset", { class: "types" }, E("legend", { class: "hidden" }, "Kinds of models"), ...index.kinds.map(({ name: type, symbol }, at) => E("label", {},
      E("input", { type: "checkbox", id: `type-${at}`, checked: !given.hidden.has(type), onchange: (event) => {
        const hidden = new Set(given.hidden);
        if (event.target.checked) hidden.delete(type); else hidden.add(type);
        T.change({ hide: [...hidden].map(T.quoted).join("|") || null });
      } }), T.mark({ symbol, colour: "#777777" }), type)));
  }
  let folded = null; // whether the controls are open, once toggled
  const settings = (...parts) => { const made = E("details", { class: "fold", open: folded === null ? innerWidth > NARROW : !folded, ontoggle: () => { folded = !made.open; } }, E("summary", { id: "fold" }, "Axes, line and kinds of models"), ...parts); return made; };
  const only = (index) => (each) => each.model.pretraining === index.imagenetOnly;
  /* The models to fit the line to, among the index's baselines: that of the address, else the first available. */
  function baselineOf(index, given, every) {
    if (index.baselines.some(({ value }) => value === given.baseline)) return given.baseline;
    if (every.some((each) => each.model.type === index.standard)) return "standard";
    return every.filter(only(index)).length >= index.fewest ? "imagenet-1k" : "all";
  }
  function fitted(index, baseline, every) {
    const test = { standard: (each) => each.model.type === index.standard, "imagenet-1k": only(index), all: () => true }[baseline];
    return every.filter((each) => test(each) && !index.notFitted.some((word) => each.model.lower.includes(word)));
  }
  /* The models that have both, and the line through those of the baseline; neither a search nor a pin changes the line. */
  async function pairs(index, given, shows = () => true) {
    const [x, y] = await Promise.all([given.x, given.y].map((name) => T.column(index.columnOf.get(name))));
    const pinned = new Set(T.pins()), known = index.models.filter(({ at }) => !Number.isNaN(x.value[at]) && !Number.isNaN(y.value[at])).map((model) => ({ model, x: x.value[model.at], y: y.value[model.at], own: Boolean(x.id[model.at] || y.id[model.at]) })), every = known.filter((each) => each.x >= given.least);
    const baseline = baselineOf(index, given, every), used = fitted(index, baseline, every), line = T.fit(used, given.scale);
    const through = index.baselines.find(({ value }) => value === baseline).text;
    return { x, y, line: line && line.n >= index.fewest ? line : null, used, through, rows: known.filter((each) => (each.x >= given.least || pinned.has(each.model.name)) && !given.hidden.has(each.model.kind) && shows(each.model)) };
  }
  const said = (of, at) => { const [low, high] = T.interval(of, at); return `${of.name}: ${T.percent(of.value[at])} %${high > low ? ` ${T.numbers.spread(of, low, high)}` : ""}`; };
  const exact = (number) => T.numbers.fixed(number, 3);
  const described = (index, line, used, through) => (line ? `the line through ${line.n.toLocaleString("en")} ${through.replace(/^all /, "")}: slope ${exact(line.slope)}, intercept ${exact(line.intercept)}, r ${exact(line.r)}, r² ${exact(line.r ** 2)}` : `no line: at least ${index.fewest} models are needed, ${used.length} match (${through.replace(/^all /, "")}); “line through” chooses others`);

  /* The lines from x to the other columns of its task that many models have: how many models it goes through, slope and r². */
  async function others(index, given) {
    const own = index.columns[index.columnOf.get(given.x)], usable = accuracies(index).filter((each) => each.task === own.task && each.metric === own.metric && each !== own);
    const columns = T.usual(index.columns, usable.map((each) => index.columnOf.get(each.name)), LINES).map((at) => index.columns[at]);
    const found = await Promise.all(columns.map(async (each) => ({ each, ...await pairs(index, { ...given, y: each.name }) })));
    const rows = found.filter(({ line }) => line);
    if (!rows.length) return E("span", {});
    return E("details", { open: true }, E("summary", {}, `Lines from ${given.x}`), T.table({ id: "lines", caption: `Lines from ${given.x}`, count: rows.length,
      columns: [{ key: "y", label: "to", heading: true }, { key: "n", label: "models", number: true }, { key: "through", label: "through" }, { key: "slope", label: "slope", number: true }, { key: "r2", label: "r²", number: true }],
      rowAt: (at) => { const { each, line, through } = rows[at]; return { cells: [{ text: E("a", { href: T.link("plot", [], { x: given.x, y: each.name, scale: given.scale, least: given.least, baseline: given.baseline }) }, T.name(each.name)) }, line.n.toLocaleString("en"), through, exact(line.slope), exact(line.r ** 2)] }; } }));
  }

  const METRICS = { top1: "top-1", top5: "top-5" };
  const axis = (index, name) => { const { metric } = index.columns[index.columnOf.get(name)]; return `${name} (${METRICS[metric] || metric}, %)`; };
  const FEW = 12, OUTLYING = 4, OUTSIDE = 3;
  /* The models to label if there is room: all of a few; of many the highest and the lowest, and those farthest from the line. */
  function name(points) {
    const by = (key, sign, number) => points.reduce((found, each) => (found.length < number || sign * each[key] > sign * found.at(-1)[key] ? [...found, each].sort((a, b) => sign * (b[key] - a[key])).slice(0, number) : found), []);
    const few = points.length <= FEW, y = by("y", 1, few ? FEW : 1), [over, under] = [1, -1].map((sign) => by("over", sign, OUTLYING));
    const first = few ? y : [y[0], by("x", 1, 1)[0], over[0], under[0], by("y", -1, 1)[0], ...over.slice(1), ...under.slice(1, -1).reverse()];
    first.forEach((each, at) => { each.named = Math.min(each.named ?? Infinity, at); });
  }
  /* A legend of colours, and of symbols if several kinds of models are shown. */
  function groups(index, points) {
    const colours = index.colours.map((colour) => [colour, points.filter(({ style }) => style.colour === colour)]).filter(([, own]) => own.length), kinds = index.kinds.filter(({ name: kind }) => points.some(({ model }) => model.kind === kind));
    const alike = (own) => (own.every(({ style }) => style.symbol === own[0].style.symbol) ? own[0].style.symbol : "circle");
    return [...colours.map(([colour, own]) => ({ style: { colour, symbol: alike(own) }, text: own.length > 1 ? `${index.groups[colour]} (${own.length.toLocaleString("en")})` : index.groups[colour] })),
      ...(kinds.length > 1 ? kinds.map(({ name: kind, symbol }) => ({ style: { colour: "#777777", symbol }, text: kind, kind: true })) : [])];
  }
  /* Which models a view shows: those of the search, and pinned ones. */
  function shows(index, query) {
    const search = T.selection(index, query), pinned = new Set(T.pins());
    return (model) => pinned.has(model.name) || search.model(model);
  }
  /* The plot of two columns with its legend, its note and its exports. */
  function drawing(index, given, { x, y, line, used, through, rows }) {
    const [to] = T.SCALES[given.scale], pinned = new Set(T.pins()), some = rows.some((each) => each.own) && rows.some((each) => !each.own);
    const points = rows.map((each) => ({ x: to(each.x), y: to(each.y), style: each.model.style, own: some && each.own, heading: each.model.name, href: () => T.link("model", [each.model.name]), pinned: pinned.has(each.model.name),
      bars: [[x, each.x, 0], [y, each.y, 1]].flatMap(([of, , up]) => { const [a, b] = T.interval(of, each.model.at).map(to); return isFinite(a) && isFinite(b) ? [up ? [to(each.x), a, to(each.x), b] : [a, to(each.y), b, to(each.y)]] : []; }),
      over: line ? each.y - line.predict(each.x) : 0, model: each.model, lines: () => [each.model.kind, ...(each.own ? ["measured here"] : []), said(x, each.model.at), said(y, each.model.at), ...(line ? [`effective robustness: ${T.points(each.y - line.predict(each.x))} points`] : [])] })).sort((a, b) => a.pinned - b.pinned || a.own - b.own), edge = T.models.first(points.filter((each) => !isFinite(each.x) || !isFinite(each.y)), (each) => each.heading);
    const note = E("p", { class: "note", "aria-live": "polite" }, `${T.numbers.counted(points.length, "model")}${some ? `, of which ${points.filter((each) => each.own).length} measured here (outlined)` : ""}; ${described(index, line, used, through)}${edge.length ? `; on the edge, not in the line: ${edge.length} at 0 % or 100 % (${edge.slice(0, OUTSIDE).map((each) => each.heading).join(", ")}${edge.length > OUTSIDE ? ", …" : ""})` : ""}`);
    if (edge.length === points.length) return { parts: [note], paint: () => {} };
    name(points);
    const ends = (key, list) => { const values = list.map((each) => to(each[key])).filter(isFinite); return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)]; };
    const fittedOn = line ? ends("x", used.filter((each) => isFinite(to(each.y)))) : [0, 0], places = Array.from({ length: 75 }, (_, step) => fittedOn[0] + (fittedOn[1] - fittedOn[0]) * step / 74);
    const [[x0, x1], [y0, y1]] = [ends("x", rows), ends("y", rows)], equal = [Math.max(x0, y0), Math.min(x1, y1)];
    const diagonal = { points: equal.map((v) => [v, v]), colour: "--faint", width: 1.2, dash: true }, fit = line && { points: places.map((v) => [v, line.slope * v + line.intercept]), colour: "--text", width: 2 };
    const lines = [...(equal[0] < equal[1] ? [diagonal] : []), ...(line ? [fit] : [])];
    const legend = [...groups(index, points), ...(line ? [{ line: fit, text: `line: ${through}` }, { text: `n = ${line.n.toLocaleString("en")}, slope ${exact(line.slope)}, r² ${exact(line.r ** 2)}` }, { band: true, text: "95 % band of the line, bootstrap" }] : []), ...(lines.includes(diagonal) ? [{ line: diagonal, text: "y = x" }] : [])];
    const drawn = T.plot({ label: `${given.y} against ${given.x}`, xLabel: axis(index, given.x), yLabel: axis(index, given.y), points, to, legend, lines,
      band: line && T.band(used, given.scale, places).map(([a, b], at) => [places[at], a, b]) });
    T.shownPlot = drawn;
    return { svg: drawn.svg, parts: [drawn.box, T.legend(legend), note], paint: drawn.paint };
  }
  async function plotView(state, main, current) {
    const index = await T.index();
    if (accuracies(index).length < 2) throw new Error("A plot needs accuracies on two settings");
    const given = await axes(index, state.query), found = await pairs(index, given, shows(index, state.query));
    if (!current()) return;
    const { parts, svg, paint } = drawing(index, given, found);
    main.replaceChildren(E("h1", {}, T.name(`${given.y} against ${given.x}`)), settings(controls(index, given), types(index, given)), ...(svg ? [T.exports(`${given.y}-${given.x}`, { svg, title: `${given.y} against ${given.x}`, best: { index, models: found.rows.map(({ model }) => model.at), columns: [found.x, found.y] }, rows: (cell = T.result) => [["model", "model_type", given.x, given.y], ...found.rows.map((each) => [each.model.name, each.model.type, cell(found.x, each.model.at), cell(found.y, each.model.at)])] })] : []), ...parts);
    paint();
  }
  async function robustnessView(state, main, current) {
    const index = await T.index();
    if (accuracies(index).length < 2) throw new Error("Effective robustness needs accuracies on two settings");
    const given = await axes(index, state.query), found = await pairs(index, given, shows(index, state.query)), { x, y, line, rows } = found, lines = await others(index, given);
    if (!current()) return;
    const sorted = rows.map((each) => ({ ...each, over: line ? each.y - line.predict(each.x) : NaN })).sort((a, b) => (line ? b.over - a.over : b.y - a.y)).map((each, at) => ({ ...each, place: at + 1 })), shown = T.models.first(sorted, (each) => each.model.name), names = T.models.cells(shown.map((each) => each.model.name));
    T.chosen.pair = T.chosen.pairOn(index, found.y);
    const head = [{ key: "place", label: "#", number: true }, { key: "model", label: "model", heading: true }, { key: "type", label: "type" }, { key: "x", label: given.x, number: true }, { key: "y", label: given.y, number: true }, { key: "over", label: "effective robustness", number: true }];
    const cells = (each) => [each.place, names.cell(each.model.name), each.model.type, T.percent(each.x), T.percent(each.y), Number.isFinite(each.over) ? T.points(each.over) : "–"];
    const { parts, svg, paint } = drawing(index, given, found);
    main.replaceChildren(E("h1", {}, "Effective robustness"), E("p", { class: "note" }, line ? `Accuracy on ${given.y} above what the line predicts from ${given.x}, in points` : `${given.y} against ${given.x}`), settings(controls(index, given), types(index, given)), ...parts,
      T.exports("effective-robustness", { svg, title: `Effective robustness on ${given.y}, by the line from ${given.x}`, best: { index, models: rows.map(({ model }) => model.at), columns: [x, y] }, rows: (cell = T.result) => [head.map((each) => each.label), ...sorted.map((each) => [each.place, each.model.name, each.model.type, cell(x, each.model.at), cell(y, each.model.at), T.measured(each.over / 100, T.numbers.FRACTION)])] }),
      T.table({ id: "robustness", caption: "Models by effective robustness", columns: head, count: shown.length, searched: true, rowAt: (at) => ({ pinned: names.pinned(shown[at].model.name), cells: cells(shown[at]) }) }), lines);
    paint();
  }
  T.partner = partner;
  T.view("plot", { title: () => "Plot", nav: "Plot", render: plotView });
  T.view("robustness", { title: () => "Effective robustness", nav: "Effective robustness", render: robustnessView });
})();
