"""The handwritten digits as data sets of other tasks: with captions, with a choice of captions, in pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.data.source import ImageSource
from testbed.identity.describe import digest_bytes

if TYPE_CHECKING:
    from PIL import Image

CAPTIONS = ("a photo of the digit {c}", "a handwritten {c}", "the number {c}", "an image of a {c}")


class CaptionedDigits(Digits):
    """One test digit of each class, with four captions each."""

    def __init__(self) -> None:
        super().__init__("test")
        kept = [self.targets.index(label) for label in range(len(CLASS_NAMES))]
        self.name = "digits-captions"
        self.pixels = self.pixels[kept]
        self.ids = [self.ids[place] for place in kept]
        self.targets = [[caption.replace("{c}", name) for caption in CAPTIONS] for name in CLASS_NAMES]
        self.class_names = None


# What the lines of each digit are like.
LINES: dict[str, tuple[str, ...]] = {
    "open curves": ("two", "three", "five"),
    "straight lines": ("one", "four", "seven"),
    "one loop": ("zero", "six", "nine"),
    "two loops": ("eight",),
}


def description(name: str) -> str:
    """Describes what can be seen of a digit, such as "a handwritten seven with straight lines."."""
    return f"a handwritten {name} with {next(lines for lines, names in LINES.items() if name in names)}."


class DescribedDigits(Digits):
    """Every test digit with its description."""

    def __init__(self) -> None:
        super().__init__("test")
        self.name = "digits-captioning"
        self.targets = [[description(CLASS_NAMES[label])] for label in self.targets]
        self.class_names = None


class DigitChoices(Digits):
    """Every test digit, with the right caption and the caption of the next digit."""

    def __init__(self) -> None:
        super().__init__("test")
        self.name = "digits-selection"
        self.groups = list(self.ids)
        self.targets = [
            {"captions": [CAPTIONS[0].replace("{c}", CLASS_NAMES[(label + step) % 10]) for step in (0, 1)], "answer": 0}
            for label in self.targets
        ]
        self.class_names = None


class DigitPairs(ImageSource):
    """Two test digits side by side; both classes apply."""

    def __init__(self) -> None:
        digits = Digits("test")
        half = len(digits) // 2
        self.name = "digits-pairs"
        self._left, self._right = digits.pixels[:half], digits.pixels[half : 2 * half]
        self.ids = [f"{digits.ids[index]}+{digits.ids[half + index].removeprefix('digits/')}" for index in range(half)]
        self.targets = [sorted({digits.targets[index], digits.targets[half + index]}) for index in range(half)]
        self.class_names = list(CLASS_NAMES)

    def image(self, position: int) -> Image.Image:
        """The pair as an RGB image of 16 × 8 pixels (width × height), white on black."""
        import numpy as np
        from PIL import Image

        return Image.fromarray(np.hstack([self._left[position], self._right[position]])).convert("RGB")

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each pair's pixels."""
        return [digest_bytes(self._left[place].tobytes() + self._right[place].tobytes()) for place in positions]
