"use strict";
/* Models in tables: names short enough for the screen and different from each other, with their pins and checkboxes. */
(() => {
  const E = T.element, NARROW = 640, LONGEST = { wide: 42, narrow: 19 }, ENDS = 4; // characters of a name, and of its ends
  const longest = () => (innerWidth > NARROW ? LONGEST.wide : LONGEST.narrow);

  /* A name without some of its middle, from a place on. */
  const cut = (name, most, from) => `${name.slice(0, from)}…${name.slice(from + name.length - most + 1)}`;
  /* Where names of a group differ first, so that what is left out can end before it, or begin after it. */
  function cuts(name, group, most) {
    const middle = Math.ceil((most - 1) / 2), last = most - 1;
    const differs = group.length > 1 ? Math.min(...group.filter((each) => each !== name).map((each) => { let at = 0; while (at < each.length && each[at] === name[at]) at += 1; return at; })) : 0;
    const wanted = [middle, Math.min(last, differs + 2), last - Math.min(last, Math.max(0, name.length - differs + 1)), ...Array.from({ length: most }, (_, at) => (at % 2 ? middle + (at + 1) / 2 : middle - at / 2))];
    const within = [...new Set(wanted)].filter((from) => from >= 0 && from <= last), both = within.filter((from) => from >= ENDS && from <= last - ENDS);
    return [...new Set([...both, ...within])]; // some of both ends, if that can be
  }
  const OWN = /^(?:[^,/]+(?:\/[^,/]+)?,|[\w.-]+\/)?(\/.+)$/; // ARCHITECTURE,/path/of/weights, as in testbed.registry.own_files
  /* The ends of the path of a model's file, the shortest with one folder. */
  function tails(name) {
    const parts = (OWN.exec(name)?.[1] || "").split("/").filter(Boolean);
    return parts.slice(1).map((_, at) => parts.slice(parts.length - at - 2).join("/"));
  }
  /* Full name → a name of `most` characters at most, none of which is that of another: { get }. */
  function shortened(names, most = longest()) {
    const long = new Set(names.filter((each) => each.length > most)), found = new Map(), of = { get: (name) => found.get(name) ?? name };
    if (!long.size) return of;
    const ends = new Map([...long].map((name) => [name, tails(name)]).filter(([, all]) => all.length)), counts = new Map();
    for (const end of [...ends.values()].flat()) counts.set(end, (counts.get(end) || 0) + 1);
    for (const [name, all] of ends) {
      const end = all.find((each) => counts.get(each) === 1 && each.length + 2 <= most);
      if (end) { found.set(name, `…/${end}`); long.delete(name); }
    }
    const alike = new Map(), taken = new Set(names.filter((each) => each.length <= most));
    for (const name of long) { const key = cut(name, most, Math.ceil((most - 1) / 2)); alike.set(key, [...(alike.get(key) || []), name]); }
    for (const [key, group] of alike) {
      if (group.length === 1 && !taken.has(key)) { found.set(group[0], key); taken.add(key); continue; }
      for (const name of group) {
        const others = new Set(group.filter((each) => each !== name)), free = (text, from) => !taken.has(text) && ![...others].some((each) => cut(each, most, from) === text);
        const from = cuts(name, group, most).find((each) => free(cut(name, most, each), each)) ?? cuts(name, group, most).find((each) => !taken.has(cut(name, most, each)));
        if (from !== undefined) { found.set(name, cut(name, most, from)); taken.add(found.get(name)); }
      }
    }
    return of;
  }
  /* A link to a model's page, by its short name. */
  const link = (name, short, view = "model") => E("a", { href: T.link(view, [name]), title: short === name ? null : name, "data-name": short === name ? null : name }, short);
  /* Cells of models for a table: a checkbox to choose it, a pin, and the link. */
  function cells(names) {
    const short = shortened(names), pinned = new Set(T.pins());
    return {
      pinned: (name) => pinned.has(name),
      cell: (name) => {
        const on = pinned.has(name), check = E("input", { type: "checkbox", class: "choose", "aria-label": `choose ${name}`, checked: T.chosen.has(name), onchange: (event) => T.chosen.set(name, event.target.checked) });
        return { text: E("span", { class: "named" }, check, E("button", { type: "button", class: "pin", "aria-pressed": on ? "true" : "false", "aria-label": `pin ${name}`, title: "Pinned models come first and are marked in all views", onclick: () => T.pin(name) }, on ? "★" : "☆"), link(name, short.get(name))) };
      },
    };
  }
  /* Items with the pinned models before the others. */
  function first(items, name) {
    const pinned = new Set(T.pins());
    return pinned.size ? [...items.filter((each) => pinned.has(name(each))), ...items.filter((each) => !pinned.has(name(each)))] : items;
  }
  /* A field for the search of models, and the leaderboard's filters, which also hold here, each with a button that removes it. */
  function finder(query) {
    const box = T.box("Models", "find", query.get("find"), { placeholder: "resnet* type:standard val>80", size: 28 });
    const filters = T.KEYS.filter((key) => query.get(key)).map((key) => E("button", { type: "button", id: `without-${key}`, "aria-label": `remove the filter ${key}: ${query.get(key)}`, onclick: () => T.change({ [key]: null }) }, `${key}: ${query.get(key)} ✕`));
    return filters.length ? E("div", { class: "controls" }, box, ...filters) : box;
  }
  T.models = { shortened, link, cells, first, finder };
})();
