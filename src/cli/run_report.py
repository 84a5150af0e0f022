"""What a run prints when it has ended."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.checks import print_checks
from testbed.cli.output import count, grid, percent
from testbed.db.entities import FRACTION, OVERALL

if TYPE_CHECKING:
    from testbed.runner.report import Report

SHOWN_REASONS = 10
SHOWN_MODELS = 3
FINISHED = ("complete", "stored", "derived", "scored")  # how cells end that have results
# The metric of a setting that stands in the table: the first of these that it has.
HEADLINES = (
    "top1",
    "mean_average_precision",
    "image_retrieval_recall@5",
    "image_retrieval_recall@1",
    "acc",
    "hm_cf",
    "coarse_similarity",
    "clip_score",
    "coverage",
)


def print_report(
    report: Report,
    results: Sequence[Any],
    unreadable: Mapping[int, int],
    models: Sequence[str],
    settings: Sequence[str],
    override: bool,
    where: str | None,
) -> None:
    """Prints the main metric of each cell, what went wrong, and what the run did.

    Args:
        report: How the run ended.
        results: The metrics of its evaluations.
        unreadable: Evaluation id → how many of its samples could not be read.
        models: The models, in the order in which they were asked for.
        settings: The settings, likewise.
        override: Whether stored evaluations were to be run again.
        where: The store; None when nothing is kept.
    """
    _print_table(report, results, models, settings)
    _print_unreadable(report, unreadable)
    _print_uncovered(results)
    _print_disagreements(report)
    print_checks(report.checks)
    _print_summary(report, override, where)


def _print_table(report: Report, results: Sequence[Any], models: Sequence[str], settings: Sequence[str]) -> None:
    """The main metric of the evaluations of this very run, and the reasons where there is none."""
    shown = _headlines(results)
    labels = {setting: f"{setting} ({shown[setting]})" for setting in settings if shown.get(setting, "top1") != "top1"}
    labels = {setting: labels.get(setting, setting) for setting in settings}
    cells = {
        (each.model, labels[each.eval_setting]): percent(each.value)
        for each in results
        if each.metric == shown.get(each.eval_setting) and each.slice == OVERALL
    }
    for outcome in report.of("unsupported", "failed", "stopped"):
        cells[outcome.model, labels[outcome.setting]] = outcome.status
    if cells:
        heading = "top-1, %" if all(label == setting for setting, label in labels.items()) else "top-1 or as said, %"
        click.echo(_results_grid(cells, models, list(labels.values()), heading))
        click.echo()
    for status, heading in (("unsupported", "Not supported"), ("failed", "Failed")):
        _print_reasons(heading, report.of(status))


def _headlines(results: Sequence[Any]) -> dict[str, str]:
    """Setting → the metric that stands for it, for those that have such a one."""
    found: dict[str, set[str]] = {}
    for each in results:
        if each.unit == FRACTION and each.slice == OVERALL:
            found.setdefault(each.eval_setting, set()).add(each.metric)
    shown = {}
    for setting, metrics in found.items():
        known = [name for name in (*HEADLINES, *sorted(metrics)) if name in metrics]
        if known and (known[0] in HEADLINES or "recall@" in known[0]):
            shown[setting] = known[0]
    return shown


def _print_unreadable(report: Report, unreadable: Mapping[int, int]) -> None:
    """Whose samples could not be read: numbers that a reader should not take for a model's fault."""
    cells = [each for each in report.outcomes if each.evaluation_id in unreadable]
    for each in cells[:SHOWN_REASONS]:
        samples = count(unreadable[each.evaluation_id or 0], "sample")
        click.echo(f"Unreadable: {each.model} on {each.setting}: {samples} could not be read and counted as wrong")
    if len(cells) > SHOWN_REASONS:
        click.echo(f"Unreadable: samples of {len(cells) - SHOWN_REASONS} more cells; db.py --print-eval shows them")


def _print_uncovered(results: Sequence[Any]) -> None:
    """Who has no caption for some samples, so that a mean is not of all of them; once, whoever scored the captions."""
    lacking: dict[tuple[int, int], dict[str, None]] = {}
    for each in results:
        if (each.metric, each.slice) == ("coverage", OVERALL) and each.n and (each.value or 0) < 1:
            lacking.setdefault((round(each.n * (1 - (each.value or 0))), each.n), {})[each.model] = None
    for (number, samples), models in sorted(lacking.items(), reverse=True)[:SHOWN_REASONS]:
        names = ", ".join([*models][:SHOWN_MODELS])
        more = f" and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else ""
        click.echo(f"Without a caption, missing or an error: {number:,} of {count(samples, 'sample')} of {names}{more}")
    if len(lacking) > SHOWN_REASONS:
        click.echo("Without a caption: samples of more models; db.py --print-eval shows the metric coverage")


def _print_disagreements(report: Report) -> None:
    """Numbers of this run that are not the published ones, the likeliest sign of a mistake in the preprocessing."""
    for line in report.disagreements[:SHOWN_REASONS]:
        click.echo(f"Not as published: {line}")
    if len(report.disagreements) > SHOWN_REASONS:
        click.echo(f"Not as published: {len(report.disagreements) - SHOWN_REASONS} more numbers")


def _print_summary(report: Report, override: bool, where: str | None) -> None:
    counted = Counter(outcome.status for outcome in report.outcomes)
    said = [
        f"{counted[status]:,} {text}"
        for status, text in (
            ("complete", "run"),
            ("derived", "derived"),
            ("scored", "scored"),
            ("stored", "stored before"),
            ("unsupported", "not supported"),
            ("failed", "failed"),
            ("stopped", "not finished"),
        )
        if counted[status]
    ]
    click.echo(f"{count(len(report.outcomes), 'cell')}: {', '.join(said)}.")
    if report.interrupted:
        again = "the same command without --override" if override else "the same command again"
        click.echo(f"The run was stopped; what is computed is stored. To go on, give {again}.")
    elif not report.passes and not counted["derived"] and not counted["scored"] and counted["stored"]:
        click.echo("All of it was stored already; nothing was computed.")
    if where:
        click.echo(f"The results are in {where}")
        finished = report.of(*FINISHED)
        if finished:
            click.echo(f"  python db.py --print-eval '{finished[0].model}' '{finished[0].setting}'")


def _results_grid(
    cells: dict[tuple[str, str], str], models: Sequence[str], settings: Sequence[str], heading: str
) -> str:
    """The metrics in percent; the longer of the two lists goes down."""
    width = shutil.get_terminal_size((120, 24)).columns
    if len(models) >= len(settings):
        return grid(models, settings, cells, heading, width)
    turned = {(setting, model): value for (model, setting), value in cells.items()}
    return grid(settings, models, turned, heading, width)


def _print_reasons(heading: str, outcomes: Sequence[Any]) -> None:
    """Each different reason once, with the cells that it is about."""
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        by_reason.setdefault(outcome.reason, []).append(f"{outcome.model} on {outcome.setting}")
    for reason, cells in list(by_reason.items())[:SHOWN_REASONS]:
        where = cells[0] if len(cells) == 1 else f"{len(cells)} cells"
        click.echo(f"{heading}: {where}: {reason}")
    if len(by_reason) > SHOWN_REASONS:
        click.echo(f"{heading}: {len(by_reason) - SHOWN_REASONS} more reasons; each is in the store")
