"""Options that are saved with weights: image preparation, and the order of the classes.

Read are timm's ``config.json`` in the checkpoint's folder, and in the checkpoint itself the entries ``pretrained_cfg``
(timm's configuration), ``config`` and ``args`` (the arguments of timm's and torchvision's training scripts),
``hyper_parameters`` (Lightning's), and lists of class names; and among the tensors, the normalization of a network that
normalizes its images itself.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from testbed.errors import DataError, WeightsError
from testbed.inputs import Preprocessing, active
from testbed.models.base.class_order import (
    NATURAL,
    OPTION,
    SETTING,
    SORTED,
    ClassOrder,
    class_names_in,
    listed,
)
from testbed.models.base.transform import INTERPOLATIONS
from testbed.models.checkpoints import entries as checkpoint_entries
from testbed.models.checkpoints import normalization
from testbed.models.checkpoints.entries import FoundState, found_in
from testbed.models.checkpoints.normalization import (
    SavedNormalization,
    may_normalize,
    normalizations_in,
    the_only,
)
from testbed.models.loading import name_lists as name_lists_module
from testbed.models.loading.checkpoint_file import open_checkpoint
from testbed.models.loading.name_lists import listed_once, name_lists
from testbed.registry.remembered_facts import remembered

CONFIG = "config.json"
ENTRIES = ("pretrained_cfg", "config", "args", "hyper_parameters")
NAMES = ("class_to_idx", "idx_to_class", "class_names", "classes", "label_names", "id2label")
OF_FOLDERS = ("torch/image_folder", "torch/folder")  # timm's names of torchvision's reader
LARGEST_SIDE = 1 << 20  # pixels
CROP_PCT = 0.875  # timm's, where a configuration has none


@dataclass(frozen=True)
class SavedPreprocessing:
    """Preprocessing that was saved with a checkpoint.

    Attributes:
        preprocessing: The saved fields; None for those that were not. Without ``resize`` the architecture's share is
            cropped.
        where: Its place, such as ``args in epoch_3.pth``.
        unused: Fields that were saved for tests and are not used, for people.
        tensors: The names of the tensors that hold it.
    """

    preprocessing: Preprocessing
    where: str
    unused: str = ""
    tensors: tuple[str, ...] = ()


def saved_preprocessing(path: Path, architecture: str) -> SavedPreprocessing | None:
    """Returns the preprocessing that was saved with a checkpoint; None if there is none, or the file is not readable.

    A normalization among the tensors comes before that of a training script: it is the network's own.

    Args:
        path: The checkpoint.
        architecture: The architecture's name; a ``config.json`` of another architecture belongs to another checkpoint.

    Raises:
        WeightsError: If what was saved cannot be used; the message gives the reason.
    """
    saved = _of_scripts(path, architecture)
    own = _own_normalization(path)
    if own is None:
        return saved
    given = Preprocessing(mean=own.mean, std=own.std)
    where = f"{own.names[0]} and {own.names[1]} in {path.name}"
    if saved is None:
        return SavedPreprocessing(given, where, tensors=own.names)
    whole = replace(saved, preprocessing=given.or_else(saved.preprocessing), tensors=own.names)
    return replace(whole, where=f"{where}, the rest from {saved.where}")


def _of_scripts(path: Path, architecture: str) -> SavedPreprocessing | None:
    """The preprocessing in the options of a training script."""
    for where, options in _options(path, architecture):
        preprocessing = _preprocessing(options, f"{where} says")
        if preprocessing != Preprocessing():
            return SavedPreprocessing(preprocessing, where, _of_tests(options, where, preprocessing))
    return None


def _own_normalization(path: Path) -> SavedNormalization | None:
    """The normalization among the tensors; the file is read for it only if their names and sizes show one."""
    asked = active().preprocessing
    if asked.mean is not None and asked.std is not None:
        return None  # several in the file need no decision then

    def find() -> list[list[Sequence[Any]]]:
        held = normalizations_in(open_checkpoint(path)) if may_normalize(contents(path)) else []
        return [[one.mean, one.std, one.names] for one in held]

    try:
        code = (str(normalization.__file__), str(checkpoint_entries.__file__))
        found = _remembered("normalization", path, code, find)
    except (OSError, WeightsError):  # loading reports it
        return None
    held = [SavedNormalization(*(tuple(part) for part in parts)) for parts in found]
    return the_only(held, f"the checkpoint {path}")


def _of_tests(options: Mapping[str, Any], where: str, preprocessing: Preprocessing) -> str:
    """The size and crop that timm's validate takes for tests, where they are others than those of training."""
    size, share = options.get("test_input_size"), options.get("test_crop_pct")
    if not size and not share:
        return ""
    tested = {
        **{key: options.get(key) for key in ("input_size", "crop_pct")},
        **({"input_size": size} if size else {}),
        **({"crop_pct": share} if share else {}),
    }
    try:
        crop = _crop(tested, where)
        resize = _resize(tested, crop, where) if crop else None
    except WeightsError:
        return ""
    if crop is None or (resize, crop) == (preprocessing.resize, preprocessing.crop):
        return ""
    names = " and ".join(key for key, value in (("test_input_size", size), ("test_crop_pct", share)) if value)
    return f"{names} of {where} not used: --image-size {resize} {crop} evaluates as timm's validate does"


