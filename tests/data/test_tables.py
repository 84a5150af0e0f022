"""Tables of questions: what is read, how pandas reads it, pictures, places, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import pickle
import random
import time
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import table_world as world
from PIL import Image

from testbed.data.rows import Row, RowSource
from testbed.data.tables import index as table_index
from testbed.data.tables import source as table_source
from testbed.data.tables import tsv
from testbed.data.tables.source import TableSource
from testbed.errors import DataError, DefinitionError, SampleError
from testbed.inputs import Inputs, using

pytestmark = pytest.mark.usefixtures("own_cache")

HEADER = ["index", "image", "question", "answer"]
QUOTINGS = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL)


@pytest.fixture(autouse=True)
def _lines_told_again() -> None:
    table_source._tell.cache_clear()


def table(folder: Path, *rows: list[str], header: list[str] = HEADER, **options: object) -> TableSource:
    return TableSource(world.write_table(folder / "T.tsv", header, rows), **options)  # type: ignore[arg-type]


def raw(folder: Path, content: bytes) -> Path:
    path = folder / "T.tsv"
    path.write_bytes(content)
    return path


def refused(folder: Path, content: bytes | str) -> str:
    with pytest.raises(DataError) as caught:
        TableSource(raw(folder, content.encode() if isinstance(content, str) else content))
    assert not isinstance(caught.value, SampleError)
    message = str(caught.value)
    assert "T.tsv" in message
    assert "\n" not in message
    return message


# What is read -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quoting", QUOTINGS)
def test_rows_have_columns_and_the_bytes_of_their_pictures(tmp_path: Path, quoting: int) -> None:
    source = TableSource(world.questions(tmp_path / "T.tsv", quoting=quoting))
    assert isinstance(source, RowSource)
    assert (source.name, len(source), source.ids) == ("T", 4, ["0", "1", "2", "3"])
    assert source.groups is None
    assert source.slices[1] == {"split": "dev", "category": "things", "l2-category": "seen"}
    assert source.columns == ["question", "A", "B", "C", "answer", "category", "l2-category", "split", "source"]
    for position in (3, 0, 2, 1):
        row = source.row(position)
        assert isinstance(row, Row)
        assert row.index == str(position)
        assert row.columns == source.targets[position]
        assert row.columns["A"] == world.PHOTOS[position]
        assert {"image", "index"}.isdisjoint(row.columns)
        (picture,) = row.pictures
        assert picture.data == world.photo(world.PHOTOS[position])
        assert picture.mime == "image/png"
        pixels = np.asarray(Image.open(io.BytesIO(picture.data)).convert("RGB"))
        assert np.array_equal(np.asarray(source.image(position)), pixels)


def test_all_columns_are_kept_and_empty_cells_are_left_out(tmp_path: Path) -> None:
    header = ["index", "question", "hint", "A", "B", "Z", "answer", "g_index", "multi-choice options", "task"]
    rows = [["7", "Why?", "", "x", "", "None", "['a', 'b']", "3", "[]", ""], ["1000007", "Why?", "So.", *[""] * 7]]
    source = table(tmp_path, *rows, header=header)
    expected = {"question": "Why?", "A": "x", "Z": "None", "answer": "['a', 'b']", "g_index": "3"}
    assert source.targets == [{**expected, "multi-choice options": "[]"}, {"question": "Why?", "hint": "So."}]
    assert source.groups == ["3", "1000007"]
    assert source.slices is None
    assert source.row(0).pictures == ()  # a table of texts


def test_indexes_are_texts(tmp_path: Path) -> None:
    rows = [[index, world.encoded("coffee"), "q", "a"] for index in ("007", "7", "x/y z", "é")]
    assert table(tmp_path, *rows).ids == ["007", "7", "x/y z", "é"]


@pytest.mark.parametrize("quoting", QUOTINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_quotes_line_ends_and_a_byte_order_mark(tmp_path: Path, quoting: int, end: str, mark: str) -> None:
    question = 'He said "no",\nthen\tleft.\n\nA 5" disk'
    path = world.write_table(
        tmp_path / "T.tsv", HEADER, [["1", "", question, "a"], ["2", "", "x", ""]], quoting=quoting, lineterminator=end
    )
    path.write_bytes(mark.encode() + path.read_bytes().replace(b"image", b"hint", 1))
    source = TableSource(path)
    assert source.targets == [{"question": question, "answer": "a"}, {"question": "x"}]
    assert [source.row(position).columns for position in (0, 1)] == source.targets


def test_rows_are_cut_as_pandas_cuts_them(tmp_path: Path) -> None:
    draw = random.Random(0)
    pieces = ["a", '"', '""', "\t", "\n", "\r\n", " ", "é", 'x"y', '"q\tz"', '"l\nm"', "5", "\n\n"]
    compared = 0
    for _ in range(1500):
        body = "".join(draw.choices(pieces, k=draw.randint(0, 16)))
        path = raw(tmp_path, f"index\tb\tc\n{body}".encode())
        try:
            with path.open("rb") as file:
                rows = [[cell.decode() for cell in row.cells] for row in tsv.read_rows(path, file)]
        except DataError:
            with pytest.raises(pd.errors.ParserError):
                pd.read_csv(path, sep="\t")
            continue
        if any(len(cells) > 3 for cells in rows):
            continue
        frame = pd.read_csv(path, sep="\t", dtype=str, keep_default_na=False, index_col=False)
        expected = [[text if isinstance(text, str) else "" for text in row] for row in frame.to_numpy().tolist()]
        assert [cells + [""] * (3 - len(cells)) for cells in rows[1:]] == expected, body
        compared += len(expected)
    assert compared > 1000


def test_sources_are_plain_data(tmp_path: Path) -> None:
    source = TableSource(world.questions(tmp_path / "T.tsv"))
    copy = pickle.loads(pickle.dumps(source))
    assert copy.row(2) == source.row(2)
    assert len(pickle.dumps(source)) < (tmp_path / "T.tsv").stat().st_size  # the pictures stay in the file


# Reading as VLMEvalKit does ---------------------------------------------------------------------------------------

READ = ["index", "question", "A", "B", "E", "answer", "code", "image"]
CELLS = [
    ["1", "Which?", "None", "1.50", "5", "True", "007", ""],
    ["2", "NA", "n/a", "2", "", "False", "12", ""],
    ["3", "null", "nothing", "1e3", "7", "True", "3", ""],
]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Cells that pandas turns into something else."""
    rows = [[*row[:-1], world.encoded("coffee")] for row in CELLS]
    return world.write_table(tmp_path / "T.tsv", READ, rows)


