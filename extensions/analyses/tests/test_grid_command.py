"""``testbed grid``: models × settings as text."""

from __future__ import annotations

import csv
import json

import pytest
from tables import cases

from testbed.db.store import Store
from testbed.extensions.analyses.commands.grid import as_text
from testbed.extensions.analyses.commands.latex import TableCell, beside, escaped, number, tabular
from testbed.extensions.published.importing import import_results


@pytest.fixture
def url(tmp_path):
    with (tmp_path / "t.csv").open("w", newline="") as file:
        rows = [["model", "val", "imagenet-a", "imagenet-r"], ["resnet18", 69.758, 1.1, 33.07]]
        csv.writer(file).writerows([*rows, ["resnet_50", 76.13, "", 36.17], ["vgg|x", "", 2.0, ""]])
    path = str(tmp_path / "store.db")
    with Store.create(path) as store:
        import_results(store, tmp_path / "t.csv")
    return path


def test_a_table_for_the_terminal_has_the_best_model_first(program, url):
    done = program("testbed", "grid", "--db-url", url, "val", "imagenet-*", "--models", "resnet*")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["top1,", "%", "val", "imagenet-a", "imagenet-r"]
    assert lines[2].split() == ["resnet_50", "76.13†", "–", "36.17†"]
    assert lines[3].split() == ["resnet18", "69.76†", "1.10†", "33.07†"]
    assert lines[4] == "† published, not measured here: testbed published show MODEL SETTING"


def test_markdown_and_latex(program, url):
    words = ["grid", "--db-url", url, "val", "imagenet-a", "--format"]
    lines = program("testbed", *words, "markdown").stdout.splitlines()
    assert lines[0] == "| top1, % | val | imagenet-a |"
    assert lines[1] == "| --- | ---: | ---: |"
    assert lines[4] == r"| vgg\|x | – | 2.00† |"
    text = program("testbed", *words, "latex").stdout
    lines = text.splitlines()
    heads = (rf"\multicolumn{{2}}{{c}}{{{name}}}" for name in ("val", "imagenet-a"))
    at = lines.index(r"\begin{tabular}{lS[table-format=2.2]@{}lS[table-format=1.2]@{}l}")
    assert lines[at : at + 3] == [lines[at], r"\toprule", rf"top1, \% & {' & '.join(heads)} \\"]
    assert r"resnet\_50 & \bfseries 76.13 & $^{\dagger}\,[75.75, 76.50]$ & {--} & \\" in lines  # of val's 50,000 images
    assert lines[-3:] == [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    (caption,) = (line for line in lines if line.startswith(r"\caption"))
    for said in ("top1. ", "n: val 50,000", "Sources of published values: t.", "95 \\% intervals", "Bold: the best"):
        assert said in caption


def test_a_long_table_goes_on_on_the_next_page(program, tmp_path):
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["model", "val"], *([f"m{at}", 50 + at / 10] for at in range(41))])
    path = str(tmp_path / "store.db")
    with Store.create(path) as store:
        import_results(store, tmp_path / "t.csv")
    text = program("testbed", "grid", "--db-url", path, "val", "--format", "latex").stdout
    assert text.count("\ntop1, ") == 2  # the head of the first page, and of the others
    assert text.index(r"\begin{longtable}") < text.index(r"\caption") < text.index(r"\endhead") < text.index("m40 &")


def test_json_has_fractions_and_leaves_out_what_is_missing(program, url):
    rows = json.loads(program("testbed", "grid", "--db-url", url, "imagenet-a", "val", "--json").stdout)
    assert rows[0] == {"model": "vgg|x", "imagenet-a": 0.02, "published": ["imagenet-a"]}
    assert rows[2] == {"model": "resnet_50", "val": 0.7613, "published": ["val"]}


def test_a_difference_of_two_columns_is_a_column(program, url):
    words = ("grid", "--db-url", url, "val", "val - imagenet-r")
    lines = program("testbed", *words).stdout.splitlines()
    assert [line.split()[-1] for line in lines[2:4]] == ["39.96", "36.69"]
    rows = json.loads(program("testbed", *words, "--json").stdout)
    assert {row["model"]: row.get("val - imagenet-r") for row in rows} == {
        "resnet_50": pytest.approx(0.3996),
        "resnet18": pytest.approx(0.36688),
    }
    refused = program("testbed", "grid", "--db-url", url, "val - imagenet-s", code=1).stderr
    assert "unknown column 'imagenet-s' in the stored results; did you mean" in refused


