"use strict";
/* The checkpoints of training runs by step: a line for each run and setting, or for the mean of the settings. The file is loaded when the view is first shown. */
(() => {
  const E = T.element, FEW = 8, MOST = 24, LISTED = 20, PARTS = 7; // boxes that are always open, and lines whose best checkpoint has a name; lines of a plot; failures that are listed; parts of an axis
  const open = new Set(), count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`, unique = (all) => [...new Set(all)];
  const told = (line, value) => T.numbers.shown(line, value), spread = (line, { low, high }) => (high > low ? T.numbers.spread(line, low, high) : "");
  const measure = (line) => (line.percent ? "%" : line.unit || line.metric), isRate = (line) => line.percent && line.better === "higher";

  /* The line of a run on a setting through the checkpoints that are wanted; rates in percent. */
  function lineOf(run, doc, curve, wanted) {
    const scaled = (value) => (value === null ? NaN : curve.percent ? 100 * value : value);
    return { ...curve, run, name: curve.setting, lacking: 0, points: curve.at.map((at, place) => ({ step: doc.checkpoints[at][0], model: doc.checkpoints[at][1], label: `${doc.unit} ${doc.checkpoints[at][0].toLocaleString("en")}`, value: scaled(curve.value[place]), raw: curve.value[place], low: scaled(curve.low[place]), high: scaled(curve.high[place]), n: curve.n[place], evaluation: curve.evaluations[place], best: place === curve.best })).filter(({ model }) => wanted(model)) };
  }
  /* The mean of lines at the checkpoints that all have, from the mean of the lower ends to that of the upper ends: about 95 % or more, whichever samples the settings share. */
  function average(run, own) {
    const at = own.map(({ points }) => new Map(points.map((each) => [each.step, each]))), steps = unique(at.flatMap((each) => [...each.keys()])).sort((a, b) => a - b), whole = steps.filter((step) => at.every((each) => each.has(step)));
    const points = whole.map((step) => { const all = at.map((each) => each.get(step)), mean = (key) => all.reduce((sum, each) => sum + each[key], 0) / all.length; return { ...all[0], value: mean("value"), raw: mean("raw"), low: mean("low"), high: mean("high"), n: null, evaluation: null, best: false }; });
    if (points.length) points.reduce((best, each) => (each.value > best.value ? each : best)).best = true;
    return { ...own[0], run, name: `mean of ${own.length} settings`, metric: unique(own.map((each) => each.metric)).join(", "), points, lacking: steps.length - whole.length };
  }
  /* The drawn lines: of one measure, of runs with the same unit, up to a limit; and a note on the others. */
  function chosen(runs, docs, on, mean, metric, wanted) {
    const own = docs.map((doc, at) => doc.curves.filter(({ setting }) => on.has(setting)).map((curve) => lineOf(runs[at], doc, curve, wanted)).filter(({ points }) => points.length)), rates = own.map((each) => each.filter(isRate));
    const every = mean ? rates.flatMap((each, at) => (each.length > 1 ? [average(runs[at], each)] : each)) : own.flat(), [first] = every;
    const counted = every.filter(({ run }) => run.unit === first.run.unit), alike = counted.filter((each) => measure(each) === measure(first)), lines = alike.slice(0, MOST), notes = [];
    const left = (names, why) => { if (names.length) notes.push(`Not drawn: ${unique(names).join(", ")} (${why}).`); };
    left(every.filter((each) => !counted.includes(each)).map(({ run }) => run.label), `not counted in ${first && first.run.unit}s`);
    left(counted.filter((each) => !alike.includes(each)).map(({ name }) => name), `not in ${first && measure(first)}`);
    if (metric) left([...on].filter((name) => !own.flat().some((each) => each.name === name)), `no ${metric}`);
    if (mean) left(own.flat().filter((each) => !isRate(each)).map(({ name }) => name), "no rate where higher is better");
    if (alike.length > MOST) notes.push(`Not drawn: ${count(alike.length - MOST, "more line")}; choose fewer runs or settings.`);
    const others = docs.reduce((sum, each) => sum + each.others, 0);
    if (others) notes.push(`Not drawn: ${count(others, "result")} of checkpoints with another unit than the rest of their run.`);
    if (mean && lines.some(({ lacking }) => lacking)) notes.push(`Not in the mean: ${count(lines.reduce((sum, each) => sum + each.lacking, 0), "checkpoint")} without a result on some of the settings.`);
    if (mean) notes.push("The interval of a mean goes from the mean of the lower ends to that of the upper ends: about 95 % or more, whichever samples the settings share.");
    const unknown = unique(lines.filter(({ best }) => best === null).map(({ metric }) => metric));
    if (unknown.length) notes.push(`It is unknown whether a higher or a lower ${unknown.join(", ")} is better, so no checkpoint is marked as the best.`);
    return { lines, notes, meanable: rates.some((each) => each.length > 1) };
  }
  /* Boxes to check; the address keeps the names of those that are. */
  function boxes(title, key, every, on) {
    if (every.length < 2) return null;
    const list = E("fieldset", { class: "types" }, E("legend", { class: "hidden" }, title), ...every.map(({ name, label }, at) => E("label", {}, E("input", { type: "checkbox", id: `${key}-${at}`, checked: on.has(name), onchange: (event) => {
      const now = every.filter((each) => (each.name === name ? event.target.checked : on.has(each.name)));
      T.change({ [key]: now.map((each) => T.quoted(each.name)).join("|") || null });
    } }), T.name(label || name))));
    if (every.length <= FEW) return list;
    const made = E("details", { class: "picker", open: open.has(key), ontoggle: () => (made.open ? open.add(key) : open.delete(key)) }, E("summary", { id: `${key}-summary` }, `${title}: ${on.size} of ${every.length}`), E("div", { class: "picked" }, list));
    return made;
  }
  /* Checkpoints that failed, or could not be read, on settings that are shown. */
  function failed(runs, docs, on) {
    const found = new Map();
    docs.forEach((doc, at) => doc.failed.filter(([, setting]) => on.has(setting)).forEach(([label, setting, reason]) => {
      const key = `${runs.length > 1 ? `${runs[at].label}, ` : ""}${label}`;
      found.set(key, [...(found.get(key) || []), [setting, reason]]);
    }));
    if (!found.size) return null;
    const line = (own) => unique(own.map(([, reason]) => reason)).map((reason) => `${own.filter((each) => each[1] === reason).map(([setting]) => setting).join(", ")}: ${reason}`).join("; ");
    return E("details", { id: "failed" }, E("summary", {}, `${count(found.size, "checkpoint")} without a result on some of these settings: torn, or the evaluation failed`),
      E("ul", {}, ...[...found].slice(0, LISTED).map(([key, own]) => E("li", {}, `${key}, ${line(own)}`)), found.size > LISTED ? E("li", {}, `and ${found.size - LISTED} more`) : null));
  }
  /* The checkpoints by run and step, a column for each setting. */
  function table(lines, several) {
    const names = unique(lines.map(({ name }) => name)), rows = new Map();
    for (const line of lines) for (const each of line.points) {
      const key = `${line.run.name}\n${each.step}`;
      if (!rows.has(key)) rows.set(key, { run: line.run, ...each, cells: new Map() });
      rows.get(key).cells.set(line.name, [line, each]);
    }
    const shown = [...rows.values()].sort((a, b) => (a.run === b.run ? a.step - b.step : lines.findIndex(({ run }) => run === a.run) - lines.findIndex(({ run }) => run === b.run)));
    const cell = (found) => {
      if (!found) return "–";
      const [line, each] = found, text = told(line, each.value);
      return { text: each.evaluation ? E("a", { href: T.link("cell", [each.evaluation]), onclick: (event) => T.drawer(event, each.evaluation, line.metric) }, text) : text, title: spread(line, each) && `95 %: ${spread(line, each)}`, class: each.best ? "tied much" : "" };
    };
    return T.table({ id: "training", caption: "Checkpoints by step", count: shown.length,
      columns: [{ key: "checkpoint", label: "checkpoint", heading: true }, ...(several ? [{ key: "run", label: "run" }] : []), ...names.map((name, at) => ({ key: `s${at}`, label: `${name} (${unique(lines.filter((each) => each.name === name).map((each) => `${each.metric}${each.percent ? ", %" : ""}`)).join("; ")})`, number: true }))],
      rowAt: (at) => ({ cells: [{ text: E("a", { href: T.link("model", [shown[at].model]) }, shown[at].label) }, ...(several ? [{ text: T.name(shown[at].run.label) }] : []), ...names.map((name) => cell(shown[at].cells.get(name)))] }) });
  }
  /* What changed from one checkpoint to another, by setting: the differences, and the verdicts of the paired tests. */
  function changed(lines, several, query, current) {
    const every = new Map(lines.flatMap((line) => line.points.filter(({ evaluation }) => evaluation).map((each) => [each.model, { ...each, run: line.run }]))), order = [...every.values()].sort((a, b) => (a.run === b.run ? a.step - b.step : lines.findIndex(({ run }) => run === a.run) - lines.findIndex(({ run }) => run === b.run)));
    if (order.length < 2) return null;
    const at = (key, fallback) => order.find(({ model }) => model === query.get(key)) || fallback, last = order.at(-1), to = at("to", last), from = at("from", order[Math.max(0, order.indexOf(to) - 1)]), name = (each) => `${several ? `${each.run.label}, ` : ""}${each.label}`;
    const rows = lines.map((line) => ({ line, a: line.points.find(({ model }) => model === from.model), b: line.points.find(({ model }) => model === to.model) })).filter(({ a, b }) => a && b && a.evaluation && b.evaluation && a !== b), options = order.map((each) => ({ value: each.model, text: name(each) }));
    const gap = ({ line, a, b }) => { const value = b.value - a.value; return line.percent ? T.points(value) : T.numbers.bare(value, line.unit, true); };
    const ends = ({ line, said }) => (!said || !Number.isFinite(said.low) ? "–" : T.numbers.ends(said.low, said.high, line.percent ? T.numbers.FRACTION : line.unit, true));
    const verdict = ({ said, missing }) => (missing ? "not tested" : !said ? "…" : T.verdict(said, said.larger).replace(/^A /, `${name(to)} `).replace(/^B /, `${name(from)} `));
    const list = T.table({ id: "changes", caption: "What changed between two checkpoints", count: rows.length, columns: [{ key: "setting", label: "setting", heading: true }, { key: "a", label: name(from), number: true }, { key: "b", label: name(to), number: true }, { key: "gap", label: "difference", number: true }, { key: "ends", label: "95 %", number: true }, { key: "verdict", label: "verdict" }, { key: "samples", label: "samples" }],
      rowAt: (place) => { const row = rows[place], { line, a, b } = row; return { cells: [{ text: T.name(`${line.name} (${line.metric}${line.percent ? ", %" : ""})`) }, told(line, a.value), told(line, b.value), gap(row), ends(row), verdict(row), { text: row.missing || !row.said ? "–" : E("a", { href: T.link("compare", [b.evaluation, a.evaluation], { cell: "one" }) }, row.said.binary ? "only one right" : "that differ") }] }; } });
    const note = E("p", { class: "note", "aria-live": "polite" }, "Intervals and verdicts are of the paired test of testbed compare, without Holm’s correction.");
    (async () => {
      for (const row of rows) {
        if (!current()) return;
        try {
          const said = await T.compared([row.b.evaluation, row.a.evaluation]);
          if (said.n && said.score === row.line.metric) row.said = said; else row.missing = `${row.line.metric} on ${row.line.name} is not a mean of scores of samples.`;
        } catch (error) { row.missing = error.message; }
        list.repaint();
      }
      const missing = unique(rows.filter((row) => row.missing).map((row) => row.missing));
      if (missing.length) note.append(` Not tested: ${missing.slice(0, PARTS).join(" ")}`);
    })();
    return E("section", { class: "panel" }, E("h2", {}, "What changed between two checkpoints"), E("div", { class: "controls" }, T.choose("From", "from", options, from.model), T.choose("to", "to", options, to.model)), list, note);
  }
  /* One colour for each setting; for each run, where the lines differ by nothing else. Runs that share a setting's colour have symbols of their own, and so have settings beyond the colours. */
  function styles(index, lines) {
    const runs = unique(lines.map(({ run }) => run)), names = unique(lines.map(({ name }) => name)), colours = index.colours.slice(0, -1), byRun = names.length < 2;
    return lines.map(({ run, name }) => {
      const own = runs.indexOf(run), at = byRun ? own : names.indexOf(name);
      return { colour: colours[at % colours.length], symbol: index.symbols[(byRun ? own : own + Math.floor(at / colours.length)) % index.symbols.length] };
    });
  }
  function drawn(title, lines, style, several) {
    const points = lines.flatMap((line, at) => line.points.map((each) => ({ x: each.step, y: each.value, style: style[at], own: each.best, named: each.best && lines.length <= FEW ? at : undefined, heading: `${each.label}${each.best ? ", the best" : ""}`,
      bars: each.high > each.low ? [[each.step, each.low, each.step, each.high]] : [], href: () => (each.evaluation ? T.changed({ open: `${each.evaluation}.${line.metric}` }) : T.link("model", [each.model])),
      lines: () => [`${line.name}${several ? `, ${line.run.label}` : ""}`, `${line.metric}: ${told(line, each.value)}${line.percent ? " %" : ` ${line.unit}`}`, ...(spread(line, each) ? [`95 %: ${spread(line, each)}`] : []), ...(each.n ? [count(each.n, "sample")] : [])] })));
    const paths = lines.map((line, at) => ({ points: line.points.map((each) => [each.step, each.value]), colour: style[at].colour, width: 2 })), metrics = unique(lines.map(({ metric }) => metric)), [first] = lines;
    const legend = lines.map((line, at) => ({ style: style[at], text: unique([line.name, ...(several ? [line.run.label] : [])]).join(", ") })), marks = (whole) => (low, high) => T.round(low, high, PARTS).filter((each) => !whole || Number.isInteger(each)).map((place) => ({ tick: whole ? place.toLocaleString("en") : String(place), place }));
    return { legend, plot: T.plot({ label: title, xLabel: first.run.unit, yLabel: metrics.length > 1 ? measure(first) : `${metrics[0]}${measure(first) === metrics[0] ? "" : ` (${measure(first)})`}`, points, lines: paths, legend: [...legend, { text: "bars: 95 %; outlined: the best" }], ticks: [marks(true), marks(false)],
      within: lines.flatMap((line) => line.points.flatMap(({ low, high }) => [low, high])).filter((each) => !Number.isNaN(each)) }) };
  }
  T.training = async (state, main, current) => {
    const index = await T.index(), { query } = state, kept = (key) => T.words(query.get(key), "|");
    if (!index.training) throw new Error("No training run was watched here; testbed watch evaluates the checkpoints of one");
    const every = await T.load("training"), asked = every.filter(({ name }) => kept("run").includes(name)), picked = asked.length ? asked : every.slice(0, 1);
    const places = picked.map((each) => every.indexOf(each)), mains = await Promise.all(places.map((at) => T.load(`training/${at}`))), metrics = unique(mains.flatMap((each) => each.metrics)).sort(), metric = metrics.find((each) => each === query.get("metric"));
    const docs = metric ? await Promise.all(mains.map(async (doc, at) => ({ ...doc, ...(doc.metrics.includes(metric) ? await T.load(`training/${places[at]}/${doc.metrics.indexOf(metric)}`) : { curves: [] }) }))) : mains, runs = picked.map((each, at) => ({ ...each, unit: docs[at].unit })), settings = unique(mains.flatMap(({ curves, failed: lacking }) => [...curves.map(({ setting }) => setting), ...lacking.map(([, setting]) => setting)]));
    if (!current()) return;
    const named = settings.filter((each) => kept("on").includes(each)), on = new Set(named.length ? named : settings), several = runs.length > 1, mean = query.get("mean") === "1";
    const missed = [...kept("run").filter((each) => !every.some(({ name }) => name === each)), ...kept("on").filter((each) => !settings.includes(each))];
    const search = T.selection(index, query), pins = new Set(T.pins()), wanted = (model) => { const known = index.modelOf.get(model); return !known || pins.has(model) || search.model(known); };
    const { lines, notes, meanable } = chosen(runs, docs, on, mean, metric, wanted), title = `Training: ${several ? count(runs.length, "run") : runs[0].label}`;
    const top = [E("h1", {}, T.name(title)), boxes("Runs", "run", every, new Set(runs.map(({ name }) => name))), boxes("Settings", "on", settings.map((name) => ({ name })), on),
      E("div", { class: "controls" }, T.models.finder(query), metrics.length > 1 ? T.choose("Metric", "metric", [{ value: "", text: "main" }, ...metrics], metric || "") : null,
        meanable ? E("label", { class: "check" }, E("input", { type: "checkbox", id: "mean", checked: mean, onchange: (event) => T.change({ mean: event.target.checked ? "1" : null }) }), "Mean of the settings") : null),
      ...(missed.length ? [E("p", { class: "problem" }, `Not here: ${missed.join(", ")}`)] : [])].filter(Boolean), lacking = failed(runs, docs, on);
    if (!lines.length) { main.replaceChildren(...top, E("p", {}, `No checkpoint${search.any ? " that the search selects" : ""} has a result on these settings.`), ...[lacking].filter(Boolean)); return; }
    const checkpoints = unique(lines.flatMap((line) => line.points.map(({ step }) => `${line.run.name}\n${step}`))).length;
    const { legend, plot } = drawn(title, lines, styles(index, lines), several), note = `${count(checkpoints, "checkpoint")}; bars are intervals of 95 % over samples; the best checkpoint of each line is outlined.`;
    T.shownPlot = plot;
    main.replaceChildren(...top, T.exports("training", { title: "Checkpoints", svg: plot.svg, rows: () => [["run", "model", lines[0].run.unit, "eval_setting", "metric", "value"], ...lines.flatMap((line) => line.points.map((each) => [line.run.name, each.model, each.step, line.name, line.metric, { ...T.measured(each.raw, line.unit), low: T.exact(line, each.low), high: T.exact(line, each.high), n: each.n ?? NaN }]))] }),
      plot.box, T.legend(legend), E("p", { class: "note", "aria-live": "polite" }, [note, ...notes, ...(lines.reduce((sum, each) => sum + each.points.length, 0) > T.BARS ? [`Bars are drawn where at most ${T.BARS} points are in view: zoom in.`] : [])].join(" ")), ...[lacking].filter(Boolean), ...[changed(chosen(runs, docs, on, false, metric, wanted).lines, several, query, current)].filter(Boolean), table(lines, several));
    plot.paint();
  };
})();
