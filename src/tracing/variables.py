"""The environment variables that a source file names, for code that was run before anybody could look."""

from __future__ import annotations

import re

ALL = "*"  # ends a name that stands for all variables that begin so

_READ = re.compile(
    r"""environb?\[\s*b?["'](\w+)["']\s*\](?!\s*=[^=])|environb?\.(?:get|pop|setdefault)\(\s*b?["'](\w+)["']|getenvb?\(\s*b?["'](\w+)["']"""
)
_BEGINNING = re.compile(r"""startswith\(\(?\s*["'](\w+)["']|["']([A-Za-z]\w*_)["']""")


def named_variables(text: str) -> list[str]:
    """Returns the variables that a source reads by a name in a text, and the beginnings of those that it looks for.

    Args:
        text: The source.
    """
    names = _found(_READ, text)
    return names + ([name + ALL for name in beginnings(text)] if "environ" in text else [])


def beginnings(text: str) -> list[str]:
    """Returns the texts of a source by which it may choose among names: what they start with, or end in ``_``.

    Args:
        text: The source.
    """
    return _found(_BEGINNING, text)


def _found(pattern: re.Pattern[str], text: str) -> list[str]:
    return list(dict.fromkeys(name for each in pattern.finditer(text) for name in each.groups() if name))
