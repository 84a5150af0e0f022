"""scikit-learn's 1,797 handwritten digits (UCI optdigits, 8 × 8 pixels, 17 grey levels), with a split of our own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from testbed.data.source import ImageSource
from testbed.errors import DefinitionError
from testbed.identity import digest_bytes

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

TEST_PER_CLASS = 54  # 540 of the 1,797
CLASS_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@lru_cache(maxsize=1)
def load_digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The images, uint8 [1797, 8, 8] with values 0, 16, …, 255, and their labels, int64 [1797]."""
    import numpy as np
    from sklearn.datasets import load_digits as load

    bunch = load()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)
    return images, bunch.target.astype(np.int64)


@cache
def split_indices(split: str) -> tuple[int, ...]:
    """The indices of the train or the test split: per class, the 54 of lowest SHA-256 of their index are the test.

    A rule that needs no random generator, so that it gives the same split under any version of anything.
    """
    if split not in ("train", "test"):
        raise DefinitionError(f"the digits have the splits 'train' and 'test', not {split!r}")
    _, labels = load_digits()
    test: set[int] = set()
    for label in range(10):
        members = [index for index in range(len(labels)) if labels[index] == label]
        members.sort(key=lambda index: hashlib.sha256(f"digits/{index}".encode()).digest())
        test.update(members[:TEST_PER_CLASS])
    return tuple(index for index in range(len(labels)) if (index in test) == (split == "test"))


class Digits(ImageSource):
    """A split of the digits, or some of its classes; a target is the index of the digit among the classes.

    Args:
        split: ``"train"`` (1,257) or ``"test"`` (540, the classes equally often).
        classes: The digits to keep, in this order; None keeps all ten.
    """

    def __init__(self, split: str = "test", classes: Sequence[int] | None = None) -> None:
        self.name = f"digits-{split}"
        kept = list(range(10)) if classes is None else list(classes)
        if not set(kept) <= set(range(10)) or len(set(kept)) != len(kept):
            raise DefinitionError(f"classes of the digits are different numbers from 0 to 9, not {kept}")
        images, labels = load_digits()
        indices = [index for index in split_indices(split) if labels[index] in kept]
        self.pixels = images[indices]
        self.ids = [f"digits/{index:04d}" for index in indices]
        self.targets = [kept.index(int(labels[index])) for index in indices]
        self.class_names = [CLASS_NAMES[label] for label in kept]

    def image(self, position: int) -> Image.Image:
        """The digit as an RGB image of 8 × 8 pixels, white on black."""
        from PIL import Image

        return Image.fromarray(self.pixels[position]).convert("RGB")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each digit's pixels."""
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]
