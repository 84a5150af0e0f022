"""Published shifts of ImageNet from tiny trees in the form in which they are published, as a user runs them.

An image's colour is a class of ImageNet, and the model is sure of this class.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from PIL import Image

from testbed.data.sets.class_folders import classes_of
from testbed.data.sets.imagenet import synsets
from testbed.db.store import Store
from testbed.errors import DataError
from testbed.eval_settings.background_shifts import DISTORTIONS, VARIANTS
from testbed.eval_settings.imagenet_c_bar import IMAGENET_3DCC
from testbed.inputs import Inputs, using
from testbed.registry import registry

SURE = 10.0  # the logit of the class that an image shows; that of the others is 0
PLUGIN = f"""
from testbed.eval_settings.benchmark_families import imagenet as imagenet_base
imagenet_base.SIZES.update({{name: (None,) for name in imagenet_base.SIZES if name not in ("val", "imagenet-c")}})
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def load():
    import torch
    class Reader(torch.nn.Module):
        def forward(self, images):
            red, green = (images[:, channel].mean((1, 2)).mul(255).round().long() for channel in (0, 1))
            labels = (red * 4 + green // 64).clamp(0, 999)
            return torch.nn.functional.one_hot(labels, 1000).float() * {SURE}
    return Reader()

registry.add_model(Model("reader", StandardTransform(16, 16), load, 8))
"""
C_BAR = [f"{synsets()[label]}/ILSVRC2012_val_{label:08d}.png" for label in (0, 7, 404)]
HARD_IMAGENET = [f"{synsets()[label]}/ILSVRC2012_val_{label:08d}.png" for label in (537, 795)]
EDITED = ["ILSVRC2012_val_00000003.JPEG", "ILSVRC2012_val_00000004.JPEG"]
# Setting → what its folder's files show, and the metrics that this gives.
TREES = {
    "imagenet-c-bar.perlin_noise.2_on-disk.part": (
        "imagenet-c-bar/perlin_noise/2",
        dict(zip(C_BAR, (0, 8, 404), strict=True)),
        {"top1": 2 / 3},
    ),
    "imagenet-c-bar.caustic_refraction.1_on-disk.part": (
        "ImageNet-C-Bar/caustic_refraction/2.35",
        dict(zip(C_BAR, (0, 7, 404), strict=True)),
        {"top1": 1},
    ),
    "imagenet-3dcc.fog_3d.5.part": ("ImageNet-3DCC/fog_3d/5", {C_BAR[1]: 7, C_BAR[2]: 0}, {"top1": 0.5}),
    "laion-c.mosaic.2": (
        "laion-c/mosaic/intensity_level_2",
        {"ball/a.png": 430, "bird/b.png": 281, "car_truck/c.png": 864, "tools/d.png": 491},
        {"top1": 0.75},
    ),
    "imagenet-9.mixed_same": (
        "bg_challenge/mixed_same/val",
        {"00_dog/a.png": 151, "02_wheeled vehicle/b.png": 999, "08_fish/c.png": 1, "08_fish/d.png": 151},
        {"top1": 0.5},
    ),
    "imagenet-9.mixed_rand": (
        "bg_challenge/mixed_rand/val",
        {"00_dog/a.png": 0, "02_wheeled vehicle/b.png": 436, "08_fish/c.png": 999, "08_fish/d.png": 151},
        {"top1": 0.25},
    ),
    "counteranimal.common": (
        "counteranimal/LAION-final",
        {"100 black swan/common-water/a.png": 100, "10 brambling/common-grass/b.png": 11},
        {"top1": 0.5, "mean_per_class_recall": 0.5},
    ),
    "counteranimal.counter": (
        "counteranimal/LAION-final",
        {"100 black swan/counter-earth/c.png": 99, "10 brambling/counter-sky/d.png": 11},
        {"top1": 0},
    ),
    "imagenet-d-diffusion.texture": (
        "ImageNet-D/texture",
        {"alarm_clock/a.png": 530, "alarm_clock/b.png": 409, "bicycle/c.png": 0, "wok/d.png": 909},
        {"top1": 0.75},
    ),
    "ninco": (
        "NINCO/NINCO_OOD_classes",
        {"cup_cakes/a b.png": 1, "Caracal caracal caracal/b.png": 2},
        {"confidence": math.exp(SURE) / (math.exp(SURE) + 999)},
    ),
    "si-score.size": ("si-score/object_size", {"ambulance/a.png": 407, "armadillo/b.png": 0}, {"top1": 0.5}),
    "pug-imagenet": (
        "PUG_ImageNet/Worlds",
        {"Goldfish/a.png": 1, "Elephant/b.png": 386, "Elephant/c.png": 5, "Goldfish/d.png": 385},
        {"top1": 0.5},
    ),
    "imagenet-e.full": ("ImageNet-E/full", dict(zip(EDITED, (3, 9), strict=True)), {"top1": 0.5}),
    "imagenet-e.size_-20": (
        "ImageNet-E/size_-20",
        {name.replace("JPEG", "png"): label for name, label in zip(EDITED, (3, 4), strict=True)},
        {"top1": 1},
    ),
    "hard-imagenet": ("val", dict(zip(HARD_IMAGENET, (537, 3), strict=True)), {"top1": 0.5}),
    "imagenet-hard": ("imagenet-hard", {"a.png": 1, "b/c.png": 5, "d.png": 0}, {"top1": 2 / 3}),
    "imagenet-hard-4k": ("hf/taesiri/imagenet-hard-4k/data", {"a.png": 1, "b/c.png": 5, "d.png": 0}, {"top1": 2 / 3}),
}
# Of ImageNet-Hard's images, in the order of their names.
HARD_LABELS = [[1, 3], [4, 5], [7]]
HARD_ORIGINS = ["imagenet_a", "imagenet_v2", "imagenet_a"]


def hard_rows(folder: Path) -> list[dict]:
    """The rows of ImageNet-Hard's table."""
    files = sorted(folder.rglob("*.png"), key=str)
    parts = zip(files, HARD_LABELS, HARD_ORIGINS, strict=True)
    return [
        {"image": {"bytes": file.read_bytes(), "path": None}, "file": file, "label": labels, "origin": origin}
        for file, labels, origin in parts
    ]


def export_hard(folder: Path) -> None:
    """Lists the images of a folder as the Hub's image folders do."""
    lines = [
        json.dumps({"file_name": str(row["file"].relative_to(folder)), "label": row["label"], "origin": row["origin"]})
        for row in hard_rows(folder)
    ]
    (folder / "metadata.jsonl").write_text("\n".join(lines) + "\n")


def pack_hard(folder: Path) -> None:
    """Replaces the images of a folder by parquet files, of which one has two groups of rows."""
    rows = [{key: row[key] for key in ("image", "label", "origin")} for row in hard_rows(folder)]
    for number, part in enumerate((rows[:2], rows[2:])):
        path = folder / f"validation-{number:05}-of-00002.parquet"
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(part), path, row_group_size=1)
    for file in list(folder.rglob("*.png")):
        file.unlink()