def test_each_cell_is_its_text(mixed: Path) -> None:
    source = TableSource(mixed)
    assert source.targets == [
        {name: text for name, text in zip(READ[1:-1], row[1:-1], strict=True) if text} for row in CELLS
    ]


def test_the_other_reading_is_that_of_pandas(mixed: Path) -> None:
    source = TableSource(mixed, tsv_reading="vlmevalkit")
    frame = pd.read_csv(mixed, sep="\t")
    assert source.targets == [
        {name: str(row[name]) for name in READ[1:-1] if not pd.isna(row[name])}
        for row in (frame.iloc[position] for position in range(len(frame)))
    ]
    assert source.targets[0] == {"question": "Which?", "B": "1.5", "E": "5.0", "answer": "True", "code": "7"}
    assert source.targets[1] == {"B": "2.0", "answer": "False", "code": "12"}
    assert source.row(2).pictures[0].data == world.photo("coffee")


@pytest.mark.parametrize("reading", ["text", "vlmevalkit"])
def test_cells_that_the_readings_read_differently_are_counted_and_told_once(
    mixed: Path, reading: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "testbed")
    for _ in range(2):
        # None, NA, n/a, null; 1.50, 2, 1e3; 5, 7; 007
        assert TableSource(mixed, tsv_reading=reading).reading_differences == 10
    (line,) = caplog.messages
    assert "reads 10 cells otherwise than written; the first is 'None' in line 2, column 'A': absent there" in line
    caplog.clear()
    assert TableSource(world.questions(mixed.with_name("S.tsv"))).reading_differences == 0
    assert caplog.messages == []


