"""``eval.py`` / ``testbed-eval``: runs models on eval settings."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options import (
    EXIT_ERROR,
    EXIT_INTERRUPTED,
    ManyWords,
    ManyWordsCommand,
    data_root_option,
    run_command,
    set_up_logging,
    store_options,
    use_data_root,
)
from testbed.cli.output import count, grid, percent, print_json
from testbed.errors import TestbedError

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog
    from testbed.runner.cells import Cell
    from testbed.runner.options import RunOptions
    from testbed.runner.plan import Plan
    from testbed.runner.run import Report

POSITIVE = click.IntRange(min=1)
SHOWN_REASONS = 10
FINISHED = ("complete", "stored", "derived")  # how cells end that have results


@click.command(cls=ManyWordsCommand, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--models",
    cls=ManyWords,
    required=True,
    metavar="NAME",
    help="Models: names, patterns ('timm/convnext*'), collections (demo), or a text file of these.",
)
@click.option(
    "--eval-settings",
    cls=ManyWords,
    required=True,
    metavar="NAME",
    help="Eval settings: names, patterns ('digits-c.*'), collections (demo), or a text file of these.",
)
@click.option(
    "--gpus", cls=ManyWords, type=click.IntRange(min=0), metavar="ID", help="GPUs to use.  [default: all, else the CPU]"
)
@click.option("--db/--no-db", default=True, help="Whether to store the results.  [default: --db]")
@click.option(
    "--logdir", type=click.Path(file_okay=False, path_type=Path), help="Also write metrics.json and the outputs there."
)
@store_options
@click.option(
    "--payload-url", metavar="URL", help="Keep outputs at an fsspec URL (s3://…, file://…), not in the database."
)
@data_root_option
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--limit", type=POSITIVE, metavar="N", help="At most N samples of each setting, evenly spread.")
@click.option(
    "--batch-size", type=POSITIVE, metavar="N", help="Images at once, but under attack.  [default: each model's own]"
)
@click.option(
    "--workers", type=click.IntRange(min=0), metavar="N", help="Data-loading processes for each evaluation process."
)
@click.option("--cpu-processes", type=POSITIVE, metavar="N", help="Evaluation processes on the CPU.  [default: 1]")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Precision of the models (the lower ones by torch.autocast).",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of perturbations and random weights.")
@click.option("--random-weights", is_flag=True, help="Build the architectures untrained; the results are marked so.")
@click.option("--strict", is_flag=True, help="Stop at a sample that cannot be read, rather than count it as wrong.")
@click.option("--no-shared-pass", is_flag=True, help="Read the images anew for each cell.")
@click.option(
    "--override", is_flag=True, help="Run again what is stored already, and set the stored evaluations aside."
)
@click.option(
    "--executor",
    type=click.Choice(["processes", "inline"]),
    default="processes",
    show_default=True,
    help="Where cells are computed: in processes of their own, or in this one (for debuggers).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Say more; show where errors come from.")
def command(
    models: Sequence[str],
    eval_settings: Sequence[str],
    logdir: Path | None,
    data_root: str | None,
    db: bool,
    dry_run: bool,
    as_json: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Run models on eval settings, on all GPUs, and store every output and every metric.

    What is stored already is not computed again, and an interrupted run goes on where it ended.

    \b
    Examples:
      python eval.py --models demo --eval-settings demo
      python eval.py --gpus 0 1 --models resnet50 densenet121 --eval-settings val
      python eval.py --models 'timm/convnext*' --eval-settings val --dry-run
    """
    from testbed.registry import registry
    from testbed.registry.select import select

    use_data_root(data_root)
    set_up_logging(verbose, lambda line: click.echo(line, err=True))
    options = _options(given, verbose)
    registry.load(options.plugins)
    chosen_models = select(registry.models, registry.model_collections, models)
    chosen_settings = select(registry.eval_settings, registry.eval_setting_collections, eval_settings)
    if dry_run:
        return _dry_run(registry, options, chosen_models, chosen_settings, as_json)
    if db:
        return _run(registry, options, chosen_models, chosen_settings, logdir, as_json)
    with tempfile.TemporaryDirectory(prefix="testbed-") as folder:
        from dataclasses import replace

        options = replace(options, db_url=str(Path(folder) / "results.db"), payload_url="")
        return _run(registry, options, chosen_models, chosen_settings, logdir, as_json, kept=False)


