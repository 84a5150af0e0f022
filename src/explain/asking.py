"""Asks a model its questions again in other ways, on some of the samples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import TestbedError
from testbed.explain.axis import Axis, NotApplicableError, Stage, Variant, asked_axes
from testbed.explain.cell import StoredCell
from testbed.explain.explanation import EXCLUDED, GIVES, UNDECIDED, Explanation, Row, allowed, verdict
from testbed.explain.sampling import Estimate
from testbed.explain.table import Array
from testbed.graph.build import Graph
from testbed.graph.message_ops import Prompt, RowAnswers
from testbed.models.base.capability import NETWORK
from testbed.models.model_base import LoadOptions
from testbed.tasks.parts.generation import replies_of
from testbed.tasks.question_answering import QuestionOptions, columns_of, named, score_array, task, verdicts_of
from testbed.tasks.task_base import options_of
from testbed.workers.kernels.answering import Answerer

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.base.capability import Message

SEED = 20_240_601
FIRST = 12  # samples of the first look
GROWTH = 2
LOOK_Z = 3.5  # of intervals that exclude before all samples are drawn
COMPARED = 8  # samples whose messages tell whether a variant changes anything
REQUESTS = 1000  # at most, if nothing is said

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """How the questions of a setting are asked.

    Attributes:
        prompt: Makes the turns of the user from a row.
        generation: Fields of `GenerationConfig`.
        forced: Whether models with prompts of their own take this one.
    """

    prompt: Prompt
    generation: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = False


def asked_of(setting: EvalSetting) -> Asked:
    """How a setting asks.

    Raises:
        NotApplicableError: If it has no questions.
    """
    if setting.task != task.name:
        raise NotApplicableError("the setting asks no questions of a table")
    given = options_of(setting, QuestionOptions)
    return Asked(given.prompt, given.generation, given.forced)


def asking(setting: EvalSetting, name: str, changes: Sequence[Callable[[Asked], Asked]]) -> EvalSetting:
    """A setting with questions that are asked in another way, under another name."""
    asked = asked_of(setting)
    for change in changes:
        asked = change(asked)
    other = copy.copy(setting)
    other.name = name
    said = {"prompt": asked.prompt, "generation": dict(asked.generation), "forced": asked.forced}
    other.task_options = {"data_set": setting.name, **setting.task_options, **said}
    return other


class Questions:
    """The answers of a cell's model to its questions, asked in other ways.

    Args:
        cell: The cell.
        device: Where a model runs that is not served.

    Attributes:
        requests: How many were made.
    """

    def __init__(self, cell: StoredCell, device: str = "cpu") -> None:
        self.cell = cell
        self.device = device
        self.requests = 0
        self._scores: dict[Variant, dict[int, float]] = {}

    def messages(self, variant: Variant | None, rows: Sequence[int]) -> list[Message]:
        """What is said to the model for some samples; None is the stored way.

        Raises:
            NotApplicableError: If a conversation has several turns.
        """
        op, setting = self._op(variant), self.cell.setting
        sees = getattr(self._loaded.definition, "sees_images", True)
        found: list[Message] = []
        for row in rows:
            content = op.read(self._source, self._positions[row], setting, sees)
            turns = op.turns(setting, self._loaded, self.cell.dataset.samples[row].id, content)
            if len(turns) != 1:
                raise NotApplicableError("conversations of several turns are not asked again")
            found += turns
        return found

    def idle(self, variant: Variant, rows: Sequence[int]) -> bool:
        """Whether a variant asks some samples as they were asked."""
        same = self._op(variant).config == self._op(None).config
        return same and self.messages(variant, rows) == self.messages(None, rows)

    def scores(self, variant: Variant, rows: Sequence[int]) -> Array:
        """What each answer scores, float array [m]; NaN for those that are missing. Each is asked for once."""
        held = self._scores.setdefault(variant, {})
        missing = [row for row in rows if row not in held]
        if missing:
            op, model = self._op(variant), self.cell.model
            seed = int(self.cell.identity.get("forward", {}).get("sampling") or 0)
            answerer = Answerer(model.name, op.config, model.eval_batch_size, seed, model.resource == NETWORK)
            self.requests += len(missing)
            given = answerer.answer(self._loaded, self.messages(variant, missing))
            replies = replies_of([each if isinstance(each, dict) else None for each in given])
            scoring, _, rules = named(self.cell.setting)
            columns = [columns_of(self.cell.dataset.samples[row].target, self.cell.setting.name) for row in missing]
            held.update(zip(missing, score_array(verdicts_of(scoring, columns, replies, rules)).tolist(), strict=True))
        return np.array([held[row] for row in rows], dtype=np.float64)

    def _op(self, variant: Variant | None) -> RowAnswers:
        setting = self.cell.setting
        changed = asking(setting, setting.name, [variant.change] if variant is not None else [])
        op = task.build(Graph(self.cell.model, changed)).outputs.op  # type: ignore[union-attr]
        assert isinstance(op, RowAnswers)
        return op

    @cached_property
    def _loaded(self) -> Any:
        loaded = self.cell.model.load(LoadOptions(self.device, self.cell.dtype, self.cell.random_seed))
        if hasattr(loaded, "coverage"):
            raise NotApplicableError("the answers are recorded ones")
        return loaded

    @cached_property
    def _source(self) -> Any:
        return self.cell.setting.dataset.open()

    @cached_property
    def _positions(self) -> Sequence[int]:
        positions = self.cell.setting.samples.positions(self._source, self.cell.evaluation.sample_limit)
        if [self._source.ids[each] for each in positions] != [each.id for each in self.cell.dataset.samples]:
            raise NotApplicableError("the data set is not the one that was evaluated")
        return positions


def ask(
    cell: StoredCell,
    found: Explanation,
    allow: bool = False,
    requests: int | None = None,
    device: str = "cpu",
    say: Say = lambda line: None,
    given: Sequence[Axis] | None = None,
) -> None:
    """Adds to an explanation what the ways of asking give; without leave, how many requests that would take.

    Args:
        cell: The cell.
        found: What was found without asking.
        allow: Whether the model may be asked.
        requests: How many times at most; default `REQUESTS`.
        device: Where the model runs, if it is not served.
        say: Is told how many requests there will be, before the first one.
        given: The axes; default all.
    """
    if found.agrees or cell.classifies:
        return
    axes = [each for each in (asked_axes() if given is None else given) if each.stage == Stage.ANSWERS]
    try:
        asked_of(cell.setting)
        variants = [variant for axis in axes for variant in axis.of(cell)]
        race = _Race(cell, found, variants, REQUESTS if requests is None else requests, device)
        if allow and not any(each.verdict == GIVES for each in found.rows):
            try:
                race.run(say)
            finally:
                found.requests = race.questions.requests
            return
        why = (
            "what is stored gives the value already"
            if allow
            else f"the model is asked again only with --ask: at most {race.most:,} requests"
        )
    except TestbedError as error:
        why = str(error)
    found.not_tried.update({axis.name: why for axis in axes})


class _Race:
    """More and more samples for the variants that are not excluded yet."""

    def __init__(
        self, cell: StoredCell, found: Explanation, variants: Sequence[Variant], budget: int, device: str
    ) -> None:
        scores = [cell.scores(each.metric) for each in found.targets]
        own = next(iter(cell.store.scores.read(cell.evaluation.id, "score").values()), None)
        if own is None or not all(each is not None and np.array_equal(each, own, equal_nan=True) for each in scores):
            raise NotApplicableError("the metric is not the mean of what answers score")
        self.stored: Array = own.astype(np.float64)
        self.found = found
        self.questions = Questions(cell, device)
        self.variants = list(variants)
        self.budget = budget
        self.order = np.random.default_rng(SEED).permutation(np.flatnonzero(np.isfinite(self.stored))).tolist()

    @property
    def most(self) -> int:
        """How many requests it makes at most."""
        return min(self.budget, len(self.variants) * len(self.order))

    def run(self, say: Say) -> None:
        """Asks, and adds rows to the explanation."""
        compared = self.order[:COMPARED]
        idle = [each for each in self.variants if self.questions.idle(each, compared)]
        self.found.idle += idle
        alive = self.variants = [each for each in self.variants if each not in idle]
        say(f"asking {self.found.model} in {len(alive)} other ways: at most {self.most:,} requests")
        size, rows = 0, {}
        while alive:
            left = self.budget - self.questions.requests
            size, before = min(max(FIRST, GROWTH * size), len(self.order), size + left // len(alive)), size
            if size == before:
                break
            for each in alive:
                rows[each] = self._row(each, self.order[:size])
            alive = [each for each in alive if rows[each].verdict != EXCLUDED]
        ranks = [GIVES, UNDECIDED, EXCLUDED]
        self.found.rows += rows.values()
        self.found.rows.sort(key=lambda each: (ranks.index(each.verdict), each.distance(self.found.targets)))

    def _row(self, variant: Variant, drawn: Sequence[int]) -> Row:
        changes = self.questions.scores(variant, drawn) - self.stored[list(drawn)]
        changes = changes[np.isfinite(changes)]
        estimates = tuple(_estimate(each.stored, changes, len(self.order)) for each in self.found.targets)
        said = verdict(estimates, self.found.targets)
        whole = len(drawn) == len(self.order)
        if said == EXCLUDED and not whole and not self._far(estimates):
            said = UNDECIDED
        return Row((variant,), estimates, said)

    def _far(self, estimates: Sequence[Estimate]) -> bool:
        """Whether a value is so far that more samples will hardly bring it back."""
        pairs = zip(estimates, self.found.targets, strict=True)
        return any(abs(each.value - target.value) > LOOK_Z * each.error + allowed(target) for each, target in pairs)


def _estimate(stored: float, changes: Array, population: int) -> Estimate:
    """The stored value plus the mean paired difference on a simple random sample."""
    count = len(changes)
    if not count:
        return Estimate(stored, 1.0, 1)
    mean = float(changes.mean())
    variance = (float(np.sum((changes - mean) ** 2)) + 1) / count  # one more change than was seen
    return Estimate(stored + mean, float(np.sqrt(variance / count * max(0.0, 1 - count / population))), count)
