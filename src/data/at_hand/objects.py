"""Python objects that hold images and labels. Nothing is read before the object is known to be of such a kind."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.data.at_hand.kept import Items
from testbed.data.at_hand.pictures import is_array, is_tensor
from testbed.data.at_hand.tables import Table, columns_of, picture_in
from testbed.errors import DataError

FORMS = (
    "a path, (X, y) arrays, a list of (path, label), a DataFrame with a column of images and one of labels, a torch"
    " Dataset that yields (image, label), or a datasets.Dataset"
)
CHANNELS = (1, 3)


def items_of(value: Any, label: str | None = None) -> Items | None:
    """Returns the samples of an object; None for an object of another kind.

    Args:
        value: The object.
        label: A name for people; default one for the kind of object.

    Raises:
        DataError: If it is almost such an object; the message explains what to pass.
    """
    for find in (_of_torch, _of_hub, _of_frame, _of_arrays, _of_pairs):
        items = find(value)
        if items is not None:
            items.label = label or items.label
            return items
    return None


def is_pairs(value: Any) -> bool:
    """Checks whether a value is a list of (image, label) pairs, the first of each being a path or a picture."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 0
        and all(isinstance(item, tuple | list) and len(item) == 2 for item in value)
        and all(isinstance(item[0], str | Path) or _is_picture(item[0]) for item in value)
    )


def is_arrays(value: Any) -> bool:
    """Checks whether a value is (X, y), images and labels."""
    return isinstance(value, tuple) and len(value) == 2 and is_array(value[0]) and not _is_single(value[0])


def _is_single(value: Any) -> bool:
    return getattr(value, "ndim", 0) < 2


def _is_picture(value: Any) -> bool:
    return type(value).__module__.startswith("PIL.") or (is_array(value) and not _is_single(value))


# torch ------------------------------------------------------------------------------------------------------------


def _of_torch(value: Any) -> Items | None:
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return None
    if isinstance(value, data.DataLoader):
        raise DataError("a DataLoader has images in batches, after a transform; pass its dataset: loader.dataset")
    if not isinstance(value, data.Dataset):
        return None
    if isinstance(value, data.IterableDataset) or not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        raise DataError(
            f"{type(value).__name__} is an iterable dataset, which has no positions; pass a map-style one, with"
            " __len__ and __getitem__"
        )
    if isinstance(value, data.Subset):
        inner = _of_torch(value.dataset)
        return None if inner is None else _some_of(inner, value.indices)
    if isinstance(value, data.ConcatDataset):
        return _joined([part for part in map(_of_torch, value.datasets) if part is not None])
    return _files_of_folder(value) or _of_dataset(_without_transform(value))


def _some_of(items: Items, indices: Sequence[Any]) -> Items:
    chosen = [int(index) for index in indices]
    return Items(items.label, len(chosen), lambda place: items.read(chosen[place]), items.class_names, items.on_disk)


def _joined(parts: Sequence[Items]) -> Items:
    names = [None if part.class_names is None else list(part.class_names) for part in parts]
    if any(name != names[0] for name in names):
        raise DataError("the parts of the ConcatDataset have different lists of classes; evaluate them one by one")
    places = [(part, position) for part in parts for position in range(part.count)]

    def read(place: int) -> tuple[Any, Any]:
        part, position = places[place]
        return part.read(position)

    return Items(parts[0].label, len(places), read, names[0], all(part.on_disk for part in parts))


def _files_of_folder(value: Any) -> Items | None:
    """The files of torchvision's ImageFolder, which need not be decoded to be evaluated."""
    folder = sys.modules.get("torchvision.datasets.folder")
    if folder is None or not isinstance(value, folder.DatasetFolder) or value.loader is not folder.default_loader:
        return None
    if type(value).__getitem__ is not folder.DatasetFolder.__getitem__:
        return None
    change = value.target_transform or (lambda target: target)
    return Items(
        Path(value.root).name or "folder",
        len(value.samples),
        lambda place: (Path(value.samples[place][0]), change(value.samples[place][1])),
        value.classes if value.target_transform is None else None,
        on_disk=True,
    )


def _without_transform(value: Any) -> Any:
    """Returns one of torchvision's data sets without its transform of images, which each model's own replaces.

    It is a copy: the object itself stays as it is.
    """
    vision = sys.modules.get("torchvision.datasets.vision")
    if vision is None or not isinstance(value, vision.VisionDataset):
        return value
    plain = copy.copy(value)
    plain.transform = None
    change = plain.target_transform
    plain.transforms = None if change is None else vision.StandardTransform(None, change)
    return plain


