"use strict";
/* Points on a canvas, with lines; the same as SVG for export. Arrow keys go through the points. */
(() => {
  const E = T.element, LEFT = 64, RIGHT = 16, TOP = 12, BOTTOM = 52, REACH = 9, LARGER = 1.5; // pixels; how much larger what is outlined is
  const PATHS = {
    circle: "M5 0A5 5 0 1 1 -5 0A5 5 0 1 1 5 0Z", square: "M-4.5 -4.5H4.5V4.5H-4.5Z", diamond: "M0 -6L6 0L0 6L-6 0Z",
    "triangle-up": "M0 -6L5.5 4.5H-5.5Z", "triangle-down": "M0 6L5.5 -4.5H-5.5Z", cross: "M-2 -6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    x: "M-5 -3L-3 -5L0 -2L3 -5L5 -3L2 0L5 3L3 5L0 2L-3 5L-5 3L-2 0Z", star: "M0 -6.5L1.6 -2H6.2L2.6 1L4 6L0 3L-4 6L-2.6 1L-6.2 -2H-1.6Z",
    pentagon: "M0 -6L5.7 -1.9L3.5 4.9H-3.5L-5.7 -1.9Z", hexagon: "M5.5 0L2.7 4.8H-2.7L-5.5 0L-2.7 -4.8H2.7Z",
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const escape = (text) => String(text).replace(/[&<>"]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each]);
  const range = (values) => {
    let low = Infinity, high = -Infinity;
    for (const each of values) { if (each < low) low = each; if (each > high) high = each; }
    const edge = (high - low) * 0.05 || 0.1;
    return [low - edge, high + edge];
  };

  /* A plot. points: { x, y (on the scale), style: { colour, symbol }, own (outlined and larger), bars, heading, lines() , href }; lines: { points, class }. */
  function plot({ label, xLabel, yLabel, points, lines, to }) {
    const canvas = E("canvas", { tabindex: 0, role: "application", "aria-label": `${label}; arrow keys go through the models, Enter opens one` }), box = E("div", { class: "plot" }, canvas);
    let size = null, place = null, at = -1;
    const [x0, x1] = range(points.map((each) => each.x)), [y0, y1] = range(points.map((each) => each.y));
    const ordered = points.map((_, index) => index).sort((a, b) => points[a].x - points[b].x);
    function measure() {
      size = { width: Math.max(box.clientWidth, 260), height: Math.max(box.clientHeight, 320) };
      place = { x: (v) => LEFT + (v - x0) / (x1 - x0) * (size.width - LEFT - RIGHT), y: (v) => size.height - BOTTOM - (v - y0) / (y1 - y0) * (size.height - TOP - BOTTOM) };
    }
    /* The same strokes on a canvas or as SVG. */
    function strokes(pen) {
      const { width, height } = size;
      for (const { tick, place: v } of T.ticks(x0, x1, to)) { pen.line([[place.x(v), TOP], [place.x(v), height - BOTTOM]], "--line", 1); pen.text(tick, place.x(v), height - BOTTOM + 18, "center"); }
      for (const { tick, place: v } of T.ticks(y0, y1, to)) { pen.line([[LEFT, place.y(v)], [width - RIGHT, place.y(v)]], "--line", 1); pen.text(tick, LEFT - 8, place.y(v) + 4, "right"); }
      pen.line([[LEFT, TOP], [LEFT, height - BOTTOM], [width - RIGHT, height - BOTTOM]], "--text", 1);
      pen.text(xLabel, (LEFT + width - RIGHT) / 2, height - 10, "center");
      pen.text(yLabel, 15, (TOP + height - BOTTOM) / 2, "center", true);
      for (const each of lines) {
        const inside = each.points.filter(([x, y]) => x >= x0 && x <= x1 && y >= y0 && y <= y1).map(([x, y]) => [place.x(x), place.y(y)]);
        if (inside.length > 1) pen.line(inside, each.colour, each.width, each.dash);
      }
      if (points.length <= 600) {
        for (const each of points) for (const [ax, ay, bx, by] of each.bars) pen.line([[place.x(Math.max(ax, x0)), place.y(Math.max(ay, y0))], [place.x(Math.min(bx, x1)), place.y(Math.min(by, y1))]], each.style.colour, 0.8, false, 0.35);
      }
      for (const each of points) pen.mark(each, place.x(each.x), place.y(each.y));
    }
    function paint() {
      measure();
      const ratio = devicePixelRatio || 1, context = canvas.getContext("2d");
      canvas.width = size.width * ratio; canvas.height = size.height * ratio;
      canvas.style.width = `${size.width}px`; canvas.style.height = `${size.height}px`;
      context.scale(ratio, ratio);
      const paths = new Map(), ink = (given) => (given.startsWith("--") ? colour(given) : given === "#000000" ? colour("--text") : given), text = colour("--text");
      context.font = "13px system-ui, Helvetica, Arial, sans-serif";
      strokes({
        line: (given, stroke, width, dash, alpha) => {
          context.globalAlpha = alpha || 1; context.strokeStyle = ink(stroke); context.lineWidth = width; context.setLineDash(dash ? [6, 6] : []);
          context.beginPath(); given.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y))); context.stroke(); context.globalAlpha = 1; context.setLineDash([]);
        },
        text: (said, x, y, align, turned) => { context.save(); context.fillStyle = text; context.textAlign = align; context.translate(x, y); if (turned) context.rotate(-Math.PI / 2); context.fillText(said, 0, 0); context.restore(); },
        mark: (each, x, y) => {
          if (!paths.has(each.style.symbol)) paths.set(each.style.symbol, new Path2D(PATHS[each.style.symbol] || PATHS.circle));
          const scale = ratio * (each.own ? LARGER : 1);
          context.setTransform(scale, 0, 0, scale, x * ratio, y * ratio);
          context.globalAlpha = 0.85; context.fillStyle = ink(each.style.colour); context.fill(paths.get(each.style.symbol));
          if (each.own) { context.globalAlpha = 1; context.strokeStyle = text; context.lineWidth = 2; context.stroke(paths.get(each.style.symbol)); }
          if (each.pinned) { context.globalAlpha = 1; context.strokeStyle = colour("--focus"); context.lineWidth = 2.5; context.stroke(paths.get(each.style.symbol)); }
          context.setTransform(ratio, 0, 0, ratio, 0, 0); context.globalAlpha = 1;
        },
      });
      if (at >= 0) { context.strokeStyle = colour("--focus"); context.lineWidth = 3; context.beginPath(); context.arc(place.x(points[at].x), place.y(points[at].y), 9, 0, 7); context.stroke(); }
      canvas.dataset.points = points.length;
    }
    function svg() {
      measure();
      const parts = [`<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${size.height}" viewBox="0 0 ${size.width} ${size.height}" font-family="Helvetica, Arial, sans-serif" font-size="13">`, `<rect width="100%" height="100%" fill="#fff"/>`];
      const ink = (given) => ({ "--line": "#d9d9de", "--text": "#1d1d1f" })[given] || given;
      strokes({
        line: (given, stroke, width, dash, alpha) => parts.push(`<polyline fill="none" stroke="${ink(stroke)}" stroke-width="${width}" opacity="${alpha || 1}"${dash ? ' stroke-dasharray="6 6"' : ""} points="${given.map((each) => each.map((v) => v.toFixed(1)).join(",")).join(" ")}"/>`),
        text: (said, x, y, align, turned) => parts.push(`<text fill="#1d1d1f" text-anchor="${{ center: "middle", right: "end" }[align]}" transform="translate(${x} ${y})${turned ? " rotate(-90)" : ""}">${escape(said)}</text>`),
        mark: (each, x, y) => parts.push(`<path d="${PATHS[each.style.symbol] || PATHS.circle}" fill="${ink(each.style.colour)}" opacity="${each.own ? 1 : ".85"}"${each.own ? ' stroke="#1d1d1f" stroke-width="2"' : ""} transform="translate(${x.toFixed(1)} ${y.toFixed(1)})${each.own ? ` scale(${LARGER})` : ""}"><title>${escape(each.heading)}</title></path>`),
      });
      return [...parts, "</svg>"].join("");
    }
    function nearest(event) {
      const bounds = canvas.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
      let found = -1, least = REACH * REACH;
      points.forEach((each, index) => { const d = (place.x(each.x) - x) ** 2 + (place.y(each.y) - y) ** 2; if (d <= least) { found = index; least = d; } });
      return found;
    }
    const tell = (index, x, y) => T.show(points[index].heading, points[index].lines(), x, y);
    canvas.addEventListener("mousemove", (event) => { const found = nearest(event); canvas.style.cursor = found >= 0 ? "pointer" : ""; if (found >= 0) tell(found, event.clientX, event.clientY); else T.hide(); });
    canvas.addEventListener("mouseleave", T.hide);
    canvas.addEventListener("click", (event) => { const found = nearest(event); if (found >= 0) location.hash = points[found].href; });
    canvas.addEventListener("blur", () => { T.hide(); at = -1; });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (step) {
        const now = at < 0 ? (step > 0 ? -1 : 0) : ordered.indexOf(at);
        at = ordered[(now + step + ordered.length) % ordered.length];
        paint();
        const bounds = canvas.getBoundingClientRect();
        tell(at, bounds.left + place.x(points[at].x), bounds.top + place.y(points[at].y));
      } else if (event.key === "Enter" && at >= 0) location.hash = points[at].href;
      else if (event.key === "Escape") T.hide();
      else return;
      event.preventDefault();
    });
    return { box, paint, svg, where: (name) => { const each = points.find((given) => given.heading === name); return each && [place.x(each.x), place.y(each.y)]; } };
  }
  T.plot = plot;
  T.mark = (style) => E("svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" }, E("path", { d: PATHS[style.symbol] || PATHS.circle, style: `fill: ${style.colour === "#000000" ? "var(--text)" : style.colour}` }));
})();
