"use strict";
/* The page of a sample: its pictures, its target, and the outputs of every model. */
(() => {
  const S = () => T.samples;
  const E = (...given) => T.element(...given);

  // Navigation -------------------------------------------------------------------------------------------------------

  /* The samples before and after one, in the order of the filters that led here. */
  async function neighbours(meta, position, query) {
    const positions = await S().chosen(meta, query);
    let place = positions.indexOf(position), list = positions;
    if (place < 0) { list = S().every(meta); place = list.indexOf(position); }
    const near = [place - 1, place + 1].filter((each) => each >= 0 && each < list.length);
    const ids = await S().ids(meta, near.map((each) => list[each]));
    const to = (each) => { const at = near.indexOf(each); return at < 0 ? null : S().link(meta, ids[at], list[each], query); };
    return { previous: to(place - 1), next: to(place + 1), place, count: list.length, filtered: list === positions && list.length < meta.count };
  }
  function steps(near) {
    const step = (href, text, id, key) => (href
      ? E("a", { href, id, class: "step", rel: id === "previous" ? "prev" : "next", "aria-keyshortcuts": key }, text)
      : E("span", { class: "step none", "aria-disabled": "true" }, text));
    return E("nav", { class: "steps", "aria-label": "Samples" },
      step(near.previous, "← Previous", "previous", "ArrowLeft"),
      E("span", { class: "place" }, `${(near.place + 1).toLocaleString("en")} of ${near.count.toLocaleString("en")}${near.filtered ? " filtered" : ""}`),
      step(near.next, "Next →", "next", "ArrowRight"));
  }
  document.addEventListener("keydown", (event) => {
    const id = { ArrowLeft: "previous", ArrowRight: "next" }[event.key];
    if (!id || T.state().view !== "sample" || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("input, select, textarea, [contenteditable], .scrolls")) return;
    const link = document.getElementById(id);
    if (link) { event.preventDefault(); location.hash = link.getAttribute("href"); }
  });

  // Pictures and target ----------------------------------------------------------------------------------------------

  function pictures(meta, sample) {
    const name = S().words(meta, sample.target) || sample.id;
    const figure = (clean, caption) => E("figure", {}, S().picture(meta, sample.position, `${caption}: ${name}`, clean), E("figcaption", {}, caption));
    if (meta.perturbed === "image") return E("div", { class: "pictures" }, figure(true, "clean"), figure(false, `perturbed as in ${meta.setting}`));
    if (meta.perturbed === "attack") return E("div", { class: "pictures" }, figure(true, "clean; the attack makes a picture for each model, which is not stored"));
    return E("div", { class: "pictures" }, figure(false, "the sample"));
  }
  const OPTION = /^[A-Z]$/, SHOWN = ["question", "hint", "answer"];
  function question(target) {
    const options = Object.entries(target).filter(([key]) => OPTION.test(key));
    const other = Object.entries(target).filter(([key]) => !OPTION.test(key) && !SHOWN.includes(key));
    return E("div", { class: "question" },
      target.hint ? E("p", {}, target.hint) : null,
      target.question ? E("p", { class: "asked" }, target.question) : null,
      options.length ? E("ul", { class: "options" }, ...options.map(([key, text]) => E("li", { class: key === target.answer ? "answer" : null },
        `${key}. ${text}`, key === target.answer ? E("strong", {}, " (right)") : null))) : null,
      !options.length && target.answer !== undefined ? E("p", {}, "answer: ", E("strong", {}, String(target.answer))) : null,
      other.length ? E("dl", { class: "facts" }, ...other.flatMap(([key, text]) => [E("dt", {}, key), E("dd", {}, String(text))])) : null);
  }
  function target(meta, sample) {
    const given = sample.target;
    if (given === null || given === undefined) return null;
    if (Array.isArray(given) && typeof given[0] === "string") {
      return E("section", {}, E("h2", {}, meta.task === "captioning" || meta.kind === "text" ? "References" : "Captions"), E("ol", { class: "captions" }, ...given.map((each) => E("li", {}, each))));
    }
    if (Array.isArray(given) && !given.length) return E("section", {}, E("h2", {}, "Target"), E("p", {}, "none"));
    if (typeof given === "object" && !Array.isArray(given) && Array.isArray(given.captions)) {
      return E("section", {}, E("h2", {}, "Captions to choose from"), E("ol", { class: "captions" }, ...given.captions.map((each, place) => E("li", {}, each, place === given.answer ? E("strong", {}, " (right)") : null))));
    }
    if (typeof given === "object" && !Array.isArray(given)) return E("section", {}, E("h2", {}, "Question"), question(given));
    return E("section", {}, E("h2", {}, "Target"), E("p", { class: "target" }, E("strong", {}, S().words(meta, given)), typeof given === "number" && meta.classes[given] !== String(given) ? ` (class ${given})` : ""));
  }
  function facts(sample) {
    const rows = Object.entries({ ...(sample.group ? { group: sample.group } : {}), ...(sample.slices || {}) }).filter(([key]) => !(sample.target && typeof sample.target === "object" && key in sample.target));
    return rows.length ? E("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [E("dt", {}, key), E("dd", {}, typeof value === "string" ? value : JSON.stringify(value))])) : null;
  }

  // Models -----------------------------------------------------------------------------------------------------------

  /* The output of each model, one object per model. */
  function answers(meta, doc, at) {
    const top = doc.top, samples = doc.samples.length, classes = top && S().unpack(top.classes), shares = top && S().unpack(top.shares);
    const scores = Object.entries(doc.scores).map(([name, given]) => [name, S().unpack(given)]);
    return meta.evaluations.map((each, place) => {
      const row = place * samples + at, start = top ? row * top.k : 0;
      const found = { ...each, error: (doc.errors[place] || {})[at], said: doc.texts ? doc.texts[place][at] : null, scores: {}, top: [] };
      for (const [name, values] of scores) found.scores[name] = values[row];
      if (top) for (let k = 0; k < top.k; k += 1) if (!isNaN(classes[start + k])) found.top.push([classes[start + k], shares[start + k]]);
      const score = found.scores[meta.right];
      found.right = meta.right && score !== undefined && !isNaN(score) ? score >= S().RIGHT : null;
      return found;
    });
  }
  const mark = (right) => (right === null ? "" : E("span", { class: right ? "right" : "wrong" }, right ? "✓ right" : "✗ wrong"));
  const same = (given, label) => (Array.isArray(given) ? given.includes(label) : given === label);
  function summary(meta, sample, found) {
    const judged = found.filter((each) => each.right !== null), right = judged.filter((each) => each.right).length;
    const counts = new Map();
    for (const each of found) if (each.top.length) counts.set(each.top[0][0], (counts.get(each.top[0][0]) || 0) + 1);
    const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 6);
    return E("p", { class: "note" }, judged.length ? `${right} of ${judged.length} models right. ` : "",
      most.length ? `Predicted: ${most.map(([label, count]) => `${S().className(meta, label)} (${count})`).join(", ")}${counts.size > most.length ? ", …" : ""}.` : "");
  }
  /* Rows in the requested order; pinned models first. */
  function ordered(meta, found, query) {
    const pins = new Set(T.pins()), selected = T.selected(query.get("find"));
    const keys = {
      name: () => 0,
      wrong: (each) => (each.right === null ? 2 : Number(each.right)),
      confidence: (each) => (each.top.length ? -each.top[0][1] : -(each.scores[meta.score] ?? -Infinity)),
    };
    const key = keys[query.get("order")] || keys.name;
    return found.filter((each) => pins.has(each.model) || selected(each.model))
      .sort((a, b) => pins.has(b.model) - pins.has(a.model) || key(a) - key(b) || (a.model < b.model ? -1 : 1));
  }
  function controls(meta, query, logits) {
    const select = E("select", { id: "order", onchange: (event) => T.change({ order: event.target.value === "name" ? null : event.target.value }) },
      ...[["name", "name"], ["wrong", "wrong first"], ["confidence", logits ? "confidence" : "score"]].map(([value, text]) => E("option", { value, selected: query.get("order") === value }, text)));
    const box = E("input", { id: "find", type: "search", value: query.get("find") || "", onchange: (event) => T.change({ find: event.target.value || null }) });
    return E("div", { class: "controls" }, E("label", {}, "Models by", select), meta.evaluations.length > 8 || query.get("find") ? E("label", {}, "Models", box) : null);
  }
  function table(caption, heads, rows) {
    return E("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": caption },
      E("table", { class: "answers" }, E("caption", {}, caption),
        E("thead", {}, E("tr", {}, ...heads.map((each) => E("th", { scope: "col" }, T.name(each))))),
        E("tbody", {}, ...rows)));
  }
  const modelCell = (meta, each) => E("th", { scope: "row" }, E("a", { href: T.link("cell", [each.id]) }, T.name(each.model)));
  function logitsTable(meta, sample, doc, rows) {
    const ordinals = ["1st", "2nd", "3rd", "4th", "5th"].slice(0, doc.top.k);
    const body = rows.map((each) => E("tr", {}, modelCell(meta, each), E("td", {}, mark(each.right)),
      ...(each.error ? [E("td", { colspan: ordinals.length, class: "error" }, `error: ${each.error}`)]
        : ordinals.map((_, place) => E("td", { class: each.top[place] && same(sample.target, each.top[place][0]) ? "hit" : null },
          ...(each.top[place] ? [E("span", { class: "label" }, S().className(meta, each.top[place][0])), " ", E("span", { class: "share" }, doc.top.meaning === "logit" ? S().number(each.top[place][1]) : S().percent(each.top[place][1]))] : ["–"]))))));
    return table(doc.top.meaning === "logit" ? "The classes with the largest logits, and these" : "The most likely classes; confidence: softmax of the logits", ["model", meta.right || "", ...ordinals], body);
  }
  function verdict(said) {
    if (!said || said.method === undefined) return null;
    const read = said.extracted === null ? "nothing could be read" : `read as ${said.extracted}`;
    return E("div", { class: "verdict" }, `${read}${said.method && said.method !== "none" ? ` (rule: ${said.method})` : ""}${said.read === null ? "; left to a judge" : ""}`);
  }
  function textsTable(meta, doc, rows) {
    const names = Object.keys(doc.scores).filter((name) => name !== "status" && name !== "parsed");
    const body = rows.map((each) => E("tr", {}, modelCell(meta, each),
      E("td", { class: "said" }, each.error ? E("span", { class: "error" }, `error: ${each.error}`)
        : each.said && each.said.text !== undefined ? E("div", { class: "words" }, each.said.text.trim() || "(blank)")
          : E("span", { class: "error" }, each.said ? each.said.problem : "no answer"), each.said && each.said.finish ? E("div", { class: "note" }, `ended: ${each.said.finish}`) : null, verdict(each.said)),
      ...names.map((name) => E("td", { class: "number" }, name === meta.right && each.right !== null ? mark(each.right) : S().number(each.scores[name])))));
    return table("Answers of each model", ["model", "answer", ...names], body);
  }
  function scoresTable(meta, doc, rows) {
    const names = Object.keys(doc.scores);
    const body = rows.map((each) => E("tr", {}, modelCell(meta, each),
      ...(each.error ? [E("td", { colspan: names.length || 1, class: "error" }, `error: ${each.error}`)] : names.map((name) => E("td", { class: "number" }, S().number(each.scores[name]))))));
    return table("Scores of each model", ["model", ...names], body);
  }

  // View -------------------------------------------------------------------------------------------------------------

  async function render(state, main) {
    const name = state.parts[0], id = state.parts.slice(1).join("/"), hint = state.query.get("at");
    try {
      const meta = await S().setting(name), position = await S().find(meta, id, hint === null ? NaN : Number(hint));
      if (position < 0) throw new Error(`${name} has no sample ${id}`);
      if (S().rankOf(meta, position) < 0) throw new Error(`The sample ${id} is not in this export; it has ${meta.count.toLocaleString("en")} of ${meta.n.toLocaleString("en")} samples of ${name}`);
      const [{ doc, number, at }, near] = await Promise.all([S().chunk(meta, position), neighbours(meta, position, state.query)]);
      const sample = doc.samples[at], found = answers(meta, doc, at), rows = ordered(meta, found, state.query);
      main.replaceChildren(
        E("div", { class: "head" }, E("h1", {}, T.name(sample.id)), steps(near)),
        E("p", { class: "note" }, "A sample of ", E("a", { href: T.link("samples", [name], S().keptOf(state.query)) }, T.name(name)), ". ", E("a", { href: T.link("sample", [name, id]), class: "permanent" }, "Permanent link"),
          meta.clean !== null && meta.clean !== undefined ? E("span", {}, ". ", cleanLink(meta, id)) : null),
        E("div", { class: "sample" }, pictures(meta, sample), E("div", { class: "about" }, target(meta, sample), facts(sample))),
        E("section", {}, E("h2", {}, "Models"), summary(meta, sample, found), controls(meta, state.query, Boolean(doc.top)),
          doc.top ? logitsTable(meta, sample, doc, rows) : doc.texts ? textsTable(meta, doc, rows) : scoresTable(meta, doc, rows)),
        T.sampleDetails(meta, rows, number, at, state.query),
        S().comparing(meta.evaluations, state.query) || "");
    } catch (error) { S().failure(main, error); }
  }
  function cleanLink(meta, id) {
    const made = E("a", { href: "#" }, "The same sample of another setting");
    T.load("index").then((index) => {
      const name = index.settings[meta.clean].name;
      made.setAttribute("href", T.link("sample", [name, id]));
      made.replaceChildren("The same sample of ", T.name(name));
    });
    return made;
  }

  T.view("sample", { title: (state) => `${state.parts.slice(1).join("/")} – ${state.parts[0] || ""}`, render });
})();
