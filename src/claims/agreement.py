"""Comparison of measured values with published ones, and whether they agree.

A published value is compared with a measured one of the same weights, setting, metric and slice. The yardstick is the
standard error of the measured value: both are of the same samples, unless the claim says another number of samples or
the evaluation was limited to some of them; then the errors of both count.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Self

from testbed.claims.names import NO_MODEL, NO_SETTING, mapped_now, short_names, weights
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, FRACTION, OVERALL, Claim, ClaimSource, Result
from testbed.formatting import bare_value, percent
from testbed.registry import registry

if TYPE_CHECKING:
    from testbed.models.base.definition import ModelDefinition

AGREES, DIFFERS, NOT_COMPARED = "agrees", "differs", "not compared"
CONFIDENT = 1.96  # standard errors, up to which a difference may be chance with 95 % confidence
LAST = 10_000  # place among the sources
DEFINITION = "definition"  # the source of what models' definitions carry
IMAGE_SIZE = "image size"  # in a claim's protocol, pixels
STANDING = "standing"  # in a claim's protocol: claimed (by the authors), verified or disputed (by others)
CLAIMED, VERIFIED, DISPUTED = "claimed", "verified", "disputed"
TINY = 1e-12  # what fractions of the same number may differ by
_NAMED = (None, NO_MODEL, NO_SETTING)  # reasons of claims whose names are names of models and settings
# Parameters of transforms that say how large their images are, the last step first.
_SIDES = ("img_crop_size", "input_size", "crop", "size")


@dataclass(frozen=True, slots=True)
class ClaimComparison:
    """A measured value beside a published one.

    Attributes:
        model: Of the measured value, as are the next four fields.
        published: The published value; a fraction for rates, as is the measured one.
        source: Where it was published, for people: ``timm aa4b585, 224 px``.
        stderr: The standard error of the measured value.
        n: The number of its samples.
        limited: Whether it is of some of the set's samples only.
        points: Measured minus published; for rates in points of a percent.
        z: The difference in standard errors, beyond what the published number may be rounded by; None if there is no
            error to measure it by.
        verdict: `AGREES`, `DIFFERS` or `NOT_COMPARED`.
        why: Why it is not compared.
    """

    model: str
    eval_setting: str
    metric: str
    slice: str
    evaluation_id: int
    published: float
    source: str
    measured: float | None
    stderr: float | None
    unit: str
    n: int | None
    limited: bool
    points: float | None
    z: float | None
    verdict: str
    why: str = ""

    @property
    def cell(self) -> tuple[str, str]:
        """The model and the setting."""
        return self.model, self.eval_setting

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def compare(result: Result, claim: Claim, side: int | None = None, size: int | None = None) -> ClaimComparison:
    """A measured value beside a published one of the same weights, setting, metric and slice.

    Args:
        result: The measured value.
        claim: The published one.
        side: Of the images that the model was given, pixels; None if it is not known.
        size: The number of samples of the whole set; None if it is not known.
    """
    given = _number(claim.protocol.get(IMAGE_SIZE))
    error = standard_error(result)
    why, difference, z, verdict = "", None, None, NOT_COMPARED
    if given is not None and side is not None and given != side:
        why = f"at {given} px"
    elif result.value is None:
        why = "the measured value is not defined"
    else:
        difference = result.value - claim.value
        beyond = max(abs(difference) - rounding(claim) - TINY, 0.0)
        yardstick = _yardstick(result, claim, error, size)
        if yardstick is None and beyond:
            why = "the standard error is not known"
        else:
            z = None if beyond and not yardstick else math.copysign(beyond / (yardstick or 1), difference) + 0.0
            verdict = AGREES if z is not None and abs(z) <= CONFIDENT else DIFFERS
    return ClaimComparison(
        *(result.model, result.eval_setting, result.metric, result.slice, result.evaluation_id, claim.value),
        *(source_text(claim), result.value, error, result.unit, result.n, result.sample_limit is not None),
        *(None if difference is None else difference * (100 if result.unit == FRACTION else 1), z, verdict, why),
    )


def standard_error(result: Result) -> float | None:
    """The stored standard error of a value, else that of a share of its samples; None if neither is known."""
    if result.stderr is not None or result.unit != FRACTION:
        return result.stderr
    return _binomial(result.value, result.n)


def source_text(claim: Claim) -> str:
    """Describes in a few words where a value was published."""
    source = claim.source
    if source is None or source.name == DEFINITION:
        return claim.row
    words = [" ".join(filter(None, (source.name, source.revision[:7])))]
    words += [f"{claim.protocol[IMAGE_SIZE]} px"] if IMAGE_SIZE in claim.protocol else []
    words += [claim.protocol[STANDING]] if STANDING in claim.protocol else []
    return ", ".join(words)


def _yardstick(result: Result, claim: Claim, error: float | None, size: int | None) -> float | None:
    """The standard error of the difference; None if it is not known."""
    theirs = claim.n or (size if result.sample_limit is not None else result.n)
    if result.unit == FRACTION and not error:  # all right, or none: what the published value makes of as many samples
        error = _binomial(claim.value, result.n)
    if error is None or claim.unit != FRACTION or theirs in (None, result.n):
        return error
    return math.hypot(error, _binomial(claim.value, theirs) or 0.0)


def _binomial(value: float | None, n: int | None) -> float | None:
    return None if value is None or not n or not 0 <= value <= 1 else math.sqrt(value * (1 - value) / n)


def rounding(claim: Claim) -> float:
    """Half a unit of the last digit that was printed; 0 for numbers in definitions, whose digits were not."""
    if claim.source is not None and claim.source.name == DEFINITION:
        return 0.0
    try:
        printed = Decimal(claim.published)
        exponent = printed.as_tuple().exponent
    except InvalidOperation:
        return 0.0
    if not isinstance(exponent, int):
        return 0.0
    in_percent = claim.unit == FRACTION and float(printed) != claim.value
    return float(Decimal(5).scaleb(exponent - (3 if in_percent else 1)))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


# In words ---------------------------------------------------------------------------------------------------------


def in_words(found: ClaimComparison, about: bool = True) -> str:
    """A comparison as a line, which begins with the model, the setting and the metric if ``about`` is set."""
    what = f"{found.model} on {found.eval_setting}: " if about else ""
    what += "" if found.slice == OVERALL and found.metric == "top1" else f"{_metric(found)} "
    return f"{what}published {_value(found.published, found)} ({found.source}); {measured_in_words(found)}"


def in_lines(found: Iterable[ClaimComparison]) -> list[str]:
    """A line for each measured value: the first comparison, and how many more sources agree or differ."""
    values: dict[tuple[int, str, str], list[ClaimComparison]] = {}
    for each in found:
        values.setdefault((each.evaluation_id, each.metric, each.slice), []).append(each)
    lines = []
    for first, *others in values.values():
        more = "source" if len(others) == 1 else "sources"
        rest = f"; {len(others):,} more {more}: {verdicts(others)} (testbed show)" if others else ""
        lines.append(f"{in_words(first)}{rest}")
    return lines


def verdicts(found: Iterable[ClaimComparison]) -> str:
    """Such as ``18 differ, 1 agrees``."""
    counted = Counter(comparison.verdict for comparison in found)
    words = sorted(counted.items(), reverse=True)
    return ", ".join(f"{number:,} {word if number == 1 else word.removesuffix('s')}" for word, number in words)


def measured_in_words(found: ClaimComparison) -> str:
    """Describes the measured value and the verdict."""
    error = "" if found.stderr is None else f" ± {_value(found.stderr, found)}"
    samples = f" on {found.n:,} samples" if found.limited and found.n else ""
    return f"measured {_value(found.measured, found)}{error}{samples}: {_verdict(found)}"


def standings(claims: Iterable[Claim]) -> list[str]:
    """Lists what became of claims that were verified or disputed: a line for each model and metric."""
    groups: dict[tuple[str, str, str], list[Claim]] = {}
    for claim in claims:
        if STANDING in claim.protocol:
            groups.setdefault((claim.model, claim.metric, claim.source.name if claim.source else ""), []).append(claim)
    return [f"{model}: {_standing(several)}" for (model, *_), several in groups.items()]


def _standing(claims: Sequence[Claim]) -> str:
    first = next((claim.value for claim in claims if claim.protocol[STANDING] == CLAIMED), None)
    told = []
    for each in claims:
        apart = (
            ""
            if first is None or each.value == first
            else f" ({bare_value(each.value - first, FRACTION, signed=True)})"
        )
        told.append(f"{each.protocol[STANDING]} {percent(each.value)}{apart}")
    return ", ".join(told)


def _verdict(found: ClaimComparison) -> str:
    if found.verdict == NOT_COMPARED:
        return f"{found.why}, not compared"
    if found.verdict == AGREES or found.points is None:
        return found.verdict
    size = abs(found.points)
    told = f"{size:.1f}" if found.unit == FRACTION and size >= 1 else f"{size:.2g}"
    z = "" if found.z is None else f" (z = {abs(found.z):.{0 if abs(found.z) >= 10 else 1}f})"
    unit = " points" if found.unit == FRACTION else f" {found.unit}" if found.unit else ""
    return f"differs by {'−' if found.points < 0 else '+'}{told}{unit}{z}"


def _metric(found: ClaimComparison) -> str:
    return found.metric if found.slice == OVERALL else f"{found.metric} ({found.slice})"


def _value(value: float | None, found: ClaimComparison) -> str:
    return "nothing" if value is None else bare_value(value, found.unit)


# Lookup -----------------------------------------------------------------------------------------------------------


class PublishedValues:
    """Published values about models on settings, looked up once.

    Args:
        models: Names of the models; claims about the same weights under other names count.
        eval_settings: Names of the settings.
    """

    def __init__(self, store: Store, models: Iterable[str], eval_settings: Collection[str]) -> None:
        self.store = store
        self._claims: dict[tuple[str, str], list[Claim]] = {}
        if not (known := store.claims.models(eval_settings)):
            return
        wanted, short = {weights(model) for model in models}, short_names(store, known)
        same = [each for each in known if weights(short.get(each, each)) in wanted]
        for claim in mapped_now(store, store.claims.find(same, eval_settings)) if same else ():
            self._claims.setdefault((weights(claim.model), claim.eval_setting), []).append(claim)

    @classmethod
    def of_measured(cls, store: Store) -> Self:
        """Looks up the values for everything that was measured here."""
        every = store.evaluations.find() if store.claims.order() else []  # a million evaluations take a minute
        own = [evaluation for evaluation in every if evaluation.origin not in ELSEWHERE]
        return cls(store, {evaluation.model for evaluation in own}, {evaluation.eval_setting for evaluation in own})

    @classmethod
    def of_run(
        cls, store: Store, definitions: Mapping[str, ModelDefinition | None], eval_settings: Collection[str]
    ) -> Self:
        """Looks up the values for a run's models; first stores those in their definitions that are not stored."""
        found = cls(store, definitions, eval_settings)
        new = [
            (source, claims)
            for model in definitions.values()
            if model is not None
            for source, claims in carried(model, eval_settings)
            if claims != found._carried(source)
        ]
        for source, claims in new:
            store.claims.add(source, claims)
        return cls(store, definitions, eval_settings) if new else found

    def _carried(self, source: ClaimSource) -> list[Claim]:
        """The stored claims of a definition."""
        claims = (each for several in self._claims.values() for each in several)
        key = source.name, source.path
        return [replace(claim, source=None) for claim in claims if (of := claim.source) and (of.name, of.path) == key]

    def __bool__(self) -> bool:
        return bool(self._claims)

    def about(self, model: str, eval_setting: str) -> list[Claim]:
        """Returns the claims about a model's weights on a setting."""
        return self._claims.get((weights(model), eval_setting), [])

    def compare(self, results: Iterable[Result]) -> list[ClaimComparison]:
        """Returns the comparisons of `beside`, without repetitions within a source."""
        return list(dict.fromkeys(comparison for _, comparison in self.beside(results)))

    def beside(self, results: Iterable[Result]) -> list[tuple[Claim, ClaimComparison]]:
        """The measured values among some results, each with every claim about it.

        Values of untrained models, and imported ones, are not compared.
        """
        pairs = [
            (result, claim)
            for result in (results if self else ())
            if result.origin not in ELSEWHERE and not result.random_weights
            for claim in self.about(result.model, result.eval_setting)
            if claim.why in _NAMED
            and (claim.metric, claim.slice, claim.unit) == (result.metric, result.slice, result.unit)
        ]
        sized = {result.evaluation_id for result, claim in pairs if IMAGE_SIZE in claim.protocol}
        sides = sides_of(self.store, sized)
        return [
            (claim, compare(result, claim, sides.get(result.evaluation_id), whole_size(result)))
            for result, claim in pairs
        ]


