"""``testbed store verify``: recomputes samples of stored cells within a time budget, for a nightly job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.inputs import InputOptions
from testbed.cli.options.run import picked, some_options
from testbed.cli.options.stored import models_option, settings_option
from testbed.cli.run.checks import certificate_as_object, describe_certificate, describe_samples, require_amount
from testbed.console.options import EXIT_ERROR, EXIT_INTERRUPTED, set_up_logging, store_command, use
from testbed.console.output import count, print_json, say, say_some
from testbed.errors import shortened

if TYPE_CHECKING:
    from testbed.entities import Evaluation
    from testbed.runner.scrub import ScrubReport, VerifiedCell
    from testbed.runner.standing import Standing, Tally

SHOWN = 20  # cells that differ
_UNITS = {"s": 1, "m": 60, "h": 3600}
_LONGEST = timedelta(days=30)


class Duration(click.ParamType[timedelta]):
    """A length of time, such as ``10m`` or ``1h30m``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Parses the value."""
        if isinstance(value, timedelta):
            return value
        text = str(value).strip().lower()
        parts = re.findall(r"(\d{1,9}(?:\.\d{1,9})?)([smh])", text, re.ASCII)
        if not parts or "".join(map("".join, parts)) != text:
            self.fail(f"{shortened(text)!r} is not a duration; write for example 10m, 90s or 1h30m", param, ctx)
        length = timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))
        if not timedelta(0) < length <= _LONGEST:
            self.fail(f"{shortened(text)} is not between 0 and 30 days; write for example 10m", param, ctx)
        return length


@store_command
@models_option
@settings_option
@click.option(
    "--budget",
    type=Duration(),
    default="10m",
    show_default=True,
    metavar="TIME",
    help="How long to keep starting cells, such as 90s, 10m or 1h30m.",
)
@click.option("--samples", metavar="N|P%", help="The number or share of samples of each result.  [default: 8]")
def command(
    models: Sequence[str],
    settings: Sequence[str],
    budget: timedelta,
    samples: str | None,
    db_url: str | None,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Recompute samples of stored results, and compare them.

    Starts with those unverified for longest, and stores the outcome. For nightly jobs; see docs/store.md.
    """
    require_amount(samples, "--samples")
    from testbed.cli.run.progress import command_progress
    from testbed.execution.executors import executor_kind
    from testbed.graph.options import RunOptions
    from testbed.planning.own_names import own_names_of
    from testbed.registry import registry
    from testbed.runner.recompute import Amount, amount
    from testbed.runner.scrub import verify_store

    inputs = replace(picked(InputOptions, given).inputs(), own_names=own_names_of(db_url))
    use(inputs)
    options = picked(RunOptions, given, db_url=db_url, verbose=verbose, inputs=inputs)
    executor_kind(options.executor).start_ahead()
    progress = command_progress(options)
    set_up_logging(options.verbose, progress.note)
    chosen = amount(samples, "--samples") if samples else Amount()
    try:
        done = verify_store(registry, options, budget, chosen, models, settings, progress)
    finally:
        progress.close()
    if as_json:
        print_json(_as_object(done))
    else:
        _print(done)
    if done.interrupted:
        return EXIT_INTERRUPTED
    return 0 if done.ok else EXIT_ERROR


command.params += some_options("plugins", "data_root", "predictions", "checkpoints", "lmu_data")
command.params += some_options("gpus", "cpu_processes", "data_workers", "batch_size", "executor")


def describe_tally(known: Tally) -> str:
    """The state of a store in one line."""
    verb = "differs" if known.differ == 1 else "differ"
    return f"verified in the last 30 days: {known.verified:,} of {count(known.cells, 'cell')}, {known.differ:,} {verb}"


def describe_standing(known: Standing) -> str:
    """A cell whose last verification found a difference, in one line."""
    assert known.last is not None
    moment = f"{known.last.created_at:%Y-%m-%d %H:%M} UTC: " if known.last.created_at else ""
    return f"{_name(known.evaluation)}: {moment}{describe_certificate(known.last)}{describe_samples(known.last)}"


def tally_as_object(known: Tally) -> dict[str, Any]:
    """The state of a store as JSON."""
    return {"days": 30, **asdict(known)}


def standing_as_object(known: Standing) -> dict[str, Any]:
    """A cell whose last verification found a difference, as JSON."""
    assert known.last is not None
    return {**_names(known.evaluation), "certificate": certificate_as_object(known.last)}


def _print(done: ScrubReport) -> None:
    if not done.tally.cells:
        say("nothing to verify: the store has no results with outputs")
        return
    samples = sum(verified_cell.certificate.samples for verified_cell in done.verified)
    models = len({verified_cell.evaluation.model for verified_cell in done.verified})
    differ = [verified_cell for verified_cell in done.verified if not verified_cell.certificate.equal]
    say(
        f"Verified {count(len(done.verified), 'cell')} of {count(models, 'model')} on {count(samples, 'sample')} in"
        f" {_length(done.seconds)}: {len(done.verified) - len(differ):,} equal, {len(differ):,} differ."
    )
    told = [f"Differs: {_told(verified_cell)}" for verified_cell in differ]
    say_some(told, SHOWN, "Differs: {}; --json has all", "more cell")
    now = {verified_cell.evaluation.id for verified_cell in differ}
    heading = "Differed at its last verification"
    earlier = [each for each in done.differing if each.evaluation.id not in now]
    told = [f"{heading}: {describe_standing(standing)}" for standing in earlier]
    say_some(told, SHOWN, f"{heading}: {{}}; --json has all", "more cell")
    for reason, cells in sorted(done.not_verified.items(), key=lambda item: -len(item[1])):
        where = _name(cells[0]) if len(cells) == 1 else count(len(cells), "cell")
        say(f"Not verified: {where}: {reason}")
    if done.left:
        say(f"Not reached: {count(len(done.left), 'cell')}; the next run begins there")
    say(describe_tally(done.tally))
    if done.interrupted:
        say("interrupted; the outcome so far is stored", err=True)


def _told(one: VerifiedCell) -> str:
    """Describes a cell that differs now, by how much, and what to do."""
    return (
        f"{_name(one.evaluation)}: {describe_certificate(one.certificate)}{describe_samples(one.certificate)}; compare"
        f" the definitions with: testbed why {one.evaluation.id} today"
    )


def _as_object(done: ScrubReport) -> dict[str, Any]:
    return {
        "ok": done.ok,
        "interrupted": done.interrupted,
        "seconds": round(done.seconds, 1),
        "verified": [_verified_as_object(verified_cell) for verified_cell in done.verified],
        "not_verified": [
            {"reason": reason, "cells": [_names(cell) for cell in cells]} for reason, cells in done.not_verified.items()
        ],
        "not_reached": [_names(evaluation) for evaluation in done.left],
        "differing": [standing_as_object(standing) for standing in done.differing],
        "store": tally_as_object(done.tally),
    }


def _verified_as_object(one: VerifiedCell) -> dict[str, Any]:
    result = "equal" if one.certificate.equal else "differs"
    return {
        **_names(one.evaluation),
        "result": result,
        "certificate": certificate_as_object(one.certificate),
        "differing_samples": list(one.differing),
    }


def _names(evaluation: Evaluation) -> dict[str, Any]:
    return {"model": evaluation.model, "eval_setting": evaluation.eval_setting, "evaluation": evaluation.id}


def _name(evaluation: Evaluation) -> str:
    return f"{evaluation.model} on {evaluation.eval_setting}"


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
