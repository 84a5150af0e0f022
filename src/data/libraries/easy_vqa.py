"""easy-VQA (Zhou 2019): questions about pictures of one shape each, in the package ``easy-vqa`` with its pictures."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.data.content import ImageDigests
from testbed.data.rows import Row, RowSource
from testbed.data.tables.pictures import read_picture
from testbed.errors import DataError, MissingExtraError
from testbed.identity.describe import digest_bytes

NAME = "easy-vqa"
PACKAGE = "easy_vqa"
YES_NO, SHAPE, COLOUR = "yes or no", "shape", "colour"
KINDS = {"yes": YES_NO, "no": YES_NO, "circle": SHAPE, "rectangle": SHAPE, "triangle": SHAPE}


class EasyVQA(RowSource):
    """The questions of the test split; those about one picture are a group.

    Raises:
        MissingExtraError: If the package is not installed.
        DataError: If its questions are missing or have another form.
    """

    def __init__(self) -> None:
        self.name = NAME
        folder = _folder() / "data" / "test"
        questions = _read(folder / "questions.json")
        self._pictures = folder / "images"
        self._files = [f"{number}.png" for _, _, number in questions]
        self.ids = [str(index) for index in range(len(questions))]
        self.targets = [
            {"question": question, "answer": answer, "category": KINDS.get(answer, COLOUR)}
            for question, answer, _ in questions
        ]
        self.groups = list(self._files)
        self.slices = [{"category": columns["category"]} for columns in self.targets]

    def row(self, position: int) -> Row:
        """A question with its picture; raises SampleError if the picture cannot be read."""
        where = f"{self.name}: question {self.ids[position]}"
        picture = read_picture(self._pictures, self._files[position], where)
        return Row(self.ids[position], self.targets[position], [picture])

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each question and of the bytes of its picture; those of files are cached."""
        names = sorted({self._files[position] for position in positions})
        known = dict(zip(names, ImageDigests(self._pictures).digests(names), strict=True))
        return [
            digest_bytes(json.dumps([self.targets[place], known[self._files[place]]], sort_keys=True).encode())
            for place in positions
        ]


def _folder() -> Path:
    """The folder of the package, which is found without being imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(NAME, NAME, f"the setting {NAME}")
    return Path(next(iter(spec.submodule_search_locations)))


def _read(path: Path) -> list[tuple[str, str, int]]:
    """Reads question, answer, and number of the picture, of each."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"data set {NAME!r}: {path} cannot be read: {error}") from error
    if not isinstance(entries, list) or not entries or not all(_is_question(entry) for entry in entries):
        raise DataError(f"data set {NAME!r}: {path} should be a list of [question, answer, number of the picture]")
    return [tuple(entry) for entry in entries]


def _is_question(entry: Any) -> bool:
    return isinstance(entry, list) and [type(value) for value in entry] == [str, str, int]
