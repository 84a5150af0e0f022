"use strict";
/* Real tables. Of long ones only the rows that are seen are in the page, between two rows that hold their place. */
(() => {
  const E = T.element, ROW = 27, MOST = 250, SPARE = 12;
  const PRINTED = { width: 480, digit: 6.4, padding: 11, wrapped: 16, line: 12, standing: 20 }; // pixels of A4, upright, beside the names; characters of a text, and of a heading, in a line
  let printing = null;

  function head(columns, sort, onsort) {
    return columns.map((each) => {
      const sorted = sort && sort.key === each.key, mark = sorted ? (sort.up ? " ▲" : " ▼") : "";
      const label = [T.name(each.label), mark];
      return E("th", { scope: "col", class: each.number ? "number" : "", "aria-sort": sorted ? (sort.up ? "ascending" : "descending") : each.sortable && onsort ? "none" : null }, E("span", { class: "heading" },
        each.sortable && onsort ? E("button", { type: "button", id: `sort-${each.key}`, "data-sort": each.key, title: each.title || null, onclick: () => onsort(each.key) }, ...label) : E("span", { title: each.title || null }, ...label),
        each.href ? E("a", { href: each.href, class: "open", "aria-label": `open ${each.label}` }, "↗") : null));
    });
  }
  function row(columns, given, at) {
    return E("tr", { "aria-rowindex": at + 2, class: given.pinned ? "pinned" : null }, ...columns.map((each, place) => {
      const cell = given.cells[place], shown = cell && cell.nodeType === undefined && typeof cell === "object" ? cell : { text: cell };
      const attributes = { class: `${each.number ? "number" : ""}${shown.class ? ` ${shown.class}` : ""}` || null, title: shown.title || null, "data-column": each.key };
      return E(each.heading ? "th" : "td", { ...attributes, scope: each.heading ? "row" : null }, shown.text);
    }));
  }
  /* A table.
     columns: [{ key, label, number, heading, sortable, href, title }]; count: of rows; rowAt(i): { cells, pinned }. */
  function table({ id, caption, columns, count, rowAt, sort, onsort }) {
    const body = E("tbody"), whole = count <= MOST;
    const made = E("table", { id, "aria-rowcount": whole ? null : count + 1 }, E("caption", { class: "hidden" }, caption), E("thead", {}, E("tr", { "aria-rowindex": whole ? null : 1 }, ...head(columns, sort, onsort))), body);
    const box = E("div", { class: whole ? "scroll" : "scroll windowed", tabindex: 0, role: "region", "aria-label": caption }, made);
    const space = (rows) => (rows > 0 ? [E("tr", { class: "space", "aria-hidden": "true" }, E("td", { colspan: columns.length, style: `height: ${rows * ROW}px` }))] : []);
    let from = -1;
    function paint() {
      const first = whole ? 0 : Math.max(0, Math.min(count, Math.floor(box.scrollTop / ROW)) - SPARE), last = whole ? count : Math.min(count, first + Math.ceil((box.clientHeight || 700) / ROW) + 2 * SPARE);
      if (first === from) return;
      from = first;
      const rows = [];
      for (let at = first; at < last; at += 1) rows.push(row(columns, rowAt(at), at));
      body.replaceChildren(...space(first), ...rows, ...space(count - last));
    }
    if (!whole) {
      let waiting = false;
      box.addEventListener("scroll", () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; paint(); }); } });
      requestAnimationFrame(() => { from = -1; paint(); });
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
    const words = (cell) => (cell && cell.nodeType === undefined && typeof cell === "object" ? cell.text : cell), long = (cell) => { const text = words(cell); return String((text && text.textContent) ?? text ?? "").length; };
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
        body.append(row(chosen.map((place) => columns[place]), { cells: chosen.map((place) => given[place]) }, at));
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
