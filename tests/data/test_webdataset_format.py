"""The text of the webdataset format: lines, labels and captions, there and back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import wds_world as world
from tables import cases

from testbed.data.webdataset.format import (
    join_captions,
    read_label,
    read_lines,
    read_metadata,
    read_nshards,
    split_captions,
    write_label,
    write_lines,
)
from testbed.errors import DataError

SEPARATORS = "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\r"


# Lines ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("cat\ndog\n", ["cat", "dog"]),
        ("cat\ndog", ["cat", "dog"]),
        ("cat\n\ndog\n", ["cat", "", "dog"]),
        ("\ncat\n", ["", "cat"]),
        ("cat\n\n", ["cat", ""]),
        ("\n", [""]),
        ("cat\r\ndog\r\n", ["cat", "dog"]),
        (" a cat \n", [" a cat "]),
        (f"a{SEPARATORS}b\nc\n", [f"a{SEPARATORS}b", "c"]),
        ("\ufeffcat\n", ["cat"]),
    ],
)
def test_lines_end_with_a_newline_and_nothing_else_and_empty_ones_count(tmp_path, text, expected):
    (tmp_path / "names.txt").write_bytes(text.encode())
    assert read_lines(tmp_path / "names.txt") == expected


def test_lines_come_back_as_they_were_written(tmp_path):
    for number in range(4):
        for lines in itertools.product(["", "cat", " ", "a\u2028b", "x\u0085", "c\rd"], repeat=number):
            (tmp_path / "names.txt").write_bytes(write_lines(lines, "class name"))
            assert read_lines(tmp_path / "names.txt") == list(lines)


@pytest.mark.parametrize("line", ["a\nb", "\n", "a\r"])
def test_a_line_with_a_line_break_is_refused(line):
    with pytest.raises(DataError, match=r"class name .* contains a line break"):
        write_lines(["good", line], "class name")


def test_a_name_that_is_no_text_is_refused():
    with pytest.raises(DataError, match="cannot be written as UTF-8"):
        write_lines(["\ud800"], "class name")


def test_a_file_that_is_missing_or_no_text_is_told_apart(tmp_path):
    assert read_lines(tmp_path / "names.txt") is None
    (tmp_path / "names.txt").write_bytes(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"names.txt is not UTF-8 text: byte 3 is 0xe9"):
        read_lines(tmp_path / "names.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(DataError, match=r"folder.txt cannot be read"):
        read_lines(tmp_path / "folder.txt")


# Kinds and numbers of shards --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind"),
    [(None, "classification"), ("", "classification"), ("retrieval\n", "retrieval"), (" MultiLabel ", "multilabel")],
)
def test_the_kind_is_the_one_that_the_folder_tells(tmp_path, text, kind):
    (tmp_path / "classnames.txt").write_text("cat\n")
    if text is not None:
        (tmp_path / "dataset_type.txt").write_text(text)
    assert read_metadata(tmp_path) == (kind, None if kind == "retrieval" else ["cat"], None)


def test_a_kind_that_there_is_not_is_refused(tmp_path):
    (tmp_path / "dataset_type.txt").write_text("captioning\n")
    with pytest.raises(DataError, match=r"says 'captioning'; it should say one of classification, multilabel"):
        read_metadata(tmp_path)


@pytest.mark.parametrize("text", ["", "three", "0", "-1", "1.0", "1 2", "99999999", "١"])
def test_nshards_is_a_number_of_shards(tmp_path, text):
    (tmp_path / "nshards.txt").write_text(text)
    with pytest.raises(DataError, match=r"nshards.txt says .* number of shards"):
        read_nshards(tmp_path)


# Labels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("data", "label"), [(b"7", 7), (b"7\n", 7), (b" 0012\r\n", 12), (b"-1", -1), (b"+3", 3)])
def test_a_class_is_an_integer(data, label):
    assert read_label("classification", data) == (label, None)


@pytest.mark.parametrize("data", [b"", b"cat", b"7.0", b"1_000", "٣".encode(), b"\xff", b"1 2", b"9" * 5000])
def test_a_class_that_is_no_integer_is_refused(data):
    with pytest.raises(ValueError, match="should be the index of a class"):
        read_label("classification", data)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
def test_several_labels_are_the_places_of_the_ones(dtype):
    assert read_label("multilabel", world.vector([0, 1, 0, 1], dtype)) == ([1, 3], 4)
    assert read_label("multilabel", world.vector([0, 0], dtype)) == ([], 2)


def test_several_labels_that_are_none_are_refused():
    for values in ([0, 0.5], [0, 2], [np.nan, 0], [0, -1]):
        with pytest.raises(ValueError, match="it should have 0 or 1 for each class"):
            read_label("multilabel", world.vector(values))
    for values, dtype in (([[0, 1]], np.float32), (1.0, np.float32), (["a"], "U1")):
        with pytest.raises(ValueError, match="should be a vector"):
            read_label("multilabel", world.vector(values, dtype))
    pickled = world.vector([{}], object)
    odd = (b"PK\x03\x04" + b"\0" * 30, b"\x93NUMPY\x01\x00\x02\x00[\n", b"\x80\x04.")
    for data in (b"", b"1", world.vector([0, 1])[:-2], pickled, *odd):
        with pytest.raises(ValueError, match=r"not an \.npy file"):
            read_label("multilabel", data)


@cases(
    ("kind", "target", "classes", "message"),
    [
        ("classification", 4, 4, "there are 4 classes"),
        ("classification", -1, None, "count from 0"),
        ("classification", [1], 4, "should be the index of a class"),
        ("classification", "1", 4, "should be the index of a class"),
        ("multilabel", [4], 4, "there are 4 classes"),
        ("multilabel", 1, 4, "should be a list"),
        ("multilabel", [1], None, "number of classes"),
        ("retrieval", "one caption", None, "should be a list of captions"),
        ("retrieval", None, None, "should be a list of captions"),
        ("retrieval", [1], None, "should be a list of captions"),
    ],
)
def test_a_target_of_another_kind_is_refused(kind, target, classes, message):
    with pytest.raises(ValueError, match=message):
        write_label(kind, target, classes)


# Captions ---------------------------------------------------------------------------------------------------------


def test_captions_come_back_whatever_they_hold():
    pieces = ["".join(parts) for length in range(4) for parts in itertools.product("\\n\n\u2028", repeat=length)]
    for captions in ([], list(SEPARATORS), *([piece] for piece in pieces), *itertools.product(pieces, pieces[:20])):
        text = join_captions(captions)
        assert split_captions(text) == list(captions), (captions, text)


@pytest.mark.parametrize(
    ("text", "captions"),
    [
        ("", []),
        ("a dog", ["a dog"]),
        ("a dog\na cat", ["a dog", "a cat"]),
        ("a dog\na cat\n", ["a dog", "a cat"]),
        ("a dog\n\na cat", ["a dog", "", "a cat"]),
        ("a bathroom\\n\na cat", ["a bathroom\n", "a cat"]),  # as CLIP benchmark writes a line break
        ("C:\\data \\o/ \\", ["C:\\data \\o/ \\"]),
    ],
)
def test_published_files_are_read(text, captions):
    assert split_captions(text) == captions


def test_ordinary_captions_are_written_as_clip_benchmark_writes_them():
    assert join_captions(["a dog", "a\ncat", "\\o/"]) == "a dog\na\\ncat\n\\o/"
    assert join_captions(["a backslash\\n"]) == "a backslash\\\\n"
