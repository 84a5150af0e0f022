"""``--log``: the results of a run in experiment trackers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from testbed.visible import visible_line

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.trackers.mirrors import Mirror


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
