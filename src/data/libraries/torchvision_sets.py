"""Data sets read by torchvision, as unpacked from their archives. Downloads nothing; see `downloads`.

CIFAR's files are pickles: torchvision unpickles them only if their checksums match the published files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.calls import reason_of
from testbed.data.formats.image_folder import ImageFolder
from testbed.data.formats.image_lists import HDF5Images, ImageArrays, ListedImages
from testbed.data.source import ImageSource
from testbed.errors import DataError, MissingExtraError
from testbed.inputs import ENV_DATA
from testbed.paths import data_root

# Which data sets there are ----------------------------------------------------------------------------------------

Needs = Mapping[str, Sequence[str]]
Read = Callable[["TorchvisionSet", Path, str], ImageSource]


@dataclass(frozen=True)
class TorchvisionSet:
    """A data set of torchvision.

    Attributes:
        name: Its name in CLIP benchmark.
        reader: The class in ``torchvision.datasets``.
        needs: Split → the required files and folders below torchvision's root. The first split is evaluated.
        read: Reads a split from torchvision's root.
        classes: The number of classes.
        page: The download page, if torchvision does not download the data.
    """

    name: str
    reader: str
    needs: Needs
    read: Read
    classes: int
    page: str = ""


def open_set(name: str, split: str) -> ImageSource:
    """A split of a data set, below the data root.

    torchvision's root is ``<data root>/<name>`` or the data root itself, whichever has the files.

    Raises:
        DataError: If files are missing or differ from the published ones.
    """
    known = SETS[name]
    root = _find_root(known, split)
    try:
        source = known.read(known, root, split)
    except (DataError, MissingExtraError):
        raise
    except Exception as error:  # torchvision's readers raise almost anything on invalid files
        raise DataError(
            f"data set {name!r}, split {split!r}: the files in {root} differ from the published ones"
            f" ({reason_of(error)}); delete them and unpack the archive again."
            f" {_how_to_get(known, root)}"
        ) from error
    count = len(source.class_names) if source.class_names is not None else known.classes
    if count != known.classes or not all(0 <= target < known.classes for target in source.targets):
        largest = max(source.targets)
        raise DataError(
            f"data set {name!r}, split {split!r}: {known.classes} classes were expected; found {count} in {root},"
            f" with labels up to {largest}; it is incomplete or a different data set"
        )
    return source


def place(name: str) -> Path:
    """The folder of a data set: ``<data root>/<name>``; raises DataError if no data root is set."""
    root = data_root()
    if root is None:
        raise DataError(f"data set {name!r}: no data root is set; give --data-root DIR or set {ENV_DATA}")
    return root / name


def roots_of(known: TorchvisionSet) -> tuple[Path, Path]:
    """The folders that may be torchvision's root, the preferred one first."""
    own = place(known.name)
    first = next(iter(known.needs.values()))[0]
    return (own.parent, own) if first.startswith(f"{known.name}/") else (own, own.parent)


def is_there(known: TorchvisionSet, split: str) -> bool:
    """Checks whether the files of a split are below the data root."""
    return any(all((root / need).exists() for need in known.needs[split]) for root in roots_of(known))


def _find_root(known: TorchvisionSet, split: str) -> Path:
    needs = known.needs[split]
    roots = roots_of(known)
    for root in roots:
        if all((root / need).exists() for need in needs):
            return root
    missing = next(need for need in needs if not (roots[0] / need).exists())
    others = f", beside {', '.join(need for need in needs if need != missing)}" if len(needs) > 1 else ""
    raise DataError(
        f"data set {known.name!r}, split {split!r}: {roots[0] / missing} is missing{others} (they may also be below"
        f" {roots[1]}). {_how_to_get(known, roots[0])}"
    )


def _how_to_get(known: TorchvisionSet, root: Path) -> str:
    if known.page:
        return f"testbed cannot download this data set; get it from {known.page}"
    return (
        "nothing is downloaded unasked: testbed run --download gets them, as in Python"
        f" torchvision.datasets.{known.reader}({str(root)!r}, download=True), as long as their servers have them"
    )