def test_the_readings_are_different_data(mixed: Path) -> None:
    own, theirs = TableSource(mixed), TableSource(mixed, tsv_reading="vlmevalkit")
    assert not set(own.digests(range(3))) & set(theirs.digests(range(3)))
    assert own.describe_samples(range(3)).fingerprint != theirs.describe_samples(range(3)).fingerprint
    with pytest.raises(DefinitionError, match="tsv_reading is 'pandas'; expected 'text' or 'vlmevalkit'"):
        TableSource(mixed, tsv_reading="pandas")


def test_indexes_that_pandas_makes_equal(tmp_path: Path) -> None:
    rows = [["7", world.encoded("coffee"), "q", "a"], ["007", world.encoded("coffee"), "q", "a"]]
    table(tmp_path, *rows)
    with pytest.raises(DataError, match="read as VLMEvalKit does, two rows have the index '7'"):
        table(tmp_path, *rows, tsv_reading="vlmevalkit")


# Pictures ---------------------------------------------------------------------------------------------------------


def test_a_short_text_is_the_index_of_the_row_with_the_picture(tmp_path: Path) -> None:
    source = table(
        tmp_path,
        ["0", "2", "q", "a"],
        ["1", "2", "q", "b"],
        ["2", world.encoded("coffee"), "q", "c"],
        ["x", "2", "q", "d"],
    )
    assert {source.row(position).pictures[0].data for position in range(4)} == {world.photo("coffee")}


@pytest.mark.parametrize("form", [repr, json.dumps], ids=["Python", "JSON"])
def test_several_pictures(tmp_path: Path, form: object) -> None:
    names = ["coffee", "rocket", "astronaut"]
    cell = form([world.encoded(name) for name in names])  # type: ignore[operator]
    source = table(
        tmp_path, ["0", cell, "q", "a"], ["1", "0", "q", "b"], ["2", form([world.encoded("rocket")]), "q", "c"]
    )  # type: ignore[operator]
    for position in (0, 1):
        assert [picture.data for picture in source.row(position).pictures] == [world.photo(name) for name in names]
    assert [picture.data for picture in source.row(2).pictures] == [world.photo("rocket")]


def test_pictures_are_passed_on_as_they_are(tmp_path: Path) -> None:
    cell = world.encoded("coffee", form="JPEG")
    lines = "\n".join(cell[start : start + 76] for start in range(0, len(cell), 76))
    source = table(tmp_path, ["0", lines, "q", "a"], ["1", f"data:image/jpeg;base64,{cell}", "q", "a"])
    for position in (0, 1):
        (picture,) = source.row(position).pictures
        assert (picture.data, picture.mime) == (world.photo("coffee", form="JPEG"), "image/jpeg")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """The folder of pictures of a table, with files."""
    folder = tmp_path / "images" / "T"
    (folder / "deep").mkdir(parents=True)
    (folder / "coffee.png").write_bytes(world.photo("coffee"))
    (folder / "deep" / "rocket.jpg").write_bytes(world.photo("rocket", form="JPEG"))
    return folder


PATHS = ["index", "image_path", "question"]


def test_pictures_in_files(tmp_path: Path, pictures: Path) -> None:
    rows = [["0", "coffee.png", "q"], ["1", "['coffee.png', 'deep/rocket.jpg']", "q"]]
    rows += [["2", str(pictures / "deep" / "rocket.jpg"), "q"], ["3", "", "q"]]
    source = table(tmp_path, *rows, header=PATHS)
    coffee, rocket = world.photo("coffee"), world.photo("rocket", form="JPEG")
    found = [[picture.data for picture in source.row(position).pictures] for position in range(4)]
    assert found == [[coffee], [coffee, rocket], [rocket], []]
    assert [picture.name for picture in source.row(1).pictures] == ["coffee.png", "deep/rocket.jpg"]
    elsewhere = table(tmp_path, rows[0], header=PATHS, pictures=tmp_path / "none")
    with pytest.raises(
        SampleError, match=r"T\.tsv, line 2 \(index '0'\): 'coffee\.png' in .*none cannot be read: No such file"
    ):
        elsewhere.row(0)


