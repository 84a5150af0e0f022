"use strict";
/* Exports the shown data as CSV, LaTeX, BibTeX, SVG, PNG and PDF. */
(() => {
  const E = T.element;
  function save(name, content, type) {
    const url = content instanceof Blob ? URL.createObjectURL(content) : URL.createObjectURL(new Blob([content], { type }));
    const anchor = E("a", { href: url, download: name });
    document.body.append(anchor);
    anchor.click();
    anchor.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }
  const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/, NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?%?$/i;
  /* A text that a spreadsheet would read as a formula gets an apostrophe. */
  const safe = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
  const quoted = (cell) => { const text = safe(String(cell ?? "")); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const csv = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const SPECIAL = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--" };
  const tex = (cell) => String(cell ?? "").replace(/[\\~^–&%$#_{}]/g, (each) => SPECIAL[each] || `\\${each}`);
  /* A table with booktabs, preceded by comments on its marks; numbers are already in LaTeX. Matches testbed grid --format latex. */
  function tabular(heads, rows, said) {
    const line = (cells) => `${cells.join(" & ")} \\\\`;
    return [`% ${["\\usepackage{booktabs}", ...said].join("; ")}`, `\\begin{tabular}{l${"r".repeat(heads.length - 1)}}`, "\\toprule", line(heads.map(tex)), "\\midrule", ...rows.map(line), "\\bottomrule", "\\end{tabular}", ""].join("\n");
  }
  const NUMERIC = /^[+-]?\d+\.\d+$/, DECIMALS = 2, DIGITS = 4, MOST_DECIMALS = 6;
  const plain = (given) => {
    const value = NUMERIC.test(given) ? Number(given) : given;
    return typeof value !== "number" ? tex(value) : Number.isNaN(value) ? "--" : `$${Number.isInteger(value) ? value : value.toPrecision(DIGITS)}$`;
  };
  const latex = ([head, ...body]) => tabular(head, body.map((row) => row.map(plain)), []);
  /* Models × columns: the best in bold, marks of ties and of published values. */
  function results(index, rows, columns, tied) {
    const best = columns.map((of) => { const way = T.direction(of), there = way ? rows.map((at) => of.value[at]).filter((each) => !Number.isNaN(each)) : []; return there.length ? way * there.reduce((most, each) => Math.max(most, way * each), -Infinity) : NaN; });
    let intervals = false, ties = false;
    const cell = (of, place, at) => {
      const value = of.value[at], [low, high] = T.interval(of, at), known = low < high, first = value === best[place], tie = !first && tied[place] && tied[place].has(at);
      if (Number.isNaN(value)) return "--";
      intervals ||= known; ties ||= tie;
      const decimals = of.percent ? DECIMALS : Math.min(Math.max(0, 1 - Math.floor(Math.log10((high - low) / 2))), MOST_DECIMALS);
      const shown = (number) => (of.percent || known ? number.toFixed(decimals) : String(Number(number.toPrecision(DIGITS)))), text = shown(value);
      const marks = `${tie ? "=" : ""}${of.origin[at].startsWith("published") ? "\\dagger" : ""}${(of.published[at] || {}).differs ? "\\ast" : ""}`;
      return `$${first ? `\\mathbf{${text}}` : text}${marks ? `^{${marks}}` : ""}${known ? `\\,[${shown(low)}, ${shown(high)}]` : ""}$`;
    };
    const body = rows.map((at) => [tex(index.models[at].name), ...columns.map((of, place) => cell(of, place, at))]);
    const said = [...(intervals ? ["[ ]: 95 % interval"] : []), ...(best.some((each) => !Number.isNaN(each)) ? ["bold: the best"] : []), ...(ties ? [`=: does not differ significantly from the best${tied.some((each) => each.unpaired) ? "; without paired tests, as if the models had seen different samples" : ""} (shaded on the page)`] : []),
      ...(body.some((row) => row.some((each) => each.includes("\\dagger"))) ? ["dagger: published, not measured here"] : []), ...(body.some((row) => row.some((each) => each.includes("\\ast"))) ? ["asterisk: differs from the published value"] : [])];
    return tabular(["model", ...columns.map(T.label)], body, said);
  }
  const entry = (key, fields) => `@misc{${key},\n${Object.entries(fields).filter(([, value]) => value).map(([name, value]) => `  ${name} = {${value}},\n`).join("")}}\n`;
  /* An entry for measured results, if any, and one for each source of published values. */
  function bibtex({ source, written, measured, sources }) {
    const own = measured ? [entry("testbed_results", { title: `Results of {${tex(source)}}, evaluated with testbed`, year: written.slice(0, 4), note: `Exported ${written}` })] : [];
    return [...own, ...sources.map((of) => entry(`published_${of.name.replace(/[^A-Za-z0-9]+/g, "_")}`, {
      title: `Published results of {${tex(of.name)}}`, year: of.date.slice(0, 4), howpublished: of.repository && `\\url{https://github.com/${of.repository}}`,
      note: [of.revision && `revision ${tex(of.revision)}`, `${of.files.length > 1 ? "files" : "file"} ${of.files.map(tex).join(", ")}`, of.date && `of ${of.date}`].filter(Boolean).join(", ") }))].join("\n");
  }
  /* Buttons: rows() gives a table of texts with raw values, tex() one for LaTeX if it is another one, svg() a picture. */
  function exports(name, { rows, tex: table, svg }) {
    const button = (id, text, action) => E("button", { type: "button", id, onclick: action }, text);
    return E("div", { class: "exports" }, ...(rows ? [
      button("csv", "CSV", async () => save(`${name}.csv`, csv(await rows()), "text/csv")),
      button("latex", "LaTeX", async () => save(`${name}.tex`, table ? await table() : latex(await rows()), "text/plain")),
      button("bibtex", "BibTeX", async () => save(`${name}.bib`, bibtex(await T.index()), "text/plain"))] : []),
    ...(svg ? [button("svg", "SVG", () => save(`${name}.svg`, svg(), "image/svg+xml")), button("png", "PNG", () => png(name, svg())), button("pdf", "PDF", () => pdf(name, svg()))] : []));
  }
  /* The browser's print dialog, with nothing but the picture on a sheet of its size. */
  function pdf(name, text) {
    const sheet = E("div", { id: "sheet" }), { title } = document;
    sheet.innerHTML = text;
    const { width, height } = sheet.firstChild.viewBox.baseVal, size = E("style", {}, `@page { size: ${width}px ${height + 1}px; margin: 0 }`);
    document.body.append(sheet, size);
    document.body.classList.add("one-sheet");
    document.title = name; // the file's name
    addEventListener("afterprint", () => { sheet.remove(); size.remove(); document.body.classList.remove("one-sheet"); document.title = title; }, { once: true });
    window.print();
  }
  function png(name, text) {
    const image = new Image(), url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    image.onload = () => {
      const canvas = E("canvas", { width: 3 * image.width, height: 3 * image.height }); // 288 dots per inch
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, blob));
    };
    image.src = url;
  }
  Object.assign(T, { exports, results });
})();
