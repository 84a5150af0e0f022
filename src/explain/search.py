"""Searches the protocols that give a published value: the cheapest first, then the smallest combinations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from testbed.db.store import Store
from testbed.explain.axis import Axis, NotApplicableError, Stage, Variant, axes
from testbed.explain.bench import Arm, Bench
from testbed.explain.cell import StoredCell
from testbed.explain.explanation import (
    ENOUGH,
    EXCLUDED,
    GIVES,
    UNDECIDED,
    Explanation,
    Row,
    Target,
    allowed,
    expected_by_chance,
    verdict,
)
from testbed.explain.pixels import Pixels
from testbed.explain.sampling import Estimate
from testbed.explain.table import values
from testbed.registry.catalog import Catalog

LOOK_Z = 3.5  # of intervals that exclude before all samples are drawn
FIRST_LOOK = 12  # samples
GROWTH = 1.5
ROUNDS = 3  # of what is left of the budget, one look spends a share
FOR_SINGLES = 0.7  # of the forward passes
MOST_COMBINATIONS = 600  # that need no images
MOST_PREDICTED = 12  # combinations of changes of the images that are run
BEST = 5  # pairs to which a third variant is added
SHARE, AT_LEAST = 0.05, 1000  # forward passes: of the samples of the evaluation, and where these are few

Say = Callable[[str], None]


def default_samples(evaluated: int) -> int:
    """How many forward passes a search makes at most if nothing is said."""
    return max(int(SHARE * evaluated), min(AT_LEAST, 20 * evaluated))


@dataclass
class _Race:
    """The arms for which images are run, and what is known of them.

    Attributes:
        known: Arm → its estimates, from the size of the draw beside them.
        sizes: Arm → the size of the last draw.
        out: The arms that were excluded on the way.
    """

    known: dict[Arm, tuple[Estimate, ...]] = field(default_factory=dict)
    sizes: dict[Arm, int] = field(default_factory=dict)
    out: set[Arm] = field(default_factory=set)


class Search:
    """A search for the protocol of published values.

    Args:
        cell: The cell.
        targets: The published values; several metrics exclude more than one.
        samples: The most forward passes; default `default_samples`.
        device: Where models run.
        stages: What may be used.
        given: The axes; default all.
        say: Is told what is done.
        thorough: Whether images are run even if stored outputs give the values already.
    """

    def __init__(
        self,
        cell: StoredCell,
        targets: Sequence[Target],
        samples: int | None = None,
        device: str = "cpu",
        stages: Sequence[Stage] = tuple(Stage),
        given: Sequence[Axis] | None = None,
        say: Say = lambda line: None,
        thorough: bool = False,
    ) -> None:
        self.cell = cell
        self.targets = tuple(targets)
        self.budget = default_samples(len(cell)) if samples is None else samples
        self.bench = Bench(cell, [each.metric for each in targets], device)
        self.axes = [each for each in (axes() if given is None else given) if each.stage in stages]
        self.say = say
        self.thorough = thorough
        self.found = Explanation(cell.evaluation.model, cell.evaluation.eval_setting, self.targets, len(cell))
        self.race = _Race()

    def run(self) -> Explanation:
        """The single variants, and where none of them gives it their combinations."""
        variants = self._variants()
        rows = [self._row((each,), self.bench.exact((each,))) for each in variants if not self.bench.sampled((each,))]
        sampled: list[Arm] = [(each,) for each in variants if self.bench.sampled((each,))]
        if sampled and not self.thorough and any(each.verdict == GIVES for each in rows):
            for arm in sampled:
                self.found.not_tried[arm[0].axis] = ENOUGH
        elif sampled and not self.found.agrees:
            self.say(f"running {len(sampled)} variants on some of the images")
            self._race(sampled, int(self.budget * FOR_SINGLES))
            verdicts = {arm: self._sampled_row(arm).verdict for arm in sampled if arm in self.race.known}
            if GIVES not in verdicts.values():
                self._race([arm for arm, each in verdicts.items() if each == UNDECIDED], self.budget)
            rows += [self._sampled_row(arm) for arm in sampled if arm in self.race.known]
            self._note_untried(sampled)
        order = [GIVES, UNDECIDED, EXCLUDED]
        self.found.rows = sorted(rows, key=lambda each: (order.index(each.verdict), each.distance(self.targets)))
        if not self.found.agrees and not any(each.verdict == GIVES for each in self.found.rows):
            self._combine()
        images = self.bench.images
        self.found.images_read, self.found.forwards = images.read, images.forwards
        self.found.texts = self.bench.heads.texts
        return self.found

    # Single variants ----------------------------------------------------------------------------------------------

    def _variants(self) -> list[Variant]:
        found: list[Variant] = []
        for axis in self.axes:
            try:
                if axis.stage == Stage.IMAGES:
                    self.bench.images.own  # noqa: B018 - whether images can be run
                variants = axis.of(self.cell)
                if axis.name == "metric" and len(self.targets) > 1:
                    raise NotApplicableError("several published metrics are given")
                if variants and self.bench.sampled((variants[0],)):
                    self.bench.pixels((variants[0],))
            except NotApplicableError as error:
                self.found.not_tried[axis.name] = str(error)
            else:
                found += [each for each in variants if not self._idle(each)]
        return found

    def _note_untried(self, arms: Sequence[Arm]) -> None:
        failed = {variant for variant, _ in self.found.failed}
        untried = [arm[0] for arm in arms if arm not in self.race.known and arm[0] not in failed]
        for axis in dict.fromkeys(each.axis for each in untried):
            self.found.not_tried[axis] = (
                f"{self.budget:,} images through the network do not suffice for a first look; give more --samples"
            )

    def _idle(self, variant: Variant) -> bool:
        """Whether it changes nothing here; these are counted."""
        idle = not self.bench.sampled((variant,)) and self.bench.idle(variant)
        if idle:
            self.found.idle.append(variant)
        return idle

    def _row(self, arm: Arm, estimates: tuple[Estimate, ...]) -> Row:
        return Row(arm, estimates, verdict(estimates, self.targets))

    def _sampled_row(self, arm: Arm) -> Row:
        row = self._row(arm, self.race.known[arm])
        return Row(arm, row.estimates, EXCLUDED) if arm in self.race.out else row

    # Images -------------------------------------------------------------------------------------------------------

    def _race(self, arms: Sequence[Arm], budget: int) -> None:
        """Draws more and more images for the arms that are not excluded yet, until the budget is spent.

        Where it does not suffice for all of them, those go on under which the published values are the likeliest.
        """
        alive = list(arms)
        while alive := [arm for arm in alive if not self._fails(arm)]:
            chosen = self._affordable(alive, budget - self.bench.images.forwards)
            if not chosen:
                return
            for size, group in _by_size(chosen, self._next_size).items():
                protocols = list(dict.fromkeys(self.bench.pixels(arm) for arm in group))
                self.bench.images.run(protocols, self.bench.draw.rows(size))
                out = self._look([arm for arm in group if not self._fails(arm)], size)
                alive = [arm for arm in alive if arm not in out]
            if self._settled(alive) or all(self._complete(arm) for arm in alive):
                return

    def _affordable(self, alive: Sequence[Arm], left: int) -> list[Arm]:
        """The arms that are looked at next: all if a third of what is left suffices, else the likeliest."""
        first = [arm for arm in alive if arm not in self.race.known]
        if first and len(self._within(first, left)) == len(first):
            return first
        known = sorted((arm for arm in alive if arm in self.race.known), key=self._likelihood, reverse=True)
        waiting = [arm for arm in known if not self._complete(arm)]
        return self._within(waiting, left // ROUNDS) or self._within(waiting[:1], left)

    def _within(self, arms: Sequence[Arm], left: int) -> list[Arm]:
        """The first of some arms whose next look takes no more forward passes."""
        counted: set[tuple[Pixels, int]] = set()
        for place, arm in enumerate(arms):
            key = pixels, size = self.bench.pixels(arm), self._next_size(arm)
            if key not in counted:
                left -= self.bench.images.cost(pixels, self.bench.draw.rows(size))
                counted.add(key)
            if left < 0:
                return list(arms[:place])
        return list(arms)

    def _next_size(self, arm: Arm) -> int:
        size = self.race.sizes.get(arm, 0)
        return int(size * GROWTH) + 1 if size else FIRST_LOOK

    def _complete(self, arm: Arm) -> bool:
        size = self.race.sizes.get(arm, 0)
        return bool(size) and len(self.bench.draw.rows(size)) == len(self.cell)

    def _likelihood(self, arm: Arm) -> float:
        """The logarithm of the density of the published values under an arm's estimates."""
        total = 0.0
        for found, target in zip(self.race.known[arm], self.targets, strict=True):
            spread = found.error + allowed(target)
            total -= ((found.value - target.value) / spread) ** 2 / 2 + math.log(spread)
        return total

    def _fails(self, arm: Arm) -> bool:
        why = self.bench.images.failed.get(self.bench.pixels(arm))
        if why is not None and len(arm) == 1 and (arm[0], why) not in self.found.failed:
            self.found.failed.append((arm[0], why))
        return why is not None

    def _look(self, arms: Sequence[Arm], size: int) -> set[Arm]:
        """Estimates the values of arms; returns those that are excluded."""
        for arm in arms:
            self.race.known[arm] = self.bench.estimated(arm, size)
            self.race.sizes[arm] = size
        out = {arm for arm in arms if self._apart(self.race.known[arm])}
        self.race.out |= out
        return out

    def _apart(self, estimates: Sequence[Estimate]) -> bool:
        return any(
            abs(found.value - target.value) > LOOK_Z * found.error + allowed(target)
            for found, target in zip(estimates, self.targets, strict=True)
        )

    def _settled(self, alive: Sequence[Arm]) -> bool:
        """Whether more images would not change what is left: one arm at most, and its interval is narrow."""
        return not alive or (len(alive) == 1 and self._sampled_row(alive[0]).verdict != UNDECIDED)

    # Combinations -------------------------------------------------------------------------------------------------

    def _combine(self) -> None:
        exact = [each for each in self.found.rows if not self.bench.sampled(each.variants)]
        self.say("no single variant gives it; trying combinations")
        pairs = self._exact_pairs(exact)
        tried = [*pairs, *self._sampled_pairs()]
        if not any(each.verdict == GIVES for each in tried):
            tried += self._thirds(pairs, exact)
        kept = [each for each in tried if each.verdict != EXCLUDED]
        order = [GIVES, UNDECIDED]
        self.found.combinations = sorted(
            kept, key=lambda each: (order.index(each.verdict), each.distance(self.targets))
        )
        self.found.combinations_tried = len(tried)
        self.found.by_chance = expected_by_chance(tried, self.targets)

    def _exact_pairs(self, rows: Sequence[Row]) -> list[Row]:
        """Pairs that need no images, those whose effects add up to the published values first."""
        stored = [each.stored for each in self.targets]

        def predicted(pair: tuple[Row, Row]) -> float:
            one, other = pair
            return max(
                abs(a.value + b.value - base - target.value)
                for a, b, base, target in zip(one.estimates, other.estimates, stored, self.targets, strict=True)
            )

        able = [pair for pair in combinations(rows, 2) if _combinable(pair[0].variants, pair[1].variants)]
        chosen = sorted(able, key=predicted)[:MOST_COMBINATIONS]
        arms = [_ordered(one.variants + other.variants) for one, other in chosen]
        return [self._row(arm, self.bench.exact(arm)) for arm in arms]

    def _sampled_pairs(self) -> list[Row]:
        """Pairs that need images, from what was run of the single variants as far as that tells."""
        known = [arm for arm in self.race.known if len(arm) == 1]
        exact = [each.variants for each in self.found.rows if not self.bench.sampled(each.variants)]
        arms: list[Arm] = []
        sizes: dict[Arm, int] = {}
        for one in known:
            for other in exact:
                if _combinable(one, other):
                    arm = _ordered(one + other)
                    arms.append(arm)
                    sizes[arm] = self.race.sizes[one]
        looked: dict[Arm, tuple[Estimate, ...]] = {arm: self.bench.estimated(arm, sizes[arm]) for arm in arms}
        alive = [arm for arm in arms if not self._apart(looked[arm])]
        self.race.known.update(looked)
        self.race.sizes.update(sizes)
        self.race.out.update(arm for arm in arms if arm not in set(alive))
        predicted = self._predicted(known)
        self._race([*alive, *predicted], self.budget)
        return [self._sampled_row(arm) for arm in [*arms, *predicted] if arm in self.race.known]

    def _predicted(self, known: Sequence[Arm]) -> list[Arm]:
        """The pairs of changes of the images that come closest if their effects on the outputs add up."""
        pairs = [_ordered(a + b) for a, b in combinations(known, 2) if _combinable(a, b)]
        images = [pair for pair in pairs if all(each.stage == Stage.IMAGES for each in pair)]
        if not images:
            return []
        rows = self.bench.draw.rows(FIRST_LOOK)
        if self.bench.images.forwards + self.bench.images.cost(self.bench.images.own, rows) > self.budget:
            return []
        self.bench.images.run([self.bench.images.own], rows)
        scored = []
        for pair in images:
            try:
                estimates = self.bench.estimated(pair, FIRST_LOOK, self.bench.added(pair, FIRST_LOOK))
            except (KeyError, ValueError):  # outputs of another shape
                continue
            far = max(
                abs(found.value - target.value) / max(found.error, 1e-9)
                for found, target in zip(estimates, self.targets, strict=True)
            )
            scored.append((far, pair))
        return [pair for _, pair in sorted(scored, key=lambda each: each[0])[:MOST_PREDICTED]]

    def _thirds(self, pairs: Sequence[Row], exact: Sequence[Row]) -> list[Row]:
        """The closest pairs with each third variant."""
        best = sorted(pairs, key=lambda each: each.distance(self.targets))[:BEST]
        arms = {
            _ordered(pair.variants + third.variants)
            for pair in best
            for third in exact
            if _combinable(pair.variants, third.variants)
        }
        return [self._row(arm, self.bench.exact(arm)) for arm in sorted(arms, key=str)]


