"""``testbed export verdicts`` and ``answers``: verdicts of judges, and answers for people to label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import models_option, note_parts, settings_option
from testbed.console.options import plugin_option, store_command, use_own_names
from testbed.console.output import count


@store_command
@click.argument("file", type=click.Path(path_type=Path))
@models_option
@settings_option
@plugin_option
def command(
    file: Path, models: Sequence[str], settings: Sequence[str], plugins: Sequence[str], db_url: str | None
) -> int:
    """Write the verdicts of judges as a CSV of labels.

    Settings are judged ones (X@NAME); X@labels:FILE then scores without the judge.
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange import verdicts
    from testbed.registry import registry

    registry.load(plugins)
    use_own_names(db_url)
    with Store.open(db_url) as store:
        if not settings:
            note_parts(store)
        rows = verdicts.export_verdicts(store, registry, file, models or None, settings or None)
    click.echo(f"{count(rows, 'verdict')} written to {file}")
    return 0


@store_command
@click.argument("number", type=click.IntRange(min=1), metavar="N")
@click.argument("file", type=click.Path(path_type=Path))
@models_option
@settings_option
def answers(number: int, file: Path, models: Sequence[str], settings: Sequence[str], db_url: str | None) -> int:
    """Draw N answers of each model at random, for people to label.

    The CSV is for testbed calibrate and for X@labels:FILE.
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange import verdicts

    with Store.open(db_url) as store:
        if not settings:
            note_parts(store)
        rows = verdicts.suggest_labels(store, file, number, models or None, settings or None, seed=0)
    click.echo(f"{count(rows, 'answer')} written to {file}; fill in the column label: 1 is right, 0 is wrong")
    return 0
