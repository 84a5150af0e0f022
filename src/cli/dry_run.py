"""What ``eval.py --dry-run`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from testbed.cli.options import EXIT_ERROR
from testbed.cli.output import count, print_json

if TYPE_CHECKING:
    from testbed.registry.catalog import Catalog
    from testbed.runner.cells import Cell, Pass
    from testbed.runner.options import RunOptions
    from testbed.runner.plan import Plan

SHOWN_REASONS = 10


def dry_run(
    catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str], as_json: bool
) -> int:
    """Prints the plan of a run; returns the program's exit status."""
    from testbed.record import described
    from testbed.runner.cells import Action
    from testbed.runner.dry import make_plan

    plan = make_plan(catalog, options, models, settings)
    passes = _passes(plan, options)
    doubts = {each.cell.name: [difference.text for difference in each.differences] for each in plan.doubts}
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
                        "doubts": doubts.get(cell.name, []),
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
        if plan.doubts:
            differences = [difference for each in plan.doubts for difference in each.differences]
            click.echo(
                f"  {count(len(plan.doubts), 'stored evaluation')} may be outdated; a run checks a few samples of"
                f" them first: {described(differences)}"
            )
    return EXIT_ERROR if plan.of(Action.FAILED) else 0


def _passes(plan: Plan, options: RunOptions) -> list[Pass]:
    """The passes over images."""
    from testbed.runner.cells import Action
    from testbed.runner.passes import group

    cells = [*plan.prerequisites, *plan.of(Action.RUN)]
    seeing = [cell for cell in cells if not cell.needs and not cell.generates]
    return group([(cell, index) for index, cell in enumerate(seeing)], options.batch_size, options.share_passes)


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
        Action.SCORE: "scored from captions, by a model of its own",
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
