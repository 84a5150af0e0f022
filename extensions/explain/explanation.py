"""The result of a search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from testbed.extensions.explain.axis import Variant
from testbed.extensions.explain.sampling import SampledValue

GIVES, EXCLUDED, UNDECIDED = "gives it", "excluded", "undecided"
Z = 1.96  # for 95 % intervals
# For intervals that contain or exclude a given value: corrected for dozens of variants at several looks.
GIVEN, OUT = 0.95, 0.9995
# Maximum half-width of an interval that can give a value, absolute and relative to the gap.
NARROW, OF_GAP = 0.005, 0.03
ALONE, ANSWERS = 0.001, 4  # likewise if a single metric distinguishes values, or this many answers
APART = 1.96  # minimum distance in errors between an estimate that gives a published value and the stored value
_TINY = 1e-9
_NEAR, _NEAREST = 0.02, 0.001  # maximum and minimum distance of values that count as near the published one
OTHER_ARITHMETIC = 5e-5  # effect of other processors and library releases on a share of right answers
ENOUGH = "stored outputs already give the value (--thorough also tries these)"
CHANCE = 0.05  # maximum expected matches by chance for combinations to count as an explanation
CHANCE_OF_SINGLE = 0.5  # likewise for single variants, of which there are fewer


@dataclass(frozen=True)
class Target:
    """A published value to be explained.

    Attributes:
        metric: Its metric, such as ``top1``.
        value: The published value, a fraction.
        rounding: Half a unit of its last printed digit.
        stored: The value in this store.
        source: Display name of its source.
        samples: Its number of samples; 0 if unknown.
    """

    metric: str
    value: float
    rounding: float
    stored: float
    source: str = ""
    samples: int = 0


@dataclass(frozen=True)
class VariantResult:
    """The values of a variant, or of a combination of variants.

    Attributes:
        variants: One or more.
        estimates: An estimate for each target.
        verdict: `GIVES`, `EXCLUDED` or `UNDECIDED`.
    """

    variants: tuple[Variant, ...]
    estimates: tuple[SampledValue, ...]
    verdict: str

    @property
    def name(self) -> str:
        """The display names of the variants."""
        return " + ".join(map(str, self.variants))

    def distance(self, targets: Sequence[Target]) -> float:
        """The largest distance from the published values."""
        return max(abs(e.value - t.value) for e, t in zip(self.estimates, targets, strict=True))


@dataclass
class Explanation:
    """The protocols that give a published value, and those that do not.

    Attributes:
        model: The model.
        eval_setting: The eval setting.
        targets: The published values.
        samples: Number of samples of the evaluation.
        rows: The single variants, those that give it first.
        combinations: The combinations that give it or are undecided, the closest first.
        combinations_tried: Number of tried combinations.
        combinations_left: Number of combinations that require too many texts or images.
        enough: Number of forward passes that would decide most combinations, as without a given limit; 0 if that many
            were allowed.
        by_chance: Expected number of matches by chance: among single variants with images, or among the others, if one
            of these gives the value; else among the combinations.
        not_tried: Axis → reason why it has no variants here.
        idle: Variants without effect here.
        failed: (variant, reason) of those that could not be run.
        images_read: Number of images read and decoded.
        forwards: Number of images run through a network.
        texts: Number of embedded texts.
        asked: Model → number of messages sent: the model under test, and judges of its answers.
    """

    model: str
    eval_setting: str
    targets: tuple[Target, ...]
    samples: int
    rows: list[VariantResult] = field(default_factory=list)
    combinations: list[VariantResult] = field(default_factory=list)
    combinations_tried: int = 0
    combinations_left: int = 0
    enough: int = 0
    by_chance: float = 0.0
    not_tried: dict[str, str] = field(default_factory=dict)
    idle: list[Variant] = field(default_factory=list)
    failed: list[tuple[Variant, str]] = field(default_factory=list)
    images_read: int = 0
    forwards: int = 0
    texts: int = 0
    asked: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """The number of sent messages."""
        return sum(self.asked.values())

    @property
    def giving(self) -> list[VariantResult]:
        """The single variants that give the value; without any, the combinations that do."""
        return [row for row in self.rows if row.verdict == GIVES] or [
            combination for combination in self.combinations if combination.verdict == GIVES
        ]

    @property
    def agrees(self) -> bool:
        """True if the stored values are the published ones."""
        return all(abs(target.stored - target.value) <= allowed(target) for target in self.targets)

    @property
    def explained(self) -> bool:
        """True if something gives it that is unlikely by chance."""
        single = [row for row in self.rows if row.verdict == GIVES]
        return bool(self.giving) and self.by_chance < (CHANCE_OF_SINGLE if single else CHANCE)

    def sentence(self) -> str:
        """The finding in words."""
        if self.agrees:
            return "The stored value is the published one; there is nothing to explain."
        single = [row for row in self.rows if row.verdict == GIVES]
        if single and self.explained:
            return _listed(single, "gives", "give") + self._undecided(self.rows) + self._luck() + self._untried()
        doubt = self._undecided(self.rows)
        if single:
            return (
                f"Unexplained: {_listed(single, 'gives', 'give')[:-1]}, but so many variants come near it that chance"
                f" alone would give about {self.by_chance:.1f}; another published metric would decide.{doubt}"
            )
        gives = "is known to give" if doubt else "gives"
        tried = f"{len(self.rows)} single variants and {self.combinations_tried:,} combinations were tried"
        if self.giving and self.explained:
            return (
                f"No single variant {gives} it. {_listed(self.giving, 'gives', 'give')} {tried}.{self._luck()}"
                f"{self._untried()}"
            )
        if self.giving:
            return (
                f"Unexplained: no single variant {gives} it.{doubt} Some combinations do ({len(self.giving)}), but so"
                f" many were tried that chance alone would give about {self.by_chance:.1f}; another published metric"
                f" would decide. {tried}.{self._open()}"
            )
        if any(combination.verdict == UNDECIDED for combination in self.combinations):
            gives = "is known to give"
        return f"Unexplained: no variant {gives} it; {tried}.{doubt}{self._open()}"

    def _luck(self) -> str:
        return f" Chance alone would give about {self.by_chance:.2g} such matches." if self.by_chance >= 0.005 else ""

    def _untried(self) -> str:
        return " Preprocessing was not tried: --thorough tries it." if ENOUGH in self.not_tried.values() else ""

    def _open(self) -> str:
        undecided = sum(combination.verdict == UNDECIDED for combination in self.combinations)
        if not undecided or not self.enough:
            return ""
        return f" Combinations that are undecided: {undecided:,}; --samples {self.enough} would decide most."

    def _undecided(self, rows: Sequence[VariantResult]) -> str:
        open_ones = [row for row in rows if row.verdict == UNDECIDED]
        if not open_ones:
            return ""
        ended = any(row.verdict == GIVES and row.estimates[0].samples for row in rows)  # by one that was run on all
        why = "they were run no further" if ended else "more --samples would decide"
        return f" Undecided: {', '.join(result.name for result in open_ones[:3])}; {why}."


def _listed(rows: Sequence[VariantResult], one: str, several: str) -> str:
    names = [f"“{row.name}”" for row in rows[:4]]
    more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    if len(rows) == 1:
        return f"{names[0]} {one} the published value."
    return f"{', '.join(names)}{more} {several} the published value; the published values do not distinguish them."


def allowed(target: Target) -> float:
    """The tolerance between an exact value and the published one.

    Other arithmetic changes whole answers: with few samples, a single one exceeds its overall effect.
    """
    one = 1 / target.samples if target.samples else 0.0
    return target.rounding + (OTHER_ARITHMETIC if one <= OTHER_ARITHMETIC else _TINY)


def narrow(target: Target, alone: bool) -> float:
    """The maximum half-width of an interval that can give a value; ``alone`` is true for a single given value."""
    if alone:
        return max(ALONE, ANSWERS / target.samples if target.samples else 0.0)
    return max(NARROW, OF_GAP * abs(target.stored - target.value))


def simultaneous(targets: Sequence[Target], level: float = GIVEN) -> float:
    """The number of standard errors for a simultaneous interval over all targets (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - level) / 2 / len(targets))


