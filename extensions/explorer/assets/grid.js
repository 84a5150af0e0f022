"use strict";
/* The samples of a setting as a grid of pictures, with filters that are kept in the address. */
(() => {
  const S = () => T.samples;
  const E = (...given) => T.element(...given);
  const PAGE = 60;

  function select(label, key, query, options) {
    const value = query.get(key) || "";
    return E("label", {}, label, E("select", { id: `filter-${key}`, onchange: (event) => T.change({ [key]: event.target.value || null, page: null }) },
      ...options.map(([option, text]) => E("option", { value: option, selected: option === value }, text))));
  }
  function sliceSelects(found, query) {
    const chosen = new Map(S().slices(query));
    const change = (name, value) => {
      if (value) chosen.set(name, value); else chosen.delete(name);
      T.change({ slice: [...chosen].map((each) => T.quoted(each.join("="))).join("|") || null, page: null });
    };
    return found.slices.map((slice) => E("label", {}, slice.name, E("select", { id: `slice-${slice.name}`, onchange: (event) => change(slice.name, event.target.value) },
      E("option", { value: "" }, "all"), ...slice.names.map((each) => E("option", { value: each, selected: chosen.get(slice.name) === each }, each)))));
  }
  function bound(label, key, query) {
    return E("label", {}, label, E("input", { id: `filter-${key}`, type: "number", min: 0, max: 100, step: "any", inputmode: "decimal", value: query.get(key) || "",
      onchange: (event) => T.change({ [key]: event.target.value || null, page: null }) }));
  }
  function classSelect(meta, found, query) {
    if (!meta.classes.length || !found.target.some((each) => !isNaN(each))) return null;
    const box = meta.classes.length > 60;
    if (!box) return select("Class", "class", query, [["", "all"], ...meta.classes.map((each) => [each, each])]);
    return E("label", {}, "Class", E("input", { id: "filter-class", list: "classes", value: query.get("class") || "", placeholder: "all", onchange: (event) => T.change({ class: event.target.value || null, page: null }) }),
      E("datalist", { id: "classes" }, ...meta.classes.map((each) => E("option", { value: each }))));
  }
  function controls(meta, found, query) {
    const counts = [...new Set(found.counted)].filter((each) => each > 0), models = Math.max(0, ...counts), judged = models > 0;
    const wrong = [["", "any"], ["disagree", "models disagree"], ["all", "all models wrong"], ["none", "no model wrong"], ...[["1-1", "one model wrong"], [`${Math.ceil(models / 2)}-`, "half or more wrong"]].filter(() => models > 2)];
    const model = query.get("model"), logits = meta.kind === "logits";
    const orders = [["", "as stored"], ...(judged ? [["hardest", "most models wrong first"], ["easiest", "fewest models wrong first"]] : []),
      ...(model && logits ? [["unsure", "least confident first"], ["sure", "most confident first"]] : []), ...(model && !judged ? [["low", "lowest score first"], ["high", "highest score first"]] : [])];
    return E("div", { class: "controls", role: "group", "aria-label": "Filters" },
      classSelect(meta, found, query), ...sliceSelects(found, query),
      judged ? select("Right or wrong", "wrong", query, wrong) : null,
      select("Model", "model", query, [["", "all"], ...meta.evaluations.map((each) => [each.model, each.model])]),
      model ? select(`${model} is`, "result", query, [["", "right or wrong"], ...(judged ? [["right", "right"], ["wrong", "wrong"]] : []), ["error", "without output (error)"]]) : null,
      ...(model && logits && query.get("predicted") ? [select("Predicted", "predicted", query, [["", "any class"], ...meta.classes.map((each) => [each, each])])] : []),
      ...(model && logits ? [bound("Confidence from, %", "least", query), bound("to, %", "most", query)] : []),
      select("Order", "sort", query, orders),
      E("button", { type: "button", onclick: () => T.change(Object.fromEntries([...S().FILTERS, "page"].map((key) => [key, null]))) }, "Clear"));
  }

  /* A paged grid of some positions; `tell` returns lines of text for each. */
  async function gallery(meta, positions, query, tell) {
    const pages = Math.max(1, Math.ceil(positions.length / PAGE)), page = Math.min(pages, Math.max(1, Number(query.get("page")) || 1));
    const shown = positions.slice((page - 1) * PAGE, page * PAGE), ids = await S().ids(meta, shown);
    const cards = shown.map((position, place) => E("li", {}, E("a", { href: S().link(meta, ids[place], position, query) },
      S().picture(meta, position, ""), E("span", { class: "name" }, T.name(ids[place]))), ...tell(position).map((line) => E("span", { class: "line" }, line))));
    const go = (to, text) => E("button", { type: "button", id: `page-${text.toLowerCase()}`, disabled: to < 1 || to > pages, onclick: () => T.change({ page: to === 1 ? null : to }) }, text);
    return E("div", {}, E("ul", { class: "gallery" }, ...cards),
      pages > 1 ? E("nav", { class: "controls", "aria-label": "Pages" }, go(page - 1, "Previous"), E("span", {}, `page ${page} of ${pages.toLocaleString("en")}`), go(page + 1, "Next")) : null);
  }
  const target = (meta, found, position) => (isNaN(found.target[position]) ? null : S().className(meta, found.target[position]));

  async function render(state, main) {
    const name = state.parts.join("/"), query = state.query;
    try {
      const meta = await S().setting(name), found = await S().filters(meta), positions = await S().chosen(meta, query);
      const model = meta.evaluations.find((each) => each.model === query.get("model")), said = model ? await S().arrays(model.id) : null;
      const tell = (position) => {
        const lines = [], label = target(meta, found, position);
        if (label !== null) lines.push(label);
        if (said && said.prediction && !isNaN(said.prediction[position])) lines.push(`→ ${S().className(meta, said.prediction[position])}${said.confidence ? ` ${S().percent(said.confidence[position], 0)}` : ""}`);
        else if (said && !meta.right) lines.push(`${said.score}: ${S().number(said.values[position])}`);
        if (found.counted[position] > 0) lines.push(`${found.counted[position] - found.right[position]} of ${found.counted[position]} wrong`);
        return lines;
      };
      const most = meta.count < meta.n ? ` This export has ${meta.count.toLocaleString("en")} of the ${meta.n.toLocaleString("en")} samples.` : "";
      const told = `${positions.length.toLocaleString("en")} of ${meta.count.toLocaleString("en")} samples`;
      main.replaceChildren(E("h1", {}, "Samples of ", T.name(name)), controls(meta, found, query),
        E("p", { class: "note", id: "count" }, `${told}.${most}`), await gallery(meta, positions, query, tell), S().comparing(meta.evaluations, query) || "");
      T.announce(told);
    } catch (error) { S().failure(main, error); }
  }

  S().gallery = gallery;
  S().sliceSelects = sliceSelects;
  S().classSelect = classSelect;
  S().bound = bound;
  S().select = select;
  T.view("samples", { title: (state) => `Samples of ${state.parts.join("/")}`, render });
})();
