"""Help texts that fit the terminal: names of options stay whole."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

_OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
_HYPHEN = "\ue000"  # for a hyphen after which no line ends


class HelpFormatter(click.HelpFormatter):
    """Wraps help texts, but never within the name of an option."""

    def write_text(self, text: str) -> None:
        """Writes a paragraph."""
        super().write_text(_kept(text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Writes a list of terms with their explanations."""
        super().write_dl([(term, _kept(text)) for term, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """Returns everything written."""
        return super().getvalue().replace(_HYPHEN, "-")


class Context(click.Context):
    """A context whose help keeps names of options whole."""

    formatter_class = HelpFormatter


def _kept(text: str) -> str:
    return _OPTION.sub(lambda found: found[0].replace("-", _HYPHEN), text)
