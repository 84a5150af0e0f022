"""Asks about more and more samples for the variants that are not excluded yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from testbed.answers.columns import has_answer
from testbed.arrays import Array
from testbed.errors import TestbedError
from testbed.extensions.explain.asking.asked import asked_of
from testbed.extensions.explain.asking.questions import Questions
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, Variant, asked_axes
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.explanation import (
    EXCLUDED,
    GIVES,
    UNDECIDED,
    Explanation,
    VariantResult,
    allowed,
    verdict,
)
from testbed.extensions.explain.sampling import SampledValue

SEED = 20_240_601
FIRST = 12  # samples of the first look
GROWTH = 2
LOOK_Z = 3.5  # for intervals that exclude variants before all samples are drawn
COMPARED = 8  # samples whose messages are compared to see whether a variant changes anything
REQUESTS = 1000  # default maximum

Say = Callable[[str], None]


def ask(
    cell: EvaluatedCell,
    found: Explanation,
    allow: bool = False,
    requests: int | None = None,
    device: str = "cpu",
    say: Say = lambda line: None,
    given: Sequence[Axis] | None = None,
) -> None:
    """Adds the ways of asking and judging to an explanation; without permission, only the number of requests.

    Args:
        cell: The cell. With permission, its store must be open for writing, since answers are stored.
        found: The results without asking.
        allow: Whether models may be asked.
        requests: Maximum number; default `REQUESTS`. Stored answers also count, so that repeating a search sends no
            requests.
        device: Device for models that are not served.
        say: Called with the number of requests before the first one.
        given: The axes; default all.
    """
    if found.agrees or (cell.classifies and not allow):
        return
    variants = _variants(cell, found, asked_axes() if given is None else given)
    if not variants:
        return
    try:
        race = _Race(cell, found, variants, REQUESTS if requests is None else requests, device)
        if allow and not any(row.verdict == GIVES for row in found.rows):
            try:
                race.run(say)
            finally:
                found.asked = race.questions.sent
            return
        why = (
            "stored outputs already give the value"
            if allow
            else f"the model is asked again only with --ask: {race.bounds_in_words()}"
        )
    except TestbedError as error:
        why = str(error)
    found.not_tried.update({variant.axis: why for variant in variants})


def _variants(cell: EvaluatedCell, found: Explanation, axes: Sequence[Axis]) -> list[Variant]:
    """The variants for a cell; inapplicable ones are recorded with the reason."""
    able = []
    for axis in axes:
        if axis.stage != Stage.ANSWERS:
            continue
        try:
            own, variants = asked_of(cell.setting), axis.of(cell)
        except NotApplicableError as error:
            found.not_tried[axis.name] = str(error)
            continue
        for variant in variants:
            try:
                variant.change(own)
                able.append(variant)
            except NotApplicableError as error:
                found.failed.append((variant, str(error)))
    return able


class _Race:
    """The tried variants and the drawn samples."""

    def __init__(
        self, cell: EvaluatedCell, found: Explanation, variants: Sequence[Variant], budget: int, device: str
    ) -> None:
        scores = [cell.scores(target.metric) for target in found.targets]
        own = next(iter(cell.store.scores.read(cell.evaluation.id, "score").values()), None)
        if own is None or not all(score is not None and np.array_equal(score, own, equal_nan=True) for score in scores):
            raise NotApplicableError("the metric is not the mean of the answers' scores")
        self.stored: Array = own.astype(np.float64)
        self.cell = cell
        self.found = found
        self.questions = Questions(cell, device)
        self.variants = list(variants)
        self.budget = budget
        rows = [row for row, sample in enumerate(cell.dataset.samples) if has_answer(sample.target)]
        self.order = np.random.default_rng(SEED).permutation(rows).tolist()

    # What it takes ------------------------------------------------------------------------------------------------

    def bounds(self) -> dict[str, int]:
        """Model → maximum number of requests."""
        most: Counter[str] = Counter()
        if asked := sum(map(self.questions.asks_anew, self.variants)):
            most[self.cell.evaluation.model] = asked * sum(self.cell.turns[row] for row in self.order)
        for variant in self.variants:
            for judge, times in self.questions.judges(variant).items():
                most[judge] += times * len(self.order)
        return dict(most)

    def bounds_in_words(self) -> str:
        """Describes the maximum number of requests, and their receivers unless only the model under test is asked."""
        bounds = self.bounds()
        told = f"at most {min(self.budget, sum(bounds.values())):,} requests"
        if set(bounds) <= {self.cell.evaluation.model}:
            return told
        return f"{told} ({', '.join(f'{min(self.budget, most):,} to {name}' for name, most in bounds.items())})"

    @cached_property
    def _calls(self) -> dict[Variant, int]:
        """The maximum number of judge requests per answer."""
        return {variant: self.questions.judges(variant).total() for variant in self.variants}

    def _cost(self, variant: Variant, row: int) -> int:
        """The maximum number of answers per sample."""
        asked = 0 if self.questions.stored(variant) is not None else self.cell.turns[row]
        return asked + self._calls[variant]

    def _next(self, size: int, alive: Sequence[Variant]) -> int:
        """The number of samples to draw next, within the budget."""
        left = self.budget - self.questions.used
        larger = min(max(FIRST, GROWTH * size), len(self.order))
        for place in range(size, larger):
            left -= sum(self._cost(variant, self.order[place]) for variant in alive)
            if left < 0:
                return place
        return larger

    # The search ---------------------------------------------------------------------------------------------------

    def run(self, say: Say) -> None:
        """Asks, and adds rows to the explanation."""
        self._leave_out()
        compared = self.order[:COMPARED]
        idle = [variant for variant in self.variants if self.questions.idle(variant, compared)]
        self.found.idle += idle
        alive = self.variants = [variant for variant in self.variants if variant not in idle]
        if not alive or not self.order:
            return
        say(f"{self._plan()}: {self.bounds_in_words()}")
        size, rows = 0, {}
        for variant in [variant for variant in alive if not self._cost(variant, self.order[0])]:
            rows[variant] = self._row(variant, self.order)  # an evaluation has all answers
            alive = [other for other in alive if other is not variant]
        while alive and (larger := self._next(size, alive)) > size:
            size = larger
            for variant in alive:
                rows[variant] = self._row(variant, self.order[:size])
            alive = [variant for variant in alive if rows[variant].verdict != EXCLUDED]
        ranks = [GIVES, UNDECIDED, EXCLUDED]
        self.found.rows += rows.values()
        self.found.rows.sort(key=lambda result: (ranks.index(result.verdict), result.distance(self.found.targets)))

    def _leave_out(self) -> None:
        """Removes variants whose model cannot be asked, or whose judge has changed."""
        questions, own = self.questions, set(self.questions.judges(None))
        for check, concerns in (
            (questions.require_judges, lambda each: own & set(questions.judges(each))),
            (questions.require_model, questions.asks_anew),
        ):
            concerned = [variant for variant in self.variants if concerns(variant)]
            try:
                if concerned:
                    check()
            except NotApplicableError as error:
                self.found.not_tried.update({variant.axis: str(error) for variant in concerned})
                self.variants = [variant for variant in self.variants if variant not in concerned]

    def _plan(self) -> str:
        asked = sum(map(self.questions.asks_anew, self.variants))
        parts = [f"asking {self.found.model} in {_ways(asked)}"] if asked else []
        if judged := len(self.variants) - asked:
            parts.append(f"having its answers judged in {_ways(judged)}")
        return " and ".join(parts)

    def _row(self, variant: Variant, drawn: Sequence[int]) -> VariantResult:
        before, after = self.stored[list(drawn)], self.questions.scores(variant, drawn)
        estimates = tuple(_estimate(target.stored, before, after, len(self.order)) for target in self.found.targets)
        said = verdict(estimates, self.found.targets)
        whole = len(drawn) == len(self.order)
        if said == EXCLUDED and not whole and not self._far(estimates):
            said = UNDECIDED
        return VariantResult((variant,), estimates, said)

    def _far(self, estimates: Sequence[SampledValue]) -> bool:
        """Returns whether a value is so far off that more samples are unlikely to bring it back."""
        pairs = zip(estimates, self.found.targets, strict=True)
        return any(
            abs(estimate.value - target.value) > LOOK_Z * estimate.error + allowed(target) for estimate, target in pairs
        )


def _ways(number: int) -> str:
    return "1 other way" if number == 1 else f"{number:,} other ways"


def _estimate(stored: float, before: Array, after: Array, population: int) -> SampledValue:
    """The stored value plus the difference of two means on a simple random sample; missing scores are NaN."""
    count = len(before)
    value, moves = stored, np.zeros(count)
    for sign, scores in ((-1, before), (1, after)):
        counted = np.isfinite(scores)
        if not counted.any():
            return SampledValue(stored, 1.0, 1)
        mean = float(scores[counted].mean())
        value += sign * mean
        moves += sign * np.where(counted, scores - mean, 0.0) / counted.mean()
    variance = (float(np.sum(moves**2)) + 1) / count  # one more change than observed
    return SampledValue(value, float(np.sqrt(variance / count * max(0.0, 1 - count / population))), count)
