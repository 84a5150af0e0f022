"""Runs the notebooks in examples/ and stores what their cells show: ``python docs/make_notebooks.py``.

Figures are stored as PNG, which every viewer of notebooks shows; progress and times are left out. A test runs the
notebooks anew and compares the texts and tables.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

from testbed.api.notebook import NOTHING

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "examples" / "notebooks").glob("*.ipynb"))
FIGURE = "application/vnd.plotly.v1+json"


def executed(paths: list[Path], folder: Path) -> list[Any]:
    """The notebooks with what their cells show.

    One kernel runs all of them, each in a folder of its own, without the names of the others.
    """
    os.environ["PLOTLY_RENDERER"] = "plotly_mimetype"
    books = [nbformat.read(path, as_version=4) for path in paths]
    whole = nbformat.v4.new_notebook(metadata=books[0].metadata)
    for place, book in enumerate(books):
        (folder / str(place)).mkdir()
        whole.cells += [nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {folder / str(place)}"), *code(book)]
    NotebookClient(whole, timeout=400, resources={"metadata": {"path": str(folder)}}).execute()
    for book in books:
        for number, cell in enumerate(code(book), 1):
            cell.execution_count = number
            cell.metadata.pop("execution", None)
            cell.outputs = list(_kept(cell.outputs, number))
    return books


def code(book: Any) -> list[Any]:
    """The cells of a notebook that are run."""
    return [cell for cell in book.cells if cell.cell_type == "code"]


def _kept(outputs: list[Any], number: int) -> Iterator[Any]:
    for output in outputs:
        if output.output_type == "execute_result":
            output.execution_count = number
        if output.get("name") != "stderr" and output.get("data") != NOTHING:
            yield output


def _draw(books: list[Any], folder: Path) -> None:
    """Puts a picture in place of each figure."""
    from plotly.io import from_json

    from testbed.plotting.images import write_images

    shown = [
        output for book in books for cell in code(book) for output in cell.outputs if FIGURE in output.get("data", {})
    ]
    paths = [folder / f"{place}.png" for place in range(len(shown))]
    write_images([from_json(json.dumps(output.data[FIGURE]), skip_invalid=True) for output in shown], paths)
    for output, path in zip(shown, paths, strict=True):
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)
        output.data = nbformat.NotebookNode({"image/png": base64.b64encode(path.read_bytes()).decode()})


def main() -> None:
    """Runs all notebooks and stores them."""
    with tempfile.TemporaryDirectory() as name:
        books = executed(NOTEBOOKS, Path(name))
        _draw(books, Path(name))
    for book, path in zip(books, NOTEBOOKS, strict=True):
        nbformat.write(book, path)


if __name__ == "__main__":
    main()
