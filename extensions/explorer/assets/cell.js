"use strict";
/* An evaluation: its numbers, their inputs, and how to reproduce it. The
   difference between two evaluations. The confusions of one. */
(() => {
  const E = T.element, PER_DOCUMENT = 16;

  async function cell(id) {
    const found = ((await T.find(`cells/${Math.floor(id / PER_DOCUMENT)}`)) || {})[String(id)];
    if (!found) throw new Error(`There is no evaluation ${id} here`);
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
      E("p", { class: "note" }, [high > low ? `95 %: ${number(low, unit)} – ${number(high, unit)}` : null, n === null ? null : `${n.toLocaleString("en")} samples`].filter(Boolean).join("; ")),
      ...of.published.filter(([metric]) => metric === name).map(([, line]) => E("p", { class: "beside" }, line)),
      samplesLink(of, sampled, found), unread(of, sampled));
  }
  function content(of, sampled, asked) {
    const overall = of.metrics.filter(([, slice]) => slice === "overall"), slices = of.metrics.length - overall.length + of.moreMetrics;
    const other = E("input", { id: "other-evaluation", type: "number", min: 1, size: 8, value: T.state().query.get("other") || (of.history.find(([id]) => id !== of.id) || [""])[0], onchange: (event) => T.change({ other: event.target.value || null }) });
    return [
      E("p", { class: "note" },
        sampled ? [E("a", { href: T.link("samples", [of.setting], { model: of.model }) }, "Samples"), of.logits ? ", " : ". "] : "", of.logits ? E("a", { href: T.link("confusion", [of.id]) }, "confusions") : "", ` Status: ${of.status}${of.error ? ` (${of.error})` : ""}.`),
      headline(of, sampled, asked),
      E("h2", {}, "Metrics"),
      T.table({ id: "metrics", caption: "Metrics of all samples", count: overall.length, columns: [{ key: "metric", label: "metric", heading: true }, { key: "value", label: "value", number: true }, { key: "interval", label: "95 %", number: true }, { key: "n", label: "n", number: true }, { key: "unit", label: "unit" }, { key: "better", label: "better" }],
        rowAt: (at) => {
          const [name, , value, , n, unit, low, high, better] = overall[at];
          return { cells: [{ text: T.name(name) }, number(value, unit), high > low ? `${number(low, unit)} – ${number(high, unit)}` : "–", n === null ? "–" : n.toLocaleString("en"), unit === "fraction" ? "" : unit, better || "unknown"] };
        } }),
      slices ? E("p", { class: "note" }, `${slices} more for slices, such as classes: testbed show … --slices`) : null,
      of.published.length ? E("ul", { id: "published" }, ...of.published.map(([, line]) => E("li", {}, line))) : null,
      E("h2", {}, "Reproduce"), E("pre", { tabindex: 0 }, E("code", {}, of.command)), E("p", { class: "note" }, "Use the same plug-ins, data root and image options, if any."),
      E("h2", {}, "Computed from"),
      list([["samples", of.n === null ? null : `${of.n.toLocaleString("en")}${of.limit === null ? "" : ` (at most ${of.limit}, evenly spread)`}`], ["precision", of.dtype], ["weights", of.random ? "random" : of.weights], ["data", typeof of.identity.samples === "string" ? of.identity.samples : null],
        ["resize and crop", of.preprocessing.transform ? step(of.preprocessing.transform) : null], ["normalization", of.preprocessing.normalization ? step(of.preprocessing.normalization) : null], ["begun", of.begun], ["completed", of.completed],
        ["outputs of", of.derivedFrom ? E("a", { href: T.link("cell", [of.derivedFrom]) }, `evaluation ${of.derivedFrom}`) : null], ["environment", flat(of.environment)], ["fingerprint", of.fingerprint]]),
      E("details", {}, E("summary", {}, "The whole identity"), E("pre", { tabindex: 0 }, JSON.stringify(of.identity, null, 1))),
      E("h2", {}, "History"), E("ul", {}, ...of.history.map(([id, status, begun, hidden]) => E("li", {}, id === of.id ? `evaluation ${id} (this one)` : E("a", { href: T.link("cell", [id]) }, `evaluation ${id}`), `: ${status}, ${begun}${hidden ? ", replaced" : ""}`, id === of.id ? null : [", ", E("a", { href: T.link("difference", [of.id, id]) }, "difference")]))),
      E("form", { class: "controls", onsubmit: (event) => { event.preventDefault(); if (other.value) location.hash = T.link("difference", [of.id, other.value]); } }, E("label", {}, "Difference to evaluation", other), E("button", { id: "difference-go" }, "Show")),
    ].filter(Boolean);
  }
  const named = (of) => [E("a", { href: T.link("model", [of.model]) }, T.name(of.model)), " on ", E("a", { href: T.link("setting", [of.setting]) }, T.name(of.setting))];
  /* Whether this explorer has the samples of a setting. */
  const hasSamples = async (of) => ((await T.index()).settings.find((each) => each.name === of.setting) || {}).samples;
  async function cellView(state, main, current) {
    const of = await cell(Number(state.parts[0])), sampled = await hasSamples(of);
    if (current()) main.replaceChildren(E("h1", {}, `Evaluation ${of.id}`), E("p", {}, ...named(of)), ...content(of, sampled));
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
    const part = (heading, found, none) => [E("h2", {}, heading), found.length ? T.table({ id: heading.split(" ").pop(), caption: heading, count: found.length, columns: [{ key: "where", label: "part", heading: true }, { key: "a", label: `evaluation ${a.id}` }, { key: "b", label: `evaluation ${b.id}` }],
      rowAt: (at) => ({ cells: [{ text: T.name(found[at][0]) }, { text: E("code", {}, told(found[at][1])) }, { text: E("code", {}, told(found[at][2])) }] }) }) : E("p", {}, none)];
    const named = (of) => [E("a", { href: T.link("cell", [of.id]) }, `evaluation ${of.id}`), ": ", T.name(of.model), " on ", T.name(of.setting)];
    main.replaceChildren(E("h1", {}, `Evaluation ${a.id} and ${b.id}`), E("ul", {}, E("li", {}, ...named(a)), E("li", {}, ...named(b))), E("p", {}, E("a", { href: T.link("compare", [a.id, b.id]) }, "Compare their samples")),
      ...part("Differences in the identity", identity, "None: both have the same identity."), ...part("Differences in files and versions", record, "None recorded."), ...part("Differences in the environment", environment, "Nothing."),
      E("h2", {}, "Differences in the numbers"),
      T.table({ id: "numbers", caption: "Metrics of both", count: metrics.length, columns: [{ key: "metric", label: "metric", heading: true }, { key: "a", label: `evaluation ${a.id}`, number: true }, { key: "b", label: `evaluation ${b.id}`, number: true }, { key: "d", label: "difference", number: true }],
        rowAt: (at) => { const [name, slice, value, , , unit] = metrics[at], other = values.get(`${name} ${slice}`), gap = value === null || other === null ? null : other - value; return { cells: [{ text: T.name(name) }, number(value, unit), number(other, unit), gap === null ? "–" : T.numbers.difference(gap, unit)] }; } }));
  }
  async function confusionView(state, main, current) {
    const of = await cell(Number(state.parts[0])), found = await T.find(`confusion/${of.id}`, "There are no confusions of this evaluation here: its targets are not single classes, or these are files without a server");
    if (!current()) return;
    const totals = found.counts.map((row) => row.reduce((sum, each) => sum + each, 0));
    main.replaceChildren(E("h1", {}, "Confusions"), E("p", { class: "note" }, E("a", { href: T.link("cell", [of.id]) }, `Evaluation ${of.id}`), ": ", T.name(found.model), " on ", T.name(found.eval_setting), `. Rows are true classes, columns predicted ones.${found.left_out ? ` The ${found.classes.length} classes with the most mistakes; ${found.left_out} others.` : ""}`),
      T.exports("confusions", { rows: () => [["true", ...found.classes], ...found.classes.map((name, at) => [name, ...found.counts[at]])] }),
      T.table({ id: "confusions", caption: "Counts of predicted classes for each true class", count: found.classes.length, columns: [{ key: "true", label: "true class", heading: true }, ...found.classes.map((name, at) => ({ key: `c${at}`, label: name, number: true }))],
        rowAt: (at) => ({ cells: [{ text: T.name(found.classes[at]) }, ...found.counts[at].map((count, other) => ({ text: String(count), class: !count ? "zero" : other === at ? "right" : count / totals[at] > 0.05 ? "wrong much" : "wrong" }))] }) }));
  }
  T.cell = { find: cell, content, hasSamples, named };
  T.view("cell", { title: (state) => `Evaluation ${state.parts[0]}`, render: cellView });
  T.view("difference", { title: () => "Difference", render: differenceView });
  T.view("confusion", { title: () => "Confusions", render: confusionView });
})();