def _options(given: dict[str, Any], verbose: bool) -> RunOptions:
    from testbed.runner.options import RunOptions

    return RunOptions(
        db_url=given["db_url"],
        payload_url=given["payload_url"],
        plugins=tuple(str(Path(plugin).expanduser().resolve()) for plugin in given["plugins"]),
        limit=given["limit"],
        batch_size=given["batch_size"],
        data_workers=given["workers"],
        gpus=tuple(given["gpus"]) or None,
        cpu_processes=given["cpu_processes"],
        dtype=given["dtype"],
        seed=given["seed"],
        random_weights=given["random_weights"],
        strict=given["strict"],
        share_passes=not given["no_shared_pass"],
        override=given["override"],
        executor=given["executor"],
        verbose=verbose,
    )


# Dry run ----------------------------------------------------------------------------------------------------------


def _dry_run(
    catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str], as_json: bool
) -> int:
    from testbed.runner.cells import Action
    from testbed.runner.passes import group
    from testbed.runner.run import make_plan

    plan = make_plan(catalog, options, models, settings)
    passes = group(
        [(cell, index) for index, cell in enumerate(plan.of(Action.RUN))], options.batch_size, options.share_passes
    )
    if as_json:
        print_json(
            {
                "cells": [
                    {
                        "model": cell.model,
                        "eval_setting": cell.setting,
                        "action": str(cell.action),
                        "reason": cell.reason or None,
                        "source": _source(cell),
                        "samples": cell.size or None,
                    }
                    for cell in plan.cells
                ],
                "passes": [
                    {
                        "models": list(each.models),
                        "eval_settings": list(each.settings),
                        "samples": len(each.positions),
                        "batch_size": each.batch_size,
                    }
                    for each in passes
                ],
            }
        )
    else:
        click.echo(_describe_plan(plan))
        for each in passes:
            click.echo(
                f"  pass {each.id + 1}: {len(each.positions):,} images, each read once, for"
                f" {count(len(each.cells), 'cell')} ({each.label})"
            )
    return EXIT_ERROR if plan.of(Action.FAILED) else 0


def _source(cell: Cell) -> dict[str, str] | None:
    from testbed.db.entities import Evaluation

    if cell.source is None:
        return None
    setting = cell.source.eval_setting if isinstance(cell.source, Evaluation) else cell.source.setting
    return {"model": cell.source.model, "eval_setting": setting}


def _describe_plan(plan: Plan) -> str:
    from testbed.runner.cells import Action

    said = {
        Action.DONE: "stored already, nothing to do",
        Action.DERIVE: "derived from stored outputs, without running a model",
        Action.RUN: "to be run",
        Action.UNSUPPORTED: "not supported",
        Action.FAILED: "cannot be run",
    }
    lines = [count(len(plan.cells), "cell")]
    for action, text in said.items():
        cells = plan.of(action)
        if not cells:
            continue
        lines.append(f"  {len(cells):>6,} {text}")
        for cell in cells[: SHOWN_REASONS if action is not Action.DONE else 0]:
            source = _source(cell)
            why = f": {cell.reason}" if cell.reason else ""
            why += f" ← {source['model']} on {source['eval_setting']}" if source else ""
            lines.append(f"         {cell.name}{why}")
        if len(cells) > SHOWN_REASONS and action is not Action.DONE:
            lines.append(f"         … and {len(cells) - SHOWN_REASONS:,} more")
    return "\n".join(lines)


# Run --------------------------------------------------------------------------------------------------------------