def test_mistakes_are_one_line(program, url):
    for words, said in (
        (["grid", "imagenet-z*"], "no column of the stored results matches 'imagenet-z*'; there are 3"),
        (["grid", "val", "--models", "bert"], "the store has no outputs of model 'bert'"),
        (["grid", "val", "--metric", "top9"], "the store has no results of the metric 'top9'"),
    ):
        done = program("testbed", *words, "--db-url", url, code=1)
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert "'npz' is not one of" in program("testbed", "grid", "--db-url", url, "val", "--format", "npz", code=2).stderr
    assert (
        "'latex' is not one of"
        in program("testbed", "export", "logits", "--db-url", url, "val", "x", "--format", "latex", code=2).stderr
    )


def test_latex_takes_nothing_in_a_name_for_a_command():
    assert escaped(r"a_b&c%d$e#f{g}h~i^j\k") == (
        r"a\_b\&c\%d\$e\#f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"
    )
    assert as_text(["m"], ["s"], [["1.00"]], "markdown", "top1").splitlines()[2] == "| m | 1.00 |"


@cases(
    ("cell", "text", "further"),
    [
        (TableCell(0.9759259259, 0.959311, 0.985877, tied=True), "97.59", r"$^{=}\,[95.93, 98.59]$"),
        (TableCell(1.0, 0.98598, 1.0, best=True, tied=True), r"\bfseries 100.00", r"$\,[98.60, 100.00]$"),
        (TableCell(0.625, 0.501, 0.733, published=True), "62.50", r"$^{\dagger}\,[50.10, 73.30]$"),
        (TableCell(0.76543, 0.7532, 0.7781, unit="nats"), "0.7654", r"$\,[0.7532, 0.7781]$"),
        (TableCell(1234.5, 1100.0, 1400.0, unit="points"), "1234.50", r"$\,[1100.00, 1400.00]$"),
        (TableCell(0.33333, published=True, differs=True), "33.33", r"$^{\dagger\ast}$"),
        (TableCell(0.123456, unit=""), "0.1235", ""),
        (TableCell(0.0000123456, unit=""), "1.2e-5", ""),
        (TableCell(0.0123456, p=True), "0.0123", ""),
        (TableCell(0.0000123456, p=True), "<0.0001", ""),
        (TableCell(0.9759259259, best=True), r"\bfseries 97.59", ""),
        (TableCell(0.005512, -0.007501, 0.01849, signed=True), "+0.55", r"$\,[-0.75, +1.85]$"),
        (TableCell(-0.025512, -0.039, -0.012, signed=True), "-2.55", r"$\,[-3.90, -1.20]$"),
        (TableCell(float("nan")), "{--}", ""),
    ],
)
def test_numbers_for_a_paper_have_their_interval(cell, text, further):
    assert (number(cell), beside(cell)) == (text, further)


def test_the_caption_says_what_the_marks_of_a_table_mean():
    rows = [["a", TableCell(2.0, 1.0, 3.0, best=True)], ["b", TableCell(1.0, 0.0, 2.0, tied=True)]]
    text = tabular("lS", ["top1", "s"], rows, ["50 % of it"])
    said = "In brackets: 95 \\% intervals. Bold: the best. =: not significantly different from the best"
    assert rf"\caption{{50 \% of it. {said} (paired tests" in text
    assert "=:" not in tabular("lS", ["top1", "s"], rows[:1], [])


def test_ties_with_the_best_are_those_of_rank(program, tmp_path):
    url = str(tmp_path / "digits.db")
    models = ("digits-knn", "digits-mlp", "digits-logreg")
    program("testbed", "run", *models, "--on", "digits", "--executor", "inline", "--db-url", url)
    rows = {
        each["model"]: each
        for each in json.loads(program("testbed", "rank", "digits", "--json", "--db-url", url).stdout)
    }
    best = next(name for name, row in rows.items() if row["rank"] == 1)
    text = program("testbed", "grid", "digits", "--format", "latex", "--db-url", url).stdout
    lines = {line.split(" & ")[0]: line for line in text.splitlines() if ", " in line and line.endswith(r"\\")}
    assert rf"\bfseries {100 * rows[best]['value']:.2f} &" in lines[best]
    others = set(rows) - {best}
    assert {name for name in others if "{=}" in lines[name]} == set(rows[best]["tied_with"])
