"""Lines about the prompts of zero-shot classification: where they come from, and which classes share a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.console.output import count, say

if TYPE_CHECKING:
    from testbed.execution.report import Report

SHOWN = 12
SHOWN_NAMES = 5


def print_prompts(report: Report) -> None:
    """Prints the origin of prompts that do not come from a file, and which class names are equal."""
    lines = lines_of_prompts(report)
    for line in lines[:SHOWN]:
        say(line)
    if len(lines) > SHOWN:
        say(f"Prompts: {len(lines) - SHOWN} more such lines")


def lines_of_prompts(report: Report) -> list[str]:
    """A line for each setting whose prompts follow from its folders, and for each list of equal class names."""
    told: dict[str, None] = {}
    equal: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in report.plan.cells:
        spec = (cell.identity.get("forward") or {}).get("prompts") or {}
        if cell.opened_setting is None or "class_names" not in spec:
            continue
        about = cell.opened_setting.setting.prompts.about
        told.update(dict.fromkeys(about() if about is not None else ()))
        if names := _equal_names(spec["class_names"], cell.opened_setting.dataset.class_names):
            equal.setdefault(names, {})[cell.setting] = None
    return [*told, *(_in_words(names, list(settings)) for names, settings in equal.items())]


def _equal_names(class_names: list[str], folders: Sequence[str] | None) -> tuple[str, ...]:
    """The names that several classes share, with the folders of these classes if known."""
    shared = [name for name, number in Counter(class_names).items() if number > 1]
    own = folders or class_names
    said = []
    for name in shared:
        which = [str(own[index]) for index, each in enumerate(class_names) if each == name and index < len(own)]
        said.append(repr(name) if set(which) == {name} else f"{name!r} ({', '.join(which[:SHOWN_NAMES])})")
    return tuple(said)


def _in_words(names: tuple[str, ...], settings: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    where = settings[0] if len(settings) == 1 else count(len(settings), "setting")
    several = "is the name" if len(names) == 1 else "are the names"
    return (
        f"Equal class names: in {where}, {shown} {several} of more than one class each; their prompts are the same, so"
        " zero-shot classification cannot distinguish these classes"
    )