def test_where_a_cell_has_the_picture_the_path_is_its_name_only(tmp_path: Path) -> None:
    source = table(
        tmp_path,
        ["0", world.encoded("coffee"), "/etc/passwd", "q"],
        header=["index", "image", "image_path", "question"],
    )
    (picture,) = source.row(0).pictures
    assert (picture.name, picture.data) == ("/etc/passwd", world.photo("coffee"))


def test_pictures_in_several_columns_and_files_in_the_column_of_pictures(tmp_path: Path, pictures: Path) -> None:
    header = ["index", "image", "image_2", "image3", "question"]
    coffee, rocket = world.photo("coffee"), world.photo("rocket", form="JPEG")
    rows = [
        ["0", world.encoded("coffee"), world.encoded("rocket", form="JPEG"), "a remark", "q"],
        ["1", "['coffee.png', 'deep/rocket.jpg']", "", "", "q"],
        ["2", "", world.encoded("coffee"), world.encoded("coffee"), "q"],
        ["3", "0", "", "", "q"],
    ]
    source = table(tmp_path, *rows, header=header)
    found = [[picture.data for picture in source.row(position).pictures] for position in range(4)]
    assert found == [[coffee, rocket], [coffee, rocket], [coffee, coffee], [coffee, rocket]]
    assert source.targets[0] == {"image3": "a remark", "question": "q"}
    assert source.groups == [source.groups[0], "1", "2", source.groups[0]]
    before = source.digests(range(4))
    (pictures / "coffee.png").write_bytes(rocket)
    after = table(tmp_path, *rows, header=header).digests(range(4))
    assert [one != other for one, other in zip(before, after, strict=True)] == [False, True, False, False]


def test_pictures_in_a_zip_archive_are_read_in_place(tmp_path: Path, pictures: Path) -> None:
    header = ["index", "images", "more", "question"]
    rows = [
        ["0", "['coffee.png']", "deep/rocket.jpg", "q"],
        ["1", "../secret.png", "", "q"],
        ["2", "none.png", "", "q"],
    ]
    with zipfile.ZipFile(tmp_path / "T.zip", "w") as archive:
        for path in pictures.rglob("*.*"):
            archive.write(path, f"T/{path.relative_to(pictures)}")
    options = {"files": ("images", "more"), "pictures": tmp_path / "T.zip"}
    source = table(tmp_path, *rows, header=header, **options)
    assert [picture.data for picture in source.row(0).pictures] == [
        world.photo("coffee"),
        world.photo("rocket", form="JPEG"),
    ]
    for position in (1, 2):
        with pytest.raises(SampleError, match=r"T\.zip has no member"):
            source.row(position)
    folder = table(tmp_path, *rows, header=header, files=("images", "more"), pictures=pictures)
    assert source.digests([0]) == folder.digests([0])


def test_a_mask_is_the_answer_as_runs_of_its_pixels(tmp_path: Path, pictures: Path) -> None:
    mask = Image.new("L", (4, 3))
    mask.paste(255, (1, 1, 3, 2))
    mask.save(pictures / "mask.png")
    rows = [["0", "coffee.png", "mask.png", "q"], ["1", "coffee.png", "none.png", "q"]]
    source = table(tmp_path, *rows, header=["index", "image_path", "mask_path", "question"], masks="mask_path")
    assert source.targets[0]["answer"] == "4x3 5 2"
    assert "answer" not in source.targets[1]


