"""PASCAL VOC 2007, on made images and annotations."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from torchvision_world import save, text

from testbed.data.sets.voc import CLASSES, VOCImages, VOCObjects, parse_xml
from testbed.errors import DataError

OBJECT = (
    "<object><name>{0}</name>{5}<difficult>{6}</difficult>"
    "<bndbox><xmin>{1}</xmin><ymin>{2}</ymin><xmax>{3}</xmax><ymax>{4}</ymax></bndbox></object>"
)
PART = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"


def annotate(root: Path, image: str, *objects: tuple[object, ...]) -> None:
    inside = "".join(OBJECT.format(*each) for each in objects)
    text(root / "Annotations" / f"{image}.xml", f"<annotation><filename>{image}.jpg</filename>{inside}</annotation>")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "VOC2007"
    for number in (1, 2, 3):
        save(root / "JPEGImages" / f"{number:06d}.jpg", number)
    annotate(
        root,
        "000001",
        ("person", 2, 3, 9, 10, PART, 0),
        ("dog", 1, 1, 14, 12, "", 1),
        ("person", 1, 2, 3, 4, "", 0),
    )
    annotate(root, "000002")
    annotate(root, "000003", ("tvmonitor", 1, 1, 5.6, 5, "", 0))
    text(root / "ImageSets/Main/test.txt", "000001", "000003", "000002")
    text(root / "ImageSets/Main/train.txt", "000002 -1")
    return root


def test_an_image_has_all_classes_of_its_objects_the_difficult_too(root):
    source = pickle.loads(pickle.dumps(VOCImages(root, "voc2007_multilabel", "test")))
    assert source.ids == ["JPEGImages/000001.jpg", "JPEGImages/000003.jpg", "JPEGImages/000002.jpg"]
    assert source.targets == [[CLASSES.index("dog"), CLASSES.index("person")], [19], []]
    assert source.class_names == CLASSES
    assert len(CLASSES) == 20
    assert source.image(0).size == (14, 12)
    assert len(set(source.digests([0, 1, 2]))) == 3


def test_every_object_is_cut_out(root):
    source = pickle.loads(pickle.dumps(VOCObjects(root, "voc2007", "test")))
    assert source.ids == [
        "JPEGImages/000001.jpg#0",
        "JPEGImages/000001.jpg#1",
        "JPEGImages/000001.jpg#2",
        "JPEGImages/000003.jpg#0",
    ]
    assert [CLASSES[target] for target in source.targets] == ["person", "dog", "person", "tvmonitor"]
    whole = np.asarray(VOCImages(root, "v", "test").image(0))
    np.testing.assert_array_equal(np.asarray(source.image(0)), whole[3:10, 2:9])
    assert source.image(1).size == (13, 11)
    assert source.image(3).size == (4, 4)
    assert len(set(source.digests(range(4)))) == 4
    before = source.digests([0])
    annotate(root, "000001", ("person", 2, 3, 9, 11, "", 0))
    assert VOCObjects(root, "voc2007", "test").digests([0]) != before


def test_lists_by_class_are_read_too(root):
    assert VOCImages(root, "v", "train").ids == ["JPEGImages/000002.jpg"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation>&x;</annotation>',
            "declares a document type",
        ),
        ("<annotation><object>", "no element found|mismatched|unclosed"),
        ("<annotation><object><name>cat</name></object></annotation>", "has the box"),
        ("<annotation><object><name>unicorn</name></object></annotation>", "'unicorn', which is not one of the 20"),
        (f"<annotation>{OBJECT.format('cat', 1, 1, 10**9, 10**9, '', 0)}</annotation>", "has the box"),
        (f"<annotation>{OBJECT.format('cat', 5, 1, 4, 9, '', 0)}</annotation>", "has the box"),
        (f"<annotation>{OBJECT.format('cat', 'x', 1, 4, 9, '', 0)}</annotation>", "could not convert"),
    ],
)
def test_an_annotation_of_another_form_is_named(root, content, message):
    (root / "Annotations/000003.xml").write_text(content)
    with pytest.raises(DataError, match=rf"'v': .*000003\.xml cannot be read.*({message})"):
        VOCImages(root, "v", "test")


def test_no_entity_is_expanded():
    assert parse_xml(b"<a><b> c &amp; d</b></a>").findtext("b") == " c & d"
    bomb = b'<!DOCTYPE a [<!ENTITY x "xxxx"><!ENTITY y "&x;&x;&x;">]><a>&y;</a>'
    with pytest.raises(ValueError, match="document type"):
        parse_xml(bomb)
    with pytest.raises(ValueError, match="document type"):
        parse_xml(bomb.decode().encode("utf-16"))


@pytest.mark.parametrize("lines", [["../../x"], [], ["000001", "000001"]])
def test_a_list_of_another_form_is_named(root, lines):
    text(root / "ImageSets/Main/test.txt", *lines)
    with pytest.raises(DataError, match=r"'v': .*test\.txt"):
        VOCObjects(root, "v", "test")


def test_what_is_missing_is_named(root):
    with pytest.raises(DataError, match=r"'v': .*val\.txt cannot be read.*as VOC 2007's archives unpack"):
        VOCImages(root, "v", "val")
    (root / "Annotations/000002.xml").unlink()
    with pytest.raises(DataError, match=r"000002\.xml"):
        VOCImages(root, "v", "train")
