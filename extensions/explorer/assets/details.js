"use strict";
/* Details of a sample in one evaluation: retrieved items, comparisons of captions, replies of judges. */
(() => {
  const S = () => T.samples;
  const E = (...given) => T.element(...given);
  const HEADS = { retrieval: "Retrieved", selection: "Similarities", judged: "Judges", references: "Similarity to each reference" };

  T.sampleDetails = function (meta, rows, chunk, at, query) {
    const with_ = rows.filter((each) => each.details);
    if (!with_.length) return "";
    const first = with_.find((each) => each.model === query.get("model")) || with_[0];
    const parts = with_.map((each) => {
      const body = E("div", { class: "detail" }), made = E("details", {}, E("summary", {}, `${HEADS[each.details]}: ${each.model}`), body);
      let asked = false;
      const load = async () => {
        if (asked || !made.open) return;
        asked = true;
        body.replaceChildren(E("p", { class: "note" }, "…"));
        try {
          const found = (await T.load(`details/${each.id}/${chunk}`))[at];
          body.replaceChildren(typeof found === "string" ? E("p", { class: "problem" }, found) : !found ? E("p", {}, "not evaluated") : DRAW[each.details](meta, found));
        } catch (error) { body.replaceChildren(E("p", { class: "problem" }, error.missing ? "not available here" : error.message)); }
      };
      made.addEventListener("toggle", load);
      if (each === first) made.open = true;
      return made;
    });
    return E("section", {}, E("h2", {}, HEADS[first.details]), ...parts);
  };

  const hit = (right) => (right ? E("strong", {}, " (right)") : null);
  function retrieval(meta, found) {
    return E("div", {}, E("h3", {}, "Captions nearest to the picture"),
      E("ol", { class: "captions" }, ...found.captions.map((each) => E("li", { class: each.right ? "hit" : null }, each.caption, hit(each.right), E("span", { class: "share" }, ` ${S().number(each.cosine)}`)))),
      ...found.images.flatMap((each) => [E("h3", {}, "Pictures nearest to “", each.caption, "”"), nearest(meta, each.found)]));
  }
  const nearest = (meta, found) => E("ol", { class: "gallery" }, ...found.map((each) => E("li", { class: each.right ? "hit" : null },
    E("a", { href: S().link(meta, each.id, each.position) }, each.position === null ? "" : S().picture(meta, each.position, ""), E("span", { class: "name" }, T.name(each.id))),
    hit(each.right), E("span", { class: "share" }, ` ${S().number(each.cosine)}`))));
  function selection(meta, found) {
    const best = (row) => row.indexOf(Math.max(...row.map((each) => (each === null ? -Infinity : each))));
    return E("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": "Cosines of pictures and captions" },
      E("table", { class: "answers" }, E("caption", {}, "Cosine of each picture and each caption; the largest of a picture is bold"),
        E("thead", {}, E("tr", {}, E("th", { scope: "col" }, "picture"), ...found.captions.map((each) => E("th", { scope: "col" }, each)))),
        E("tbody", {}, ...found.images.map((each) => E("tr", {}, E("th", { scope: "row" }, E("a", { href: S().link(meta, each.id) }, T.name(each.id))),
          ...each.cosines.map((value, place) => E("td", { class: `number${place === each.answer ? " hit" : ""}` }, E(place === best(each.cosines) ? "strong" : "span", {}, S().number(value)), place === each.answer ? " (right)" : null)))))));
  }
  function judged(meta, found) {
    if (!found.length) return E("p", {}, "The judge was not asked: rules could read this answer.");
    return E("div", {}, ...found.map((each) => E("div", { class: "judge" }, E("h3", {}, T.name(each.judge)), E("div", { class: "words" }, each.reply || "no reply"),
      each.second ? E("div", { class: "words" }, each.second) : null, E("p", { class: "note" }, `score: ${S().number(each.score)}`))));
  }
  function references(meta, found) {
    if (!found.length) return E("p", {}, "No caption or no reference to compare.");
    const best = Math.max(...found.map((each) => each.cosine));
    return E("ol", { class: "captions" }, ...found.map((each) => E("li", {}, each.reference, E("span", { class: "share" }, ` cosine ${S().number(each.cosine)}`), each.cosine === best && found.length > 1 ? E("strong", {}, " (most similar)") : null)));
  }
  const DRAW = { retrieval, selection, judged, references };
})();
