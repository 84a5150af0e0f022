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
  /* A result in a table of texts: its exact value in the metric's unit, its interval, its number of samples. */
  const measured = (value, unit) => ({ value, unit, low: NaN, high: NaN, n: NaN });
  const exact = (of, end) => Number((of.percent ? end / 100 : end).toPrecision(10)); // ends are known to ten digits
  function result(of, at) {
    const [low, high] = T.interval(of, at);
    return { value: of.raw[at], unit: of.unit, low: exact(of, low), high: exact(of, high), n: of.n[at], metric: of.metric, origin: of.origin[at], differs: Boolean((of.published[at] || {}).differs) };
  }
  const isResult = (cell) => cell !== null && typeof cell === "object";
  /* Rows for a spreadsheet: each column of results has its number of samples, its interval and its unit beside it. */
  function sheet([head, ...body]) {
    const known = (value) => (Number.isNaN(value) ? "" : value), places = head.map((_, at) => at), results = places.map((at) => body.map((row) => row[at]).filter(isResult));
    const more = results.map((own) => [...(own.some(({ n }) => !Number.isNaN(n)) ? ["n"] : []), ...(own.some(({ low, high }) => low < high) ? ["low", "high"] : []), ...(own.length ? ["unit"] : [])]);
    return [places.flatMap((at) => [head[at], ...more[at].map((key) => `${head[at]} ${key}`)]),
      ...body.map((row) => places.flatMap((at) => (isResult(row[at]) ? [known(row[at].value), ...more[at].map((key) => (Number.isNaN(row[at].value) ? "" : known(row[at][key])))] : [row[at]])))];
  }

  // LaTeX, as testbed grid --format latex writes it -------------------------------------------------------------------

  const LONGEST = 40, WIDEST = 72, WIDEST_SMALLER = 86, LANDSCAPE = 515, SMALLEST_ROOM = 3.4, SMALLER = "\\footnotesize\\setlength{\\tabcolsep}{3pt}", GAP = 2, MOST_INTERVALS = 3, SETUP = "\\sisetup{mode=text, detect-weight, retain-explicit-plus}\\setlength{\\belowcaptionskip}{\\abovecaptionskip}", TESTED = "paired tests with Holm's correction; without stored samples, the 95 % interval of the difference";
  const SPECIAL = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}", "–": "--", "−": "$-$", "×": "$\\times$", "κ": "$\\kappa$", "≥": "$\\geq$", "≤": "$\\leq$" };
  /* Escapes commands and what LaTeX would set as another character, such as two hyphens. */
  const tex = (cell) => String(cell ?? "").normalize("NFC").replace(/\s+/g, " ").replace(/([-'`,])(?=\1)|[\\~^<>|–−×κ≥≤&%$#_{}]/g, (each, twice) => (twice ? `${each}{}` : SPECIAL[each] || `\\${each}`));
  const EXTENDED = /[ÐðÞþ\u0100-\u017f]/, FOREIGN = /[^\0-\u017f\u2010-\u2026€™]/gu;
  /* Comments: what a document needs for the letters of a table. */
  function lettersNeeded(text) {
    const foreign = [...new Set(text.match(FOREIGN))].join("");
    return [...(EXTENDED.test(text) ? ["% \\usepackage[T1]{fontenc}"] : []), ...(foreign ? [`% pdflatex lacks ${foreign}: use lualatex or xelatex with a font that has them (\\usepackage{fontspec}\\setmainfont{…})`] : [])];
  }
  const { decimalsOf, fixed, FRACTION } = T.numbers, plain = (value, unit) => fixed(unit === FRACTION ? 100 * value : value, decimalsOf(unit), false, false).replaceAll("−", "-");
  const texNumber = ({ value, unit, best }) => (Number.isNaN(value) ? "{--}" : `${best ? "\\bfseries " : ""}${plain(value, unit)}`);
  function beside({ value, unit, low, high, tied, best, origin, differs }) {
    if (Number.isNaN(value)) return "";
    const marks = `${tied && !best ? "=" : ""}${isPublished(origin) ? "\\dagger" : ""}${differs ? "\\ast" : ""}`, ends = low < high ? `\\,[${plain(low, unit)}, ${plain(high, unit)}]` : "";
    return marks || ends ? `$${marks ? `^{${marks}}` : ""}${ends}$` : "";
  }
  const isPublished = (origin) => (origin || "").startsWith("published");
  function tableFormat(numbers) {
    const found = numbers.map((text) => /^(?:\\bfseries )?(-?)(\d+)\.?(\d*)(?:e(-?)(\d+))?$/.exec(text)).filter(Boolean), most = (at) => Math.max(0, ...found.map((each) => (each[at] || "").length)), signed = (at) => (found.some((each) => each[at]) ? "-" : "");
    return `${signed(1)}${Math.max(1, most(2))}.${most(3)}${most(5) ? `e${signed(4)}${most(5)}` : ""}`;
  }
  /* Alignment, head and cells of a column; intervals and marks of results stand in one of their own beside it. */
  function texColumn(head, cells) {
    const results = cells.map((cell) => (isResult(cell) ? cell : measured(NaN, ""))), any = cells.some(isResult);
    if (!any) return [cells.length && cells.every((cell) => typeof cell === "number") ? "r" : "l", tex(head), cells.map((cell) => (typeof cell === "number" && Number.isInteger(cell) ? T.numbers.count(cell) : tex(cell)))];
    const numbers = results.map(texNumber), further = results.map(beside), spec = `S[table-format=${tableFormat(numbers)}]`;
    if (!further.some(Boolean)) return [spec, `{${tex(head)}}`, numbers];
    return [`${spec}@{}l`, `\\multicolumn{2}{c}{${tex(head)}}`, numbers.map((text, at) => (further[at] ? `${text} & ${further[at]}` : `${text} &`))];
  }
  /* The names of the sources that published values, and averages of some, are from. */
  const sourcesOf = (cells) => distinct(cells.flatMap(({ origin }) => { const [, one, some] = /^published \((.*)\)$|^average of .*?\((.*)\)$/s.exec(origin || "") || []; return one ? [one] : (some || "").split("; "); })).sort();
  const distinct = (list) => [...new Set(list.filter(Boolean))];
  /* What the numbers are, of how many samples and from where, and what the marks mean. */
  function captioned(title, cells) {
    const all = cells.filter((each) => !Number.isNaN(each.value)), sizes = all.map(({ n }) => n).filter((n) => n > 0), least = Math.min(...sizes), most = Math.max(...sizes), { count } = T.numbers;
    const metrics = distinct(all.map((each) => each.metric)), sources = sourcesOf(all);
    const said = [title, ...(metrics.length ? [`${metrics.length > 1 ? "Metrics" : "Metric"}: ${metrics.join(", ")}`] : []), ...(sizes.length ? [`n = ${least === most ? count(most) : `${count(least)} to ${count(most)}`} samples`] : []), ...(sources.length ? [`Sources of published values: ${sources.join(", ")}`] : []), ...(all.some(({ low, high }) => low < high) ? ["In brackets: 95 % intervals"] : [])].map(tex);
    if (all.some(({ best }) => best)) said.push("Bold: the best");
    if (all.some(({ tied, best }) => tied && !best)) said.push(tex(`=: not significantly different from the best (${TESTED})`));
    if (all.some(({ origin }) => isPublished(origin))) said.push("$\\dagger$: published, not measured here");
    if (all.some(({ differs }) => differs)) said.push("$\\ast$: differs from the published value");
    return `\\caption{${said.map((each) => `${each}.`).join(" ")}}`;
  }
  /* Rows without intervals if more columns have some than fit on a page. */
  function fewIntervals(body) {
    const has = (cell) => isResult(cell) && cell.low < cell.high, some = new Set(body.flatMap((row) => row.flatMap((cell, at) => (has(cell) ? [at] : []))));
    return some.size <= MOST_INTERVALS ? body : body.map((row) => row.map((cell) => (isResult(cell) ? { ...cell, low: NaN, high: NaN } : cell)));
  }
  /* The printed characters of a column's widest cell, about. */
  const characters = (cells) => cells.reduce((most, cell) => Math.max(most, cell.replace(/\\[a-z]+ ?|[\\${}^&]/g, "").length), 0);
  /* The head of a column of numbers, upwards. */
  const turnedHead = (spec, head) => (spec === "l" ? head : spec === "r" ? `\\rotatebox{90}{${head}}` : head.replace(/^(\\multicolumn\{2\}\{c\})?\{(.*)\}$/s, "$1{\\rotatebox{90}{$2}}"));
  /* The size of letters at which a long table fits on pages in landscape. TeX's letters below 8 points are broader for their size, down to 5 points, below which they need fix-cm. */
  function fittedSize(wide) {
    const room = LANDSCAPE / wide; // points for each character
    return room < SMALLEST_ROOM ? Number((room / 0.68).toFixed(1)) : Math.min(8, Math.floor((room - 2) / 0.28));
  }
  function latex(title, [heads, ...given]) {
    const body = fewIntervals(given);
    const fitted = heads.map((head, at) => texColumn(head, body.map((row) => row[at]))), widths = fitted.map(([, , cells]) => characters(cells)), without = widths.reduce((sum, own) => sum + own + GAP, 0), whole = widths.reduce((sum, own, at) => sum + Math.max(own, heads[at].length) + GAP, 0), turned = whole > WIDEST_SMALLER && whole > without, wide = turned ? without : whole;
    const columns = turned ? fitted.map(([own, head, cells]) => [own, turnedHead(own, head), cells]) : fitted, line = (cells) => `${cells.join(" & ")} \\\\`, spec = columns.map(([own]) => own).join(""), head = line(columns.map(([, own]) => own));
    const lines = body.map((_, at) => line(columns.map(([, , cells]) => cells[at]))), caption = captioned(title, body.flat().filter(isResult)), long = lines.length > LONGEST, top = ["\\toprule", head, "\\midrule"], fits = long || wide <= WIDEST_SMALLER;
    const landscape = long && wide > WIDEST_SMALLER, size = fittedSize(wide), setup = `${SETUP}${landscape ? `\\fontsize{${size}}{${(1.2 * size).toFixed(1)}}\\selectfont\\setlength{\\tabcolsep}{.4em}` : wide <= WIDEST ? "" : SMALLER}`;
    const table = long ? [...(landscape ? ["\\begin{landscape}"] : []), `{${setup}\\setlength{\\LTcapwidth}{\\linewidth}`, `\\begin{longtable}{${spec}}`, `${caption} \\\\`, ...top, "\\endfirsthead", ...top, "\\endhead", "\\bottomrule", "\\endfoot", ...lines, "\\end{longtable}}", ...(landscape ? ["\\end{landscape}"] : [])]
      : ["\\begin{table}", "\\centering", setup, caption, `${fits ? "" : "\\resizebox{\\linewidth}{!}{"}\\begin{tabular}{${spec}}`, ...top, ...lines, "\\bottomrule", `\\end{tabular}${fits ? "" : "}"}`, "\\end{table}"];
    return [`% \\usepackage{booktabs,siunitx${long ? ",longtable" : ""}${landscape ? `,pdflscape${size < 5 ? ",fix-cm" : ""}` : ""}${turned || !fits ? ",graphicx" : ""}}`, ...lettersNeeded(table.join("")), ...table, ""].join("\n");
  }
  /* The results of a column, the best of some models in bold, its ties marked: a function of a model's place. */
  function marked(of, models, ties) {
    const way = T.direction(of), there = way ? models.map((at) => of.value[at]).filter((each) => !Number.isNaN(each)) : [], best = there.length ? way * there.reduce((most, each) => Math.max(most, way * each), -Infinity) : NaN;
    return (at) => ({ ...result(of, at), best: of.value[at] === best, tied: Boolean(ties && ties.has(at)) });
  }
  /* Models × columns: the best in bold, marks of ties and of published values. */
  function results(index, rows, columns, tied) {
    const cells = columns.map((of, place) => marked(of, rows, tied[place]));
    return latex("Results of models", [["model", ...columns.map(T.label)], ...rows.map((at) => [index.models[at].name, ...cells.map((cell) => cell(at))])]);
  }
  /* The cells of a table in which models are compared by columns; tests are loaded first. */
  async function compared({ index, models, columns }) {
    await Promise.all(columns.map((of) => T.leaders.load(index, of)));
    const cells = new Map(columns.map((of) => [of, marked(of, models, T.leaders.ties(index, of, models))]));
    return (of, at) => cells.get(of)(at);
  }
  const entry = (key, fields) => `@misc{${key},\n${Object.entries(fields).filter(([, value]) => value).map(([name, value]) => `  ${name} = {${value}},\n`).join("")}}\n`;
  /* An entry for results of this store, if any are shown, and one for each source of the published values shown. */
  function bibtex({ source, written, sources }, [, ...body]) {
    const shown = body.flat().filter((cell) => isResult(cell) && cell.origin && !Number.isNaN(cell.value)), named = new Set(sourcesOf(shown)), measured = !shown.length || shown.some(({ origin }) => !/^(published|average of published)/.test(origin));
    const own = measured ? [entry("testbed_results", { title: `Results of {${bib(source)}}, evaluated with testbed`, year: written.slice(0, 4), note: `Exported ${written}` })] : [];
    return [...own, ...sources.filter(({ name }) => named.has(name)).map((of) => entry(key(of, sources), {
      title: `Published results of {${bib(of.name)}}`, year: of.date.slice(0, 4), howpublished: of.repository && `\\url{https://github.com/${of.repository}}`,
      note: [of.revision && `revision ${bib(of.revision)}`, `${of.files.length > 1 ? "files" : "file"} ${of.files.map(bib).join(", ")}`, of.date && `of ${of.date}`].filter(Boolean).join(", ") }))].join("\n");
  }
  /* BibTeX counts braces, also escaped ones. */
  const bib = (text) => tex(text).replaceAll("\\{", "\\textbraceleft{}").replaceAll("\\}", "\\textbraceright{}");
  const keyed = ({ name }) => `published_${name.replace(/[^A-Za-z0-9]+/g, "_")}`;
  /* A key of a source; numbered if others of the store before it have the same one. */
  const key = (of, all) => { const before = all.slice(0, all.indexOf(of)).filter((each) => keyed(each) === keyed(of)).length; return `${keyed(of)}${before ? `_${before + 1}` : ""}`; };
  /* Buttons: rows() gives a table of texts, counts and results, whose cells of models that are compared by columns it may be
     given; tex() one for LaTeX if it is another one; svg() a picture. */
  function exports(name, { rows, title = name, best, tex: table, svg }) {
    const button = (id, text, action) => E("button", { type: "button", id, onclick: action }, text);
    return E("div", { class: "exports" }, ...(rows ? [
      button("csv", "CSV", async () => save(`${name}.csv`, csv(sheet(await rows())), "text/csv")),
      button("latex", "LaTeX", async () => save(`${name}.tex`, table ? await table() : latex(title, await rows(best && await compared(best))), "text/plain")),
      button("bibtex", "BibTeX", async () => save(`${name}.bib`, bibtex(await T.index(), await rows()), "text/plain"))] : []),
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
  Object.assign(T, { exports, results, result, measured, exact });
})();
