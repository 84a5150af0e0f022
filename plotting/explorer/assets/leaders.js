"use strict";
/* Who leads: the sentence that testbed rank prints, ranks with their intervals, mean ranks, averages and ties. */
(() => {
  const E = T.element;

  /* The line: of paired tests, which take the server a moment, of a column's own metric where its models are ranked; else the order. */
  function line(index, of, current, then) {
    const made = E("p", { id: "answer", "aria-live": "polite" }), at = of ? index.columnOf.get(of.name) : undefined;
    const say = (words) => { if (words) made.replaceChildren(E("strong", {}, of.name), `: ${words.replaceAll(" %", "\u00a0%")}.`); };
    if (at !== undefined && index.columns[at].ranked && index.columns[at].metric === of.metric) {
      T.load(`leaders/${at}`).catch(() => ({ words: "", ranks: {} })).then((found) => {
        if (!current()) return;
        say(found.words || of.order);
        then(found.ranks);
      });
    } else if (of) say(of.order);
    return made;
  }
  /* The rank of each model by its value, from 1, and where two are equal the same; NaN without a value or a direction. */
  const known = [new WeakMap(), new WeakMap()];
  function ranks(of, shared) {
    const kept = known[Number(Boolean(shared))];
    if (!kept.has(of)) kept.set(of, ranked(of, shared));
    return kept.get(of);
  }
  function ranked(of, shared) {
    const way = T.direction(of), found = new Float64Array(of.value.length).fill(NaN), order = [];
    if (!way) return found;
    of.value.forEach((value, at) => { if (!Number.isNaN(value)) order.push(at); });
    order.sort((a, b) => way * (of.value[b] - of.value[a]));
    for (let from = 0; from < order.length;) {
      let to = from;
      while (to < order.length && of.value[order[to]] === of.value[order[from]]) to += 1;
      for (let place = from; place < to; place += 1) found[order[place]] = shared ? (from + 1 + to) / 2 : from + 1;
      from = to;
    }
    return found;
  }
  /* A rank, and its interval where the models were ranked on the same samples and no others are there. */
  function rankText(rank, at, found, count) {
    if (Number.isNaN(rank[at])) return "–";
    const [own, low, high] = (Object.keys(found).length === count && found[at]) || [rank[at]];
    return high > low ? `${own} (${low}–${high})` : String(own);
  }
  /* The mean over columns, for models that have all of them. */
  function mean(parts, number) {
    const value = new Float64Array(number).fill(NaN);
    let lacking = 0;
    for (let at = 0; at < number; at += 1) {
      let sum = 0, there = 0;
      for (const each of parts) if (!Number.isNaN(each[at])) { sum += each[at]; there += 1; }
      if (there === parts.length) value[at] = sum / there;
      else if (there) lacking += 1;
    }
    return { value, lacking, of: parts.length };
  }
  /* Which models do not differ from the best one by the 95 % interval of the difference of two independent results; none
     where there is only one result. */
  function ties(of, models) {
    const error = (at) => (of.error[at] >= 0 ? of.error[at] : of.rate && of.n[at] > 0 ? Math.sqrt(of.value[at] * (100 - of.value[at]) / of.n[at]) : NaN);
    const way = T.direction(of), there = way ? models.filter((at) => !Number.isNaN(of.value[at])) : [];
    if (there.length < 2) return new Set();
    let best = there[0];
    for (const at of there) if (way * of.value[at] > way * of.value[best]) best = at;
    return new Set(there.filter((at) => at === best || Math.abs(of.value[at] - of.value[best]) <= 1.959963985 * Math.hypot(error(at), error(best))));
  }
  T.leaders = { line, ranks, rankText, mean, ties };
})();
