"""Files that a run writes in addition to the store: ``testbed run --logdir`` and ``--save-clf``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.output import count
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.execution.report import Report


def write_heads(store: Store, finished: Sequence[int], folder: Path) -> None:
    """Writes the zero-shot heads of evaluations to a folder (``--save-clf``)."""
    from testbed.tasks.parts.head_files import save_heads

    try:
        files = save_heads(store, [store.evaluations.get(number) for number in finished], folder)
    except OSError as error:
        raise TestbedError(f"--save-clf {folder} cannot be written: {error}") from error
    click.echo(f"Wrote {count(len(files), 'zero-shot head')} to {folder}", err=True)


def write_logdir(store: Store, report: Report, logdir: Path) -> None:
    """Writes the metrics and outputs of a run to a folder (``--logdir``)."""
    from testbed.stored_results.export import write_run

    try:
        files = write_run(store, report.evaluations, logdir)
    except OSError as error:
        raise TestbedError(f"--logdir {logdir} cannot be written: {error}") from error
    click.echo(f"Wrote metrics.json and {count(files, 'file')} of outputs to {logdir}", err=True)
