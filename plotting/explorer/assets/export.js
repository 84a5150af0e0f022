"use strict";
/* What is shown, as CSV, LaTeX, BibTeX, SVG, PNG and PDF. */
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
  /* A text that a spreadsheet would take for a formula gets an apostrophe. */
  const safe = (text) => (FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text);
  const quoted = (cell) => { const text = safe(String(cell ?? "")); return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
  const csv = (rows) => rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  const SPECIAL = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "–": "--" };
  const tex = (cell) => String(cell ?? "").replace(/[\\~^–&%$#_{}]/g, (each) => SPECIAL[each] || `\\${each}`);
  function latex(rows) {
    const [head, ...body] = rows.map((row) => `${row.map(tex).join(" & ")} \\\\`);
    return [`\\begin{tabular}{l${"r".repeat(rows[0].length - 1)}}`, "\\hline", head, "\\hline", ...body, "\\hline", "\\end{tabular}", ""].join("\n");
  }
  function bibtex(source, written) {
    return `@misc{testbed_results,\n  title = {Results of {${source}}, evaluated with testbed},\n  year = {${written.slice(0, 4)}},\n  note = {Exported ${written}},\n}\n`;
  }
  /* Buttons: rows() gives a table of texts, svg() a picture. */
  function exports(name, { rows, svg }) {
    const button = (id, text, action) => E("button", { type: "button", id, onclick: action }, text);
    return E("div", { class: "exports" }, ...(rows ? [
      button("csv", "CSV", async () => save(`${name}.csv`, csv(await rows()), "text/csv")),
      button("latex", "LaTeX", async () => save(`${name}.tex`, latex(await rows()), "text/plain")),
      button("bibtex", "BibTeX", async () => { const { source, written } = await T.index(); save(`${name}.bib`, bibtex(source, written), "text/plain"); })] : []),
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
  Object.assign(T, { exports, csv, latex });
})();