def make_masks(folder: Path) -> None:
    """Makes Hard ImageNet's masks; its images are in ``val``, among others."""
    folder.mkdir(parents=True)
    for name in HARD_IMAGENET:
        Image.new("L", (16, 16), 255).save(folder / name.replace("/", "_"))


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("shifts")
    for folder, files, _ in TREES.values():
        for number, (name, label) in enumerate(files.items()):
            path = root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # Blue tells the images of a set apart; the model does not look at it.
            Image.new("RGB", (16, 16), (label // 4, 64 * (label % 4), number)).save(path, "PNG")
    (root / "PUG_ImageNet" / "class_to_imagenet_idx.json").write_text(
        json.dumps({"Goldfish": [1, 0], "Elephant": [385, 386, 1]})
    )
    (root / "ImageNet-E/labels.txt").write_text("\n".join(f"{name}\t{int(name[-7:-5])}" for name in EDITED))
    export_hard(root / "imagenet-hard")
    pack_hard(root / "hf/taesiri/imagenet-hard-4k/data")
    make_masks(root / "hardImageNet/val")
    for name in C_BAR:
        (root / "val" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (120, 60, 30)).save(root / "val" / name)
    (root / "reader.py").write_text(PLUGIN)
    return root


def test_each_runs_from_its_published_form(program, trees, tmp_path):
    made = [f"val.part+imagenet-c-bar.{name}.3" for name in ("caustic_refraction", "sparkles")]
    words = ("--plugin", str(trees / "reader.py"), "--data-root", str(trees), "--executor", "inline", "--json")
    done = program("testbed", "run", "reader", "--on", *TREES, *made, *words)
    outcomes = {each["setting"]: each["status"] for each in json.loads(done.stdout)["outcomes"]}
    assert outcomes == dict.fromkeys([*TREES, *made], "complete")
    with Store.open(str(tmp_path / "testbed.db")) as store:
        results = store.results.find(["reader"], slices=["overall"])
    for setting, (_, files, expected) in TREES.items():
        found = {each.metric: each for each in results if each.eval_setting == setting}
        assert {name: found[name].value for name in expected} == pytest.approx(expected), setting
        assert found[next(iter(expected))].n == len(files)
    for name in ("imagenet-hard", "imagenet-hard-4k"):
        with using(Inputs.from_environment().but(data_root=str(trees))):
            source = registry.get_eval_setting(name).dataset.open()
        assert [each["origin"] for each in source.slices] == HARD_ORIGINS


@pytest.mark.parametrize(
    ("setting", "folder", "source"),
    [
        ("imagenet-c-bar.sparkles.3_on-disk", "imagenet-c-bar/sparkles/3", "imagenet_c_bar.tar.gz"),
        ("imagenet-3dcc.flash.3", "imagenet-3dcc/flash/3", "3dcc/imagenet_3dcc/flash.tar.gz"),
        ("laion-c.stickers.1", "laion-c/stickers/intensity_level_1", "zenodo.org/records/14051887"),
        ("imagenet-9.only_fg", "imagenet-9/only_fg/val", "MadryLab/backgrounds_challenge"),
        ("counteranimal.common", "counteranimal/LAION-final", "counteranimal.github.io"),
        ("imagenet-d-diffusion.material", "ImageNet-D/material", "zcs15/ImageNet-D"),
        ("si-score.location", "si-score/object_location", "s3://si-score-dataset/object_location/"),
        ("pug-imagenet", "PUG_ImageNet/class_to_imagenet_idx.json", "PUG_IMAGENET.tar.gz"),
        ("hard-imagenet", "hardImageNet/val", "hardImageNet.zip of https://github.com/mmoayeri/HardImageNet"),
        ("imagenet-e.full", "ImageNet-E/full", "https://github.com/alibaba/easyrobust links"),
        ("imagenet-hard", "imagenet-hard", "taesiri/imagenet-hard (split validation)"),
        ("ninco-unit-tests", "NINCO/NINCO_OOD_unit_tests", "zenodo.org/records/8013288"),
    ],
)
def test_a_missing_folder_is_named_with_what_to_fetch(setting, folder, source, tmp_path):
    with using(Inputs.from_environment().but(data_root=str(tmp_path))), pytest.raises(DataError) as refused:
        registry.get_eval_setting(setting).dataset.open()
    for words in (str(tmp_path / folder), source):
        assert words in str(refused.value)


def test_hard_imagenet_says_that_imagenets_own_images_are_missing(tmp_path):
    make_masks(tmp_path / "hardImageNet/val")
    with (
        using(Inputs.from_environment().but(data_root=str(tmp_path))),
        pytest.raises(DataError, match="val does not exist; it should hold ImageNet's validation images"),
    ):
        registry.get_eval_setting("hard-imagenet").dataset.open()


def test_a_mask_with_another_name_is_refused(tmp_path):
    make_masks(tmp_path / "hardImageNet/val")
    (tmp_path / "val").mkdir()
    Image.new("L", (16, 16)).save(tmp_path / "hardImageNet/val/dog_sled.png")
    with (
        using(Inputs.from_environment().but(data_root=str(tmp_path))),
        pytest.raises(DataError, match=r"the file dog_sled\.png is named otherwise"),
    ):
        registry.get_eval_setting("hard-imagenet").dataset.open()


def test_an_unknown_folder_is_refused(tmp_path):
    (tmp_path / "laion-c/mosaic/intensity_level_2/balls").mkdir(parents=True)
    with (
        using(Inputs.from_environment().but(data_root=str(tmp_path))),
        pytest.raises(DataError, match="intensity_level_2/balls is unknown"),
    ):
        registry.get_eval_setting("laion-c.mosaic.2").dataset.open()


def test_all_are_registered_and_their_classes_are_disjoint():
    names = set(registry.eval_setting_names())
    assert {f"laion-c.{each}.{level}" for each in DISTORTIONS for level in range(1, 6)} <= names
    assert {f"imagenet-9.{variant}" for variant in VARIANTS} <= names
    assert {f"imagenet-3dcc.{each}.{level}" for each in IMAGENET_3DCC for level in range(1, 6)} <= names
    assert len([name for name in names if name.startswith("imagenet-c-bar.")]) == 100
    for data_set, classes, labels in (("laion-c", 16, 285), ("imagenet-9", 9, 370)):
        groups = classes_of(data_set)
        assert (len(groups), len({label for group in groups.values() for label in group})) == (classes, labels)
        assert sum(map(len, groups.values())) == labels
    assert len(classes_of("imagenet-d")) == 113


@pytest.mark.parametrize("text", ["[1]", '{"Goldfish": 1}', '{"Goldfish": []}', '{"Goldfish": [1000]}', "{"])
def test_a_wrong_file_of_classes_is_refused(text, tmp_path):
    (tmp_path / "PUG_ImageNet").mkdir()
    (tmp_path / "PUG_ImageNet" / "class_to_imagenet_idx.json").write_text(text)
    with (
        using(Inputs.from_environment().but(data_root=str(tmp_path))),
        pytest.raises(DataError, match=r"class_to_imagenet_idx.json (should map each class|cannot be read)"),
    ):
        registry.get_eval_setting("pug-imagenet").dataset.open()


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (None, r"labels\.txt does not exist; .*there are: full, size_-20"),
        ("a.JPEG\t1\nb.JPEG\t1", "full lacks 1 of the 2 images that labels.txt lists; the first is b"),
        ("a.JPEG\t1\nb.JPEG 2", r"labels\.txt, line 2: 'b\.JPEG 2'; expected the name"),
        ("a.JPEG\t1000", "expected the name of an image, a tab and its class from 0 to 999"),
    ],
)
def test_edited_images_and_their_labels_belong_together(labels, words, tmp_path):
    for edit in ("full", "size_-20"):
        (tmp_path / "ImageNet-E" / edit).mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(tmp_path / "ImageNet-E/full/a.png")
    if labels is not None:
        (tmp_path / "ImageNet-E/labels.txt").write_text(labels)
    with using(Inputs.from_environment().but(data_root=str(tmp_path))):
        assert {"imagenet-e.full", "imagenet-e.size_-20"} <= set(registry.eval_setting_names())
        with pytest.raises(DataError, match=words):
            registry.get_eval_setting("imagenet-e.full").dataset.open()


