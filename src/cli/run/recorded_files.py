"""``testbed run --recorded DIR``: scores all answer files that VLMEvalKit wrote below a folder, each on its own set."""

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
    """Returns the models and settings of the answer files below a folder; prints how many other tables there are.

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
            f"{folder} {'has no' if expanded(folder).is_dir() else 'is not a folder; expected one with'} VLMEvalKit"
            " answer files: MODEL_SET.xlsx, .tsv or .json, with the name of a known set"
        )
    others = [path.name for path in found if path not in of_sets]
    if others:
        more = ", …" if len(others) > _SHOWN else ""
        click.echo(
            f"{folder}: left out {len(others):,} tables without the name of a known set:"
            f" {', '.join(shortened(text) for text in others[:_SHOWN])}{more}",
            err=True,
        )
    names = [f"{PREFIX}{path}" for path in of_sets]
    return (*models, *names), eval_settings or tuple(dict.fromkeys(of_sets.values()))


def _tables(folder: Path) -> list[Path]:
    """Returns the tables of answers below a folder; a table reached through links counts once, by its shortest path."""
    from testbed.data.tables.answers import is_prediction_table
    from testbed.data.tables.scores import is_table_of_scores

    files = [Path(root) / name for root, _, names in os.walk(folder) for name in names]
    found: dict[str, Path] = {}
    for path in sorted(files, key=lambda each: (len(each.parts), str(each))):
        if path.is_file() and is_prediction_table(path) and not is_table_of_scores(path):
            found.setdefault(os.path.realpath(path), path)
    return list(found.values())
