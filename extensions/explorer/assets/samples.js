"use strict";
/* Data of samples: settings, chunks, ids, filters, arrays of evaluations; and code shared by other scripts of samples. */
(() => {
  const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };
  const RIGHT = 0.5; // a sample whose score is at least this is right
  const unpacked = new WeakMap();

  /* A packed array as numbers: NaN where there is none, shares in [0, 1]. */
  function unpack(given) {
    if (!given) return null;
    if (!unpacked.has(given)) {
      const text = atob(given.data), bytes = new Uint8Array(text.length);
      for (let place = 0; place < text.length; place += 1) bytes[place] = text.charCodeAt(place);
      const raw = new TYPES[given.type](bytes.buffer);
      const made = given.none === undefined && given.scale === undefined ? raw : Float64Array.from(raw, (value) => (value === given.none ? NaN : value * (given.scale || 1)));
      unpacked.set(given, made);
    }
    return unpacked.get(given);
  }

  // Settings ---------------------------------------------------------------------------------------------------------

  async function setting(name) {
    const index = await T.load("index"), number = index.settings.findIndex((each) => each.name === name);
    if (number < 0) throw new Error(`There is no setting ${name}`);
    return numbered(number, name);
  }
  async function numbered(number, name) {
    const found = await T.find(`samples/${number}`, T.lacking(name || "this setting"));
    if (name && found.setting !== name) throw new Error("The store has changed since this page was opened. Reload the page.");
    found.number = number;
    found.count = found.shown ? found.shown.length : found.n;
    return found;
  }
  const ranks = new WeakMap();
  /* The position of a sample among the shown ones; −1 if it is not shown. */
  function rankOf(meta, position) {
    if (!meta.shown) return position;
    if (!ranks.has(meta)) ranks.set(meta, new Map(meta.shown.map((each, rank) => [each, rank])));
    return ranks.get(meta).get(position) ?? -1;
  }
  const positionOf = (meta, rank) => (meta.shown ? meta.shown[rank] : rank);
  const every = (meta) => Array.from({ length: meta.count }, (_, rank) => positionOf(meta, rank));

  /* The chunk with a sample, and the place of the sample in it. */
  async function chunk(meta, position) {
    const rank = rankOf(meta, position), number = Math.floor(rank / meta.chunk);
    const doc = await T.load(`samples/${meta.number}/chunk/${number}`);
    return { doc, number, at: rank - number * meta.chunk };
  }
  async function ids(meta, positions) {
    const blocks = [...new Set(positions.map((each) => Math.floor(each / meta.block)))];
    const loaded = new Map(await Promise.all(blocks.map(async (block) => [block, await T.load(`samples/${meta.number}/ids/${block}`)])));
    return positions.map((each) => loaded.get(Math.floor(each / meta.block))[each % meta.block]);
  }
  /* Finds a sample; tries the hint first, then block after block. */
  async function find(meta, id, hint) {
    if (Number.isInteger(hint) && hint >= 0 && hint < meta.n && rankOf(meta, hint) >= 0) {
      const { doc, at } = await chunk(meta, hint);
      if (doc.samples[at] && doc.samples[at].id === id) return hint;
    }
    for (let block = 0; block * meta.block < meta.n; block += 1) {
      const place = (await T.load(`samples/${meta.number}/ids/${block}`)).indexOf(id);
      if (place >= 0) return block * meta.block + place;
    }
    return -1;
  }
  async function arrays(id, text) {
    const found = await T.find(`packed/${id}`, text || "There are no samples of this evaluation here");
    return { ...found, values: unpack(found.values), prediction: unpack(found.prediction), confidence: unpack(found.confidence) };
  }
  async function filters(meta) {
    const found = await T.load(`samples/${meta.number}/filters`);
    const slices = Object.entries(found.slices).map(([name, each]) => ({ name, names: each.names, codes: unpack(each.codes) }));
    return { target: unpack(found.target), right: unpack(found.right), counted: unpack(found.counted), clusters: found.clusters && unpack(found.clusters), slices };
  }

  // Choosing samples -------------------------------------------------------------------------------------------------

  const FILTERS = ["class", "slice", "wrong", "model", "result", "predicted", "least", "most", "sort", "cell"];
  const asked = (query) => FILTERS.some((key) => key !== "sort" && key !== "model" && query.get(key)) || Boolean(query.get("sort"));
  const KEPT = [...FILTERS, "order", "find", "a", "b"]; // from sample to sample
  /* The slices of an address: pairs of a name and a value. */
  const slices = (query) => T.words(query.get("slice"), "|").map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]);
  /* A test of positions by class and slice. */
  function within(found, meta, query) {
    const label = query.get("class"), code = label === null || label === "" ? -1 : meta.classes.indexOf(label);
    const wanted = slices(query);
    const tests = wanted.map(([name, value]) => {
      const slice = found.slices.find((each) => each.name === name);
      const number = slice ? slice.names.indexOf(value) : -1;
      return slice ? (position) => slice.codes[position] === number : () => true;
    });
    if (label) tests.push((position) => found.target[position] === code);
    return (position) => tests.every((test) => test(position));
  }
  /* The positions that a query asks for, in its order. */
  async function chosen(meta, query) {
    if (!asked(query)) return every(meta);
    const found = await filters(meta), test = within(found, meta, query), wrong = query.get("wrong");
    let positions = every(meta).filter(test);
    const missed = (each) => found.counted[each] - found.right[each];
    if (wrong === "disagree") positions = positions.filter((each) => missed(each) > 0 && found.right[each] > 0);
    else if (wrong === "all") positions = positions.filter((each) => found.counted[each] > 0 && found.right[each] === 0);
    else if (wrong === "none") positions = positions.filter((each) => found.counted[each] > 0 && missed(each) === 0);
    else if (/^\d+-\d*$/.test(wrong || "")) {
      const [low, high] = wrong.split("-");
      positions = positions.filter((each) => missed(each) >= Number(low) && (high === "" || missed(each) <= Number(high)));
    }
    const model = meta.evaluations.find((each) => each.model === query.get("model"));
    const said = model ? await arrays(model.id) : null;
    if (said) positions = positions.filter(saidTest(said, query, meta));
    return sorted(positions, query.get("sort"), missed, said);
  }
  function saidTest(said, query, meta) {
    const result = query.get("result"), predicted = query.get("predicted") ? meta.classes.indexOf(query.get("predicted")) : null, least = share(query.get("least"), -1), most = share(query.get("most"), 2), bad = new Set(said.errors);
    return (each) => {
      if (predicted !== null && (!said.prediction || said.prediction[each] !== predicted)) return false;
      if (result === "right" && !(said.values[each] >= RIGHT)) return false;
      if (result === "wrong" && !(said.values[each] < RIGHT)) return false;
      if (result === "error" && !bad.has(each)) return false;
      if (!said.confidence || (least < 0 && most > 1)) return true;
      return said.confidence[each] >= least && said.confidence[each] <= most;
    };
  }
  const share = (text, otherwise) => (text === null || text === "" || !isFinite(text) ? otherwise : Number(text) / 100);
  function sorted(positions, order, missed, said) {
    const by = {
      hardest: (each) => -missed(each), easiest: missed,
      unsure: (each) => (said && said.confidence ? said.confidence[each] : 0), sure: (each) => (said && said.confidence ? -said.confidence[each] : 0),
      low: (each) => (said ? said.values[each] : 0), high: (each) => (said ? -said.values[each] : 0),
    }[order];
    if (!by) return positions;
    const key = (each) => { const value = by(each); return isNaN(value) ? Infinity : value; };
    return [...positions].sort((a, b) => key(a) - key(b) || a - b);
  }

  // Words and elements -----------------------------------------------------------------------------------------------

  const percent = (value, digits = 1) => (value === null || value === undefined || isNaN(value) ? "–" : `${(100 * value).toFixed(digits)} %`);
  function number(value) {
    if (value === null || value === undefined || isNaN(value)) return "–";
    return Number.isInteger(value) ? String(value) : Number(value.toPrecision(4)).toString();
  }
  const className = (meta, label) => (meta.classes[label] === undefined ? String(label) : meta.classes[label]);
  /* A target in a few words. */
  function words(meta, target) {
    if (target === null || target === undefined) return "";
    if (typeof target === "number") return className(meta, target);
    if (Array.isArray(target)) return target.map((each) => (typeof each === "number" ? className(meta, each) : String(each))).join(typeof target[0] === "number" ? ", " : " / ");
    if (typeof target === "object" && Array.isArray(target.captions)) return target.answer === null || target.answer === undefined ? target.captions.join(" / ") : target.captions[target.answer];
    if (typeof target === "object") return String(target.answer ?? target.question ?? "");
    return String(target);
  }
  const keptOf = (query) => Object.fromEntries(KEPT.filter((key) => query.get(key)).map((key) => [key, query.get(key)]));
  const link = (meta, id, position, query) => {
    const kept = query ? keptOf(query) : {};
    return T.link("sample", [meta.setting, id], { ...kept, at: position });
  };
  /* A picture that is loaded lazily, with a text if it is missing. */
  function picture(meta, position, alt, asked) {
    const clean = asked || meta.perturbed === "attack"; // an attack makes a picture for each model, which is not stored
    const image = T.element("img", { src: `pictures/${meta.number}/${position}${clean ? "-clean" : ""}.jpg`, alt, loading: "lazy", decoding: "async" });
    image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth < 100));
    image.addEventListener("error", () => image.replaceWith(T.element("span", { class: "nopicture" }, "no picture")));
    return image;
  }
  /* Two selects that lead to a comparison of evaluations; what is chosen is in the address. */
  function comparing(evaluations, query) {
    if (evaluations.length < 2) return null;
    const chosen = (key) => evaluations.find((each) => String(each.id) === query.get(key));
    const first = chosen("a") || evaluations.find((each) => each.model === query.get("model")) || evaluations[0], second = chosen("b") || evaluations.find((each) => each !== first);
    const select = (key, label, at) => T.element("label", {}, label, T.element("select", { id: `compare-${key}`, onchange: (event) => T.change({ [key]: event.target.value }) },
      ...evaluations.map((each) => T.element("option", { value: each.id, selected: each === at }, each.model))));
    return T.element("form", { class: "controls comparing", "aria-label": "Compare two models", onsubmit: (event) => { event.preventDefault(); location.hash = T.link("compare", [T.at("compare-a").value, T.at("compare-b").value]); } },
      select("a", "Compare", first), select("b", "with", second), T.element("button", { id: "compare-go" }, "Compare samples"));
  }
  const failure = (main, error) => main.replaceChildren(T.element("h1", {}, "Samples"), T.element("p", { class: "problem", role: "alert" }, error.message || String(error)));

  T.samples = { RIGHT, FILTERS, slices, keptOf, unpack, setting, numbered, rankOf, positionOf, every, chunk, ids, find, arrays, filters, within, chosen, share, percent, number, className, words, link, picture, comparing, failure };
})();
