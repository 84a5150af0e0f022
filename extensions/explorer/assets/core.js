"use strict";
/* The state in the address, documents, views and elements. */
window.T = (() => {
  const documents = new Map(), waiting = new Map(), views = new Map();
  const START = "leaderboard", SVG = new Set(["svg", "g", "line", "path", "text", "rect", "circle", "polyline", "polygon", "title"]);
  const at = (id) => document.getElementById(id);
  const main = at("main"), live = at("live"), tip = at("tip");

  // Documents --------------------------------------------------------------------------------------------------------

  const FETCHED = document.documentElement.dataset.documents === "json"; // set by the server; files are loaded as scripts
  /* A document, loaded once. */
  function load(path) {
    if (!documents.has(path)) {
      documents.set(path, (FETCHED ? fetched(path) : ran(path)).catch((error) => { documents.delete(path); throw error; }));
    }
    return documents.get(path);
  }
  async function fetched(path) {
    let answer;
    try { answer = await fetch(`data/${path}.json`); } catch { throw new Error("The server does not respond. Is “testbed serve” still running?"); }
    if (answer.ok) return answer.json();
    throw answer.status === 404 ? missing(`There is no document ${path}`) : new Error(await answer.text());
  }
  const missing = (text) => Object.assign(new Error(text), { missing: true });
  /* A document, loaded once; null, or an error with this text, if there is none. */
  async function find(path, text) {
    try {
      return await load(path);
    } catch (error) {
      if (!error.missing) throw error;
      if (text) throw missing(text);
      return null;
    }
  }
  async function ran(path) {
    const given = new Promise((found) => waiting.set(path, found));
    await run(`data/${path}.js`);
    return given;
  }
  function run(src) {
    return new Promise((found, failed) => {
      const script = element("script", { src, onload: found, onerror: () => failed(missing(`There is no document ${src}`)) });
      document.head.append(script);
      script.remove();
    });
  }
  const give = (path, value) => waiting.get(path)(value);

  // Address ----------------------------------------------------------------------------------------------------------

  // Decodes a part of an address; keeps a malformed one (a % without two digits).
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }
  let read = { hash: null };
  function state() {
    const { hash } = location;
    if (read.hash === hash) return read;
    const [path, query] = hash.replace(/^#/, "").split("?"), parts = path.split("/").filter(Boolean).map(decoded);
    read = { hash, view: parts[0] || START, parts: parts.slice(1), query: new URLSearchParams(query || "") };
    return read;
  }
  /* What stays in the address from view to view, unless a link sets it; a null of a link removes it. */
  const KEPT = ["pin", "find", "type", "family", "pretraining", "size", "added", "task", "cols", "widths", "metric", "x", "y", "scale", "baseline", "hide"], CHOSEN = "chosen", PLOTS = ["plot", "robustness"];
  function link(name, parts, query) {
    const given = query instanceof URLSearchParams ? [...query] : Object.entries(query || {}), now = state(), set = new Set(given.map(([key]) => key));
    const keys = PLOTS.includes(name) && PLOTS.includes(now.view) && !set.has("x") ? [...KEPT, "least"] : KEPT; // elsewhere a bound of confidence
    for (const key of keys) if (!set.has(key) && now.query.has(key)) given.push([key, now.query.get(key)]);
    const kept = new URLSearchParams(given.filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
    return `#/${[name, ...(parts || [])].map(encodeURIComponent).join("/")}${kept ? `?${kept}` : ""}`;
  }
  /* The address with some of its state changed, without the chosen models: these are written into it on the spot, so that no link has those of an earlier moment. */
  function changed(changes) {
    const now = state();
    return link(now.view, now.parts, { ...Object.fromEntries(now.query), [CHOSEN]: null, ...changes });
  }
  /* The chosen models in the address; given some, they replace them there without another step of the history. */
  function choice(names) {
    if (names) history.replaceState(null, "", changed({ [CHOSEN]: names.map(quoted).join("|") }));
    return state().query.has(CHOSEN) ? words(state().query.get(CHOSEN), "|") : null;
  }
  function change(changes) {
    location.hash = changed(changes);
  }
  /* Lists of names in the address: a name that has a separator, a blank at an end or a quote is quoted. */
  const quoted = (text) => (/[|,"]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const words = (text, separators) => ((text || "").match(new RegExp(`(?:"(?:[^"]|"")*"|[^"${separators}])+`, "g")) || []).map((each) => unquoted(each.trim())).filter(Boolean);
  const unquoted = (text) => (/^".*"$/s.test(text) ? text.slice(1, -1).replaceAll('""', '"') : text);
  const NO_PINS = "|"; // in the address, where others would be pinned
  /* The pinned models: those of the address, else the index's. */
  const pins = () => (state().query.has("pin") ? words(state().query.get("pin"), "|") : T.pinned || []);
  function pin(name) {
    const now = new Set(pins());
    if (!now.delete(name)) now.add(name);
    change({ pin: [...now].map(quoted).join("|") || (T.pinned && T.pinned.length ? NO_PINS : null) });
    announce(`${name} ${now.has(name) ? "pinned" : "no longer pinned"}`);
  }

  // Elements ---------------------------------------------------------------------------------------------------------

  function element(tag, attributes, ...children) {
    const made = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, given] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), given);
      else if (given !== null && given !== undefined && given !== false) made.setAttribute(key, given === true ? "" : given);
    }
    made.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return made;
  }
  /* A name that may break after - . _ and /. */
  function name(text) {
    const made = document.createElement("span");
    for (const part of String(text).split(/(?<=[-._/])/)) made.append(part, document.createElement("wbr"));
    return made;
  }
  /* A list to choose from, whose choice is kept in the address. */
  function choose(label, key, given, chosen, changes) {
    const groups = new Map();
    for (const each of given) {
      const option = typeof each === "string" ? { value: each, text: each } : each;
      if (!groups.has(option.group || "")) groups.set(option.group || "", []);
      groups.get(option.group || "").push(element("option", { value: option.value, selected: option.value === chosen }, option.text));
    }
    const options = [...groups].flatMap(([group, members]) => (group ? [element("optgroup", { label: group }, ...members)] : members));
    return element("label", {}, label, element("select", { id: `choose-${key}`, "data-key": key, onchange: (event) => change({ [key]: event.target.value, ...changes }) }, ...options));
  }
  function box(label, key, value, attributes) {
    return element("label", {}, label, element("input", { id: `box-${key}`, "data-key": key, type: "search", value: value || "", onchange: (event) => change({ [key]: event.target.value || null }), ...attributes }));
  }
  const announce = (text) => { live.textContent = text; };

  function show(heading, lines, x, y) {
    tip.replaceChildren(element("strong", {}, heading), ...lines.map((line) => element("div", {}, line)));
    tip.hidden = false;
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 8))}px`;
  }
  const hide = () => { tip.hidden = true; };

  // Views ------------------------------------------------------------------------------------------------------------

  let drawn = 0, opened = 0, shown = null, below = null;
  /* After a change of the address: the view, unless only its drawer was opened or closed, then the drawer. */
  async function moved() {
    const page = changed({ open: null });
    if (T.chosen.synced() || page !== below) await draw();
    else await drawDrawer();
  }
  function drawDrawer() {
    const number = (opened += 1);
    return T.drawDrawer(state(), () => number === opened);
  }
  async function draw() {
    const number = (drawn += 1), now = state(), view = views.get(now.view), focused = document.activeElement && document.activeElement.id;
    hide();
    below = changed({ open: null });
    for (const each of at("views").children) {
      if (each.dataset.view === now.view) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
      each.setAttribute("href", link(each.dataset.view, [], {}));
    }
    at("brand").setAttribute("href", link(START, [], {}));
    try {
      await T.ready(now.query);
      T.chosen.synced();
      if (number !== drawn) return;
      if (!view) throw new Error(`There is no view ${now.view}`);
      document.title = `${view.title(now)} – testbed`;
      await view.render(now, main, () => number === drawn);
    } catch (error) {
      if (number === drawn) main.replaceChildren(element("h1", {}, error.message), element("p", {}, element("a", { href: link(START) }, "To the leaderboard")));
    }
    if (number !== drawn) return;
    const kept = focused && focused !== "main" && at(focused), place = `${now.view}/${now.parts.join("/")}`;
    if (kept) kept.focus({ preventScroll: true });
    else if (shown !== null && shown !== place) main.focus({ preventScroll: true });
    shown = place;
    await drawDrawer();
  }
  function view(key, given) {
    views.set(key, given);
    if (given.nav) at("views").append(element("a", { href: `#/${key}`, "data-view": key, hidden: Boolean(given.optional) }, given.nav));
  }
  function theme(dark) {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }
  function start() {
    let kept = null;
    try { kept = localStorage.getItem("testbed-theme"); } catch { /* of a page from the file system, perhaps */ }
    theme(kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
    at("theme").addEventListener("click", () => {
      theme(document.documentElement.dataset.theme !== "dark");
      try { localStorage.setItem("testbed-theme", document.documentElement.dataset.theme); } catch { /* likewise */ }
      draw();
    });
    const skip = (id, target) => at(id).addEventListener("click", (event) => { event.preventDefault(); target().focus(); });
    skip("skip", () => main);
    skip("skip-table", () => main.querySelector("tbody td a") || main.querySelector("tbody a") || main);
    let resized;
    addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(draw, 150); });
    addEventListener("hashchange", moved);
    T.index().catch(() => {}); // shown on every page; the view reports errors
    draw();
  }
  return { load, find, give, run, state, link, change, changed, quoted, words, pins, pin, choice, element, name, choose, box, announce, show, hide, view, start, at };
})();
