"use strict";
/* The shown columns: by task, by search, by a list of names and patterns; and the box to choose them. */
(() => {
  const E = T.element, USUAL = 12, STEP = 1.25, ANY = "all";
  let open = false, scrolled = 0; // of the box, which is made anew with the page

  /* The names and patterns of a list, between | or commas; a name that has one of these is quoted by T.quoted. */
  const listed = (query) => T.words(query.get("cols"), "|,");
  /* The task of the shown columns: that of the address, else the first, unless columns are named. */
  function taskOf(index, query, search) {
    if (query.get("task")) return query.get("task");
    return listed(query).length || search.hasColumns ? ANY : index.tasks[0];
  }
  /* The positions of the columns that the address selects, and the entries of its list without a match. */
  function chosen({ columns, columnOf }, query, search, task) {
    const names = listed(query), every = columns.map((_, at) => at).filter((at) => task === ANY || columns[at].task === task), found = every.filter((at) => search.column(columns[at]));
    if (!names.length) return { places: search.hasColumns ? found : T.usual(columns, found, USUAL), missed: [] };
    const tests = names.map((each) => (columnOf.has(each) ? (column) => column.name === each : T.parse(`on:"${each}"`).column));
    return { places: [...new Set(tests.flatMap((test) => found.filter((at) => test(columns[at]))))], missed: names.filter((_, at) => !columns.some(tests[at])) };
  }
  /* Checkboxes of the columns of a task, by group, with the number of models; and a box for names and patterns. */
  function picker(index, query, task, places) {
    const every = index.columns.map((_, at) => at).filter((at) => task === ANY || index.columns[at].task === task), shown = new Set(places);
    const choose = (ats) => T.change({ cols: ats.length ? ats.map((at) => T.quoted(index.columns[at].name)).join("|") : null, task });
    const list = E("div", { class: "picked", onscroll: () => { scrolled = list.scrollTop; } });
    const made = E("details", { class: "picker", id: "columns", open, ontoggle: () => { open = made.open; fill(); } }, E("summary", { id: "columns-summary" }, `Columns: ${shown.size} of ${every.length}`), list);
    function fill() {
      if (!made.open || list.childElementCount) return;
      const groups = new Map();
      for (const at of every) groups.set(index.columns[at].group, [...(groups.get(index.columns[at].group) || []), at]);
      list.append(E("div", { class: "controls" }, T.box("Names or patterns, between | or ,", "cols", query.get("cols"), { placeholder: "val | imagenet-r | avg_*", size: 26 }),
        E("button", { type: "button", id: "all-columns", onclick: () => T.change({ cols: "*", task }) }, `All ${every.length} columns`), E("button", { type: "button", id: "usual-columns", onclick: () => T.change({ cols: null }) }, "The usual ones")),
      ...[...groups].map(([group, members], number) => {
        const on = members.filter((at) => shown.has(at));
        const whole = E("input", { type: "checkbox", id: `group-${number}`, checked: on.length === members.length, onchange: (event) => choose(event.target.checked ? [...new Set([...shown, ...members])] : [...shown].filter((at) => !members.includes(at))) });
        whole.indeterminate = on.length > 0 && on.length < members.length;
        return E("fieldset", {}, E("legend", {}, E("label", { class: "check" }, whole, `${group} (${on.length} of ${members.length})`)), ...members.map((at) => {
          const { name, models, own, setting } = index.columns[at], count = setting === null ? "average" : `${T.numbers.counted(models, "model")}${own && own < models ? `, ${own.toLocaleString("en")} here` : ""}`;
          return E("label", { class: "check" }, E("input", { type: "checkbox", id: `column-${at}`, checked: shown.has(at), onchange: (event) => choose(event.target.checked ? [...shown, at] : [...shown].filter((each) => each !== at)) }), T.name(name), E("span", { class: "count" }, count));
        }));
      }));
      list.scrollTop = scrolled;
    }
    fill();
    return made;
  }
  /* The menu of a shown column: hide it, move it, or make it wider or narrower; order and widths are kept in the address. */
  function menu(names, task, sort) {
    const show = (kept, said) => { T.change({ cols: kept.length ? kept.map(T.quoted).join("|") : null, task, sort: kept.includes(sort.key) ? sort.key : null, up: kept.includes(sort.key) ? Number(sort.up) : null }); T.announce(said); };
    const place = (name, to) => { const others = names.filter((each) => each !== name); others.splice(Math.max(0, to), 0, name); show(others, `${name} is column ${Math.max(0, to) + 1} of ${names.length}`); };
    const widths = new Map(T.words(T.state().query.get("widths"), "|").map((each) => [each.slice(0, each.lastIndexOf("=")), Number(each.slice(each.lastIndexOf("=") + 1))]));
    const resize = (name, width) => { if (width) widths.set(name, width); else widths.delete(name); T.change({ widths: [...widths].map((each) => T.quoted(each.join("="))).join("|") || null }); };
    return {
      width: (name) => widths.get(name), resize,
      move: (from, to) => place(from, names.indexOf(to)),
      of: (name) => {
        const at = names.indexOf(name);
        return [["Open its page", () => { location.hash = T.link("setting", [name]); }], ...(at > 0 ? [["Move to the front", () => place(name, 0)], ["Move left", () => place(name, at - 1)]] : []),
          ...(at < names.length - 1 ? [["Move right", () => place(name, at + 1)]] : []), ...[["Wider", STEP], ["Narrower", 1 / STEP]].map(([text, part]) => [text, () => resize(name, Math.round(part * T.at(`menu-${name}`).closest("th").offsetWidth))]), ...(widths.has(name) ? [["Usual width", () => resize(name, 0)]] : []), ...(names.length > 1 ? [["Hide", () => show(names.filter((each) => each !== name), `${name} hidden`)]] : [])];
      },
    };
  }
  /* A tab for each task. */
  function tabs(index, task) {
    if (index.tasks.length < 2) return null;
    const link = (value, text) => E("a", { href: T.changed({ task: value, cols: null, sort: null, up: null, open: null }), "aria-current": value === task ? "page" : null }, text);
    return E("nav", { class: "tabs", "aria-label": "Tasks" }, ...index.tasks.map((each) => link(each, each)), link(ANY, "all tasks"));
  }
  T.columns = { ANY, taskOf, chosen, picker, menu, tabs };
})();
