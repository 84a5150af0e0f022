"""Text answers of models as plain values, with the options that rules read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import TestbedError
from testbed.models.base.capability import is_answer
from testbed.stored_results.evaluated import TEXT, SettingSamples
from testbed.tasks.judged_answers import JudgedAnswers
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import QuestionAnswering, named, verdicts_of
from testbed.tasks.task_base import get_task

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting

CHUNK, CHUNK_OF_TEXTS = 32, 8  # samples in a document


def size_of_chunk(samples: SettingSamples) -> int:
    """The number of samples per document of a setting."""
    return CHUNK_OF_TEXTS if samples.kind == TEXT else CHUNK


def described(
    outputs: Sequence[Sequence[Any]], targets: Sequence[Any], setting: EvalSetting | None
) -> list[list[dict[str, Any] | None]]:
    """Describes answers of models to samples.

    Args:
        outputs: For each model, the stored output of each sample; None if missing.
        targets: The targets of the samples.
        setting: The setting, whose rules read the answers; None if unknown.

    Returns:
        For each model and sample ``text``, or ``problem`` if missing; with ``extracted``, ``method`` and ``read``
        (the score by the rules) for answers to questions.
    """
    return [
        [
            _described(value, target, setting)
            for value, target in zip(row or [None] * len(targets), targets, strict=True)
        ]
        for row in outputs
    ]


def _described(value: Any, target: Any, setting: EvalSetting | None) -> dict[str, Any] | None:
    if not isinstance(value, Mapping) or "finish_reason" not in value:
        return None
    if not is_answer(value):
        return {"problem": str(value["finish_reason"])}
    text = str(value["text"])
    found: dict[str, Any] = {"text": text}
    if value["finish_reason"] not in ("stop", "eos", None, ""):
        found["finish"] = str(value["finish_reason"])
    return {**found, **_verdict(value, target, setting)}


def _verdict(value: Mapping[str, Any], target: Any, setting: EvalSetting | None) -> dict[str, Any]:
    """The reading of an answer by the setting's rules; empty for other tasks."""
    if setting is None or not isinstance(target, dict):
        return {}
    try:
        if not isinstance(get_task(setting.task), QuestionAnswering | JudgedAnswers):
            return {}
        scoring, _, rules = named(setting)
        verdict = verdicts_of(scoring, [target], replies_of([value]), rules)[0]
    except (TestbedError, KeyError, ValueError):
        return {}
    if verdict is None:
        return {}
    read = None if verdict.score != verdict.score else verdict.score
    return {"extracted": verdict.extracted, "method": verdict.method, "read": read}
