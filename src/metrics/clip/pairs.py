"""CLIPScore of pairs of embeddings: of images and captions, of two images, of two texts.

Everything here is a fraction: a cosine, not 100 times it. Cosines are computed in fixed point (see `similarity`), so
that they depend neither on batch sizes nor on the processor.

Two clamps are in use. torchmetrics takes the mean of all cosines and clamps it at 0: ``clip_score``. Hessel et al.
(2021) clamp each pair: ``clip_score_pairwise``, here without their factor of 2.5. They differ where cosines are
negative: −0.05 and 0.15 give 0.05 and 0.075.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric
from testbed.metric_specs import HIGHER, MAIN, MetricSpec, rate
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import mean_and_stderr
from testbed.metrics.similarity import fixed_point, pair_similarities

WEIGHT = 2.5  # of Hessel et al., who stretch the cosines of CLIP ViT-B/32 to about [0, 1]
_VALUES = 2**22  # of each side at a time
CLIP_SCORE, PAIRWISE = rate("clip_score", headline=MAIN), rate("clip_score_pairwise")
# The harmonic mean of 2.5 and 1, where both cosines are 1.
REF_CLIP_SCORE = MetricSpec("ref_clip_score", better=HIGHER, lowest=0, highest=2 * WEIGHT / (WEIGHT + 1))


def cosine(name: str, headline: int = 0) -> MetricSpec:
    """A score that is a raw cosine."""
    return MetricSpec(name, "cosine", HIGHER, -1, 1, headline)


def pair_cosines(a: Array, b: Array) -> Array:
    """The cosine of each pair of embeddings.

    Args:
        a: Float array [n, D] of any scale.
        b: Float array [n, D]; row i is compared with row i of ``a``.

    Returns:
        Float64 array [n] in [−1, 1]. 0 where an embedding is zero, NaN where one has a component that is not finite;
        exactly 1 for equal embeddings.

    Raises:
        ValueError: If the shapes are others.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"expected two arrays [n, D] of one shape, got {a.shape} and {b.shape}")
    n, width = a.shape
    at_once = max(1, _VALUES // max(width, 1))
    cosines = np.zeros(n)
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        cosines[part] = _cosines(a[part], b[part])
    return cosines


def _cosines(a: Array, b: Array) -> Array:
    (left, known), (right, also) = fixed_point(a), fixed_point(b)
    # The length of the rounded embeddings again, so that an embedding's cosine with itself is 1.
    squares = pair_similarities(left, left) * pair_similarities(right, right)
    directed = known & also
    cosines = np.zeros(len(a))
    np.divide(pair_similarities(left, right), np.sqrt(squares), out=cosines, where=directed)
    cosines[~(np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1))] = np.nan
    clipped: Array = np.clip(cosines, -1, 1)
    return clipped


def clip_score_metrics(
    cosines: Array,
    clusters: Array | None = None,
    *,
    reference_scores: Array | None = None,
    scorer: str = "",
) -> list[Metric]:
    """The metrics of a list of pairs.

    Args:
        cosines: Array [n]; NaN where a pair is not scored. It counts in no metric then.
        clusters: Array [n]: the cluster of each pair, for pairs that are not independent, such as each caption's image.
            Standard errors are clustered by it.
        reference_scores: Array [n], as `ref_clip_score` gives them.
        scorer: The scorer's name in the metrics.

    Returns:
        ``clip_score`` (with the standard error of the mean before it is clamped), ``clip_score_pairwise`` and, if there
        are reference scores, ``ref_clip_score``; fractions, each with the number of its pairs. Without pairs the value
        is None.

    Raises:
        ValueError: If the lengths differ.
    """
    cosines = np.asarray(cosines, dtype=np.float64)
    given = [(CLIP_SCORE, cosines), (PAIRWISE, np.maximum(cosines, 0))]
    if reference_scores is not None:
        given.append((REF_CLIP_SCORE, np.asarray(reference_scores, dtype=np.float64)))
    return [_metric(spec, values, clusters, scorer) for spec, values in given]


def _metric(spec: MetricSpec, values: Array, clusters: Array | None, scorer: str) -> Metric:
    if values.ndim != 1 or (clusters is not None and len(clusters) != len(values)):
        shape = None if clusters is None else np.shape(clusters)
        raise ValueError(f"{spec.name}: expected values [n] and clusters [n], got {values.shape} and {shape}")
    scored = ~np.isnan(values)
    together = None if clusters is None else np.asarray(clusters)[scored]
    mean, stderr = mean_and_stderr(values[scored], together)
    value = None if mean is None else max(mean, 0.0)
    return spec.metric(value, int(scored.sum()), stderr, scorer=scorer, clusters=effective_clusters(together))


def ref_clip_score(image_cosines: Array, reference_cosines: Sequence[Array] | Array) -> Array:
    """Computes RefCLIPScore of captions (Hessel et al. 2021): the harmonic mean of two similarities.

    One is that to the image, 2.5 · max(cos, 0). The other is that to the most similar reference, max(cos, 0).

    Args:
        image_cosines: Array [n]: of each caption and its image.
        reference_cosines: For each caption an array [m]: the cosines with its references.

    Returns:
        Float64 array [n]: 0 where either similarity is; NaN where a cosine is, or there are no references.

    Raises:
        ValueError: If the lengths differ.
    """
    image = WEIGHT * np.maximum(np.asarray(image_cosines, dtype=np.float64), 0)
    if image.ndim != 1 or len(image) != len(reference_cosines):
        raise ValueError(
            f"expected image cosines [n] and as many arrays, got {image.shape} and {len(reference_cosines)}"
        )
    best = [np.max(np.asarray(values, dtype=np.float64)) if len(values) else np.nan for values in reference_cosines]
    reference = np.maximum(np.asarray(best, dtype=np.float64).reshape(-1), 0)
    total = image + reference
    either = (image == 0) | (reference == 0)
    mean = np.where(either, 0.0, np.divide(2 * image * reference, total, out=np.zeros_like(total), where=total != 0))
    return np.where(np.isnan(image) | np.isnan(reference), np.nan, mean)
