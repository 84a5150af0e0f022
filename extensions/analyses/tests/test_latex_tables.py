"""Tables in LaTeX of ``testbed grid``, ``rank`` and ``compare``, read as LaTeX reads them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.extensions.analyses.commands.latex import TableCell, escaped, letters_needed, tabular

MODELS = ("net_50%", "R&D #1", r"{a}~b^c\d$")
SETTINGS = ("val_10%", "shift & noise")
RIGHT = {"net_50%": (39, 30), "R&D #1": (36, 31), r"{a}~b^c\d$": (12, 9)}  # of 40 samples of each setting


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two models that are tied, and a worse one."""
    targets = [0, 1, 2, 3] * 10
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model in MODELS:
            for setting, right in zip(SETTINGS, RIGHT[model], strict=True):
                said = [*targets[:right], *((each + 1) % 4 for each in targets[right:])]
                put(opened, model, setting, samples_of(targets), saying(said))
    return tmp_path


def read(text: str) -> list[list[str]]:
    """The cells of the rows below the head, after what LaTeX would refuse is ruled out."""
    bare = re.sub(r"\\[&%#_{}$]", "", re.sub(r"(?m)^%.*", "", text))
    depth = 0
    for each in bare:
        depth += {"{": 1, "}": -1}.get(each, 0)
        assert depth >= 0
    assert depth == 0
    assert "%" not in bare
    assert "#" not in bare
    lines = [line for line in bare.splitlines() if line.endswith(r"\\")]
    (spec,) = re.findall(r"begin{tabular}{(.+)}", bare)
    align = re.sub(r"\[[^]]*\]|@{}", "", spec)
    assert {line.replace(r"\multicolumn{2}", "&").count("&") for line in lines} == {len(align) - 1}
    assert all(line.count("$") % 2 == 0 for line in lines)
    assert not re.search(r"[_^]", re.sub(r"\$[^$]*\$", "", bare))  # only in formulas
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule") < text.index(r"\end{tabular}")
    body = text[text.index(r"\midrule") + 9 : text.index(r"\bottomrule")].strip().splitlines()
    return [re.split(r" (?<!\\)& ?", line.removesuffix(r" \\")) for line in body]


def test_names_are_no_commands_in_any_table(store: Path, ask: Callable[..., Any]) -> None:
    names = {r"net\_50\%", r"R\&D \#1", r"\{a\}\textasciitilde{}b\textasciicircum{}c\textbackslash{}d\$"}
    assert {row[0] for row in read(ask("grid", "*", "--format", "latex").stdout)} == names
    assert {row[2] for row in read(ask("rank", *SETTINGS, "--format", "latex").stdout)} == names
    rows = read(ask("compare", *MODELS, "--on", *SETTINGS, "--format", "latex").stdout)
    assert {name for row in rows for name in row[1:3]} == names
    assert {row[0] for row in rows} == {r"val\_10\%", r"shift \& noise"}


def test_a_ranking_has_the_best_in_bold_and_marks_its_ties(store: Path, ask: Callable[..., Any]) -> None:
    rows = json.loads(ask("rank", SETTINGS[0], "--json").stdout)
    text = ask("rank", SETTINGS[0], "--format", "latex").stdout
    first, second, third = read(text)
    ends = [rf"\,[{100 * row['low']:.2f}, {100 * row['high']:.2f}]$" for row in rows]
    assert [row["tied_with"] for row in rows] == [["R&D #1"], ["net_50%"], []]
    assert first == ["1", "1--2", r"net\_50\%", r"\bfseries 97.50", f"${ends[0]}", "2"]
    assert second[3:5] == ["90.00", rf"$^{{=}}{ends[1]}"]
    assert third[3:5] == ["30.00", f"${ends[2]}"]
    assert "n = 40 samples that all 3 models have." in text
    assert "not significantly different from the best (p $\\geq$ 0.05, paired tests with Holm's correction" in text
    assert text.splitlines()[0].startswith("% net_50% 97.50 % leads; tied with R&D #1 (Holm)")
    several = ask("rank", *SETTINGS, "--format", "latex").stdout
    assert r"rank & 95 \% & model & \multicolumn{2}{c}{mean top1, \%} & mean rank & tied with \\" in several
    assert len({len(row) for row in read(several)}) == 1


def test_pairs_have_the_better_one_in_bold_and_mark_ties(store: Path, ask: Callable[..., Any]) -> None:
    words = ("compare", *MODELS, "--on", SETTINGS[0])
    rows = json.loads(ask(*words, "--json").stdout)
    tied, other, _ = read(ask(*words, "--format", "latex").stdout)
    low, high = 100 * rows[0]["low"], 100 * rows[0]["high"]
    assert rows[0]["verdict"] == "tied"
    assert tied[3:8] == ["40", r"\bfseries 97.50", "90.00", "$^{=}$", "+7.50"]
    assert tied[8] == rf"$\,[{low:+.2f}, {high:+.2f}]$"
    assert tied[10] == f"{rows[0]['p_holm']:.4f}"
    assert other[4:6] == [r"\bfseries 97.50", "30.00"]
    assert other[9] == "<0.0001"


def test_a_pair_of_which_nobody_knows_the_better_one_has_no_bold_one(store: Path, ask: Callable[..., Any]) -> None:
    text = ask("compare", *MODELS[:2], "--on", SETTINGS[0], "--score", "confidence", "--format", "latex").stdout
    assert read(text)
    assert "bfseries" not in text
    assert "{=}" not in text
    assert "bold" not in text.lower()


def test_what_pdflatex_cannot_set_is_said() -> None:
    assert letters_needed("résumé – 10 €") == []
    assert letters_needed("Łódź") == [r"% \usepackage[T1]{fontenc}"]
    assert letters_needed("模型 café 模")[0].startswith("% pdflatex lacks 模型: use lualatex or xelatex")
    assert escaped("a--b e\u0301 <x>\n|") == r"a-{}-b é \textless{}x\textgreater{} \textbar{}"


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_accepts_the_tables(store: Path, ask: Callable[..., Any]) -> None:
    tables = [
        ask(*words, "--format", "latex").stdout
        for words in (("grid", "*"), ("rank", *SETTINGS), ("compare", *MODELS, "--on", *SETTINGS))
    ]
    wide = [
        [TableCell(0.5, 0.25, 0.75), *(TableCell(row / 50, tied=row % 2 == 0) for _ in range(12))] for row in range(45)
    ]
    names = [escaped(f"resnet_{row}--Łódź.ð-<2|3>_of_the_checkpoint_of_epoch_{row}") for row in range(45)]
    heads = ["model", *(f"imagenet-c.gaussian_noise.{each}" for each in range(13))]
    longest = [[name, *cells] for name, cells in zip(names, wide, strict=True)]
    tables.append(tabular("l" + 13 * "S", heads, longest, ["a longtable, in landscape"]))
    tables.append(tabular("lS", ["model", 45 * "m"], [row[:2] for row in longest[:9]], ["a broad head"]))
    lines = [line for table in tables for line in table.splitlines()]
    packages = [line.removeprefix("% ") for line in lines if line.startswith(r"% \usepackage")]  # which each names
    parts = [r"\documentclass{article}", *packages, r"\begin{document}", *tables, r"\end{document}"]
    (store / "paper.tex").write_text("\n".join(parts), encoding="utf-8")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for _ in range(3):  # until a longtable's columns have their widths
        done = subprocess.run(words, cwd=store, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
