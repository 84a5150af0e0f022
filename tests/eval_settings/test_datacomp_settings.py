"""DataComp's data sets from the folders that its program downloads."""

from __future__ import annotations

import shutil

import datacomp_world as world
import numpy as np
import pytest
import wds_world
from torchvision_world import MAKERS

from testbed.errors import DataError
from testbed.eval_settings.benchmark_families.datacomp import COUNTED, GROUPS, SETS, means
from testbed.inputs import Inputs, using
from testbed.registry import registry


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    root = tmp_path_factory.mktemp("evalsets")
    world.plant(root)
    return root


@pytest.fixture
def root(planted, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    with using(Inputs.from_environment().but(data_root=str(planted))):
        yield planted


def test_the_collection_has_all_sets_of_which_38_count():
    registry.load()
    assert registry.eval_setting_collections.members("datacomp38") == [each.setting for each in SETS]
    assert (len(SETS), len(COUNTED), {name: len(sets) for name, sets in GROUPS.items()}) == (
        40,
        38,
        {"ImageNet": 1, "ImageNet dist. shifts": 6, "VTAB": 13, "Retrieval": 3, "Average": 38},
    )


@pytest.mark.parametrize("key", [each.key for each in SETS])
def test_every_set_is_read_from_its_folder(root, key):
    setting = registry.get_eval_setting(next(each.setting for each in SETS if each.key == key))
    source = setting.dataset.open()
    if key in world.CLASSES:
        count = world.CLASSES[key]
        folder = {"webdataset": str(root / world.folder_of(key)), "split": "test"}
        assert folder.items() <= setting.dataset.spec().items()
        assert list(source.targets) == [min(count - 1, number) for number in range(4)]
        assert len(source.class_names) == count
        if key not in ("imagenet-a", "imagenet-r"):  # which are among ImageNet's 1,000 classes
            texts = setting.prompts.texts(source.class_names)
            assert (len(texts), texts[0]) == (count, ["a thing 0 here."])
    elif key in world.ATTRIBUTES:
        assert list(source.targets) == [row[2] for row in world.ATTRIBUTES[key]]  # the races come first
        texts = setting.prompts.texts(source.class_names)
        assert (len(texts), texts[7], texts[-1]) == (40, ["a gender 0 face."], ["a toxic 21 face."])
    else:
        assert len(source) in (3, 15)
    if key in NAMED:
        assert [list(slices.values()) for slices in source.slices] == [row[: len(NAMED[key])] for row in rows_of(key)]
        assert list(source.slices[0]) == NAMED[key]


NAMED = {
    "wilds/iwildcam": ["location"],
    "wilds/camelyon17": ["hospital", "slide"],
    "wilds/fmow": ["region", "year"],
    "fairness/dollar_street": ["income_ds", "income_meta", "region"],
    "fairness/geode": ["region", "country"],
    **{key: ["age", "gender", "race", "race_binary"] for key in ("fairness/fairface", "fairness/utkface")},
}


def rows_of(key):
    return [[int(value) for value in row] for row in world.ATTRIBUTES[key]]


def test_cues_are_texts_and_their_images_the_answers(root):
    source = registry.get_eval_setting("misc/winogavil").dataset.open()
    assert source.targets[0] == {"captions": ["An eagle"], "answer": 0}
    assert [target["answer"] for target in source.targets[:5]] == [0, None, None, 0, None]
    assert source.targets[-1] == {"captions": ["A wood"], "answer": 0}
    assert (source.groups[0], source.ids[3]) == ("0", "eel.jpg#0")


def test_original_files_come_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    data = tmp_path / "data"
    wds_world.write_split(data / "wds_dtd_test", [wds_world.samples({"s": b"1"})])
    with using(Inputs.from_environment().but(data_root=str(data))):
        dataset = registry.get_eval_setting("dtd").dataset
        assert dataset.spec() == {"webdataset": str(data / "wds_dtd_test"), "split": "test"}
        assert registry.get_eval_setting("dtd.val").dataset.spec()["torchvision"] == "dtd"  # it has no such split
        MAKERS["dtd"](data, monkeypatch)
        assert dataset.spec() == {"torchvision": "dtd", "root": str(data / "dtd"), "split": "test"}
        wds_world.write_split(data / "wds_imagenet1k_test", [wds_world.samples({"s": b"1"})])
        dataset = registry.get_eval_setting("imagenet1k").dataset
        assert "webdataset" in dataset.spec()
        (data / "val").mkdir()
        assert dataset.spec() == registry.get_eval_setting("val").dataset.spec()


def refused(data, setting, said):
    with using(Inputs.from_environment().but(data_root=str(data))), pytest.raises(DataError, match=said):
        _open(setting)


def _open(name):
    setting = registry.get_eval_setting(name)
    setting.prompts.texts(setting.dataset.open().class_names)


def test_what_is_missing_or_wrong_is_named(planted, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "imagenet-o").mkdir()  # the original, which is not DataComp's form
    refused(tmp_path, "datacomp/imagenet-o", r"/wds_imagenet-o_test is missing")
    refused(tmp_path, "wilds/fmow", r"/wds_wilds-fmow_test is missing; .*datasets/djghosh/wds_wilds-fmow_test, which")
    refused(tmp_path, "fairness/geode", r"huggingface.co/datasets/djghosh/wds_geode_test")
    refused(tmp_path, "misc/winogavil", r"winogavil_dataset.csv .*nlphuji/winogavil")
    folder, key = tmp_path / "wds_geode_test", "fairness/geode"

    def shard(*members):
        wds_world.write_split(folder, [members], classnames="a\n" * 40, templates="{c}\n")

    image = ("s.png", wds_world.picture(0))
    shard(image, ("s.cls", b"1"))
    refused(tmp_path, key, r"sample 's' has no label .npy, which a data set with attributes needs")
    shard(image, ("s.npy", wds_world.vector([1, 2], np.int64)))
    refused(tmp_path, key, r"sample 's' in .* has no label .cls")
    shard(image, ("s.cls", b"1"), ("s.npy", wds_world.vector([1], np.int64)))
    refused(tmp_path, key, r"sample 's' in .* has 1 attributes .*; 2 were expected: region, country")
    shard(image, ("s.cls", b"1"), ("s.npy", wds_world.vector([0.5, 1])))
    refused(tmp_path, key, r"its label is float32 \[2\]; it should be a vector with an integer for each attribute")
    faces = tmp_path / "wds_fairface_test"
    shutil.copytree(planted / "wds_fairface_test", faces)
    (faces / "zeroshot_classification_templates.txt").write_text("race:a {c}\n")
    refused(tmp_path, "fairness/fairface", r"no template begins with gender:, as the class name 'gender:gender 0' does")
    (faces / "classnames.txt").write_text("race:a\nrace:b\n")
    refused(tmp_path, "fairness/fairface", r"sample 's1' in .* has race 3, but the class names have 2 of race:")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('"[""a""]",x', r"row 1, associations: a JSON list of words was expected"),
        ('"[""a""]",x,"[""b""]"', "row 1: associations are some of the candidates"),
        ('a,x,"[""b""]"', "row 1, candidates: a JSON list of words was expected"),
    ],
)
def test_a_wrong_table_of_cues_is_refused(tmp_path, row, said):
    world._plant_cues(tmp_path / "winogavil")
    (tmp_path / "winogavil/winogavil_dataset.csv").write_text(f"candidates,cue,associations\n{row}\n")
    refused(tmp_path, "misc/winogavil", said)
    (tmp_path / "winogavil/winogavil_dataset.csv").write_text("cue\nx\n")
    refused(tmp_path, "misc/winogavil", "has no column candidates")


