"""Instances of images and captions, and the general form of their files."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import pytest
from caption_world import draw, draw_all, write

from testbed.data.formats.image_store import ImagesInFolder
from testbed.data.formats.selection import CaptionSelection, SelectionInstance, own_pairs, read_pairs
from testbed.errors import DataError, SampleError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw_all(tmp_path, ["a.png", "b.png", "sub/c.png"])
    return tmp_path


def select(folder: Path, *instances: SelectionInstance) -> CaptionSelection:
    return CaptionSelection(ImagesInFolder(folder), instances, "pairs/x", "me")


def test_samples_are_the_images_and_instances_their_groups(folder):
    source = select(
        folder,
        SelectionInstance("i", ("a.png", "b.png", "sub/c.png"), ("one", "two")),
        SelectionInstance("j", ("a.png",), ("right", "wrong"), slices={"kind": "x"}),
    )
    assert source.ids == ["a.png#i", "b.png#i", "sub/c.png#i", "a.png#j"]
    assert source.groups == ["i", "i", "i", "j"]
    assert [target["answer"] for target in source.targets] == [0, 1, None, 0]
    assert [target["captions"] for target in source.targets[2:]] == [["one", "two"], ["right", "wrong"]]
    assert source.slices == [{}, {}, {}, {"kind": "x"}]
    assert source.digests([0, 3])[0] == source.digests([3])[0]
    copy = pickle.loads(pickle.dumps(source))
    assert copy.describe_samples(range(4)).fingerprint == source.describe_samples(range(4)).fingerprint


def test_a_box_is_the_part_that_counts(folder):
    image = draw(folder / "big.png", size=(30, 20))
    boxes = ((5, 2, 10, 7), (0, 0, 30, 20))
    source = select(
        folder, *(SelectionInstance(str(n), ("big.png",), ("x", "y"), (box,)) for n, box in enumerate(boxes))
    )
    assert (source.image(0).size, source.image(1).size) == ((10, 7), (30, 20))
    whole = ImagesInFolder(folder).digests([image.name])[0]
    assert len({*source.digests([0, 1]), whole}) == 3
    empty = select(folder, SelectionInstance("i", ("big.png",), ("x", "y"), ((0, 0, 0, 5),)))
    with pytest.raises(SampleError, match="a crop of 0 by 5 pixels is empty"):
        empty.image(0)


@pytest.mark.parametrize(
    ("instances", "said"),
    [
        ([], "has no instances"),
        ([SelectionInstance("i", ("a.png",), ("x",))], "so there is nothing to choose"),
        ([SelectionInstance("i", (), ("x", "y"))], "has no images or no captions"),
        ([SelectionInstance("i", ("a.png", "a.png"), ("x", "y"))], "has one image twice"),
        ([SelectionInstance("i", ("a.png",), ("x", "y"))] * 2, "two instances are named 'i'"),
        ([SelectionInstance("i", ("none.png",), ("x", "y"))], "1 of 1 images are missing"),
    ],
)
def test_instances_that_make_no_sense(folder, instances, said):
    with pytest.raises(DataError, match=said):
        select(folder, *instances)


# Files of one's own -----------------------------------------------------------------------------------------------

ENTRIES = [
    {"id": "first", "images": ["a.png", "sub/c.png"], "captions": ["a, b", "c\u2028d"], "slices": {"kind": "two"}},
    {"image": "b.png", "captions": ["wrong", "right"], "answer": 1, "box": [1, 2, 3, 4]},
]
EXPECTED = [
    SelectionInstance("first", ("a.png", "sub/c.png"), ("a, b", "c\u2028d"), slices={"kind": "two"}),
    SelectionInstance("1", ("b.png",), ("right", "wrong"), ((1, 2, 3, 4),)),
]


def test_json_and_json_lines_say_the_same(folder):
    assert read_pairs(write(folder / "x.json", ENTRIES)) == EXPECTED
    lines = "\n".join(json.dumps(entry, ensure_ascii=False) for entry in ENTRIES)
    assert read_pairs(write(folder / "x.jsonl", lines + "\n\n")) == EXPECTED


def test_csv(folder):
    text = (
        "\ufeffid,image_0,image_1,caption_1,caption_0,answer,kind\r\n"
        'first,a.png,sub/c.png,c\u2028d,"a, b",,two\r\n'
        ',b.png,,"say ""x""","over\ntwo",1,\r\n'
    )
    assert read_pairs(write(folder / "x.csv", text)) == [
        EXPECTED[0],
        SelectionInstance("1", ("b.png",), ('say "x"', "over\ntwo")),
    ]
    assert read_pairs(write(folder / "y.csv", "image,caption_0,caption_1\na.png,x,y\n")) == [
        SelectionInstance("0", ("a.png",), ("x", "y"))
    ]


