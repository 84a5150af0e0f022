"""CLIP benchmark's data sets by name: what is listed, what a name opens, where class names and prompts come from."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import wds_world
from imagenet_world import make_objectnet
from torchvision_world import MAKERS, save, text

from testbed.data.language import prompts
from testbed.data.libraries.torchvision_sets import SETS
from testbed.data.sets.imagenet import synsets
from testbed.errors import DataError, MissingExtraError
from testbed.eval_settings.clip_benchmark_imagenet import BABEL_LANGUAGES
from testbed.eval_settings.clip_benchmark_sets import TORCHVISION
from testbed.eval_settings.clip_benchmark_vtab import TASKS
from testbed.inputs import ENV_CLASSNAMES, ENV_TEMPLATES, Inputs, using
from testbed.registry import registry
from testbed.registry.select import select

VTAB = """
    caltech101 cifar100 clevr_count_all clevr_closest_object_distance diabetic_retinopathy dmlab
    dsprites_label_orientation dsprites_label_x_position dtd eurosat kitti_closest_vehicle_distance flowers pets pcam
    resisc45 smallnorb_label_azimuth smallnorb_label_elevation svhn
""".split()
ROBUSTNESS = {"imagenetv2", "imagenet_sketch", "imagenet-a", "imagenet-r", "objectnet"}
REST = """
    imagenet1k fer2013 voc2007 voc2007_multilabel sun397 cars fgvc_aircraft mnist stl10 gtsrb country211 renderedsst2
    vtab/cifar10
