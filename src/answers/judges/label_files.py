"""Files of labels: what people, or judges elsewhere, said of answers.

A label is of one answer. Where a row has the answer, too, the label counts for that one alone: a model that answers
otherwise later keeps no label of what it said before.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from testbed.answers.verdict import Verdict
from testbed.canonical_text import canonical
from testbed.errors import DataError
from testbed.metrics.inference.judges import majority
from testbed.models.base.thoughts import final_part
from testbed.spreadsheet import plain, reading_csv

ID, LABEL, MODEL, ANNOTATOR, ANSWER = "id", "label", "model", "annotator", "answer"
METHOD = "label"  # of a verdict that a file gives
_LONGEST = 1 << 27  # characters of a cell
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}


class Label(NamedTuple):
    """What an annotator said of an answer: a number in [0, 1], and the answer; empty if the file does not have it."""

    score: float
    answer: str = ""

    def is_of(self, text: str | None) -> bool:
        """Whether it is of this final part of an answer, but for white space, which spreadsheets change."""
        said = canonical(final_part(self.answer) or "")
        return not self.answer.strip() or (text is not None and said.split() == canonical(text).split())


def read_labels(path: Path) -> dict[str, dict[str, list[Label]]]:
    """The labels in a CSV file: model (empty if not said) → sample → the labels of its annotators.

    Columns: ``id`` (of the sample), ``label`` (a number in [0, 1], yes or no, correct or incorrect), and, if there are
    several, ``model`` (whose answer it is about) and ``annotator``; and ``answer``. Rows without a label, and other
    columns, are left out.

    Raises:
        DataError: If the file cannot be read, lacks a column, or a label is none; or an annotator labels an answer
            twice.
    """
    found: dict[str, dict[str, list[Label]]] = {}
    csv.field_size_limit(_LONGEST)  # models that think say more than the 131,072 that are usual
    seen: set[tuple[str, str, str]] = set()
    with reading_csv(path) as reader:
        columns = list(reader.fieldnames or ())
        if not {ID, LABEL} <= set(columns):
            raise DataError(f"{path}: expected the columns id and label; found: {', '.join(columns) or 'none'}")
        for written in reader:
            row = {name: plain(value or "") for name, value in written.items() if name is not None}
            if not (row[LABEL] or "").strip():
                continue
            where = f"{path}, line {reader.line_num}"
            key = (row.get(MODEL) or "", row[ID] or "", row.get(ANNOTATOR) or "")
            if key in seen:
                raise DataError(f"{where}: {row[ID]!r} is labelled twice by the same annotator")
            seen.add(key)
            label = Label(_score(row[LABEL] or "", where), row.get(ANSWER) or "")
            found.setdefault(key[0], {}).setdefault(key[1], []).append(label)
    if not found:
        raise DataError(f"{path} has no labels")
    return found


def _score(text: str, where: str) -> float:
    word = text.strip().lower()
    try:
        value = _WORDS[word] if word in _WORDS else float(word)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise DataError(f"{where}: the label {text!r} is no number from 0 to 1, and not yes or no")
    return value


class LabelledAnswers(NamedTuple):
    """What files say of a model's answers: position → verdict, and how many of their labels are of other answers."""

    verdicts: dict[int, Verdict]
    outdated: int


def verdicts_in(
    paths: Sequence[str], model: str, ids: Sequence[str], texts: Sequence[str | None], graded: bool
) -> LabelledAnswers:
    """What files of labels say of a model's answers; the first file that says something counts.

    Of several annotators the label of most counts, and none if two labels are given equally often; of grades, the mean.

    Args:
        paths: The files.
        model: The model.
        ids: The ids of the samples.
        texts: The answers; None where there is none.
        graded: Whether labels are degrees from 0 to 1.

    Raises:
        DataError: If a file cannot be read, does not say whose answers it labels, or knows none of the samples.
    """
    found: dict[int, Verdict] = {}
    outdated = 0
    places = {sample_id: place for place, sample_id in enumerate(ids)}
    for path in paths:
        labels = read_labels(Path(path))
        if "" in labels:
            raise DataError(f"{path}: expected the column model, which says whose answer a label is of, in every row")
        given = labels.get(model, {})
        if given and not given.keys() & places.keys():
            raise DataError(
                f"{path} labels {next(iter(given))!r} of {model}, which is no sample; these are {ids[0]!r}, …"
            )
        for place, said in ((places[sample_id], said) for sample_id, said in given.items() if sample_id in places):
            scores = [label.score for label in said if label.is_of(texts[place])]
            outdated += len(said) - len(scores)
            score = _together(scores, graded)
            if not np.isnan(score):
                found.setdefault(place, Verdict(f"{score:.6g}", score, METHOD))
    return LabelledAnswers(found, outdated)


def _together(labels: Sequence[float], graded: bool) -> float:
    if not labels:
        return float("nan")
    return float(np.mean(labels) if graded else majority(np.array(labels)[:, None])[0])
