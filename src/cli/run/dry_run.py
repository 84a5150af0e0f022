"""The output of ``testbed run --dry-run``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.console.options import EXIT_ERROR
from testbed.console.output import count, print_json, say

if TYPE_CHECKING:
    from testbed.graph.cells import Cell, Plan
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog
    from testbed.runner.dry_run import PlannedPass

SHOWN_REASONS = 10


def dry_run(
    catalog: Catalog, options: RunOptions, models: Sequence[str], settings: Sequence[str], as_json: bool
) -> int:
    """Prints the plan of a run; returns the program's exit status."""
    from testbed.graph.cells import Action
    from testbed.provenance.manifest import described
    from testbed.runner.dry_run import make_plan

    plan = make_plan(catalog, options, models, settings)
    doubts = {candidate.cell.name: list(candidate.differences) for candidate in plan.stale_candidates}
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
                        "reads": str(planned.one_pass.reads),
                        "models": list(planned.one_pass.models),
                        "eval_settings": list(planned.one_pass.settings),
                        "samples": planned.samples,
                        "to_do": planned.to_do,
                        "batch_size": planned.one_pass.batch_size,
                    }
                    for planned in plan.passes
                ],
            }
        )
    else:
        say(_describe_plan(plan))
        for planned in plan.passes:
            say(_describe_pass(planned))
        if plan.stale_candidates:
            differences = [difference for candidate in plan.stale_candidates for difference in candidate.differences]
            number = count(len(plan.stale_candidates), "stored evaluation")
            say(f"  {number} may be outdated; a run checks a few samples of them first: {described(differences)}")
    return EXIT_ERROR if plan.of(Action.FAILED) else 0


def _describe_pass(planned: PlannedPass) -> str:
    """Describes a pass in one line: what it reads, how much of that is stored, and how many cells need it."""
    from testbed.graph.nodes import Reads

    one_pass = planned.one_pass
    known = planned.samples is not None
    kind = "questions about" if one_pass.reads is Reads.QUESTIONS else "the texts of"
    what = f"{planned.samples:,} {one_pass.reads}" if known else f"{kind} outputs that are not stored yet"
    how = {
        Reads.IMAGES: ", each read once",
        Reads.MESSAGES: ", each answered once",
        Reads.TEXTS: ", each embedded once",
        Reads.QUESTIONS: ", each answered once",
    }
    reused = (planned.samples or 0) - (planned.to_do or 0)
    stored = f" ({reused:,} already stored)" if reused else ""
    cells = count(len(one_pass.cells), "cell")
    return f"  pass {one_pass.id + 1}: {what}{how.get(one_pass.reads, '')}{stored}, for {cells} ({one_pass.label})"


def _source(cell: Cell) -> dict[str, str] | None:
    from testbed.entities import Evaluation

    if cell.source is None:
        return None
    setting = cell.source.eval_setting if isinstance(cell.source, Evaluation) else cell.source.setting
    return {"model": cell.source.model, "eval_setting": setting}


def _describe_plan(plan: Plan) -> str:
    from testbed.graph.cells import Action

    said = {
        Action.DONE: "already stored, nothing to do",
        Action.DERIVE: "derived from stored outputs, without running a model",
        Action.SCORE: "scored by another model from stored outputs",
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
