"""Comparison of today's scores and metrics of stored outputs with the stored ones.

A metric that is not among the stored ones is new: nothing that is stored becomes wrong because today's code adds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from testbed.db.store import Store
from testbed.entities import Metric, Score
from testbed.metric_specs import known_error

# Two metrics are equal up to this relative difference: releases of libraries sum in another order.
SAME_METRIC = 1e-6
# Two scores of a sample are also equal up to this difference: a cosine near 0 of float32 embeddings that another
# processor computed differs by more than their relative difference.
SAME_SCORE = 1e-6
SHOWN = 3  # differences that a line names


@dataclass(frozen=True)
class ScoreChanges:
    """Today's scores and metrics beside the stored ones.

    Attributes:
        new_metrics: Those of a name or a slice that is not stored.
        new_scores: Scores of samples whose name is not stored.
        differing: What differs, is gone, or is computed by another version of its scorer; for people.
    """

    new_metrics: Sequence[Metric] = ()
    new_scores: Sequence[Score] = ()
    differing: Sequence[str] = ()

    @property
    def same(self) -> bool:
        """Returns whether today's code computes everything that is stored."""
        return not self.differing

    @property
    def new(self) -> list[str]:
        """The names of what is new."""
        return list(
            dict.fromkeys(
                [new_metric.name for new_metric in self.new_metrics] + [new_score.name for new_score in self.new_scores]
            )
        )


def compared(
    store: Store, evaluation_id: int, scores: Sequence[Score], metrics: Sequence[Metric], details: bool = False
) -> ScoreChanges:
    """Compares today's scores and metrics of an evaluation with the stored ones.

    Args:
        store: Where the evaluation is.
        scores: Today's.
        metrics: Today's.
        details: Whether units and standard errors of metrics count as well.
    """
    stored, before = store.scores.read(evaluation_id), store.results.metrics(evaluation_id)
    new_metrics, differing = compared_metrics(before, metrics)
    old = {(each.scorer, each.name, each.slice): each for each in before}
    if details and not differing:
        both = [(old[key], metric) for metric in metrics if (key := (metric.scorer, metric.name, metric.slice)) in old]
        differing = [
            new.name
            for was, new in both
            if was.unit != new.unit or not _close(known_error(was.stderr), known_error(new.stderr))
        ]
    then = {name: (scorer, values) for (scorer, name), values in stored.items()}
    now = {score.name: score for score in scores}
    for name, (scorer, values) in sorted(then.items()):
        if name not in now:
            differing.append(f"the score {name} is gone")
        elif not _same_values(values, now[name].values):
            differing.append(f"the score {name}")
        elif now[name].scorer != scorer and not differing:
            differing.append(f"the score {name} is of {scorer}, computed by {now[name].scorer}")
    return ScoreChanges(new_metrics, [score for score in scores if score.name not in then], differing)


def compared_metrics(before: Sequence[Metric], now: Sequence[Metric]) -> tuple[list[Metric], list[str]]:
    """Lists which of today's metrics are new, and how the others differ from the stored ones."""
    old, new = ({(each.scorer, each.name, each.slice): each for each in metrics} for metrics in (before, now))
    scorers = {(name, part): scorer for scorer, name, part in old}
    today = {(name, part): scorer for scorer, name, part in new}
    added = [each for each in now if (each.name, each.slice) not in scorers]
    texts = []
    for (name, part), scorer in sorted(scorers.items()):
        then, metric = old[scorer, name, part], new.get((today.get((name, part), ""), name, part))
        if metric is None:
            texts.append(f"{name} ({part}) is gone, it was {_told(then)}")
        elif not (_close(then.value, metric.value) and then.n == metric.n):
            texts.append(f"{name} ({part}) is {_told(then)}, computed {_told(metric)}")
        elif metric.scorer != scorer:
            texts.append(f"{name} ({part}) is of {scorer}, computed by {metric.scorer}")
    return added, texts


def _told(metric: Metric) -> str:
    return f"{metric.value} of {metric.n}"


def _close(before: float | None, now: float | None) -> bool:
    old, new = (None if value is None or value != value else float(value) for value in (before, now))
    if old is None or new is None:
        return old is new
    return old == new or abs(old - new) <= SAME_METRIC * max(abs(old), abs(new))


def _same_values(before: Any, now: Any) -> bool:
    import numpy as np

    old, new = np.asarray(before, dtype=np.float64), np.asarray(now, dtype=np.float64)
    return old.shape == new.shape and np.allclose(old, new, rtol=SAME_METRIC, atol=SAME_SCORE, equal_nan=True)
