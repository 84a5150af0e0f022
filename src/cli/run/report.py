"""The summary that a run prints at its end."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.checks import print_checks
from testbed.cli.run.times import print_times
from testbed.cli.run.unread import refusal_lines, silence_in_words, silences, unreadable_in_words
from testbed.console.class_lines import print_classes
from testbed.console.model_lines import print_chance, print_models
from testbed.console.output import count, grid, say, say_some
from testbed.console.unread_answers import print_unread
from testbed.entities import NOT_FINITE, OVERALL, REFUSED
from testbed.errors import TestbedError
from testbed.formatting import cell_value, percent
from testbed.metric_specs import MetricSpec, main_metric, spec_of

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.execution.report import Report
    from testbed.graph.cells import LeftOuts
    from testbed.graph.options import RunOptions
    from testbed.stored_results.unread import UnreadSample

SHOWN_REASONS = 10
ANSWERED = ("question_answering@", "judged_answers@", "vlmeval_benchmark@")  # scorers of answers to questions
SHOWN_MODELS = 3
SHOWN_UNREAD = 3  # samples of a cell that are named
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
    say_some(lines_of_prompts(report), SHOWN, "Prompts: {} more such lines")
    print_chance(report, results)
    _print_left_out(report.left_out)
    _print_unreadable(report, results, unreadable, unread or {})
    _print_refusals(results)
    _print_silences(results)
    _print_not_finite(results)
    _print_uncovered(results)
    _print_published(report, results)
    print_checks(report.checks)
    print_times([each for _, each in sorted(report.times.items())])
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


def first_unread(store: Store, unreadable: Iterable[int]) -> dict[int, list[UnreadSample]]:
    """Evaluation id → the first samples that could not be read, for as many evaluations as are reported."""
    from testbed.stored_results.unread import unread_samples

    return {
        number: unread_samples(store, store.evaluations.get(number), SHOWN_UNREAD)[1]
        for number in list(unreadable)[:SHOWN_REASONS]
    }


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


def _print_left_out(found: LeftOuts) -> None:
    """Prints what data sets leave out (files that are not samples, records without images), and missing classes."""
    from testbed.graph.cells import left_out_lines

    say_some(left_out_lines(found), SHOWN_REASONS, "Data: {} more such lines; testbed show lists them")


def unexpected(found: LeftOuts) -> bool:
    """Returns whether anything that was left out may be a sample, so that ``--strict`` fails."""
    return any(not part.expected for parts in found.values() for part in parts)


def _print_unreadable(
    report: Report,
    results: Sequence[Any],
    unreadable: Mapping[int, int],
    unread: Mapping[int, Sequence[UnreadSample]],
) -> None:
    """Prints which cells have unreadable samples, and which these are; they change the numbers, not by the model."""
    cells = [outcome for outcome in report.outcomes if outcome.evaluation_id in unreadable]
    for cell in cells[:SHOWN_REASONS]:
        scorers = [result.scorer for result in results if result.evaluation_id == cell.evaluation_id]
        told = unreadable_in_words(unreadable[cell.evaluation_id or 0], scorers)
        say(f"Unreadable: {cell.model} on {cell.setting}: {told}")
        named = unread.get(cell.evaluation_id or 0, ())
        for sample in named:
            say(f"  not read: {sample.id}: {sample.reason}")
        if named and unreadable[cell.evaluation_id or 0] > len(named):
            say(f"  not read: {unreadable[cell.evaluation_id or 0] - len(named):,} more; testbed show lists them")
    if len(cells) > SHOWN_REASONS:
        more = len(cells) - SHOWN_REASONS
        say(f"Unreadable: samples of {more} more cells; testbed show shows them")


def _print_refusals(results: Sequence[Any]) -> None:
    """Prints what models refused, and why; refusals count as wrong."""
    lines = [f"Refused: {line}" for line in refusal_lines(results)]
    say_some(lines, SHOWN_REASONS, "Refused: samples of {} more cells; testbed show shows them")


def _print_silences(results: Sequence[Any]) -> None:
    """Prints which answers judges gave no verdict on, and why; these are not scored."""
    lines = [f"No verdict: {silence_in_words(record)}" for record in silences(results)]
    say_some(lines, SHOWN_REASONS, "No verdict: {} more reasons; testbed show --slices shows them")


def not_finite(results: Sequence[Any]) -> list[Any]:
    """The results that count non-finite outputs."""
    return [result for result in results if result.metric == NOT_FINITE]


def describe_not_finite(found: Any) -> str:
    """Describes such a result or metric."""
    what = "sample" if found.slice == OVERALL else "text"
    return f"{round(found.value * found.n):,} of {count(found.n, what)} have outputs that are NaN or infinite"


def _print_not_finite(results: Sequence[Any]) -> None:
    """Prints the cells with non-finite outputs: the model is broken, or overflows its precision."""
    lines = [
        f"Not finite: {each.model} on {each.eval_setting}: {describe_not_finite(each)}" for each in not_finite(results)
    ]
    say_some(lines, SHOWN_REASONS, "Not finite: outputs of {} more cells; testbed show shows them")


def _print_uncovered(results: Sequence[Any]) -> None:
    """Prints which models have no texts for some samples, so that means cover fewer samples; once for all judges."""
    lacking: dict[tuple[int, int, str], dict[str, None]] = {}
    for result in results:
        if (result.metric, result.slice) == ("coverage", OVERALL) and result.n and (result.value or 0) < 1:
            what = "answer" if (result.scorer or "").startswith(ANSWERED) else "caption"
            lacking.setdefault((round(result.n * (1 - (result.value or 0))), result.n, what), {})[result.model] = None
    for (number, samples, what), models in sorted(lacking.items(), reverse=True)[:SHOWN_REASONS]:
        names = ", ".join([*models][:SHOWN_MODELS])
        more = f" and {len(models) - SHOWN_MODELS} more" if len(models) > SHOWN_MODELS else ""
        say(f"{names}{more}: no {what} for {number:,} of {count(samples, 'sample')}")
    if len(lacking) > SHOWN_REASONS:
        say("More models have missing captions or answers; testbed show prints the metric coverage")


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
    say_some(in_lines(told), SHOWN_REASONS, more, "more number")


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
    say_some(lines, SHOWN_REASONS, f"{heading}: {{}} more reasons; each is in the store")


SHOWN = 12
SHOWN_NAMES = 5


def lines_of_prompts(report: Report) -> list[str]:
    """A line for each setting whose prompts follow from its folders, and for each list of equal class names."""
    told: dict[str, None] = {}
    equal: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in report.plan.cells:
        spec = (cell.identity.get("forward") or {}).get("prompts") or {}
        if cell.opened_setting is None or "class_names" not in spec:
            continue
        about = cell.opened_setting.setting.prompts.about
        told.update(dict.fromkeys(about() if about is not None else ()))
        if names := _equal_names(spec["class_names"], cell.opened_setting.dataset.class_names):
            equal.setdefault(names, {})[cell.setting] = None
    return [*told, *(_in_words(names, list(settings)) for names, settings in equal.items())]


def _equal_names(class_names: list[str], folders: Sequence[str] | None) -> tuple[str, ...]:
    """The names that several classes share, with the folders of these classes if known."""
    shared = [name for name, number in Counter(class_names).items() if number > 1]
    own = folders or class_names
    said = []
    for name in shared:
        which = [str(own[index]) for index, each in enumerate(class_names) if each == name and index < len(own)]
        said.append(repr(name) if set(which) == {name} else f"{name!r} ({', '.join(which[:SHOWN_NAMES])})")
    return tuple(said)


def _in_words(names: tuple[str, ...], settings: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES]) + (", …" if len(names) > SHOWN_NAMES else "")
    where = settings[0] if len(settings) == 1 else count(len(settings), "setting")
    several = "is the name" if len(names) == 1 else "are the names"
    return (
        f"Equal class names: in {where}, {shown} {several} of more than one class each; their prompts are the same, so"
        " zero-shot classification cannot distinguish these classes"
    )
