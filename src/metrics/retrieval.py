"""Ranks of right answers among all images, or all texts, by cosine similarity.

Candidates are ordered by descending similarity, equal ones by ascending index, as a stable sort does. Similarities are
compared exactly (see `similarity`): ranks do not depend on block sizes, threads or the processor, and equal embeddings
tie.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from testbed.arrays import Array
from testbed.metrics.classification import NEVER
from testbed.metrics.similarity import fixed_point, pair_similarities, tolerance

BLOCK_BYTES = 2**26
_BYTES_PER_PAIR = 20  # a float32 and a float64 similarity, masks, and the places of what is looked at again
_BYTES_PER_THREAD = 2**22  # with less, blocks are too small to be worth a thread
_RARE = 8  # one place in so many is found one by one, more are counted in masks
_DENSE = 32  # one pair alone costs about as much as so many in a matrix product


def retrieval_ranks(images: Array, texts: Array, owners: Array, block_bytes: int = BLOCK_BYTES) -> tuple[Array, Array]:
    """The ranks of right answers in both directions; 1 is the best.

    An embedding that is zero or not finite has no similarity to anything: it is never right, and comes after all
    others. Besides the blocks, memory is needed for a float32 copy of the embeddings.

    Args:
        images: Float array [N, D] of any scale.
        texts: Float array [M, D]: the captions.
        owners: Integer array [M]: the image that each caption is about.
        block_bytes: About how much memory the similarities that are computed at a time may take.

    Returns:
        Two integer arrays. Image ranks [M]: the rank of each caption's image among all N images. Text ranks [N]: the
        rank of the best-ranked caption of each image among all M captions. `NEVER` where nothing can be right: the
        image has no caption, or an embedding has no similarities.

    Raises:
        ValueError: If the shapes do not fit or an owner is out of range.
    """
    owners = np.asarray(owners, dtype=np.int64)
    _check(np.shape(images), np.shape(texts), owners)
    image_ranks = np.full(len(texts), NEVER, dtype=np.int64)
    text_ranks = np.full(len(images), NEVER, dtype=np.int64)
    gallery, image_known = fixed_point(images)
    captions, text_known = fixed_point(texts)
    answer = np.where(image_known, np.cumsum(image_known) - 1, -1)[owners][text_known]  # among the known images
    if not image_known.all():
        gallery = gallery[image_known]
    if not text_known.all():
        captions = captions[text_known]
    own = _own_similarities(captions, gallery, answer, block_bytes)
    best, first = _best_captions(own, answer, len(gallery))
    ahead_of_image, ahead_of_text = _ahead(captions, gallery, (own, answer), (best, first), block_bytes)
    image_ranks[text_known] = np.where(answer >= 0, ahead_of_image + 1, NEVER)
    text_ranks[image_known] = np.where(first >= 0, ahead_of_text + 1, NEVER)
    return image_ranks, text_ranks


def _check(images: tuple[int, ...], texts: tuple[int, ...], owners: Array) -> None:
    if len(images) != 2 or len(texts) != 2 or images[1] != texts[1] or owners.shape != texts[:1]:
        raise ValueError(
            f"expected images [N, D], texts [M, D] and owners [M], got {images}, {texts} and {owners.shape}"
        )
    if len(owners) and (owners.min() < 0 or owners.max() >= images[0]):
        raise ValueError(
            f"expected owners from 0 to {images[0] - 1} for {images[0]} images, got {owners.min()} to {owners.max()}"
        )


def _own_similarities(captions: Array, gallery: Array, answer: Array, block_bytes: int) -> Array:
    """Returns each caption's similarity to its image [M]; infinite, so that nothing is ahead, where there is none."""
    own = np.full(len(captions), np.inf)
    rows = np.flatnonzero(answer >= 0)
    for part in _parts(len(rows), _pairs_at_once(captions.shape[1], block_bytes)):
        own[rows[part]] = pair_similarities(captions[rows[part]], gallery[answer[rows[part]]])
    return own


def _best_captions(own: Array, answer: Array, images: int) -> tuple[Array, Array]:
    """Returns for each image the similarity and index of its best caption: the first of equal ones; −1 for none."""
    best, first = np.full(images, np.inf), np.full(images, -1, dtype=np.int64)
    rows = np.flatnonzero(answer >= 0)
    order = rows[np.lexsort((rows, -own[rows], answer[rows]))]
    owner, place = np.unique(answer[order], return_index=True)
    best[owner], first[owner] = own[order[place]], order[place]
    return best, first