# The main metrics of MobileCLIP-S1 in its authors' eval_results.jsonl, and what DataComp's aggregate_scores.py makes of
# them.
MOBILECLIP_S1 = [
    0.93468432127583, 0.95, 0.7918, 0.20026666666666668, 0.22826666666666667, 0.16815165876777252, 0.6132978723404255,
    0.6516666666666666, 0.26615864527629235, 0.8788910891089109, 0.5296912114014252, 0.72616, 0.6027432254514729,
    0.6485, 0.40253333333333335, 0.505, 0.8471333333333333, 0.2419127988748242, 0.8316, 0.6340045224507376,
    0.7282215765502517, 0.9296134465226487, 0.8169070512820513, 0.6046142578125, 0.5524437122460186,
    0.6495238095238095, 0.8488993906230569, 0.98525, 0.7126818323923718, 0.6809311616472035, 0.8007999956607819,
    0.531091958284378, 0.4777183004349281, 0.13453634759094166, 0.656770992545912, 0.0, 0.6226635575294495,
    0.8914405107498169,
]  # fmt: skip
AGGREGATED = {
    "ImageNet": 0.72616,
    "ImageNet dist. shifts": 0.6066524024281462,
    "VTAB": 0.612883159764605,
    "Retrieval": 0.603203418126696,
    "Average": 0.6125413135002757,
}


def test_means_are_those_of_datacomps_script():
    values = {each.setting: value for each, value in zip(COUNTED, MOBILECLIP_S1, strict=True)}
    assert means(values) == pytest.approx(AGGREGATED, abs=1e-12)
    del values["misc/winogavil"]
    made = means(values)
    assert (made["Retrieval"], made["Average"]) == (None, None)
    assert made["VTAB"] == pytest.approx(AGGREGATED["VTAB"], abs=1e-12)
