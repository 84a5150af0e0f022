"""scikit-learn's 1,797 handwritten digits (UCI optdigits, 8 × 8 pixels, 17 grey levels), with a split of our own."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from testbed.arrays import Array
from testbed.data.source import ImageSource
from testbed.errors import DataError, DefinitionError
from testbed.identity.describe import digest_bytes
from testbed.paths import cache_dir, write_atomically

if TYPE_CHECKING:
    from PIL import Image

TEST_PER_CLASS = 54  # 540 of the 1,797
_DIGEST = "0b7e9c3202d7bcd255d6a19a238d3743"  # of the images' bytes and the labels'
CLASS_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@lru_cache(maxsize=1)
def load_digits() -> tuple[Array, Array]:
    """The images, uint8 [1797, 8, 8] with values 0, 16, …, 255, and their labels, int64 [1797].

    They are cached in a file, because importing scikit-learn takes two seconds in every process.

    Raises:
        DataError: If scikit-learn has different digits.
    """
    kept = cache_dir("digits") / "digits.npz"
    arrays = _read(kept)
    if arrays is None:
        arrays = _load()
        if _digest(*arrays) != _DIGEST:
            raise DataError("the digits of the installed scikit-learn are not the expected 1,797")
        file = io.BytesIO()
        np.savez_compressed(file, images=arrays[0], labels=arrays[1])
        write_atomically(kept, file.getvalue())
    return arrays


def _load() -> tuple[Array, Array]:
    from sklearn.datasets import load_digits as load

    bunch = load()
    return np.rint(bunch.images * (255 / 16)).astype(np.uint8), bunch.target.astype(np.int64)


def _read(path: Path) -> tuple[Array, Array] | None:
    """The cached digits, if they are complete."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            arrays = kept["images"], kept["labels"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return arrays if _digest(*arrays) == _DIGEST else None


def _digest(images: Array, labels: Array) -> str:
    return digest_bytes(images.tobytes() + labels.tobytes())


@cache
def split_indices(split: str) -> tuple[int, ...]:
    """The indices of the train or the test split: the test has the 54 lowest SHA-256 of the index per class.

    This rule needs no random generator, so the split does not depend on any version.
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
        classes: The digits to use, in this order; None: all ten.
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
