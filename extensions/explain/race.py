"""Allocates images to variants: which variant to evaluate next, and on how many samples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from testbed.arrays import Array
from testbed.extensions.explain.axis import Stage
from testbed.extensions.explain.bench import Arm, Bench
from testbed.extensions.explain.explanation import ALONE, GIVES, NARROW, UNDECIDED, Target, Z, allowed, verdict
from testbed.extensions.explain.pixels import Pixels
from testbed.extensions.explain.sampling import SampledValue

DOUBTFUL = 0.001  # odds below which an arm is dropped
FREEDOM, ROUGH = 3, 16  # minimum degrees of freedom, and samples per further one: errors of small draws are rough
FIRST_LOOK = 24  # samples
GROWTH, WORTHWHILE = 1.2, 1.02  # growth of the draw between looks, and its minimum
WHOLE = 0.98  # share of the samples above which a draw takes all
PRECISE = 0.5  # share of the narrowest requested interval below which an arm is not refined
LIKELY = 0.1  # minimum odds relative to the likeliest arm
SURE = 0.95  # share of all odds at which one arm makes the others wait
EVALUATIONS, SMALL_EVALUATIONS = 2, 6  # maximum passes, in evaluations of a large set and of a small one
AT_LEAST, AT_MOST = 10_000, 50_000  # passes of a small set
SHARE = 0.05  # of the passes of all pairs


def default_samples(evaluated: int, variants: int) -> int:
    """The default maximum of forward passes; variants of a small set differ by few answers, which takes more of it."""
    small = max(SMALL_EVALUATIONS * evaluated, AT_LEAST)
    return min(small, max(EVALUATIONS * evaluated, AT_MOST), evaluated * variants)


def samples_for_pairs(evaluated: int, pairs: int) -> int:
    """The default maximum of forward passes for pairs of image changes."""
    full = evaluated * pairs
    return int(min(max(SHARE * full, AT_LEAST), full))


class Race:
    """The arms for which images are run, and their estimates.

    Each arm is evaluated once. Then the likeliest one is evaluated on more and more samples as long as it stays the
    likeliest, until an arm that was run on all samples gives the published values. Distinguishing all others would
    take several evaluations: the number of samples depends on the distance of two values, so each arm near the
    published value costs as much as hundreds of looks at the rest.

    Args:
        bench: Runs the arms.
        targets: The published values.

    Attributes:
        known: Arm → its estimates, one for each target.
        sizes: Arm → the size of the last draw.
    """

    def __init__(self, bench: Bench, targets: Sequence[Target]) -> None:
        self.bench = bench
        self.targets = targets
        self.known: dict[Arm, tuple[SampledValue, ...]] = {}
        self.sizes: dict[Arm, int] = {}

    def run(self, arms: Iterable[Arm], budget: int, until_sure: bool = False) -> None:
        """Draws more and more samples for arms that may give the values.

        Args:
            arms: The arms.
            budget: Maximum number of forward passes, including earlier ones.
            until_sure: Whether to stop when the matching arm is certain; else it is run on all samples.
        """
        arms = list(arms)
        self._look_once([arm for arm in arms if arm not in self.known], budget)
        while not self._found(arms, until_sure):
            arm = self._next(arms, until_sure)
            size = 0 if arm is None else self._next_size(arm, budget)
            if arm is None or not size:
                break
            self._draw([arm], size)
            self.refresh(other for other in arms if other != arm and other in self.known)
        self.decide(self.likely([arm for arm in arms if arm in self.known])[:1], budget)

    def decide(self, arms: Iterable[Arm], budget: int) -> None:
        """Draws more and more samples for known arms until they give the values or are excluded.

        Args:
            arms: The arms.
            budget: See `run`.
        """
        for arm in arms:
            while self._undecided(arm) and (size := self._next_size(arm, budget)):
                self._draw([arm], size)

    def _look_once(self, arms: Sequence[Arm], budget: int) -> None:
        """Evaluates arms for the first time, within the budget; each image is read once for all of them."""
        looks: dict[int, list[Arm]] = {}
        for arm in arms:
            first = FIRST_LOOK * len(self.bench.cell) // max(1, self.bench.count(arm))
            looks.setdefault(min(first, len(self.bench.cell)), []).append(arm)
        for size, group in looks.items():
            chosen: list[Arm] = []
            left = budget - self.bench.images.forwards
            for arm in group:
                left -= self._passes(arm, size)
                if left >= 0:
                    chosen.append(arm)
            self._draw(chosen, size)

    def _draw(self, arms: Sequence[Arm], size: int) -> None:
        """Runs and estimates arms; each image is read once for arms with the same samples."""
        together: dict[bytes, list[Arm]] = {}
        for arm in arms:
            together.setdefault(self.bench.rows(arm, size).tobytes(), []).append(arm)
        for group in together.values():
            protocols = list(dict.fromkeys(self.bench.pixels(arm) for arm in group))
            self.bench.images.run(protocols, self.bench.rows(group[0], size))
        for arm in arms:
            if not self.failed(arm):
                self.look(arm, size)

    def look(self, arm: Arm, size: int) -> None:
        """Estimates the values of an arm from a draw that was run."""
        self.known[arm] = self.estimated(arm, size)
        self.sizes[arm] = size

    def refresh(self, arms: Iterable[Arm]) -> None:
        """Estimates arms again from the larger draws that others with the same protocol were run on."""
        sizes: dict[Pixels, set[int]] = {}
        for arm, size in self.sizes.items():
            sizes.setdefault(self.bench.pixels(arm), set()).add(size)
        for arm in arms:
            pixels = self.bench.pixels(arm)
            for size in sorted((number for number in sizes[pixels] if number > self.sizes[arm]), reverse=True):
                if not self._passes(arm, size):
                    self.look(arm, size)
                    break

    def estimated(self, arm: Arm, size: int, outputs: Array | None = None) -> tuple[SampledValue, ...]:
        """Estimates an arm from the stored outputs or from one of its variants, whichever is more precise.

        Args:
            arm: The arm.
            size: Size of the draw.
            outputs: See `Bench.estimated`.
        """
        found = [self.bench.estimated(arm, size, outputs)]
        if all(variant.stage == Stage.IMAGES for variant in arm):
            for half in ((variant,) for variant in arm if len(arm) > 1):
                if self.sizes.get(half, 0) >= size:
                    base = half, self.sizes[half], self.known[half]
                    found.append(self.bench.from_another(arm, size, *base, outputs))
        return min(found, key=lambda estimates: max(estimate.error for estimate in estimates))

    def failed(self, arm: Arm) -> str:
        """The reason why it could not be run; empty if it could."""
        return self.bench.images.failed.get(self.bench.pixels(arm), "")

    def alive(self, arms: Iterable[Arm]) -> list[Arm]:
        """The arms that may give the values, including unknown ones."""
        return [arm for arm in arms if arm not in self.known or self._odds(arm) >= DOUBTFUL]

    def likely(self, arms: Sequence[Arm]) -> list[Arm]:
        """The arms that may give the values according to their estimates, the likeliest first."""
        odds = {arm: self._odds(arm) for arm in arms}
        most = max(odds.values(), default=0.0)
        return sorted((arm for arm in arms if odds[arm] >= LIKELY * most), key=lambda arm: -odds[arm])

    def _odds(self, arm: Arm) -> float:
        """The likelihood ratio of an arm giving the values versus other values within the gap."""
        odds = 1.0
        for found, target in zip(self.known[arm], self.targets, strict=True):
            error = max(found.error, allowed(target) / Z)
            wide = math.hypot(error, target.stored - target.value)
            apart, freedom = abs(found.value - target.value) / error, FREEDOM + found.samples / ROUGH
            odds *= wide / error * (1 + apart**2 / freedom) ** (-(freedom + 1) / 2)  # Student's distribution
        return odds

    def _found(self, arms: Sequence[Arm], until_sure: bool) -> bool:
        """Returns whether one of the arms, run on all samples, gives the values, or is certain to."""
        if until_sure and self._sure(arms):
            return True
        return any(self._complete(arm) and verdict(self.known[arm], self.targets) == GIVES for arm in arms)

    def _next(self, arms: Sequence[Arm], until_sure: bool) -> Arm | None:
        """The likeliest arm that more samples can refine; None if there is none."""
        enough = self._precise if until_sure else self._complete
        able = [arm for arm in arms if arm in self.known and not self.failed(arm) and not self._complete(arm)]
        likely = self.likely(self.alive(arm for arm in able if not enough(arm)))
        return likely[0] if likely else None

    def _next_size(self, arm: Arm, budget: int) -> int:
        """The size of the next draw of an arm, within the budget; 0 if it would hardly be larger."""
        last, every = self.sizes[arm], len(self.bench.cell)
        size = min(max(int(last * GROWTH), last + 1), (last + every) // 2 + 1)  # errors vanish where few are left
        size = every if size > WHOLE * every else size
        while size > last * WORTHWHILE:
            if self._passes(arm, size) <= budget - self.bench.images.forwards:
                return size
            size = int(size * 0.98)
        return 0

    def _passes(self, arm: Arm, size: int) -> int:
        """The number of forward passes of a draw."""
        return self.bench.images.passes(self.bench.pixels(arm), self.bench.rows(arm, size))

    def _sure(self, arms: Sequence[Arm]) -> bool:
        """Returns whether one of the arms is precise and has nearly all odds."""
        odds = {arm: self._odds(arm) for arm in arms if arm in self.known}
        best = max(odds, key=lambda arm: odds[arm], default=None)
        return best is not None and odds[best] >= SURE * sum(odds.values()) and self._precise(best)

    def _undecided(self, arm: Arm) -> bool:
        """Returns whether more samples may decide about a known arm."""
        more = not self._complete(arm) and not self.failed(arm)
        return more and verdict(self.known[arm], self.targets) == UNDECIDED

    def _complete(self, arm: Arm) -> bool:
        return self.sizes.get(arm, 0) >= len(self.bench.cell)

    def _precise(self, arm: Arm) -> bool:
        narrowest = NARROW if len(self.targets) > 1 else ALONE
        return arm in self.known and all(Z * found.error <= PRECISE * narrowest for found in self.known[arm])
