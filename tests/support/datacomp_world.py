"""Tiny copies of DataComp's data sets in the forms in which it distributes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import wds_world as world
from caption_world import draw, write

from testbed.eval_settings.benchmark_families.datacomp import SETS

# Classes of each webdataset.
CLASSES = {
    "vtab/caltech101": 102, "cifar10": 10, "vtab/cifar100": 100, "vtab/clevr_count_all": 8,
    "vtab/clevr_closest_object_distance": 6, "country211": 211, "vtab/dtd": 47, "vtab/eurosat": 10,
    "fgvc_aircraft": 100, "food101": 101, "gtsrb": 43, "imagenet1k": 1000, "imagenet_sketch": 1000,
    "imagenetv2": 1000, "imagenet-a": 200, "imagenet-o": 200, "imagenet-r": 200,
    "vtab/kitti_closest_vehicle_distance": 4, "mnist": 10, "objectnet": 113, "vtab/flowers": 102, "vtab/pets": 37,
    "voc2007": 20, "vtab/pcam": 2, "renderedsst2": 2, "vtab/resisc45": 45, "cars": 196, "stl10": 10, "sun397": 397,
    "vtab/svhn": 10, "wilds/iwildcam": 182, "wilds/camelyon17": 2, "wilds/fmow": 62, "fairness/dollar_street": 58,
    "fairness/geode": 40,
}  # fmt: skip
# The integers in each sample's .npy file: of the samples 0 to 3.
ATTRIBUTES = {
    "wilds/iwildcam": [[s, *[0] * 7, 1] for s in range(4)],
    "wilds/camelyon17": [[2, 20 + s % 2, 1] for s in range(4)],
    "wilds/fmow": [[[0, 3, 5, 0][s], 14 + s % 2, 1] for s in range(4)],
    "fairness/dollar_street": [[s % 2, 9, 1] for s in range(4)],
    "fairness/geode": [[s // 2, 7] for s in range(4)],
    "fairness/fairface": [[s, s % 2, 2 * (s % 2) + 1, s % 2] for s in range(4)],
    "fairness/utkface": [[s, s % 2, 4 - s, s != 3] for s in range(4)],
}
OBJECTIVES = {"race": 7, "gender": 2, "age": 9, "toxic": 22}
CUES = [("Eagle", ["ash", "cone", "disc", "eel", "fog"], ["eel", "ash"]), ("wood", list("abcdefghij"), ["a", "j"])]


def folder_of(key: str) -> str:
    """The folder of a webdataset, as ``download_evalsets.py`` names it."""
    return f"wds_{key.removeprefix('fairness/').replace('/', '-')}_test"


def plant(root: Path) -> None:
    """Writes all data sets, each of four samples, below a folder."""
    for key, count in CLASSES.items():
        names = "".join(f"thing {number}\n" for number in range(count))
        members = _members(key, [min(count - 1, number) for number in range(4)])
        world.write_split(root / folder_of(key), [members], classnames=names, templates="a {c} here.\n")
    for key in ("fairness/fairface", "fairness/utkface"):
        names = "".join(f"{kind}:{kind} {number}\n" for kind, count in OBJECTIVES.items() for number in range(count))
        templates = "".join(f"{kind}:a {{c}} face.\n" for kind in OBJECTIVES)
        world.write_split(root / folder_of(key), [_members(key, None)], classnames=names, templates=templates)
    _plant_captions(root)
    _plant_cues(root / "winogavil")


def keys() -> list[str]:
    return [each.key for each in SETS]


def _members(key: str, labels: list[int] | None) -> list[tuple[str, bytes]]:
    members = []
    for number in range(4):
        members.append((f"s{number}.png", world.picture(number)))
        if labels is not None:
            members.append((f"s{number}.cls", str(labels[number]).encode()))
        if key in ATTRIBUTES:
            members.append((f"s{number}.npy", world.vector(ATTRIBUTES[key][number], np.int64)))
    return members


def _plant_captions(root: Path) -> None:
    images = [f"{number}.jpg" for number in range(3)]
    for name, folder in (("flickr30k", "flickr30k-images"), ("mscoco_captions", "val2014")):
        for number, image in enumerate(images):
            draw(root / name / folder / image, number * 60)
        entries = [
            {"split": "test", "filename": image, "filepath": folder, "sentences": [{"raw": f"caption {image}"}]}
            for image in images
        ]
        file = f"dataset_{'coco' if name.startswith('ms') else name}.json"
        write(root / name / file, {"dataset": name, "images": entries})


def _plant_cues(root: Path) -> None:
    rows = [",candidates,cue,associations,ID"]
    for number, (cue, candidates, right) in enumerate(CUES):
        for place, candidate in enumerate(candidates):
            draw(root / "winogavil_images" / f"{candidate}.jpg", place * 25)
        texts = ['"' + json.dumps(words).replace('"', '""') + '"' for words in (candidates, right)]
        rows.append(f"{number},{texts[0]},{cue},{texts[1]},{number}")
    write(root / "winogavil_dataset.csv", "\n".join(rows) + "\n")
