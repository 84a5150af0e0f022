"""The samples of a cell as lines: question, answer and scores."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from testbed.answers.columns import has_answer, options, truth
from testbed.answers.scorings import RULES, SCORINGS
from testbed.claims.every_eval_ever import (
    CLASS,
    DIGEST,
    FINISH,
    GROUP,
    NONE,
    NOT_DEFINED,
    OUTPUT,
    SCORE,
    SCORE_OF,
    SLICE_OF,
    TEXT,
    THINKING_BEGUN,
    TOP,
    VERSION,
)
from testbed.db.store import Store
from testbed.entities import DatasetInfo, SampleInfo
from testbed.errors import TestbedError
from testbed.metric_specs import main_score_of
from testbed.metrics.classification import predicted_classes
from testbed.models.base.capability import NO_ANSWER, is_answer
from testbed.models.base.thoughts import BEGUN, THINKING
from testbed.stored_results.export import arrays_of
from testbed.stored_results.measured_cells import MeasuredCell, public_text
from testbed.stored_results.predictions import LOGITS
from testbed.tasks.parts.generation import final_of

_SHOWN = 5  # number of classes with the largest logits

WITHOUT_SCORE = "samples have no score; their line has 0"
NO_RIGHT = "samples are scored in degrees; is_correct marks the full score"


@dataclass
class SampleLines:
    """The samples of a cell.

    Attributes:
        cell: The cell.
        dataset: Its data set.
        link: The ids of the record: ``evaluation_id``, ``model_id`` and so on.
        incomplete: What the lines cannot express → number of samples.
    """

    cell: MeasuredCell
    dataset: DatasetInfo
    link: Mapping[str, str]
    incomplete: Counter[str] = field(default_factory=Counter)
    _names: Sequence[str] = field(default=(), init=False)

    def lines(self, store: Store) -> Iterator[dict[str, Any]]:
        """Yields a line for each sample, in the order of the data set; nothing if samples have no scores."""
        evaluation = self.cell.evaluation
        spec = main_score_of(store.scores.specs([evaluation.id])[evaluation.id].values())
        scores = store.scores.read(evaluation.id)
        count = len(self.dataset.samples)
        if spec is None or any(len(values) != count for values in scores.values()):
            return
        main = next(values for (_, name), values in scores.items() if name == spec.name)
        errors = store.outputs.errors(evaluation.id)
        outputs = self._outputs(store)
        for place, sample in enumerate(self.dataset.samples):
            asked, said = self._input(sample), outputs[place]
            metadata = {SCORE: spec.name, DIGEST: sample.digest, GROUP: sample.group, **said.metadata}
            metadata |= {f"{SLICE_OF}{name}": value for name, value in (sample.slices or {}).items()}
            metadata |= _all_scores(scores, place)
            score = float(main[place])
            evaluated, not_defined = self._evaluation(score, spec.zero_one)
            metadata |= {NOT_DEFINED: not_defined}
            error = errors.get(place) or said.error
            yield {
                "schema_version": VERSION,
                **self.link,
                "sample_id": sample.id,
                "sample_hash": sample_hash(asked),
                "interaction_type": "single_turn",
                "input": asked,
                "output": {"raw": said.raw, **({"reasoning_trace": said.thoughts} if said.thoughts else {})},
                "answer_attribution": said.attribution,
                "evaluation": evaluated,
                **({"token_usage": said.tokens} if said.tokens else {}),
                **({"error": public_text(error)} if error else {}),
                "metadata": {name: str(value) for name, value in metadata.items() if value not in (None, "")},
            }

    def _evaluation(self, score: float, zero_one: bool) -> tuple[dict[str, Any], str]:
        """The score of a sample, and its meaningless fields."""
        if not math.isfinite(score):
            self.incomplete[WITHOUT_SCORE] += 1
            return {"score": 0.0, "is_correct": False}, f"{SCORE} is_correct"
        if not zero_one:
            self.incomplete[NO_RIGHT] += 1
        return {"score": score, "is_correct": score == 1}, "" if zero_one else "is_correct"

    def _input(self, sample: SampleInfo) -> dict[str, Any]:
        target = sample.target
        if isinstance(target, dict) and "question" in target:
            choices = list(options(target).values())
            answers = [truth(target)] if has_answer(target) else []
            return {"raw": target["question"], "reference": answers, **({"choices": choices} if choices else {})}
        right = target if isinstance(target, list | tuple) else [] if target is None else [target]
        return {"raw": sample.id, "reference": [self._named(class_number) for class_number in right]}

    def _named(self, target: Any) -> str:
        names = self._names
        if type(target) is int and names and 0 <= target < len(names):
            return names[target]
        return target if isinstance(target, str) else json.dumps(target, sort_keys=True)

    def _outputs(self, store: Store) -> list[SampleAnswer]:
        evaluation = self.cell.evaluation
        kinds = store.outputs.kinds(evaluation.id)
        if TEXT in kinds:
            values = store.outputs.read(evaluation.id, TEXT)
            return [self._answer(sample, value) for sample, value in zip(self.dataset.samples, values, strict=True)]
        if LOGITS in kinds:
            try:
                arrays = arrays_of(store, evaluation)
            except TestbedError:  # logits that do not stand for classes
                return [SampleAnswer() for _ in self.dataset.samples]
            self._names = arrays["class_names"].tolist()
            return _classes(arrays["logits"], self._names)
        return [SampleAnswer() for _ in self.dataset.samples]

    def _answer(self, sample: SampleInfo, value: dict[str, Any] | None) -> SampleAnswer:
        if value is None or not is_answer(value) or value["finish_reason"] == NO_ANSWER:
            reason = "unreadable" if value is None else public_text(str(value["finish_reason"]))
            return SampleAnswer(error=reason, metadata={FINISH: reason, OUTPUT: TEXT})
        extra = value.get("extra") or {}
        thoughts = [str(extra[THINKING])] if extra.get(THINKING) else []
        begun = {THINKING_BEGUN: "true"} if extra.get(BEGUN) else {}
        metadata = {FINISH: value["finish_reason"], OUTPUT: TEXT, **begun}
        return SampleAnswer([value["text"]], thoughts, self._read(sample, value), _tokens(extra), metadata=metadata)

    def _read(self, sample: SampleInfo, value: dict[str, Any]) -> list[dict[str, Any]]:
        """The option read in an answer, by the rules of its scores if testbed still has them."""
        given = self.cell.part("view", "scoring")
        scoring, rules = given[:2] if isinstance(given, list) and len(given) > 1 else ("", "")
        own = next((name for name, version in RULES.items() if version == rules), None)
        final = final_of(value) or ""
        if not scoring or scoring not in SCORINGS:
            return [_attribution(final, str(self.cell.part("view", "scorer") or "as it is"))]
        if own is None or not isinstance(sample.target, dict) or not has_answer(sample.target):
            return []
        verdict = SCORINGS[scoring](sample.target, value["text"] if own == "vlmevalkit" else final, own)
        return [] if verdict.extracted is None else [_attribution(verdict.extracted, f"{scoring} {rules}")]


@dataclass
class SampleAnswer:
    """A model's answer to a sample."""

    raw: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    attribution: list[dict[str, Any]] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    error: str = ""
    metadata: dict[str, Any] = field(default_factory=lambda: {OUTPUT: NONE})


