"""Reading and judging of answers: other rules and judges on the same answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from testbed.arrays import Array
from testbed.extensions.explain.axis import REPLACES, Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.table import Table

STEP = "testbed run {} --on {}.vlmevalkit reads the stored answers by VLMEvalKit's rules"


def _scored(found: Array) -> Callable[[Table], Table]:
    return lambda table: replace(table, scores=found[table.rows])


def _variants(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Table], Table]]]:
    if cell.classifies:
        raise NotApplicableError("logits are not read by rules")
    own = cell.catalog.eval_settings.reference(cell.evaluation.eval_setting)
    metrics = [metric.name for metric in cell.store.results.metrics(cell.evaluation.id)]
    found = 0
    for other in cell.store.evaluations.find([cell.evaluation.model], statuses=["complete"]):
        reference = cell.catalog.eval_settings.reference(other.eval_setting)
        same = own is not None and reference is not None and reference.name == own.name
        if other.id == cell.evaluation.id or not same or other.dataset_id != cell.evaluation.dataset_id:
            continue
        scores = next((each for name in metrics if (each := cell.scores(name, other)) is not None), None)
        if scores is not None and len(scores) == len(cell):
            found += 1
            yield f"as {other.eval_setting} scores them", _scored(scores)
    for rules in cell.store.scores.read(cell.evaluation.id, "rule_score").values():
        found += 1
        yield "rules without a judge", _scored(rules)
    if not found:
        names = cell.evaluation.model, cell.evaluation.eval_setting
        raise NotApplicableError(f"the store has no other scores of these answers; {STEP.format(*names)}")


add_axis(Axis("rules and judges", Stage.SCORES, _variants, order=REPLACES))
