"""``testbed store status``: the runs on a store, and the cells that are running, stopped, or failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.store.verify import describe_standing, describe_tally, standing_as_object, tally_as_object
from testbed.console.columns import prose
from testbed.console.options import store_command
from testbed.console.output import count, print_json, table
from testbed.console.unread_samples import UNREAD, refusal_lines, silence_in_words, silences
from testbed.entities import REFUSED

if TYPE_CHECKING:
    from testbed.db.parts.leases import RunInfo
    from testbed.entities import Evaluation
    from testbed.runner.standing import Standing, Tally

ENDED = 10  # shown runs that have ended, and shown cells of each kind
SILENT = timedelta(seconds=25)  # a running process reports every ten seconds
WIDTH = 60


@store_command
def command(db_url: str | None, as_json: bool) -> int:
    """Show runs on all machines, and running, stopped or failed cells."""
    from testbed.db.store import Store
    from testbed.runner.standing import standings, tally

    with Store.open(db_url) as store:
        runs = store.leases.runs()
        open_ones = store.evaluations.find(statuses=("running", "failed"))
        complete = store.results.count_complete()
        silent = silences(store.results.stream(metrics=[UNREAD]))
        refused = refusal_lines(store.results.stream(metrics=[REFUSED]))
        verified = standings(store)
    known, differing = tally(verified, datetime.now(UTC)), [standing for standing in verified if standing.differs]
    alive = {run.id for run in runs if run.outcome is None}
    failed = [evaluation for evaluation in open_ones if evaluation.status == "failed"]
    running = [evaluation for evaluation in open_ones if evaluation.status == "running" and evaluation.run_id in alive]
    stopped = [
        evaluation for evaluation in open_ones if evaluation.status == "running" and evaluation.run_id not in alive
    ]
    if as_json:
        cells = {"complete": complete, "running": len(running), "stopped": len(stopped), "failed": len(failed)}
        parts = {"stopped": stopped, "failed": failed, "running": running}
        told = {name: [_as_json(evaluation) for evaluation in chosen] for name, chosen in parts.items()}
        about = {**tally_as_object(known), "differing": [standing_as_object(standing) for standing in differing]}
        found = {"runs": [_run_as_json(run) for run in runs], "cells": cells, **told}
        print_json({**found, "no_verdict": silent, "refused": refused, "verified": about})
        return 0
    _print_runs(runs)
    counts = [
        f"{complete:,} complete",
        f"{len(running):,} running",
        f"{len(stopped):,} stopped",
        f"{len(failed):,} failed",
    ]
    click.echo(f"{count(complete + len(open_ones), 'cell')}: {', '.join(counts)}")
    _print_cells("stopped; run the same command again to resume them", stopped)
    _print_cells("failed; run the same command again to retry them", failed)
    _print_lines("complete, but a judge gave no verdict on some answers", list(map(silence_in_words, silent)))
    _print_lines("complete, but models refused some samples", refused)
    _print_verified(known, differing)
    return 0


def _print_runs(runs: Sequence[RunInfo]) -> None:
    ended = [run for run in runs if run.outcome is not None]
    left_out = ended[:-ENDED]
    shown = [run for run in runs if run not in left_out]
    if not shown:
        click.echo("no runs are recorded in this store")
        return
    if left_out:
        click.echo(f"{count(len(left_out), 'earlier run')} left out; --json has all", err=True)
    rows = [
        [
            str(run.id),
            run.machine,
            str(run.process),
            _state(run),
            _local(run.started_at),
            _length((run.ended_at or run.started_at + run.age) - run.started_at),
            " ".join(f"{number} {what}" for what, number in sorted(run.cells.items())),
            run.command if len(run.command) <= WIDTH else f"{run.command[: WIDTH - 1]}…",
        ]
        for run in shown
    ]
    click.echo(
        table(["run", "machine", "process", "state", "began", "for", "cells begun last", "command"], rows, (0, 2, 5))
    )
    click.echo()


def _print_cells(title: str, cells: Sequence[Evaluation]) -> None:
    runs = [f" (run {cell.run_id})" if cell.run_id is not None else "" for cell in cells]
    errors = [f": {cell.error}" if cell.error else "" for cell in cells]
    told = zip(cells, runs, errors, strict=True)
    _print_lines(title, [f"{cell.model} on {cell.eval_setting}{run}{error}" for cell, run, error in told])


def _print_lines(heading: str, found: Sequence[str]) -> None:
    if found:
        click.echo(f"{heading}:")
    for name in found[-ENDED:]:
        click.echo(prose(f"  {name}"))
    if len(found) > ENDED:
        click.echo(f"  and {len(found) - ENDED:,} more")


def _print_verified(known: Tally, differing: Sequence[Standing]) -> None:
    """Prints how much of the store was verified recently, and which results differed."""
    if not known.cells:
        return
    click.echo(prose(describe_tally(known)))
    for standing in differing[-ENDED:]:
        click.echo(prose(f"  differed at its last verification: {describe_standing(standing)}"))
    if len(differing) > ENDED:
        click.echo(f"  and {len(differing) - ENDED:,} more; --json has all")


def _state(run: RunInfo) -> str:
    if run.outcome is not None:
        return run.outcome
    return "running" if run.silent < SILENT else f"silent for {_length(run.silent)}"


def _length(span: timedelta) -> str:
    seconds = max(0, round(span.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _local(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _run_as_json(run: RunInfo) -> dict[str, Any]:
    return {
        "id": run.id,
        "machine": run.machine,
        "process": run.process,
        "command": run.command,
        "state": run.outcome or "running",
        "began": run.started_at.isoformat(),
        "ended": run.ended_at.isoformat() if run.ended_at else None,
        "silent_seconds": None if run.outcome else round(run.silent.total_seconds(), 1),
        "cells": dict(run.cells),
    }


def _as_json(each: Evaluation) -> dict[str, Any]:
    return {
        "evaluation": each.id,
        "model": each.model,
        "eval_setting": each.eval_setting,
        "run": each.run_id,
        "reason": each.error,
    }
