"""Printing of sentences, tables and JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import click

from testbed.console.columns import blocks, line_width, prose
from testbed.jsontext import to_json
from testbed.visible import visible_line

CLUSTERED = "whole groups of samples of the data set are drawn and tested"
SECONDS = 5.0  # between progress lines


def print_json(value: Any) -> None:
    """Prints a value as JSON."""
    click.echo(to_json(value))


def say(text: str, err: bool = False) -> None:
    """Prints a sentence, wrapped to the terminal."""
    click.echo(prose(text), err=err)


def say_some(lines: Sequence[str], most: int, more: str, noun: str = "") -> None:
    """Prints the first sentences; then ``more``, with the number of the others (of a noun) in the place of ``{}``."""
    for line in lines[:most]:
        say(line)
    if len(lines) > most:
        say(more.format(count(len(lines) - most, noun) if noun else len(lines) - most))


def footnote(text: str) -> None:
    """Prints a sentence about a table to standard error."""
    say(text, err=True)


def shares() -> Callable[[str, float], None]:
    """Returns a function that reports progress: a line to stderr every five seconds.

    It takes a description, and the share that is done.
    """
    told = time.monotonic()

    def tell(what: str, share: float) -> None:
        nonlocal told
        if time.monotonic() - told >= SECONDS:
            told = time.monotonic()
            click.echo(f"{what}: {100 * share:.0f} %", err=True)

    return tell


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Formats a table with columns of minimal width, numbers to the right; several on a narrow terminal."""
    return fitted(header, rows, right, line_width())


def fitted(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int], width: int | None) -> str:
    """Formats a table with a maximum width; see `table`."""
    lines = [list(map(visible_line, row)) for row in (header, *rows)]
    aligned = set(right)
    columns = range(len(header))
    widths = [max(len(line[column]) for line in lines) for column in columns]
    if width is None or sum(widths) + 2 * (len(widths) - 1) <= width:
        return _drawn(lines, columns, aligned)
    return "\n\n".join(_drawn(part, chosen, aligned) for chosen, part in blocks(lines, aligned, width))


def _drawn(lines: Sequence[Sequence[str]], columns: Sequence[int], aligned: Collection[int]) -> str:
    """Draws a table of these columns; its cells may have several lines."""
    parts = [[cell.split("\n") for cell in line] for line in lines]
    widths = [max(len(name) for line in parts for name in line[place]) for place in range(len(columns))]
    text = []
    for line in parts:
        for pieces in zip_longest(*line, fillvalue=""):
            cells = [
                piece.rjust(width) if column in aligned else piece.ljust(width)
                for column, piece, width in zip(columns, pieces, widths, strict=True)
            ]
            text.append("  ".join(cells).rstrip())
    text.insert(max(map(len, parts[0])), "  ".join("─" * width for width in widths))
    return "\n".join(text)


def grid(
    rows: Sequence[str], columns: Sequence[str], cells: dict[tuple[str, str], str], corner: str, width: int
) -> str:
    """Formats a table of rows × columns, in blocks of as many columns as fit the width."""
    first = max([len(corner), *map(len, rows)], default=0)
    blocks: list[list[str]] = [[]]
    used = first
    for column in columns:
        needed = 2 + max([len(column), *(len(cells.get((row, column), "")) for row in rows)])
        if blocks[-1] and used + needed > width:
            blocks.append([])
            used = first
        blocks[-1].append(column)
        used += needed
    return "\n\n".join(
        table(
            [corner, *block],
            [[row, *(cells.get((row, column), "") for column in block)] for row in rows],
            right=range(1, len(block) + 1),
        )
        for block in blocks
    )


def sample_count(n: int, clusters: int | None) -> str:
    """A number of samples, and of the groups that are compared as a whole; see `CLUSTERED`."""
    return f"{n:,}" if clusters is None else f"{n:,} in {clusters:,}"


def count(number: int, noun: str) -> str:
    """A number and its noun, in the plural where needed."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
