"""Files of labels: verdicts of people, or of judges elsewhere, on answers.

A label belongs to one answer. Where a row also has the answer, the label counts for that answer alone: a model that
later answers differently keeps no label of an earlier answer.
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
    """An annotator's label of an answer: a number in [0, 1], and the answer; empty if the file does not have it."""

    score: float
    answer: str = ""

    def is_of(self, text: str | None) -> bool:
        """Checks whether it labels this final part of an answer, ignoring white space, which spreadsheets change."""
        said = canonical(final_part(self.answer) or "")
        return not self.answer.strip() or (text is not None and said.split() == canonical(text).split())


def read_labels(path: Path) -> dict[str, dict[str, list[Label]]]:
    """Reads the labels in a CSV file: model (empty if not given) → sample → the labels of its annotators.

    Columns: ``id`` (of the sample), ``label`` (a number in [0, 1], yes or no, correct or incorrect), and, if there are
    several, ``model`` (whose answer it is about) and ``annotator``; and ``answer``. Rows without a label, and other
    columns, are left out.

    Raises:
        DataError: If the file cannot be read, does not have a column, or has an invalid label; or if an annotator
            labels an answer twice.
    """
    labels: dict[str, dict[str, list[Label]]] = {}
    csv.field_size_limit(_LONGEST)  # thinking models write more than the usual 131,072
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
            labels.setdefault(key[0], {}).setdefault(key[1], []).append(label)
    if not labels:
        raise DataError(f"{path} has no labels")
    return labels


def _score(text: str, where: str) -> float:
    word = text.strip().lower()
    try:
        value = _WORDS[word] if word in _WORDS else float(word)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise DataError(f"{where}: the label {text!r} is neither a number from 0 to 1, nor yes or no")
    return value


class LabelledAnswers(NamedTuple):
    """Labels of a model's answers: position → verdict, and the number of labels that are of other answers."""

    verdicts: dict[int, Verdict]
    outdated: int


def verdicts_in(
    paths: Sequence[str], model: str, ids: Sequence[str], texts: Sequence[str | None], graded: bool
) -> LabelledAnswers:
    """Returns the verdicts of label files on a model's answers; for each answer, the first file with a label counts.

    For several annotators the most frequent label counts, and none if two are equally frequent; for grades, the mean.

    Args:
        paths: The files.
        ids: The ids of the samples.
        texts: The answers; None where there is none.
        graded: True if labels are degrees from 0 to 1.

    Raises:
        DataError: If a file cannot be read, does not name the model of its answers, or has none of the samples.
    """
    verdicts: dict[int, Verdict] = {}
    outdated = 0
    places = {sample_id: place for place, sample_id in enumerate(ids)}
    for path in paths:
        labels = read_labels(Path(path))
        if "" in labels:
            raise DataError(
                f"{path}: expected the column model, which names the model of the labelled answer, in every row"
            )
        given = labels.get(model, {})
        if given and not given.keys() & places.keys():
            raise DataError(
                f"{path} labels {next(iter(given))!r} of {model}, which is not a sample; these are {ids[0]!r}, …"
            )
        for place, said in ((places[sample_id], said) for sample_id, said in given.items() if sample_id in places):
            scores = [label.score for label in said if label.is_of(texts[place])]
            outdated += len(said) - len(scores)
            score = _together(scores, graded)
            if not np.isnan(score):
                verdicts.setdefault(place, Verdict(f"{score:.6g}", score, METHOD))
    return LabelledAnswers(verdicts, outdated)


def _together(labels: Sequence[float], graded: bool) -> float:
    if not labels:
        return float("nan")
    return float(np.mean(labels) if graded else majority(np.array(labels)[:, None])[0])
