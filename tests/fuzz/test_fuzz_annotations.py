"""Annotation files of data sets: captions, selections, predictions, references, subtitles, splits, lists of images."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz_images import IMAGES, use, with_images
from fuzzing import damaged_file, damaged_json, damaged_lines, damaged_table, fuzzed, mangled, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.data.formats import caption_files, caption_pairs, selection, selection_files
from testbed.data.formats.annotations import checked_path, read_json, read_json_lines, text_lines
from testbed.data.formats.predictions import read_predictions
from testbed.data.formats.text_records import read_text_records
from testbed.data.sets import multilingual_captions
from testbed.data.sets.clip_cc import reference_captions
from testbed.data.tables.video_subtitles import read_srt, said_at
from testbed.errors import DataError

# Captions ---------------------------------------------------------------------------------------------------------

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "annotations": [{"image_id": 1, "caption": "A dog."}, {"image_id": 2, "caption": "Two cats, asleep."}],
}
KARPATHY = {
    "images": [
        {"split": "test", "filename": "a.jpg", "filepath": "val2014", "sentences": [{"raw": "A dog."}]},
        {"split": "val", "filename": "b.jpg", "sentences": [{"raw": "A cat."}, {"raw": "Asleep."}]},
    ]
}
LIST = [{"image": "val2014/a.jpg", "caption": ["A dog.", "An animal."]}, {"image": "b.jpg", "caption": "A cat."}]


ROWS = ('image,caption\na.jpg,A dog.\nb.jpg,"A cat, ""asleep""\nfor long"\n', "a.jpg#0\tA dog.\nb#1\tA cat.\n")


@fuzzed()
@given(index=damaged_file("a.jpg\nb.jpg\n"), captions=damaged_file("Ein Hund.\nEine Katze.\n"))
def test_captions_in_many_languages(index: bytes, captions: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        with_images(folder)
        (folder / "test_image_names.txt").write_bytes(index)
        (folder / "test_1kcaptions_de.txt").write_bytes(captions)
        use(multilingual_captions.line_captions(folder, "de", "xtd10"))


# Selections -------------------------------------------------------------------------------------------------------

PAIRS = [
    {"id": "x", "image": "a.jpg", "captions": ["A dog.", "A cat."], "answer": 0, "box": [0, 0, 4, 4]},
    {"images": ["a.jpg", "b.jpg"], "captions": ["A dog.", "A cat."], "answer": [1, 0], "slices": {"kind": "s"}},
    {"images": ["a.jpg", "b.jpg"], "captions": ["A dog.", "A cat.", "x"], "boxes": [[0, 0, 2.5, 3], [1, 1, 9, 9]]},
]


SUGAR = {"0": {"filename": "a.jpg", "caption": "A dog.", "negative_caption": "A cat."}}
WINOGROUND = {
    "id": 0, "image_0": "a", "image_1": "b", "caption_0": "x y", "caption_1": "y x", "tag": "Object",
    "num_main_preds": 1, "collapsed_tag": "Object", "secondary_tag": "",
}  # fmt: skip
ARO = [
    {
        "image_path": "a.jpg", "image_id": 1, "true_caption": "A on B", "false_caption": "B on A",
        "relation_name": "on", "bbox_x": 0, "bbox_y": 0, "bbox_w": 4, "bbox_h": 4, "attributes": ["red", "blue"],
    }
]  # fmt: skip
ORDER = [{"image": "a.jpg", "caption_options": ["A dog runs.", "Runs a dog."]}]
VALSE = {
    "x": {"image_file": "a.jpg", "dataset": "coco2017", "caption": "A.", "foil": "B.", "mturk": {"caption": 3}},
}


def test_a_name_longer_than_any_file_has_is_a_missing_image(tmp_path: Path) -> None:
    with_images(tmp_path)
    (tmp_path / "coco_order.json").write_text(json.dumps([{**ORDER[0], "image": "a" * 5000}]))
    (tmp_path / "existence.json").write_text(json.dumps({"x": {**VALSE["x"], "image_file": "a" * 5000}}))
    with pytest.raises(DataError, match="1 of 1 images are missing"):
        selection_files.aro_order(tmp_path, "coco", "aro")
    with pytest.raises(DataError, match="1 of 1 images are missing"):
        selection_files.valse(tmp_path, "existence", "test", "valse")


@pytest.mark.parametrize("side", ["x", "y", "w", "h"])
@pytest.mark.parametrize("value", [10**30, 1e999, float("nan"), True, "1"])
def test_a_crop_of_no_image_is_refused(side: str, value: Any, tmp_path: Path) -> None:
    with_images(tmp_path)
    (tmp_path / "visual_genome_relation.json").write_text(json.dumps([{**ARO[0], f"bbox_{side}": value}]))
    with pytest.raises(DataError, match=f"'bbox_{side}' should be a number of pixels"):
        selection_files.aro_visual_genome(tmp_path, "relation", "a")


CAPTIONED = damaged_json(COCO, KARPATHY, LIST)
CROSSMODAL = (
    {"image/key": "a", "image/locale": "de", "de": {"caption": ["Ein Hund."]}, "en": {"caption": ["A dog."]}},
    {"image/key": "b", "image/locale": "en", "de": {"caption": ["Eine Katze.", "Ein Tier."]}},
)
MADE = {"image_paths": ["/x/a.jpg", "b.jpg"], "annotations": ["Ein Hund.", "Eine Katze."]}
PAIR_TABLE = damaged_table(("image", "caption", "x"), ("a.jpg", "A dog.", "1"), ("images/b.jpg", "A, cat", "2"))
PAIR_LINES = damaged_lines({"image": "a.jpg", "caption": "A dog."}, {"image": "b.jpg", "caption": "A cat.", "x": [1]})
OWN_TABLE = damaged_table(
    ("id", "image_0", "image_1", "caption_0", "caption_1", "answer", "kind"),
    *(("x", "a.jpg", "", "A dog.", "A cat.", "0", "s"), ("y", "a.jpg", "b.jpg", "A dog.", "A cat.", "1 0", "t")),
    cells=("0 0", "5", "caption_" + "9" * 5000, "image_²", "caption_10"),
)
MMVP = damaged_table(
    ("Question ID", "Type", "Statement"), ("1", "Color", "a red dog"), ("2", "Color", "a blue dog"), cells=("../1",)
)
# The file of a data set → its damaged contents, and what reads them.
FILES: dict[str, tuple[st.SearchStrategy[bytes], Callable[[Path], Any]]] = {
    "coco_test_karpathy.json": (CAPTIONED, lambda at: caption_files.coco_captions(at, "test")),
    "captions_val2014.json": (CAPTIONED, lambda at: caption_files.coco_captions(at, "captions_val2014")),
    "flickr30k_test_karpathy.txt": (
        damaged_file(*ROWS), lambda at: caption_files.flickr_captions(at, "test", "en", "flickr30k")),
    "flickr30k_cn_test.txt": (
        damaged_file(*ROWS), lambda at: caption_files.flickr_captions(at, "test", "zh", "flickr30k")),
    "x.csv": (PAIR_TABLE, lambda at: caption_pairs.caption_pairs(at / "x.csv", "pairs")),
    "x.jsonl": (PAIR_LINES, lambda at: caption_pairs.caption_pairs(at / "x.jsonl", "pairs")),
    "xtd10-de.json": (damaged_json(MADE), lambda at: multilingual_captions.line_captions(at, "de", "xtd10")),
    "captions.jsonl": (damaged_lines(*CROSSMODAL), lambda at: multilingual_captions.crossmodal_captions(at, "de")),
    "pairs.json": (damaged_json(PAIRS), lambda at: selection.own_pairs(at, "own")),
    "pairs.jsonl": (damaged_lines(*PAIRS), lambda at: selection.own_pairs(at, "own")),
    "pairs.csv": (OWN_TABLE, lambda at: selection.own_pairs(at, "own")),
    "add_att.json": (damaged_json(SUGAR), lambda at: selection_files.sugar_crepe(at, "add_att", "sugar")),
    "visual_genome_relation.json": (
        damaged_json(ARO), lambda at: selection_files.aro_visual_genome(at, "relation", "a")),
    "coco_order.json": (damaged_json(ORDER), lambda at: selection_files.aro_order(at, "coco", "aro")),
    "existence.json": (damaged_json(VALSE), lambda at: selection_files.valse(at, "existence", "test", "valse")),
    "examples.jsonl": (damaged_lines(WINOGROUND, {**WINOGROUND, "id": 1}), selection_files.winoground),
    "Questions.csv": (MMVP, selection_files.mmvp_vlm),
}  # fmt: skip
PICTURES = ("images/a.png", "images/b.png", "MLLM_VLM Images/Color/1.jpg", "MLLM_VLM Images/Color/2.jpg")


def check(name: str, content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        with_images(folder, *IMAGES, *PICTURES)
        (folder / name).write_bytes(content)
        use(FILES[name][1](folder))


@pytest.mark.parametrize("name", FILES)
@fuzzed()
@given(data=st.data())
def test_annotation_files(name: str, data: st.DataObject, tmp_path: Path) -> None:
    check(name, data.draw(FILES[name][0]), tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("captions_val2014.json", b'{"images": [{"id": [1], "file_name": "a.jpg"}], "annotations": []}'),
        ("pairs.json", b'[{"image": "a.jpg", "captions": ["A", "B"], "box": [0, 0, 5e8, 5e8]}]'),
        ("pairs.csv", b"image_0,caption_0,caption_%s\na.jpg,A,B\n" % (b"9" * 5000)),
    ],
)
def test_annotation_files_that_were_not_refused_once(name: str, content: bytes, tmp_path: Path) -> None:
    check(name, content, tmp_path)


# Texts by id --------------------------------------------------------------------------------------------------------

RECORDS = [{"id": "video_1", "summary": "A dog runs."}, {"id": 2, "caption": "A cat."}, {"id": "x", "text": None}]


@fuzzed()
@given(
    content=st.one_of(damaged_json({"video_1": "A dog runs.", "2": None, "x": ""}, RECORDS), damaged_lines(*RECORDS))
)
@example(content=b"[" * 100_000)
@example(content=b'{"id": ' + b"9" * 5000 + b"}")
def test_texts_by_id(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        path = folder / "texts.json"
        path.write_bytes(content)
        for read in (
            lambda: read_text_records(path, ("summary", "caption", "text")),
            lambda: read_predictions(path).coverage(["video_001", "2", "X.mp4"]),
            lambda: reference_captions(path, "texts").digests([0]),
        ):
            with robust(folder):
                read()


@fuzzed()
@given(texts=st.dictionaries(st.text(min_size=1), st.text(), min_size=1, max_size=5))
def test_texts_that_can_be_stored_are_read_as_they_were_written(texts: dict[str, str], tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        path = folder / "texts.jsonl"
        path.write_text("\n".join(json.dumps({"id": key, "text": text}) for key, text in texts.items()))
        assert read_text_records(path, ("text",)) == texts
        path.write_text(json.dumps(texts, ensure_ascii=False, indent=1), encoding="utf-8")
        if not ("id" in texts and "text" in texts):
            assert read_text_records(path, ("text",)) == texts


SRT = "1\n00:00:01,000 --> 00:00:04,5\n<b>Hello</b>\nyou\n\n2\n00:01:00.000 --> 01:00:02,000\nBye\n"


@fuzzed()
@given(text=mangled(SRT))
@example(text="9" * 5000 + ":00:00,000 --> 00:00:01,000\nx")
def test_subtitles(text: str) -> None:
    with robust():
        said_at(read_srt(text), [0, 1500, 60_000])


@fuzzed()
@given(content=damaged_lines({"x": [1, 2.5, "y"]}, [None, {"é": "日本語"}]))
@example(content=b'{"a":' * 100_000)
def test_json_and_its_lines(content: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        path = folder / "x.json"
        path.write_bytes(content)
        for read in (read_json, read_json_lines):
            with robust(folder):
                read(path)


@fuzzed()
@given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
def test_lines_are_read_as_they_were_written(lines: list[str]) -> None:
    assert text_lines("".join(f"{line}\n" for line in lines)) == lines
    assert text_lines("".join(f"{line}\r\n" for line in lines)) == lines


@fuzzed()
@given(name=mangled("images/a.jpg", "../a.jpg", "a\\..\\b", "./a", "C:a", "//host/a"))
def test_a_path_of_an_annotation_stays_below_its_folder(name: str) -> None:
    with robust():
        path = Path("/folder") / checked_path(name, "a file")
        assert Path("/folder") in Path(*[part for part in path.parts if part != "."]).parents
        assert ".." not in path.parts
