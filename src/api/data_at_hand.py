"""Eval settings for `testbed.evaluate`: names, definitions, and data in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MappingView, Sequence, Set
from pathlib import Path
from typing import Any

from testbed.api.definitions import registered
from testbed.data.at_hand.kept import Items, keep
from testbed.data.at_hand.objects import FORMS, is_arrays, is_lists, is_pairs, is_rows
from testbed.data.at_hand.objects import items_of as samples_of
from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest
from testbed.registry import registry

Found = str | Path | EvalSetting | Items


def found_settings(eval_settings: Any) -> list[Found]:
    """Returns the names and definitions of eval settings, and the samples of objects. Keeps and registers nothing.

    Args:
        eval_settings: Names, paths, definitions and objects with data: one, several, or a mapping from names for people
            to objects.

    Raises:
        DefinitionError: If one is of an unknown kind; nothing is read from it.
        DataError: If the data of an object cannot be used.
    """
    found = []
    for name, thing in _named(eval_settings):
        known = thing if isinstance(thing, str | Path | EvalSetting) else samples_of(thing, name)
        if known is None:
            hint = "; pass a list of the samples" if isinstance(eval_settings, Iterator) else ""
            raise DefinitionError(
                f"an object of type {type(thing).__name__} is neither an eval setting nor data in a known form{hint};"
                f" expected a name, an EvalSetting, {FORMS}; for any other data set, derive a source of your own from"
                " testbed.data.source.ImageSource"
            )
        found.append(known)
    return found


def setting_names(found: Sequence[Found]) -> list[str]:
    """Returns the names of eval settings, after registering definitions and keeping the samples of objects."""
    words = []
    for thing in found:
        if isinstance(thing, EvalSetting):
            words.append(registered(thing, registry.eval_settings, registry.add_eval_setting))
        else:
            words.append(keep(thing) if isinstance(thing, Items) else str(thing))
    return words


def transforms_of(found: Sequence[Found]) -> tuple[list[Any], list[Any]]:
    """Returns the transforms that objects apply to their pictures, and those to tensors that have none; each once."""
    asides = [thing.aside() for thing in found if isinstance(thing, Items)]
    return (
        _different(transform for aside in asides for transform in aside.transforms),
        _different(transform for aside in asides for transform in aside.to_tensors),
    )


def _different(transforms: Iterable[Any]) -> list[Any]:
    return list({digest(transform): transform for transform in transforms}.values())


def notes_of(found: Sequence[Found]) -> list[str]:
    """Returns lines about what is not used of objects, each once."""
    return list(dict.fromkeys(note for thing in found if isinstance(thing, Items) for note in thing.aside().notes))


def _named(given: Any) -> Iterator[tuple[str | None, Any]]:
    """Yields each given thing with its display name, if it has one."""
    if type(given) is dict:
        yield from ((str(name), value) for name, value in given.items())
    elif not _is_one(given):
        yield from ((None, thing) for thing in given)
    else:
        yield None, given


def _is_one(given: Any) -> bool:
    """Returns whether the argument is a single setting rather than several. Reads nothing from an unknown object."""
    if isinstance(given, str | Path):
        return True
    several = isinstance(given, Sequence | Set | Iterator | MappingView)
    return not several or is_arrays(given) or is_lists(given) or is_pairs(given) or is_rows(given)
