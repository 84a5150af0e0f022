"""Scores and metrics of retrieval, from embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError
from testbed.metric_specs import HIGHER, LOWER, MAIN, MetricSpec, rate
from testbed.metrics.classification import NEVER
from testbed.metrics.inference.clusters import effective_clusters
from testbed.metrics.inference.statistics import clustered_mean_and_stderr
from testbed.metrics.retrieval import retrieval_ranks

SCORER = "retrieval@1"
RECALL_K = (1, 5, 10)
IMAGE, TEXT = "image_retrieval", "text_retrieval"


def flat_captions(samples: Sequence[SampleInfo], what: str) -> tuple[list[str], Array]:
    """The captions of all images in a row.

    Args:
        samples: The images, each with the list of its captions as its target, possibly empty.
        what: The setting, for messages.

    Returns:
        The M captions, and for each the position of its image: integer array [M].

    Raises:
        DataError: If a target is invalid.
    """
    for sample in samples:
        if not isinstance(sample.target, list) or not all(isinstance(text, str) for text in sample.target):
            raise DataError(f"{what}: expected a list of captions as the target of {sample.id}, got {sample.target!r}")
    counts = [len(sample.target) for sample in samples]
    owners = np.repeat(np.arange(len(counts)), np.asarray(counts, dtype=np.int64))
    return [caption for sample in samples for caption in sample.target], owners


def score_retrieval(
    images: Array, texts: Array, owners: Array, ks: Sequence[int] = RECALL_K
) -> tuple[list[Score], list[Metric]]:
    """Computes recall in both directions as in CLIP benchmark: a hit rate.

    Text retrieval: the share of all N images that have one of their captions among the k best texts; an image without
    captions is a miss. Image retrieval: the share of all M captions whose image is among the k best images, so an
    image with more captions weighs more; the captions of an image are not independent, and its standard error is that
    of clusters (`clustered_mean_and_stderr`).

    Args:
        images: Float array [N, D]; a sample that could not be read is NaN.
        texts: Float array [M, D]: the captions.
        owners: Integer array [M]: the image of each caption.
        ks: The k of recall@k; they may be larger than N and M.

    Returns:
        Scores of each image, and metrics; of each direction (``image_retrieval``, ``text_retrieval``):

        - the metrics ``…_recall@k``, ``…_median_rank`` (None where more than half of the queries have no right answer)
          and ``…_mean_reciprocal_rank``; their n is the number of captions or of images,
        - the scores ``…_recall@k``: 0 or 1, or the share of an image's captions (NaN without captions),
        - the ranks, from which any recall@k follows, 1 the best and infinite for a miss at any k:
          ``text_retrieval_rank``, and ``image_retrieval_rank.1``, ``….2``, … of an image's captions in their order (NaN
          where there are fewer).
    """
    owners = np.asarray(owners, dtype=np.int64)
    both = retrieval_ranks(images, texts, owners)
    image_ranks, text_ranks = (np.where(ranks == NEVER, np.inf, ranks) for ranks in both)
    counts = np.bincount(owners, minlength=len(images))
    scores = []
    for k in ks:
        hits = np.bincount(owners, weights=image_ranks <= k, minlength=len(images))
        share = np.divide(hits, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        scores.append(replace(recall(IMAGE, k), zero_one=False).score(share.astype(np.float32), SCORER))
        scores.append(recall(TEXT, k).score((text_ranks <= k).astype(np.uint8), SCORER))
    scores.append(_rank("text_retrieval_rank").score(text_ranks, SCORER))
    columns = columns_of_captions(image_ranks, owners, len(images))
    scores += [_rank(f"image_retrieval_rank.{index}").score(row, SCORER) for index, row in enumerate(columns, start=1)]
    metrics = _metrics(IMAGE, image_ranks, owners, ks)
    metrics += _metrics(TEXT, text_ranks, np.arange(len(text_ranks)), ks)
    return scores, metrics


def columns_of_captions(values: Array, owners: Array, images: int) -> Array:
    """The values of each image's first captions, second captions and so on.

    Args:
        values: Array [M]: a number for each caption.
        owners: Integer array [M]: the image of each caption, in any order.
        images: The number of images N.

    Returns:
        Float64 array [most captions of an image, N]; NaN if an image has fewer.
    """
    counts = np.bincount(owners, minlength=images)
    order = np.argsort(owners, kind="stable")
    number = np.empty(len(owners), dtype=np.int64)  # of a caption among those of its image
    number[order] = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.full((int(counts.max(initial=0)), images), np.nan)
    table[number, owners] = values
    return table


def recall(direction: str, k: int) -> MetricSpec:
    """Declares Recall@k: each query hits or misses. The main one is of images at 5, as in CLIP benchmark's table."""
    headline = MAIN - (direction == TEXT) - 2 * {5: 0, 1: 1}.get(k, 2)
    return rate(f"{direction}_recall@{k}", headline=headline, zero_one=True)


def _rank(name: str) -> MetricSpec:
    return MetricSpec(name, "rank", LOWER, lowest=1)


def _metrics(direction: str, ranks: Array, clusters: Array, ks: Sequence[int]) -> list[Metric]:
    metrics, of = [], effective_clusters(clusters)
    for k in ks:
        value, stderr = clustered_mean_and_stderr(ranks <= k, clusters)
        metrics.append(recall(direction, k).metric(value, len(ranks), stderr, scorer=SCORER, clusters=of))
    median = float(np.median(ranks)) if len(ranks) else np.inf
    known = median if np.isfinite(median) else None
    metrics.append(_rank(f"{direction}_median_rank").metric(known, len(ranks), scorer=SCORER))
    value, stderr = clustered_mean_and_stderr(1 / ranks, clusters)
    reciprocal = MetricSpec(f"{direction}_mean_reciprocal_rank", "", HIGHER, 0, 1)
    metrics.append(reciprocal.metric(value, len(ranks), stderr, scorer=SCORER, clusters=of))
    return metrics
