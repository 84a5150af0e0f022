"""Suggestions for an unknown command or option."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping

import click

from testbed.errors import ExtensionError

# Options whose names differ between commands: name → possible other names.
OTHER_NAMES = {
    "--metric": ("--score",),
    "--score": ("--metric",),
    "--eval-settings": ("--on",),
    "--settings": ("--on",),
    "--setting": ("--on",),
    "--dataset": ("--on",),
    "--db": ("--db-url",),
    "--store": ("--db-url",),
}


def other_names(known: Collection[str], hints: Mapping[str, str]) -> dict[str, str]:
    """Hints for the names in `OTHER_NAMES` that a command neither has nor has its own hint for."""
    found = {
        name: next((text for text in others if text in known), None)
        for name, others in OTHER_NAMES.items()
        if name not in known and name not in hints
    }
    return {name: f"use {option}" for name, option in found.items() if option is not None}


# Names of these commands in other programs.
_SYNONYMS = {
    **dict.fromkeys(("eval", "evaluate", "test", "bench", "benchmark", "validate", "predict"), "run"),
    **dict.fromkeys(("results", "ls"), "list results"),
    **dict.fromkeys(("delete", "rm"), "store remove"),
    **dict.fromkeys(("plot", "draw"), "figures"),
    **dict.fromkeys(("ui", "dashboard", "view"), "serve"),
    "leaderboard": "rank",
    "diff": "compare",
}
_NEAR = 0.6


def nearest_commands(ctx: click.Context, word: str) -> list[str]:
    """Returns the commands that an unknown word may mean.

    Args:
        ctx: Of the program, or of the group of commands that the word follows.
        word: The unknown word.

    Returns:
        Whole commands, the nearest first: of this group, or commands of other groups with exactly this name.
    """
    root, group = ctx.find_root(), ctx.command_path
    program = root.command_path  # may be several words: python -m testbed
    if ctx is root and word.lower() in _SYNONYMS:
        return [f"{program} {_SYNONYMS[word.lower()]}"]
    known = list(_commands(root.command, program))
    own = {name.rpartition(" ")[2]: name for name in known if name.rpartition(" ")[0] == group}
    near = difflib.get_close_matches(word.lower(), own, n=2, cutoff=_NEAR)
    same = [name for name in known if name.rpartition(" ")[2] == word.lower()]
    return list(dict.fromkeys([*same, *(own[name] for name in near)]))


def _commands(group: click.Command, path: str) -> Iterator[str]:
    """All commands of a program, with the words that call them."""
    for section in getattr(group, "sections", {}).values():
        for name, place in section.items():
            yield f"{path} {name}"
            if (
                not place.startswith("testbed.") or ":" in place
            ):  # an extension's command, or not a module: it may be a group
                inner = _loaded(group, name)
                if inner is not None:
                    yield from _commands(inner, f"{path} {name}")


def _loaded(group: click.Command, name: str) -> click.Command | None:
    try:
        return group.get_command(click.Context(group), name) if isinstance(group, click.Group) else None
    except ExtensionError:
        return None
