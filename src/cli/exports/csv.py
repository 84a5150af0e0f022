"""``testbed export csv``: ImageNet-testbed's table."""

from __future__ import annotations

from pathlib import Path

import click

from testbed.console.options import store_command
from testbed.console.output import count


@store_command
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path, db_url: str | None) -> int:
    """Top-1 of models × settings, as ImageNet-testbed's table."""
    from testbed.compat.imagenet_testbed_table import METRIC_SUFFIXES, export_csv
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        results = store.results.find(metrics=["top1", *METRIC_SUFFIXES], slices=["overall"])
    rows, columns = export_csv(results, file)
    click.echo(f"{count(rows, 'model')} × {count(columns, 'column')} written to {file}")
    return 0
