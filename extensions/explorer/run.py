"""``testbed run --thumbnails``: small pictures of the samples that a run evaluated, in the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.part import RunOption, RunPart, RunRequest
from testbed.console.options import Option
from testbed.console.output import count

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.execution.report import Report
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog


class Thumbnails(RunPart):
    """Stores thumbnails of the settings of a run, and prints their number and size."""

    def printed(self, catalog: Catalog, options: RunOptions, store: Store, report: Report) -> None:
        """Stores them, unless the run was interrupted."""
        from testbed.db.store import Store
        from testbed.extensions.explorer.thumbnails import store_thumbnails

        if report.interrupted:
            return
        settings = [outcome.setting for outcome in report.finished]
        with Store.open(options.db_url, "write", options.payload_url) as writable:
            stored = store_thumbnails(writable, catalog, settings, lambda note: click.echo(note, err=True))
        skipped = f"; {count(stored.skipped, 'picture')} could not be read" if stored.skipped else ""
        click.echo(f"{count(stored.number, 'new thumbnail')}, {stored.size / 1e6:.1f} MB{skipped}", err=True)


def _part(given: Mapping[str, Any], request: RunRequest) -> Thumbnails | None:
    return Thumbnails() if given["thumbnails"] else None


OPTION = RunOption(
    [
        Option(
            ["--thumbnails"],
            heading="Store and output",
            is_flag=True,
            help="Also store a small JPEG of each sample, for testbed serve and site without the data. Reads"
            " each"
            " image again.",
        )
    ],
    _part,
    stores=True,
)
