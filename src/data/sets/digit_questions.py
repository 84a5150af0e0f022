"""Questions about the handwritten digits, as a table has them: multiple choice, and yes or no."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Literal

from testbed.data.rows import Picture, Row, RowSource
from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.identity.describe import digest_bytes

Kind = Literal["choice", "yes-no"]
LETTERS = "ABCD"


class DigitQuestions(RowSource):
    """Questions about each test digit.

    Args:
        kind: ``"choice"``: which digit it is, of four. ``"yes-no"``: two questions about each digit, one of which is to
            be answered with yes, as in MME.
    """

    def __init__(self, kind: Kind) -> None:
        self.name = f"digits-vqa.{kind}"
        self._digits = Digits("test")
        made = _choice if kind == "choice" else _yes_no
        rows = [
            (position, columns)
            for position, label in enumerate(self._digits.targets)
            for columns in made(position, label)
        ]
        self._places = [position for position, _ in rows]
        self.targets = [columns for _, columns in rows]
        self.ids = [str(index) for index in range(len(rows))]
        self.groups = [self._digits.ids[place] for place in self._places] if kind == "yes-no" else None
        self.slices = [{"category": columns["category"]} for columns in self.targets]

    def row(self, position: int) -> Row:
        """A question, with the digit as a PNG file of 8 × 8 pixels."""
        file = io.BytesIO()
        place = self._places[position]
        self._digits.image(place).save(file, "PNG")
        return Row(self.ids[position], self.targets[position], [Picture(file.getvalue(), self._digits.ids[place])])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each question and of its digit's pixels."""
        pixels = self._digits.digests([self._places[position] for position in positions])
        return [
            digest_bytes(json.dumps([self.targets[position], own], sort_keys=True).encode())
            for position, own in zip(positions, pixels, strict=True)
        ]


def _choice(position: int, label: int) -> list[dict[str, str]]:
    """The digit among the three that follow it; where it stands changes from one question to the next."""
    right = position % len(LETTERS)
    names = [CLASS_NAMES[(label + step) % 10] for step in range(len(LETTERS))]
    options = dict(zip(LETTERS, names[-right:] + names[:-right] if right else names, strict=True))
    question = "Which digit is in the picture?"
    return [{"question": question, **options, "answer": LETTERS[right], "category": _category(label)}]


def _yes_no(position: int, label: int) -> list[dict[str, str]]:
    asked = [(CLASS_NAMES[label], "Yes"), (CLASS_NAMES[(label + 1) % 10], "No")]
    return [
        {
            "question": f"Is this the digit {name}? Please answer yes or no.",
            "answer": answer,
            "category": _category(label),
        }
        for name, answer in asked
    ]


def _category(label: int) -> str:
    return "even" if label % 2 == 0 else "odd"
