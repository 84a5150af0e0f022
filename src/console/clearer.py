"""click's messages about wrong words, in the words of a command line."""

from __future__ import annotations

from collections.abc import Sequence

import click


def clearer(error: click.UsageError, command: str, words: Sequence[str]) -> click.UsageError:
    """click's error about the words after a command, with what was found, what was expected and what to do."""
    if isinstance(error, click.MissingParameter):
        return _missing(error, command, words)
    if isinstance(error, click.BadParameter) and (expected := _number(error.param)) is not None:
        given = error.message.partition(" is not ")[0].strip("'")
        option = error.param.opts[0] if error.param is not None else ""
        return click.UsageError(f"{option} is {expected}, not {given}", ctx=error.ctx)
    return error


def _missing(error: click.MissingParameter, command: str, words: Sequence[str]) -> click.UsageError:
    """Where one option is missing, the command line with it."""
    param = error.param
    if not isinstance(param, click.Option):
        return error
    value = f" {param.metavar.removesuffix('...')}" if param.metavar else ""
    typed = " ".join([command, *words])
    return click.UsageError(f"{param.opts[0]} is missing; write: {typed} {param.opts[0]}{value}", ctx=error.ctx)


def _number(param: click.Parameter | None) -> str | None:
    """Describes the numbers that a parameter takes; None if it takes something else."""
    kind = None if param is None else param.type
    if not isinstance(kind, click.IntRange | click.FloatRange):
        named = {click.INT.name: "a whole number", click.FLOAT.name: "a number"}
        return None if kind is None else named.get(kind.name)
    number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
    ends = []
    if kind.min is not None:
        ends.append(f"above {kind.min:g}" if kind.min_open else f"from {kind.min:g}" if kind.max is not None else "")
    if kind.max is not None:
        ends.append(f"below {kind.max:g}" if kind.max_open else f"to {kind.max:g}")
    if ends == [""]:
        return f"{number} of at least {kind.min:g}"
    return f"{number} {' and '.join(ends) if kind.min_open or kind.max_open else ' '.join(ends)}"