def explain(
    store: Store,
    catalog: Catalog,
    model: str,
    setting: str,
    published: Mapping[str, tuple[float, float]],
    **options: Any,
) -> Explanation:
    """Which protocols give published values of a cell, and which do not.

    Args:
        store: With the outputs of the cell.
        catalog: The registry.
        model: The model.
        setting: The eval setting.
        published: Metric → the published value, a fraction, and half a unit of its last printed digit.
        **options: Further arguments of `Search`.

    Raises:
        StoreError: If a metric is no share of right answers and no mean of a stored score.
        UnknownNameError: If the cell was not evaluated.
    """
    cell = StoredCell.open(store, catalog, model, setting)
    targets = [
        Target(metric, value, rounding, values(cell.table(metric)).value)
        for metric, (value, rounding) in published.items()
    ]
    return Search(cell, targets, **options).run()


def _by_size(arms: Sequence[Arm], size_of: Callable[[Arm], int]) -> dict[int, list[Arm]]:
    """Arms by the size of their next draw."""
    found: dict[int, list[Arm]] = {}
    for arm in arms:
        found.setdefault(size_of(arm), []).append(arm)
    return found


def _combinable(one: Arm, other: Arm) -> bool:
    return not {each.axis for each in one} & {each.axis for each in other}


def _ordered(arm: Arm) -> Arm:
    return tuple(sorted(arm, key=lambda each: (each.stage, not each.first, each.axis)))