def test_rows_without_a_picture_are_left_out_where_others_have_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "testbed")
    source = table(tmp_path, ["0", "", "q", "a"], ["1", world.encoded("coffee"), "q", "a"], ["2", "1", "q", "a"])
    assert (source.ids, source.without_picture) == (["1", "2"], 1)
    assert "left out 1 of 3 rows: no picture" in caplog.text
    assert [source.row(position).pictures[0].data for position in (0, 1)] == [world.photo("coffee")] * 2


# Digests and the cached index -------------------------------------------------------------------------------------


def test_digests_follow_columns_and_pictures(tmp_path: Path) -> None:
    coffee, rocket = world.encoded("coffee"), world.encoded("rocket")

    def digests(*rows: list[str]) -> list[str]:
        return table(tmp_path, *rows).digests(range(len(rows)))

    first = digests(["0", coffee, "q", "a"], ["1", "0", "q", "a"])
    assert first[0] == first[1]  # the same columns and picture
    again = digests(["1", "0", "q", "a"], ["0", repr([coffee]), "q", "a"])
    assert again == first
    assert digests(["0", coffee, "q", "b"], ["1", "0", "q", "a"])[0] != first[0]
    changed = digests(["0", rocket, "q", "a"], ["1", "0", "q", "a"])
    assert not set(changed) & set(first)


def test_digests_follow_files(tmp_path: Path, pictures: Path) -> None:
    source = table(tmp_path, ["0", "coffee.png", "q"], ["1", "deep/rocket.jpg", "q"], header=PATHS)
    before = source.digests([0, 1])
    (pictures / "coffee.png").write_bytes(world.photo("chelsea"))
    after = source.digests([0, 1])
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_a_table_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(table_index, "read_rows", lambda path, *rest: read.append(path) or tsv.read_rows(path, *rest))
    path = world.questions(tmp_path / "T.tsv")
    first = TableSource(path)
    second = TableSource(path, tsv_reading="vlmevalkit")
    assert len(read) == 1
    assert first.digests(range(4)) == second.digests(range(4))
    os.utime(path, ns=(time.time_ns(), time.time_ns() + 1))
    TableSource(path)
    assert len(read) == 2
    for memo in (tmp_path / "cache" / "tables").iterdir():
        memo.write_text('{"revision": 1, "path": ')
    assert TableSource(path).targets == first.targets
    assert len(read) == 3


def test_a_table_that_changes_while_it_is_used(tmp_path: Path) -> None:
    source = TableSource(world.questions(tmp_path / "T.tsv"))
    world.questions(tmp_path / "T.tsv", count=3)
    with pytest.raises(DataError, match="changed during use; run the command again"):
        source.row(0)
    (tmp_path / "T.tsv").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        source.row(0)


def test_only_a_row_is_in_memory(tmp_path: Path) -> None:
    import tracemalloc

    cell = "A" * 1_000_000
    path = world.write_table(tmp_path / "T.tsv", HEADER, [[str(number), cell, "q", "a"] for number in range(20)])
    tracemalloc.start()
    try:
        source = TableSource(path)
        source.row(19)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 12_000_000


# Rows that cannot be used -----------------------------------------------------------------------------------------


def fault(source: TableSource, position: int) -> str:
    with pytest.raises(SampleError) as caught:
        source.row(position)
    message = str(caught.value)
    assert message.startswith(f"T.tsv, line {position + 2} (index {source.ids[position]!r}): ")
    assert "\n" not in message
    assert len(source.digests([position])[0]) == 32
    return message


@pytest.mark.parametrize(
    "cell",
    [
        "[__import__('os').system('touch CODE_RAN')]",
        "[open('CODE_RAN', 'w').write('x')]",
        "['a'].__class__]",
        "[{'a': 1}]",
        "['a' 'b', ]x]",
        "[" * 100_000 + "]" * 100_000,
        "['" + "a" * 100 + "'" + ", ['b']" * 50 + "]",
    ],
    ids=range(7),
)
def test_code_in_a_list_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str) -> None:
    monkeypatch.chdir(tmp_path)
    good = ["1", world.encoded("coffee"), "", "q"]
    header = ["index", "image", "image_path", "question"]
    source = table(tmp_path, ["0", cell, "", "q"], good, ["2", "", cell, "q"], header=header)
    for position in (0, 2):
        assert "expected a list of texts" in fault(source, position)
    assert source.row(1).pictures[0].data == world.photo("coffee")
    assert not (tmp_path / "CODE_RAN").exists()


