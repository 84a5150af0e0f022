"""What a search found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

from testbed.extensions.explain.axis import Variant
from testbed.extensions.explain.sampling import Estimate

GIVES, EXCLUDED, UNDECIDED = "gives it", "excluded", "undecided"
Z = 1.96  # of intervals: 95 %
# Of the interval that holds a given value, and of that which excludes one: for dozens of variants at several looks.
GIVEN, OUT = 0.95, 0.9995
NARROW, OF_GAP = 0.005, 0.03  # half the width of an interval that can give a value: so much, or of the gap, at most
ALONE, ANSWERS = 0.001, 4  # likewise if one metric alone tells values apart, or so many answers
APART = 1.96  # errors between an estimate that gives a published value and the stored value, at least
_TINY = 1e-9
_NEAR, _NEAREST = 0.02, 0.001  # within which values count as near the published one, at most and at least
OTHER_ARITHMETIC = 5e-5  # what other processors and library releases change of a share of right answers
ENOUGH = "what is stored gives the value already (--thorough tries these too)"
CHANCE = 0.05  # the most matches by chance at which combinations count as an explanation
CHANCE_OF_SINGLE = 0.5  # likewise a single variant, of which there are fewer


@dataclass(frozen=True)
class Target:
    """A published value that is to be explained.

    Attributes:
        metric: Such as ``top1``.
        value: A fraction.
        rounding: Half a unit of its last printed digit.
        stored: The value measured here.
        source: Who published it, for people.
        samples: How many samples it is of; 0 if that is not known.
    """

    metric: str
    value: float
    rounding: float
    stored: float
    source: str = ""
    samples: int = 0


@dataclass(frozen=True)
class Row:
    """What a variant, or a combination of variants, gives.

    Attributes:
        variants: One or more.
        estimates: For each target.
        verdict: `GIVES`, `EXCLUDED` or `UNDECIDED`.
    """

    variants: tuple[Variant, ...]
    estimates: tuple[Estimate, ...]
    verdict: str

    @property
    def name(self) -> str:
        """The variants, for people."""
        return " + ".join(map(str, self.variants))

    def distance(self, targets: Sequence[Target]) -> float:
        """How far it is from the published values, at most."""
        return max(abs(e.value - t.value) for e, t in zip(self.estimates, targets, strict=True))


@dataclass
class Explanation:
    """Which protocols give a published value, and which do not.

    Attributes:
        model: The model.
        eval_setting: The eval setting.
        targets: The published values.
        samples: How many samples the evaluation has.
        rows: The single variants, those that give it first.
        combinations: The combinations that give it or are undecided, the closest first.
        combinations_tried: How many were tried.
        combinations_left: How many would need too many texts to be embedded, or more images than may be run.
        enough: Forward passes that would decide most combinations, as many as if no number had been given. 0 if as many
            were allowed.
        by_chance: How many of those that were tried one would expect to give the values by chance: of the single
            variants for which images were run, or of the others, where one of these gives it; else of the combinations.
        not_tried: Axis → why it has no variants here.
        idle: The variants that change nothing here.
        failed: (variant, why) of those that could not be run.
        images_read: Images that were read and decoded.
        forwards: Images that went through a network.
        texts: Texts that were embedded.
        asked: Model → how many messages it got: the model under test, and judges of its answers.
    """

    model: str
    eval_setting: str
    targets: tuple[Target, ...]
    samples: int
    rows: list[Row] = field(default_factory=list)
    combinations: list[Row] = field(default_factory=list)
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
        """How many messages were sent."""
        return sum(self.asked.values())

    @property
    def giving(self) -> list[Row]:
        """The single variants that give it; where there are none, the combinations that do."""
        return [each for each in self.rows if each.verdict == GIVES] or [
            each for each in self.combinations if each.verdict == GIVES
        ]

    @property
    def agrees(self) -> bool:
        """Whether the stored values are the published ones."""
        return all(abs(each.stored - each.value) <= allowed(each) for each in self.targets)

    @property
    def explained(self) -> bool:
        """Whether something gives it that chance would not."""
        single = [each for each in self.rows if each.verdict == GIVES]
        return bool(self.giving) and self.by_chance < (CHANCE_OF_SINGLE if single else CHANCE)

    def sentence(self) -> str:
        """The finding in words."""
        if self.agrees:
            return "The stored value is the published one; there is nothing to explain."
        single = [each for each in self.rows if each.verdict == GIVES]
        if single and self.explained:
            return _listed(single, "gives", "give") + self._undecided(self.rows) + self._luck() + self._untried()
        doubt = self._undecided(self.rows)
        if single:
            return (
                f"Unexplained: {_listed(single, 'gives', 'give')[:-1]}, but so many variants come near it that chance"
                f" alone would give about {self.by_chance:.1f}; another published metric would decide.{doubt}"
            )
        tried = f"{len(self.rows)} single variants and {self.combinations_tried:,} combinations were tried"
        if self.giving and self.explained:
            return (
                f"No single variant gives it. {_listed(self.giving, 'gives', 'give')} {tried}.{self._luck()}"
                f"{self._untried()}"
            )
        if self.giving:
            return (
                f"Unexplained: no single variant gives it.{doubt} Some combinations do ({len(self.giving)}), but so"
                f" many were tried that chance alone would give about {self.by_chance:.1f}; another published metric"
                f" would decide. {tried}.{self._open()}"
            )
        return f"Unexplained: nothing gives it; {tried}.{doubt}{self._open()}"

    def _luck(self) -> str:
        return f" Chance alone would give about {self.by_chance:.2g} such matches." if self.by_chance >= 0.005 else ""

    def _untried(self) -> str:
        return " Preprocessing was not tried: --thorough tries it." if ENOUGH in self.not_tried.values() else ""

    def _open(self) -> str:
        undecided = sum(each.verdict == UNDECIDED for each in self.combinations)
        if not undecided or not self.enough:
            return ""
        return f" Combinations that are undecided: {undecided:,}; --samples {self.enough} would decide most."

    def _undecided(self, rows: Sequence[Row]) -> str:
        open_ones = [each for each in rows if each.verdict == UNDECIDED]
        if not open_ones:
            return ""
        ended = any(each.verdict == GIVES and each.estimates[0].samples for each in rows)  # by one that was run on all
        why = "they were run no further" if ended else "more --samples would decide"
        return f" Undecided: {', '.join(each.name for each in open_ones[:3])}; {why}."


def _listed(rows: Sequence[Row], one: str, several: str) -> str:
    names = [f"“{each.name}”" for each in rows[:4]]
    more = f" and {len(rows) - 4} more" if len(rows) > 4 else ""
    if len(rows) == 1:
        return f"{names[0]} {one} the published value."
    return f"{', '.join(names)}{more} {several} the published value; what was published does not tell them apart."


def allowed(target: Target) -> float:
    """How far an exact value may be from the published one.

    Other arithmetic changes whole answers: among few samples, one of them is more than it changes at all.
    """
    one = 1 / target.samples if target.samples else 0.0
    return target.rounding + (OTHER_ARITHMETIC if one <= OTHER_ARITHMETIC else _TINY)


def narrow(target: Target, alone: bool) -> float:
    """Half the width of an interval that can give a value, at most; ``alone`` says whether no other value is given."""
    if alone:
        return max(ALONE, ANSWERS / target.samples if target.samples else 0.0)
    return max(NARROW, OF_GAP * abs(target.stored - target.value))


def simultaneous(targets: Sequence[Target], level: float = GIVEN) -> float:
    """The number of errors within which the estimates of all targets are in so many cases (Bonferroni)."""
    return NormalDist().inv_cdf(1 - (1 - level) / 2 / len(targets))


def verdict(estimates: Sequence[Estimate], targets: Sequence[Target]) -> str:
    """What estimates say about published values."""
    pairs = list(zip(estimates, targets, strict=True))
    if not _within(OUT, estimates, targets):
        return EXCLUDED
    drawn = [
        (found, each) for found, each in pairs if not found.exact and abs(each.stored - each.value) > allowed(each)
    ]
    vague = any(Z * found.error > narrow(each, len(targets) == 1) for found, each in drawn)
    apart = any(abs(found.value - each.stored) > APART * found.error for found, each in drawn)  # from what is stored
    return GIVES if not drawn or (apart and not vague and _within(GIVEN, estimates, targets)) else UNDECIDED


def _within(level: float, estimates: Sequence[Estimate], targets: Sequence[Target]) -> bool:
    errors = simultaneous(targets, level)
    return all(
        abs(found.value - each.value) <= errors * found.error + allowed(each)
        for found, each in zip(estimates, targets, strict=True)
    )


def most_by_chance(count: int, targets: Sequence[Target]) -> float:
    """How many of some exact values would give the published ones by chance if all lay in their neighbourhood."""
    return count * math.prod(min(1.0, _resolution(each) / _NEAR) for each in targets)


def _resolution(target: Target) -> float:
    """How near two values are that cannot be told apart: shares of n samples are multiples of 1/n."""
    return max(allowed(target), 0.5 / target.samples if target.samples else 0.0)


def expected_by_chance(rows: Sequence[Row], targets: Sequence[Target], small_effects: bool = False) -> float:
    """How many values would lie as near the published ones as the best of them if they were spread evenly.

    Args:
        rows: All values.
        targets: The published values.
        small_effects: Whether most values are close to the stored ones, so that those count that are as near to the
            published ones as these are; else those within `_NEAR`, unless they are undecided and could not give it.
    """
    giving = [[each.error for each in row.estimates] for row in rows if row.verdict == GIVES]
    settled = [each for each in rows if small_effects or each.verdict != UNDECIDED]
    return min(
        sum(_chance(row, targets, errors, small_effects) for row in settled)
        for errors in giving or [[0.0] * len(targets)]
    )


def _chance(row: Row, targets: Sequence[Target], errors: Sequence[float], small_effects: bool) -> float:
    """How likely a value in the neighbourhood of the published ones is as near to them as such errors allow."""
    chance = 1.0
    for found, target, error in zip(row.estimates, targets, errors, strict=True):
        near = _resolution(target) + simultaneous(targets) * error
        within = min(max(abs(target.stored - target.value), _NEAREST), _NEAR) if small_effects else _NEAR
        chance *= min(1.0, near / within) if abs(found.value - target.value) <= max(within, near) else 0.0
    return chance
