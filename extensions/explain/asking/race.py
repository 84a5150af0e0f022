"""Asks for more and more samples, for the variants that are not excluded yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from testbed.answers.columns import has_answer
from testbed.errors import TestbedError
from testbed.extensions.explain.asking.asked import asked_of
from testbed.extensions.explain.asking.questions import Questions
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, Variant, asked_axes
from testbed.extensions.explain.cell import StoredCell
from testbed.extensions.explain.explanation import EXCLUDED, GIVES, UNDECIDED, Explanation, Row, allowed, verdict
from testbed.extensions.explain.sampling import Estimate
from testbed.extensions.explain.table import Array

SEED = 20_240_601
FIRST = 12  # samples of the first look
GROWTH = 2
LOOK_Z = 3.5  # of intervals that exclude before all samples are drawn
COMPARED = 8  # samples whose messages tell whether a variant changes anything
REQUESTS = 1000  # at most, if nothing is said

Say = Callable[[str], None]


def ask(
    cell: StoredCell,
    found: Explanation,
    allow: bool = False,
    requests: int | None = None,
    device: str = "cpu",
    say: Say = lambda line: None,
    given: Sequence[Axis] | None = None,
) -> None:
    """Adds to an explanation what the ways of asking and judging give; without leave, how many requests that takes.

    Args:
        cell: The cell. With leave its store is open to write: what models say is stored.
        found: What was found without asking.
        allow: Whether models may be asked.
        requests: How many times at most; default `REQUESTS`. Answers that the store has count too, so that the same
            search again asks nothing.
        device: Where models run that are not served.
        say: Is told how many requests there will be, before the first one.
        given: The axes; default all.
    """
    if found.agrees or (cell.classifies and not allow):
        return
    variants = _variants(cell, found, asked_axes() if given is None else given)
    if not variants:
        return
    try:
        race = _Race(cell, found, variants, REQUESTS if requests is None else requests, device)
        if allow and not any(each.verdict == GIVES for each in found.rows):
            try:
                race.run(say)
            finally:
                found.asked = race.questions.sent
            return
        why = (
            "what is stored gives the value already"
            if allow
            else f"the model is asked again only with --ask: {race.bounds_in_words()}"
        )
    except TestbedError as error:
        why = str(error)
    found.not_tried.update({each.axis: why for each in variants})


def _variants(cell: StoredCell, found: Explanation, axes: Sequence[Axis]) -> list[Variant]:
    """The variants for a cell; those that mean nothing there are noted with the reason."""
    able = []
    for axis in axes:
        if axis.stage != Stage.ANSWERS:
            continue
        try:
            own, variants = asked_of(cell.setting), axis.of(cell)
        except NotApplicableError as error:
            found.not_tried[axis.name] = str(error)
            continue
        for each in variants:
            try:
                each.change(own)
                able.append(each)
            except NotApplicableError as error:
                found.failed.append((each, str(error)))
    return able


class _Race:
    """The variants that are tried, and the samples that are drawn."""

    def __init__(
        self, cell: StoredCell, found: Explanation, variants: Sequence[Variant], budget: int, device: str
    ) -> None:
        scores = [cell.scores(each.metric) for each in found.targets]
        own = next(iter(cell.store.scores.read(cell.evaluation.id, "score").values()), None)
        if own is None or not all(each is not None and np.array_equal(each, own, equal_nan=True) for each in scores):
            raise NotApplicableError("the metric is not the mean of what answers score")
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
        """Model → how many requests it gets at most."""
        most: Counter[str] = Counter()
        if asked := sum(map(self.questions.asks_anew, self.variants)):
            most[self.cell.evaluation.model] = asked * sum(self.cell.turns[row] for row in self.order)
        for each in self.variants:
            for judge, times in self.questions.judges(each).items():
                most[judge] += times * len(self.order)
        return dict(most)

    def bounds_in_words(self) -> str:
        """How many requests are made at most, and to whom, if that is not the model under test alone."""
        bounds = self.bounds()
        told = f"at most {min(self.budget, sum(bounds.values())):,} requests"
        if set(bounds) <= {self.cell.evaluation.model}:
            return told
        return f"{told} ({', '.join(f'{min(self.budget, most):,} to {name}' for name, most in bounds.items())})"

    @cached_property
    def _calls(self) -> dict[Variant, int]:
        """How many judges are asked about each answer, at most."""
        return {each: self.questions.judges(each).total() for each in self.variants}

    def _cost(self, variant: Variant, row: int) -> int:
        """How many answers a sample takes at most."""
        asked = 0 if self.questions.stored(variant) is not None else self.cell.turns[row]
        return asked + self._calls[variant]

    def _next(self, size: int, alive: Sequence[Variant]) -> int:
        """How many samples are drawn next: as many as can be asked about."""
        left = self.budget - self.questions.used
        larger = min(max(FIRST, GROWTH * size), len(self.order))
        for place in range(size, larger):
            left -= sum(self._cost(each, self.order[place]) for each in alive)
            if left < 0:
                return place
        return larger

    # The search ---------------------------------------------------------------------------------------------------

    def run(self, say: Say) -> None:
        """Asks, and adds rows to the explanation."""
        self._leave_out()
        compared = self.order[:COMPARED]
        idle = [each for each in self.variants if self.questions.idle(each, compared)]
        self.found.idle += idle
        alive = self.variants = [each for each in self.variants if each not in idle]
        if not alive or not self.order:
            return
        say(f"{self._plan()}: {self.bounds_in_words()}")
        size, rows = 0, {}
        for each in [each for each in alive if not self._cost(each, self.order[0])]:
            rows[each] = self._row(each, self.order)  # an evaluation has its answers
            alive = [other for other in alive if other is not each]
        while alive and (larger := self._next(size, alive)) > size:
            size = larger
            for each in alive:
                rows[each] = self._row(each, self.order[:size])
            alive = [each for each in alive if rows[each].verdict != EXCLUDED]
        ranks = [GIVES, UNDECIDED, EXCLUDED]
        self.found.rows += rows.values()
        self.found.rows.sort(key=lambda each: (ranks.index(each.verdict), each.distance(self.found.targets)))

    def _leave_out(self) -> None:
        """Leaves out what takes a model that cannot be asked, or a judge that is not what it was."""
        questions, own = self.questions, set(self.questions.judges(None))
        for check, concerns in (
            (questions.require_judges, lambda each: own & set(questions.judges(each))),
            (questions.require_model, questions.asks_anew),
        ):
            concerned = [each for each in self.variants if concerns(each)]
            try:
                if concerned:
                    check()
            except NotApplicableError as error:
                self.found.not_tried.update({each.axis: str(error) for each in concerned})
                self.variants = [each for each in self.variants if each not in concerned]

    def _plan(self) -> str:
        asked = sum(map(self.questions.asks_anew, self.variants))
        parts = [f"asking {self.found.model} in {_ways(asked)}"] if asked else []
        if judged := len(self.variants) - asked:
            parts.append(f"having its answers judged in {_ways(judged)}")
        return " and ".join(parts)

    def _row(self, variant: Variant, drawn: Sequence[int]) -> Row:
        before, after = self.stored[list(drawn)], self.questions.scores(variant, drawn)
        estimates = tuple(_estimate(each.stored, before, after, len(self.order)) for each in self.found.targets)
        said = verdict(estimates, self.found.targets)
        whole = len(drawn) == len(self.order)
        if said == EXCLUDED and not whole and not self._far(estimates):
            said = UNDECIDED
        return Row((variant,), estimates, said)

    def _far(self, estimates: Sequence[Estimate]) -> bool:
        """Whether a value is so far that more samples will hardly bring it back."""
        pairs = zip(estimates, self.found.targets, strict=True)
        return any(abs(each.value - target.value) > LOOK_Z * each.error + allowed(target) for each, target in pairs)


def _ways(number: int) -> str:
    return "1 other way" if number == 1 else f"{number:,} other ways"


def _estimate(stored: float, before: Array, after: Array, population: int) -> Estimate:
    """The stored value plus the difference of two means on a simple random sample; answers without a score are NaN."""
    count = len(before)
    value, moves = stored, np.zeros(count)
    for sign, scores in ((-1, before), (1, after)):
        counted = np.isfinite(scores)
        if not counted.any():
            return Estimate(stored, 1.0, 1)
        mean = float(scores[counted].mean())
        value += sign * mean
        moves += sign * np.where(counted, scores - mean, 0.0) / counted.mean()
    variance = (float(np.sum(moves**2)) + 1) / count  # one more change than was seen
    return Estimate(value, float(np.sqrt(variance / count * max(0.0, 1 - count / population))), count)