@pytest.mark.parametrize(
    "cell", ["*" * 100, "A" * 101, "é" * 80, world.encoded("coffee")[:-3] + "=*=", "data:," + "A" * 80]
)
def test_broken_base64(tmp_path: Path, cell: str) -> None:
    source = table(tmp_path, ["0", cell, "q", "a"], ["1", world.encoded("coffee"), "q", "a"], ["2", "0", "q", "a"])
    assert "image is not valid base64" in fault(source, 0)
    with pytest.raises(SampleError, match=r"line 2 .* is not valid base64"):
        source.row(2)
    assert source.row(1).pictures


def test_bytes_that_are_no_picture_and_pictures_that_are_too_large(tmp_path: Path) -> None:
    import base64

    written = io.BytesIO()
    Image.new("1", (10_000, 10_000)).save(written, "PNG")  # 100 megapixels in some thousand bytes
    large = base64.b64encode(written.getvalue()).decode()
    source = table(tmp_path, ["0", "A" * 100, "q", "a"], ["1", large, "q", "a"])
    with pytest.raises(SampleError, match="the picture of 0 cannot be decoded: it is not an image in a known format"):
        source.image(0)
    with pytest.raises(SampleError, match=r"the picture of 1 is not decoded: .*100\.0 megapixels"):
        source.image(1)
    with using(Inputs(max_megapixels=100)):
        assert source.row(1).pictures[0].image().size == (10_000, 10_000)


@pytest.mark.parametrize(
    "name", ["../../secret.png", "{root}/secret.png", "link.png", "linked/secret.png", "/dev/zero"]
)
def test_nothing_outside_the_folder_of_pictures_is_read(tmp_path: Path, pictures: Path, name: str) -> None:
    (tmp_path / "secret.png").write_bytes(world.photo("astronaut"))
    (pictures / "link.png").symlink_to(tmp_path / "secret.png")
    (pictures / "linked").symlink_to(tmp_path)
    name = name.replace("{root}", str(tmp_path))
    source = table(tmp_path, ["0", name, "q"], ["1", f"['coffee.png', {name!r}]", "q"], header=PATHS)
    before = source.digests([0, 1])
    for position in (0, 1):
        assert f"{name!r} is outside the folder of pictures" in fault(source, position)
    (tmp_path / "secret.png").write_bytes(b"another")
    assert source.digests([0, 1]) == before


def test_a_folder_of_pictures_may_be_a_link(tmp_path: Path, pictures: Path) -> None:
    (tmp_path / "link").symlink_to(pictures)
    source = table(tmp_path, ["0", "coffee.png", "q"], header=PATHS, pictures=tmp_path / "link")
    assert source.row(0).pictures[0].data == world.photo("coffee")


def test_files_that_are_none(tmp_path: Path, pictures: Path) -> None:
    os.mkfifo(pictures / "pipe")
    with (pictures / "huge.png").open("wb") as file:
        file.truncate(3 << 30)
    source = table(tmp_path, ["0", "pipe", "q"], ["1", "huge.png", "q"], ["2", "deep", "q"], header=PATHS)
    assert "pipe is not a file" in fault(source, 0)
    assert "huge.png has 3,221,225,472 bytes; the maximum is" in fault(source, 1)
    assert "deep is not a file" in fault(source, 2)


