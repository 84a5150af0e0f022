"""CLIPScore of pairs: by hand, and against sums in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from testbed.metrics.clip import pairs as clip_pairs
from testbed.metrics.clip.pairs import clip_score_metrics, pair_cosines, ref_clip_score


def exact_cosine(a, b):
    def product(left, right):
        return sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(left, right, strict=True))

    return float(product(a, b)) / math.sqrt(float(product(a, a) * product(b, b)))


def test_cosines_are_those_of_exact_arithmetic():
    a, b = np.random.default_rng(0).normal(size=(2, 20, 17)).astype(np.float32)
    assert pair_cosines(3 * a, b) == pytest.approx([exact_cosine(x, y) for x, y in zip(a, b, strict=True)], abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_embeddings_have_a_cosine_of_one(dtype):
    rows = np.random.default_rng(1).normal(size=(50, 512)).astype(dtype)
    assert (pair_cosines(rows, rows) == 1).all()
    assert (pair_cosines(rows, -rows) == -1).all()


def test_cosines_do_not_depend_on_order_or_blocks(monkeypatch):
    a, b = np.random.default_rng(2).normal(size=(2, 37, 33)).astype(np.float32)
    whole, order = pair_cosines(a, b), np.random.default_rng(3).permutation(37)
    assert np.array_equal(pair_cosines(a[order], b[order]), whole[order])
    monkeypatch.setattr(clip_pairs, "_VALUES", 5 * 33)
    assert np.array_equal(pair_cosines(a, b), whole)


def test_embeddings_without_a_direction():
    a = np.array([[0, 0], [1, 0], [np.nan, 1], [np.inf, 0], [1e-30, 0]])
    b = np.array([[1, 0], [0, 0], [0, 0], [1, 0], [1e30, 0]])
    assert np.array_equal(pair_cosines(a, b), [0, 0, np.nan, np.nan, 1], equal_nan=True)
    assert pair_cosines(np.zeros((0, 4)), np.zeros((0, 4))).shape == (0,)


@pytest.mark.parametrize("shapes", [((2, 3), (3, 3)), ((2, 3), (2, 4)), ((3,), (3,))])
def test_wrong_shapes(shapes):
    with pytest.raises(ValueError, match="two arrays"):
        pair_cosines(np.ones(shapes[0]), np.ones(shapes[1]))


def test_where_pairs_are_negative_the_two_clamps_differ():
    of_mean, of_pairs = clip_score_metrics(np.array([-0.05, 0.15]))
    assert (of_mean.name, of_mean.value, of_mean.n, of_mean.unit) == ("clip_score", pytest.approx(0.05), 2, "fraction")
    assert (of_pairs.name, of_pairs.value, of_pairs.n) == ("clip_score_pairwise", pytest.approx(0.075), 2)
    assert of_mean.stderr == pytest.approx(0.1)  # s = 0.2 / √2, by √2
    assert clip_score_metrics(np.array([-0.3, 0.1]))[0].value == 0


def test_pairs_that_are_not_scored_do_not_count():
    metrics = clip_score_metrics(np.array([np.nan, 0.2, 0.4]), reference_scores=np.array([np.nan, np.nan, 0.5]))
    assert [(each.name, each.value, each.n) for each in metrics] == [
        ("clip_score", pytest.approx(0.3), 2),
        ("clip_score_pairwise", pytest.approx(0.3), 2),
        ("ref_clip_score", 0.5, 1),
    ]
    nothing = clip_score_metrics(np.array([np.nan]), scorer="s@1")[0]
    assert (nothing.value, nothing.n, nothing.stderr, nothing.scorer) == (None, 0, None, "s@1")


def test_standard_errors_are_clustered():
    cosines = np.array([0.1, 0.1, 0.3, 0.3])
    plain, clustered = (clip_score_metrics(cosines, clusters)[0] for clusters in (None, np.array([0, 0, 1, 1])))
    assert plain.stderr == pytest.approx(np.std(cosines, ddof=1) / 2)
    assert clustered.stderr == pytest.approx(0.1)  # as two independent values, 0.1 and 0.3
    assert plain.value == clustered.value == pytest.approx(0.2)
    with pytest.raises(ValueError, match="clusters"):
        clip_score_metrics(cosines, np.array([0, 1]))


def test_ref_clip_score_by_hand():
    found = ref_clip_score(
        np.array([0.2, 0.4, -0.1, 0.3, 0.3, np.nan]),
        [np.array([0.1, 0.5]), np.array([1.0]), np.array([0.9]), np.array([-0.2]), np.array([]), np.array([0.5])],
    )
    # 2.5 · 0.2 = 0.5 and 0.5; 1 and 1; an image that does not fit; no reference that fits
    assert np.allclose(found, [0.5, 1, 0, 0, np.nan, np.nan], equal_nan=True)
    assert ref_clip_score(np.array([0.24]), [np.array([0.3])])[0] == pytest.approx(2 * 0.6 * 0.3 / 0.9)
    assert np.isnan(ref_clip_score(np.array([0.3]), [np.array([0.5, np.nan])])[0])
    assert ref_clip_score(np.array([]), []).shape == (0,)
    with pytest.raises(ValueError, match="as many arrays"):
        ref_clip_score(np.array([0.1]), [])