def carried(model: ModelDefinition, eval_settings: Collection[str]) -> Iterable[tuple[ClaimSource, list[Claim]]]:
    """Returns the published values in a model's definition as claims, by setting."""
    for setting in dict.fromkeys(each.eval_setting for each in model.published if each.eval_setting in eval_settings):
        claims = [
            Claim(model.name, setting, each.metric, each.value, FRACTION, repr(each.value), each.source, each.metric)
            for each in model.published
            if each.eval_setting == setting
        ]
        yield (
            ClaimSource(DEFINITION, f"{model.name} on {setting}", "", "a model's definition", rows=len(claims)),
            claims,
        )


def differing(found: Sequence[ClaimComparison]) -> list[ClaimComparison]:
    """Returns the comparisons that differ, the largest difference in standard errors first."""
    several = [comparison for comparison in found if comparison.verdict == DIFFERS]
    return sorted(several, key=lambda each: (-abs(math.inf if each.z is None else each.z), each.cell, each.metric))


def sides_of(store: Store, evaluation_ids: Collection[int]) -> dict[int, int]:
    """The width of the images that the models of evaluations were given, as far as their transforms say it."""
    described = store.evaluations.models_of(evaluation_ids) if evaluation_ids else {}
    sides = {key: _side((model.get("spec") or {}).get("transform")) for key, model in described.items()}
    return {key: side for key, side in sides.items() if side is not None}


def _side(transform: Any) -> int | None:
    parameters = transform.get("!spec") if isinstance(transform, dict) else None
    if not isinstance(parameters, dict):
        return None
    side = next((parameters[each] for each in _SIDES if parameters.get(each) is not None), None)
    side = side[-1] if isinstance(side, list) and side else side
    return side if isinstance(side, int) else None


def whole_size(result: Result) -> int | None:
    """The number of samples of the whole set, if the evaluation was limited and the setting declares it."""
    if result.sample_limit is None:
        return None
    known = registry.find_eval_setting(result.eval_setting)
    return None if known is None else known.size