def sample_hash(asked: Mapping[str, Any]) -> str:
    """Hashes the question and the right answers of a sample, independent of its id."""
    content = {"raw": asked["raw"], "reference": asked["reference"]}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _classes(logits: Any, names: Sequence[str]) -> list[SampleAnswer]:
    """The predicted class of each sample, with the largest logits."""
    found = []
    for row, predicted in zip(logits, predicted_classes(logits).tolist(), strict=True):
        if predicted < 0:
            found.append(SampleAnswer(error="unreadable, or no finite output", metadata={OUTPUT: CLASS}))
            continue
        largest = np.argsort(-row, kind="stable")[:_SHOWN].tolist()
        top = json.dumps([[names[class_number], float(row[class_number])] for class_number in largest])
        name = names[predicted]
        found.append(
            SampleAnswer([name], attribution=[_attribution(name, "argmax")], metadata={OUTPUT: CLASS, TOP: top})
        )
    return found


def _all_scores(scores: Mapping[tuple[str, str], Any], place: int) -> dict[str, str]:
    """All scores of a sample, exactly; if two have the same name, one name includes the scorer."""
    found: dict[str, str] = {}
    for (scorer, name), values in scores.items():
        key = f"{SCORE_OF}{name}"
        value = float(values[place])
        if math.isfinite(value):
            found[key if key not in found else f"{key} ({scorer})"] = repr(value)
    return found


def _attribution(value: str, method: str) -> dict[str, Any]:
    told = {"turn_idx": 0, "source": "output.raw", "extracted_value": value, "extraction_method": method}
    return {**told, "is_terminal": True}


def _tokens(extra: Mapping[str, Any]) -> dict[str, int]:
    """Numbers of tokens, if all are known."""
    read, written = extra.get("prompt_tokens"), extra.get("output_tokens")
    if type(read) is not int or type(written) is not int or read < 0 or written < 0:
        return {}
    return {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
