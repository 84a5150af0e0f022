"""Matches each output of a classifier to a class, where their order is not the setting's own.

Settings number their classes in one order, of a folder by the sorted names of its folders. A network was trained in the
order of the program that trained it: timm's reader sorts names in natural order, without regard to case.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.language.class_vocabulary import vocabulary_of
from testbed.errors import DataError

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import EvalSetting
    from testbed.models.base.definition import ModelDefinition

SETTING = "setting"
SORTED = "sorted"
NATURAL = "natural"
LISTED = "listed"
OPTION = "--class-order"
SHOWN = 3


def natural_key(name: str) -> list[int | str]:
    """Returns a key that sorts names as timm does: numbers in them by value, letters without regard to case."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name.lower())]


RULES: dict[str, Callable[[str], Any]] = {SORTED: str, NATURAL: natural_key}


@dataclass(frozen=True)
class ClassOrder:
    """The order of a classifier's outputs.

    Attributes:
        rule: `SETTING`, `SORTED`, `NATURAL`, or `LISTED`.
        where: The source, such as ``args in w.pth``; empty if there is none and the order is assumed.
        names: The class of each output, for `LISTED`.
    """

    rule: str = SETTING
    where: str = ""
    names: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """For people."""
        rules = {
            SETTING: "the setting's order",
            SORTED: "the order of their sorted names",
            NATURAL: "timm's natural order of their names",
            LISTED: "the order that is listed",
        }
        return f"classes in {rules[self.rule]} ({f'from {self.where}' if self.where else 'assumed'})"

    def is_known(self, of_folders: bool) -> bool:
        """Checks whether the order is more than an assumption; a rule for folders does not apply to other classes."""
        return bool(self.where) and (of_folders or self.rule in (SETTING, LISTED) or self.where.startswith(OPTION))

    def columns(
        self, model: str, setting: str, folders: Sequence[str] | None, class_names: Sequence[str] | None, whole: bool
    ) -> list[int] | None:
        """The output for each class of a setting.

        Args:
            model: Its name, for messages.
            setting: Its name, for messages.
            folders: The names of the folders that hold the classes, in the setting's order; None if none do.
            class_names: The setting's class names, in its order; None if it has none.
            whole: True if they name all classes that the model may choose from.

        Returns:
            A list, or None where the order is the setting's.

        Raises:
            DataError: If the listed names are not the setting's.
        """
        if self.rule == SETTING:
            return None
        candidates = [_plain(names) for names in (folders, class_names) if names]
        if self.rule == LISTED:
            listed = _plain(self.names)
            labels = next((candidate for candidate in candidates if sorted(candidate) == sorted(listed)), None)
            if labels is None:
                if (folders and whole) or listed != sorted(listed):
                    raise DataError(self._unmatched(model, setting, candidates[0] if candidates else None))
                return None
            if len(set(listed)) < len(listed):
                if labels == listed:
                    return None
                raise DataError(self._unmatched(model, setting, labels))
        else:
            # A rule for folders that a file implies does not apply to other class names.
            asked = candidates[0] if candidates and self.where.startswith(OPTION) else None
            labels = _plain(folders) if folders else asked
            if labels is None or len(set(labels)) < len(labels):
                return None
            listed = sorted(labels, key=lambda name: (RULES[self.rule](name), name))
        place = {name: index for index, name in enumerate(listed)}
        indices = [place[label] for label in labels]
        return None if indices == list(range(len(indices))) else indices

    def _unmatched(self, model: str, setting: str, labels: Sequence[str] | None) -> str:
        lacking = [name for name in labels or () if name not in _plain(self.names)]
        has = f"{setting} has {_some(labels)}" if labels else f"{setting} has no names for its classes"
        missing = f" ({lacking[0]!r} is not among the former)" if lacking else ""
        return (
            f"{model}: the classes of its outputs are {_some(self.names)}, from {self.where}; {has}{missing}. Rename"
            f" the folders, or set the order of the outputs: {OPTION} FILE, or {OPTION} {SETTING} for the setting's"
        )