# Readers ----------------------------------------------------------------------------------------------------------


def _reader(known: TorchvisionSet, **changed: Any) -> Any:
    """The class of torchvision, modified not to require the files of other splits."""
    import torchvision

    reader = getattr(torchvision.datasets, known.reader)
    return type(known.reader, (reader,), changed) if changed else reader


def _cifar(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    other = "test_list" if split == "train" else "train_list"
    dataset = _reader(known, **{other: []})(root, train=split == "train")
    return ImageArrays(known.name, split, dataset.data, dataset.targets, dataset.classes)


def _mnist(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    begin = "train" if split == "train" else "t10k"
    files = [resource for resource in _reader(known).resources if resource[0].startswith(begin)]
    dataset = _reader(known, resources=files)(root, train=split == "train")
    return ImageArrays(known.name, split, dataset.data.numpy(), dataset.targets, dataset.classes)


def _stl10(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    lists = {"train_list": _reader(known).train_list[:2], "test_list": []} if split == "train" else {"train_list": []}
    dataset = _reader(known, **lists)(root, split=split)
    pixels = dataset.data.transpose(0, 2, 3, 1)
    return ImageArrays(known.name, split, pixels, dataset.labels, dataset.classes)


def _svhn(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    dataset = _reader(known)(root, split=split)
    return ImageArrays(known.name, split, dataset.data.transpose(0, 2, 3, 1), dataset.labels, None)


def _pcam(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    images, labels = known.needs[split]
    return HDF5Images(root / images, root / labels, known.name, split)


def _listed(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    """The list of files of a torchvision data set, from its private attributes."""
    dataset = _reader(known)(root, **({"split": split} if len(known.needs) > 1 else {}))
    if hasattr(dataset, "_samples"):
        files, labels = zip(*dataset._samples, strict=True)
    else:
        files, labels = getattr(dataset, "_image_files", None) or dataset._images, dataset._labels
    base = root / known.needs[split][0].split("/")[0]
    pairs = [(Path(file).relative_to(base).as_posix(), int(label)) for file, label in zip(files, labels, strict=True)]
    if known.name == "sun397":
        pairs.sort()  # torchvision uses the order of the file system
    names = _CLASS_NAMES.get(known.name, lambda names: names)(getattr(dataset, "classes", None))
    return ListedImages(base, known.name, [file for file, _ in pairs], [label for _, label in pairs], names)


# CLIP benchmark's changes of torchvision's class names.
_CLASS_NAMES: dict[str, Callable[[Any], Any]] = {
    "food101": lambda names: [name.replace("_", " ") for name in names],
    "sun397": lambda names: [name.replace("_", " ").replace("/", " ") for name in names],
}


def _folder(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    return ImageFolder(root / known.needs[split][0], known.name)


def _gtsrb(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    source = _folder(known, root, split) if split == "train" else _listed(known, root, split)
    source.class_names = None  # numbers
    return source


def _sst2(known: TorchvisionSet, root: Path, split: str) -> ImageSource:
    return ImageFolder((root / known.needs[split][0]).parent, known.name)


def _each(splits: str, *needs: str) -> Needs:
    """The same files for each split, with ``{s}`` for its name."""
    return {split: [need.replace("{s}", split) for need in needs] for split in splits.split()}


_PCAM = "pcam/camelyonpatch_level_2_split_{}_{}.h5"
_SST2 = "rendered-sst2/{}/{}"
_CARS = "stanford_cars"

SETS: dict[str, TorchvisionSet] = {
    dataset.name: dataset
    for dataset in (
        TorchvisionSet(
            "cifar10",
            "CIFAR10",
            {
                "test": ["cifar-10-batches-py/test_batch", "cifar-10-batches-py/batches.meta"],
                "train": [f"cifar-10-batches-py/data_batch_{n}" for n in range(1, 6)]
                + ["cifar-10-batches-py/batches.meta"],
            },
            _cifar,
            10,
        ),
        TorchvisionSet(
            "cifar100", "CIFAR100", _each("test train", "cifar-100-python/{s}", "cifar-100-python/meta"), _cifar, 100
        ),
        TorchvisionSet(
            "food101", "Food101", _each("test train", "food-101/meta/{s}.json", "food-101/images"), _listed, 101
        ),
        TorchvisionSet(
            "cars",
            "StanfordCars",
            {
                "test": [
                    f"{_CARS}/cars_test_annos_withlabels.mat",
                    f"{_CARS}/devkit/cars_meta.mat",
                    f"{_CARS}/cars_test",
                ],
                "train": [
                    f"{_CARS}/devkit/cars_train_annos.mat",
                    f"{_CARS}/devkit/cars_meta.mat",
                    f"{_CARS}/cars_train",
                ],
            },
            _listed,
            196,
            page="https://github.com/pytorch/vision/issues/7545",
        ),
        TorchvisionSet(
            "mnist",
            "MNIST",
            {
                "test": ["MNIST/raw/t10k-images-idx3-ubyte", "MNIST/raw/t10k-labels-idx1-ubyte"],
                "train": ["MNIST/raw/train-images-idx3-ubyte", "MNIST/raw/train-labels-idx1-ubyte"],
            },
            _mnist,
            10,
        ),
        TorchvisionSet(
            "stl10",
            "STL10",
            _each("test train", "stl10_binary/{s}_X.bin", "stl10_binary/{s}_y.bin", "stl10_binary/class_names.txt"),
            _stl10,
            10,
        ),
        TorchvisionSet(
            "gtsrb",
            "GTSRB",
            {
                "test": ["gtsrb/GT-final_test.csv", "gtsrb/GTSRB/Final_Test/Images"],
                "train": ["gtsrb/GTSRB/Training"],
            },
            _gtsrb,
            43,
        ),
        TorchvisionSet(
            "fgvc_aircraft",
            "FGVCAircraft",
            _each(
                "test train val trainval",
                "fgvc-aircraft-2013b/data/images_variant_{s}.txt",
                "fgvc-aircraft-2013b/data/variants.txt",
                "fgvc-aircraft-2013b/data/images",
            ),
            _listed,
            100,
        ),
        TorchvisionSet("dtd", "DTD", _each("test train val", "dtd/dtd/labels/{s}1.txt", "dtd/dtd/images"), _listed, 47),
        TorchvisionSet(
            "flowers",
            "Flowers102",
            _each("test train val", "flowers-102/setid.mat", "flowers-102/imagelabels.mat", "flowers-102/jpg"),
            _listed,
            102,
        ),
        TorchvisionSet(
            "pcam",
            "PCAM",
            {
                split: [_PCAM.format(file, part) for part in "xy"]
                for split, file in (("test", "test"), ("train", "train"), ("val", "valid"))
            },
            _pcam,
            2,
        ),
        TorchvisionSet(
            "renderedsst2",
            "RenderedSST2",
            {
                split: [_SST2.format(folder, label) for label in ("negative", "positive")]
                for split, folder in (("test", "test"), ("train", "train"), ("val", "valid"))
            },
            _sst2,
            2,
        ),
        TorchvisionSet("country211", "Country211", _each("test train valid", "country211/{s}"), _folder, 211),
        TorchvisionSet(
            "pets",
            "OxfordIIITPet",
            _each("test trainval", "oxford-iiit-pet/annotations/{s}.txt", "oxford-iiit-pet/images"),
            _listed,
            37,
        ),
        TorchvisionSet("sun397", "SUN397", {"test": ["SUN397/ClassName.txt"]}, _listed, 397),
        # Not torchvision's list, which lacks the background class.
        TorchvisionSet("caltech101", "Caltech101", {"test": ["caltech101/101_ObjectCategories"]}, _folder, 102),
        TorchvisionSet("eurosat", "EuroSAT", {"test": ["eurosat/2750"]}, _folder, 10),
        TorchvisionSet("svhn", "SVHN", _each("test train", "{s}_32x32.mat"), _svhn, 10),
        TorchvisionSet(
            "fer2013",
            "ImageFolder",
            _each("test train", "fer2013/{s}"),
            _folder,
            7,
            page="https://www.kaggle.com/datasets/msambare/fer2013",
        ),
    )
}
