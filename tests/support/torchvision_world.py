"""Made data sets in the formats that torchvision reads: a few images of each, in the files that its archives unpack to.

Nothing here is a published image. Where torchvision compares checksums, those of the made files are patched into its
lists.
"""

from __future__ import annotations

import csv
import hashlib
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from testbed.data.libraries.torchvision_sets import SETS

SPLITS = ("test", "train")


def pixels(number: int, shape: tuple[int, ...] = (12, 14, 3)) -> np.ndarray[Any, Any]:
    """Noise, other noise for each number."""
    return np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8)


def save(path: Path, number: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(number)).save(path)
    return path


def text(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def savemat(path: Path, **content: Any) -> None:
    from scipy.io import savemat as write

    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, content)


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def _classes_of(name: str, count: int, patch: pytest.MonkeyPatch) -> None:
    patch.setitem(SETS, name, replace(SETS[name], classes=count))


def cifar(root: Path, patch: pytest.MonkeyPatch, name: str) -> None:
    from torchvision import datasets

    reader = getattr(datasets, SETS[name].reader)
    folder = root / reader.base_folder
    folder.mkdir(parents=True)
    key = "labels" if name == "cifar10" else "fine_labels"

    def write(file: str, content: Any) -> str:
        (folder / file).write_bytes(pickle.dumps(content))
        return md5(folder / file)

    for attribute in ("train_list", "test_list"):
        batches = []
        for number, (file, _) in enumerate(getattr(reader, attribute)):
            data = np.stack([pixels(10 * number + each, (3072,)) for each in range(3)])
            batches.append([file, write(file, {"data": data, key: [2, number % 3, 0]})])
        patch.setattr(reader, attribute, batches)
    meta = write(reader.meta["filename"], {reader.meta["key"]: ["cat", "dog", "owl"]})
    patch.setattr(reader, "meta", {**reader.meta, "md5": meta})
    _classes_of(name, 3, patch)


def mnist(root: Path, patch: pytest.MonkeyPatch) -> None:
    folder = root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for begin, count in (("t10k", 4), ("train", 5)):
        header = b"\x00\x00\x08\x03" + b"".join(size.to_bytes(4, "big") for size in (count, 28, 28))
        (folder / f"{begin}-images-idx3-ubyte").write_bytes(header + pixels(count, (count, 28, 28)).tobytes())
        labels = bytes((3 * each) % 10 for each in range(count))
        (folder / f"{begin}-labels-idx1-ubyte").write_bytes(b"\x00\x00\x08\x01" + count.to_bytes(4, "big") + labels)