def _ahead(
    captions: Array, gallery: Array, of_text: tuple[Array, Array], of_image: tuple[Array, Array], block_bytes: int
) -> tuple[Array, Array]:
    """Counts the images ahead of each caption's own, and the captions ahead of each image's own best.

    Runs in as many threads as numpy's BLAS has.

    A float32 product decides nearly all pairs. Those within its rounding error of the right answer are computed again,
    exactly.

    Args:
        captions: Fixed point [M, D].
        gallery: Images, fixed point [N, D].
        of_text: For each caption the exact similarity and the index of its right image.
        of_image: For each image those of its best caption.
        block_bytes: The approximate memory to use.
    """
    from threadpoolctl import threadpool_info, threadpool_limits

    of_blas = (pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
    threads = max(1, min(max(of_blas, default=1), block_bytes // _BYTES_PER_THREAD))
    share = block_bytes // threads
    side = min(math.isqrt(share // _BYTES_PER_PAIR), _pairs_at_once(captions.shape[1], share))
    ahead_of_image = np.zeros(len(captions), dtype=np.int64)
    ahead_of_text = np.zeros(len(gallery), dtype=np.int64)

    def count(part: tuple[slice, slice]) -> tuple[Array, Array]:
        rows, columns = part
        block = _Block(captions[rows], gallery[columns], share)
        images = block.ahead(of_text[0][rows], of_text[1][rows] - columns.start, axis=0)
        return images, block.ahead(of_image[0][columns], of_image[1][columns] - rows.start, axis=1)

    parts = list(itertools.product(_parts(len(captions), side), _parts(len(gallery), side)))
    # Each block in one thread: so comparing takes as many as multiplying, and no thread of BLAS waits for another.
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        for (rows, columns), (images, texts) in zip(parts, pool.map(count, parts), strict=True):
            ahead_of_image[rows] += images
            ahead_of_text[columns] += texts
    return ahead_of_image, ahead_of_text


class _Block:
    """The similarities of some captions (axis 0) and some images (axis 1)."""

    def __init__(self, captions: Array, images: Array, block_bytes: int) -> None:
        self.sides = captions, images
        self.block_bytes = block_bytes
        self.product = captions @ images.T

    def ahead(self, right: Array, index: Array, axis: int) -> Array:
        """Counts for each query the candidates ahead of its right answer: integer array [queries].

        Args:
            right: Float64 array [queries]: the exact similarity of the right answer.
            index: Integer array [queries]: its place among the block's candidates; it may be outside of the block.
            axis: That of the queries.
        """
        rounding = tolerance(self.sides[0].shape[1])
        low, high = ((right + sign * rounding).astype(np.float32) for sign in (-1, 1))
        along = (slice(None), None) if axis == 0 else (None, slice(None))
        enough = self.product >= low[along]
        if np.count_nonzero(enough) * _RARE < enough.size:  # few candidates are ahead, as of a good model
            places = np.flatnonzero(enough)
            query = np.divmod(places, enough.shape[1])[axis]
            above = self.product.ravel()[places] > high[query]
            count: Array = np.bincount(query[above], minlength=len(right))
            places = places[~above]
        else:
            above = self.product > high[along]
            count = above.view(np.uint8).sum(axis=1 - axis, dtype=np.int64)
            places = np.flatnonzero(np.bitwise_xor(enough, above, out=enough))
        if len(places) * _DENSE > enough.size:
            return self._ahead_of_exact(right[along], index[along], axis)
        pairs = np.divmod(places, enough.shape[1])
        query, candidate = pairs[axis], pairs[1 - axis]
        exact = self._exact(*pairs)
        before = (exact > right[query]) | ((exact == right[query]) & (candidate < index[query]))
        return count + np.bincount(query[before], minlength=len(right))

    def _ahead_of_exact(self, right: Array, index: Array, axis: int) -> Array:
        """The same from exact similarities of all pairs, for models to which everything looks alike."""
        exact = self.sides[0].astype(np.float64) @ self.sides[1].astype(np.float64).T
        candidate = np.arange(exact.shape[1 - axis])[(None, slice(None)) if axis == 0 else (slice(None), None)]
        before = exact == right
        before &= candidate < index
        before |= exact > right
        counts: Array = before.view(np.uint8).sum(axis=1 - axis, dtype=np.int64)
        return counts

    def _exact(self, rows: Array, columns: Array) -> Array:
        """The exact similarities of some pairs."""
        captions, images = self.sides
        exact = np.empty(len(rows))
        for part in _parts(len(rows), _pairs_at_once(captions.shape[1], self.block_bytes)):
            exact[part] = pair_similarities(captions[rows[part]], images[columns[part]])
        return exact


def _pairs_at_once(width: int, block_bytes: int) -> int:
    """Returns the number of pairs per block: two float64 embeddings of each fit."""
    return block_bytes // (16 * max(width, 1))


def _parts(length: int, at_once: int) -> Iterator[slice]:
    for start in range(0, length, max(at_once, 1)):
        yield slice(start, min(start + max(at_once, 1), length))
