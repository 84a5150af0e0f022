"use strict";
/* Where the explorer begins: the table of all results, and the settings whose samples are there. */
(() => {
  const E = (...given) => T.element(...given);

  async function render(state, main) {
    const index = await T.load("index"), sampled = index.settings.filter((each) => each.samples);
    main.replaceChildren(E("h1", {}, "Results in ", index.source),
      E("p", {}, E("a", { href: "table.html" }, "Table, plots and effective robustness")),
      E("h2", {}, "Samples"),
      sampled.length ? E("ul", {}, ...sampled.map((each) => E("li", {}, E("a", { href: T.link("samples", [each.name]) }, T.name(each.name)))))
        : E("p", {}, "There are no samples here. An export has those of the settings that --samples names."));
  }

  T.view("start", { title: () => "Results", render });
})();
