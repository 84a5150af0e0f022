"""Searches the protocols that give a published value: the cheapest first, then the smallest combinations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

from testbed.db.store import Store
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, Variant, axes, in_order
from testbed.extensions.explain.bench import Arm, Bench, combinable
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.explanation import (
    CHANCE,
    CHANCE_OF_SINGLE,
    ENOUGH,
    EXCLUDED,
    GIVES,
    NARROW,
    UNDECIDED,
    Explanation,
    Target,
    VariantResult,
    allowed,
    expected_by_chance,
    most_by_chance,
    verdict,
)
from testbed.extensions.explain.race import FIRST_LOOK, Race, default_samples, samples_for_pairs
from testbed.extensions.explain.sampling import SampledValue
from testbed.extensions.explain.table import values
from testbed.registry.catalog import Catalog

# Of the forward passes, where several metrics tell pairs apart; all, if one was published or so many variants are left:
FOR_SINGLES = 0.7
FEW = 3
MOST_COMBINATIONS = 600  # without images
MOST_TEXTS = 20_000  # texts to embed for combinations
FOR_FIRST_LOOKS = 0.3  # share of the forward passes left for pairs of image changes
NOT_ADDITIVE = 0.2  # relative deviation of effects on outputs from additivity
BEST = 5  # pairs to which a third variant is added

METRICS = ("metric", "another metric")  # axes that replace the published metric

Say = Callable[[str], None]


class Search:
    """A search for the protocol of published values.

    Args:
        cell: The cell.
        targets: The published values; several metrics exclude more than one.
        samples: Maximum number of forward passes; default `default_samples` for single variants, and
            `samples_for_pairs` if several metrics distinguish pairs.
        device: Device of models.
        stages: Stages that may be used.
        given: The axes; default all.
        say: Called with messages about progress.
        thorough: Whether to run images even if stored outputs already give the values, and to decide the other variants
            even if one gives them beyond chance.

    Attributes:
        found: The result.
        tried: The tried combinations.
    """

    def __init__(
        self,
        cell: EvaluatedCell,
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
        self.budget = samples
        self._limited = samples is not None
        self._usual = 0  # the default for single variants
        gap = max((abs(target.stored - target.value) for target in targets), default=0.0)
        self.bench = Bench(cell, [target.metric for target in targets], device, gap)
        self.axes = [axis for axis in (axes() if given is None else given) if axis.stage in stages]
        self.say = say
        self.thorough = thorough
        self.found = Explanation(cell.evaluation.model, cell.evaluation.eval_setting, self.targets, len(cell))
        self.race = Race(self.bench, self.targets)
        self.tried: list[VariantResult] = []
        self._exact: list[VariantResult] = []

    def run(self) -> Explanation:
        """Tries the single variants, and their combinations if none of them gives the value."""
        arms: list[Arm] = [(variant,) for variant in self._variants()]
        self._exact = [self._row(arm, self.bench.exact(arm)) for arm in arms if not self.bench.sampled(arm)]
        sampled = [arm for arm in arms if self.bench.sampled(arm)]
        rows = list(self._exact)
        if sampled and not self.found.agrees:
            if not self.thorough and self._stored_gives_it():
                self.found.not_tried.update({arm[0].axis: ENOUGH for arm in sampled})
            else:
                rows += self._run_images(sampled)
        self.found.rows = self._sorted(rows)
        if not self.found.agrees and (self.thorough or not self._explained()):
            self._finish()
            if not self._given():
                self._combine()
        if self._given():
            self.found.by_chance = self._luck()
        images = self.bench.images
        self.found.images_read, self.found.forwards = images.read, images.forwards
        self.found.texts = self.bench.heads.texts
        return self.found

    def _given(self) -> bool:
        """Returns whether a single variant gives the values."""
        return any(row.verdict == GIVES for row in self.found.rows)

    def _explained(self) -> bool:
        """Returns whether a single variant gives the values beyond chance."""
        return self._given() and self._luck() < CHANCE_OF_SINGLE

    def _luck(self) -> float:
        """The expected number of single variants that match by chance, among those with or without images."""
        sampled = [row for row in self.found.rows if row.estimates[0].samples]
        tried = sampled if any(result.verdict == GIVES for result in sampled) else self._exact
        return expected_by_chance(tried, self.targets, small_effects=True)

    def _stored_gives_it(self) -> bool:
        """Returns whether variants without images, or pairs of them, give the values beyond chance."""
        if any(result.verdict == GIVES for result in self._exact):
            return expected_by_chance(self._exact, self.targets, small_effects=True) < CHANCE_OF_SINGLE
        decisive = most_by_chance(len(self._exact_arms), self.targets) <= CHANCE
        if decisive:
            self.say("no single variant of stored outputs gives it; trying pairs")
        return decisive and any(pair.verdict == GIVES for pair in self._exact_pairs)

    def _finish(self) -> None:
        """Runs more passes for undecided single variants, the nearest first, before pairs."""
        arms = [row.variants for row in self.found.rows if row.verdict == UNDECIDED]
        self.race.decide([arm for arm in arms if arm in self.race.known], self.budget or 0)
        self.found.rows = self._sorted(self._refreshed(self.found.rows))

    def _run_images(self, arms: Sequence[Arm]) -> list[VariantResult]:
        """Runs the variants that require images, as precisely as necessary and within the budget."""
        protocols = {self.bench.pixels(arm) for arm in arms}  # variants of texts share one
        self._usual = default_samples(len(self.cell), len(protocols))
        self.budget = self._usual if self.budget is None else self.budget
        if why := self.bench.why_not_reproduced() if self.budget else "":
            self.found.not_tried.update({arm[0].axis: why for arm in arms})
            return []
        self.say(f"running {len(arms)} variants on some of the images: {self.budget:,} at most in all")
        most = min(self.budget, self._usual) if len(self.targets) > 1 else self.budget  # the rest is for pairs
        self.race.run(arms, int(most * FOR_SINGLES) if len(self.targets) > 1 else most)
        alive = [arm for arm in self.race.alive(arms) if arm in self.race.known]
        if any(self._sampled_row(arm).verdict == GIVES for arm in alive):
            self.race.run(alive, self.budget)  # combinations are not tried
        elif len(self.race.likely(alive)) <= FEW:
            self.race.run(alive, most)
        self.found.failed += [(arm[0], why) for arm in arms if (why := self.race.failed(arm))]
        self._note_untried(arms)
        return [self._sampled_row(arm) for arm in arms if arm in self.race.known]

    # Single variants ----------------------------------------------------------------------------------------------

    def _variants(self) -> list[Variant]:
        found: list[Variant] = []
        for axis in self.axes:
            try:
                if axis.stage == Stage.IMAGES:
                    self.bench.own  # noqa: B018 - whether images can be run
                variants = axis.of(self.cell)
                if axis.name in METRICS and len(self.targets) > 1:
                    raise NotApplicableError("several published metrics are given")
                if variants and self.bench.sampled((variants[0],)):
                    self.bench.pixels((variants[0],))
            except NotApplicableError as error:
                self.found.not_tried[axis.name] = str(error)
            else:
                found += [variant for variant in variants if not self._idle(variant)]
        return found

    def _note_untried(self, arms: Sequence[Arm]) -> None:
        failed = {variant for variant, _ in self.found.failed}
        untried = [arm[0] for arm in arms if arm not in self.race.known and arm[0] not in failed]
        for axis in dict.fromkeys(each.axis for each in untried):
            self.found.not_tried[axis] = (
                f"{self.budget:,} images through the network are not enough for a first estimate; increase --samples"
            )

    def _idle(self, variant: Variant) -> bool:
        """Returns whether a variant has no effect here; these are recorded."""
        idle = not self.bench.sampled((variant,)) and self.bench.idle(variant)
        if idle:
            self.found.idle.append(variant)
        return idle

    def _row(self, arm: Arm, estimates: tuple[SampledValue, ...]) -> VariantResult:
        return VariantResult(arm, estimates, verdict(estimates, self.targets))

    def _sorted(self, rows: Sequence[VariantResult]) -> list[VariantResult]:
        order = [GIVES, UNDECIDED, EXCLUDED]
        return sorted(rows, key=lambda each: (order.index(each.verdict), each.distance(self.targets)))

    def _sampled_row(self, arm: Arm) -> VariantResult:
        return self._row(arm, self.race.known[arm])

    # Combinations -------------------------------------------------------------------------------------------------

    def _combine(self) -> None:
        self.say("no single variant is known to give it; trying combinations")
        sampled = self._sampled_pairs()
        self.found.rows = self._sorted(self._refreshed(self.found.rows))
        if self._given():
            return
        self.tried = [*self._exact_pairs, *map(self._doubted, self._refreshed(sampled))]
        if not any(result.verdict == GIVES for result in self.tried):
            self.tried += self._thirds()
        self.found.combinations = self._sorted([result for result in self.tried if result.verdict != EXCLUDED])
        self.found.combinations_tried = len(self.tried)
        self.found.by_chance = expected_by_chance(self.tried, self.targets)

    def _refreshed(self, rows: Sequence[VariantResult]) -> list[VariantResult]:
        """Recomputes rows, since they or others with the same protocol were run on more images."""
        known = [row.variants for row in rows if row.variants in self.race.known]
        self.race.refresh(self.race.alive(known))
        return [self._sampled_row(row.variants) if row.variants in self.race.known else row for row in rows]

    def _doubted(self, row: VariantResult) -> VariantResult:
        """Rejects combinations if one of their variants may give the value alone."""
        undecided = {result.variants[0] for result in self.found.rows if result.verdict == UNDECIDED}
        doubt = row.verdict == GIVES and not undecided.isdisjoint(row.variants)
        return replace(row, verdict=UNDECIDED) if doubt else row

    @cached_property
    def _exact_arms(self) -> list[Arm]:
        """The pairs that require no images, sorted by how well their combined effects match the published values."""

        def predicted(pair: tuple[VariantResult, VariantResult]) -> float:
            one, other = pair
            return max(
                min(
                    abs(a.value + b.value - target.stored - target.value),
                    abs(a.value * b.value / max(target.stored, 1e-12) - target.value),
                )
                for a, b, target in zip(one.estimates, other.estimates, self.targets, strict=True)
            )

        able = [pair for pair in combinations(self._exact, 2) if combinable(pair[0].variants, pair[1].variants)]
        arms = [in_order(one.variants + other.variants) for one, other in sorted(able, key=predicted)]
        return arms[:MOST_COMBINATIONS]

    @cached_property
    def _exact_pairs(self) -> list[VariantResult]:
        return self._exact_rows(self._exact_arms)

    @cached_property
    def _most_texts(self) -> int:
        return self.bench.heads.texts + MOST_TEXTS

    def _exact_rows(self, arms: Sequence[Arm]) -> list[VariantResult]:
        """Rows of combinations that require no images; counts those with too many new texts."""
        rows, heads = [], self.bench.heads
        for arm in arms:
            texts = self.bench.texts(arm)
            if texts is not None and heads.texts + heads.lacking(texts) > self._most_texts:
                self.found.combinations_left += 1
            else:
                rows.append(self._row(arm, self.bench.exact(arm)))
        return rows

    def _sampled_pairs(self) -> list[VariantResult]:
        """Pairs that require images: with one image change from existing outputs, with two from new ones."""
        known = [arm for arm in self.race.known if len(arm) == 1]
        if not known:
            return []
        exact = [result.variants for result in self._exact]
        pairs = [(one, other) for one in known for other in exact if combinable(one, other)]
        arms = [in_order(one + other) for one, other in pairs]
        for arm, (one, _) in zip(arms, pairs, strict=True):
            self.race.look(arm, self.race.sizes[one])
        arms += self._predicted(known)
        self.race.run([*known, *arms], self.budget or 0, until_sure=True)
        rows = [self._sampled_row(arm) for arm in arms if arm in self.race.known]
        halves = {(variant,): None for row in rows if row.verdict == GIVES for variant in row.variants}
        doubted = [half for half in halves if half in self.race.known]
        self.race.refresh(doubted)
        self.race.decide(doubted, self.budget or 0)
        return rows

    def _predicted(self, known: Sequence[Arm]) -> list[Arm]:
        """The pairs of changes of the images that come closest if their effects on the outputs add up.

        A change that can hardly flip any answer leaves the other's value unchanged.
        """
        changes = [arm for arm in known if arm[0].stage == Stage.IMAGES]
        moving = [arm for arm in changes if self.bench.reach(arm, self.race.sizes[arm]) > NARROW]
        images = [in_order(a + b) for a, b in combinations(moving, 2) if combinable(a, b) and self._both_count(a, b)]
        if len(self.targets) > 1:
            protocols = {self.bench.pixels(arm) for arm in images}
            self._allow(self._usual + samples_for_pairs(len(self.cell), len(protocols)))
        scored = []
        for pair in images:
            size = min(self.race.sizes[(variant,)] for variant in pair)
            try:
                estimates = self.race.estimated(pair, size, self.bench.added(pair, size))
            except (KeyError, ValueError):  # outputs of another shape
                continue
            scored.append((self._likelihood(estimates), pair))
        most = int(FOR_FIRST_LOOKS * ((self.budget or 0) - self.bench.images.forwards)) // FIRST_LOOK
        chosen = [pair for _, pair in sorted(scored, key=lambda each: each[0], reverse=True)[: max(0, most)]]
        self.found.combinations_left += len(images) - len(chosen)
        return chosen

    def _allow(self, samples: int) -> None:
        """Raises the budget to the cost of pairs, unless the user set a lower one."""
        if not self._limited:
            self.budget = samples
            self.say(f"running pairs on some of the images: {samples:,} at most in all")
        elif samples > (self.budget or 0):
            self.found.enough = samples

    def _both_count(self, one: Arm, other: Arm) -> bool:
        """Returns whether two image changes together differ from each of them."""
        return self.bench.pixels(in_order(one + other)) not in (self.bench.pixels(one), self.bench.pixels(other))

    def _likelihood(self, estimates: Sequence[SampledValue]) -> float:
        """The log density of the published values under predictions with errors."""
        total = 0.0
        for found, target in zip(estimates, self.targets, strict=True):
            spread = found.error + NOT_ADDITIVE * abs(found.value - target.stored) + allowed(target)
            total -= ((found.value - target.value) / spread) ** 2 / 2 + math.log(spread)
        return total

    def _thirds(self) -> list[VariantResult]:
        """The closest pairs without images, combined with each third variant."""
        best = sorted(self._exact_pairs, key=lambda each: each.distance(self.targets))[:BEST]
        arms = {
            in_order(pair.variants + third.variants)
            for pair in best
            for third in self._exact
            if combinable(pair.variants, third.variants)
        }
        return self._exact_rows(sorted(arms, key=str))


def explain(
    store: Store,
    catalog: Catalog,
    model: str,
    setting: str,
    published: Mapping[str, tuple[float, float]],
    **options: Any,
) -> Explanation:
    """Finds the protocols that give the published values of a cell.

    Args:
        store: Store with the outputs of the cell.
        catalog: The registry.
        model: The model.
        setting: The eval setting.
        published: Metric → the published value, a fraction, and half a unit of its last printed digit.
        **options: Further arguments of `Search`.

    Raises:
        StoreError: If a metric is neither a share of right answers nor the mean of a stored score.
        UnknownNameError: If the cell was not evaluated.
    """
    return search_for(store, catalog, model, setting, published, **options).run()


def search_for(
    store: Store,
    catalog: Catalog,
    model: str,
    setting: str,
    published: Mapping[str, tuple[float, float]],
    **options: Any,
) -> Search:
    """Creates the search of `explain`; see there."""
    cell = EvaluatedCell.open(store, catalog, model, setting)
    targets = [
        Target(metric, value, rounding, values(cell.table(metric)).value, samples=len(cell))
        for metric, (value, rounding) in published.items()
    ]
    return Search(cell, targets, **options)