def test_a_wrong_line_of_an_exported_folder_is_named(tmp_path):
    folder = tmp_path / "imagenet-hard"
    folder.mkdir()
    for text, words in (
        ('{"file_name": "a.png", "label": [1]}\n{"label": [2]}\n', "metadata.jsonl, line 2: expected an object with"),
        ('{"file_name": "a.png", "label": [1000]}\n', r"row 0 has the label \[1000\]; expected classes from 0 to 999"),
    ):
        (folder / "metadata.jsonl").write_text(text)
        with (
            using(Inputs.from_environment().but(data_root=str(tmp_path))),
            pytest.raises(DataError, match=words),
        ):
            registry.get_eval_setting("imagenet-hard").dataset.open()


def test_published_accuracies_are_about_settings_that_there_are():
    names = set(registry.eval_setting_names())
    published = {
        model: {each.eval_setting: each.value for each in registry.get_model(model).published}
        for model in ("resnet50", "vgg16_bn", "alexnet")
    }
    assert {setting for of in published.values() for setting in of} <= names
    gap = published["resnet50"]["imagenet-9.mixed_same"] - published["resnet50"]["imagenet-9.mixed_rand"]
    assert gap == pytest.approx(0.073)
    assert published["alexnet"]["imagenet-hard"] == pytest.approx(0.0734)
    assert {each.eval_setting for each in registry.get_model("resnet50.imagenet1k_v2").published} == {"val"}
