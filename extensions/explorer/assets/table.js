"use strict";
/* Real tables. Of long ones only the rows that are seen are in the page, between two rows that hold their place. */
(() => {
  const E = T.element, ROW = 27, MOST = 250, SPARE = 12, FEW = 8; // pixels; rows of a whole table, around those that are seen, and of a table without a filter
  const PRINTED = { width: 480, digit: 6.4, padding: 11, wrapped: 16, line: 12, standing: 20 }; // pixels of A4, upright, beside the names; characters of a text, and of a heading, in a line
  let printing = null;

  /* A list of actions beside a button, until one is chosen, Escape, or the focus goes elsewhere. */
  function menu(button, actions) {
    let open = true; // removing it moves the focus, which would remove it again
    const shut = () => { if (!open) return; open = false; made.remove(); button.setAttribute("aria-expanded", "false"); };
    const close = () => { shut(); if (button.isConnected) button.focus(); };
    const items = actions.map(([text, act]) => E("button", { type: "button", role: "menuitem", tabindex: -1, onclick: () => { close(); act(); } }, text)), { left, bottom } = button.getBoundingClientRect();
    const step = { ArrowDown: 1, ArrowUp: -1 };
    const made = E("div", { id: "menu", role: "menu", "aria-label": button.getAttribute("aria-label"), onfocusout: (event) => { if (!made.contains(event.relatedTarget)) shut(); }, onkeydown: (event) => {
      if (event.key === "Escape") close();
      else if (step[event.key]) items[(items.indexOf(document.activeElement) + step[event.key] + items.length) % items.length].focus();
      else return;
      event.preventDefault();
    } }, ...items);
    if (T.at("menu")) T.at("menu").remove();
    document.querySelector("main").append(made);
    made.style.left = `${Math.max(4, Math.min(left, innerWidth - made.offsetWidth - 8))}px`;
    made.style.top = `${bottom + 2}px`;
    button.setAttribute("aria-expanded", "true");
    items[0].focus();
  }
  const DRAGGED = "text/plain";
  /* Headings that have a menu can also be dragged to another place. */
  function drags(made, key, onmove) {
    made.draggable = true;
    made.addEventListener("dragstart", (event) => event.dataTransfer.setData(DRAGGED, key));
    made.addEventListener("dragover", (event) => event.preventDefault());
    made.addEventListener("drop", (event) => { event.preventDefault(); const from = event.dataTransfer.getData(DRAGGED); if (from && from !== key) onmove(from, key); });
  }
  const LEAST = 40;
  /* A handle at the right edge of a heading, which makes its column wider or narrower, down to its numbers. */
  function handle(made, onsize) {
    let from = null;
    const size = (event) => Math.max(LEAST, Math.round(from.width + event.clientX - from.x));
    return E("span", { class: "resize", "aria-hidden": "true", draggable: "true", ondragstart: (event) => { event.preventDefault(); event.stopPropagation(); },
      onpointerdown: (event) => { event.preventDefault(); from = { x: event.clientX, width: made.offsetWidth }; event.target.setPointerCapture(event.pointerId); },
      onpointermove: (event) => { if (from) sized(made, size(event)); }, onpointerup: (event) => { if (from) onsize(size(event)); from = null; } });
  }
  const sized = (made, width) => { for (const each of ["width", "minWidth", "maxWidth"]) made.style[each] = `${width}px`; };
  function head(columns, sort, onsort, onmove) {
    return columns.map((each) => {
      const sorted = sort && sort.key === each.key, mark = sorted ? (sort.up ? " ▲" : " ▼") : "";
      const label = [T.name(each.label), mark];
      const made = E("th", { scope: "col", class: each.number ? "number" : "", "aria-sort": sorted ? (sort.up ? "ascending" : "descending") : each.sortable && onsort ? "none" : null }, E("span", { class: "heading" },
        each.sortable && onsort ? E("button", { type: "button", id: `sort-${each.key}`, "data-sort": each.key, title: each.title || null, onclick: () => onsort(each.key) }, ...label) : E("span", { title: each.title || null }, ...label),
        each.menu ? E("button", { type: "button", class: "more", id: `menu-${each.key}`, "aria-haspopup": "menu", "aria-expanded": "false", "aria-label": `column ${each.label}`, title: "Open, move or hide this column", onclick: (event) => menu(event.currentTarget, each.menu(each.key)) }, "⋯") : null));
      if (each.menu && onmove) drags(made, each.key, onmove);
      if (each.width) sized(made, each.width);
      if (each.onsize) made.append(handle(made, each.onsize));
      return made;
    });
  }
  function row(columns, given, at) {
    return E("tr", { "aria-rowindex": at + 2, class: given.pinned ? "pinned" : null }, ...columns.map((each, place) => {
      const cell = given.cells[place], shown = cell && cell.nodeType === undefined && typeof cell === "object" ? cell : { text: cell };
      const attributes = { class: `${each.number ? "number" : ""}${shown.class ? ` ${shown.class}` : ""}` || null, title: shown.title || null, "data-column": each.key };
      return E(each.heading ? "th" : "td", { ...attributes, scope: each.heading ? "row" : null }, shown.text);
    }));
  }
  const text = (cell) => { const shown = cell && cell.nodeType === undefined && typeof cell === "object" ? cell.text : cell; return String((shown && shown.textContent) ?? shown ?? ""); };
  const full = (cell) => { const named = cell && cell.text && cell.text.querySelectorAll ? cell.text.querySelectorAll("[data-name]") : []; return [text(cell), ...[...named].map((each) => each.dataset.name)].join(" "); };
  const filters = new Map(); // of tables, by view and id, while the page is open
  const COMPARED = /^(.+?)(<=|>=|<|>)(-?\d+(?:\.\d+)?)$/, OPERATORS = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };
  /* The rows that have all words of a filter; COLUMN>NUMBER compares a column's numbers. */
  function filtered(filter, columns, count, rowAt) {
    const words = filter.toLowerCase().match(/(?:"[^"]*"?|[^\s"])+/g) || [], every = Array.from({ length: count }, (_, at) => at);
    const tests = words.map((given) => {
      const word = given.replaceAll('"', ""), [, name, sign, limit] = COMPARED.exec(word) || [], place = columns.findIndex((each) => each.label.toLowerCase() === name);
      return place < 0 ? (cells) => cells.some((cell) => full(cell).toLowerCase().includes(word)) : (cells) => OPERATORS[sign](parseFloat(text(cells[place]).replace("−", "-").replaceAll(",", "")), Number(limit));
    });
    return tests.length ? every.filter((at) => { const { cells } = rowAt(at); return tests.every((test) => test(cells)); }) : every;
  }
  /* A table, with a field that filters its rows unless the view's own search does, or there are few.
     columns: [{ key, label, number, heading, sortable, menu, width, onsize, title }]; count: of rows; rowAt(i): { cells, pinned }. */
  function table(given) {
    const { id, caption, columns, count, rowAt, searched } = given, { view, parts } = T.state(), key = [view, ...parts, id].join("/");
    if (searched || count <= FEW) return tabled(given);
    const told = E("span", { class: "note", "aria-live": "polite" }), holder = E("div", { class: "filtered" });
    const field = E("input", { id: `${id}-rows`, type: "search", value: filters.get(key) || "", placeholder: "words, or a column>number", size: 26, oninput: () => { filters.set(key, field.value); fill(); } });
    let made;
    function fill() {
      const places = field.value.trim() ? filtered(field.value, columns, count, rowAt) : null, fresh = tabled(places ? { ...given, count: places.length, rowAt: (at) => rowAt(places[at]) } : given);
      told.textContent = places ? `${places.length.toLocaleString("en")} of ${count.toLocaleString("en")} rows` : "";
      if (made) made.replaceWith(fresh); else holder.append(E("div", { class: "controls" }, E("label", {}, "Filter these rows", field), told), fresh);
      made = fresh;
    }
    fill();
    holder.repaint = () => made.repaint();
    return holder;
  }
  function tabled({ id, caption, columns, count, rowAt, sort, onsort, onmove }) {
    const body = E("tbody"), whole = count <= MOST;
    const made = E("table", { id, "aria-rowcount": whole ? null : count + 1 }, E("caption", { class: "hidden" }, caption), E("thead", {}, E("tr", { "aria-rowindex": whole ? null : 1 }, ...head(columns, sort, onsort, onmove))), body);
    const box = E("div", { class: whole ? "scroll" : "scroll windowed", tabindex: 0, role: "region", "aria-label": caption }, made);
    const space = (rows) => (rows > 0 ? [E("tr", { class: "space", "aria-hidden": "true" }, E("td", { colspan: columns.length, style: `height: ${rows * ROW}px` }))] : []);
    let from = -1, to = 0;
    function paint() {
      const first = whole ? 0 : Math.max(0, Math.min(count, Math.floor(box.scrollTop / ROW)) - SPARE), last = whole ? count : Math.min(count, first + Math.ceil((box.clientHeight || 700) / ROW) + 2 * SPARE);
      if (first === from && last <= to) return;
      [from, to] = [first, last];
      const rows = [];
      for (let at = first; at < last; at += 1) rows.push(row(columns, rowAt(at), at));
      body.replaceChildren(...space(first), ...rows, ...space(count - last));
    }
    if (!whole) {
      let waiting = false;
      box.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } });
      requestAnimationFrame(paint);
    }
    paint();
    printing = { box, columns, count, rowAt };
    /* Updates the rows in place, so that the focus is kept. */
    box.repaint = () => {
      for (const old of body.querySelectorAll("tr[aria-rowindex]")) {
        const at = Number(old.getAttribute("aria-rowindex")) - 2, fresh = [...row(columns, rowAt(at), at).cells];
        [...old.cells].forEach((cell, place) => {
          cell.className = fresh[place].className;
          if (cell.textContent !== fresh[place].textContent) cell.replaceChildren(...fresh[place].childNodes);
        });
      }
    };
    return box;
  }
  /* Columns of a table, by their numbers, in parts that are as wide as the paper at most. */
  function parts(columns, cells) {
    const long = (cell) => text(cell).length;
    const wide = ({ number, label }, place) => { const most = Math.max(...cells.map((row) => long(row[place]))); return PRINTED.padding + Math.max(PRINTED.digit * (number ? most : Math.min(most, PRINTED.wrapped)), PRINTED.line * Math.ceil(label.length / PRINTED.standing)); };
    const found = [[]];
    let left = PRINTED.width;
    columns.forEach((each, place) => {
      if (each.heading) return;
      const own = wide(each, place);
      if (own > left && found.at(-1).length) { found.push([]); left = PRINTED.width; }
      found.at(-1).push(place);
      left -= own;
    });
    return found;
  }
  const PAGES = 9, PAGE = 720, NAMED = 34; // of a printed table, at most; pixels of its rows on a page; characters of a name in a line
  /* How many rows fit on so many pages; a long text takes several lines. */
  function fitting(columns, count, rowAt, pages) {
    let left = pages * PAGE, at = 0;
    for (; at < count; at += 1) {
      const lines = [...row(columns, rowAt(at), at).cells].map((cell, place) => (columns[place].number ? 1 : Math.ceil(cell.textContent.length / (columns[place].heading ? NAMED : PRINTED.wrapped))));
      left -= PRINTED.line * Math.max(...lines) + 3;
      if (left < 0) break;
    }
    return at;
  }
  /* On paper the columns in these parts, each with the names; what is left out, to have few pages, is stated. */
  addEventListener("beforeprint", () => {
    if (!printing || !printing.box.isConnected) return;
    const { box, columns, count: all, rowAt } = printing, heads = columns.flatMap((each, at) => (each.heading ? [at] : [])), first = Array.from({ length: Math.min(all, MOST) }, (_, at) => rowAt(at).cells);
    const every = parts(columns, first), kept = every.slice(0, PAGES), left = every.slice(PAGES).flat().length, count = fitting(columns, all, rowAt, Math.max(1, Math.floor(PAGES / kept.length)));
    const cut = [...(count < all ? [`the first ${count.toLocaleString("en")} of ${all.toLocaleString("en")} rows`] : []), ...(left ? [`${columns.length - left} of ${columns.length} columns`] : [])].join(", ");
    const made = kept.map((others) => {
      const chosen = [...heads, ...others], body = E("tbody");
      for (let at = 0; at < count; at += 1) {
        const given = rowAt(at).cells;
        const printed = row(chosen.map((place) => columns[place]), { cells: chosen.map((place) => given[place]) }, at);
        printed.querySelectorAll("[data-name]").forEach((each) => each.replaceChildren(T.name(each.dataset.name)));
        body.append(printed);
      }
      return E("table", { class: "printed" }, E("thead", {}, E("tr", {}, ...chosen.map((place) => E("th", { scope: "col" }, E("span", {}, columns[place].label))))), body);
    });
    box.after(E("div", { id: "print" }, ...(cut ? [E("p", { class: "note" }, `Printed: ${cut}; CSV has all.`)] : []), ...made));
    box.classList.add("unprinted");
  });
  addEventListener("afterprint", () => {
    if (T.at("print")) T.at("print").remove();
    document.querySelectorAll(".unprinted").forEach((each) => each.classList.remove("unprinted"));
  });
  T.table = table;
})();
