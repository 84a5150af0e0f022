"""The notebooks run, offline on digits, and are kept without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
FORGET = "%reset -f"  # the names of the notebook before


def code(book: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def texts(cell: nbformat.NotebookNode, kind: str = "text/plain") -> list[str]:
    """What a cell shows, as text."""
    shown = [each.get("text") or each.get("data", {}).get(kind, "") for each in cell.outputs]
    return [each for each in shown if each]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> dict[str, list[nbformat.NotebookNode]]:
    """The notebooks after one kernel has run them, by their number; each begins without names."""
    books = [nbformat.read(path, as_version=4) for path in NOTEBOOKS]
    whole = nbformat.v4.new_notebook(metadata=books[0].metadata)
    for book in books:
        whole.cells += [nbformat.v4.new_code_cell(FORGET), *code(book)]
    folder = tmp_path_factory.mktemp("notebooks")
    NotebookClient(whole, timeout=200, resources={"metadata": {"path": str(folder)}}).execute()
    found: dict[str, list[nbformat.NotebookNode]] = {}
    for cell in whole.cells:
        if cell.source == FORGET:
            found[str(len(found) + 1)] = []
        else:
            found[str(len(found))].append(cell)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_notebooks_are_kept_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    for cell in code(book):
        assert cell.outputs == []
        assert cell.execution_count is None


def test_all_three_notebooks_are_there():
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.slow
def test_the_first_shows_a_table_frames_and_what_is_stored(run):
    _, evaluated, *_, stored, _, told = run["1"]
    assert "<th scope='row'>digits-cnn</th>" in "".join(texts(evaluated, "text/html"))
    assert texts(stored)[-1] == "{'stored'}"
    assert "digits-cnn: resize 32, crop 32" in texts(told)[-1]


@pytest.mark.slow
def test_the_second_evaluates_an_edited_model_anew(run):
    *_, compared, named = run["2"]
    rows = [line.split() for line in texts(compared)[-1].splitlines() if line.startswith("digits")]
    assert [row[0] for row in rows] == ["digits", "digits-left-half"]
    for _, before, low, after, high in rows:
        assert int(before) != int(after)
        assert float(low) != float(high)
    assert "class-means" in texts(named)[-1]


@pytest.mark.slow
def test_the_third_tests_the_difference_and_draws_the_severities(run):
    counts, printed, table, drawn = (run["3"][place] for place in (1, 2, 4, 5))
    assert "digits-cnn − digits-logreg: +" in "".join(texts(printed))
    assert "p = " in "".join(texts(printed))
    assert "digits-logreg" in texts(counts)[-1]
    assert texts(table)[-1].count("digits-c.") == 10
    kinds = {kind for each in drawn.outputs for kind in each.get("data", {})}
    assert "application/vnd.plotly.v1+json" in kinds
