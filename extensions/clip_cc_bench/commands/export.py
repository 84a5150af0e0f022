"""``testbed export clip-cc``: caption scores in CLIP-CC-Bench's format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.cli.options.stored import folder_argument, models_option, settings_option
from testbed.console.options import store_command


@store_command
@folder_argument
@models_option
@settings_option
@click.option(
    "--scale",
    type=click.Choice(["unit", "raw"]),
    default="unit",
    show_default=True,
    help="Similarities from 0 to 1, or unchanged cosines.",
)
def command(folder: Path, models: Sequence[str], settings: Sequence[str], scale: str, db_url: str | None) -> int:
    """Write caption scores in CLIP-CC-Bench's format.

    Writes a CSV and a summary for each captioner and decoder.
    """
    from testbed.db.store import Store
    from testbed.extensions.clip_cc_bench.run import export

    with Store.open(db_url) as store:
        export(store, folder, models, settings, scale)
    return 0
