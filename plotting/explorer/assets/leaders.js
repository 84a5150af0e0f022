"use strict";
/* Who leads: the sentence that testbed rank prints, ranks with their intervals, mean ranks, averages and ties. */
(() => {
  const E = T.element;

  /* The place in the index of a column's own metric; of another metric there is no sentence. */
  const leaders = async (index, of) => {
    const at = index.columnOf.get(of.name);
    return at !== undefined && index.columns[at].metric === of.metric ? T.load(`leaders/${at}`).catch(() => null) : null;
  };
  /* The line, which is filled when it is there: ranking takes the server a moment. */
  function line(index, of, current, then) {
    const made = E("p", { id: "answer", "aria-live": "polite" });
    if (of) {
      leaders(index, of).then((found) => {
        if (!found || !found.words || !current()) return;
        made.replaceChildren(E("strong", {}, of.name), `: ${found.words.replaceAll(" %", "\u00a0%")}.`);
        then(found);
      });
    }
    return made;
  }
  /* The rank of each model by its value, from 1, and where two are equal the same; NaN without a value or a direction. */
  function ranks(of, shared) {
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
    const whole = found && found.tested && Object.keys(found.ranks).length === count, [own, low, high] = (whole && found.ranks[at]) || [rank[at]];
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
