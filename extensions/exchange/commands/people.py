"""``testbed people``: stores people's responses to the images of a setting as models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from testbed.cli.options.stored import STORED_SETTING
from testbed.console.options import Argument, Option, store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import percent


@store_command
@click.argument("files", nargs=-1, required=True, cls=Argument, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--on",
    "setting",
    cls=Option,
    required=True,
    help="The setting with the images; a model must have been run on it.",
    **STORED_SETTING,
)
def command(files: Sequence[Path], setting: str, db_url: str | None, as_json: bool) -> int:
    """Store people's responses as models human:NAME.

    FILE is a CSV from model-vs-human's raw-data, or a folder of these. testbed agreement then compares models with
    people.

    \b
    Example:
      testbed people raw-data/cue-conflict --on model-vs-human.cue-conflict
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange.people import add_people

    with Store.open(db_url, "write") as store:
        found = add_people(store, setting, files)
    if as_json:
        print_json([{"eval_setting": setting, **asdict(person)} for person in found])
        return 0
    lines = [
        [
            *(person.model, f"{person.n:,}", f"{percent(person.top1)} %", f"{person.unanswered:,}"),
            *(f"{person.without:,}", f"{person.repeated:,}"),
        ]
        for person in found
    ]
    header = ["model", "images", "top1", "no response", "not shown", "shown again"]
    click.echo(table(header, lines, right=[1, 2, 3, 4, 5]))
    footnote(f"on {setting}; no response counts as wrong; if an image was shown again, the first response counts")
    return 0