def _of_dataset(value: Any) -> Items:
    name = type(value).__name__

    def read(place: int) -> tuple[Any, Any]:
        item = value[place]
        if isinstance(item, Mapping):
            image, label = columns_of({key: [value] for key, value in item.items()}, f"{name}: sample {place}")
            return item[image], item[label]
        if not isinstance(item, tuple | list) or len(item) != 2:
            shown = f"{len(item)} values" if isinstance(item, tuple | list) else f"a {type(item).__name__}"
            raise DataError(f"{name}: sample {place} is {shown}; expected (image, label)")
        image, label = item
        return picture_in(image, f"{name}: sample {place}", None), label

    classes = getattr(value, "classes", None)
    named = isinstance(classes, list | tuple) and all(isinstance(class_, str) for class_ in classes)
    return Items(
        name, len(value), read, classes if named and getattr(value, "target_transform", None) is None else None
    )


# datasets ---------------------------------------------------------------------------------------------------------


def _of_hub(value: Any) -> Items | None:
    datasets = sys.modules.get("datasets")
    if datasets is None or not type(value).__module__.startswith("datasets."):
        return None
    if isinstance(value, dict):
        raise DataError(f"a {type(value).__name__} has the splits {', '.join(value)}; pass one of them")
    if not isinstance(value, datasets.Dataset):
        raise DataError(f"a datasets.{type(value).__name__} has no positions; pass a datasets.Dataset")
    rows = value.with_format(None)
    for column, feature in rows.features.items():
        if isinstance(feature, datasets.Image):
            rows = rows.cast_column(column, datasets.Image(decode=False))
    names = {column: names for column, feature in rows.features.items() if (names := getattr(feature, "names", None))}
    table = Table("the datasets.Dataset", {column: _Column(rows, column) for column in rows.column_names}, names)
    return table.items(str(value.info.dataset_name or value.info.builder_name or "dataset"))


class _Column(Sequence[Any]):
    """A column of a datasets.Dataset, read row by row."""

    def __init__(self, rows: Any, name: str) -> None:
        self._rows = rows.select_columns([name])
        self._name = name

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: Any) -> Any:
        return self._rows[place][self._name]


# Frames, arrays, lists --------------------------------------------------------------------------------------------


def _of_frame(value: Any) -> Items | None:
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, pandas.DataFrame):
        return None
    return Table("the DataFrame", {str(name): list(value[name]) for name in value.columns}).items("frame")


def _of_arrays(value: Any) -> Items | None:
    if is_array(value):
        raise DataError("an array of images has no labels; pass both, as (X, y)")
    if not is_arrays(value):
        return None
    images, labels = value
    shape = tuple(int(size) for size in images.shape)
    if len(shape) not in (3, 4) or (len(shape) == 4 and not {shape[1], shape[3]} & set(CHANNELS)):
        raise DataError(
            f"X has the shape {list(shape)}; expected images as [n, H, W, 3], [n, 3, H, W] or [n, H, W], with one or"
            " three channels"
        )
    size = getattr(labels, "shape", None)
    if size is not None and len(size) == 2 and size[1] == 1:  # as Keras and MedMNIST have them
        labels, size = labels[:, 0], size[:1]
    if size is not None and len(size) != 1:
        raise DataError(f"y has the shape {list(size)}; expected n class indices: of one-hot rows pass y.argmax(1)")
    if len(labels) != shape[0]:
        raise DataError(f"X has {shape[0]:,} images, but y has {len(labels):,} labels")
    last = len(shape) == 4 and shape[3] in CHANNELS and not (is_tensor(images) and shape[1] in CHANNELS)
    return Items("arrays", shape[0], lambda place: (_in_order(images[place], last), labels[place]))


def _in_order(image: Any, last: bool) -> Any:
    """Returns one of several images as an array of numpy with its channels last."""
    import numpy as np

    array = np.asarray(image.detach().cpu() if is_tensor(image) else image)
    return array if array.ndim == 2 or last else array.transpose(1, 2, 0)


def _of_pairs(value: Any) -> Items | None:
    if not is_pairs(value):
        return None
    on_disk = all(isinstance(image, str | Path) for image, _ in value)

    def read(place: int) -> tuple[Any, Any]:
        image, label = value[place]
        return Path(image) if isinstance(image, str) else image, label

    return Items("list", len(value), read, on_disk=on_disk)
