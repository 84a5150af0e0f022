"use strict";
/* An evaluation: its numbers, their inputs, and how to reproduce it. The
   difference between two evaluations. The confusions of one. */
(() => {
  const E = T.element, PER_DOCUMENT = 16, RIVALS = 3, ARROWS = { higher: " ↑", lower: " ↓" };

  async function cell(id) {
    const found = ((await T.find(`cells/${Math.floor(id / PER_DOCUMENT)}`)) || {})[String(id)];
    if (!found) throw new Error("There is no such evaluation here");
    return found;
  }
  const told = (value) => (value === null || value === undefined ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));
  const number = (value, unit) => T.numbers.meanScore(value, unit);
  function list(pairs) {
    return E("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== null && value !== undefined && value !== "").flatMap(([name, value]) => [E("dt", {}, name), E("dd", {}, value.nodeType ? value : told(value))]));
  }
  /* A preprocessing step by its parameters. */
  const step = (given) => (given && given["!spec"] ? `${given.type}: ${Object.entries(given["!spec"]).filter(([, value]) => value !== null).map(([key, value]) => `${key} ${Array.isArray(value) ? value.map((each) => (typeof each === "number" ? Number(each.toPrecision(4)) : told(each))).join(" ") : told(value)}`).join(", ")}` : told(given));
  const flat = (value) => Object.entries(value || {}).map(([key, each]) => `${key} ${typeof each === "object" && each !== null && !Array.isArray(each) ? `(${flat(each)})` : told(each)}`).join(", ");

  /* The samples behind a value: the wrong ones, or the worst first. */
  function samplesLink(of, sampled, [metric, , value, , n, , , , better]) {
    if (!sampled) return null;
    const at = (query) => T.link("samples", [of.setting], { model: of.model, ...query });
    if (of.right === null) return E("a", { href: at({ sort: better === "lower" ? "high" : "low" }) }, "Samples, the worst first");
    const wrong = metric === of.right && value !== null && n !== null ? Math.round(n * (1 - value)) : null;
    return E("a", { href: at({ result: "wrong" }), id: "wrong-samples" }, wrong === null ? "Wrong samples" : `${wrong.toLocaleString("en")} wrong ${wrong === 1 ? "sample" : "samples"} of ${n.toLocaleString("en")}`);
  }
  /* The samples that could not be read, by name. */
  function unread(of, sampled) {
    const { count, first } = of.unread;
    if (!count) return null;
    const shown = (at, id) => (sampled ? E("a", { href: T.link("sample", [of.setting, id], { at }) }, id) : id);
    return E("div", { id: "unread" }, E("p", {}, `${count.toLocaleString("en")} ${count === 1 ? "sample" : "samples"} could not be read:`),
      E("ul", {}, ...first.map(([at, id, reason]) => E("li", {}, shown(at, id), `: ${reason}`)), count > first.length ? E("li", {}, `and ${(count - first.length).toLocaleString("en")} more`) : null));
  }
  /* The requested number, its interval, published values, and its samples. */
  function headline(of, sampled, asked) {
    const found = of.metrics.find(([name, slice]) => slice === "overall" && name === asked) || of.metrics.find(([name, slice]) => slice === "overall" && name === of.main);
    if (!found) return null;
    const [name, , value, , n, unit, low, high] = found;
    return E("div", { id: "headline" }, E("p", { class: "big" }, E("strong", {}, number(value, unit)), " ", E("span", {}, `${name}${unit === "fraction" || !unit ? "" : `, ${unit}`}`)),
      E("p", { class: "note" }, [high > low ? `95 %: ${T.numbers.ends(low, high, unit)}` : null, n === null ? null : `${n.toLocaleString("en")} samples`].filter(Boolean).join("; ")),
      ...of.published.filter(([metric]) => metric === name).map(([, line]) => E("p", { class: "beside" }, line)),
      samplesLink(of, sampled, found), unread(of, sampled));
  }
  const panel = (heading, ...children) => E("section", { class: "panel" }, E("h2", {}, heading), ...children);
  /* The time of a run of the same cell; those of the same minute are numbered. */
  function runName(history, id) {
    const [, , begun] = history.find(([each]) => each === id), same = history.filter(([, , each]) => each === begun).map(([each]) => each).sort((a, b) => a - b);
    return `run of ${begun}${same.length > 1 ? ` (${same.indexOf(id) + 1} of ${same.length})` : ""}`;
  }
  /* The evaluations of other models on the same setting: pinned ones first, then by value. */
  async function rivals(of) {
    const index = await T.index(), place = index.columnOf.get(of.setting);
    if (place === undefined) return [];
    const column = await T.column(place), pinned = new Set(T.pins()), way = T.direction(column) || 1;
    return index.models.filter(({ at, name }) => column.id[at] && name !== of.model).sort((a, b) => Number(pinned.has(b.name)) - Number(pinned.has(a.name)) || way * (column.value[b.at] - column.value[a.at]) || a.at - b.at).map(({ at, name }) => ({ id: column.id[at], name }));
  }
  /* The samples on which this model or another one is right alone; or why they are not here. */
  function against(of, sampled, others) {
    if (!sampled) return of.logits || of.right ? E("p", { class: "note", id: "no-samples" }, T.lacking(of.setting)) : null;
    if (!others.length) return null;
    return E("p", { id: "against" }, of.right ? "Samples where only one is right, against " : "Samples where they differ, against ", ...others.slice(0, RIVALS).flatMap((each, at) => [at ? ", " : "", E("a", { href: T.link("compare", [of.id, each.id], { cell: "one" }) }, T.name(each.name))]), ".");
  }
  /* A list of evaluations to compare with: earlier runs, and other models. */
  function comparing(of, others) {
    const runs = of.history.filter(([id]) => id !== of.id), chosen = T.state().query.get("other");
    if (of.status !== "complete" || (!runs.length && !others.length)) return null;
    const option = (id, text) => E("option", { value: id, selected: String(id) === chosen }, text);
    const select = E("select", { id: "other-evaluation", onchange: (event) => T.change({ other: event.target.value }) }, ...(runs.length ? [E("optgroup", { label: "This model and setting" }, ...runs.map(([id]) => option(id, runName(of.history, id))))] : []), ...(others.length ? [E("optgroup", { label: `On ${of.setting}` }, ...others.map((each) => option(each.id, each.name)))] : []));
    const go = (view) => () => { location.hash = T.link(view, [of.id, select.value]); };
    return E("div", { class: "controls" }, E("label", {}, "Compare with", select), E("button", { type: "button", id: "difference-go", onclick: go("difference") }, "What differs"), E("button", { type: "button", id: "samples-go", onclick: go("compare") }, "Samples"));
  }
  /* The numbers of an evaluation and what is behind them, in panels. */
  async function content(of, sampled, asked) {
    const overall = of.metrics.filter(([, slice]) => slice === "overall"), slices = of.metrics.length - overall.length + of.moreMetrics, [others, behind] = await Promise.all([rivals(of), T.breakdown(of, sampled)]);
    const links = [sampled ? E("a", { href: T.link("samples", [of.setting], { model: of.model }) }, "Samples") : null, of.logits ? E("a", { href: T.link("confusion", [of.id]) }, "Confusions") : null].filter(Boolean);
    const metrics = T.table({ id: "metrics", caption: "Metrics of all samples", count: overall.length, columns: [{ key: "metric", label: "metric", heading: true }, { key: "value", label: "value", number: true }, { key: "interval", label: "95 %", number: true }, { key: "n", label: "n", number: true }],
      rowAt: (at) => {
        const [name, , value, , n, unit, low, high, better] = overall[at];
        return { cells: [{ text: E("span", {}, T.name(name), ARROWS[better] || ""), title: better === "neither" || !better ? "neither direction is known to be better" : `${better} is better` }, `${number(value, unit)}${unit && unit !== "fraction" ? ` ${unit}` : ""}`, high > low ? T.numbers.ends(low, high, unit) : "–", n === null ? "–" : n.toLocaleString("en")] };
      } });
    return [
      headline(of, sampled, asked), against(of, sampled, others),
      E("p", { class: "note" }, ...links.flatMap((each) => [each, ". "]), of.status === "complete" ? "" : `Status: ${of.status}${of.error ? ` (${of.error})` : ""}.`), comparing(of, others),
      E("div", { class: "panels" }, !overall.length ? null : panel("Metrics", metrics, E("p", { class: "note" }, "↑ higher is better, ↓ lower is better"), slices ? E("p", { class: "note" }, `${slices} more for slices, such as classes: testbed show … --slices`) : null, of.published.length ? E("ul", { id: "published" }, ...of.published.map(([, line]) => E("li", {}, line))) : null),
        ...behind,
        panel("Reproduce", E("pre", { tabindex: 0 }, E("code", {}, of.command)), E("p", { class: "note" }, "Use the same plug-ins, data root and image options, if any.")),
        panel("Computed from", list([["samples", of.n === null ? null : `${of.n.toLocaleString("en")}${of.limit === null ? "" : ` (at most ${of.limit}, evenly spread)`}`], ["precision", of.dtype], ["weights", of.random ? "random" : of.weights], ["data", typeof of.identity.samples === "string" ? of.identity.samples : null],
          ["resize and crop", of.preprocessing.transform ? step(of.preprocessing.transform) : null], ["normalization", of.preprocessing.normalization ? step(of.preprocessing.normalization) : null], ["begun", of.begun], ["completed", of.completed],
          ["outputs of", of.derivedFrom ? E("a", { href: T.link("cell", [of.derivedFrom]) }, of.derivedName) : null], ["environment", flat(of.environment)], ["fingerprint", of.fingerprint]]),
        E("details", {}, E("summary", {}, "The whole identity"), E("pre", { tabindex: 0 }, JSON.stringify(of.identity, null, 1)))),
        panel("History", E("ul", {}, ...of.history.map(([id, status, , hidden]) => E("li", {}, id === of.id ? `${runName(of.history, id)} (this one)` : E("a", { href: T.link("cell", [id]) }, runName(of.history, id)), `: ${status}${hidden ? ", replaced" : ""}`, id === of.id ? null : [", ", E("a", { href: T.link("difference", [of.id, id]) }, "difference")]))))),
    ].filter(Boolean);
  }
  const named = (of) => [E("a", { href: T.link("model", [of.model]) }, T.name(of.model)), " on ", E("a", { href: T.link("setting", [of.setting]) }, T.name(of.setting))];
  /* Whether this explorer has the samples of a setting. */
  const hasSamples = async (of) => ((await T.index()).settings.find((each) => each.name === of.setting) || {}).samples;
  async function cellView(state, main, current) {
    const of = await cell(Number(state.parts[0])), sampled = await hasSamples(of), shown = await content(of, sampled);
    if (!current()) return;
    document.title = `${of.model} on ${of.setting} – testbed`;
    main.replaceChildren(E("h1", {}, ...named(of)), ...shown);
  }

  // Differences ------------------------------------------------------------------------------------------------------

  function* changes(a, b, where) {
    if (JSON.stringify(a) === JSON.stringify(b) || (told(a) === "–" && told(b) === "–")) return;
    const both = [a, b].every((each) => each !== null && typeof each === "object" && !Array.isArray(each));
    if (!both) { yield [where.join(" / "), a, b]; return; }
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) yield* changes(a[key], b[key], [...where, key]);
  }
  async function differenceView(state, main, current) {
    const [a, b] = await Promise.all(state.parts.slice(0, 2).map((id) => cell(Number(id))));
    if (!current()) return;
    const identity = [...changes(a.identity, b.identity, [])], record = [...changes(a.record || {}, b.record || {}, [])], environment = [...changes(a.environment || {}, b.environment || {}, [])];
    const values = new Map(b.metrics.map(([name, slice, value]) => [`${name} ${slice}`, value])), metrics = a.metrics.filter(([name, slice]) => slice === "overall" && values.has(`${name} ${slice}`));
    /* The two by what they do not share: the model, the setting, or the time of the run. */
    const apart = a.model !== b.model ? (of) => of.model : a.setting !== b.setting ? (of) => of.setting : (of) => runName(a.history, of.id), names = [apart(a), apart(b)];
    const part = (heading, id, found, none) => E("section", { class: "panel" }, E("h2", {}, heading), found.length ? T.table({ id, caption: heading, count: found.length, columns: [{ key: "where", label: "part", heading: true }, { key: "a", label: names[0] }, { key: "b", label: names[1] }],
      rowAt: (at) => ({ cells: [{ text: T.name(found[at][0]) }, { text: E("code", {}, told(found[at][1])) }, { text: E("code", {}, told(found[at][2])) }] }) }) : E("p", {}, none));
    const whole = (of) => [E("a", { href: T.link("cell", [of.id]) }, T.name(of.model), " on ", T.name(of.setting)), `, ${runName(of.history, of.id)}`];
    document.title = `${names.join(" and ")} – testbed`;
    main.replaceChildren(E("h1", {}, ...(a.model === b.model && a.setting === b.setting ? ["Two runs of ", T.name(a.model), " on ", T.name(a.setting)] : [T.name(names[0]), " and ", T.name(names[1])])), E("ul", {}, E("li", {}, ...whole(a)), E("li", {}, ...whole(b))), E("p", {}, E("a", { href: T.link("compare", [a.id, b.id]) }, "Compare their samples, with the test of the difference")),
      E("div", { class: "panels" }, E("section", { class: "panel" }, E("h2", {}, "Differences in the numbers"),
        T.table({ id: "numbers", caption: "Metrics of both", count: metrics.length, columns: [{ key: "metric", label: "metric", heading: true }, { key: "a", label: names[0], number: true }, { key: "b", label: names[1], number: true }, { key: "d", label: "difference", number: true }],
          rowAt: (at) => { const [name, slice, value, , , unit] = metrics[at], other = values.get(`${name} ${slice}`), gap = value === null || other === null ? null : other - value; return { cells: [{ text: T.name(name) }, number(value, unit), number(other, unit), gap === null ? "–" : T.numbers.difference(gap, unit)] }; } })),
      part("Differences in the identity", "identity", identity, "None: both have the same identity."), part("Differences in files and versions", "versions", record, "None recorded."), part("Differences in the environment", "environment", environment, "Nothing.")));
  }
  /* True × predicted classes; a number leads to its samples. */
  async function confusionView(state, main, current) {
    const of = await cell(Number(state.parts[0])), found = await T.find(`confusion/${of.id}`, `There are no confusions of ${of.model} on ${of.setting} here: its targets are not single classes, or the store has more evaluations than are written with them`);
    const meta = (await hasSamples(of)) ? await T.samples.setting(of.setting).catch(() => null) : null;
    if (!current()) return;
    document.title = `Confusions of ${of.model} on ${of.setting} – testbed`;
    const totals = found.samples, share = (value) => T.numbers.bare(value, T.numbers.FRACTION), known = (name) => meta && meta.classes.includes(name);
    const link = (count, at, other) => (count && known(found.classes[at]) && known(found.classes[other]) ? E("a", { href: T.link("samples", [of.setting], { model: of.model, class: found.classes[at], predicted: found.classes[other] }) }, String(count)) : String(count));
    const row = (at) => [{ text: T.name(found.classes[at]) }, totals[at].toLocaleString("en"), share(found.recall[at]), share(found.precision[at]), ...found.counts[at].map((count, other) => ({ text: link(count, at, other), title: `${found.classes[at]} predicted as ${found.classes[other]}`, class: !count ? "zero" : other === at ? "right" : count / totals[at] > 0.05 ? "wrong much" : "wrong" }))];
    main.replaceChildren(E("h1", {}, "Confusions of ", ...named(of)), E("p", { class: "note" }, E("a", { href: T.link("cell", [of.id]) }, "The evaluation"), `. Rows are true classes, columns predicted ones${meta ? "; click a number to see its samples" : ""}. Accuracy of a class (its recall): the share of its samples that are right; precision: of its predictions.${found.left_out ? ` The ${found.classes.length} classes with the most mistakes; ${found.left_out} others, which count in accuracy and precision.` : ""}`),
      ...(meta ? [] : [E("p", { class: "note" }, T.lacking(of.setting))]),
      T.exports("confusions", { title: `Confusions of ${of.model} on ${of.setting}`, rows: () => [["true", "samples", "recall", "precision", ...found.classes], ...found.classes.map((name, at) => [name, totals[at], ...[found.recall[at], found.precision[at]].map((value) => T.measured(value ?? NaN, T.numbers.FRACTION)), ...found.counts[at]])] }),
      T.table({ id: "confusions", caption: "Counts of predicted classes for each true class", count: found.classes.length, columns: [{ key: "true", label: "true class", heading: true }, { key: "n", label: "n", number: true }, { key: "recall", label: "accuracy (recall), %", number: true }, { key: "precision", label: "precision, %", number: true }, ...found.classes.map((name, at) => ({ key: `c${at}`, label: name, number: true }))],
        rowAt: (at) => ({ cells: row(at) }) }));
  }
  T.cell = { find: cell, content, hasSamples, named };
  T.view("cell", { title: () => "Evaluation", render: cellView });
  T.view("difference", { title: () => "Difference", render: differenceView });
  T.view("confusion", { title: () => "Confusions", render: confusionView });
})();
