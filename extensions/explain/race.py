"""Variants that need images run against each other: which of them are looked at next, and with how many samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from testbed.extensions.explain.axis import Stage
from testbed.extensions.explain.bench import Arm, Bench
from testbed.extensions.explain.explanation import NARROW, UNDECIDED, Target, Z, allowed, verdict
from testbed.extensions.explain.pixels import Pixels
from testbed.extensions.explain.sampling import Estimate
from testbed.extensions.explain.table import Array

DOUBTFUL = 0.01  # odds below which an arm is not looked at again
ROUGH = 50  # samples for each degree of freedom: the errors of small draws are rough, too
FIRST_LOOK = 32  # samples
GROWTH, WORTHWHILE = 1.5, 1.1  # of the draw from look to look, and at least
PRECISE = 0.5  # of the narrowest interval that is asked for: the one likely arm is not looked at again
LIKELY = 0.1  # of the odds of the likeliest arm, at least
AT_ONCE = 40  # arms that are looked at in one turn, besides those that are new
SURE = 0.95  # of all odds: one arm has so many that the others wait


class Race:
    """The arms for which images are run, and what is known of them.

    Those that may well give the published values by what is known are looked at first, then those of which least is
    known. Those that hardly do are not looked at again.

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
        self.known: dict[Arm, tuple[Estimate, ...]] = {}
        self.sizes: dict[Arm, int] = {}

    def run(self, arms: Iterable[Arm], budget: int, until_sure: bool = False) -> None:
        """Draws more and more samples for arms that may give the values.

        Args:
            arms: The arms.
            budget: How many forward passes may be made, those counted that were made before.
            until_sure: Whether it suffices to know the one that gives the values; else others are excluded, too.
        """
        alive = [arm for arm in arms if not self.failed(arm)]
        while looks := {} if until_sure and self._sure(alive) else self._next_looks(alive):
            ran = False
            for size, group in looks.items():
                chosen = self._affordable(group, size, budget)
                self._draw(chosen, size)
                ran = ran or bool(chosen)
            alive = [arm for arm in alive if not self.failed(arm)]
            if not ran:
                self._spend(itertools.chain(*looks.values()), budget)
                return
        self.decide(self.likely(alive)[:1], budget)

    def decide(self, arms: Iterable[Arm], budget: int) -> None:
        """Draws more and more samples for arms that are known until they give the values or are excluded.

        Args:
            arms: The arms.
            budget: See `run`.
        """
        for arm in arms:
            while self._undecided(arm):
                size = min(int(self.sizes[arm] * GROWTH), len(self.bench.cell))
                if not self._affordable([arm], size, budget):
                    break
                self._draw([arm], size)

    def _draw(self, arms: Sequence[Arm], size: int) -> None:
        """Runs and estimates arms; each image is read once for those for which the same samples count."""
        together: dict[bytes, list[Arm]] = {}
        for arm in arms:
            together.setdefault(self.bench.rows(arm, size).tobytes(), []).append(arm)
        for group in together.values():
            protocols = list(dict.fromkeys(self.bench.pixels(arm) for arm in group))
            self.bench.images.run(protocols, self.bench.rows(group[0], size))
        for arm in arms:
            if not self.failed(arm):
                self.look(arm, size)

    def _spend(self, arms: Iterable[Arm], budget: int) -> None:
        """What is left, on the likeliest arm."""
        for arm in self.likely([each for each in arms if each in self.known])[:1]:
            size = min(int(self.sizes[arm] * GROWTH), len(self.bench.cell))
            while size > self.sizes[arm] * WORTHWHILE and not self._affordable([arm], size, budget):
                size = int(size * 0.99)
            if size > self.sizes[arm] * WORTHWHILE:
                self._draw([arm], size)

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
            for size in sorted((each for each in sizes[pixels] if each > self.sizes[arm]), reverse=True):
                if not self.bench.images.missing(pixels, self.bench.rows(arm, size)):
                    self.look(arm, size)
                    break

    def estimated(self, arm: Arm, size: int, outputs: Array | None = None) -> tuple[Estimate, ...]:
        """The values of an arm, from the stored outputs or from those of one of its variants: whichever tells more.

        Args:
            arm: The arm.
            size: Of the draw.
            outputs: See `Bench.estimated`.
        """
        found = [self.bench.estimated(arm, size, outputs)]
        if all(each.stage == Stage.IMAGES for each in arm):
            for half in ((each,) for each in arm if len(arm) > 1):
                if self.sizes.get(half, 0) >= size:
                    base = half, self.sizes[half], self.known[half]
                    found.append(self.bench.from_another(arm, size, *base, outputs))
        return min(found, key=lambda estimates: max(each.error for each in estimates))

    def failed(self, arm: Arm) -> str:
        """Why it could not be run; empty if it could."""
        return self.bench.images.failed.get(self.bench.pixels(arm), "")

    def alive(self, arms: Iterable[Arm]) -> list[Arm]:
        """Those that may give the values by what is known, or of which nothing is known."""
        return [arm for arm in arms if arm not in self.known or self._odds(arm) >= DOUBTFUL]

    def likely(self, arms: Sequence[Arm]) -> list[Arm]:
        """Those that may give the values by what is known, the likeliest first."""
        odds = {arm: self._odds(arm) for arm in arms}
        most = max(odds.values(), default=0.0)
        return sorted((arm for arm in arms if odds[arm] >= LIKELY * most), key=lambda arm: -odds[arm])

    def _odds(self, arm: Arm) -> float:
        """How much likelier what is known is if it gives the values than if it gives others within the gap."""
        odds = 1.0
        for found, target in zip(self.known[arm], self.targets, strict=True):
            error = max(found.error, allowed(target) / Z)
            wide = math.hypot(error, target.stored - target.value)
            apart, freedom = abs(found.value - target.value) / error, 1 + found.samples / ROUGH
            odds *= wide / error * (1 + apart**2 / freedom) ** (-(freedom + 1) / 2)  # Student's distribution
        return odds

    def _next_looks(self, alive: Sequence[Arm]) -> dict[int, list[Arm]]:
        """The next size of the draw of those that are looked at next; empty if more images change nothing."""
        looks: dict[int, list[Arm]] = {}
        alive = self.alive(alive)
        for arm in self._contenders(alive) or self._vague(alive):
            size = self.sizes.get(arm, 0)
            first = FIRST_LOOK * len(self.bench.cell) // max(1, self.bench.count(arm))
            larger = max(int(size * GROWTH), first)
            looks.setdefault(min(larger, len(self.bench.cell)), []).append(arm)
        return looks

    def _contenders(self, alive: Sequence[Arm]) -> list[Arm]:
        new = [arm for arm in alive if arm not in self.known]
        if new:
            return new
        if self._sure(alive):
            return []
        return [arm for arm in self.likely(alive) if not self._complete(arm)][:AT_ONCE]

    def _sure(self, arms: Sequence[Arm]) -> bool:
        """Whether one of the arms, all of them known, is known well and has nearly all odds."""
        if not arms or any(arm not in self.known for arm in arms):
            return False
        odds = {arm: self._odds(arm) for arm in arms}
        best = max(odds, key=lambda arm: odds[arm])
        return odds[best] >= SURE * sum(odds.values()) and self._precise(best)

    def _vague(self, alive: Sequence[Arm]) -> list[Arm]:
        """Those with large errors."""
        widest = max((self._error(arm) for arm in alive), default=0.0)
        gap = max(abs(each.stored - each.value) for each in self.targets) / Z
        if len(alive) == 1 and self._precise(alive[0]):
            return []
        return [arm for arm in alive if not self._complete(arm) and self._error(arm) >= min(widest, gap) / 2]

    def _affordable(self, arms: Sequence[Arm], size: int, budget: int) -> list[Arm]:
        """The arms that are run: as many as the budget allows, those with the largest errors first."""
        left = budget - self.bench.images.forwards
        counted: dict[Pixels, set[int]] = {}
        chosen = []
        for arm in sorted(arms, key=self._error, reverse=True):
            pixels = self.bench.pixels(arm)
            new = set(self.bench.images.missing(pixels, self.bench.rows(arm, size))) - counted.get(pixels, set())
            if len(new) <= left:
                left -= len(new)
                counted.setdefault(pixels, set()).update(new)
                chosen.append(arm)
        return chosen

    def _undecided(self, arm: Arm) -> bool:
        """Whether more samples may decide about an arm that is known."""
        more = not self._complete(arm) and not self.failed(arm)
        return more and verdict(self.known[arm], self.targets) == UNDECIDED

    def _complete(self, arm: Arm) -> bool:
        return self.sizes.get(arm, 0) >= len(self.bench.cell)

    def _precise(self, arm: Arm) -> bool:
        return arm in self.known and all(Z * found.error <= PRECISE * NARROW for found in self.known[arm])

    def _error(self, arm: Arm) -> float:
        return max((each.error for each in self.known.get(arm, ())), default=math.inf)
