"""Shards in the webdataset format, with their labels, captions and metadata files."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from fuzzing import damaged_file, fuzzed, mangled, mangled_bytes, robust, trial
from hypothesis import given
from hypothesis import strategies as st
from wds_world import member, picture, vector

from testbed.data.webdataset import format as form
from testbed.data.webdataset.folder import check_name
from testbed.data.webdataset.index import read_shard
from testbed.data.webdataset.source import WebDataset


def archive(contents: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in contents.items():
            tar.addfile(member(name, content)[0], io.BytesIO(content))
    return written.getvalue()


SHARDS = {
    "classification": archive({"a.png": picture(0), "a.cls": b"1", "b.png": picture(1), "b.cls": b"0\n"}),
    "multilabel": archive({"a.webp": picture(0, "webp"), "a.npy": vector([1, 0, 1])}),
    "retrieval": archive({"x/a.jpg": picture(0, "jpg"), "x/a.txt": b"A dog.\nA cat\\nasleep", "x/a.json": b"{}"}),
}
LABELS = {
    "classification": (b"7", b" +3\n"),
    "multilabel": (vector([1, 0, 1]), vector([0, 1], "<i8"), vector([True, False], bool), b"PK\x03\x04" + b"\0" * 30),
    "retrieval": (b"A dog.\nA cat\\nasleep\n", "Ein Käfer".encode()),
}
kinds = st.sampled_from(form.KINDS)


@fuzzed()
@given(kind=kinds, data=st.data())
def test_shards(kind: str, data: st.DataObject, tmp_path: Path) -> None:
    content = data.draw(mangled_bytes(*SHARDS.values()))
    with trial(tmp_path) as folder:
        (folder / "0.tar").write_bytes(content)
        read_shard(folder / "0.tar", kind)


@fuzzed()
@given(kind=kinds, name=mangled("a.png", "../a.png", "/a.png", "x/a.png", "a.PNG"), label=mangled("1", "a dog"))
def test_members_with_odd_names(kind: str, name: str, label: str, tmp_path: Path) -> None:
    name = name.replace("\0", "") or "a.png"
    with trial(tmp_path) as folder:
        content = label.encode("utf-8", "surrogatepass")
        stem = name.removesuffix(".png")
        members = {name: picture(0), f"{stem}.{form.LABEL_EXTENSION[kind]}": content}
        try:
            (folder / "0.tar").write_bytes(archive(members))
        except ValueError:  # no archive can have such a name
            return
        index = read_shard(folder / "0.tar", kind)
        assert not any(key.startswith("/") or ".." in key.split("/") for key in index.keys)


@fuzzed()
@given(
    kind=st.sampled_from(("classification", "multilabel")),
    names=damaged_file("a dog\na cat\n\n"),
    templates=damaged_file("a photo of a {c}\n"),
    said=mangled("classification"),
    shards=mangled("1", " 1\n"),
    damaged=st.integers(0, 3),
)
def test_data_sets(
    kind: str, names: bytes, templates: bytes, said: str, shards: str, damaged: int, tmp_path: Path
) -> None:
    with trial(tmp_path) as folder:
        (folder / "test").mkdir()
        (folder / "test" / "0.tar").write_bytes(SHARDS[kind])
        (folder / form.CLASS_NAMES).write_bytes(names if damaged == 0 else b"a\nb\nc\n")
        (folder / form.TEMPLATES).write_bytes(templates if damaged == 1 else b"{c}\n")
        (folder / form.DATASET_TYPE).write_text(said if damaged == 2 else kind, encoding="utf-8", errors="replace")
        number = shards if damaged == 3 else "1"
        (folder / "test" / form.NSHARDS).write_text(number, encoding="utf-8", errors="replace")
        source = WebDataset(folder, "test", "wds/x")
        source.digests(range(len(source.ids)))
        source.image(0)


@fuzzed()
@given(kind=kinds, data=st.data())
def test_labels(kind: str, data: st.DataObject) -> None:
    content = data.draw(mangled_bytes(*LABELS[kind]))
    with robust(errors=(ValueError,)):
        form.read_label(kind, content)


@fuzzed()
@given(header=mangled(*("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",)))
def test_headers_of_arrays(header: str) -> None:
    """A label is an .npy file, whose header is text in Python's notation."""
    text = header.encode("latin-1", "replace")[:60_000]
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 12
    with robust(errors=(ValueError,)):
        form.read_label("multilabel", data)


@fuzzed()
@given(captions=st.lists(st.one_of(st.text("\\n\n\r"), st.text(st.characters(exclude_categories=["Cs"])))))
def test_captions_are_read_as_they_were_written(captions: list[str]) -> None:
    assert form.split_captions(form.join_captions(captions)) == captions
    assert form.read_label("retrieval", form.write_label("retrieval", captions, None))[0] == captions


@fuzzed()
@given(classes=st.integers(1, 20), data=st.data())
def test_labels_are_read_as_they_were_written(classes: int, data: st.DataObject) -> None:
    indices = sorted(data.draw(st.sets(st.integers(0, classes - 1))))
    assert form.read_label("multilabel", form.write_label("multilabel", indices, classes)) == (indices, classes)
    number = data.draw(st.integers(0, classes - 1))
    assert form.read_label("classification", form.write_label("classification", number, classes)) == (number, None)


@fuzzed()
@given(lines=st.lists(st.text()))
def test_lines_are_read_as_they_were_written(lines: list[str], tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "x.txt").write_bytes(form.write_lines(lines, "name"))
        assert form.read_lines(folder / "x.txt") == lines


@fuzzed()
@given(name=mangled("vtab/cifar10", "../x", "a\\b"))
def test_names_of_data_sets(name: str) -> None:
    with robust():
        check_name(name)
        assert Path("/root") in Path("/root", name).parents
        assert ".." not in Path(name).parts