def contents(path: Path) -> Any:
    """Returns the content of a checkpoint file, its tensors without content; cached as long as it does not change.

    Raises:
        WeightsError: If it is missing or cannot be read.
    """
    try:
        stamp = os.stat(path)
    except OSError:
        return open_checkpoint(path, content=False)
    return _opened(path, stamp.st_mtime_ns, stamp.st_size)[0]


def shapes(path: Path) -> FoundState | None:
    """The state dict of a checkpoint as tensors without content; None if the file is missing or not readable."""
    try:
        return found_in(contents(path), f"the checkpoint {path}")
    except WeightsError:
        return None


def saved_class_order(path: Path, architecture: str, classes: int | None) -> ClassOrder | None:
    """Returns the order of a checkpoint's outputs as it was saved with it; None if it was not.

    A list of class names comes first, wherever it is if it has a name for each output; else the arguments of timm's
    training script show how its reader sorted them.

    Args:
        path: The checkpoint.
        architecture: As in `saved_preprocessing`.
        classes: The number of outputs, if known.

    Raises:
        DataError: If what was saved cannot be used; the message gives the reason.
    """
    for where, options in _options(path, architecture, whole=True):
        for name in NAMES:
            value = options.get(name)
            if not isinstance(value, Mapping | list | tuple):
                continue
            if any(isinstance(item, str) and not item.isdigit() for item in _flat(value)):
                place = f"{name} in {where.removeprefix('entries in ')}"
                if where.startswith("pretrained_cfg") and len(value) != classes:
                    continue  # of the weights that it was fine-tuned from
                return listed(dict(value) if isinstance(value, Mapping) else value, place, classes)
    if (order := _named_outputs(path, classes)) is not None:
        return order
    for where, options in _options(path, architecture):
        if "class_map" in options:
            return _readers_order(options, where, path, classes)
    return None


def _named_outputs(path: Path, classes: int | None) -> ClassOrder | None:
    """The order that a list of names elsewhere in a checkpoint gives, such as ultralytics' ``names``."""
    try:
        read = partial(open_checkpoint, path, content=False)
        code = (str(name_lists_module.__file__),)
        lists = _remembered("names", path, code, lambda: name_lists(read(), classes), classes)
    except (OSError, WeightsError):
        return None
    return listed_once(lists, path.name, classes)


def _remembered(kind: str, path: Path, code: Sequence[str], find: Callable[[], Any], *more: Any) -> Any:
    """A fact about a checkpoint, cached as long as the file and the code that finds it do not change."""
    stamp = os.stat(path)
    key = [str(path), stamp.st_mtime_ns, stamp.st_ctime_ns, stamp.st_ino, stamp.st_size, *more]
    return remembered(kind, key, ["torch", "safetensors"], code, find)


def _flat(value: Any) -> list[Any]:
    return [*value, *value.values()] if isinstance(value, Mapping) else list(value)


def _readers_order(options: Mapping[str, Any], where: str, path: Path, classes: int | None) -> ClassOrder | None:
    """The order of timm's readers: of its own one for folders, unless the script was given a map or another reader."""
    given, reader = options["class_map"], str(options.get("dataset") or "").lower()
    if given:
        root = str(options.get("data_dir") or options.get("data") or "")
        places = [Path(str(given)), Path(root) / str(given), path.parent / Path(str(given)).name]
        file = next((place for place in places if place.is_file() and place.suffix == ".txt"), None)
        if file is None:
            raise DataError(
                f"{where} says that it was trained with the class map {given}, a file which is not here or not text;"
                f" put it beside {path.name}, or give {OPTION} FILE with a class name per line"
            )
        return listed(class_names_in(file), f"{file}, the class_map of {where}", classes)
    if "/" not in reader or reader.partition("/")[0] not in ("torch", "hfds", "hfids", "tfds", "wds"):
        return ClassOrder(NATURAL, where)
    return ClassOrder(SORTED if reader in OF_FOLDERS else SETTING, where)


def trained_from_scratch(path: Path) -> bool:
    """Checks whether the arguments of torchvision's training script start without published weights."""
    return any(
        "weights" in options and not options["weights"] and not options.get("pretrained")
        for where, options in _options(path, "")
        if where.startswith("args")
    )


