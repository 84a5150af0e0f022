"""The notebooks run, offline on digits, and are stored with what their cells show."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from near_text import assert_near

ROOT = Path(__file__).resolve().parent.parent.parent
spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs" / "make_notebooks.py")
make_notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_notebooks)
NOTEBOOKS, code = make_notebooks.NOTEBOOKS, make_notebooks.code
CLASS = re.compile(r"\b(zero|one|two|three|four|five|six|seven|eight|nine)\b")


def texts(cell: nbformat.NotebookNode, kind: str = "text/plain") -> list[str]:
    """What a cell shows, as text."""
    shown = [each.get("text") or each.get("data", {}).get(kind, "") for each in cell.outputs]
    return [each for each in shown if each]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dict[str, list[nbformat.NotebookNode]]:
    """The cells of the notebooks after they were run, by their number."""
    books = make_notebooks.executed(NOTEBOOKS, tmp_path_factory.mktemp("notebooks"))
    return {path.name[0]: code(book) for path, book in zip(NOTEBOOKS, books, strict=True)}


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks_are_stored_with_what_their_cells_show(path, run):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for stored, cell in zip(code(book), run[path.name[0]], strict=True):
        for kind in ("text/plain", "text/html"):
            # Accuracies are percentages there. On another processor the models that are trained here answer some images
            # otherwise: other samples are listed then, with other classes, and p values are other ones.
            shown, said = (CLASS.sub("0", " ".join(texts(each, kind))) for each in (cell, stored))
            assert_near(shown, said, "run: python docs/make_notebooks.py", fractions=None, whole=False)
        assert len(stored.outputs) == len(cell.outputs)


def test_all_three_notebooks_are_there():
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.long
def test_the_first_shows_a_table_frames_and_what_is_stored(run):
    _, evaluated, *_, stored, _, told = run["1"]
    assert "<th scope='row'>digits-cnn</th>" in "".join(texts(evaluated, "text/html"))
    assert texts(stored)[-1] == "{'stored'}"
    assert "digits-cnn: resize 32, crop 32" in texts(told)[-1]


@pytest.mark.long
def test_the_second_evaluates_an_edited_model_anew(run):
    *_, compared, named = run["2"]
    rows = [line.split() for line in texts(compared)[-1].splitlines() if line.startswith("digits")]
    assert [row[0] for row in rows] == ["digits", "digits-left-half"]
    for _, before, low, after, high in rows:
        assert int(before) != int(after)
        assert float(low) != float(high)
    assert "class-means" in texts(named)[-1]


@pytest.mark.long
def test_the_third_tests_the_difference_and_draws_the_severities(run):
    counts, printed, table, drawn = (run["3"][place] for place in (1, 2, 4, 5))
    assert "digits-cnn − digits-logreg: +" in "".join(texts(printed))
    assert "p = " in "".join(texts(printed))
    assert "digits-logreg" in texts(counts)[-1]
    assert texts(table, "text/html")[-1].count("digits-c.") == 10
    kinds = {kind for each in drawn.outputs for kind in each.get("data", {})}
    assert "application/vnd.plotly.v1+json" in kinds
