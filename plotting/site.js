"use strict";
/* The results page: one state in the address, one function that draws it. Needs data.js and nothing else. */
(() => {
  const DATA = window.TESTBED;
  const MODELS = DATA.models, COLUMNS = DATA.columns;
  const main = document.getElementById("main"), tip = document.getElementById("tip");
  const columnOf = new Map(COLUMNS.map((column, index) => [column.name, index]));
  const modelOf = new Map(MODELS.map((model, index) => [model.name, index]));
  const value = (model, column) => DATA.values[model][column];
  const typeOf = (model) => MODELS[model].type || "not stated";
  const TYPES = [...new Set(MODELS.map((_, index) => typeOf(index)))].sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
  function order(type) { const place = DATA.types.findIndex((each) => each.name === type); return place < 0 ? 99 : place; }
  const style = (type) => DATA.types.find((each) => each.name === type) || { colour: "#777777", symbol: "circle" };
  const percent = (number) => (number === null || number === undefined ? "–" : number.toFixed(2));
  const points = (number) => (number > 0 ? "+" : "") + number.toFixed(2);

  // Address ----------------------------------------------------------------------------------------------------------

  function read() {
    const [path, query] = location.hash.replace(/^#/, "").split("?");
    const parts = path.split("/").filter(Boolean).map(decodeURIComponent);
    return { view: parts[0] || "plot", name: parts.slice(1).join("/"), query: new URLSearchParams(query || "") };
  }
  function link(view, name, query) {
    const text = new URLSearchParams(Object.entries(query || {}).filter(([, v]) => v !== "" && v !== null && v !== undefined));
    return "#/" + view + (name ? "/" + encodeURIComponent(name) : "") + ([...text].length ? "?" + text : "");
  }
  function change(changes) {
    const state = read(), query = Object.fromEntries(state.query);
    history.replaceState(null, "", link(state.view, state.name, { ...query, ...changes }));
    draw();
  }
  const first = (...names) => names.find((name) => columnOf.has(name)) || COLUMNS[0].name;
  function axes(query) {
    const x = query.get("x"), y = query.get("y"), scale = query.get("scale");
    return {
      x: columnOf.has(x) ? x : first("val"),
      y: columnOf.has(y) ? y : first("imagenetv2-matched-frequency-format-val", ...COLUMNS.slice(1).map((each) => each.name)),
      scale: ["linear", "logit", "probit"].includes(scale) ? scale : "logit",
      least: query.get("least") === null ? "" : query.get("least"),
      hidden: new Set((query.get("hide") || "").split("|").filter(Boolean)),
    };
  }

  // Elements ---------------------------------------------------------------------------------------------------------

  function element(name, attributes, ...children) {
    const svg = ["svg", "g", "line", "path", "text", "circle", "rect", "title"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, given] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), given);
      else if (given !== null && given !== undefined && given !== false) made.setAttribute(key, given === true ? "" : given);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  function choose(label, names, chosen, key) {
    const groups = new Map();
    for (const name of names) {
      const group = columnOf.has(name) ? COLUMNS[columnOf.get(name)].group : "";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(name);
    }
    const options = [...groups].map(([group, members]) => {
      const made = members.map((name) => element("option", { value: name, selected: name === chosen }, name));
      return group ? element("optgroup", { label: group }, ...made) : made;
    }).flat();
    return element("label", {}, label, element("select", { "data-key": key, onchange: (event) => change({ [key]: event.target.value }) }, ...options));
  }

  // Statistics -------------------------------------------------------------------------------------------------------

  const SCALES = {
    linear: [(p) => p / 100, (z) => 100 * z],
    logit: [(p) => Math.log(p / (100 - p)), (z) => 100 / (1 + Math.exp(-z))],
    probit: [(p) => quantile(p / 100), (z) => 100 * normal(z)],
  };
  /* The normal distribution (Press et al.'s fit of erfc) and its quantile (Acklam's), to six digits and more. */
  function normal(z) {
    const t = 1 / (1 + 0.5 * Math.abs(z) / Math.SQRT2), x = Math.abs(z) / Math.SQRT2;
    const terms = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
    const tail = t * Math.exp(-x * x + terms.reduceRight((sum, term) => sum * t + term, 0));
    return z >= 0 ? 1 - tail / 2 : tail / 2;
  }
  function quantile(p) {
    if (p <= 0) return -Infinity;
    if (p >= 1) return Infinity;
    const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
    const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572];
    const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
    const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416];
    const poly = (terms, x) => terms.reduce((sum, term) => sum * x + term, 0);
    if (p < 0.02425) { const q = Math.sqrt(-2 * Math.log(p)); return poly(c, q) / (poly(d, q) * q + 1); }
    if (p > 0.97575) return -quantile(1 - p);
    const q = p - 0.5, r = q * q;
    return (poly(a, r) * q) / (poly(b, r) * r + 1);
  }
  function fitted(model) {
    const name = MODELS[model].name.toLowerCase();
    const stated = MODELS.some((each) => each.type === DATA.standard);
    return (!stated || MODELS[model].type === DATA.standard) && !DATA.notFitted.some((word) => name.includes(word));
  }
  function fit(rows, scale) {
    const [to, from] = SCALES[scale];
    const used = rows.filter((row) => fitted(row.model)).map((row) => [to(row.x), to(row.y)]).filter(([x, y]) => isFinite(x) && isFinite(y));
    if (new Set(used.map(([x]) => x)).size < 2) return null;
    const mean = (list) => list.reduce((sum, each) => sum + each, 0) / list.length;
    const mx = mean(used.map(([x]) => x)), my = mean(used.map(([, y]) => y));
    let sxx = 0, sxy = 0, syy = 0;
    for (const [x, y] of used) { sxx += (x - mx) ** 2; sxy += (x - mx) * (y - my); syy += (y - my) ** 2; }
    const slope = sxy / sxx, intercept = my - slope * mx;
    return { slope, intercept, r: syy ? sxy / Math.sqrt(sxx * syy) : 0, n: used.length, predict: (x) => from(slope * to(x) + intercept) };
  }
  function leastOf(state) { return state.least === "" ? (state.x === "val" ? 55 : 0) : Number(state.least) || 0; }
  function rowsOf(state, all) {
    const cx = columnOf.get(state.x), cy = columnOf.get(state.y), least = leastOf(state);
    const rows = [];
    for (let model = 0; model < MODELS.length; model += 1) {
      const x = value(model, cx), y = value(model, cy);
      if (x === null || y === null || x < least) continue;
      if (!all && state.hidden.has(typeOf(model))) continue;
      rows.push({ model, x, y });
    }
    return rows;
  }
  /* Wilson's interval of a rate in percent. */
  function interval(p, n) {
    if (!n) return [p, p];
    const z2 = 1.959963985 ** 2, q = p / 100;
    const middle = q + z2 / (2 * n), half = Math.sqrt(z2 * (q * (1 - q) / n + z2 / (4 * n * n))), whole = 1 + z2 / n;
    return [100 * (middle - half) / whole, 100 * (middle + half) / whole];
  }

  // Plot -------------------------------------------------------------------------------------------------------------

  const PATHS = {
    circle: "M5 0A5 5 0 1 1 -5 0A5 5 0 1 1 5 0Z", square: "M-4.5 -4.5H4.5V4.5H-4.5Z", diamond: "M0 -6L6 0L0 6L-6 0Z",
    "triangle-up": "M0 -6L5.5 4.5H-5.5Z", cross: "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    x: "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z", star: "M0 -6.5L1.6 -2H6.2L2.6 1L4 6L0 3L-4 6L-2.6 1L-6.2 -2H-1.6Z",
    pentagon: "M0 -6L5.7 -1.9L3.5 4.9H-3.5L-5.7 -1.9Z", hexagon: "M5.5 0L2.7 4.8H-2.7L-5.5 0L-2.7 -4.8H2.7Z",
  };
  const ink = (type) => (style(type).colour === "#000000" ? "var(--text)" : style(type).colour);
  const mark = (type) => ({ d: PATHS[style(type).symbol] || PATHS.circle, style: `fill: ${ink(type)}` });
  function ticks(low, high, to) {
    const chosen = [];
    for (const step of [50, 20, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01]) {
      if (chosen.length >= 5) break;
      for (let number = 1; number < Math.round(100 / step); number += 1) {
        const tick = Math.round(number * step * 100) / 100, place = to(tick);
        if (place >= low && place <= high && chosen.every((each) => Math.abs(each.place - place) >= (high - low) / 9)) chosen.push({ tick, place });
      }
    }
    return chosen;
  }
  function types(state) {
    return element("fieldset", { class: "types" }, element("legend", { class: "hidden" }, "Model types"), ...TYPES.map((type) => element("label", {},
      element("input", { type: "checkbox", checked: !state.hidden.has(type), onchange: (event) => {
        const hidden = new Set(state.hidden);
        if (event.target.checked) hidden.delete(type); else hidden.add(type);
        change({ hide: [...hidden].join("|") });
      } }),
      element("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, element("path", mark(type))), type)));
  }
  function controls(state) {
    const names = COLUMNS.map((column) => column.name);
    return element("div", { class: "controls" }, choose("x", names, state.x, "x"), choose("y", names, state.y, "y"),
      choose("scale", ["logit", "probit", "linear"], state.scale, "scale"),
      element("label", {}, "x at least, %", element("input", { type: "number", min: 0, max: 100, step: 5, value: leastOf(state), style: "width: 5em", onchange: (event) => change({ least: event.target.value }) })),
      element("button", { type: "button", onclick: () => change({ x: state.y, y: state.x, least: "" }) }, "⇄ swap"));
  }
  function describe(row, state, line) {
    const ci = [[row.x, state.x], [row.y, state.y]].map(([p, name]) => {
      const [low, high] = interval(p, COLUMNS[columnOf.get(name)].n);
      return `${name}: ${percent(p)} %` + (high > low ? ` (${percent(low)} to ${percent(high)})` : "");
    });
    if (line) ci.push(`effective robustness: ${points(row.y - line.predict(row.x))} points`);
    return { title: MODELS[row.model].name, lines: [typeOf(row.model), ...ci] };
  }
  function show(said, x, y) {
    tip.replaceChildren(element("strong", {}, said.title), ...said.lines.map((line) => element("div", {}, line)));
    tip.hidden = false;
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 8)) + "px";
  }
  const hide = () => { tip.hidden = true; };

  function plotView(state) {
    const box = element("div", { class: "plot" });
    const note = element("p", { class: "note", "aria-live": "polite" });
    main.replaceChildren(controls(state), types(state), box, note);
    const rows = rowsOf(state), line = fit(rowsOf(state, true), state.scale), [to] = SCALES[state.scale];
    const placed = rows.map((row) => ({ ...row, px: to(row.x), py: to(row.y) })).filter((row) => isFinite(row.px) && isFinite(row.py));
    note.textContent = `${placed.length} models` + (line ? `; line through ${line.n} of ${DATA.standard.toLowerCase()}: slope ${line.slope.toFixed(3)}, intercept ${line.intercept.toFixed(3)}, r ${line.r.toFixed(3)}` : "; too few for a line") +
      (rows.length > placed.length ? `; ${rows.length - placed.length} at 0 % or 100 % have no place on this scale` : "");
    if (!placed.length) return;
    const width = Math.max(box.clientWidth, 280), height = Math.max(box.clientHeight, 320), left = 62, right = 14, top = 10, bottom = 50;
    const range = (list) => { const low = Math.min(...list), high = Math.max(...list), edge = (high - low) * 0.05 || 0.1; return [low - edge, high + edge]; };
    const [x0, x1] = range(placed.map((row) => row.px)), [y0, y1] = range(placed.map((row) => row.py));
    const sx = (v) => left + (v - x0) / (x1 - x0) * (width - left - right), sy = (v) => height - bottom - (v - y0) / (y1 - y0) * (height - top - bottom);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: 0, "aria-label": `${state.y} against ${state.x}; arrow keys go through the models, Enter opens one` });
    for (const { tick, place } of ticks(x0, x1, to)) svg.append(element("line", { class: "grid", x1: sx(place), x2: sx(place), y1: top, y2: height - bottom }), element("text", { x: sx(place), y: height - bottom + 18, "text-anchor": "middle" }, tick));
    for (const { tick, place } of ticks(y0, y1, to)) svg.append(element("line", { class: "grid", x1: left, x2: width - right, y1: sy(place), y2: sy(place) }), element("text", { x: left - 8, y: sy(place) + 4, "text-anchor": "end" }, tick));
    svg.append(element("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }), element("line", { class: "axis", x1: left, x2: left, y1: top, y2: height - bottom }),
      element("text", { x: (left + width - right) / 2, y: height - 10, "text-anchor": "middle" }, `${state.x} (%)`),
      element("text", { transform: `translate(15 ${(top + height - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, `${state.y} (%)`));
    const low = Math.max(x0, y0), high = Math.min(x1, y1);
    if (low < high) svg.append(element("line", { class: "same", x1: sx(low), x2: sx(high), y1: sy(low), y2: sy(high) }));
    if (line) {
      const clip = (x) => Math.min(Math.max(line.slope * x + line.intercept, y0), y1), steps = [...Array(61).keys()].map((step) => x0 + (x1 - x0) * step / 60);
      const inside = steps.filter((x) => { const y = line.slope * x + line.intercept; return y >= y0 && y <= y1; });
      if (inside.length) svg.append(element("path", { class: "fit", d: "M" + inside.map((x) => `${sx(x)} ${sy(clip(x))}`).join("L") }));
    }
    placed.sort((a, b) => order(typeOf(b.model)) - order(typeOf(a.model)) || a.px - b.px);
    for (const row of placed) {
      const colour = ink(typeOf(row.model));
      for (const [p, name, across] of [[row.x, state.x, true], [row.y, state.y, false]]) {
        const [a, b] = interval(p, COLUMNS[columnOf.get(name)].n).map(to);
        if (!isFinite(a) || !isFinite(b) || a === b) continue;
        svg.append(element("line", across ? { class: "bar", style: `stroke: ${colour}`, x1: sx(Math.max(a, x0)), x2: sx(Math.min(b, x1)), y1: sy(row.py), y2: sy(row.py) } : { class: "bar", style: `stroke: ${colour}`, x1: sx(row.px), x2: sx(row.px), y1: sy(Math.max(a, y0)), y2: sy(Math.min(b, y1)) }));
      }
    }
    for (const row of placed) {
      row.node = element("path", { class: "point", ...mark(typeOf(row.model)), transform: `translate(${sx(row.px)} ${sy(row.py)})`, "data-model": MODELS[row.model].name,
        onmousemove: (event) => show(describe(row, state, line), event.clientX, event.clientY), onmouseleave: hide,
        onclick: () => { location.hash = link("model", MODELS[row.model].name); } });
      svg.append(row.node);
    }
    keys(svg, placed, (row) => describe(row, state, line));
    box.replaceChildren(svg);
  }
  function keys(svg, placed, say) {
    const ordered = [...placed].sort((a, b) => a.px - b.px);
    let at = -1;
    const mark_ = (next) => {
      if (at >= 0) ordered[at].node.classList.remove("chosen");
      at = (next + ordered.length) % ordered.length;
      const node = ordered[at].node;
      node.classList.add("chosen");
      svg.append(node);
      const where = node.getBoundingClientRect();
      show(say(ordered[at]), where.right, where.bottom);
    };
    svg.addEventListener("keydown", (event) => {
      if (event.key === "ArrowRight" || event.key === "ArrowUp") mark_(at + 1);
      else if (event.key === "ArrowLeft" || event.key === "ArrowDown") mark_(at - 1);
      else if (event.key === "Enter" && at >= 0) location.hash = link("model", MODELS[ordered[at].model].name);
      else if (event.key === "Escape") hide();
      else return;
      event.preventDefault();
    });
    svg.addEventListener("blur", hide);
  }

  // Grid -------------------------------------------------------------------------------------------------------------

  const ROW = 24, HEAD = 56, CELL = 76;
  /* Viridis, coarsely; text is dark on the bright end. */
  const VIRIDIS = [[68, 1, 84], [65, 68, 135], [42, 120, 142], [34, 168, 132], [122, 209, 81], [253, 231, 37]];
  function shade(p) {
    const place = Math.min(Math.max(p / 100, 0), 1) * (VIRIDIS.length - 1), lower = Math.min(Math.floor(place), VIRIDIS.length - 2), part = place - lower;
    const colour = VIRIDIS[lower].map((v, i) => Math.round(v + part * (VIRIDIS[lower + 1][i] - v)));
    return `background: rgb(${colour}); color: ${p > 55 ? "#111" : "#fff"}`;
  }
  function gridView(query) {
    const wanted = (query.get("columns") || "").toLowerCase(), models = (query.get("models") || "").toLowerCase(), group = query.get("group") || "";
    const columns = COLUMNS.map((_, index) => index).filter((index) => (!group || COLUMNS[index].group === group) && COLUMNS[index].name.toLowerCase().includes(wanted));
    const hidden = new Set((query.get("hide") || "").split("|").filter(Boolean));
    const sort = columnOf.has(query.get("sort")) ? query.get("sort") : query.get("sort") === "model" ? "model" : first("val"), up = query.get("up") === "1";
    let rows = MODELS.map((_, index) => index).filter((index) => !hidden.has(typeOf(index)) && MODELS[index].name.toLowerCase().includes(models));
    rows = sort === "model" ? rows.sort((a, b) => (MODELS[a].name < MODELS[b].name ? -1 : 1)) : rows.sort((a, b) => (value(b, columnOf.get(sort)) ?? -1) - (value(a, columnOf.get(sort)) ?? -1));
    if (up) rows.reverse();
    const groups = [...new Set(COLUMNS.map((column) => column.group))];
    const box = (label, key, given) => element("label", {}, label, element("input", { type: "search", "data-key": key, value: given, onchange: (event) => change({ [key]: event.target.value }) }));
    const pick = element("label", {}, "columns of", element("select", { "data-key": "group", onchange: (event) => change({ group: event.target.value }) }, element("option", { value: "" }, "all groups"), ...groups.map((name) => element("option", { value: name, selected: name === group }, name))));
    const save = element("button", { type: "button", id: "csv", onclick: () => download(rows, columns) }, "Download CSV");
    const scroll = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${rows.length} models × ${columns.length} settings` });
    const sheet = element("div", { class: "sheet" });
    scroll.append(sheet);
    main.replaceChildren(element("div", { class: "controls" }, box("models with", "models", query.get("models") || ""), box("columns with", "columns", query.get("columns") || ""), pick, save),
      types({ hidden }), element("p", { class: "note" }, `${rows.length} models × ${columns.length} columns, by ${sort}${up ? ", the lowest first" : ""}; a column's head sorts, its ↗ opens it`), scroll);
    const names = Math.min(300, Math.max(120, innerWidth * 0.36));
    sheet.style.width = names + columns.length * CELL + "px";
    sheet.style.height = HEAD + rows.length * ROW + "px";
    const byName = (name, shown) => () => change({ sort: name, up: shown === name && !up ? "1" : "" });
    function paint() {
      const left = scroll.scrollLeft, top = scroll.scrollTop, cells = [];
      const c0 = Math.max(0, Math.floor(left / CELL) - 1), c1 = Math.min(columns.length, Math.ceil((left + scroll.clientWidth) / CELL) + 1);
      const r0 = Math.max(0, Math.floor(top / ROW) - 2), r1 = Math.min(rows.length, Math.ceil((top + scroll.clientHeight) / ROW) + 2);
      for (let r = r0; r < r1; r += 1) {
        const y = HEAD + r * ROW;
        cells.push(element("a", { class: "cell name", style: `left: ${left}px; top: ${y}px; width: ${names}px`, href: link("model", MODELS[rows[r]].name), title: MODELS[rows[r]].name, tabindex: -1 }, MODELS[rows[r]].name));
        for (let c = c0; c < c1; c += 1) {
          const p = value(rows[r], columns[c]);
          if (p !== null) cells.push(element("div", { class: "cell", style: `left: ${names + c * CELL}px; top: ${y}px; width: ${CELL}px; ${shade(p)}`, title: `${MODELS[rows[r]].name}, ${COLUMNS[columns[c]].name}` }, percent(p)));
        }
      }
      for (let c = c0; c < c1; c += 1) {
        const name = COLUMNS[columns[c]].name;
        cells.push(element("div", { class: "cell head", style: `left: ${names + c * CELL}px; top: ${top}px; width: ${CELL}px; height: ${HEAD}px; white-space: normal; line-height: 13px; font-size: 11px; padding: 3px`, title: name },
          element("a", { href: link("setting", name), "aria-label": `open ${name}` }, "↗"), " ", element("span", { role: "button", tabindex: 0, "data-sort": name, onclick: byName(name, sort), onkeydown: (event) => { if (event.key === "Enter") byName(name, sort)(); } }, name + (sort === name ? (up ? " ▲" : " ▼") : ""))));
      }
      cells.push(element("button", { class: "cell head corner", type: "button", style: `left: ${left}px; top: ${top}px; width: ${names}px; height: ${HEAD}px`, onclick: byName("model", sort) }, "model" + (sort === "model" ? (up ? " ▲" : " ▼") : "")));
      sheet.replaceChildren(...cells);
    }
    let waiting = false;
    scroll.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } });
    paint();
  }
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  function download(rows, columns) {
    const lines = [["model", "model_type", ...columns.map((c) => COLUMNS[c].name)], ...rows.map((r) => [MODELS[r].name, MODELS[r].type || "", ...columns.map((c) => value(r, c) ?? "")])];
    const file = new Blob([lines.map((line) => line.map((each) => quoted(String(each))).join(",")).join("\n") + "\n"], { type: "text/csv" });
    const anchor = element("a", { href: URL.createObjectURL(file), download: "results.csv" });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
  }

  // Tables -----------------------------------------------------------------------------------------------------------

  function table(head, rows) {
    return element("div", { class: "scroll", tabindex: 0, style: "border: 0" }, element("table", {}, element("thead", {}, element("tr", {}, ...head.map((each) => element("th", { class: each.number ? "number" : "", scope: "col" }, each.name)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((cell, index) => element("td", { class: head[index].number ? "number" : "" }, cell)))))));
  }
  const open = (view, name) => element("a", { href: link(view, name) }, name);
  function robustnessView(state) {
    const rows = rowsOf(state), line = fit(rowsOf(state, true), state.scale);
    const note = line ? `Accuracy on ${state.y} above what the line predicts from ${state.x}, in points; the line: slope ${line.slope.toFixed(3)}, intercept ${line.intercept.toFixed(3)}, r ${line.r.toFixed(3)}, ${line.n} models` : "Too few models for a line";
    const sorted = line ? rows.map((row) => ({ ...row, over: row.y - line.predict(row.x) })).sort((a, b) => b.over - a.over) : [];
    main.replaceChildren(controls(state), types(state), element("p", { class: "note" }, note),
      table([{ name: "#", number: true }, { name: "model" }, { name: "type" }, { name: state.x, number: true }, { name: state.y, number: true }, { name: "effective robustness", number: true }],
        sorted.map((row, index) => [index + 1, open("model", MODELS[row.model].name), typeOf(row.model), percent(row.x), percent(row.y), points(row.over)])));
  }
  function modelView(name) {
    const model = modelOf.get(name);
    if (model === undefined) return missing("model", name);
    const rank = (column) => 1 + DATA.values.filter((row) => row[column] !== null && row[column] > value(model, column)).length;
    const count = (column) => DATA.values.filter((row) => row[column] !== null).length;
    const present = COLUMNS.map((_, index) => index).filter((index) => value(model, index) !== null);
    main.replaceChildren(element("h2", {}, name), element("p", { class: "note" }, `${typeOf(model)}; results on ${present.length} of ${COLUMNS.length} columns`),
      table([{ name: "setting" }, { name: "group" }, { name: "%", number: true }, { name: "rank", number: true }, { name: "source" }],
        present.map((index) => [open("setting", COLUMNS[index].name), COLUMNS[index].group, percent(value(model, index)), `${rank(index)} of ${count(index)}`, DATA.own[model].includes(index) ? "run here" : COLUMNS[index].averaged ? "average" : "imported"])));
  }
  function settingView(name) {
    const column = columnOf.get(name);
    if (column === undefined) return missing("setting", name);
    const rows = MODELS.map((_, index) => index).filter((index) => value(index, column) !== null).sort((a, b) => value(b, column) - value(a, column));
    const about = COLUMNS[column];
    const shown = [element("h2", {}, name), element("p", { class: "note" }, `${about.group}${about.n ? `; ${about.n.toLocaleString("en")} samples` : ""}; ${rows.length} models. `, element("a", { href: link("plot", "", { x: first("val"), y: name }) }, "Plot against " + first("val")))];
    const gallery = (DATA.gallery || {})[name];
    if (gallery) shown.push(element("h3", { style: "margin: 0" }, "The hardest samples"), element("ul", { class: "gallery" }, ...gallery.map((each) => element("li", {}, each.image ? element("img", { src: each.image, alt: each.id, loading: "lazy" }) : null, element("div", {}, each.id), element("div", {}, `${each.target}: ${each.wrong} of ${each.models} models wrong`)))));
    shown.push(table([{ name: "#", number: true }, { name: "model" }, { name: "type" }, { name: "%", number: true }, { name: "95 % interval", number: true }],
      rows.map((index, place) => { const [low, high] = interval(value(index, column), about.n); return [place + 1, open("model", MODELS[index].name), typeOf(index), percent(value(index, column)), about.n ? `${percent(low)} – ${percent(high)}` : "–"]; })));
    main.replaceChildren(...shown);
  }
  function missing(kind, name) {
    main.replaceChildren(element("h2", {}, `There is no ${kind} ${name}`), element("p", {}, element("a", { href: "#/grid" }, "To the grid")));
  }

  // All --------------------------------------------------------------------------------------------------------------

  function draw() {
    hide();
    const { view, name, query } = read();
    for (const each of document.querySelectorAll("nav a")) {
      if (each.dataset.view === view) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
    }
    document.title = `${name || view} · testbed results`;
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
    if (!MODELS.length) return main.replaceChildren(element("h2", {}, "There are no results yet"));
    if (view === "grid") gridView(query);
    else if (view === "robustness") robustnessView(axes(query));
    else if (view === "model") modelView(name);
    else if (view === "setting") settingView(name);
    else plotView(axes(query));
    if (focused) document.querySelector(`[data-key="${focused}"]`)?.focus();
  }
  function theme(dark) { document.documentElement.dataset.theme = dark ? "dark" : "light"; }
  theme(matchMedia("(prefers-color-scheme: dark)").matches);
  document.getElementById("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme !== "dark"));
  document.getElementById("names").append(...[...MODELS, ...COLUMNS].map((each) => element("option", { value: each.name })));
  document.getElementById("search").addEventListener("change", (event) => {
    const text = event.target.value.trim();
    if (!text) return;
    if (modelOf.has(text)) location.hash = link("model", text);
    else if (columnOf.has(text)) location.hash = link("setting", text);
    else location.hash = link("grid", "", { models: text });
    event.target.value = "";
  });
  document.getElementById("about").textContent = `${MODELS.length} models × ${COLUMNS.length} columns, ${DATA.metric}; written ${DATA.written} from ${DATA.source}`;
  addEventListener("hashchange", () => { draw(); main.focus({ preventScroll: true }); });
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(draw, 120); });
  draw();
})();
