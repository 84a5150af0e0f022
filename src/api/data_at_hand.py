"""Eval settings for `testbed.evaluate`: names, definitions, and data in memory."""

from __future__ import annotations

from collections.abc import Iterator, MappingView, Sequence, Set
from pathlib import Path
from typing import Any

from testbed.api.definitions import registered
from testbed.data.at_hand.kept import keep
from testbed.data.at_hand.objects import FORMS, is_arrays, is_pairs
from testbed.data.at_hand.objects import items_of as samples_of
from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry


def setting_names(eval_settings: Any) -> list[str]:
    """Returns the names of eval settings, after registering definitions and keeping the data of objects.

    Args:
        eval_settings: Names, paths, definitions and objects with data: one, several, or a mapping from names for people
            to objects.

    Raises:
        DefinitionError: If one is of an unknown kind; nothing is read from it.
        DataError: If the data of an object cannot be used.
    """
    named = list(_named(eval_settings))
    kinds = [each if isinstance(each, str | Path | EvalSetting) else samples_of(each, name) for name, each in named]
    for kind, (_, each) in zip(kinds, named, strict=True):
        if kind is None:
            raise DefinitionError(
                f"an object of type {type(each).__name__} is neither an eval setting nor data in a known form;"
                f" expected a name, an EvalSetting, {FORMS}; for any other data set, derive a source of your own from"
                " testbed.data.source.ImageSource"
            )
    words = []
    for kind in kinds:
        if isinstance(kind, str | Path):
            words.append(str(kind))
        elif isinstance(kind, EvalSetting):
            words.append(registered(kind, registry.eval_settings, registry.add_eval_setting))
        elif kind is not None:
            words.append(keep(kind))
    return words


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
    return not several or is_arrays(given) or is_pairs(given)
