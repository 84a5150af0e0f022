"""A data root of small ImageNet-shaped trees made of real photos, in the form in which each data set is published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from PIL import Image

from testbed.corruptions import IMAGENET_C, SEVERITIES
from testbed.corruptions.frost_pictures import NAMES as FROST
from testbed.data.sets.imagenet import listed_classes, synsets

SIZE = 40
# How many samples the trees have.
SIZES = {
    "val": 1000,
    "imagenet-c": 1000,
    "stylized_imagenet": 1000,
    "imagenet-sketch": 1000,
    "imagenetv2": 1000,
    "imagenet-a": 200,
    "imagenet-r": 200,
    "imagenet-o": 5 + 3,
    "objectnet": 9,
    "val-on-objectnet-classes": 5,
    "val-on-vid-robust-classes": 6,
    "val-on-ytbb-robust-classes": 4,
    "val-on-openimages-classes": 4,
}
PLUGIN = f"""
from testbed.eval_settings.benchmark_families import imagenet as imagenet_base
imagenet_base.SIZES.update({{name: (size,) for name, size in {SIZES!r}.items()}})
imagenet_base.tenth = lambda size: size  # a tenth of a class of one is that one
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

def load():
    import torch
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(32, 1000))

registry.add_model(Model("little-net", StandardTransform(36, 32), load, 64, model_type="Standard training"))
"""
# Three of ObjectNet's classes, and the ImageNet classes that they are: by the line of the published list of names.
OBJECTNET = {
    "alarm_clock": ("Alarm clock", ["analog clock", "digital clock"]),
    "banana": ("Banana", ["banana"]),
    "backpack": ("Backpack", ["backpack, back pack", "mailbag"]),
    "air_freshener": ("Air freshener", []),
}
LABELS = {"analog clock": 409, "digital clock": 530, "banana": 954, "backpack, back pack": 414, "mailbag": 636}


def crop(photos: list[Any], number: int) -> Image.Image:
    """A piece of a photo; different for different numbers."""
    photo = photos[number % len(photos)]
    top, left = (7 * number) % (photo.shape[0] - SIZE), (13 * number) % (photo.shape[1] - SIZE)
    return Image.fromarray(photo[top : top + SIZE, left : left + SIZE])


def make_classes(root: Path, names: list[str], photos: list[Any], file: str) -> None:
    """One image for each class; ``file`` may hold ``{number}``."""
    for number, name in enumerate(names):
        (root / name).mkdir(parents=True)
        crop(photos, number).save(root / name / file.format(number=number + 1), quality=90)


def make_objectnet(root: Path, photos: list[Any]) -> None:
    """Three images for each of four classes, within a red border, and the mappings."""
    for row, folder in enumerate(OBJECTNET):
        (root / "images" / folder).mkdir(parents=True)
        for column in range(3):
            framed = Image.new("RGB", (SIZE + 4, SIZE + 4), (255, 0, 0))
            framed.paste(crop(photos, 500 + 3 * row + column), (2, 2))
            framed.save(root / "images" / folder / f"{column}.png")
    mappings = root / "mappings"
    mappings.mkdir()
    lines = [f"class {number}" for number in range(1000)]
    order = {str(logit): (logit + 17) % 1000 for logit in range(1000)}  # the list is in another order than the logits
    for name, logit in LABELS.items():
        lines[order[str(logit)]] = name
    (mappings / "imagenet_to_label_2012_v2").write_text("\n".join(lines) + "\n")
    (mappings / "pytorch_to_imagenet_2012_id.json").write_text(json.dumps(order))
    (mappings / "folder_to_objectnet_label.json").write_text(
        json.dumps({folder: label for folder, (label, _) in OBJECTNET.items()})
    )
    (mappings / "objectnet_to_imagenet_1k.json").write_text(
        json.dumps({label: "; ".join(names) for label, names in OBJECTNET.values() if names})
    )


# ImageNet's classes of three classes of videos.
VID_CLASSES = {"0": [404], "4": [7, 8, 9], "26": [33, 34]}
VID_SETS = {
    "a/000010.JPEG": ["a/000009.JPEG", "a/000011.JPEG"],
    "b/000005.JPEG": [],
    "c/000002.JPEG": ["c/000001.JPEG"],
}
VID_LABELS = {
    **{"a/000009.JPEG": [4], "a/000010.JPEG": [4, 26], "a/000011.JPEG": [26]},
    **{"b/000005.JPEG": [0], "c/000002.JPEG": [26], "c/000001.JPEG": [26]},
}


def make_vid_robust(root: Path, photos: list[Any]) -> None:
    """Three sets of frames in the published form."""
    for number, name in enumerate(VID_LABELS):
        path = root / "val" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        crop(photos, 700 + number).save(path)
    (root / "metadata").mkdir()
    files = {
        "pmsets.json": {f"val/{anchor}": [f"val/{each}" for each in around] for anchor, around in VID_SETS.items()},
        "labels.json": {f"val/{name}": labels for name, labels in VID_LABELS.items()},
        "rev_class_idx_map.json": VID_CLASSES,
    }
    for name, content in files.items():
        (root / "metadata" / name).write_text(json.dumps(content))


YTBB_WORDS = ["good", "unsure", "bad", "bird", "cat", "car"]
# What reviewers called a frame, and the class that it was chosen for (as the list of anchors has it).
YTBB_ANCHORS = {
    "vid1_100/frame-30.jpg": (["good"], 1),
    "vid2_200/frame-5.jpg": (["good", "cat"], 22),  # the list's 22 is car
    "vid3_300/frame-9.jpg": (["good", "unsure"], 7),
    "vid4_400/frame-9.jpg": (["good"], 7),  # a bad anchor, as the frames' reviewers found
    "vid5_500/frame-2.jpg": (["good"], 14),  # a class that ImageNet has not
}
YTBB_FRAMES = {
    ("vid1_100/frame-30.jpg", "vid1_100/frame-29.jpg"): ["similar"],
    ("vid1_100/frame-30.jpg", "vid1_100/frame-31.jpg"): ["similar", "blur-increase"],
    ("vid1_100/frame-30.jpg", "vid1_100/frame-41.jpg"): ["similar"],  # too far away
    ("vid2_200/frame-5.jpg", "vid2_200/frame-6.jpg"): ["similar", "correct"],
    ("vid2_200/frame-5.jpg", "vid2_200/frame-7.jpg"): ["dissimilar"],
    ("vid4_400/frame-9.jpg", "vid4_400/frame-8.jpg"): ["similar", "bad-anchor"],
}
YTBB_FRAME_WORDS = ["similar", "dissimilar", "correct", "blur-increase", "bad-anchor"]


def make_ytbb_robust(root: Path, photos: list[Any]) -> None:
    """Five anchors, of which three count, in the published form."""
    for number, name in enumerate({*YTBB_ANCHORS, *(frame for _, frame in YTBB_FRAMES)}):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        crop(photos, 800 + number).save(path)
    anchors = [
        {"key": f"frames/{name}", "notes": "", "labels": [YTBB_WORDS.index(word) for word in words]}
        for name, (words, _) in YTBB_ANCHORS.items()
    ]
    older = {
        "key": "frames/vid1_100/frame-30.jpg",
        "notes": "",
        "labels": [2],
    }  # an earlier review, which does not count
    frames = [
        {"key": f"{anchor},{frame}", "notes": "", "labels": [YTBB_FRAME_WORDS.index(word) for word in words]}
        for (anchor, frame), words in YTBB_FRAMES.items()
    ]
    files = {
        "anchor_labels.json": {"annotations": [older, *anchors], "labels": YTBB_WORDS},
        "pmk_labels.json": {"annotations": frames, "labels": YTBB_FRAME_WORDS},
        "ytbb_class_index.json": {"1": "bird", "7": "cat", "14": "skateboard", "22": "none", "23": "car"},
        "rev_class_idx_map.json": {"1": [7, 8], "7": [281], "23": [436]},
    }
    for name, content in files.items():
        (root / name).write_text(json.dumps(content))
    rows = [
        f"{name.partition('/')[0].rpartition('_')[0]},{name.partition('/')[0].rpartition('_')[2]},{label}"
        for name, (_, label) in YTBB_ANCHORS.items()
    ]
    (root / "ytbb_robustness_test_anchors_full.csv").write_text("\n".join(["ytid,time_ms,label", *rows]) + "\n")


# Four of ImageNet's classes, in the order of the published file, which is none.
OPENIMAGES_CLASSES = {"759": "/m/0118ms9c", "99": "/m/0dbvp", "1": "/m/03fj2", "954": "/m/09qck"}
# What people say of each image: label, confidence.
OPENIMAGES_LABELS = {
    "0a": [("/m/09qck", 1), ("/m/01g317", 1), ("/m/0dbvp", 0)],  # a person is none of the classes, and it is no goose
    "1b": [("/m/0dbvp", 1), ("/m/09qck", 1)],  # two of the classes
    "2c": [("/m/03fj2", 1)],
    "3d": [("/m/0dbvp", 0)],
    "4e": [("/m/0dbvp", 1)],
    "5f": [("/m/03fj2", 1)],
    "6a": [],
}
OPENIMAGES_TARGETS = {"0a": 954, "2c": 1, "4e": 99, "5f": 1}


def make_openimages(root: Path, photos: list[Any]) -> None:
    """Seven images, of which four count, in two folders, with their labels and the map of classes."""
    for number, image in enumerate(OPENIMAGES_LABELS):
        folder = root / f"part{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        crop(photos, 900 + number).save(folder / f"{image}.jpg")
    rows = [
        f"{image},verification,{label},{confidence}"
        for image, labels in OPENIMAGES_LABELS.items()
        for label, confidence in labels
    ]
    (root / "test-annotations-human-imagelabels.csv").write_text(
        "\n".join(["ImageID,Source,LabelName,Confidence", *rows]) + "\n"
    )
    (root / "ilsvrc_to_openimages.json").write_text(json.dumps(OPENIMAGES_CLASSES))


# How many images of no class each of three classes is taken for.
IMAGENET_O = {1: 2, 395: 1, 988: 2}


def make_imagenet_o(root: Path, photos: list[Any]) -> None:
    """Five images in folders of three classes."""
    for label, count in IMAGENET_O.items():
        (root / synsets()[label]).mkdir(parents=True)
        for number in range(count):
            crop(photos, 40 + 10 * label + number).save(root / synsets()[label] / f"{number}.JPEG")


def make_root(root: Path, photos: list[Any]) -> Path:
    """All of it."""
    wnids = list(synsets())
    make_classes(root / "val", wnids, photos, "ILSVRC2012_val_{number:08d}.JPEG")
    make_classes(root / "v2", [str(number) for number in range(1000)], photos[::-1], "{number}.jpeg")
    for which in "ar":
        names = [wnids[label] for label in listed_classes(which)]
        make_classes(root / f"imagenet-{which}", names, photos[1:] + photos[:1], "x.jpg")
    for name in ("stylized_imagenet", "imagenet-sketch"):
        os.symlink(root / "val", root / name)
    from testbed.eval_settings.imagenet_shifts import V2

    for name in V2:
        os.symlink(root / "v2", root / name)
    for corruption in IMAGENET_C:
        (root / "imagenet-c" / corruption).mkdir(parents=True)
        for severity in SEVERITIES:
            os.symlink(root / "val", root / "imagenet-c" / corruption / str(severity))
    make_objectnet(root / "objectnet-1.0", photos)
    make_vid_robust(root / "imagenet-vid-robust", photos)
    make_ytbb_robust(root / "ytbb-robust", photos)
    make_openimages(root / "openimages-test", photos)
    make_imagenet_o(root / "imagenet-o", photos)
    (root / "frost").mkdir()
    for number, name in enumerate(FROST):
        Image.fromarray(photos[number % len(photos)][:90, :120]).save(root / "frost" / name)
    (root / "world.py").write_text(PLUGIN)
    return root
