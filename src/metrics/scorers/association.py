"""Scores and metrics of association (WinoGAViL): the images of an instance that go best with its cue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metric_specs import PREFERRED, rate
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.scorers.selection import Instance, find_instances
from testbed.metrics.selection import instance_similarities

SCORER = "association@1"
AVERAGE = rate("avg_jaccard_score")
# DataComp's metrics by the number of candidates; those of 10 and 12 are the main one.
BY_SIZE = {
    "jaccard_score_5": (5, 5),
    "jaccard_score_6": (6, 6),
    "jaccard_score_10": (10, 10),
    "jaccard_score_12": (12, 12),
    "jaccard_score_5-6": (0, 6),
    "jaccard_score_10-12": (10, None),
}
MAIN = "jaccard_score_10-12"


def instances_of(samples: Sequence[SampleInfo], what: str) -> list[Instance]:
    """The instances, each of one cue.

    Args:
        samples: As in `testbed.metrics.scorers.selection.find_instances`; the associated images have the answer 0.
        what: The setting, for messages.

    Raises:
        DataError: If a target is invalid, or an instance has several captions.
    """
    instances = find_instances(samples, what)
    for instance in instances:
        if len(instance.captions) != 1:
            name = samples[instance.positions[0]].id
            raise DataError(
                f"{what}: the instance of {name} has {len(instance.captions)} captions; one cue is expected"
            )
    return instances


def score_association(images: Array, cues: Array, instances: Sequence[Instance]) -> tuple[list[Score], list[Metric]]:
    """Computes Jaccard indices, as in DataComp.

    Chosen are the k images most similar to the cue, k the number of associated ones; of equally similar images those
    that come later. The index is the number of chosen associated images by the number of chosen or associated ones.

    Args:
        images: Float array [n, D]; a sample that could not be read is NaN, and never chosen before others.
        cues: Float array [I, D]: the cue of each instance.
        instances: The I instances.

    Returns:
        The score ``jaccard`` of each instance, at its first image (NaN at the others), and the metrics: the mean over
        instances, and over those with some numbers of candidates, None where there are none.
    """
    indices = np.asarray(
        [_jaccard(images[list(each.positions)], cue, each) for each, cue in zip(instances, cues, strict=True)]
    )
    sizes = np.asarray([len(instance.positions) for instance in instances])
    spread = np.full(len(images), np.nan, dtype=np.float32)
    spread[[instance.positions[0] for instance in instances]] = indices
    metrics = [_mean(AVERAGE.name, indices)]
    for name, (fewest, most) in BY_SIZE.items():
        metrics.append(_mean(name, indices[(sizes >= fewest) & (sizes <= (most or sizes.max()))]))
    return [rate("jaccard", headline=1).score(spread, SCORER)], metrics


def _jaccard(images: Array, cue: Array, instance: Instance) -> float:
    right = np.asarray([answer is not None for answer in instance.answers])
    similarities = instance_similarities(images[None], cue[None, None])[0, :, 0]
    order = np.argsort(np.where(np.isnan(similarities), -np.inf, similarities), kind="stable")
    chosen = np.zeros(len(right), dtype=bool)
    chosen[order[-right.sum() :]] = True
    chosen &= ~np.isnan(similarities)
    return float((right & chosen).sum() / (right | chosen).sum())


def _mean(name: str, indices: Array) -> Metric:
    spec = rate(name, headline=PREFERRED if name == MAIN else 0)
    value, stderr = mean_and_stderr(indices) if len(indices) else (None, None)
    return spec.metric(value, len(indices), stderr, scorer=SCORER)
