"""``testbed run --recorded DIR``: all files of answers that VLMEvalKit wrote below a folder, each on its own set."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from testbed.errors import DataError, shortened
from testbed.inputs import Inputs, using
from testbed.paths import expanded

_SHOWN = 3  # names in a message


def with_recorded(
    folder: Path, models: Sequence[str], eval_settings: Sequence[str], inputs: Inputs
) -> tuple[Sequence[str], Sequence[str]]:
    """Models and settings with those of the files of answers below a folder; other tables there are counted in a line.

    Raises:
        DataError: If there is no such file.
    """
    from testbed.models.replay import PREFIX
    from testbed.tasks.parts.recorded_sets import set_in_name

    with using(inputs):
        found = {path: set_in_name(path) for path in _tables(expanded(folder))}
    of_sets = {path: said for path, said in found.items() if said is not None}
    if not of_sets:
        raise DataError(
            f"{folder} {'has' if expanded(folder).is_dir() else 'is no folder with'} no file of answers of VLMEvalKit:"
            " expected MODEL_SET.xlsx, .tsv or .json, with the name of a set that is known"
        )
    others = [path.name for path in found if path not in of_sets]
    if others:
        more = ", …" if len(others) > _SHOWN else ""
        click.echo(
            f"{folder}: left out {len(others):,} tables that name no known set:"
            f" {', '.join(shortened(each) for each in others[:_SHOWN])}{more}",
            err=True,
        )
    names = [f"{PREFIX}{path}" for path in of_sets]
    return (*models, *names), eval_settings or tuple(dict.fromkeys(of_sets.values()))


def _tables(folder: Path) -> list[Path]:
    """The tables of answers below a folder; one to which links lead is taken once, by its shortest path."""
    from testbed.data.tables.answers import is_prediction_table
    from testbed.data.tables.scores import is_table_of_scores

    files = [Path(root) / name for root, _, names in os.walk(folder) for name in names]
    found: dict[str, Path] = {}
    for path in sorted(files, key=lambda each: (len(each.parts), str(each))):
        if path.is_file() and is_prediction_table(path) and not is_table_of_scores(path):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())
