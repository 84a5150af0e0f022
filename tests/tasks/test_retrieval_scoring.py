"""Recall, median rank and mean reciprocal rank with their errors; captions from targets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from testbed.entities import SampleInfo
from testbed.errors import DataError
from testbed.metrics.retrieval import retrieval_ranks
from testbed.metrics.scorers.retrieval import flat_captions, score_retrieval


def samples(*captions):
    return [SampleInfo(f"{place}.jpg", "", each) for place, each in enumerate(captions)]


def score(*given, **options):
    scores, metrics = score_retrieval(*given, **options)
    return {each.name: each.values for each in scores}, {each.name: each for each in metrics}


def random_case(seed=0, images=80, most=4):
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(images), rng.integers(0, most + 1, images))
    pictures = rng.normal(size=(images, 16))
    return pictures, pictures[owners] + 1.5 * rng.normal(size=(len(owners), 16)), owners


def test_captions_in_a_row():
    captions, owners = flat_captions(samples(["a", "b"], [], ["c"]), "coco")
    assert captions == ["a", "b", "c"]
    assert owners.tolist() == [0, 0, 2]
    captions, owners = flat_captions([], "coco")
    assert (captions, owners.tolist(), owners.dtype.kind) == ([], [], "i")


@pytest.mark.parametrize("target", ["a caption", 3, None, ["a", 3], {"captions": ["a"]}])
def test_targets_that_are_no_captions_are_a_data_error(target):
    with pytest.raises(DataError, match=r"coco: expected a list of captions as the target of 1\.jpg"):
        flat_captions(samples(["a"], target), "coco")


def test_metrics_are_those_of_the_ranks():
    given = random_case()
    image_ranks, text_ranks = retrieval_ranks(*given)
    _, metrics = score(*given, ks=(1, 3, 200))
    assert list(metrics) == [
        f"{direction}_{name}"
        for direction in ("image_retrieval", "text_retrieval")
        for name in ("recall@1", "recall@3", "recall@200", "median_rank", "mean_reciprocal_rank")
    ]
    captioned = np.isin(np.arange(80), given[2])
    assert 0 < captioned.sum() < 80
    for direction, ranks in (("image_retrieval", image_ranks), ("text_retrieval", text_ranks)):
        for k in (1, 3):
            metric = metrics[f"{direction}_recall@{k}"]
            assert (metric.value, metric.n, metric.unit) == ((ranks <= k).mean(), len(ranks), "fraction")
        assert metrics[f"{direction}_median_rank"].value == np.median(ranks)
        assert metrics[f"{direction}_median_rank"].unit == "rank"
        assert metrics[f"{direction}_mean_reciprocal_rank"].value == pytest.approx((1 / ranks).mean(), abs=1e-12)
    assert metrics["image_retrieval_recall@200"].value == 1
    assert metrics["text_retrieval_recall@200"].value == pytest.approx(captioned.mean())
    hits = text_ranks <= 3
    assert metrics["text_retrieval_recall@3"].stderr == pytest.approx(scipy.stats.sem(hits))


def test_hand_case_of_clip_benchmark():
    table = np.array(
        [[0.9, 0.1, 0.2], [0.3, 0.8, 0.1], [0.2, 0.9, 0.1], [0.7, 0.6, 0.1], [0.1, 0.2, 0.3], [0.4, 0.3, 0.2]]
    )
    length = np.sqrt(2 - (table**2).sum(axis=1, keepdims=True))  # so that all texts are equally long
    images = np.eye(3, 4)
    scores, metrics = score(images, np.hstack([table, length]), np.array([0, 0, 1, 1, 2, 2]), ks=(1, 2, 3))
    assert [metrics[f"image_retrieval_recall@{k}"].value for k in (1, 2, 3)] == [0.5, pytest.approx(5 / 6), 1]
    assert metrics["text_retrieval_recall@1"].value == 1
    assert scores["image_retrieval_recall@1"].tolist() == [0.5, 0.5, 0.5]
    assert scores["image_retrieval_rank.1"].tolist() == [1, 1, 1]
    assert scores["image_retrieval_rank.2"].tolist() == [2, 2, 3]


def test_any_recall_follows_from_the_stored_ranks():
    given = random_case(1)
    scores, _ = score(*given, ks=())
    _, metrics = score(*given, ks=(1, 2, 7, 30))
    columns = np.stack([values for name, values in scores.items() if name.startswith("image_retrieval_rank.")])
    assert columns.shape == (4, 80)
    of_captions = columns[~np.isnan(columns)]
    assert len(of_captions) == len(given[2])
    for k in (1, 2, 7, 30):
        assert (of_captions <= k).mean() == metrics[f"image_retrieval_recall@{k}"].value
        assert (scores["text_retrieval_rank"] <= k).mean() == metrics[f"text_retrieval_recall@{k}"].value


def test_scores_of_images_in_any_order_of_captions():
    images, texts, owners = random_case(2)
    expected, _ = score(images, texts, owners)
    order = np.argsort(-owners, kind="stable")
    found, _ = score(images, texts[order], owners[order])
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
        assert values.shape == (80,)
    share = expected["image_retrieval_recall@5"]
    np.testing.assert_array_equal(np.isnan(share), ~np.isin(np.arange(80), owners))
    assert np.nanmax(share) <= 1


def test_unreadable_images_and_uncaptioned_ones_are_misses():
    images, texts, owners = np.eye(4), np.eye(4)[[0, 1, 1]], np.array([0, 1, 1])
    images[1] = np.nan
    scores, metrics = score(images, texts, owners, ks=(1, 100))
    for k in (1, 100):
        assert metrics[f"image_retrieval_recall@{k}"].value == pytest.approx(1 / 3)
        assert metrics[f"text_retrieval_recall@{k}"].value == 0.25
    assert scores["text_retrieval_rank"].tolist() == [1, np.inf, np.inf, np.inf]
    assert metrics["text_retrieval_median_rank"].value is None
    assert metrics["image_retrieval_mean_reciprocal_rank"].value == pytest.approx(1 / 3)


def test_the_stated_error_of_image_retrieval_is_that_of_repetition():
    """Captions of one image are alike, so the error is larger than that of as many independent ones."""
    found, naive = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        owners = np.repeat(np.arange(150), rng.integers(1, 8, 150))
        pictures = rng.normal(size=(150, 8))
        seen = pictures + 1.2 * rng.normal(size=(150, 8))  # what all captions of an image get wrong in the same way
        texts = seen[owners] + 0.2 * rng.normal(size=(len(owners), 8))
        metric = score(pictures, texts, owners, ks=(1,))[1]["image_retrieval_recall@1"]
        found.append(metric)
        naive.append(np.sqrt(metric.value * (1 - metric.value) / len(owners)))
    spread = np.std([each.value for each in found], ddof=1)
    assert np.mean([each.stderr for each in found]) == pytest.approx(spread, rel=0.25)
    assert np.mean(naive) < 0.6 * spread


def test_no_samples():
    scores, metrics = score(np.empty((0, 4)), np.empty((0, 4)), np.empty(0, dtype=np.int64))
    assert all(len(values) == 0 for values in scores.values())
    assert {(each.value, each.stderr, each.n) for each in metrics.values()} == {(None, None, 0)}
