"""Writes docs/commands.md: the help of the programs, as they print it. A test compares the two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
from click.testing import CliRunner

from testbed.cli import db, eval, program
from testbed.plotting import effective_robustness, paper_plots, ranking
from testbed.plotting.picture import picture_command

WIDTH = "110"
FIGURES = (
    ("python plotting/paper_plots.py", paper_plots.command),
    ("python plotting/effective_robustness.py", picture_command(effective_robustness.PICTURE)),
    ("python plotting/ranking.py", picture_command(ranking.PICTURE)),
)


def commands(name: str = "testbed", command: click.Command = program.command) -> Iterator[tuple[str, click.Command]]:
    """A command's name and itself, and those of the commands in it."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for sub in command.list_commands(context):
            inner = command.get_command(context, sub)
            assert inner is not None
            yield from commands(f"{name} {sub}", inner)


def reference() -> str:
    """The text of the page."""
    parts = ["# Commands\n\nWritten by `python docs/make_commands.py` from the programs' own help.\n"]
    programs = (("python eval.py", eval.command), ("python db.py", db.command))
    for name, command in (*commands(), *programs, *FIGURES):
        shown = CliRunner().invoke(
            command, ["--help"], env={"COLUMNS": WIDTH}, prog_name=name, terminal_width=int(WIDTH)
        )
        parts.append(f"## {name.removeprefix('python ')}\n\n```text\n{shown.output.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(reference(), encoding="utf-8")
