"""The place for the class name in prompt templates: ``{c}``, or another one that all templates of a list have alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from string import Formatter

from testbed.errors import DataError

PLACE = "c"
_PERCENT = "%s"


def with_places(templates: Sequence[str], where: Callable[[int], str]) -> list[str]:
    """Converts templates to ``{c}`` where the class name goes.

    openai/CLIP's notebook writes ``{}``, other programs ``{classname}`` or ``%s``. These are read if every template has
    the same one. A list in which the templates differ is refused: one of them is a slip.

    Args:
        where: Maps a template's index to its place, for messages: a file and its line.

    Raises:
        DataError: If a template has no such place, places of different names, or a brace that belongs to none. Names
            the first.
    """
    places = [_place(template, index, where) for index, template in enumerate(templates)]
    common = PLACE if PLACE in places else next(iter(places), PLACE)
    for index, place in enumerate(places):
        if place != common:
            raise DataError(
                f"{where(index)} has the place {_written(place)} for the class name where others have"
                f" {_written(common)}: {templates[index]!r}; write {{c}} in all of them"
            )
    return list(templates) if common == PLACE else [template.replace(_written(common), "{c}") for template in templates]


def has_place(text: str) -> bool:
    """Checks whether a text has a usual place for a class name, rather than being a whole prompt."""
    return "{c}" in text or "{}" in text


def _names(template: str) -> list[str]:
    """The names of the places, each once; raises ValueError if a brace belongs to no place."""
    names = []
    for _, name, spec, conversion in Formatter().parse(template):
        if name is not None:
            if spec or conversion or not (name == "" or name.isalnum() or name.isidentifier()):
                raise ValueError(f"the place {{{name}}} is not a name alone")
            names.append(name)
    if "{{" in template or "}}" in template:
        raise ValueError("a doubled brace")
    if not names and _PERCENT in template:
        names.append(_PERCENT)
    return list(dict.fromkeys(names))


def _place(template: str, index: int, where: Callable[[int], str]) -> str:
    """The name of a template's place."""
    try:
        names = _names(template)
    except ValueError as error:
        raise DataError(
            f"{where(index)} should have the place {{c}} for the class name: {template!r} ({error})"
        ) from None
    if not names:
        raise DataError(f"{where(index)} has no place {{c}} for the class name: {template!r}")
    if len(names) > 1:
        written = ", ".join(map(_written, names))
        raise DataError(
            f"{where(index)} has several places, {written}: {template!r}; the class name goes to {{c}} alone"
        )
    return names[0]


def _written(place: str) -> str:
    return place if place == _PERCENT else f"{{{place}}}"
