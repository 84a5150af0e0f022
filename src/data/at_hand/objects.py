"""Python objects that hold images and labels. Nothing is read before the object is known to be of such a kind."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.data.at_hand.kept import Aside, Items
from testbed.data.at_hand.own_transform import as_returned
from testbed.data.at_hand.pictures import is_array, is_tensor
from testbed.data.at_hand.tables import Table
from testbed.data.at_hand.torch_data import torch_items
from testbed.errors import DataError
from testbed.registry.data_files import is_picture

FORMS = (
    "a path, (X, y) arrays, a list of (path, label) or of dicts, a DataFrame with a column of images and one of labels,"
    " a torch Dataset that yields (image, label), or a datasets.Dataset"
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
    for find in (torch_items, _of_hub, _of_frame, _of_rows, _of_arrays, _of_lists, _of_pairs):
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


def is_rows(value: Any) -> bool:
    """Checks whether a value is a list of mappings: rows of a table, each with an image and a label."""
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(item, Mapping) for item in value)


def is_arrays(value: Any) -> bool:
    """Checks whether a value is (X, y), images and labels."""
    return isinstance(value, tuple) and len(value) == 2 and is_array(value[0]) and not _is_single(value[0])


def is_lists(value: Any) -> bool:
    """Checks whether a value is (list of images, labels), each image being a picture or the path of one."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], list | tuple)
        and len(value[0]) > 0
        and all(_is_picture(image) or (isinstance(image, str | Path) and is_picture(str(image))) for image in value[0])
    )


def _is_single(value: Any) -> bool:
    return getattr(value, "ndim", 0) < 2


def _is_picture(value: Any) -> bool:
    return type(value).__module__.startswith("PIL.") or (is_array(value) and not _is_single(value))


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


def _of_rows(value: Any) -> Items | None:
    if not is_rows(value):
        return None
    names = dict.fromkeys(name for row in value for name in row)
    return Table("the list", {str(name): [row.get(name) for row in value] for name in names}).items("list")


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
    return Items(
        "arrays",
        shape[0],
        lambda place: (_in_order(images[place], last), labels[place]),
        aside=lambda: Aside(to_tensors=as_returned(images[0], "arrays: sample 0") if shape[0] else ()),
    )


def _in_order(image: Any, last: bool) -> Any:
    """Returns one of several images as an array of numpy with its channels last."""
    import numpy as np

    array = np.asarray(image.detach().cpu() if is_tensor(image) else image)
    return array if array.ndim == 2 or last else array.transpose(1, 2, 0)


def _of_lists(value: Any) -> Items | None:
    if not is_lists(value):
        return None
    images, labels = value
    if len(labels) != len(images):
        raise DataError(f"there are {len(images):,} images, but {len(labels):,} labels")
    return _of_pairs(list(zip(images, labels, strict=True)))


def _of_pairs(value: Any) -> Items | None:
    if not is_pairs(value):
        return None
    on_disk = all(isinstance(image, str | Path) for image, _ in value)

    def read(place: int) -> tuple[Any, Any]:
        image, label = value[place]
        return Path(image) if isinstance(image, str) else image, label

    return Items("list", len(value), read, on_disk=on_disk)
