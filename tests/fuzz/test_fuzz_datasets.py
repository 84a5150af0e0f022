"""Metadata of data sets: VOC, Open Images, ObjectNet, frames of videos, ImageNet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzz_images import use, with_images
from fuzzing import damaged_file, damaged_json, damaged_table, fuzzed, mangled, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st

from testbed.data.formats.image_lists import ListedImages
from testbed.data.sets import objectnet, openimages, video, voc
from testbed.data.sets.imagenet import with_real_labels
from testbed.errors import DataError

XML = (
    "<annotation><object><name>dog</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>5</xmax><ymax>6.0</ymax></bndbox>"
    "</object><object><name>cat</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>7</xmax><ymax>7</ymax></bndbox>"
    "</object></annotation>",
    '<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>',
)


@fuzzed()
@given(annotation=damaged_file(*XML), split=damaged_file("a\nb -1\n"), whole=st.booleans())
def test_voc(annotation: bytes, split: bytes, whole: bool, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        with_images(folder, "JPEGImages/a.jpg", "JPEGImages/b.jpg", "Annotations/x", "ImageSets/Main/x")
        (folder / "ImageSets" / "Main" / "test.txt").write_bytes(split if whole else b"a\n")
        for name in ("a", "b"):
            (folder / "Annotations" / f"{name}.xml").write_bytes(XML[0].encode() if whole else annotation)
        use((voc.VOCImages if whole else voc.VOCObjects)(folder, "voc", "test"))


@fuzzed()
@given(
    classes=damaged_json({"0": "/m/a", "759": "/m/b"}),
    labels=damaged_table(
        ("ImageID", "Source", "LabelName", "Confidence"),
        ("a", "x", "/m/a", "1"), ("b", "x", "/m/b", "1.0"), ("b", "x", "/m/c", "0"),
    ),
    indices=damaged_json({"indices": [0, 1]}),
    damaged=st.integers(0, 2),
)  # fmt: skip
@example(classes=b"[Infinity]", labels=b"", indices=b"", damaged=0)
@example(classes=b"[5]", labels=b"", indices=b"", damaged=0)
@example(classes=b"", labels=b"ImageID,LabelName,Confidence\n\xff", indices=b"", damaged=1)
def test_open_images(classes: bytes, labels: bytes, indices: bytes, damaged: int, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        with_images(folder, "a.jpg", "b.jpg")
        contents = [
            b'{"0": "/m/a", "759": "/m/b"}',
            b"ImageID,LabelName,Confidence\na,/m/a,1\nb,/m/b,1\n",
            b'{"indices": [0, 1]}',
        ]
        contents[damaged] = (classes, labels, indices)[damaged]
        for name, content in zip((openimages.CLASSES, openimages.LABELS, openimages.INDICES), contents, strict=True):
            (folder / name).write_bytes(content)
        use(openimages.OpenImages(folder, "openimages"))


OBJECTNET: dict[str, Any] = {
    "folder_to_objectnet_label.json": {"dogs": "Dog", "cats": "Cat"},
    "objectnet_to_imagenet_1k.json": {"Dog": "pug; poodle", "Cat": "tabby"},
    "pytorch_to_imagenet_2012_id.json": {"0": 0, "1": 1, "2": 2},
}
LINES = "pug\npoodle\ntabby\n"


VID: dict[str, Any] = {
    "rev_class_idx_map.json": {"0": [1, 2], "1": [3]},
    "pmsets.json": {"val/v/1.JPEG": ["val/v/2.JPEG"]},
    "labels.json": {"val/v/1.JPEG": [0], "val/v/2.JPEG": [0, 1]},
}
FRAME = "v_100/frame-12.jpg"
YTBB: dict[str, Any] = {
    "rev_class_idx_map.json": {"0": [1, 2], "1": [3]},
    "ytbb_class_index.json": {"0": "dog", "1": "cat"},
    "anchor_labels.json": {"labels": ["good", "dog"], "annotations": [{"key": f"/x/{FRAME}", "labels": [0, 1]}]},
    "pmk_labels.json": {
        "labels": ["similar", "bad-anchor"],
        "annotations": [{"key": f"{FRAME},v_100/frame-13.jpg", "labels": [0]}],
    },
}
ANCHORS = (("ytid", "time_ms", "label"), ("v", "100", "0"))


@pytest.mark.parametrize(
    ("name", "content"),
    [("pmsets.json", "[]"), ("labels.json", '{"val/v/1.JPEG": [[1]]}'), ("labels.json", "[" * 100_000)],
)
def test_metadata_of_videos_in_another_form_are_refused(name: str, content: str, tmp_path: Path) -> None:
    with_images(tmp_path, "val/v/1.JPEG", "val/v/2.JPEG")
    for each, good in VID.items():
        (tmp_path / each).write_text(content if each == name else json.dumps(good))
    with pytest.raises(DataError, match=r"another form|not valid JSON"):
        video.vid_robust(tmp_path, "vid")


def test_no_frame_lies_outside_the_folder_of_a_data_set(tmp_path: Path) -> None:
    with_images(tmp_path, "val/v/1.JPEG", "secret.JPEG")
    metadata = {**VID, "pmsets.json": {"val/v/1.JPEG": ["../secret.JPEG"]}}
    metadata["labels.json"] = {"val/v/1.JPEG": [0], "../secret.JPEG": [0]}
    for each, good in metadata.items():
        (tmp_path / each).write_text(json.dumps(good))
    with pytest.raises(DataError, match="leaves the image folder"):
        video.vid_robust(tmp_path, "vid")


OBJECTNET["imagenet_to_label_2012_v2"] = LINES
YTBB["ytbb_robustness_test_anchors_full.csv"] = "".join(f"{','.join(row)}\n" for row in ANCHORS)
# A data set → the folder and the content of its metadata, its images, and what reads them.
SETS: dict[str, tuple[str, dict[str, Any], list[str], Callable[[Path], Any]]] = {
    "objectnet": (
        "mappings", OBJECTNET, ["images/dogs/a.png", "images/cats/b.png", "mappings/x"],
        lambda folder: objectnet.ObjectNet(folder, "objectnet"),
    ),
    "vid": ("", VID, ["val/v/1.JPEG", "val/v/2.JPEG"], lambda folder: video.vid_robust(folder, "vid")),
    "ytbb": ("", YTBB, [f"val/{FRAME}", "val/v_100/frame-13.jpg"], lambda folder: video.ytbb_robust(folder, "ytbb")),
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
@fuzzed()
@given(data=st.data())
def test_metadata_in_several_files(name: str, data: st.DataObject, tmp_path: Path) -> None:
    below, contents, images, read = SETS[name]
    damaged = data.draw(st.sampled_from(sorted(contents)))
    good = contents[damaged]
    whole = damaged_table(*ANCHORS) if damaged.endswith(".csv") else damaged_file(str(good))
    changed = data.draw(whole if isinstance(good, str) else damaged_json(good))
    with trial(tmp_path) as folder:
        with_images(folder, *images)
        for file, content in contents.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (folder / below / file).write_bytes(changed if file == damaged else text.encode())
        use(read(folder))


@fuzzed()
@given(name=mangled("val/n01440764/ILSVRC2012_val_00000293.JPEG", "x_1.png", "x_50001.png"))
@example(name="x_²")
def test_the_number_in_the_name_of_a_validation_image(name: str) -> None:
    with robust():
        with_real_labels(ListedImages(Path("/x"), "val", [name], [0], None))
