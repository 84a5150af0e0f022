"""``testbed run --thumbnails``: small pictures of the samples that a run evaluated, in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from testbed.console.output import count

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog


def thumbnails_of(catalog: Catalog, options: RunOptions, report: Report) -> None:
    """Stores thumbnails of the settings of a run, and says how many and how large they are."""
    from testbed.db.store import Store
    from testbed.extensions.explorer.thumbnails import store_thumbnails

    settings = [each.setting for each in report.finished]
    with Store.open(options.db_url, "write", options.payload_url) as store:
        stored = store_thumbnails(store, catalog, settings, lambda note: click.echo(note, err=True))
    skipped = f"; {count(stored.skipped, 'picture')} could not be read" if stored.skipped else ""
    click.echo(f"{count(stored.number, 'new thumbnail')}, {stored.size / 1e6:.1f} MB{skipped}", err=True)
