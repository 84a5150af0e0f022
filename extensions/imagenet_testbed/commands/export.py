"""``testbed export csv``: ImageNet-testbed's table."""

from __future__ import annotations

from pathlib import Path

import click

from testbed.cli.options.stored import note_parts
from testbed.console.options import store_command
from testbed.console.output import count
from testbed.registry.references import is_part


@store_command
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path, db_url: str | None) -> int:
    """Write top-1 of models × settings, as ImageNet-testbed's table."""
    from testbed.db.store import Store
    from testbed.stored_results.imagenet_testbed_table import METRIC_SUFFIXES, export_csv

    with Store.open(db_url) as store:
        found = store.results.find(metrics=["top1", *METRIC_SUFFIXES], slices=["overall"])
        note_parts(store)
    rows, columns = export_csv([result for result in found if not is_part(result.eval_setting)], file)
    click.echo(f"{count(rows, 'model')} × {count(columns, 'column')} written to {file}")
    return 0
