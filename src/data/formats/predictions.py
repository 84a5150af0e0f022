"""Recorded predictions: the texts of a captioner for each sample, from a file."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.data.formats.text_records import fault_of, read_text_records
from testbed.errors import DataError

log = logging.getLogger("testbed")

KEYS = ("caption", "prediction", "summary", "text")

_COMPARED = 200  # the number of ids to compare for a message


@dataclass(frozen=True)
class Predictions:
    """The predictions of one captioner.

    Attributes:
        path: The file.
        texts: The prediction of each sample by its id, possibly blank.
        faults: Why the value of a sample in the file is not text, by id.
        absent: The ids with the value null: no prediction was made.
        extras: What stands beside a text, by id, such as the reasoning that led to it (``"thinking"``).
    """

    path: Path
    texts: dict[str, str]
    faults: dict[str, str]
    absent: frozenset[str]
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def coverage(self, ids: Sequence[str]) -> int:
        """The number of samples with a text in the file.

        A log line names an id that is like that of a sample without a prediction, if there is one.

        Args:
            ids: The ids of all samples of the data set.

        Raises:
            DataError: If the file has none of these samples; names ids of both.
        """
        known = self._ids()
        if ids and known.isdisjoint(ids):
            raise DataError(
                f"{self.path} has predictions for {_some(known)}, but none of the {len(ids):,} samples has such an id;"
                f" they are called {_some(ids)}{_near(known, ids)}"
            )
        strange, lacking = known.difference(ids), [sample for sample in ids if sample not in known]
        if strange and lacking and (near := _near(strange, lacking)):
            log.warning("%s: %d of its ids are of no sample%s", self.path, len(strange), near)
        return sum(sample in self.texts for sample in ids)

    def _ids(self) -> set[str]:
        return {*self.texts, *self.faults, *self.absent}


def read_predictions(path: Path) -> Predictions:
    """The predictions in a file: ``{id: text}``, a list of records with an id and a text, or one record in each line.

    A value that is not text is that sample's error; null means that there is no prediction. Neither is an error here.

    Raises:
        DataError: If the file is missing or has another format, or an id occurs twice.
    """
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    absent = set()
    for sample, value in read_text_records(path, KEYS).items():
        fault = fault_of(value)
        if value is None:
            absent.add(sample)
        elif fault is not None:
            faults[sample] = fault
        else:
            texts[sample] = value
    return Predictions(path, texts, faults, frozenset(absent))


def _near(given: Iterable[str], ids: Sequence[str]) -> str:
    """A hint about two similar ids."""
    bare = {_bare(sample): sample for sample in ids}
    for own in sorted(given)[:_COMPARED]:
        near = [bare[_bare(own)]] if _bare(own) in bare else difflib.get_close_matches(own, ids[:_COMPARED], 1, 0.7)
        if near:
            return f"; is {own!r} meant to be {near[0]!r}?"
    return ""


def _bare(sample: str) -> str:
    """An id in lower case, without folder, extension and leading zeros."""
    return Path(sample).stem.lower().lstrip("0") or "0"


def _some(ids: Iterable[str]) -> str:
    first = sorted(ids)[:3]
    return ", ".join(map(repr, first)) + (", …" if len(first) == 3 else "")
