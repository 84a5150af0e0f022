"""``testbed export logits``: the logits of models on a setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from testbed.cli.options.stored import every_evaluation_option, folder_argument, models_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import count, print_json
from testbed.errors import TestbedError


@store_command
@setting_argument
@folder_argument
@models_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["npz", "csv", "parquet"]),
    default="npz",
    show_default=True,
    help="The files.",
)
@every_evaluation_option
def command(
    setting: str,
    folder: Path,
    models: Sequence[str],
    form: Literal["npz", "csv", "parquet"],
    everything: bool,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Write the logits of models on a setting, with ids and targets."""
    from testbed.db.store import Store
    from testbed.stored_results import export

    with Store.open(db_url) as store:
        try:
            entries = export.save_logits(store, setting, folder, list(models) or None, form, everything)
        except OSError as error:
            raise TestbedError(f"the logits cannot be written to {folder}: {error.strerror or error}") from error
    if as_json:
        print_json(entries)
    else:
        for entry in entries:
            label = f" ({entry['label']})" if "label" in entry else ""
            click.echo(f"{entry['model']}{label}: {folder / entry['file']}")
        click.echo(f"{count(len(entries), 'file')} and {folder / export.MANIFEST}", err=True)
    return 0