def _options(path: Path, architecture: str, whole: bool = False) -> list[tuple[str, Mapping[str, Any]]]:
    """Yields where options may be, the nearest to the weights first; with ``whole``, the file's own entries first."""
    try:
        stamp = os.stat(path)
        read = partial(_opened, path, stamp.st_mtime_ns, stamp.st_size)
        entries, names = _remembered("saved", path, (__file__,), lambda: read()[1:])
    except (OSError, WeightsError):
        return []
    options = [(f"{name} in {path.name}", entries[name]) for name in ENTRIES if name in entries]
    config = _config_file(path.parent / CONFIG, architecture)
    beside = [(f"{CONFIG} beside {path.name}", config)] if config else []
    return [*([(f"entries in {path.name}", names)] if whole else []), *options, *beside]


def _config_file(path: Path, architecture: str) -> Mapping[str, Any] | None:
    """Returns timm's configuration in a folder, if there is one of this architecture."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(config, dict) or config.get("architecture", architecture) != architecture:
        return None
    inner = config.get("pretrained_cfg", config)
    labels = {"label_names": config["label_names"]} if "label_names" in config else {}
    return {**inner, **labels} if isinstance(inner, dict) else None


@lru_cache(maxsize=64)
def _opened(path: Path, modified: int, size: int) -> tuple[Any, dict[str, Mapping[str, Any]], dict[str, Any]]:
    """Opens a file, tensors without content, with the entries that hold options, and those that hold class names."""
    loaded = open_checkpoint(path, content=False)
    entries = {}
    for name in ENTRIES if isinstance(loaded, Mapping) else ():
        entry = loaded.get(name)
        entry = vars(entry) if isinstance(entry, argparse.Namespace) else entry
        if isinstance(entry, Mapping):
            entries[name] = entry
    names = {name: loaded[name] for name in NAMES if isinstance(loaded, Mapping) and name in loaded}
    return loaded, entries, names


def _preprocessing(options: Mapping[str, Any], what: str) -> Preprocessing:
    """Reads options by timm's or torchvision's names, as preprocessing."""
    mode = options.get("crop_mode") or "center"
    if mode != "center":
        raise WeightsError(f"{what} crop_mode {mode!r}; give checkpoint_model(…) a transform in a definition file")
    crop = _crop(options, what)
    interpolation = options.get("interpolation") or None
    if interpolation not in (None, "random", *INTERPOLATIONS):
        raise WeightsError(f"{what} interpolation {interpolation!r}; it is one of {', '.join(INTERPOLATIONS)}")
    return Preprocessing(
        resize=_resize(options, crop, what) if crop and not _by_architecture(options, what) else None,
        crop=crop,
        mean=_three(options.get("mean"), f"{what} mean"),
        std=_three(options.get("std"), f"{what} std"),
        interpolation=None if interpolation == "random" else interpolation,
    )


def _by_architecture(options: Mapping[str, Any], what: str) -> bool:
    """Checks whether the cropped share was left to the architecture, as timm's scripts do without ``--crop-pct``."""
    return what.startswith("args") and not options.get("val_resize_size") and not options.get("crop_pct")


def _crop(options: Mapping[str, Any], what: str) -> int | None:
    size = options.get("val_crop_size") or options.get("input_size") or options.get("img_size")
    sides = list(size[-2:]) if isinstance(size, list | tuple) else [size]
    side = sides[0] if sides and all(side == sides[0] for side in sides) else 0
    if size is None or _is_side(side):
        return side or None
    raise WeightsError(f"{what} size {size!r}; expected one side of a square, or [3, side, side]")


def _is_side(value: Any) -> bool:
    """Checks whether a value is a number of pixels that the side of an image may have."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST_SIDE


def _resize(options: Mapping[str, Any], crop: int, what: str) -> int:
    """The shorter side after resizing: as given (torchvision), or from the share that is cropped (timm)."""
    side = options.get("val_resize_size")
    if side:
        if not _is_side(side):
            raise WeightsError(f"{what} val_resize_size {side!r}; expected a number of pixels")
        return int(side)
    share = options.get("crop_pct") or CROP_PCT
    if not isinstance(share, int | float) or not crop / LARGEST_SIDE <= share <= 1:
        raise WeightsError(f"{what} crop_pct {share!r}; expected a number above 0 and at most 1")
    return math.floor(crop / share)


def _three(values: Any, what: str) -> tuple[float, float, float] | None:
    if not values:
        return None
    numbers = list(values) if isinstance(values, list | tuple) else []
    numbers = numbers * 3 if len(numbers) == 1 else numbers
    if len(numbers) != 3 or not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
        raise WeightsError(f"{what} {values!r}; expected three numbers from 0 to 1")
    return numbers[0], numbers[1], numbers[2]
