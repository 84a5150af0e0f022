"""Reference captions without images, as CLIP-CC-Bench has them: an id and a summary for each video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.data.source import Source
from testbed.data.text_records import fault_of, read_text_records
from testbed.errors import DataError
from testbed.identity import digest_bytes

KEYS = ("summary", "caption", "reference", "text")


class TextSamples(Source):
    """Samples that are known by their reference captions alone; nothing of them is seen.

    Args:
        name: The data set's name, for messages.
        references: The reference captions of each sample by its id, in the order of the samples.
    """

    def __init__(self, name: str, references: Mapping[str, Sequence[str]]) -> None:
        self.name = name
        self.ids: list[str] = list(references)
        self.targets: list[list[str]] = [list(own) for own in references.values()]

    def digests(self, positions: Sequence[int]) -> list[str]:
        """A digest of each sample's references."""
        return [digest_bytes("\0".join(self.targets[position]).encode()) for position in positions]


def reference_captions(path: Path, name: str) -> TextSamples:
    """The reference captions in a file: a list of ``{"id", "summary"}``, one such object in each line, or one object.

    In place of a caption there may be a list of several.

    Args:
        path: The file; its order is that of the samples.
        name: The data set's name, for messages.

    Raises:
        DataError: If the file is missing or of another form, an id occurs twice, or a reference is blank or no text.
    """
    references: dict[str, list[str]] = {}
    for sample, given in read_text_records(path, KEYS).items():
        own = given if isinstance(given, list) and given else [given]
        fault = next(filter(None, map(_fault, own)), None)
        if fault is not None:
            raise DataError(f"{path}, reference of {sample!r}: {fault}")
        references[sample] = own
    return TextSamples(name, references)


def _fault(text: Any) -> str | None:
    """Why nothing can be compared with a reference; None where something can."""
    fault = fault_of(text)
    if fault is None and not text.strip():
        return "it is blank, so that nothing can be compared with it; give a caption, or leave the sample out"
    return fault
