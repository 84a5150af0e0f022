"""VLMEvalKit's tables of questions, and the files of answers and of scores that it writes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import openpyxl
import pytest
from fuzzing import damaged_json, damaged_table, fuzzed, mangled, mangled_bytes, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st
from table_world import encoded, photo

from testbed.data.rows import Picture
from testbed.data.tables.answers import is_prediction_table, read_prediction_table
from testbed.data.tables.files import read_records, text_of
from testbed.data.tables.index import index_table
from testbed.data.tables.pictures import decoded, parts_of, picture_file
from testbed.data.tables.readings import READINGS, read_as_vlmevalkit
from testbed.data.tables.scores import recorded_scores
from testbed.data.tables.source import TableSource
from testbed.data.tables.tsv import read_rows
from testbed.errors import SampleError
from testbed.stored_results.slices import read_csv

PHOTO = encoded("coffee", side=4)
ROWS = (
    ("index", "question", "A", "B", "answer", "image", "image_path"),
    ("1", "What is it?", "a cup", "a\tcat", "A", PHOTO, ""),
    ("2", 'So "what"?', "1.50", "007", "B", "1", ""),
    ("3", "And this?", "None", "", "A", json.dumps([PHOTO, PHOTO]), "['x.png', \"y.png\"]"),
    ("4", "And that?", "true", "false", "B", "", "a.png"),
)
CELLS = (
    *("['a.png', 'b.png']", '["a.png"]', '["a\\u0000.png"]', '["\\ud800.png"]', '["../secret.png"]'),
    *("['../secret.png']", "[1, 2]", "[1, 2.5]", "['\\x00']", "['\\N{BEL}']", "['\\xzz']", "[0x1]", "[-1]"),
    *("[" + "9" * 5000 + "]", "[]", "[,]", "====", "a" * 70, "../secret.png", "1.0", "1e5", "NA", "2024-01-01"),
    "data:image/png;base64," + PHOTO,
)


@fuzzed()
@given(content=damaged_table(*ROWS, delimiter="\t", cells=CELLS), reading=st.sampled_from(READINGS))
def test_tables(content: bytes, reading: str, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "secret.png").write_bytes(photo("rocket"))
        (folder / "images").mkdir()
        (folder / "images" / "a.png").write_bytes(photo("coffee", 4))
        (folder / "t.tsv").write_bytes(content)
        source = TableSource(folder / "t.tsv", pictures=folder / "images", tsv_reading=reading)
        positions = range(len(source.ids))
        source.digests(positions)
        for position in positions:
            with robust(folder):
                row = source.row(position)
                assert all(each.data != photo("rocket") for each in row.pictures)
                for picture in row.pictures:
                    picture.image()


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


@fuzzed()
@given(rows=st.lists(st.lists(texts, min_size=3, max_size=3), min_size=1, max_size=4), quoted=st.booleans())
def test_cells_are_read_as_they_were_written(rows: list[list[str]], quoted: bool, tmp_path: Path) -> None:
    names = [f"{number}" for number in range(len(rows))]
    lines = [["index", "a", "b", "c"], *([name, *row] for name, row in zip(names, rows, strict=True))]
    with trial(tmp_path) as folder:
        path = folder / "t.tsv"
        text = "\n".join("\t".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)
        path.write_bytes(text.encode() + b"\n" * quoted)
        index = index_table(path)
        assert index.cells == lines[1:]
        for offset, size, cells in zip(index.offsets, index.sizes, index.cells, strict=True):
            (row,) = read_rows(path, io.BytesIO(path.read_bytes()[offset : offset + size]))
            assert [cell.decode() for cell in row.cells] == cells


@fuzzed()
@given(cell=mangled(*CELLS, PHOTO))
def test_cells_of_pictures(cell: str) -> None:
    with robust(errors=(SampleError,)):
        for part in parts_of(cell, "image"):
            assert isinstance(part, str)
            Picture(decoded(part, "image")).image()


@fuzzed()
@given(parts=st.lists(st.text()))
def test_lists_of_texts_are_read_as_json_and_python_write_them(parts: list[str]) -> None:
    assert parts_of(json.dumps(parts), "image") == parts
    if repr(parts).isprintable() and not any("\ud800" <= each <= "\udfff" for each in repr(parts)):
        assert parts_of(repr(parts), "image") == parts


@fuzzed()
@given(name=mangled("a.png", "../secret.png", "x/../../secret.png", "/etc/passwd", "link/secret.png"))
@example(name="a\0.png")
@example(name="\ud800.png")
def test_no_picture_lies_outside_its_folder(name: str, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "images").mkdir()
        (folder / "images" / "a.png").write_bytes(b"x")
        (folder / "secret.png").write_bytes(b"x")
        (folder / "images" / "link").symlink_to(folder)
        with robust(folder, errors=(SampleError,)):
            assert picture_file(folder / "images", name, "image").parent == (folder / "images").resolve()


@fuzzed()
@given(
    rows=st.lists(
        st.lists(st.one_of(mangled("1.5", "007", "None", "true", "x"), st.just("1")), min_size=2, max_size=2),
        max_size=4,
    )
)
def test_the_reading_of_pandas(rows: list[list[str]]) -> None:
    rows = [[cell.replace("\0", "").encode("utf-8", "ignore").decode() for cell in row] for row in rows]
    with robust():
        read = read_as_vlmevalkit(["index", "a"], rows)
        assert len(read) == len(rows)


# Answers ------------------------------------------------------------------------------------------------------------

ANSWERS = (
    ("index", "question", "prediction", "thinking"),
    ("1", "What?", "A cup", "hm"),
    ("2", "So?", "Failed to obtain answer via API.", ""),
)
RECORDS = [
    {"index": 1, "question": "What?", "prediction": "A cup", "thinking": "hm"},
    {"index": "x", "prediction": "B", "extra_records": {"a": [1]}},
]


def workbook(rows: tuple[tuple[str, ...], ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


WORKBOOK = workbook(ANSWERS)


@st.composite
def recorded(draw: st.DrawFn) -> tuple[str, bytes]:
    suffix = draw(st.sampled_from((".tsv", ".csv", ".json")))
    if suffix == ".json":
        return suffix, draw(damaged_json(RECORDS))
    return suffix, draw(damaged_table(*ANSWERS, delimiter="\t" if suffix == ".tsv" else ","))


@fuzzed()
@given(file=recorded())
def test_recorded_answers(file: tuple[str, bytes], tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        path = folder / f"m_set{file[0]}"
        path.write_bytes(file[1])
        is_prediction_table(path)
        read_prediction_table(path).coverage(["1", "2"])


@fuzzed(5)
@given(content=mangled_bytes(WORKBOOK))
def test_workbooks(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "m_set.xlsx").write_bytes(content)
        list(read_records(folder / "m_set.xlsx"))


SCORES = ([{"index": 1, "hit": 1, "score": "0.5"}, {"index": "2", "hit": True}], {"a": 1})
SHEET = (("index", "hit", "split"), ("1", "1", "x"), ("2", "0.5", "y"))
NAMES = tuple(f"m_set_{each}" for each in "acc.csv acc.json result.tsv auxmatch.json score.json x_rating.json".split())


@fuzzed()
@given(name=st.sampled_from(NAMES), data=st.data())
def test_recorded_scores(name: str, data: st.DataObject, tmp_path: Path) -> None:
    delimiter = "\t" if name.endswith(".tsv") else ","
    files = damaged_json(*SCORES) if name.endswith(".json") else damaged_table(*SHEET, delimiter=delimiter)
    content = data.draw(files)
    with trial(tmp_path) as folder:
        (folder / "m_set.tsv").write_bytes(b"index\tprediction\n1\tx\n")
        (folder / name).write_bytes(content)
        recorded_scores(folder / "m_set.tsv")


@pytest.mark.parametrize("value", [1.0, 1e300, float("inf"), float("nan"), 10**400, None, True, {"a": [1]}])
def test_values_as_text(value: object) -> None:
    assert isinstance(text_of(value), str)


# Groups of samples ----------------------------------------------------------------------------------------------------


@fuzzed()
@given(content=damaged_table(("id", "species", "place"), ("1", "cat", "in"), ("2", "dog", ""), ("3", "cat", "out")))
def test_groups_of_samples(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "groups.csv").write_bytes(content)
        rows = read_csv(folder / "groups.csv")
        assert rows
        assert all(set(row) == set(next(iter(rows.values()))) and row["id"] == name for name, row in rows.items())
