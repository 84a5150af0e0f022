"""Judging of answers: the judge and its prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from testbed.extensions.explain.asking.asked import JUDGE, QuestionProtocol, asked_of
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.registry.references import AND, LABELS, PAIRS
from testbed.tasks.parts.judges import kind_of
from testbed.tasks.question_answering import named

# Questions to a judge about an answer with a reference.
PROMPTS = {
    "whether the answer is correct": "correctness",
    "a grade from 0 to 1": "grade",
    "correct, incorrect or not attempted": "attempt",
}

Found = Iterator[tuple[str, Callable[[QuestionProtocol], QuestionProtocol]]]


def _judges_of(cell: EvaluatedCell) -> list[str]:
    """The judges of a cell.

    Raises:
        NotApplicableError: If no model judges its answers.
    """
    judges = [word for word in asked_of(cell.setting).judges.split(AND) if word and not word.startswith(LABELS)]
    if not judges:
        raise NotApplicableError("no model judges these answers")
    return judges


def _prompts(cell: EvaluatedCell) -> Found:
    if hasattr(cell, "store"):  # else it is the name of a setting, whose judge follows
        _judges_of(cell)
    if named(cell.setting)[0] == PAIRS:
        raise NotApplicableError("the judge compares two answers")
    own = kind_of(cell.setting)
    for name, kind in PROMPTS.items():
        if kind != own:
            yield name, partial(replace, judging=kind)


def _models(cell: EvaluatedCell) -> Found:
    if not hasattr(cell, "store"):
        raise NotApplicableError("the judge is named after the @")
    panel = _judges_of(cell)
    known = cell.catalog.eval_settings
    own = known.reference(cell.evaluation.eval_setting)
    here: dict[str, set[str]] = {}
    for evaluation in cell.store.evaluations.find(statuses=["complete"]):
        reference = known.reference(evaluation.eval_setting)
        if own is not None and reference is not None and reference.question == own.question and reference.judge:
            here.setdefault(reference.judge, set()).add(evaluation.model)
    others = [judge for judge, models in here.items() if cell.evaluation.model not in models]
    names = dict.fromkeys([*(panel if len(panel) > 1 else []), *others])
    if not names:
        raise NotApplicableError("the store has no verdicts of another judge on this setting")
    for name in names:
        yield name, partial(replace, judges=name)


add_axis(Axis(JUDGE, Stage.ANSWERS, _models))
add_axis(Axis("prompt of the judge", Stage.ANSWERS, _prompts))
