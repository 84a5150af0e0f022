"""Published tests of compositionality, as small trees in their form."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

import pytest
from caption_world import draw, draw_all, write

from testbed.data.formats.selection_files import aro_order, aro_visual_genome, mmvp_vlm, sugar_crepe, valse, winoground
from testbed.errors import DataError

# SugarCrepe -------------------------------------------------------------------------------------------------------

SUGAR = {
    "0": {"filename": "1.jpg", "caption": "a cat, asleep", "negative_caption": 'a "dog"\u2028asleep'},
    "7": {"filename": "1.jpg", "caption": "b", "negative_caption": "c"},  # its numbers have gaps, its images return
}


@pytest.mark.parametrize("place", ["sugar_crepe/val2017", "coco/val2017", "mscoco_captions/val2017"])
def test_sugar_crepe(tmp_path, place):
    draw_all(tmp_path / place, ["1.jpg"])
    write(tmp_path / "sugar_crepe" / "swap_obj.json", SUGAR)
    source = sugar_crepe(tmp_path / "sugar_crepe", "swap_obj", "sugar_crepe/swap_obj")
    assert source.ids == ["1.jpg#0", "1.jpg#7"]
    assert source.targets == [
        {"captions": ["a cat, asleep", 'a "dog"\u2028asleep'], "answer": 0},
        {"captions": ["b", "c"], "answer": 0},
    ]
    assert source.groups == ["0", "7"]
    assert pickle.loads(pickle.dumps(source)).image(1).size == (12, 8)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "should be an object with an entry for each instance"),
        ({"0": {"filename": "1.jpg", "caption": "x"}}, "swap_obj.json, 0 should have 'negative_caption'"),
        ({"0": {**SUGAR["0"], "caption": None}}, "'caption' should be a text; it is null"),
        ({"0": {**SUGAR["0"], "filename": "../1.jpg"}}, "leaves the image folder"),
        ({"0": {**SUGAR["0"], "filename": "2.jpg"}}, "1 of 1 images are missing in .*cocodataset"),
        ("{", "is not valid JSON"),
    ],
)
def test_faults_of_sugar_crepe(tmp_path, content, said):
    draw_all(tmp_path / "val2017", ["1.jpg"])
    write(tmp_path / "swap_obj.json", content)
    with pytest.raises(DataError, match=said):
        sugar_crepe(tmp_path, "swap_obj", "sugar_crepe/swap_obj")


def test_missing_files_of_sugar_crepe(tmp_path):
    with pytest.raises(DataError, match=r"add_att.json is missing in .* it comes from .*sugar-crepe"):
        sugar_crepe(tmp_path, "add_att", "sugar_crepe/add_att")
    write(tmp_path / "add_att.json", SUGAR)
    with pytest.raises(DataError, match=r"the images are missing; looked for .*val2017.*cocodataset"):
        sugar_crepe(tmp_path, "add_att", "sugar_crepe/add_att")


# Winoground -------------------------------------------------------------------------------------------------------


def examples() -> list[dict[str, object]]:
    said = {"caption_0": "old kisses young", "caption_1": "young kisses old", "tag": "Adjective", "secondary_tag": ""}
    return [
        {
            "id": n,
            "image_0": f"ex_{n}_img_0",
            "image_1": f"ex_{n}_img_1",
            **said,
            "num_main_preds": 1,
            "collapsed_tag": "Object",
        }
        for n in (0, 1)
    ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("below", ["", "data/"])
def test_winoground_from_its_repository(tmp_path, packed, below):
    names = [f"ex_{number}_img_{image}.png" for number in (0, 1) for image in (0, 1)]
    folder = tmp_path / below
    draw_all(tmp_path / "drawn", names)
    write(folder / "examples.jsonl", "\n".join(map(json.dumps, examples())))
    if packed:
        with zipfile.ZipFile(folder / "images.zip", "w") as archive:
            for name in names:
                archive.write(tmp_path / "drawn" / name, f"images/{name}")
    else:
        (tmp_path / "drawn").rename(folder / "images")
    source = winoground(tmp_path)
    assert source.ids == [f"{name}#{name[3]}" for name in names]
    assert source.groups == ["0", "0", "1", "1"]
    assert [target["answer"] for target in source.targets] == [0, 1, 0, 1]
    assert source.targets[0]["captions"] == source.targets[1]["captions"] == ["old kisses young", "young kisses old"]
    assert source.slices[3] == {"tag": "Adjective", "num_main_preds": 1, "collapsed_tag": "Object"}
    assert source.image(3).size == (12, 8)
    assert len(set(source.digests(range(4)))) == 4


def test_winoground_is_gated_and_missing(tmp_path):
    with pytest.raises(
        DataError, match=r"data/examples.jsonl is missing in .*huggingface.co/datasets/facebook/winoground"
    ):
        winoground(tmp_path)


# ARO --------------------------------------------------------------------------------------------------------------

RELATION = {
    **{"image_id": 5, "image_path": "5.jpg", "bbox_x": 2, "bbox_y": 1, "bbox_w": 6, "bbox_h": 5, "relation_name": "on"},
    **{"true_caption": "the cat is on the mat", "false_caption": "the mat is on the cat"},
}


def test_aro_on_parts_of_images(tmp_path):
    draw_all(tmp_path / "images", ["5.jpg"])
    second = {**RELATION, "bbox_x": 0, "bbox_w": 40}  # boxes that reach over the edge are filled up, as Pillow does it
    write(tmp_path / "visual_genome_relation.json", [RELATION, second])
    source = aro_visual_genome(tmp_path, "relation", "aro/vg_relation")
    assert source.ids == ["5.jpg#0", "5.jpg#1"]
    assert source.targets[0] == {"captions": ["the cat is on the mat", "the mat is on the cat"], "answer": 0}
    assert (source.image(0).size, source.image(1).size) == ((6, 5), (40, 5))
    assert source.slices == [{"relation_name": "on"}] * 2
    assert len(set(source.digests([0, 1]))) == 2


def test_aro_attributes_and_faults(tmp_path):
    draw_all(tmp_path / "images", ["5.jpg"])
    write(tmp_path / "visual_genome_attribution.json", [{**RELATION, "attributes": ["red", "big"]}])
    source = aro_visual_genome(tmp_path, "attribution", "aro/vg_attribution")
    assert source.slices == [{"relation_name": "on", "attributes": "red_big"}]
    for change, said in (
        ({"bbox_w": "6"}, "'bbox_w' should be a number of pixels"),
        ({"image_path": "/5.jpg"}, "leaves the image folder"),
        ({"true_caption": 3}, "'true_caption' should be a text"),
    ):
        write(tmp_path / "visual_genome_attribution.json", [{**RELATION, **change}])
        with pytest.raises(DataError, match=said):
            aro_visual_genome(tmp_path, "attribution", "aro/vg_attribution")


def test_aro_order_from_a_file_of_its_test_cases(tmp_path):
    root = tmp_path / "aro"
    draw(tmp_path / "mscoco_captions" / "val2014" / "1.jpg")
    draw(tmp_path / "flickr30k" / "Images" / "2.jpg")
    options = ["right order", "order right", "a", "b", "c"]
    write(root / "coco_order.json", [{"image": "val2014/1.jpg", "caption_options": options}])
    write(root / "flickr30k_order.json", [{"image_path": "flickr30k-images/2.jpg", "caption_options": options}] * 2)
    coco, flickr = (aro_order(root, name, f"aro/{name}_order") for name in ("coco", "flickr30k"))
    assert (coco.ids, flickr.ids) == (["val2014/1.jpg#0"], ["Images/2.jpg#0", "Images/2.jpg#1"])
    assert coco.targets == [{"captions": options, "answer": 0}]
    (root / "coco_order.json").unlink()
    with pytest.raises(DataError, match=r"coco_order.json is missing .*write its test_cases as JSON"):
        aro_order(root, "coco", "aro/coco_order")


# VALSE ------------------------------------------------------------------------------------------------------------


def valse_file() -> dict[str, dict[str, object]]:
    votes = {"valid": 2, "not valid": 1, "also": 3}
    return {
        key: {
            "dataset": "VisDial_v1.0" if key == "also" else "visual7w",
            "image_file": f"{key}.jpg",
            "caption": "There are no people.",
            "foil": "There are people.",
            "mturk": {"foil": 0, "caption": count, "other": 3 - count},
        }
        for key, count in votes.items()
    }


@pytest.fixture
def valse_root(tmp_path: Path) -> Path:
    draw_all(tmp_path, ["visual7w/valid.jpg", "images/not valid.jpg", "train2014/also.jpg"])
    write(tmp_path / "data" / "existence.json", valse_file())
    return tmp_path


def test_valse_has_the_instances_that_people_found_valid(valse_root):
    source = valse(valse_root, "existence", "test", "valse/existence")
    assert source.ids == ["visual7w/valid.jpg#valid", "train2014/also.jpg#also"]
    assert source.targets[0] == {"captions": ["There are no people.", "There are people."], "answer": 0}
    everything = valse(valse_root, "existence", "all", "valse/existence")
    assert everything.groups == ["valid", "not valid", "also"]
    assert everything.ids[1] == "images/not valid.jpg#not valid"


def test_faults_of_valse(valse_root):
    with pytest.raises(DataError, match=r"plurals.json is missing .*Heidelberg-NLP/VALSE"):
        valse(valse_root, "plurals", "test", "valse/plurals")
    for key, value, said in (
        ("dataset", "..", "leaves the image folder"),
        ("image_file", "../../x.jpg", "leaves the image folder"),
        ("foil", None, "'foil' should be a text"),
        ("mturk", {}, "should have 'caption'; it has nothing"),
        ("image_file", "gone.jpg", "1 of 2 images are missing .*visual7w/gone.jpg"),
    ):
        content = valse_file()
        content["valid"][key] = value
        write(valse_root / "data" / "existence.json", content)
        with pytest.raises(DataError, match=said):
            valse(valse_root, "existence", "test", "valse/existence")


# MMVP-VLM ---------------------------------------------------------------------------------------------------------

QUESTIONS = """Question ID,Type,Statement
1,Color,"red, and round"
2,Color,blue
3,Camera Perspective,from above
4,Camera Perspective,"from ""below""\"
"""


def test_mmvp(tmp_path):
    images = tmp_path / "MLLM_VLM Images"
    draw_all(images, ["Color/1.jpg", "Color/2.jpg", "Camera_Perspective/3.jpg", "Camera_Perspective/4.jpg"])
    write(tmp_path / "Questions.csv", QUESTIONS)
    source = mmvp_vlm(tmp_path)
    assert source.ids == [
        *("Color/1.jpg#1-2", "Color/2.jpg#1-2"),
        *("Camera_Perspective/3.jpg#3-4", "Camera_Perspective/4.jpg#3-4"),
    ]
    assert source.targets[1] == {"captions": ["a photo of red, and round", "a photo of blue"], "answer": 1}
    assert source.targets[3] == {"captions": ["a photo of from above", 'a photo of from "below"'], "answer": 1}
    assert source.slices[2] == {"pattern": "Camera Perspective"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "should have the columns Question ID, Type, Statement; it has a, b"),
        ("Question ID,Type,Statement\n1,Color,red\n", "has 1 statements"),
        ("Question ID,Type,Statement\n1,Color,red\n2,Color,red, round\n", "row 3 has 4 cells"),
        ("Question ID,Type,Statement\n1,..,red\n2,Color,blue\n", "leaves the image folder"),
        ("", "it has $"),
    ],
)
def test_faults_of_mmvp(tmp_path, text, said):
    draw_all(tmp_path / "MLLM_VLM Images", ["Color/1.jpg", "Color/2.jpg"])
    write(tmp_path / "Questions.csv", text)
    with pytest.raises(DataError, match=said):
        mmvp_vlm(tmp_path)
