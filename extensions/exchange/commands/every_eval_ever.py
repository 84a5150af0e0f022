"""``testbed export every-eval-ever``: results and samples as Every Eval Ever's records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from testbed.claims.every_eval_ever import RELATIONSHIPS
from testbed.cli.options.stored import folder_argument, models_option, note_counts, settings_option
from testbed.console.options import store_command
from testbed.console.output import count, print_json


@store_command
@folder_argument
@models_option
@settings_option
@click.option(
    "--organization", default="unknown", show_default=True, metavar="NAME", help="The evaluating organization."
)
@click.option(
    "--relationship",
    type=click.Choice(RELATIONSHIPS),
    default="other",
    show_default=True,
    help="The organization's relationship to the models.",
)
def command(
    folder: Path,
    models: Sequence[str],
    settings: Sequence[str],
    organization: str,
    relationship: str,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Write results and samples as Every Eval Ever's records.

    Schema 0.3.0: for each cell COLLECTION/DEVELOPER/MODEL/UUID.json with all metrics, and UUID_samples.jsonl with all
    samples. Equal stores give equal files.
    """
    from testbed.db.store import Store
    from testbed.extensions.exchange.every_eval_ever.writing import write

    with Store.open(db_url) as store:
        done = write(store, folder, models, settings, organization, relationship)
    if as_json:
        print_json({**vars(done), "folder": str(folder)})
        return 0
    note_counts(done.left_out)
    click.echo(f"{count(done.records, 'record')} with {count(done.samples, 'sample')} written to {folder}")
    return 0
