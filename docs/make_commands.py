"""Writes docs/commands.md: the help of the programs, as they print it. A test compares the two."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner

from testbed import __main__
from testbed.cli import corrupt, db, eval, export_wds
from testbed.plotting import figures, ranking, site
from testbed.plotting.picture import picture_command

WIDTH = "110"
PROGRAMS = (
    ("testbed", __main__.command, "All programs under one name; `python -m testbed` is the same."),
    ("python eval.py", eval.command, "Also installed as `testbed eval`."),
    ("python db.py", db.command, "Also installed as `testbed db`."),
    (
        "testbed corrupt",
        corrupt.command,
        "Corrupted copies of a folder of images; see [corruptions.md](corruptions.md).",
    ),
    (
        "testbed export-wds",
        export_wds.command,
        "A data set in CLIP benchmark's webdataset format; see [webdatasets.md](webdatasets.md).",
    ),
    ("testbed site", site.command, "The same as `python plotting/site.py`; see [figures.md](figures.md)."),
    ("testbed figures", figures.command, "The same as `python plotting/figures.py`; see [figures.md](figures.md)."),
    (
        "python plotting/ranking.py",
        picture_command(ranking.PICTURE),
        "Models ranked over many settings; this and the other figures: [figures.md](figures.md).",
    ),
)


def reference() -> str:
    """The text of the page."""
    os.environ["COLUMNS"] = WIDTH
    parts = ["# Commands\n\nWritten by `python docs/make_commands.py` from the programs' own help.\n"]
    for name, command, note in PROGRAMS:
        shown = CliRunner().invoke(command, ["--help"], prog_name=name, terminal_width=int(WIDTH))
        parts.append(f"## {name.removeprefix('python ')}\n\n{note}\n\n```text\n{shown.output.rstrip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("commands.md").write_text(reference(), encoding="utf-8")
