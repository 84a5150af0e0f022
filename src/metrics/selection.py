"""Choosing among the captions of an image and among the images of a caption, as Winoground asks for it.

A right answer must be strictly more similar than every other one: what ties is wrong, so a model to which everything is
alike gets nothing right. So is what is compared with NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from testbed.arrays import Array
from testbed.metrics.similarity import UNIT, fixed_point

_BLOCK = 2**22  # components at a time, to bound memory


class Selection(NamedTuple):
    """The right parts of each instance: boolean arrays [n].

    Attributes:
        text: Every image that has a right caption is most similar to it.
        image: Every right caption is most similar to its image.
        group: Both.
    """

    text: Array
    image: Array
    group: Array


def instance_similarities(images: Array, texts: Array) -> Array:
    """Computes cosine similarities within instances of one shape; equal embeddings have equal ones.

    Args:
        images: Float array [n, I, D] of any scale.
        texts: Float array [n, C, D].

    Returns:
        Float64 array [n, I, C]; NaN where an embedding is zero or not finite.

    Raises:
        ValueError: If the shapes do not fit.
    """
    images, texts = np.asarray(images), np.asarray(texts)
    if images.ndim != 3 or texts.ndim != 3 or images.shape[::2] != texts.shape[::2]:
        raise ValueError(f"expected images [n, I, D] and texts [n, C, D], got {images.shape} and {texts.shape}")
    n, count, width = images.shape
    similarities = np.empty((n, count, texts.shape[1]))
    at_once = max(1, _BLOCK // max((count + texts.shape[1]) * width, 1))
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        left, left_known = _fixed_point(images[part])
        right, right_known = _fixed_point(texts[part])
        product = left @ right.transpose(0, 2, 1)
        known = left_known[:, :, None] & right_known[:, None, :]
        similarities[part] = np.where(known, product / UNIT**2, np.nan)
    return similarities


def _fixed_point(embeddings: Array) -> tuple[Array, Array]:
    whole, known = fixed_point(embeddings.reshape(-1, embeddings.shape[2]))
    return whole.astype(np.float64).reshape(embeddings.shape), known.reshape(embeddings.shape[:2])


def selection_correct(similarities: Array, answers: Array) -> Selection:
    """Marks the instances that are right.

    An image without a right caption need not have one; it still competes for the captions of others. Where several
    images have the same right caption, each of them must beat the images that do not. A pair without competitors is
    right unless it is NaN.

    Args:
        similarities: Float array [n, I, C], larger for what fits better.
        answers: Integer array [n, I]: the index of each image's right caption; −1 for none.

    Raises:
        ValueError: If the shapes do not fit, an answer is out of range, or an instance has no right caption.
    """
    similarities, answers = np.asarray(similarities), np.asarray(answers)
    if similarities.ndim != 3 or answers.shape != similarities.shape[:2]:
        raise ValueError(
            f"expected similarities [n, I, C] and answers [n, I], got {similarities.shape} and {answers.shape}"
        )
    if answers.size and (answers.min() < -1 or answers.max() >= similarities.shape[2]):
        raise ValueError(f"expected answers from -1 to {similarities.shape[2] - 1}")
    right = answers[:, :, None] == np.arange(similarities.shape[2])
    if not right.any(axis=(1, 2)).all():
        raise ValueError("expected a right caption in each instance")
    others = np.where(right, -np.inf, similarities)
    text = _beats(similarities, others.max(axis=2, keepdims=True, initial=-np.inf), right)
    image = _beats(similarities, others.max(axis=1, keepdims=True, initial=-np.inf), right)
    return Selection(text, image, text & image)


def _beats(similarities: Array, rivals: Array, right: Array) -> Array:
    """Checks whether all right pairs of an instance are above their best rival; nothing is above NaN."""
    return np.asarray(((similarities > rivals) | ~right).all(axis=(1, 2)))
