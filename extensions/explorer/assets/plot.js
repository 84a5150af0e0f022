"use strict";
/* Points on a canvas, with a line, its band and names; the same as SVG, with legend and title, for export and print. */
(() => {
  const E = T.element, LEFT = 64, RIGHT = 16, TOP = 12, BOTTOM = 52, REACH = 9, LARGER = 1.5, RING = 11; // pixels; how much larger what is outlined is; the halo of a pinned model
  const SHEET = { width: 940, height: 600, legend: 270, title: 34 }, FONT = "Helvetica, Arial, sans-serif", SIZE = 13, SMALL = 12, BARS = 600; // of an export; models with bars
  const PATHS = {
    circle: "M5 0A5 5 0 1 1 -5 0A5 5 0 1 1 5 0Z", square: "M-4.5 -4.5H4.5V4.5H-4.5Z", diamond: "M0 -6L6 0L0 6L-6 0Z",
    "triangle-up": "M0 -6L5.5 4.5H-5.5Z", "triangle-down": "M0 6L5.5 -4.5H-5.5Z", cross: "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    x: "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z", star: "M0 -6.5L1.6 -2H6.2L2.6 1L4 6L0 3L-4 6L-2.6 1L-6.2 -2H-1.6Z",
    pentagon: "M0 -6L5.7 -1.9L3.5 4.9H-3.5L-5.7 -1.9Z", hexagon: "M5.5 0L2.7 4.8H-2.7L-5.5 0L-2.7 -4.8H2.7Z",
  };
  const PRINTED = { "--line": "#d9d9de", "--text": "#1d1d1f", "--focus": "#d55e00", "--faint": "#6b6b70" };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escape = (text) => String(text).replace(/[&<>"]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each]);
  const wide = (text, size) => text.length * size * 0.56; // pixels, about
  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 9)}…${text.slice(-8)}` : text);
  const wrapped = (text, most) => text.split(" ").reduce((lines, word) => (lines.length && lines.at(-1).length + word.length < most ? [...lines.slice(0, -1), `${lines.at(-1)} ${word}`] : [...lines, short(word, most)]), []);
  const range = (values) => {
    let low = Infinity, high = -Infinity;
    for (const each of values.filter(isFinite)) { if (each < low) low = each; if (each > high) high = each; }
    const edge = (high - low) * 0.05 || 0.1;
    return [low - edge, high + edge];
  };
  const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

  const AROUND = [[9, 4, "left"], [-9, 4, "right"], [0, -10, "center"], [0, 19, "center"], [7, -8, "left"], [-7, -8, "right"], [7, 16, "left"], [-7, 16, "right"]], BESIDE = 7, NEAR = 6, MOST = 400, FAR = [32, 48, 72, 100, 132], TURNS = 16;
  /* Places for a label that has to be there: beside its point, else farther and farther away. */
  const farther = FAR.flatMap((far) => Array.from({ length: TURNS }, (_, turn) => { const angle = 2 * Math.PI * turn / TURNS, dx = Math.cos(angle) * far; return [dx, Math.sin(angle) * far + 4, dx > 1 ? "left" : dx < -1 ? "right" : "center"]; }));
  /* Points along strokes, near each other, and how far labels keep away from them. */
  const along = (strokes, near) => strokes.flatMap((stroke) => stroke.slice(1).flatMap(([x, y], at) => { const [a, b] = stroke[at], parts = Math.min(MOST, 1 + Math.floor(Math.hypot(x - a, y - b) / NEAR)); return Array.from({ length: parts + 1 }, (_, part) => [a + (x - a) * part / parts, b + (y - b) * part / parts, near]); }));
  /* Places labels within the area, over no other label, point or line; that of a pinned model is always there: if need be at a distance,
     with a leader, and where the least is covered. */
  function placed(named, places, strokes, area) {
    const marks = [...places.map((each) => [...each, 5]), ...along(strokes, 3)], boxes = [], found = [];
    for (const { at, text, must } of named) {
      const [x, y] = places[at], width = wide(text, SMALL);
      const tries = (must ? [...AROUND.map(([dx, dy, align]) => [dx + Math.sign(dx) * BESIDE, dy + Math.sign(dy - 4) * BESIDE, align]), ...farther] : AROUND).map(([dx, dy, align]) => {
        const [a, b] = [x + dx, y + dy], first = a - { left: 0, right: width, center: width / 2 }[align];
        return { x: a, y: b, align, box: [first - 2, b - SMALL, first + width + 2, b + 4], leader: Math.hypot(dx, dy) > 25 ? [[x, y], [a, b - 4]] : null };
      });
      const inside = tries.filter(({ box }) => box[0] >= area[0] && box[1] >= area[1] && box[2] <= area[2] && box[3] <= area[3] && !boxes.some((each) => meet(each, box)));
      const covered = ({ box }) => marks.reduce((sum, [a, b, r]) => sum + meet([a - r, b - r, a + r, b + r], box), 0);
      const free = inside.find((each) => !covered(each)) || (must ? [...(inside.length ? inside : tries)].sort((a, b) => covered(a) - covered(b))[0] : null);
      if (free) { boxes.push(free.box); found.push({ ...free, text, must }); }
    }
    return found;
  }

  /* A plot. points: { x, y (on the scale; on the edge if infinite), style: { colour, symbol }, own (outlined and larger), pinned, named (how soon it gets a name: the least first), bars, heading, lines(), href() };
     lines: { points, colour, width, dash }; band: [x, low, high]; legend: { style or line or band, text }; ticks: of x and y; within: more values of y. */
  function plot({ label, xLabel, yLabel, points, lines, band, legend, to, ticks = [T.ticks, T.ticks], within = [] }) {
    const canvas = E("canvas", { tabindex: 0, role: "application", "aria-label": `${label}; arrow keys go through the points, Enter opens one, + and - zoom, 0 shows all` }), box = E("div", { class: "plot" }, canvas);
    const whole = { x: range(points.map((each) => each.x)), y: range([...points.map((each) => each.y), ...within]) };
    let view = whole, size = null, place = null, at = -1, drag = null;
    const ordered = points.map((_, index) => index).sort((a, b) => points[a].x - points[b].x || 0);
    const titles = T.models.shortened(points.filter((each) => each.pinned || each.named !== undefined).map((each) => each.heading), 30);
    const named = points.map((each, index) => ({ at: index, text: titles.get(each.heading), must: each.pinned, first: each.pinned ? -1 : each.named ?? Infinity })).filter((each) => each.first < Infinity).sort((a, b) => a.first - b.first);
    function measure(sheet) {
      const [x0, x1] = view.x, [y0, y1] = view.y;
      size = sheet ? { left: LEFT, top: TOP + SHEET.title, right: SHEET.width - SHEET.legend, bottom: SHEET.height - BOTTOM } : { left: LEFT, top: TOP, right: Math.max(box.clientWidth, 260) - RIGHT, bottom: Math.max(box.clientHeight, 320) - BOTTOM };
      const within_ = (share, v) => (isFinite(v) ? share : Math.min(Math.max(share, 0), 1));
      place = { x: (v) => size.left + within_((v - x0) / (x1 - x0), v) * (size.right - size.left), y: (v) => size.bottom - within_((v - y0) / (y1 - y0), v) * (size.bottom - size.top) };
    }
    /* The same strokes on a canvas or as SVG. */
    function strokes(pen) {
      const { left, top, right, bottom } = size, inside = (v, [low, high]) => !isFinite(v) || (v >= low && v <= high), seen = (each) => inside(each.x, view.x) && inside(each.y, view.y), shown = points.filter(seen);
      const on = ([x, y]) => [place.x(x), place.y(y)];
      for (const { tick, place: v } of ticks[0](...view.x, to)) { pen.line([[place.x(v), top], [place.x(v), bottom]], "--line", 1); pen.text(tick, place.x(v), bottom + 18, "center"); }
      for (const { tick, place: v } of ticks[1](...view.y, to)) { pen.line([[left, place.y(v)], [right, place.y(v)]], "--line", 1); pen.text(tick, left - 8, place.y(v) + 4, "right"); }
      pen.clipped(() => {
        if (band) pen.area([...band.map(([x, , high]) => on([x, high])), ...band.map(([x, low]) => on([x, low])).reverse()]);
        for (const each of lines) pen.line(each.points.map(on), each.colour, each.width, each.dash);
        if (shown.length <= BARS) for (const each of shown) for (const [ax, ay, bx, by] of each.bars) pen.line([on([ax, ay]), on([bx, by])], each.style.colour, 0.8, false, 0.45);
      });
      pen.line([[left, top], [left, bottom], [right, bottom]], "--text", 1);
      pen.text(xLabel, (left + right) / 2, bottom + 42, "center");
      pen.text(yLabel, 15, (top + bottom) / 2, "center", true);
      for (const each of shown) pen.mark(each, place.x(each.x), place.y(each.y));
      const places = points.map((each) => (seen(each) ? on([each.x, each.y]) : [-99, -99]));
      for (const each of placed(named.filter((one) => seen(points[one.at])), places, lines.map((each) => each.points.map(on)), [left, top, right, bottom])) {
        if (each.leader) pen.line(each.leader, "--text", 1);
        pen.text(each.text, each.x, each.y, each.align, false, SMALL, each.must, true);
      }
      return shown.length;
    }
    function paint() {
      measure(false);
      const ratio = devicePixelRatio || 1, context = canvas.getContext("2d"), width = size.right + RIGHT, height = size.bottom + BOTTOM;
      canvas.width = width * ratio; canvas.height = height * ratio;
      canvas.style.width = `${width}px`; canvas.style.height = `${height}px`;
      context.scale(ratio, ratio);
      const paths = new Map(), ink = (given) => (given.startsWith("--") ? colour(given) : given === "#000000" ? colour("--text") : given), text = colour("--text");
      canvas.dataset.points = strokes({
        clipped: (draw) => { context.save(); context.beginPath(); context.rect(size.left, size.top, size.right - size.left, size.bottom - size.top); context.clip(); draw(); context.restore(); },
        area: (given) => { context.globalAlpha = 0.14; context.fillStyle = text; context.beginPath(); given.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y))); context.fill(); context.globalAlpha = 1; },
        line: (given, stroke, width_, dash, alpha) => {
          context.globalAlpha = alpha || 1; context.strokeStyle = ink(stroke); context.lineWidth = width_; context.setLineDash(dash ? [6, 6] : []);
          context.beginPath(); given.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y))); context.stroke(); context.globalAlpha = 1; context.setLineDash([]);
        },
        text: (said, x, y, align, turned, small, bold, halo) => {
          context.save();
          context.font = `${bold ? "700 " : ""}${small || SIZE}px ${FONT}`; context.fillStyle = text; context.textAlign = align; context.translate(x, y); if (turned) context.rotate(-Math.PI / 2);
          if (halo) { context.strokeStyle = colour("--page"); context.lineWidth = 4; context.lineJoin = "round"; context.strokeText(said, 0, 0); }
          context.fillText(said, 0, 0);
          context.restore();
        },
        mark: (each, x, y) => {
          if (!paths.has(each.style.symbol)) paths.set(each.style.symbol, new Path2D(PATHS[each.style.symbol] || PATHS.circle));
          const scale = ratio * (each.own ? LARGER : 1), path = paths.get(each.style.symbol);
          if (each.pinned) { context.beginPath(); context.arc(x, y, RING, 0, 7); context.fillStyle = colour("--page"); context.fill(); context.strokeStyle = colour("--focus"); context.lineWidth = 2.5; context.stroke(); }
          context.setTransform(scale, 0, 0, scale, x * ratio, y * ratio);
          context.globalAlpha = 0.85; context.fillStyle = ink(each.style.colour); context.fill(path); context.globalAlpha = 1;
          if (each.own) { context.strokeStyle = text; context.lineWidth = 2; context.stroke(path); }
          context.setTransform(ratio, 0, 0, ratio, 0, 0);
        },
      });
      context.strokeStyle = colour("--focus");
      if (at >= 0) { context.lineWidth = 3; context.beginPath(); context.arc(place.x(points[at].x), place.y(points[at].y), 9, 0, 7); context.stroke(); }
      if (drag && drag.to) { context.lineWidth = 1; context.strokeRect(drag.from[0], drag.from[1], drag.to[0] - drag.from[0], drag.to[1] - drag.from[1]); }
    }
    function svg() {
      measure(true);
      const parts = [], { width, height } = SHEET, ink = (given) => PRINTED[given] || given;
      const pen = {
        clipped: (draw) => { parts.push('<g clip-path="url(#area)">'); draw(); parts.push("</g>"); },
        area: (given) => parts.push(`<polygon fill="${PRINTED["--text"]}" opacity="0.14" points="${given.map((each) => each.map((v) => v.toFixed(1)).join(",")).join(" ")}"/>`),
        line: (given, stroke, width_, dash, alpha) => parts.push(`<polyline fill="none" stroke="${ink(stroke)}" stroke-width="${width_}" opacity="${alpha || 1}"${dash ? ' stroke-dasharray="6 6"' : ""} points="${given.map((each) => each.map((v) => v.toFixed(1)).join(",")).join(" ")}"/>`),
        text: (said, x, y, align, turned, small, bold, halo) => parts.push(`<text fill="${PRINTED["--text"]}"${halo ? ' stroke="#fff" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' : ""} text-anchor="${{ center: "middle", right: "end", left: "start" }[align]}"${small ? ` font-size="${small}"` : ""}${bold ? ' font-weight="700"' : ""} transform="translate(${x.toFixed(1)} ${y.toFixed(1)})${turned ? " rotate(-90)" : ""}">${escape(said)}</text>`),
        mark: (each, x, y) => parts.push(`${each.pinned ? `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${RING}" fill="#fff" stroke="${PRINTED["--focus"]}" stroke-width="2.5"/>` : ""}<path d="${PATHS[each.style.symbol] || PATHS.circle}" fill="${ink(each.style.colour)}" opacity="${each.own ? 1 : ".85"}"${each.own ? ` stroke="${PRINTED["--text"]}" stroke-width="2"` : ""} transform="translate(${x.toFixed(1)} ${y.toFixed(1)})${each.own ? ` scale(${LARGER})` : ""}"><title>${escape(each.heading)}</title></path>`),
      };
      pen.text(short(label, 90), width / 2, 26, "center", false, 17, true);
      strokes(pen);
      const left = size.right + 30;
      let y = size.top + 10;
      for (const each of legend || []) {
        if (each.style) pen.mark({ style: each.style, heading: each.text }, left, y - 4);
        else if (each.line) pen.line([[left - 11, y - 4], [left + 11, y - 4]], each.line.colour, each.line.width, each.line.dash);
        else if (each.band) pen.area([[left - 11, y - 10], [left + 11, y - 10], [left + 11, y + 2], [left - 11, y + 2]]);
        for (const part of wrapped(each.text, 36)) { pen.text(part, left + 19, y, "left", false, SMALL); y += 16; }
        y += 3;
      }
      const area = { ...size };
      measure(false);
      const clip = `<defs><clipPath id="area"><rect x="${area.left}" y="${area.top}" width="${area.right - area.left}" height="${area.bottom - area.top}"/></clipPath></defs>`;
      return [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.max(height, y)}" viewBox="0 0 ${width} ${Math.max(height, y)}" font-family="${FONT}" font-size="${SIZE}">`, '<rect width="100%" height="100%" fill="#fff"/>', clip, ...parts, "</svg>"].join("");
    }
    const from = (event) => { const bounds = canvas.getBoundingClientRect(); return [event.clientX - bounds.left, event.clientY - bounds.top]; };
    function nearest(event) {
      const [x, y] = from(event);
      let found = -1, least = REACH * REACH;
      points.forEach((each, index) => { const d = (place.x(each.x) - x) ** 2 + (place.y(each.y) - y) ** 2; if (d <= least) { found = index; least = d; } });
      return found;
    }
    /* The same middle, a part of the length. */
    const scaled = ([low, high], part) => [(low + high) / 2 - (high - low) * part / 2, (low + high) / 2 + (high - low) * part / 2];
    function zoom(part) {
      view = part === null ? whole : { x: scaled(view.x, part), y: scaled(view.y, part) };
      paint();
    }
    function zoomTo([ax, ay], [bx, by]) {
      const across = (v, [low, high]) => low + (v - size.left) / (size.right - size.left) * (high - low), up = (v, [low, high]) => low + (size.bottom - v) / (size.bottom - size.top) * (high - low);
      view = { x: [across(Math.min(ax, bx), view.x), across(Math.max(ax, bx), view.x)], y: [up(Math.max(ay, by), view.y), up(Math.min(ay, by), view.y)] };
    }
    const tell = (index, x, y) => T.show(points[index].heading, points[index].lines(), x, y);
    canvas.addEventListener("mousedown", (event) => { if (event.button === 0) drag = { from: from(event), to: null }; });
    canvas.addEventListener("mousemove", (event) => {
      const here = from(event);
      if (drag && (drag.to || Math.hypot(here[0] - drag.from[0], here[1] - drag.from[1]) > 5)) { drag.to = here; T.hide(); paint(); return; }
      const found = nearest(event);
      canvas.style.cursor = found >= 0 ? "pointer" : "crosshair";
      if (found >= 0) tell(found, event.clientX, event.clientY); else T.hide();
    });
    canvas.addEventListener("mouseleave", () => { T.hide(); if (drag && drag.to) { drag = null; paint(); } });
    canvas.addEventListener("mouseup", (event) => {
      const done = drag;
      drag = null;
      if (done && done.to) { if (Math.abs(done.to[0] - done.from[0]) > 5 && Math.abs(done.to[1] - done.from[1]) > 5) zoomTo(done.from, done.to); paint(); return; }
      const found = nearest(event);
      if (found >= 0) location.hash = points[found].href();
    });
    canvas.addEventListener("dblclick", () => zoom(null));
    canvas.addEventListener("blur", () => { T.hide(); at = -1; });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key], part = { "+": 0.7, "=": 0.7, "-": 1 / 0.7, 0: null }[event.key];
      if (step) {
        const now = at < 0 ? (step > 0 ? -1 : 0) : ordered.indexOf(at);
        at = ordered[(now + step + ordered.length) % ordered.length];
        paint();
        const bounds = canvas.getBoundingClientRect();
        tell(at, bounds.left + place.x(points[at].x), bounds.top + place.y(points[at].y));
      } else if (part !== undefined) zoom(part);
      else if (event.key === "Enter" && at >= 0) location.hash = points[at].href();
      else if (event.key === "Escape") T.hide();
      else return;
      event.preventDefault();
    });
    const button = (id, text, said, part) => E("button", { type: "button", id, "aria-label": said, title: said, onclick: () => zoom(part) }, text);
    box.append(E("div", { class: "zoom" }, button("zoom-in", "+", "Zoom in; or drag a box", 0.7), button("zoom-out", "−", "Zoom out", 1 / 0.7), button("zoom-all", "⤢", "Zoom to all", null)));
    return { box, paint, svg, where: (name) => { const each = points.find((given) => given.heading === name); return each && [place.x(each.x), place.y(each.y)]; } };
  }
  /* On paper, the picture as it is exported. */
  addEventListener("beforeprint", () => {
    const { shownPlot } = T;
    if (!shownPlot || !shownPlot.box.isConnected) return;
    const picture = E("div", { class: "on-paper" });
    picture.innerHTML = shownPlot.svg();
    shownPlot.box.append(picture);
    shownPlot.paint();
  });
  addEventListener("afterprint", () => document.querySelectorAll(".on-paper").forEach((each) => each.remove()));
  T.plot = plot;
  T.BARS = BARS;
  T.paths = PATHS;
  T.mark = (style) => E("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, E("path", { d: PATHS[style.symbol] || PATHS.circle, style: `fill: ${style.colour === "#000000" ? "var(--text)" : style.colour}` }));
  /* A legend of colours and lines; the boxes for kinds explain the symbols. */
  T.legend = (entries) => E("ul", { class: "legend" }, ...entries.filter((each) => !each.kind).map((each) => E("li", {}, each.style ? T.mark(each.style) : E("span", { class: each.band ? "key band" : !each.line ? "key none" : each.line.dash ? "key dashed" : "key" }), each.text)));
})();
