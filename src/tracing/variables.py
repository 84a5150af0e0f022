"""The environment variables that a source file names, where it is not seen which of them it looks up."""

from __future__ import annotations

import re

ALL = "*"  # ends a name that stands for all variables that begin so

_READ = re.compile(
    r"""environb?\[\s*b?["'](\w+)["']\s*\](?!\s*=[^=])|environb?\.(?:get|pop|setdefault)\(\s*b?["'](\w+)["']|getenvb?\(\s*b?["'](\w+)["']"""
)
_ALL_OF_THEM = re.compile(r"environ(?!b?\s*(\[|\.(get|pop|setdefault|update)\())")
_CAPITALS = re.compile(r"""["']([A-Z][A-Z0-9_]+)["']""")  # as variables are named
_BEGINNING = re.compile(r"""startswith\(\(?\s*["'](\w+)["']|["']([A-Za-z]\w*_)["']""")


def named_variables(text: str) -> list[str]:
    """Returns the variables that a source may look up: those that it reads by name, or chooses from all.

    Args:
        text: The source, which was run before anybody could look.
    """
    return list(dict.fromkeys([*_found(_READ, text), *(chosen_variables(text) if _ALL_OF_THEM.search(text) else ())]))


def chosen_variables(text: str) -> list[str]:
    """Returns the variables that a source may choose from all: the names in it, and what it may compare them with.

    Args:
        text: A source that goes through all variables, or copies them.
    """
    return _found(_CAPITALS, text) + [name + ALL for name in _found(_BEGINNING, text)]


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return list(dict.fromkeys(name for match in pattern.finditer(text) for name in match.groups() if name))
