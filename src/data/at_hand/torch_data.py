"""Data sets and loaders of torch, as samples."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from testbed.calls import catchable
from testbed.contracts.surroundings import same_random_numbers
from testbed.data.at_hand.kept import Aside, Items
from testbed.data.at_hand.own_transform import as_returned, own_transform
from testbed.data.at_hand.tables import columns_of, picture_in
from testbed.errors import DataError


def torch_items(value: Any) -> Items | None:
    """The samples of a data set or loader of torch; None for any other object.

    Raises:
        DataError: If it is one whose samples cannot be used.
    """
    data = sys.modules.get("torch.utils.data")
    if data is None:
        return None
    if isinstance(value, data.DataLoader):
        return _of_loader(value)
    if not isinstance(value, data.Dataset):
        return None
    if isinstance(value, data.IterableDataset) or not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        raise DataError(
            f"{type(value).__name__} is an iterable dataset, which has no positions; pass a map-style one, with"
            " __len__ and __getitem__, or list(dataset)"
        )
    if isinstance(value, data.Subset):
        inner = torch_items(value.dataset)
        return None if inner is None else _some_of(inner, value.indices)
    if isinstance(value, data.ConcatDataset):
        return _joined([part for part in map(torch_items, value.datasets) if part is not None])
    return _of_dataset(value)


def _of_loader(loader: Any) -> Items | None:
    """The samples that a loader draws, in the order of its data set."""
    from torch.utils.data import BatchSampler, default_collate, default_convert

    changed = [
        name
        for name, usual in (
            ("collate_fn", loader.collate_fn in (default_collate, default_convert)),
            ("batch_sampler", loader.batch_sampler is None or type(loader.batch_sampler) is BatchSampler),
        )
        if not usual
    ]
    if changed:
        raise DataError(f"a DataLoader with its own {' and '.join(changed)}; pass its dataset: loader.dataset")
    items = torch_items(loader.dataset)
    if items is None:
        return None
    with _same_generators(loader.sampler):
        try:
            drawn = [sorted(map(operator.index, loader.sampler)) for _ in range(2)]
        except TypeError:
            raise DataError(
                "a DataLoader whose sampler draws other things than positions; pass its dataset: loader.dataset"
            ) from None
    if drawn[0] != drawn[1] or len(set(drawn[0])) < len(drawn[0]):
        raise DataError(
            "a DataLoader that draws other samples each time, or one twice; pass its dataset: loader.dataset"
        )
    if loader.drop_last and len(drawn[0]) % loader.batch_size:
        dropped = f"the DataLoader drops its last {len(drawn[0]) % loader.batch_size} samples; here they count"
        items = replace(items, aside=_noted(items, dropped))
    return items if len(drawn[0]) == items.count else _some_of(items, drawn[0])


@contextlib.contextmanager
def _same_generators(sampler: Any) -> Iterator[None]:
    """Leaves all random numbers as they were before a sampler was asked, those of its own generators included."""
    from torch import Generator

    own = [(held, held.get_state()) for held in vars(sampler).values() if isinstance(held, Generator)]
    with same_random_numbers():
        try:
            yield
        finally:
            for held, state in own:
                held.set_state(state)


def _noted(items: Items, note: str) -> Callable[[], Aside]:
    return lambda: replace(items.aside(), notes=(*items.aside().notes, note))


def _some_of(items: Items, indices: Sequence[Any]) -> Items:
    chosen = [int(index) for index in indices]
    return replace(items, count=len(chosen), read=lambda place: items.read(chosen[place]))


def _joined(parts: Sequence[Items]) -> Items:
    names = [None if part.class_names is None else list(part.class_names) for part in parts]
    if any(name != names[0] for name in names):
        raise DataError("the parts of the ConcatDataset have different lists of classes; evaluate them one by one")
    places = [(part, position) for part in parts for position in range(part.count)]

    def read(place: int) -> tuple[Any, Any]:
        part, position = places[place]
        return part.read(position)

    def aside() -> Aside:
        found = [part.aside() for part in parts]
        return Aside(
            *(
                tuple(thing for each in found for thing in getattr(each, field.name))
                for field in dataclasses.fields(Aside)
            )
        )

    return Items(parts[0].label, len(places), read, names[0], all(part.on_disk for part in parts), aside)


# A data set -------------------------------------------------------------------------------------------------------


def _of_dataset(value: Any) -> Items:
    """The samples of a data set, with pictures from before its transform."""
    opened = functools.cache(lambda: _opened(value))
    classes = getattr(value, "classes", None)
    named = isinstance(classes, list | tuple) and all(isinstance(class_, str) for class_ in classes)
    named = named and getattr(value, "target_transform", None) is None
    name = type(value).__name__
    return _files_of_folder(value, lambda: opened()[1]) or Items(
        name,
        len(value),
        lambda place: _sample(opened()[0], place, name),
        classes if named else None,
        aside=lambda: opened()[1],
    )


def _opened(value: Any) -> tuple[Any, Aside]:
    """A data set whose pictures are not transformed, and what else it has."""
    name = type(value).__name__
    first = _first(value)
    more = len(first) - 2 if isinstance(first, tuple | list) else 0
    unused = f"{name}: of each sample, its picture and its label are used; its other values ({more}) are not"
    notes = (unused,) if more > 0 else ()
    found = own_transform(value, lambda dataset, place: _sample(dataset, place, name)[0])
    if found is not None:
        return found[0], Aside((found[1],), notes)
    plain = _without_transform(value)
    if plain is not value or first is None:
        return plain, Aside((), notes)
    return plain, Aside((), notes, as_returned(_picture(first), f"{name}: sample 0"))


def _first(value: Any) -> Any:
    """The first sample as the data set returns it; None if it cannot be read, of which reading all says why."""
    with same_random_numbers():
        try:
            with catchable():
                return value[0] if len(value) else None
        except Exception:
            return None


def _picture(item: Any) -> Any:
    """The picture in a sample; None if it has none."""
    try:
        return _parts(item, "")[0]
    except DataError:  # reading all says why
        return None


def _sample(dataset: Any, place: int, name: str) -> tuple[Any, Any]:
    """The picture and the label of a sample."""
    return _parts(dataset[place], f"{name}: sample {place}")


def _parts(item: Any, where: str) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        image, label = columns_of({key: [value] for key, value in item.items()}, where)
        return item[image], item[label]
    if not isinstance(item, tuple | list) or len(item) < 2:
        shown = f"{len(item)} values" if isinstance(item, tuple | list) else f"a {type(item).__name__}"
        raise DataError(f"{where} is {shown}; expected (image, label)")
    return picture_in(item[0], where, None), item[1]


def _files_of_folder(value: Any, aside: Callable[[], Aside]) -> Items | None:
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
        aside=aside,
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
