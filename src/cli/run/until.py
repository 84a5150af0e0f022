"""``testbed run --until``: its checks and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.run.progress import command_progress
from testbed.console.options import EXIT_ERROR, EXIT_INTERRUPTED, set_up_logging
from testbed.console.output import count, footnote, print_json, sample_count, say, table
from testbed.entities import FRACTION
from testbed.errors import RunError
from testbed.formatting import bare_value

if TYPE_CHECKING:
    from testbed.cli.run.progress import LogFile
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog
    from testbed.runner.drawn import MeanEstimate
    from testbed.runner.until import Goal, SampledCell, UntilOutcome


def check_no_other(given: Mapping[str, bool]) -> None:
    """Checks that none of these options, which are incompatible with ``--until``, is given."""
    odd = [name for name, is_given in given.items() if is_given]
    if odd:
        raise click.UsageError(f"--until runs on more and more samples; it cannot be used with {odd[0]}")


def goal_of(text: str, catalog: Catalog, models: Sequence[str]) -> Goal:
    """Returns the goal that ``--until`` sets for these models; see `testbed.runner.until.goal_of`."""
    from testbed.runner import until

    try:
        return until.goal_of(text, catalog, models)
    except RunError as error:
        raise click.UsageError(f"--until {error}") from None


def run_and_print(
    catalog: Catalog,
    models: Sequence[str],
    settings: Sequence[str],
    goal: Goal,
    options: RunOptions,
    as_json: bool,
    log: LogFile | None = None,
    kept: bool = True,
) -> int:
    """Runs until the goal is reached, and prints how far each model came; returns the program's exit status."""
    from testbed.db.store import Store
    from testbed.execution.progress import Several
    from testbed.runner.run import run_pairs
    from testbed.runner.until import run_until

    told = command_progress(options)
    progress = told if log is None else Several(told, log)
    set_up_logging(options.verbose, progress.note)
    try:
        found = run_until(
            catalog,
            options,
            models,
            settings,
            goal,
            lambda pairs: run_pairs(catalog, options, pairs, progress),
            progress.note,
        )
    finally:
        progress.close()
    if log is not None:
        for report in found.reports:
            log.report(report)
    if as_json:
        with Store.open(options.db_url) as store:
            print_json({**_as_object(found, goal), "store": store.display_url if kept else None})
    else:
        _print(found, goal)
        if kept:
            with Store.open(options.db_url) as store:
                click.echo(f"The results are in {store.display_url}")
    if found.interrupted:
        return EXIT_INTERRUPTED
    return EXIT_ERROR if any(cell.why for cell in found.cells) else 0


def _print(found: UntilOutcome, goal: Goal) -> None:
    rows = [_row(cell, goal) for cell in found.cells if cell.estimate is not None]
    if rows:
        what = f"against {goal.than}" if goal.than else "value"
        header = ("model", "setting", "metric", what, "interval", "samples", "of", "saved")
        click.echo(table(header, rows, right=(3, 5, 6, 7)))
    for cell in found.cells:
        if cell.why:
            say(f"Given up: {cell.model} on {cell.setting}: {cell.why}")
    left = sum(cell.open for cell in found.cells)
    if found.interrupted:
        say(f"The run was interrupted; {count(left, 'cell')} not decided. To resume, run the same command again.")
    if rows:
        footnote(_explained(found, goal))


def _row(cell: SampledCell, goal: Goal) -> list[str]:
    each, population = cell.estimate, cell.population
    assert each is not None
    assert population is not None
    value = _number(each, each.value, sign=bool(goal.than))
    if goal.than:
        value += " " + ("better" if each.low > 0 else "worse" if each.high < 0 else "equal" if _whole(cell) else "open")
    ends = f"[{_number(each, each.low, bool(goal.than))}, {_number(each, each.high, bool(goal.than))}]"
    saved = f"{100 * (1 - cell.computed / population.size):.0f} %".replace("-", "−")
    samples = (sample_count(each.n, each.units), f"{population.size:,}", saved)
    return [cell.model, cell.setting, each.metric, value, "exact" if _whole(cell) else ends, *samples]


def _whole(cell: SampledCell) -> bool:
    return cell.estimate is not None and cell.population is not None and cell.estimate.n == cell.population.size


def _number(found: MeanEstimate, value: float, sign: bool) -> str:
    return bare_value(value, FRACTION if found.points else "", signed=sign)


def _explained(found: UntilOutcome, goal: Goal) -> str:
    aim = (
        f"it is decided against {goal.than}" if goal.than else f"the metric of all samples is known to ± {goal.half:g}"
    )
    grouped = any(cell.estimate is not None and cell.estimate.units for cell in found.cells)
    anew = any(cell.anew for cell in found.cells)
    return (
        f"until {aim}; intervals: of the metric of all samples, 95 % at all looks together, by hedged betting without"
        " replacement; samples: the first of the setting's random order, stored as SETTING.random-N"
        + ("; whole groups of samples are drawn" if grouped else "")
        + ("; saved: less where outputs depend on the batch, so that each look computes all of them" if anew else "")
    )


def _as_object(found: UntilOutcome, goal: Goal) -> dict[str, Any]:
    return {
        "until": asdict(goal),
        "cells": [
            {
                "model": cell.model,
                "eval_setting": cell.setting,
                "decided": cell.decided,
                "why": cell.why or None,
                "estimate": None if cell.estimate is None else asdict(cell.estimate),
                "population": None if cell.population is None else asdict(cell.population),
                "evaluation_id": cell.evaluation_id,
                "looks": cell.looked,
                "computed": cell.computed,
            }
            for cell in found.cells
        ],
        "interrupted": found.interrupted,
    }