def verdict(estimates: Sequence[SampledValue], targets: Sequence[Target]) -> str:
    """Decides from estimates whether they give the published values."""
    pairs = list(zip(estimates, targets, strict=True))
    if not _within(OUT, estimates, targets):
        return EXCLUDED
    drawn = [
        (found, target)
        for found, target in pairs
        if not found.exact and abs(target.stored - target.value) > allowed(target)
    ]
    vague = any(Z * found.error > narrow(target, len(targets) == 1) for found, target in drawn)
    apart = any(
        abs(found.value - target.stored) > APART * found.error for found, target in drawn
    )  # from the stored value
    return GIVES if not drawn or (apart and not vague and _within(GIVEN, estimates, targets)) else UNDECIDED


def _within(level: float, estimates: Sequence[SampledValue], targets: Sequence[Target]) -> bool:
    errors = simultaneous(targets, level)
    return all(
        abs(found.value - target.value) <= errors * found.error + allowed(target)
        for found, target in zip(estimates, targets, strict=True)
    )


def most_by_chance(count: int, targets: Sequence[Target]) -> float:
    """The expected number of exact values that match by chance if all lie in the published values' neighbourhood."""
    return count * math.prod(min(1.0, _resolution(target) / _NEAR) for target in targets)


def _resolution(target: Target) -> float:
    """The smallest distinguishable difference: shares of n samples are multiples of 1/n."""
    return max(allowed(target), 0.5 / target.samples if target.samples else 0.0)


def expected_by_chance(rows: Sequence[VariantResult], targets: Sequence[Target], small_effects: bool = False) -> float:
    """The expected number of evenly spread values that lie as near to the published ones as the best of them.

    Args:
        rows: All values.
        targets: The published values.
        small_effects: Whether most values are close to the stored ones, so that values as near to the published ones as
            these count; else those within `_NEAR`, unless they are undecided and cannot give it.
    """
    giving = [[estimate.error for estimate in row.estimates] for row in rows if row.verdict == GIVES]
    settled = [result for result in rows if small_effects or result.verdict != UNDECIDED]
    return min(
        sum(_chance(row, targets, errors, small_effects) for row in settled)
        for errors in giving or [[0.0] * len(targets)]
    )


def _chance(row: VariantResult, targets: Sequence[Target], errors: Sequence[float], small_effects: bool) -> float:
    """The probability that a value in the published ones' neighbourhood is as near to them as such errors allow."""
    chance = 1.0
    for found, target, error in zip(row.estimates, targets, errors, strict=True):
        near = _resolution(target) + simultaneous(targets) * error
        within = min(max(abs(target.stored - target.value), _NEAREST), _NEAR) if small_effects else _NEAR
        chance *= min(1.0, near / within) if abs(found.value - target.value) <= max(within, near) else 0.0
    return chance
