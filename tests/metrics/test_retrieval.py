"""Ranks of right answers: by hand, against a sort of exact similarities, and whatever the block size."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tables import cases

from testbed.metrics import retrieval
from testbed.metrics.classification import NEVER
from testbed.metrics.retrieval import retrieval_ranks
from testbed.metrics.similarity import fixed_point, pair_similarities, tolerance

BLOCKS = [1, 6_000, 2**30]  # one pair at a time; blocks of 7 or 17 to a side; all at once


def ranks_by_sorting(images, texts, owners):
    """The definition, with whole numbers: descending similarity, equal ones by ascending index."""
    whole_images, known_images = fixed_point(images)
    whole_texts, known_texts = fixed_point(texts)
    table = whole_texts.astype(np.int64) @ whole_images.astype(np.int64).T  # |sums| ≤ 2⁴⁹

    def order(values, known):
        return np.lexsort((-values, ~known)).tolist()  # stable

    image_ranks = [
        order(table[text], known_images).index(owner) + 1 if known_texts[text] and known_images[owner] else NEVER
        for text, owner in enumerate(owners)
    ]
    text_ranks = []
    for image in range(len(images)):
        places = order(table[:, image], known_texts)
        own = [places.index(text) + 1 for text in np.flatnonzero(owners == image) if known_texts[text]]
        text_ranks.append(min(own) if own and known_images[image] else NEVER)
    return image_ranks, text_ranks


def realistic(seed, images=60, texts=230, width=48, duplicates=0.0):
    """Embeddings in a cone, as encoders give them; some images and texts are exact copies of others."""
    rng = np.random.default_rng(seed)
    owners = rng.integers(images, size=texts)
    cone = 3 * rng.normal(size=width)
    pictures = rng.normal(size=(images, width)) + cone
    captions = pictures[owners] + 1.5 * rng.normal(size=(texts, width)) - cone / 2
    for table in (pictures, captions):
        for place in np.flatnonzero(rng.random(len(table)) < duplicates):
            table[place] = table[rng.integers(len(table))]
    return pictures.astype(np.float32), captions.astype(np.float32), owners


# Edges ---------------------------------------------------------------------------------------------------------------


def test_nothing_to_rank():
    image_ranks, text_ranks = retrieval_ranks(np.ones((2, 4)), np.empty((0, 4)), np.empty(0, dtype=np.int64))
    assert image_ranks.tolist() == []
    assert text_ranks.tolist() == [NEVER, NEVER]
    image_ranks, text_ranks = retrieval_ranks(np.empty((0, 4)), np.empty((0, 4)), [])
    assert (len(image_ranks), len(text_ranks)) == (0, 0)


# Ties and blocks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block_bytes", BLOCKS)
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_of_equal_candidates_the_first_is_ahead(block_bytes, scale):
    """A model to which everything is alike finds the first image for all captions, and the first caption for all."""
    owners = np.array([3, 1, 1, 0, 4, 2, 2])
    constant = scale * np.random.default_rng(0).normal(size=(1, 33))
    image_ranks, text_ranks = retrieval_ranks(constant.repeat(5, 0), constant.repeat(7, 0), owners, block_bytes)
    assert image_ranks.tolist() == [4, 2, 2, 1, 5, 3, 3]
    assert text_ranks.tolist() == [4, 2, 6, 1, 5]


@cases("duplicates", [0.0, 0.3, 0.9])
@cases("width", [1, 2, 48, 257])
def test_ranks_equal_a_sort_of_exact_similarities_for_every_block_size(duplicates, width):
    images, texts, owners = realistic(width, images=20, texts=90, width=width, duplicates=duplicates)
    expected = ranks_by_sorting(images, texts, owners)
    for block_bytes in BLOCKS:
        found = retrieval_ranks(images, texts, owners, block_bytes)
        for ranks, wanted in zip(found, expected, strict=True):
            assert ranks.tolist() == wanted


@pytest.mark.parametrize("noise", [1e-7, 1e-6, 1e-4])
def test_similarities_closer_than_the_rounding_of_float32_are_told_apart(noise):
    """Nearly equal embeddings: what a float32 product says of them is chance."""
    rng = np.random.default_rng(1)
    owners = rng.integers(40, size=150)
    one = rng.normal(size=64)
    images = (one + noise * rng.normal(size=(40, 64))).astype(np.float32)
    texts = (one + noise * rng.normal(size=(150, 64))).astype(np.float32)
    expected = ranks_by_sorting(images, texts, owners)
    for block_bytes in BLOCKS[1:]:
        for ranks, wanted in zip(retrieval_ranks(images, texts, owners, block_bytes), expected, strict=True):
            assert ranks.tolist() == wanted


@pytest.mark.parametrize("dense", [0, 10**12])
def test_both_ways_to_look_again_say_the_same(dense, monkeypatch):
    images, texts, owners = realistic(3, duplicates=0.5)
    expected = retrieval_ranks(images, texts, owners)
    monkeypatch.setattr(retrieval, "_DENSE", dense)
    for ranks, wanted in zip(retrieval_ranks(images, texts, owners), expected, strict=True):
        np.testing.assert_array_equal(ranks, wanted)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_does_not_matter(threads, monkeypatch):
    images, texts, owners = realistic(12, images=200, texts=600, duplicates=0.3)
    expected = retrieval_ranks(images, texts, owners)
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: [{"user_api": "blas", "num_threads": threads}])
    monkeypatch.setattr(retrieval, "_BYTES_PER_THREAD", 1)
    for ranks, wanted in zip(retrieval_ranks(images, texts, owners, 100_000), expected, strict=True):
        np.testing.assert_array_equal(ranks, wanted)


def test_a_product_of_many_embeddings_is_never_as_wide_as_the_data(monkeypatch):
    images, texts, owners = realistic(6, images=300, texts=500)
    sizes = []

    class Counting(retrieval._Block):
        def __init__(self, *given):
            super().__init__(*given)
            sizes.append(self.product.nbytes)

    monkeypatch.setattr(retrieval, "_Block", Counting)
    retrieval_ranks(images, texts, owners, block_bytes=100_000)
    assert len(sizes) > 20
    assert max(sizes) <= 100_000


# Inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("block_bytes", BLOCKS[1:])
def test_what_has_no_direction_is_never_right_and_comes_last(bad, block_bytes):
    images, texts, owners = realistic(7, images=12, texts=30)
    texts = -texts  # so that a similarity of 0 would be ahead of most
    images[4], texts[9] = (bad, bad) if bad == 0 else (images[4], texts[9])
    images[4, 3] = texts[9, 0] = bad
    owners[:3] = [4, 0, 5]
    owners[owners == 4] = 4
    image_ranks, text_ranks = retrieval_ranks(images, texts, owners, block_bytes)
    expected = ranks_by_sorting(images, texts, owners)
    assert (image_ranks.tolist(), text_ranks.tolist()) == expected
    assert image_ranks[0] == image_ranks[9] == text_ranks[4] == NEVER
    assert image_ranks[image_ranks != NEVER].max() <= 11


def test_the_lengths_of_embeddings_do_not_matter():
    images, texts, owners = realistic(8)
    expected = retrieval_ranks(images, texts, owners)
    scales = 2.0 ** np.random.default_rng(0).integers(-20, 20, size=(len(texts), 1))
    for found, wanted in zip(retrieval_ranks(images, texts * scales, owners), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precisions(dtype):
    images, texts, owners = realistic(9)
    images, texts = images.astype(dtype), texts.astype(dtype)
    before = images.copy(), texts.copy()
    expected = ranks_by_sorting(images, texts, owners)
    found = retrieval_ranks(images, texts, owners)
    assert (found[0].tolist(), found[1].tolist()) == expected
    np.testing.assert_array_equal(images, before[0])
    np.testing.assert_array_equal(texts, before[1])


@pytest.mark.parametrize(
    ("images", "texts", "owners"), [((3,), (3,), (3,)), ((3, 2), (4, 3), (4,)), ((3, 2), (4, 2), (3,))]
)
def test_shapes_that_do_not_fit_raise(images, texts, owners):
    with pytest.raises(ValueError, match=r"images \[N, D\], texts \[M, D\] and owners \[M\]"):
        retrieval_ranks(np.ones(images), np.ones(texts), np.zeros(owners, dtype=np.int64))


@pytest.mark.parametrize("owner", [-1, 3])
def test_owners_out_of_range_raise(owner):
    with pytest.raises(ValueError, match=rf"owners from 0 to 2 for 3 images.*{owner}"):
        retrieval_ranks(np.ones((3, 2)), np.ones((2, 2)), np.array([0, owner]))


# Fixed point ------------------------------------------------------------------------------------------------------


def test_similarities_in_fixed_point_are_exact_and_close_to_the_cosine():
    images, texts, _ = realistic(10, width=512)
    left, right = fixed_point(images)[0], fixed_point(texts)[0][: len(images)]
    found = pair_similarities(left, right)
    whole = [sum(int(a) * int(b) for a, b in zip(*pair, strict=True)) for pair in zip(left, right, strict=True)]
    assert [Fraction(each) for each in found] == whole
    unit = [each / np.linalg.norm(each, axis=1, keepdims=True) for each in (images.astype(float), texts.astype(float))]
    cosine = (unit[0] * unit[1][: len(images)]).sum(axis=1)
    np.testing.assert_allclose(found / 2.0**48, cosine, atol=3e-7)


def test_the_largest_sums_are_exact():
    """All components equal and of one sign: nothing cancels."""
    whole, _ = fixed_point(np.ones((1, 4096)))
    assert whole[0, 0] == 2**18
    assert pair_similarities(whole, whole)[0] == 2**48
    single, _ = fixed_point(np.array([[-3.0], [5e-324]]))
    assert single[:, 0].tolist() == [-(2**24), 2**24]


def test_float32_products_are_within_the_tolerance():
    for width in (1, 48, 512):
        images, texts, _ = realistic(width, width=width)
        left, right = fixed_point(texts)[0], fixed_point(images)[0]
        exact = left.astype(np.float64) @ right.astype(np.float64).T
        assert np.abs(left @ right.T - exact).max() < tolerance(width)


def test_more_rows_than_are_converted_at_a_time(monkeypatch):
    images, _, _ = realistic(11)
    images[[0, 7, 30]] = 0
    expected = fixed_point(images)
    monkeypatch.setattr("testbed.metrics.similarity._VALUES", 48 * 7)
    for found, wanted in zip(fixed_point(images), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert np.flatnonzero(~expected[1]).tolist() == [0, 7, 30]