def class_orders_columns(
    order: ClassOrder, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None
) -> list[int] | None:
    """The output of a classifier for each class of a setting, by the classifier's order; None if it is the setting's.

    Raises:
        DataError: If the classifier's classes have other names than the setting's.
    """
    whole = setting.class_sublist is None and setting.class_groups is None
    return order.columns(model.name, setting.name, folders_of(setting), class_names, whole)


def matches_as_set(names: Sequence[str], listed: Sequence[str]) -> bool:
    """Checks whether two lists have the same names, in whatever order."""
    return sorted(_plain(names)) == sorted(_plain(listed))


def folders_of(setting: EvalSetting) -> list[str] | None:
    """The names of the folders that hold a setting's classes, in its order; None where none do."""
    folders = getattr(setting.dataset, "folders", None)
    return folders() if callable(folders) else None


def asked(option: str) -> ClassOrder:
    """The order that ``--class-order`` names: a rule, or a file of class names.

    Raises:
        DataError: If the file cannot be read.
    """
    if option in (SETTING, *RULES):
        return ClassOrder(option, OPTION)
    return listed(class_names_in(Path(option)), f"{OPTION} {option}", None)


def class_names_in(file: Path) -> Any:
    """Class names from a file: one in each line, or JSON: a list, or a mapping such as ``class_to_idx``.

    Raises:
        DataError: If it cannot be read.
    """
    try:
        text = file.read_text(encoding="utf-8")
        return (
            json.loads(text) if file.suffix == ".json" else [line.strip() for line in text.splitlines() if line.strip()]
        )
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"the class names in {file} cannot be read: {error}") from error


def listed(names: Any, where: str, classes: int | None) -> ClassOrder:
    """An order that is written down: a list of names, a mapping from names to numbers, or one from numbers to names.

    Args:
        names: The text as written.
        where: Its place.
        classes: The number of outputs, if known.

    Raises:
        DataError: If it does not give each output one name.
    """
    listed_names = in_order(names)
    if not listed_names or not all(isinstance(name, str) and name for name in listed_names):
        raise DataError(
            f"{where} should have a name for each class, in the order of the outputs or with their numbers from 0;"
            f" found {str(names)[:60]!r}"
        )
    if (twin := _twin(tuple(listed_names))) is not None:
        first, second = [place for place, name in enumerate(listed_names) if name == twin][:2]
        raise DataError(
            f"{where}: two classes have the name {twin!r}, the outputs {first:,} and {second:,} (from 0); give each a"
            f" name of its own, such as a WordNet id, or {OPTION} FILE"
        )
    if classes is not None and len(listed_names) != classes:
        raise DataError(f"{where} names {len(listed_names):,} classes, but the network has {classes:,} outputs")
    return ClassOrder(LISTED, where, tuple(listed_names))


def _twin(names: tuple[str, ...]) -> str | None:
    """A name that two outputs have, other than in ImageNet's own list, which has two cranes."""
    if len(set(names)) == len(names) or vocabulary_of(names).ids != names:
        return None
    return Counter(names).most_common(1)[0][0]


def in_order(names: Any) -> list[Any]:
    """The names in a list, or in a mapping between names and the numbers from 0 on; empty if it is neither."""
    if isinstance(names, list | tuple):
        return list(names)
    if not isinstance(names, dict):
        return []
    pairs = [
        (value, key) if isinstance(key, str) and not key.isdigit() else (key, value) for key, value in names.items()
    ]
    if all(isinstance(value, str) for _, value in pairs) and all(_is_number(number) for number, _ in pairs):
        ordered = sorted((int(number), name) for number, name in pairs)
        if [number for number, _ in ordered] == list(range(len(ordered))):
            return [name for _, name in ordered]
    swapped = sorted((value, key) for key, value in names.items() if type(value) is int)
    return [key for _, key in swapped] if [number for number, _ in swapped] == list(range(len(names))) else []


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and value.isdecimal())


def _plain(names: Sequence[str]) -> list[str]:
    """Normalizes names for comparison: a letter with an accent may be one character or two."""
    return [unicodedata.normalize("NFC", str(name)) for name in names]


def _some(names: Sequence[str] | None) -> str:
    shown = ", ".join(repr(name) for name in list(names or ())[:SHOWN])
    return f"{shown} … ({len(names or ()):,})" if len(names or ()) > SHOWN else shown
