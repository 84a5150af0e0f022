"use strict";
/* The index of models and columns, values of columns, and the search: words, globs, and key:value. */
(() => {
  const E = T.element, STATED = ["type", "family", "pretraining"], KEYS = [...STATED, "size", "added"];
  let known = null;

  /* Models and columns with their places by name. */
  async function index() {
    if (known) return known;
    const doc = await T.load("index"), number = doc.models.name.length;
    const models = Array.from({ length: number }, (_, at) => ({ at, name: doc.models.name[at], lower: doc.models.name[at].toLowerCase(), ...Object.fromEntries(STATED.map((key) => [key, doc.models[key][at]])), params: doc.models.parameters[at], date: doc.models.since[at], size: size(doc.models.parameters[at]), added: doc.models.since[at].slice(0, 7) }));
    for (const each of models) {
      each.kind = doc.kinds[doc.models.kind[each.at]].name;
      each.style = { colour: doc.colours[doc.models.colour[each.at]], symbol: doc.symbols[doc.models.symbol[each.at]] };
    }
    known = {
      ...doc, models, tasks: [...new Set(doc.columns.map((each) => each.task))], modelOf: new Map(models.map((each) => [each.name, each])), columnOf: new Map(doc.columns.map((each, at) => [each.name, at])),
    };
    T.pinned = doc.pinned;
    T.at("about").textContent = `${T.numbers.counted(number, "model")} × ${T.numbers.counted(doc.columns.length, "column")}; written ${doc.written} from ${doc.source}`;
    for (const key of ["training", "disagreements"]) T.at("views").querySelector(`[data-view="${key}"]`).hidden = !doc[key];
    T.at("names").replaceChildren(...[...doc.columns.map((each) => each.name), ...doc.models.name.slice(0, 2000)].map((value) => E("option", { value })));
    return known;
  }
  const SHARE = 0.1;
  /* So many of columns, by their places, in the order in which to show them: the first ones of a study of robustness, then, half
     of them, those with values that were measured here, if there are, and those that most models have; none that few models
     have where others have many. */
  function usual(columns, places, number) {
    const ranked = [...places].sort((a, b) => columns[b].models - columns[a].models || a - b), enough = (at) => columns[at].setting === null || columns[at].models >= SHARE * columns[ranked[0]].models;
    const first = ranked.filter((at) => columns[at].first !== null && (columns[at].own || enough(at))).sort((a, b) => columns[a].first - columns[b].first || a - b).slice(0, number), left = number - first.length, rest = ranked.filter((at) => !first.includes(at));
    const own = rest.filter((at) => columns[at].own), others = rest.filter((at) => !columns[at].own && columns[at].models && enough(at));
    return [...first, ...[...own.slice(0, Math.max(left - others.length, Math.ceil(left / 2))), ...others].slice(0, left).sort((a, b) => a - b)];
  }

  const SIZES = [[1e7, "below 10 M"], [3e7, "10 to 30 M"], [1e8, "30 to 100 M"], [3e8, "100 to 300 M"], [1e9, "300 M to 1 B"], [Infinity, "1 B and more"]];
  /* A group of models by their number of parameters. */
  const size = (parameters) => (parameters === null ? "not known" : SIZES.find(([below]) => parameters < below)[1]);

  const made = new Map();
  /* The values of a column, or of another metric of its setting, by model: NaN where there is none. */
  async function column(at, metric) {
    const { columns, settings, models } = await index(), own = columns[at];
    const other = metric && own.setting !== null && metric !== own.metric ? settings[own.setting].metrics.indexOf(metric) : -1;
    if (metric && metric !== own.metric && other < 0) return null;
    const path = other >= 0 ? `metric/${own.setting}/${other}` : `values/${at}`;
    if (!made.has(path)) made.set(path, unpack(await T.load(path), models.length, own));
    return made.get(path);
  }
  function unpack(doc, number, own) {
    const scale = doc.percent ? 100 : 1, of = (list, at) => (Array.isArray(list) ? list[at] : list);
    const value = new Float64Array(number).fill(NaN), n = new Float64Array(number).fill(NaN), error = new Float64Array(number).fill(NaN), low = new Float64Array(number).fill(NaN), high = new Float64Array(number).fill(NaN), id = new Int32Array(number), raw = new Float64Array(number).fill(NaN), origin = new Array(number).fill("");
    doc.models.forEach((model, at) => {
      value[model] = doc.values[at] === null ? NaN : doc.values[at] * scale;
      raw[model] = doc.values[at] ?? NaN;
      n[model] = of(doc.n, at) ?? NaN;
      error[model] = (of(doc.stderr, at) ?? NaN) * scale;
      low[model] = (doc.low[at] ?? NaN) * scale;
      high[model] = (doc.high[at] ?? NaN) * scale;
      id[model] = of(doc.evaluations, at) || 0;
      origin[model] = of(doc.origins, at);
    });
    return { name: own.name, metric: doc.metric, percent: doc.percent, unit: doc.unit, better: doc.better, range: doc.range.map((end) => (end === null ? null : end * scale)), rate: doc.rate, value, raw, n, error, low, high, id, origin, origins: [doc.origins].flat(), published: doc.published, unread: doc.unread, order: doc.order, count: doc.models.length, valued: value.reduce((sum, each) => sum + !Number.isNaN(each), 0) };
  }
  /* A value's text for a cell of a table. Marked are published values, those that differ from published ones, and
     those with samples that could not be read; pointing at one says which. */
  function beside(of, at, text) {
    const found = of.published[at], unread = of.unread[at], lines = found ? [...found.lines] : [];
    if (of.origin[at].startsWith("published")) return { text, class: "published", title: of.origin[at] };
    if (unread) lines.push(`${T.numbers.counted(unread, "sample")} could not be read`);
    return { text: `${text}${found && found.differs ? "*" : ""}${unread ? "‡" : ""}`, title: lines.join("\n") || undefined };
  }
  /* The better direction of values: 1 up, −1 down, 0 if neither or unknown; and in words. */
  const direction = (of) => ({ higher: 1, lower: -1 })[of.better] || 0;
  const directed = (of) => (direction(of) ? `${of.better} is better` : of.better === "neither" ? "neither higher nor lower is better" : "direction unknown");
  /* The 95 % interval of a model's value, as in testbed.metrics.inference.intervals; NaN if the spread is unknown. */
  const interval = (of, model) => [of.low[model], of.high[model]];

  // Search -----------------------------------------------------------------------------------------------------------

  const escaped = (text) => text.replace(/[.+^${}()|\\]/g, "\\$&");
  /* A test of texts: of globs the whole, of other words a part. */
  function matcher(word) {
    const lower = word.toLowerCase();
    if (!/[*?[]/.test(lower)) return (text) => text.includes(lower);
    let made_;
    try { made_ = new RegExp(`^${escaped(lower).replace(/\*/g, ".*").replace(/\?/g, ".")}$`); } catch { return (text) => text.includes(lower); }
    return (text) => made_.test(text);
  }
  const UNITS = { k: 1e3, m: 1e6, b: 1e9 };
  /* A test of params:>50M, params:<=1B, date:>=2026-10 and the like; dates are compared as far as they are given. */
  function bounds(key, value) {
    const [, sign, text] = /^(<=|>=|<|>|)(.*)$/.exec(value), number = /^([\d.]+)([kmb]?)$/i.exec(text);
    const limit = key === "date" ? text : number ? Number(number[1]) * (UNITS[number[2].toLowerCase()] || 1) : NaN;
    return (each) => {
      const own = key === "date" ? each.date.slice(0, text.length) : each.params;
      if (own === null || Number.isNaN(limit)) return false;
      return sign === "<" ? own < limit : sign === ">" ? own > limit : sign === "<=" ? own <= limit : sign === ">=" ? own >= limit : own === limit;
    };
  }
  /* A test of a column's values: val>80, imagenet-r<=50; only of columns whose values are loaded, see ready. */
  const COMPARED = /^([^<>]+?)(<=|>=|<|>)(-?\d+(?:\.\d+)?)%?$/, values = new Map();
  function comparison(word) {
    const [, name, sign, text] = COMPARED.exec(word) || [], of = values.get(name), limit = Number(text);
    return of && (({ at }) => (sign === "<" ? of.value[at] < limit : sign === ">" ? of.value[at] > limit : sign === "<=" ? of.value[at] <= limit : of.value[at] >= limit));
  }
  /* Loads what the search of an address compares. */
  async function ready(query) {
    const { columnOf } = (await index().catch(() => null)) || {};
    if (!columnOf) return; // the view reports why
    for (const word of split(query.get("find"))) {
      const [, name] = COMPARED.exec(word.replace(/^-|"/g, "")) || [];
      if (columnOf.has(name) && !values.has(name)) values.set(name, await column(columnOf.get(name)));
    }
  }
  const split = (text) => (text || "").match(/(?:"[^"]*"?|[^\s"])+/g) || [];
  function tested(key, value, word) {
    if (key === "params" || key === "date") return bounds(key, value);
    const test = matcher(KEYS.includes(key) || key === "model" ? value : word);
    return KEYS.includes(key) ? (each) => test(each[key].toLowerCase()) : (each) => test(each.lower);
  }
  /* Tests of models and of columns: words are of models, key:value of a facet, on:name of columns, - before one excludes; all
     must hold. Quotes keep blanks together. With the index, a word that no model has and some column does is of columns;
     missed are those that neither has. */
  function parse(text, known_) {
    const models = [], columns = [], missed = [];
    for (const given of split(text)) {
      const not = /^-./.test(given), word = (not ? given.slice(1) : given).replaceAll('"', ""), [, key, value] = /^([a-z]+):(.*)$/s.exec(word) || [];
      const compared = comparison(word);
      if (compared) { models.push((each) => compared(each) !== not); continue; }
      const onColumns = (test, name) => columns.push((each) => test(each[name].toLowerCase()) !== not);
      if (key === "on" || key === "group") { onColumns(matcher(value), key === "on" ? "name" : key); continue; }
      const test = tested(key, value, word), own = KEYS.includes(key) || key === "params" || key === "date";
      if (known_ && !own && !known_.models.some(test)) {
        const inColumns = matcher(word);
        if (known_.columns.some((each) => inColumns(each.name.toLowerCase()))) { onColumns(inColumns, "name"); continue; }
        missed.push(word);
      }
      models.push((each) => test(each) !== not);
    }
    return {
      model: (each) => models.every((test) => test(each)),
      column: (each) => columns.every((test) => test(each)),
      hasColumns: columns.length > 0, missed,
    };
  }
  T.at("find-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const { modelOf, columnOf } = await index(), text = T.at("search").value.trim();
    T.at("search").value = "";
    if (modelOf.has(text)) location.hash = T.link("model", [text]);
    else if (columnOf.has(text)) location.hash = T.link("setting", [text]);
    else location.hash = T.link("leaderboard", [], { find: text });
  });
  /* The search of an address together with its facets. */
  function selection(known_, query) {
    const search = parse(query.get("find"), known_), wanted = KEYS.map((key) => [key, query.get(key)]).filter(([, value]) => value);
    return { ...search, any: Boolean(query.get("find") || wanted.length), model: (each) => search.model(each) && wanted.every(([key, value]) => each[key] === value) };
  }
  /* A test of models by name. */
  function selected(text) {
    const { model } = parse(text, known), unknown = Object.fromEntries([...KEYS, "date"].map((key) => [key, ""]));
    return (name) => model(known && known.modelOf.get(name) ? known.modelOf.get(name) : { ...unknown, at: -1, name, lower: name.toLowerCase(), params: null });
  }
  Object.assign(T, { selected, index, column, usual, beside, interval, direction, directed, parse, ready, selection, KEYS });
})();
