"""Reference captions without images, as in CLIP-CC-Bench: an id and a summary for each video."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.data.formats.text_records import fault_of, read_text_records
from testbed.data.source import Source
from testbed.errors import DataError
from testbed.identity.describe import digest_bytes

KEYS = ("summary", "caption", "reference", "text")


class TextSamples(Source):
    """Samples with reference captions only; their images or videos are not read.

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
    """The reference captions in a file: a list of ``{"id", "summary"}``, one such object per line, or one object.

    A list of captions may replace a caption.

    Raises:
        DataError: If the file is missing or invalid, an id occurs twice, or a reference is blank or not text.
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
    """Explains why a reference cannot be used; None if it can."""
    fault = fault_of(text)
    if fault is None and not text.strip():
        return "it is blank; write a caption, or remove the sample"
    return fault