def _run(
    catalog: Catalog,
    options: RunOptions,
    models: Sequence[str],
    settings: Sequence[str],
    logdir: Path | None,
    as_json: bool,
    kept: bool = True,
) -> int:
    from testbed.db.store import Store
    from testbed.runner.run import run

    progress = _progress()
    set_up_logging(options.verbose, progress.note)
    try:
        report = run(catalog, options, models, settings, progress)
    finally:
        progress.close()
    with Store.open(options.db_url) as store:
        finished = [each.evaluation_id for each in report.of(*FINISHED) if each.evaluation_id is not None]
        results = store.results_of(finished)
        unreadable = store.unreadable(finished)
        if logdir is not None:
            _write_logdir(store, report, logdir)
        if as_json:
            print_json(
                {
                    "outcomes": [
                        {**vars(outcome), "unreadable": unreadable.get(outcome.evaluation_id or 0, 0)}
                        for outcome in report.outcomes
                    ],
                    "results": [vars(result) for result in results],
                    "disagreements": report.disagreements,
                    "store": store.display_url if kept else None,
                }
            )
        else:
            _print_table(report, results, models, settings)
            _print_unreadable(report, unreadable)
            _print_disagreements(report)
            _print_summary(report, options.override, store.display_url if kept else None)
    if report.interrupted:
        return EXIT_INTERRUPTED
    return 0 if report.ok else EXIT_ERROR


def _progress() -> Any:
    from testbed.runner.progress import LineProgress, RichProgress

    if not sys.stderr.isatty():
        return LineProgress(sys.stderr)
    from rich.console import Console

    return RichProgress(Console(stderr=True))


def _write_logdir(store: Any, report: Report, logdir: Path) -> None:
    from testbed.db.export import write_run

    finished = [each.evaluation_id for each in report.of(*FINISHED) if each.evaluation_id]
    try:
        files = write_run(store, finished, logdir)
    except OSError as error:
        raise TestbedError(f"--logdir {logdir} cannot be written: {error}") from error
    click.echo(f"Wrote metrics.json and {count(files, 'file')} of outputs to {logdir}", err=True)


def _print_table(report: Report, results: Sequence[Any], models: Sequence[str], settings: Sequence[str]) -> None:
    """Top-1 of the evaluations of this very run, and the reasons where there is none."""
    cells = {
        (each.model, each.eval_setting): percent(each.value)
        for each in results
        if each.metric == "top1" and each.slice == "overall"
    }
    for outcome in report.of("unsupported", "failed", "stopped"):
        cells[outcome.model, outcome.setting] = outcome.status
    if cells:
        click.echo(_results_grid(cells, models, settings))
        click.echo()
    for status, heading in (("unsupported", "Not supported"), ("failed", "Failed")):
        _print_reasons(heading, report.of(status))


def _print_unreadable(report: Report, unreadable: dict[int, int]) -> None:
    """Whose samples could not be read: numbers that a reader should not take for a model's fault."""
    cells = [each for each in report.outcomes if each.evaluation_id in unreadable]
    for each in cells[:SHOWN_REASONS]:
        samples = count(unreadable[each.evaluation_id or 0], "sample")
        click.echo(f"Unreadable: {each.model} on {each.setting}: {samples} could not be read and counted as wrong")
    if len(cells) > SHOWN_REASONS:
        click.echo(f"Unreadable: samples of {len(cells) - SHOWN_REASONS} more cells; db.py --print-eval shows them")


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
    elif not report.passes and not counted["derived"] and counted["stored"]:
        click.echo("All of it was stored already; nothing was computed.")
    if where:
        click.echo(f"The results are in {where}")
        finished = report.of(*FINISHED)
        if finished:
            click.echo(f"  python db.py --print-eval '{finished[0].model}' '{finished[0].setting}'")


def _results_grid(cells: dict[tuple[str, str], str], models: Sequence[str], settings: Sequence[str]) -> str:
    """Top-1 in percent; the longer of the two lists goes down."""
    width = shutil.get_terminal_size((120, 24)).columns
    if len(models) >= len(settings):
        return grid(models, settings, cells, "top-1, %", width)
    turned = {(setting, model): value for (model, setting), value in cells.items()}
    return grid(settings, models, turned, "top-1, %", width)


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


def main() -> None:
    """The program."""
    run_command(command)
