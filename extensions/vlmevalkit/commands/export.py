"""``testbed export vlmevalkit``: answers and scores in VLMEvalKit's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import folder_argument, models_option, note_parts, settings_option
from testbed.console.options import store_command
from testbed.console.output import count, print_json


@store_command
@folder_argument
@models_option
@settings_option
def command(folder: Path, models: Sequence[str], settings: Sequence[str], db_url: str | None, as_json: bool) -> int:
    """Write answers and scores in VLMEvalKit's format.

    Writes a table of predictions and its scores for each model and set.
    """
    from testbed.db.store import Store
    from testbed.extensions.vlmevalkit import vlmevalkit_files

    with Store.open(db_url) as store:
        if not settings:
            note_parts(store)
        files = vlmevalkit_files.export_vlmevalkit(store, folder, models or None, settings or None)
    if as_json:
        print_json([str(file) for file in files])
    else:
        click.echo(f"{count(len(files), 'file')} written to {folder}")
    return 0
