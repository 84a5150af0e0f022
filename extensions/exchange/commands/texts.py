"""``testbed export texts``: the captions of models on a setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import folder_argument, models_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import print_json
from testbed.errors import TestbedError


@store_command
@setting_argument
@folder_argument
@models_option
def command(setting: str, folder: Path, models: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Write the captions of models on a setting, as JSON files."""
    from testbed.db.store import Store
    from testbed.stored_results import export_texts

    with Store.open(db_url) as store:
        try:
            files = export_texts.save_texts(store, setting, folder, list(models) or None)
        except OSError as error:
            raise TestbedError(f"the texts cannot be written to {folder}: {error.strerror or error}") from error
    if as_json:
        print_json([str(file) for file in files])
    else:
        for file in files:
            click.echo(file)
    return 0
