"""The summary that a run prints at its end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.checks import print_checks
from testbed.cli.run.times import print_times
from testbed.console.class_lines import print_classes
from testbed.console.model_lines import print_models
from testbed.console.output import count, grid, say, say_some
from testbed.console.run_remarks import SHOWN, first_unread, not_finite, remarks_of
from testbed.console.unread_answers import print_unread
from testbed.entities import NOT_FINITE, OVERALL, REFUSED
from testbed.errors import TestbedError
from testbed.formatting import cell_value, percent
from testbed.metric_specs import MetricSpec, main_metric, spec_of

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.graph.cells import LeftOuts
    from testbed.graph.options import RunOptions
    from testbed.stored_results.unread import UnreadSample

STATUSES = ("complete", "derived", "scored", "stored", "unsupported", "failed", "incomplete", "stopped")


def print_report(
    report: Report,
    results: Sequence[Any],
    unreadable: Mapping[int, int],
    models: Sequence[str],
    settings: Sequence[str],
    override: bool,
    where: str | None,
    unread: Mapping[int, Sequence[UnreadSample]] | None = None,
) -> None:
    """Prints unread answers, the main metric of each cell, failures, and a summary of the run.

    Args:
        report: How the run ended.
        results: The metrics of its evaluations.
        unreadable: Evaluation id → how many of its samples could not be read.
        models: The models, in the order of the command line.
        settings: The settings, likewise.
        override: Whether the run had ``--override``.
        where: The store; None if the results are not stored.
        unread: Evaluation id → the first samples that could not be read; see `first_unread`.
    """
    print_unread(results)
    _print_table(report, results, models, settings)
    print_models(report)
    print_classes(report)
    for line in [line for kind in remarks_of(report, results, unreadable, unread or {}) for line in kind.shown()]:
        say(line)
    _print_published(report, results)
    print_checks(report.checks)
    print_times([times for _, times in sorted(report.times.items())])
    _print_summary(report, override, where)


def print_ended(report: Report, options: RunOptions, models: Sequence[str], settings: Sequence[str]) -> None:
    """Prints the finished cells of an interrupted run, if the store can be read; takes what `print_report` takes."""
    from testbed.db.store import Store

    if not report.passes:
        return  # nothing was begun
    with suppress(TestbedError), Store.open(options.db_url) as store:
        results, unreadable = store.results.of(report.evaluations), store.outputs.unreadable(report.evaluations)
        named = first_unread(store, unreadable)
        print_report(report, results, unreadable, models, settings, options.override, store.display_url, named)


def _print_table(report: Report, results: Sequence[Any], models: Sequence[str], settings: Sequence[str]) -> None:
    """Prints the main metric of each cell of this run, and why cells failed or are not supported."""
    shown = headlines(results)
    labels = {setting: f"{setting} ({shown[setting]})" for setting in settings if shown.get(setting, "top1") != "top1"}
    labels = {setting: labels.get(setting, setting) for setting in settings}
    broken = {(result.model, result.eval_setting) for result in not_finite(results)}
    cells = {
        (result.model, labels[result.eval_setting]): cell_value(result.value, result.unit)
        + (" (NaN)" if (result.model, result.eval_setting) in broken else "")
        for result in results
        if result.metric == shown.get(result.eval_setting) and result.slice == OVERALL
    }
    for outcome in report.finished:
        cells.setdefault((outcome.model, labels[outcome.setting]), percent(None))
    for outcome in report.of("unsupported", "failed", "incomplete", "stopped"):
        cells[outcome.model, labels[outcome.setting]] = outcome.status
    if cells:
        only_top1 = all(label == setting for setting, label in labels.items())
        heading = "top-1, %" if only_top1 else "top-1 (or the metric named), %"
        click.echo(_results_grid(cells, models, list(labels.values()), heading))
        click.echo()
    for status, heading in (("unsupported", "Not supported"), ("failed", "Failed"), ("incomplete", "Incomplete")):
        _print_reasons(heading, report.of(status))


def headlines(results: Sequence[Any]) -> dict[str, str]:
    """Setting → the metric shown in the table, for settings that have one."""
    specs: dict[str, dict[MetricSpec, None]] = {}
    for result in results:
        if result.slice == OVERALL and result.metric not in (NOT_FINITE, REFUSED):
            specs.setdefault(result.eval_setting, {}).setdefault(spec_of(result))
    return {setting: found.name for setting, of in specs.items() if (found := main_metric(of)) is not None}


def unexpected(found: LeftOuts) -> bool:
    """Returns whether anything that was left out may be a sample, so that ``--strict`` fails."""
    return any(not part.expected for parts in found.values() for part in parts)


def _print_published(report: Report, results: Sequence[Any]) -> None:
    """Prints the main metrics beside published values, preceded by any others that differ."""
    from testbed.claims.agreement import AGREES, differing, in_lines
    from testbed.claims.hook import comparisons

    compared = comparisons(report.hooks)
    if not compared:
        return
    main = headlines(results)
    told = differing(compared)
    told += [
        comparison
        for comparison in compared
        if comparison.verdict == AGREES
        and comparison.slice == OVERALL
        and comparison.metric == main.get(comparison.eval_setting)
    ]
    more = "{} beside published ones; testbed show lists them"
    say_some(in_lines(told), SHOWN, more, "more number")


def _print_summary(report: Report, override: bool, where: str | None) -> None:
    counted = Counter(outcome.status for outcome in report.outcomes)
    said = [f"{counted[status]:,} {status}" for status in STATUSES if counted[status]]
    say(f"{count(len(report.outcomes), 'cell')}: {', '.join(said)}.")
    if report.interrupted:
        again = "the same command without --override" if override else "the same command again"
        kept = f"not everything computed is stored ({report.unstored.rstrip('.')})"
        kept = kept if report.unstored else "everything computed so far is stored"
        say(f"The run was interrupted; {kept}. To resume, run {again}.")
    elif not report.passes and not counted["derived"] and not counted["scored"] and counted["stored"]:
        say("All results were already stored; nothing was computed.")
    if where:
        click.echo(f"The results are in {where}")
        for first in report.finished[:1]:
            click.echo(f"  testbed show '{first.model}' '{first.setting}'")


def _results_grid(
    cells: dict[tuple[str, str], str], models: Sequence[str], settings: Sequence[str], heading: str
) -> str:
    """The metrics in percent; the longer of the two lists makes the rows."""
    width = shutil.get_terminal_size((120, 24)).columns
    if len(models) >= len(settings):
        return grid(models, settings, cells, heading, width)
    turned = {(setting, model): value for (model, setting), value in cells.items()}
    return grid(settings, models, turned, heading, width)


def _print_reasons(heading: str, outcomes: Sequence[Any]) -> None:
    """Prints each distinct reason once, with the cell or the number of cells."""
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        by_reason.setdefault(outcome.reason, []).append(f"{outcome.model} on {outcome.setting}")
    lines = [
        f"{heading}: {cells[0] if len(cells) == 1 else f'{len(cells)} cells'}: {why}"
        for why, cells in by_reason.items()
    ]
    say_some(lines, SHOWN, f"{heading}: {{}} more reasons; each is in the store")