@pytest.mark.parametrize(("answer", "order"), [([2, 0], "CAB"), ([0, 1], "ABC"), (None, "ABC"), ([1, 2], "BCA")])
def test_an_answer_puts_the_captions_in_the_order_of_the_images(folder, answer, order):
    entry = {"images": ["a.png", "b.png"], "captions": ["A", "B", "C"], "answer": answer}
    assert "".join(read_pairs(write(folder / "x.json", [entry]))[0].captions) == order


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"answer": 2}, r"'answer' should give each of the 1 images .* \(0 to 1\); it is 2"),
        ({"answer": True}, r"'answer' should give"),
        ({"answer": [0, 1]}, r"'answer' should give"),
        ({"images": ["a.png", "b.png"], "image": None, "answer": [1, 1]}, r"a different caption"),
        ({"captions": ["x", 3]}, r"'captions' should be a list of texts"),
        ({"captions": "x"}, r"entry 1: 'captions' should be a list"),
        ({"caption": "x"}, r"has 'caption'; known are id, image"),
        ({"image": "../a.png"}, r"leaves the image folder"),
        ({"image": ""}, r"empty path"),
        ({"box": [1, 2, 3]}, r"a box is \[left, top, width, height\]"),
        ({"box": [1, 2, 3, float("nan")]}, r"a box is"),
        ({"boxes": [[1, 2, 3, 4]] * 2}, r"one for each of the 1 images"),
        ({"slices": ["x"]}, r"'slices' should be an object"),
    ],
)
def test_faults_of_an_entry(folder, change, said):
    entry = {"image": "a.png", "captions": ["x", "y"], **change}
    path = write(folder / "x.json", [{key: value for key, value in entry.items() if value is not None}])
    with pytest.raises(DataError, match=said):
        read_pairs(path)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.json", "{}", "should be a list of objects"),
        ("x.jsonl", '{"images": 1}\nnothing', "line 2 is not valid JSON"),
        ("x.csv", "id,picture\n", "should have the columns image .* it has id, picture"),
        ("x.csv", "image,caption_0,caption_1\na.png,x,y,z\n", "line 2 has more or fewer cells than columns"),
        ("x.csv", "image,caption_0,caption_1\na.png,x\n", "line 2 has more or fewer cells than columns"),
        ("x.csv", "image,caption_0,caption_1,answer\na.png,x,y,first\n", "'answer' should be indices"),
        ("x.csv", 'image,caption_0\na.png,"x', "is not valid CSV"),
    ],
)
def test_faults_of_a_file(folder, name, text, said):
    with pytest.raises(DataError, match=said):
        read_pairs(write(folder / name, text))


def test_a_file_is_found_by_its_name_with_its_images_beside_it_or_in_an_archive(folder):
    with pytest.raises(DataError, match=r"there is neither .*mine.json, .jsonl or .csv nor .*mine/pairs.json"):
        own_pairs(folder / "mine", "pairs/mine")
    write(folder / "mine.jsonl", "\n".join(map(json.dumps, ENTRIES)))
    beside = own_pairs(folder / "mine", "pairs/mine")
    write(folder / "other" / "pairs.json", ENTRIES)
    with zipfile.ZipFile(folder / "other" / "images.zip", "w") as archive:
        for file in ("a.png", "b.png", "sub/c.png"):
            archive.write(folder / file, file)
    packed = own_pairs(folder / "other", "pairs/other")
    assert beside.ids == packed.ids == ["a.png#first", "sub/c.png#first", "b.png#1"]
    assert beside.digests(range(3)) == packed.digests(range(3))
    assert packed.image(2).size == (3, 4)