""".split()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TESTBED_DATA", str(tmp_path))
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    for name in (ENV_CLASSNAMES, ENV_TEMPLATES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(prompts, "_PACKAGE", "no_clip_benchmark_here")
    return tmp_path


def setting(name: str) -> Any:
    return registry.get_eval_setting(name)


def prompts_of(name: str) -> list[list[str]]:
    found = setting(name)
    return found.prompts.texts(found.dataset.open().class_names)


# Names ------------------------------------------------------------------------------------------------------------


def test_the_names_are_listed_without_torch():
    code = (
        "import sys; from testbed.registry import registry; names = registry.eval_setting_names();"
        "print([name for name in ('torch', 'torchvision', 'datasets', 'open_clip', 'pandas') if name in sys.modules]);"
        "print(*names)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules, names = done.stdout.splitlines()
    assert modules == "[]"
    assert {"cifar10", "voc2007_multilabel", "vtab/dmlab", "imagenet1k.zeroshot.jp"} <= set(names.split())


@pytest.mark.parametrize(
    ("collection", "members"),
    [
        ("vtab", {"sun397", *(f"vtab/{task}" for task in VTAB)}),
        ("vtab+", {*REST, *ROBUSTNESS, *(f"vtab/{task}" for task in VTAB)}),
        ("imagenet_robustness", ROBUSTNESS),
    ],
)
def test_collections_are_clip_benchmarks(collection, members):
    registry.load()
    chosen = select(registry.eval_settings, registry.eval_setting_collections, [collection])
    assert set(chosen) == members
    assert len(chosen) == len(members) == {"vtab": 19, "vtab+": 36, "imagenet_robustness": 5}[collection]


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("imagenet1k.zeroshot.cn", "imagenet1k.zeroshot.zh"),
        ("imagenet_sketch.ja", "imagenet_sketch.zeroshot.jp"),
        ("country211.valid", "country211.valid"),
        ("pets.linear_probe.train-trainval.k5", "pets.linear_probe.k5.train-trainval"),
        ("imagenetv2", "imagenetv2"),
        ("vtab/svhn.linear_probe", "vtab/svhn.linear_probe"),
        ("hf/owner/name@plain.linear_probe", "hf/owner/name@plain.linear_probe"),
    ],
)
def test_names_are_known(given, canonical):
    registry.load()
    assert registry.eval_settings.canonical(given) == canonical


@pytest.mark.parametrize("name", ["cifar10.jp", "sun397.train", "pets.train", "vtab/nothing", "voc2007_multilabel.k5"])
def test_what_there_is_not_is_no_name(name):
    assert not registry.contains_eval_setting(name)


def test_every_data_set_has_the_splits_that_it_has_sizes_of():
    for name, facts in TORCHVISION.items():
        assert set(facts.sizes) <= set(SETS[name].needs)
        assert next(iter(SETS[name].needs)) == "test"
    assert len(set(BABEL_LANGUAGES)) == len(BABEL_LANGUAGES) == 93
    assert set(VTAB) <= set(TASKS)


# torchvision's ----------------------------------------------------------------------------------------------------


def test_a_named_data_set_opens_its_files_and_says_how_many_there_should_be(root, monkeypatch):
    MAKERS["dtd"](root, monkeypatch)
    made = setting("dtd")
    source = made.dataset.open()
    assert (made.task, made.size, len(source)) == ("classification", 1880, 2)
    with pytest.raises(DataError, match="dtd: 1,880 samples are expected, 2 were found"):
        made.samples.positions(source)
    assert made.dataset.spec() == {"torchvision": "dtd", "root": str(root / "dtd"), "split": "test"}
    assert setting("dtd.val").dataset.open().ids[0] == "dtd/images/striped/striped_2.jpg"


def test_prompts_are_made_of_own_names_where_these_serve(root, monkeypatch):
    MAKERS["dtd"](root, monkeypatch)
    text(root / "dtd" / "zeroshot_classification_templates.txt", "a {c} texture")
    assert prompts_of("dtd") == [["a polka-dotted texture"], ["a striped texture"]]


def test_names_that_say_nothing_are_no_prompts(root, monkeypatch):
    MAKERS["country211"](root, monkeypatch)
    text(root / "country211" / "templates.txt", "a photo i took in {c}.")
    with pytest.raises(DataError, match="'country211' has no class names"):
        prompts_of("country211")


def test_the_number_of_class_names_must_be_that_of_the_classes(root, monkeypatch):
    MAKERS["gtsrb"](root, monkeypatch)
    text(root / "gtsrb" / "classnames.txt", "stop", "go")
    text(root / "gtsrb" / "templates.txt", "a {c} sign")
    with pytest.raises(DataError, match=r"'gtsrb' has 43 classes; .*classnames\.txt has 2"):
        prompts_of("gtsrb")


def test_the_users_files_reach_the_settings(root, monkeypatch):
    MAKERS["gtsrb"](root, monkeypatch)
    (root / "n.json").write_text(json.dumps({"gtsrb": [f"sign {number}" for number in range(43)]}))
    (root / "t.json").write_text(json.dumps({"gtsrb": ["a {c}", "the {c}"]}))
    with using(Inputs.from_environment().but(class_names=root / "n.json", templates=root / "t.json")):
        assert prompts_of("gtsrb")[7] == ["a sign 7", "the sign 7"]


def test_templates_that_are_nowhere_are_asked_for(root, monkeypatch):
    MAKERS["food101"](root, monkeypatch)
    with pytest.raises(DataError, match=r"'food101' has no prompt templates.*--templates-file .*'\.\[prompts\]'"):
        prompts_of("food101")


@pytest.mark.parametrize(
    ("name", "classes"), [("cifar10", 10), ("imagenet1k", 1000), ("vtab/pets.linear_probe", 37), ("objectnet", 113)]
)
def test_a_classifier_of_other_classes_is_not_let_in(name, classes):
    assert setting(name).num_classes == classes


# VOC 2007 ---------------------------------------------------------------------------------------------------------

VOC_OBJECT = "<object><name>{}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"


@pytest.mark.parametrize("below", ["", "voc2007", "voc2007_multilabel"])
def test_voc_is_found_in_any_of_three_folders(below, root):
    folder = root / below / "VOCdevkit" / "VOC2007"
    save(folder / "JPEGImages/000001.jpg", 1)
    both = "".join(VOC_OBJECT.format(name) for name in ("dog", "cat", "dog"))
    text(folder / "Annotations/000001.xml", f"<annotation>{both}</annotation>")
    text(folder / "ImageSets/Main/test.txt", "000001")
    whole, objects = setting("voc2007_multilabel"), setting("voc2007")
    assert (whole.task, whole.size, objects.task, objects.size) == ("multilabel", 4952, "classification", 14976)
    assert whole.dataset.open().targets == [[7, 11]]
    assert objects.dataset.open().targets == [11, 7, 11]
    assert whole.dataset.spec() != objects.dataset.spec()


# ImageNets --------------------------------------------------------------------------------------------------------


def plant(folder: Path, names: Any) -> None:
    for name in names:
        save(folder / name / "x.png", 1)


def test_imagenets_are_those_of_other_settings(root):
    assert setting("imagenet1k").dataset.spec() == setting("val").dataset.spec()
    assert setting("imagenet1k.train").dataset.get_root() == root / "train"
    assert setting("imagenet_sketch").dataset.spec() == setting("imagenet-sketch").dataset.spec()
    v2 = setting("imagenetv2").dataset
    assert v2.spec() == setting("imagenetv2-matched-frequency-format-val").dataset.spec()
    (root / "imagenetv2-matched-frequency").mkdir()
    assert v2.spec() == setting("imagenetv2-matched-frequency").dataset.spec()
    assert [setting(name).size for name in ("imagenet1k", "imagenetv2", "imagenet_sketch")] == [50000, 10000, 50889]
    assert setting("imagenet1k.zeroshot.it").language == "it"


def test_objectnet_has_its_own_names(root, photos, monkeypatch):
    make_objectnet(root / "objectnet-1.0", photos)
    monkeypatch.setattr("testbed.data.sets.imagenet.templates", lambda: ["a photo of a {c}"])
    made = setting("objectnet")
    assert made.dataset.spec() == setting("objectnet-1.0-beta").dataset.spec()
    assert made.prompts.texts(None) == [
        ["a photo of a alarm clock"], ["a photo of a backpack"], ["a photo of a banana"],
    ]  # fmt: skip
    assert made.class_sublist is None
    assert made.class_groups is None


def test_babel_imagenet_is_the_part_of_val_that_has_names(root):
    plant(root / "val", synsets())
    (root / "babel_imagenet").mkdir()
    (root / "babel_imagenet/babel_imagenet.json").write_text(json.dumps({"DE": [[954, 2], ["Banane", "Weißer Hai"]]}))
    (root / "babel_imagenet/nllb_dist13b_prompts.json").write_text(json.dumps({"DE": ["ein Foto von {}"]}))
    made = setting("babel_imagenet.zeroshot.de")
    source = made.dataset.open()
    found = dict(zip(source.ids, source.targets, strict=True))
    assert found == {f"{synsets()[954]}/x.png": 0, f"{synsets()[2]}/x.png": 1}
    assert made.prompts.texts(source.class_names) == [["ein Foto von Banane"], ["ein Foto von Weißer Hai"]]


# VTAB -------------------------------------------------------------------------------------------------------------


def test_vtab_is_read_from_webdatasets(root):
    shard = wds_world.samples({"s0": b"1", "s1": b"0"})
    wds_world.write_split(root / "wds_vtab-pcam", [shard], classnames="a\nb\n", templates="of {c}\n")
    made = setting("vtab/pcam")
    assert made.dataset.open().targets == [1, 0]
    assert made.dataset.spec() == setting("wds/vtab/pcam").dataset.spec()
    assert prompts_of("vtab/pcam") == prompts_of("wds/vtab/pcam") == [["of a"], ["of b"]]


@pytest.mark.parametrize("key", ["pcam", "vtab/pcam", "wds/vtab/pcam"])
def test_the_users_templates_come_before_those_of_a_webdataset(key, root, monkeypatch):
    shard = wds_world.samples({"s0": b"1", "s1": b"0"})
    wds_world.write_split(root / "wds_vtab-pcam", [shard], classnames="a\nb\n", templates="of {c}\n")
    (root / "t.json").write_text(json.dumps({key: ["my {c}"]}))
    monkeypatch.setenv(ENV_TEMPLATES, str(root / "t.json"))
    assert prompts_of("wds/vtab/pcam") == [["my a"], ["my b"]]


def test_what_is_missing_of_vtab_is_named(root):
    with pytest.raises(DataError, match=r"vtab/dmlab: .*folder wds_vtab-dmlab, .*or tfds/dmlab as TFDS prepares it"):
        setting("vtab/dmlab").dataset.open()
    with pytest.raises(DataError) as caught:
        setting("vtab/clevr_count_all").dataset.open()
    assert "tfds" not in str(caught.value)


def test_vtab_falls_back_on_a_prepared_tfds(root, monkeypatch):
    (root / "tfds" / "cifar10").mkdir(parents=True)
    assert setting("vtab/cifar10").dataset.spec() == {"tfds": "cifar10", "root": str(root / "tfds"), "split": "test"}
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    for name in ("vtab/cifar10", "tfds/cifar10"):
        with pytest.raises(MissingExtraError, match=r"tensorflow-datasets: pip install -e '\.\[tfds\]'"):
            setting(name).dataset.open()


# Image folders ----------------------------------------------------------------------------------------------------


def test_a_folder_of_classes_is_a_data_set(root):
    plant(root / "flat-pets", ["cat", "dog"])
    text(root / "flat-pets/classnames.txt", "tabby", "")
    text(root / "flat-pets/templates.txt", "a {c}!")
    source = setting("folder/flat-pets").dataset.open()
    assert (source.ids, source.targets, source.class_names) == (["cat/x.png", "dog/x.png"], [0, 1], ["tabby", ""])
    assert prompts_of("folder/flat-pets") == [["a tabby!"], ["a !"]]
    with pytest.raises(DataError, match="folder/flat-pets has no split 'train'"):
        setting("folder/flat-pets.train").dataset.open()
    text(root / "flat-pets/classnames.txt", "cat", "dog", "owl")
    with pytest.raises(DataError, match=r"classnames\.txt has 3 class names, but .* has 2 folders"):
        setting("folder/flat-pets").dataset.open()
    for split in ("train", "test"):
        plant(root / "split-pets" / split, ["cat", "dog", "owl"])
    assert setting("folder/split-pets").dataset.get_root() == root / "split-pets" / "test"
    assert len(setting("folder/split-pets.train").dataset.open()) == 3
    assert setting("folder/split-pets.linear_probe").task_options["train"] == "folder/split-pets.train"


@pytest.mark.parametrize("name", ["folder/../secret", "folder//etc"])
def test_a_folder_is_below_the_data_root(name, root):
    with pytest.raises(DataError, match="is a folder below the data root"):
        setting(name).dataset.open()
