"use strict";
/* The state in the address, documents, views and elements. */
window.T = (() => {
  if (matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.dataset.theme = "dark";
  const documents = new Map(), waiting = new Map(), views = new Map();
  const main = document.getElementById("main"), live = document.getElementById("live");

  /* A document, loaded once. */
  function load(path) {
    if (!documents.has(path)) {
      documents.set(path, new Promise((found, failed) => {
        waiting.set(path, found);
        const script = document.createElement("script");
        script.src = `data/${path}.js`;
        script.onload = () => script.remove();
        script.onerror = () => { documents.delete(path); script.remove(); failed(new Error(`There is no document ${path}`)); };
        document.head.append(script);
      }));
    }
    return documents.get(path);
  }
  const give = (path, value) => waiting.get(path)(value);

  function state() {
    const [path, query] = location.hash.replace(/^#/, "").split("?"), parts = path.split("/").filter(Boolean).map(decodeURIComponent);
    return { view: parts[0] || "start", parts: parts.slice(1), query: new URLSearchParams(query || "") };
  }
  function link(name, parts, query) {
    const given = query instanceof URLSearchParams ? [...query] : Object.entries(query || {});
    const kept = new URLSearchParams(given.filter(([, value]) => value !== null && value !== undefined && value !== "")).toString();
    return `#/${[name, ...(parts || [])].map(encodeURIComponent).join("/")}${kept ? `?${kept}` : ""}`;
  }
  function change(changes) {
    const now = state();
    location.hash = link(now.view, now.parts, { ...Object.fromEntries(now.query), ...changes });
  }
  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, given] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), given);
      else if (given !== null && given !== undefined && given !== false) made.setAttribute(key, given === true ? "" : given);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }
  /* A name that may break after - . _ and /. */
  function name(text) {
    const made = document.createElement("span");
    for (const part of String(text).split(/(?<=[-._/])/)) made.append(part, document.createElement("wbr"));
    return made;
  }
  async function draw() {
    const now = state(), view = views.get(now.view), focused = document.activeElement && document.activeElement.id;
    if (!view) return;
    document.title = `${view.title(now)} – testbed`;
    await view.render(now, main);
    if (focused && document.getElementById(focused)) document.getElementById(focused).focus();
  }
  function start() {
    window.addEventListener("hashchange", draw);
    draw();
  }
  const announce = (text) => { live.textContent = text; };
  return { load, give, state, link, change, element, name, announce, pins: () => [], view: (key, given) => views.set(key, given), has: (key) => views.has(key), start };
})();