def stl10(root: Path, patch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import STL10

    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    text(folder / "class_names.txt", "airplane", "bird", "car")
    for split, count in (("test", 3), ("train", 4)):
        (folder / f"{split}_X.bin").write_bytes(pixels(count, (count, 3, 96, 96)).tobytes())
        (folder / f"{split}_y.bin").write_bytes(bytes(1 + each % 3 for each in range(count)))
    for attribute in ("train_list", "test_list"):
        known = getattr(STL10, attribute)
        made = [[file, md5(folder / file) if (folder / file).exists() else old] for file, old in known]
        patch.setattr(STL10, attribute, made)
    _classes_of("stl10", 3, patch)


def svhn(root: Path, patch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import SVHN

    made = dict(SVHN.split_list)
    for split in SPLITS:
        savemat(root / f"{split}_32x32.mat", X=pixels(3, (32, 32, 3, 4)), y=np.array([[10], [1], [9], [2]], np.uint8))
        made[split] = [*SVHN.split_list[split][:2], md5(root / f"{split}_32x32.mat")]
    patch.setattr(SVHN, "split_list", made)


def food101(root: Path, patch: pytest.MonkeyPatch) -> None:
    for split in SPLITS:
        lists = {"pad_thai": [f"pad_thai/{split}1"], "apple_pie": [f"apple_pie/{split}2", f"apple_pie/{split}1"]}
        (root / "food-101" / "meta").mkdir(parents=True, exist_ok=True)
        (root / "food-101" / "meta" / f"{split}.json").write_text(json.dumps(lists))
        for number, file in enumerate(file for files in lists.values() for file in files):
            save(root / "food-101" / "images" / f"{file}.jpg", number)
    _classes_of("food101", 2, patch)


def cars(root: Path, patch: pytest.MonkeyPatch) -> None:
    folder = root / "stanford_cars"
    kind = [("class", object), ("fname", object)]
    for split, file in (("test", "cars_test_annos_withlabels.mat"), ("train", "devkit/cars_train_annos.mat")):
        rows = np.array([(2, "00002.jpg"), (1, "00001.jpg")], dtype=kind)
        savemat(folder / file, annotations=rows)
        for number in (1, 2):
            save(folder / f"cars_{split}" / f"{number:05d}.jpg", number)
    savemat(folder / "devkit" / "cars_meta.mat", class_names=np.array(["AM General Hummer", "Audi TT"], dtype=object))
    _classes_of("cars", 2, patch)


def gtsrb(root: Path, patch: pytest.MonkeyPatch) -> None:
    folder = root / "gtsrb"
    images = folder / "GTSRB" / "Final_Test" / "Images"
    for number, label in enumerate((1, 0)):
        save(images / f"{number:05d}.ppm", number)
        save(folder / "GTSRB" / "Training" / f"{label:05d}" / "00000_00000.ppm", 5 + label)
    with (folder / "GT-final_test.csv").open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerows([["Filename", "ClassId"], ["00000.ppm", 1], ["00001.ppm", 0]])
    _classes_of("gtsrb", 2, patch)


def fgvc_aircraft(root: Path, patch: pytest.MonkeyPatch) -> None:
    data = root / "fgvc-aircraft-2013b" / "data"
    text(data / "variants.txt", "707-320", "Boeing 717")
    for number, split in enumerate(("test", "train", "val", "trainval")):
        text(data / f"images_variant_{split}.txt", f"{number}1 Boeing 717", f"{number}2 707-320")
        for each in (1, 2):
            save(data / "images" / f"{number}{each}.jpg", 10 * number + each)
    _classes_of("fgvc_aircraft", 2, patch)


def dtd(root: Path, patch: pytest.MonkeyPatch) -> None:
    for number, split in enumerate(("test", "train", "val")):
        text(
            root / "dtd/dtd/labels" / f"{split}1.txt",
            f"striped/striped_{number}.jpg",
            f"polka-dotted/dots_{number}.jpg",
        )
        for each, file in enumerate((f"striped/striped_{number}", f"polka-dotted/dots_{number}")):
            save(root / "dtd/dtd/images" / f"{file}.jpg", 10 * number + each)
    _classes_of("dtd", 2, patch)


def flowers(root: Path, patch: pytest.MonkeyPatch) -> None:
    from torchvision.datasets import Flowers102

    folder = root / "flowers-102"
    savemat(folder / "setid.mat", trnid=[[1, 2]], valid=[[3, 4]], tstid=[[6, 5]])
    savemat(folder / "imagelabels.mat", labels=[[1, 102, 3, 4, 5, 77]])
    for number in range(1, 7):
        save(folder / "jpg" / f"image_{number:05d}.jpg", number)
    files = dict(Flowers102._file_dict)
    for key in ("label", "setid"):
        files[key] = (files[key][0], md5(folder / files[key][0]))
    patch.setattr(Flowers102, "_file_dict", files)


def renderedsst2(root: Path, patch: pytest.MonkeyPatch) -> None:
    for folder in ("test", "train", "valid"):
        for number, label in enumerate(("negative", "positive")):
            save(root / "rendered-sst2" / folder / label / f"{number}.png", number)


def country211(root: Path, patch: pytest.MonkeyPatch) -> None:
    for split in ("test", "train", "valid"):
        for number, label in enumerate(("AD", "AE", "ZW")):
            save(root / "country211" / split / label / f"{split}{number}.jpg", number)
    _classes_of("country211", 3, patch)


def pets(root: Path, patch: pytest.MonkeyPatch) -> None:
    folder = root / "oxford-iiit-pet"
    for split in ("test", "trainval"):
        lines = [f"Abyssinian_{split} 1 1 1", f"american_bulldog_{split} 2 2 1"]
        text(folder / "annotations" / f"{split}.txt", *lines[::-1])
        for number, line in enumerate(lines):
            save(folder / "images" / f"{line.split()[0]}.jpg", number)
    _classes_of("pets", 2, patch)


def sun397(root: Path, patch: pytest.MonkeyPatch) -> None:
    folder = root / "SUN397"
    text(folder / "ClassName.txt", "/a/abbey", "/b/basilica/indoor_hall")
    for number, file in enumerate(("b/basilica/indoor_hall/sun_b", "a/abbey/sun_z", "a/abbey/sun_a")):
        save(folder / f"{file}.jpg", number)
    _classes_of("sun397", 2, patch)


def caltech101(root: Path, patch: pytest.MonkeyPatch) -> None:
    for number, label in enumerate(("BACKGROUND_Google", "Faces", "accordion")):
        save(root / "caltech101/101_ObjectCategories" / label / "image_0001.jpg", number)
    text(root / "caltech101/101_ObjectCategories/BACKGROUND_Google/tmp", "no image")
    _classes_of("caltech101", 3, patch)


def eurosat(root: Path, patch: pytest.MonkeyPatch) -> None:
    for number, label in enumerate(("AnnualCrop", "Forest")):
        save(root / "eurosat/2750" / label / f"{label}_1.jpg", number)
    _classes_of("eurosat", 2, patch)


def fer2013(root: Path, patch: pytest.MonkeyPatch) -> None:
    for split in SPLITS:
        for number, label in enumerate(("angry", "happy")):
            save(root / "fer2013" / split / label / f"{split}_{number}.jpg", number)
    _classes_of("fer2013", 2, patch)


MAKERS = {
    "cifar10": lambda root, patch: cifar(root, patch, "cifar10"),
    "cifar100": lambda root, patch: cifar(root, patch, "cifar100"),
    **{
        make.__name__: make
        for make in (
            *(mnist, stl10, svhn, food101, cars, gtsrb, fgvc_aircraft, dtd, flowers, renderedsst2, country211, pets),
            *(sun397, caltech101, eurosat, fer2013),
        )
    },
}
EVERY = [(name, split) for name in MAKERS for split in SETS[name].needs]


def expected(name: str, split: str, root: Path) -> Iterator[tuple[Image.Image, int]]:
    """What torchvision itself reads."""
    from torchvision import datasets

    if name == "fer2013":
        found: Any = datasets.ImageFolder(str(root / "fer2013" / split))
    elif name in ("cifar10", "cifar100", "mnist"):
        found = getattr(datasets, SETS[name].reader)(root, train=split == "train")
    else:
        whole = len(SETS[name].needs) == 1
        found = getattr(datasets, SETS[name].reader)(root, **({} if whole else {"split": split}))
    for position in range(len(found)):
        image, target = found[position]
        yield image.convert("RGB"), int(target)


__all__: Sequence[str] = ("EVERY", "MAKERS", "expected", "pixels", "save", "text")