COFFEE = world.encoded("coffee")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["9", "q", "a"], "image is '9', too short for a picture, and no row with a picture has this index"),
        (["0", "q", "a"], "refers to row '0', which refers to another row"),
        (["other", "q", "a"], "refers to row 'other', which refers to another row"),
        (["nonsense", "q", "a"], "no row with a picture has this index"),
        ([COFFEE, "q", "a", "b"], "it has 5 cells, but there are 4 columns; the copy may be incomplete"),
        ([COFFEE], "it has 2 cells, but there are 4 columns"),
        ([COFFEE, "a\0b", "a"], "its cell 'question' holds the character NUL"),
        ([COFFEE, "q" * 1_000_001, "a"], "its cell 'question' has 1,000,001 characters; at most 1,000,000 are taken"),
    ],
    ids=range(8),
)
def test_rows_that_cannot_be_used_and_the_others_can(tmp_path: Path, row: list[str], said: str) -> None:
    source = table(tmp_path, ["0", *row], ["other", "0", "q", "a"], ["2", COFFEE, "q", "a"])
    assert said in fault(source, 0)
    assert source.row(2).columns == {"question": "q", "answer": "a"}
    if "its cell" in said:
        assert source.targets[0] == {"answer": "a"}


# Files that cannot be used ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n  \n", "is empty"),
        ("index\tquestion\n", "has no rows below the names of its columns"),
        ("question\tanswer\nq\ta\n", "has no column 'index'; it has 'question, answer'"),
        ("index\tanswer\n1\ta\n", "has no column 'question'; it has 'index, answer'"),
        ("index\tquestion\tA\tA\n1\tq\tx\ty\n", "has two columns 'A'"),
        ("index\tquestion\n1\tq\n2\tq\n1\tr\n", "has the index '1' twice, in lines 2 and 4"),
        ("index\tquestion\n1\tq\n\tr\n", "line 3: the row has no index"),
        (
            'index\tquestion\n1\t"a\nb"\n2\t"b\nc\n',
            "line 4: the row that begins here opens a quote that is never closed",
        ),
        ("index\tquestion\n1\tq\n2\tcafé\n".encode("latin-1"), "line 3: the row is not UTF-8 text"),
        ("index\tquestion\n1\tq\n".encode("utf-16"), "line 1: the row is not UTF-8 text"),
        (b"PK\x03\x04\0\0\0", "the names of its columns hold the character NUL"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, content: bytes | str, message: str) -> None:
    assert message in refused(tmp_path, content)


def test_columns_that_are_required(tmp_path: Path) -> None:
    path = raw(tmp_path, b"index\tanswer\n1\ta\n")
    assert TableSource(path, required=()).targets == [{"answer": "a"}]
    with pytest.raises(DataError, match="has no column 'A'; it has 'index, answer'"):
        TableSource(path, required=("answer", "A"))


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.tsv", r"none\.tsv cannot be read"), (tmp_path, "is not a file")):
        with pytest.raises(DataError, match=said):
            TableSource(path)


def test_a_row_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv.read_rows, "__defaults__", (None, 1 << 20))
    path = raw(tmp_path, b"index\tquestion\n1\tq\n2\t")
    with path.open("r+b") as file:
        file.truncate(2 << 30)  # sparse: two gigabytes of one cell
    with pytest.raises(
        DataError, match="line 3: a row of more than 1,048,576 bytes begins here; is a quote not closed"
    ):
        TableSource(path)
    lines = b'index\tquestion\n1\tq\n2\t"' + b"text\n" * 300_000
    assert "line 3: a row of more than 1,048,576 bytes begins here" in refused(tmp_path, lines)


def test_rows_that_share_a_picture_are_a_group(tmp_path: Path) -> None:
    cells = [world.encoded("coffee"), world.encoded("rocket"), "0", world.encoded("coffee")]
    source = table(tmp_path, *([str(place), cell, "q", "a"] for place, cell in enumerate(cells)))
    assert source.groups is not None
    assert source.groups[0] == source.groups[2] == source.groups[3] != source.groups[1]
    assert table(tmp_path / "alone", ["0", cells[0], "q", "a"], ["1", cells[1], "q", "a"]).groups is None
