"""Writes docs/commands.md: the help of both programs, as they print it. A test compares the two."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from testbed.cli import db, eval

WIDTH = "110"
PROGRAMS = (
    ("eval.py", eval.command, "Also installed as `testbed-eval`."),
    ("db.py", db.command, "Also installed as `testbed-db`."),
)


def reference() -> str:
    """The text of the page."""
    os.environ["COLUMNS"] = WIDTH
    parts = ["# Commands\n\nWritten by `python docs/make_commands.py` from the programs' own help.\n"]
    for name, command, note in PROGRAMS:
        shown = CliRunner().invoke(command, ["--help"], prog_name=f"python {name}", terminal_width=int(WIDTH))
        parts.append(f"## {name}\n\n{note}\n\n```text\n{shown.output.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(reference(), encoding="utf-8")
