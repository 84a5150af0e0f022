"""Every two of some models on the samples that both have: paired differences, and p-values adjusted over all pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from testbed.db.store import Store
from testbed.entities import Evaluation, groups_of
from testbed.errors import StoreError
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.metrics.inference.clusters import clusters_of
from testbed.metrics.inference.paired import SIGNIFICANT, PairedComparison, compare, holm
from testbed.stored_results.main_scores import main_score, score_spec
from testbed.stored_results.side_by_side import SampleTable, evaluation_of, scores_of


@dataclass(frozen=True)
class PairedModels:
    """Two models on a setting.

    Attributes:
        p_holm: The p-value, adjusted over all pairs on all settings.
        verdict: ``"tied"``, or which model is better; or which is higher, if the better direction is unknown.
    """

    eval_setting: str
    first: str
    second: str
    comparison: PairedComparison
    p_holm: float
    verdict: str


@dataclass(frozen=True)
class Pairs:
    """All pairs, and what the score of each sample declares."""

    rows: list[PairedModels]
    spec: MetricSpec


def compare_pairs(
    store: Store,
    models: Sequence[str],
    settings: Sequence[str],
    score: str | None = None,
    find: Callable[[Store, str, str], Evaluation] = evaluation_of,
) -> Pairs:
    """Compares every two models on every setting.

    Args:
        models: Two names or more.
        settings: Names.
        score: The per-sample score; None: the main one of the settings.
        find: From a model and a setting to the evaluation; by default the reported one.

    Raises:
        StoreError: If a model has no outputs or no such score on a setting, or two have no samples in common.
    """
    cells = {each: [find(store, model, each) for model in models] for each in settings}
    score = score or main_score(store, cells)
    spec = score_spec(store, (each for on in cells.values() for each in on), score)
    samples = SampleTable(store)
    found: list[tuple[str, str, str, PairedComparison]] = []
    for setting, evaluations in cells.items():
        scores = [_scores(store, samples, evaluation, score) for evaluation in evaluations]
        groups = _groups(samples, evaluations[0])
        for (first, one), (second, other) in combinations(zip(models, scores, strict=True), 2):
            shared = [key for key in one if key in other]
            if not shared:
                raise StoreError(f"{first} and {second} have no samples of {setting} in common")
            values, others = (np.asarray([each[key] for key in shared]) for each in (one, other))
            together = clusters_of(groups[key] for key in shared) if groups else None
            found.append((setting, first, second, compare(values, others, clusters=together)))
    adjusted = holm([row[-1].p for row in found])
    return Pairs(
        [PairedModels(*row, p, _verdict(*row[1:], p, spec)) for row, p in zip(found, adjusted, strict=True)], spec
    )


def _scores(store: Store, samples: SampleTable, evaluation: Evaluation, score: str) -> dict[tuple[str, str], float]:
    """The score of each scored sample, by the sample's id and content digest."""
    values = scores_of(store, evaluation, score)
    return {
        (sample.id, sample.digest): float(value)
        for sample, value in zip(samples.of(evaluation).samples, values, strict=True)
        if value == value  # samples that do not count are NaN
    }


def _groups(samples: SampleTable, evaluation: Evaluation) -> dict[tuple[str, str], str | None]:
    """The group of each sample, likewise; nothing where the data set has none."""
    infos = samples.of(evaluation).samples
    groups = groups_of(infos)
    return {} if groups is None else {(info.id, info.digest): info.group for info in infos}


def _verdict(first: str, second: str, comparison: PairedComparison, p: float, spec: MetricSpec) -> str:
    if p >= SIGNIFICANT or comparison.difference == 0:
        return "tied"
    larger, smaller = (first, second) if comparison.difference > 0 else (second, first)
    if spec.better not in (HIGHER, LOWER):
        return f"{larger} is higher"
    return f"{larger if spec.better == HIGHER else smaller} is better"
