"""Task options: what a setting says of its task, as the task's own dataclass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from testbed.errors import DefinitionError

T = TypeVar("T")
_WORDS: dict[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Mapping: "a dictionary",
    Callable: "a function",
}


@dataclass(frozen=True)
class NoOptions:
    """Of a task that has none."""


def as_options(kind: type[T], given: Mapping[str, Any], what: str) -> T:
    """Makes a dataclass of a dictionary, and of dictionaries in it where fields are dataclasses.

    Args:
        kind: The dataclass.
        given: Field → value.
        what: What has these fields, for messages.

    Raises:
        DefinitionError: If a field is unknown, lacks, or has a value of another type; says what is expected.
    """
    known = {each.name: each for each in fields(cast(Any, kind))}
    hints = get_type_hints(kind)
    for name in given:
        if name not in known:
            raise DefinitionError(f"{what} has no {name!r}; it has {', '.join(known) or 'none'}")
    for name, each in known.items():
        if name not in given and each.default is MISSING and each.default_factory is MISSING:
            raise DefinitionError(f"{what} needs {name!r}: {_in_words(hints[name])}")
    return kind(**{name: _value(hints[name], value, name) for name, value in given.items()})


def _value(hint: Any, value: Any, name: str) -> Any:
    if is_dataclass(hint) and isinstance(value, Mapping):
        return as_options(cast(Any, hint), value, f"the task option {name!r}")
    if not _fits(hint, value):
        raise DefinitionError(f"the task option {name!r} is {value!r}; expected {_in_words(hint)}")
    return value


def _fits(hint: Any, value: Any) -> bool:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return any(_fits(each, value) for each in get_args(hint))
    if kind in (Sequence, tuple):
        return isinstance(value, list | tuple) and all(_fits(get_args(hint)[0], each) for each in value)
    if kind is float:
        kind = int | float
    return kind is Any or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))


def _in_words(hint: Any) -> str:
    kind = get_origin(hint) or hint
    if kind in (Union, UnionType):
        return " or ".join(map(_in_words, get_args(hint)))
    if kind in (Sequence, tuple):
        return f"a list, each {_in_words(get_args(hint)[0])}"
    if is_dataclass(kind):
        return f"a dictionary with {', '.join(each.name for each in fields(kind))}"
    return _WORDS.get(kind, str(kind))
