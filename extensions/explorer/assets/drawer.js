"use strict";
/* An evaluation beside the page: open=ID.METRIC in the address, so that Back closes it and a reload shows it again. */
(() => {
  const E = T.element, dialog = T.at("drawer");
  let from = null, pushed = false; // the link that was followed; whether going back in the history closes the drawer

  /* Opens the evaluation of a link, unless a modifier asks for its page in another tab. */
  function drawer(event, id, metric) {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    from = event.currentTarget;
    pushed = true;
    T.change({ open: metric ? `${id}.${metric}` : id });
  }
  function close() {
    if (!T.state().query.get("open")) return;
    if (pushed) history.back();
    else location.replace(T.changed({ open: null }));
  }
  /* Shows the evaluation in the address. */
  async function draw(state, current) {
    const open = state.query.get("open") || "", [, id, metric] = /^(\d+)(?:\.(.+))?$/.exec(open) || [];
    if (!id) {
      if (dialog.open) { dialog.close(); dialog.replaceChildren(); if (from && from.isConnected) from.focus(); }
      pushed = false;
      return;
    }
    if (dialog.open && dialog.dataset.open === open) return;
    let shown, name = "";
    try {
      const of = await T.cell.find(Number(id)), sampled = await T.cell.hasSamples(of);
      name = `${of.model} on ${of.setting}`;
      shown = [E("h2", {}, ...T.cell.named(of)), ...(await T.cell.content(of, sampled, metric))];
    } catch (error) { shown = [E("p", { class: "problem", role: "alert" }, error.message)]; }
    if (!current()) return;
    dialog.replaceChildren(E("div", { class: "bar" }, E("span", { class: "note" }, E("a", { href: T.link("cell", [id]) }, "Open as a page")), E("button", { type: "button", id: "close", onclick: close }, "Close")), ...shown);
    dialog.dataset.open = open;
    dialog.scrollTop = 0;
    if (!dialog.open) dialog.showModal();
    T.announce(name);
  }
  dialog.addEventListener("cancel", (event) => { event.preventDefault(); close(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) close(); });
  Object.assign(T, { drawer, drawDrawer: draw });
})();
