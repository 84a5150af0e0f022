"""Ranking models on one setting, or on several by the mean over settings."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import Better
from testbed.metric_specs import MetricSpec
from testbed.metrics.inference.ranks import ModelRank, Progress, Resamples, rank_models, ranks
from testbed.stored_results.main_scores import larger_is_better, score_spec
from testbed.stored_results.side_by_side import Key, SampleTable, SideBySide, Tell, choose, clusters_in, side_by_side


@dataclass(frozen=True)
class SettingRank:
    """A model on one of the settings: its mean score and its rank (tied models share the mean of their ranks)."""

    eval_setting: str
    n: int
    value: float
    rank: float


@dataclass(frozen=True)
class RankedModel:
    """A model in a ranking.

    Attributes:
        place: Its value and its rank, with confidence intervals.
        mean_rank: The mean of its ranks on the settings, where tied models share ranks (Demšar 2006).
        tied_with: The models that do not differ significantly from it.
        settings: The model on each setting.
    """

    model: str
    place: ModelRank
    mean_rank: float
    tied_with: tuple[str, ...]
    settings: tuple[SettingRank, ...]


@dataclass(frozen=True)
class Ranking:
    """Models from the best to the worst; ties by name.

    Attributes:
        binary: Whether all scores are 0 or 1.
        clusters: The number of clusters of samples that intervals and tests are about; None if each sample is one.
        spec: What the score declares.
        larger: Whether the first has the largest value.
    """

    rows: list[RankedModel]
    binary: bool
    spec: MetricSpec
    larger: bool
    clusters: int | None = None


def ranking(
    store: Store,
    settings: Sequence[str],
    models: Sequence[str],
    score: str,
    tell: Tell = lambda note: None,
    progress: Progress = lambda what, share: None,
    better: Better | None = None,
    first: Collection[int] = (),
    drawn: Resamples | None = None,
) -> Ranking:
    """Ranks models by their mean score, averaged over settings if there are several.

    Args:
        settings: The settings, equally weighted.
        models: Names or patterns; none means all that have outputs on all the settings.
        score: The per-sample score.
        tell: Called with notes on what was left out.
        better: Whether the ``"higher"`` or the ``"lower"`` score is better; by default what it declares.
        first: Ids of evaluations that take precedence over the reported ones.
        drawn: Resamples of other rankings, which may be used again.

    Raises:
        StoreError: If fewer than two models have the score on all the settings, or it is not known which is better.
    """
    chosen = choose(store, settings, models, score, at_least=2, tell=tell, first=first)
    spec = score_spec(store, (evaluation for on in chosen.values() for evaluation in on.values()), score)
    larger = larger_is_better(spec, better)
    samples = SampleTable(store)
    strata: dict[str, Array] = {}
    counted: Counter[str] = Counter()
    together: dict[str, Array | None] = {}
    on: list[tuple[SideBySide, Array, Array]] = []
    binary = True
    for index, setting in enumerate(sorted(settings)):
        progress("reading scores", index / len(settings))
        table = side_by_side(store, samples, setting, chosen[setting], score, tell)
        binary = binary and table.binary
        values = table.scores.mean(axis=0)
        best, worst = ranks(values[None], larger)
        on.append((table, values, (best[0] + worst[0]) / 2))
        # Settings with identical samples are resampled together.
        which = _digest(table.keys)
        weighted = table.scores / len(settings)
        strata[which] = strata[which] + weighted if which in strata else weighted
        counted[which] += 1
        together[which] = clusters_in(samples, table)
    names = on[0][0].models
    order = sorted(strata)
    tables, clusters = [strata[which] for which in order], [together[which] for which in order]
    of = replace(spec, zero_one=binary)
    shares = [counted[which] for which in order]
    places = rank_models(tables, larger, progress=progress, drawn=drawn, clusters=clusters, spec=of, shares=shares)
    number = _count(tables, clusters)
    on.sort(key=lambda each: settings.index(each[0].eval_setting))
    rows = [
        RankedModel(
            model=name,
            place=places[column],
            mean_rank=float(np.mean([shared[column] for _, _, shared in on])),
            tied_with=tuple(names[other] for other in places[column].tied),
            settings=tuple(
                SettingRank(table.eval_setting, len(table.keys), float(values[column]), float(shared[column]))
                for table, values, shared in on
            ),
        )
        for column, name in enumerate(names)
    ]
    return Ranking(sorted(rows, key=lambda row: (row.place.rank, row.model)), binary, spec, larger, number)


def _count(tables: Sequence[Array], clusters: Sequence[Array | None]) -> int | None:
    if all(cluster is None for cluster in clusters):
        return None
    return sum(len(table if each is None else set(each.tolist())) for table, each in zip(tables, clusters, strict=True))


def _digest(keys: Sequence[Key]) -> str:
    """Equal for equal samples."""
    hasher = hashlib.sha256()
    for name, content in keys:
        hasher.update(f"{len(name)} {name} {content}\n".encode())
    return hasher.hexdigest()
