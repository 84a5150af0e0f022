"""Recorded predictions: the texts of a captioner for each sample, from a file."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.data.formats.text_records import fault_of, read_text_records
from testbed.errors import DataError, shortened

log = logging.getLogger("testbed")

KEYS = ("caption", "prediction", "summary", "text")

QUESTION = "question"
ASKED = (QUESTION, "A", "B", "answer")  # columns in which a file keeps the questions

_COMPARED_CHARACTERS = 20_000  # a cell of a workbook has at most 32,767
_COMPARED = 200  # the number of ids to compare for a message


@dataclass(frozen=True)
class Predictions:
    """The predictions of one captioner.

    Attributes:
        path: The file.
        texts: The prediction of each sample by its id, possibly blank.
        faults: The reason why the value of a sample in the file is not text, by id.
        absent: The ids with the value null: no prediction was made.
        extras: Additional values beside a text, by id, such as the reasoning that led to it (``"thinking"``).
        asked: The file's columns about the question of each sample, by id: those of `ASKED` that it has.
    """

    path: Path
    texts: dict[str, str]
    faults: dict[str, str]
    absent: frozenset[str]
    extras: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    asked: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def coverage(self, ids: Sequence[str], targets: Sequence[Any] = ()) -> int:
        """The number of samples with a text in the file.

        A log line names an id that is like that of a sample without a prediction, if there is one.

        Args:
            ids: The ids of all samples of the data set.
            targets: The target of each; of a table its columns.

        Raises:
            DataError: If the file has none of these samples, and names ids of both; or if most of its questions are
                others, and names one of both.
        """
        known = self._ids()
        if ids and known.isdisjoint(ids):
            raise DataError(
                f"{self.path} has predictions for {_some(known)}, but none of the {len(ids):,} samples has such an id;"
                f" they are called {_some(ids)}{_near(known, ids)}"
            )
        self._require_same_questions(ids, targets)
        strange, lacking = known.difference(ids), [sample for sample in ids if sample not in known]
        if strange and lacking and (near := _near(strange, lacking)):
            log.warning("%s: %d of its ids are of no sample%s", self.path, len(strange), near)
        return sum(sample in self.texts for sample in ids)

    def _require_same_questions(self, ids: Sequence[str], targets: Sequence[Any]) -> None:
        """Checks that most questions are the same; single ones may have been corrected since.

        One text for all questions, as VLMEvalKit writes it where they are in the pictures, is not compared.
        """
        questions = [row[QUESTION] for row in self.asked.values() if QUESTION in row]
        told = [name for name in ASKED if name != QUESTION or len(set(questions)) > 1 or len(questions) == 1]
        pairs = [
            (sample, {name: self.asked[sample][name] for name in told if name in self.asked[sample]}, target)
            for sample, target in zip(ids, targets, strict=False)
            if sample in self.asked and isinstance(target, Mapping)
        ]
        others = [pair for pair in pairs if _are_others(pair[1], pair[2])]
        if 2 * len(others) > len(pairs):
            sample, asked, target = others[0]
            raise DataError(
                f"{self.path} has answers to other questions: {len(others):,} of {len(pairs):,} differ. That of"
                f" {sample!r} is {_told(asked)} in the file, and {_told(target)} in the data set"
            )

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


def _are_others(asked: Mapping[str, str], target: Mapping[str, Any]) -> bool:
    """Checks whether a file and a data set have different questions, options or right answers for a sample."""
    return any(_core(asked[name]) != _core(str(target[name])) for name in ASKED if asked.get(name) and target.get(name))


def _core(text: str) -> str:
    """Normalises a text that pandas or a workbook has read and written: no blanks, no marks; of a number, its value."""
    try:
        return repr(float(text))
    except ValueError:
        return "".join(filter(str.isalnum, text.casefold()))[:_COMPARED_CHARACTERS]


def _told(columns: Mapping[str, Any]) -> str:
    return "; ".join(f"{name} {shortened(str(columns[name]), 60)}" for name in ASKED if columns.get(name))


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
