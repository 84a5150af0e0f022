"""A gate: decides whether a candidate loses more than a policy accepts, relative to a baseline on the same samples.

There are three verdicts for each setting: the candidate **holds** the margin (shown), **loses** more (shown),
or neither is shown and it stays **open**. The gate passes if all required margins hold: each of these claims is
wrong with probability α, and so is all of them together (an intersection-union test: Berger 1982). It fails if a larger
loss is shown for one of them, with p-values adjusted by Holm (1979) over the tier, so that a good candidate
fails with probability at most α.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from testbed.db.store import Store
from testbed.entities import FRACTION
from testbed.errors import DataError, TestbedError
from testbed.extensions.gate.policy import MUST, Policy, Rule
from testbed.metrics.inference.noninferiority import Change, change
from testbed.metrics.inference.paired import holm
from testbed.stored_results.main_scores import larger_is_better, main_score, score_spec
from testbed.stored_results.side_by_side import (
    SampleTable,
    Tell,
    clusters_in,
    evaluation_of,
    matching_settings,
    side_by_side,
)
from testbed.stored_results.slices import GROUP, labels_by

HOLDS, LOSES, OPEN, MISSING = "holds", "loses", "open", "missing"
PASSES, FAILS = "passes", "fails"


@dataclass(frozen=True)
class RuleVerdict:
    """A rule on a setting, or on a group of its samples.

    Attributes:
        group: Group of samples; None for all.
        points: Whether the margin is in points, for scores in percent.
        change: None if something is missing.
        p_loses: The adjusted p-value of ``change``.
        why: Reason if something is missing.
    """

    rule: Rule
    eval_setting: str
    verdict: str
    group: str | None = None
    score: str = ""
    points: bool = True
    change: Change | None = None
    p_loses: float | None = None
    why: str = ""

    @property
    def cannot_fail(self) -> bool:
        """True if even the largest possible loss would not be shown."""
        return self.change is not None and self.change.detectable is None


_OPTION = re.compile(r"--(score|by|better)\b( higher| lower)?")  # a rule has keys of the same names
_Case = tuple[RuleVerdict, Callable[..., Change] | None]  # a row without its verdict, and the comparison of the models


@dataclass(frozen=True)
class Decision:
    """The decision of a gate.

    Attributes:
        verdict: `PASSES`, `FAILS` or `OPEN`.
        rows: Each rule on each setting and group.
        parameters: Numbers of parameters of the candidate and of the baseline, None if unknown.
        cost: Verdict on the number of parameters; None if the policy has no limit.
    """

    candidate: str
    baseline: str
    policy: Policy
    verdict: str
    rows: tuple[RuleVerdict, ...]
    parameters: tuple[int | None, int | None]
    cost: str | None


def decide(store: Store, policy: Policy, candidate: str, baseline: str, tell: Tell = lambda note: None) -> Decision:
    """Judges a candidate.

    Args:
        store: The results store.
        policy: The policy.
        candidate: The new model.
        baseline: The current model.
        tell: Called with notes on what was left out.

    Raises:
        DataError: If both are the same model.
        StoreError: If one of them is not in the store.
    """
    if candidate == baseline:
        raise DataError(f"the candidate and the baseline are the same model, {candidate}")
    for name in (candidate, baseline):
        store.names.require("model", name)
    samples = SampleTable(store)
    cases = [
        case
        for rule in policy.rules
        for setting in matching_settings(store, [rule.setting])
        for case in _cases(store, samples, rule, setting, candidate, baseline, tell)
    ]
    tiers = dict.fromkeys(row.rule.tier for row, _ in cases)
    rows = [
        row for tier in tiers for row in _judged([case for case in cases if case[0].rule.tier == tier], policy.alpha)
    ]
    parameters, cost = _cost(store, policy, candidate, baseline)
    must = {row.verdict for row in rows if row.rule.tier == MUST} | ({cost} if cost else set())
    verdict = FAILS if LOSES in must else PASSES if must <= {HOLDS} else OPEN
    return Decision(candidate, baseline, policy, verdict, tuple(rows), parameters, cost)


def _cases(
    store: Store, samples: SampleTable, rule: Rule, setting: str, candidate: str, baseline: str, tell: Tell
) -> Iterator[_Case]:
    """The cases of a rule on a setting, one for each group of samples."""

    def told(note: str) -> None:
        tell(in_policy(note))

    try:
        cells = {name: evaluation_of(store, name, setting) for name in (candidate, baseline)}
        score = rule.score or main_score(store, {setting: cells.values()})
        spec = score_spec(store, cells.values(), score)
        table = side_by_side(store, samples, setting, cells, score, told)
        larger = larger_is_better(spec, rule.better)
        by, labels = (None, None) if rule.by is None else labels_by(store, samples, table, rule.by, tell=told)
    except TestbedError as error:
        yield RuleVerdict(rule, setting, MISSING, why=in_policy(str(error))), None
        return
    points = table.binary or spec.unit == FRACTION
    margin = rule.margin / 100 if points else rule.margin
    one, other = (table.scores[:, table.models.index(name)] for name in (candidate, baseline))
    clusters = None if by == GROUP else clusters_in(samples, table)  # each group is one cluster
    for group in [None] if labels is None else sorted({label for label in labels if label is not None}):
        rows = np.arange(len(one)) if labels is None else np.flatnonzero([label == group for label in labels])
        together = None if clusters is None else clusters[rows]
        compared = partial(change, one[rows], other[rows], margin, larger_is_better=larger, clusters=together)
        yield RuleVerdict(rule, setting, OPEN, group, score, points), compared


def in_policy(text: str) -> str:
    """Rewrites a message that refers to options of other commands in terms of the keys of a rule."""
    found, number = _OPTION.subn(r"\1:\2", text)
    return f"{found} (in the rule of the policy)" if number else text


def _judged(cases: Sequence[_Case], alpha: float) -> Iterator[RuleVerdict]:
    """Adds the verdicts to the rows of a tier."""
    family = sum(compared is not None for _, compared in cases)
    changes = [None if compared is None else compared(alpha=alpha, family=family) for _, compared in cases]
    adjusted = iter(holm([entry.p_loses for entry in changes if entry is not None]))
    for (row, _), found in zip(cases, changes, strict=True):
        if found is None:
            yield row
            continue
        p = next(adjusted)
        verdict = LOSES if p < alpha else HOLDS if found.p_holds < alpha else OPEN
        yield replace(row, change=found, p_loses=p, verdict=verdict)


def _cost(
    store: Store, policy: Policy, candidate: str, baseline: str
) -> tuple[tuple[int | None, int | None], str | None]:
    facts = {model_facts.name: model_facts.parameters for model_facts in store.results.model_facts()}
    own, other = facts.get(candidate), facts.get(baseline)
    if policy.parameters is None:
        return (own, other), None
    if own is None or other is None:
        return (own, other), OPEN
    return (own, other), HOLDS if own <= policy.parameters * other else LOSES
