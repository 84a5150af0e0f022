"""A data root of small ImageNet-shaped trees made of real photos, in the form in which each data set is published."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from PIL import Image

from testbed.corruptions import IMAGENET_C, SEVERITIES
from testbed.corruptions.frost_pictures import NAMES as FROST
from testbed.data.imagenet import listed_classes, synsets

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
    "objectnet": 9,
    "val-on-objectnet-classes": 5,
}
PLUGIN = f"""
from testbed.eval_settings import imagenet_base
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
    (root / "frost").mkdir()
    for number, name in enumerate(FROST):
        Image.fromarray(photos[number % len(photos)][:90, :120]).save(root / "frost" / name)
    (root / "world.py").write_text(PLUGIN)
    return root
