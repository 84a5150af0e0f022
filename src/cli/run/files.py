"""Where a run writes besides the store: files (``--logdir``, ``--save-clf``) and experiment trackers (``--log``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.console.output import count
from testbed.errors import TestbedError
from testbed.visible import visible_line

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.execution.report import Report
    from testbed.trackers.mirrors import Mirror


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


def trackers(words: Sequence[str], db_url: str | None) -> list[Mirror]:
    """Returns the trackers, after checking that they are installed.

    Raises:
        DataError: If a word does not name a tracker.
        MissingExtraError: If one is not installed.
    """
    if not words:
        return []
    from testbed.trackers.results import mirrors_of

    return mirrors_of(words, db_url)


def log_to_trackers(db_url: str | None, mirrors: Sequence[Mirror], report: Report) -> bool:
    """Logs the results of a run, including stored ones; prints what could not be logged; returns whether all was."""
    if not mirrors:
        return True
    from testbed.db.store import Store
    from testbed.trackers.results import log_evaluations

    with Store.open(db_url, mode="write") as store:
        problems = log_evaluations(store, mirrors, report.evaluations)
    for problem in problems:
        click.echo(visible_line(f"--log: {problem}; the results are stored, and the same command logs them"), err=True)
    return not problems
