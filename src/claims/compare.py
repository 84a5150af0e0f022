"""Claims side by side: with each other, and by source."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from itertools import combinations, product
from typing import NamedTuple

from testbed.claims.agreement import ClaimComparison, PublishedValues
from testbed.claims.names import PREFIXES, eval_setting, names_of, weights
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, FRACTION, OVERALL, Claim, ClaimSource, Result


@dataclass(frozen=True)
class ClaimPair:
    """Two values of the same weights on the same setting by the same metric, from different sources.

    Attributes:
        first: From the source whose name comes first.
        second: From the other one.
        weights: What stands for the model's weights.
    """

    first: Claim
    second: Claim
    weights: str

    @property
    def points(self) -> Decimal:
        """The first value minus the second, in points of a percent, as the files print them."""
        return 100 * (Decimal(repr(self.first.value)) - Decimal(repr(self.second.value)))


@dataclass
class Disagreement:
    """All pairs of two sources, the largest difference first."""

    first: str
    second: str
    pairs: list[ClaimPair] = field(default_factory=list)

    @property
    def models(self) -> int:
        """Returns the number of weights they have in common."""
        return len({pair.weights for pair in self.pairs})

    @property
    def settings(self) -> int:
        """Returns the number of eval settings they have in common, by metric and slice."""
        return len({_on(pair.first) for pair in self.pairs})

    def beyond(self, points: Decimal) -> list[ClaimPair]:
        """The pairs that differ by more than that."""
        return [pair for pair in self.pairs if abs(pair.points) > points]

    def summary(self, by: float) -> str:
        """Counts the pairs, and those that differ."""
        models, settings, pairs = self.models, self.settings, len(self.pairs)
        sign = " ×" if models * settings == pairs else " on"
        one, five = (len(self.beyond(Decimal(each))) for each in (1, 5))
        further = "" if by in (1, 5) else f", {len(self.beyond(Decimal(repr(by)))):,} by more than {by:g}"
        return (
            f"{_count(pairs, 'pair')} of values ({_count(models, 'model')}{sign} {_count(settings, 'set')})"
            f" from {self.first} and {self.second};"
            f" {one:,} differ by more than 1 point, {five:,} by more than 5{further}"
        )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def disagreements(claims: Iterable[Claim]) -> list[Disagreement]:
    """The pairs of every two sources that have any; the two with the most pairs first.

    Claims about models or settings that testbed does not have are left out, and values that a source repeats count
    once. Where both sources have the same name for the weights, its values are the pair: other names of these weights
    may say another activation.
    """
    groups: dict[tuple[str, ...], dict[str, dict[float, Claim]]] = defaultdict(lambda: defaultdict(dict))
    for claim in claims:
        if claim.why is None and claim.unit == FRACTION and claim.source is not None:
            key = weights(claim.model), *_on(claim)
            groups[key][claim.source.name].setdefault(claim.value, claim)
    found: dict[tuple[str, str], Disagreement] = {}
    for (model, *_), of_sources in groups.items():
        for one, other in combinations(sorted(of_sources), 2):
            told = found.setdefault((one, other), Disagreement(one, other))
            values = list(product(of_sources[one].values(), of_sources[other].values()))
            named_alike = [(first, second) for first, second in values if first.model == second.model]
            told.pairs += [ClaimPair(first, second, model) for first, second in named_alike or values]
    for told in found.values():
        told.pairs.sort(key=lambda claim_pair: (-abs(claim_pair.points), claim_pair.weights, _on(claim_pair.first)))
    return sorted(found.values(), key=lambda each: (-len(each.pairs), each.first, each.second))


def _on(claim: Claim) -> tuple[str, str, str]:
    return claim.eval_setting, claim.metric, claim.slice


@dataclass
class Coverage:
    """The stored claims of a source.

    Attributes:
        unmapped: Why → the names of the models or settings that are meant, with how many claims are about each.
        left_out: Column → how many values are not claims.
    """

    name: str
    files: int = 0
    rows: int = 0
    claims: int = 0
    unmapped: dict[str, Counter[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def values(self) -> int:
        """All values in the files."""
        return self.claims + self.left_out.total()

    @property
    def mapped(self) -> int:
        """The claims whose model and setting are testbed's."""
        return self.claims - sum(each.total() for each in self.unmapped.values())


def coverage(sources: Iterable[ClaimSource], claims: Iterable[Claim]) -> list[Coverage]:
    """Returns the stored claims by source."""
    found: dict[str, Coverage] = {}
    for source in sources:
        told = found.setdefault(source.name, Coverage(source.name))
        told.files += 1
        told.rows += source.rows
        told.left_out.update(source.left_out)
    for claim in claims:
        assert claim.source is not None
        told = found[claim.source.name]
        told.claims += 1
        if claim.why is not None:
            about = claim.model if "model" in claim.why else claim.eval_setting
            told.unmapped.setdefault(claim.why, Counter())[about] += 1
    return list(found.values())


class PublishedCell(NamedTuple):
    """The claims and measurements for a model's weights on a setting.

    Attributes:
        claims: What is published.
        measured: What was measured here of all samples, and of the slices that claims are about.
        compared: The pairs of these that can be compared.
    """

    claims: list[Claim]
    measured: list[Result]
    compared: list[tuple[Claim, ClaimComparison]]


def cell(store: Store, model: str, setting: str) -> PublishedCell:
    """The claims about a model's weights on a setting, and what was measured here."""
    setting, _ = eval_setting(setting)
    published = PublishedValues(store, [model], [setting])
    claims = published.about(model, setting)
    known = [model, *names_of(model), *(claim.model for claim in claims)]
    names = dict.fromkeys([*known, *(prefix + each for each in known for prefix in PREFIXES)])
    measured = store.results.find(list(names), [setting])
    slices = {OVERALL, *(claim.slice for claim in claims)}
    own = [result for result in measured if result.origin not in ELSEWHERE and result.slice in slices]
    return PublishedCell(claims, own, published.beside(own))


def about(claims: Sequence[Claim], models: Sequence[str], settings: Sequence[str]) -> list[Claim]:
    """The claims about some models and settings, which are names or patterns; all for none.

    A model's name stands for all names of its weights.
    """
    same = {weights(model) for model in models} | {
        weights(claim.model) for claim in claims if _fits(claim.model, models)
    }
    exact = {eval_setting(setting)[0] for setting in settings}
    return [
        claim
        for claim in claims
        if (not models or weights(claim.model) in same)
        and (not settings or claim.eval_setting in exact or _fits(claim.eval_setting, settings))
    ]


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
