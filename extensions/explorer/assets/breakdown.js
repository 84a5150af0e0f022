"use strict";
/* What is behind the number of an evaluation: its worst classes, slices and groups, and its calibration. */
(() => {
  const E = T.element, FEW = 8, SERVED = document.documentElement.dataset.documents === "json";
  const SIZE = { width: 420, height: 300, left: 52, right: 12, top: 10, bottom: 42 };

  /* Why samples, or what is computed of them, cannot be shown, and what adds them. */
  T.lacking = (setting, what = "samples") => (SERVED ? `The store has no ${what} of ${setting}.` : `These pages have no ${what} of ${setting}; testbed site --samples ${/^[\w.@/+-]+$/.test(setting) ? setting : `'${setting}'`} adds them.`);

  const shown = (of, value) => T.numbers.bare(value, of.unit), spread = (of, [, , , low, high]) => T.numbers.ends(low, high, of.unit), rate = (value) => T.numbers.bare(value, T.numbers.FRACTION);
  /* The samples of a group, the wrong ones if samples are right or wrong; null if the page cannot filter by it. */
  function samplesOf(cell, of, name, meta) {
    if (!meta) return null;
    const where = of.by === "class" ? (meta.classes.includes(name) ? { class: name } : null) : { slice: T.quoted(`${of.by}=${name}`) };
    return where && T.link("samples", [cell.setting], { model: cell.model, ...where, ...(of.binary ? { result: "wrong" } : {}) });
  }
  function groups(cell, of, meta) {
    const body = E("div", {}), more = of.worst.length > FEW ? E("button", { type: "button", "aria-expanded": "false", onclick: () => show(body.dataset.all !== "1") }, "") : null;
    const kind = of.by === "class" ? ["classes", "class"] : of.by === "group" ? ["groups", "group"] : [`groups by ${of.by}`, of.by];
    function show(all) {
      const rows = all ? of.worst : of.worst.slice(0, FEW);
      body.dataset.all = all ? "1" : "0";
      body.replaceChildren(T.table({ id: `worst-${of.by}`, caption: `Worst ${kind[0]}`, count: rows.length,
        columns: [{ key: "group", label: kind[1], heading: true }, { key: "n", label: "n", number: true }, { key: "value", label: `${of.score}${of.unit === T.numbers.FRACTION ? ", %" : ""}`, number: true }, { key: "interval", label: "95 %", number: true }],
        rowAt: (at) => { const [name, n, value] = rows[at], href = samplesOf(cell, of, name, meta); return { cells: [{ text: href ? E("a", { href }, T.name(name)) : T.name(name) }, n.toLocaleString("en"), shown(of, value), spread(of, rows[at])] }; } }));
      if (more) { more.textContent = all ? `The worst ${FEW} only` : `The worst ${of.worst.length.toLocaleString("en")} of ${of.count.toLocaleString("en")}`; more.setAttribute("aria-expanded", String(all)); }
    }
    show(false);
    return E("section", { class: "panel" }, E("h2", {}, "Worst ", ...(of.by === "class" || of.by === "group" ? [kind[0]] : ["groups by ", T.name(of.by)])), body, more,
      E("p", { class: "note" }, `mean of the ${of.count.toLocaleString("en")}: ${shown(of, of.balanced)}; best: ${of.best[0]} ${shown(of, of.best[2])}; gap ${shown(of, of.gap)}${of.unit === T.numbers.FRACTION ? " points" : ""}. Intervals are of single groups, as in testbed groups.`));
  }
  /* Accuracy by confidence; a larger point has more samples. */
  function diagram({ bins, n, error }) {
    const { width, height, left, right, top, bottom } = SIZE, x = (v) => left + v * (width - left - right), y = (v) => height - bottom - v * (height - top - bottom);
    const line = (x1, y1, x2, y2, attributes) => E("line", { x1: x(x1), y1: y(y1), x2: x(x2), y2: y(y2), ...attributes }), text = (said, attributes) => E("text", attributes, said);
    const root = E("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Reliability diagram: accuracy by confidence in ${bins.length} bins; expected calibration error ${rate(error)} %`, "font-size": 13, "font-family": "Helvetica, Arial, sans-serif" });
    for (const v of [0, 0.25, 0.5, 0.75, 1]) root.append(line(0, v, 1, v, { class: "grid" }), text(String(100 * v), { x: left - 8, y: y(v) + 4, "text-anchor": "end" }), text(String(100 * v), { x: x(v), y: height - bottom + 18, "text-anchor": "middle" }));
    root.append(line(0, 0, 1, 1, { class: "black", "stroke-dasharray": "5 4" }), text("confidence, %", { x: x(0.5), y: height - 6, "text-anchor": "middle" }), text("accuracy, %", { transform: `translate(13 ${y(0.5)}) rotate(-90)`, "text-anchor": "middle" }));
    root.append(E("polyline", { class: "accent", points: bins.map((each) => `${x(each.confidence).toFixed(1)},${y(each.accuracy).toFixed(1)}`).join(" "), fill: "none", "stroke-width": 1.5 }));
    for (const each of bins) {
      root.append(line(each.confidence, each.low, each.confidence, each.high, { class: "accent" }), E("circle", { class: "accent", cx: x(each.confidence), cy: y(each.accuracy), r: 2 + 8 * Math.sqrt(each.n / n) },
        E("title", {}, `confidence ${rate(each.confidence)} %, accuracy ${rate(each.accuracy)} %, ${each.n.toLocaleString("en")} samples`)));
    }
    return root;
  }
  function calibration(of) {
    return E("section", { class: "panel", id: "reliability" }, E("h2", {}, "Calibration"), E("p", {}, "Expected calibration error: ", E("strong", {}, `${rate(of.error)} %`), ` (${of.bins.length} of 15 bins have samples)`), E("div", { class: "curves" }, diagram(of)),
      E("p", { class: "note" }, "On the dashed line, a model is as often right as it is confident. Bars: 95 %, Wilson; larger points have more samples."),
      E("details", {}, E("summary", {}, "The bins as a table"), T.table({ id: "bins", caption: "Accuracy by confidence", count: of.bins.length, columns: [{ key: "confidence", label: "confidence, %", heading: true }, { key: "accuracy", label: "accuracy, %", number: true }, { key: "interval", label: "95 %", number: true }, { key: "n", label: "n", number: true }],
        rowAt: (at) => { const each = of.bins[at]; return { cells: [rate(each.confidence), rate(each.accuracy), T.numbers.ends(each.low, each.high, T.numbers.FRACTION), each.n.toLocaleString("en")] }; } })));
  }
  /* The panels of an evaluation; empty if it has no scores of samples. */
  T.breakdown = async function (cell, sampled) {
    const [found, meta] = await Promise.all([T.find(`breakdown/${cell.id}`), sampled ? T.samples.setting(cell.setting).catch(() => null) : null]);
    if (!found && !SERVED && cell.logits && cell.right) return [E("p", { class: "note panel" }, "Worst classes and calibration are not in these pages, which have too many evaluations; testbed serve shows them.")];
    return found ? [...found.groups.map((of) => groups(cell, of, meta)), ...(found.reliability ? [calibration(found.reliability)] : [])] : [];
  };
})();
