"""Files of labels: what people, or judges elsewhere, said of answers."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from testbed.answers.verdict import Verdict
from testbed.errors import DataError
from testbed.metrics.judges import majority

ID, LABEL, MODEL, ANNOTATOR = "id", "label", "model", "annotator"
METHOD = "label"  # of a verdict that a file gives
_WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}


def read_labels(path: Path) -> dict[str, dict[str, list[float]]]:
    """The labels in a CSV file: model (empty if not said) → sample → the labels of its annotators.

    Columns: ``id`` (of the sample), ``label`` (a number in [0, 1], yes or no, correct or incorrect), and, if there are
    several, ``model`` (whose answer it is about) and ``annotator``. Rows without a label, and other
    columns, are left out.

    Raises:
        DataError: If the file cannot be read, lacks a column, or a label is none; or an annotator labels an answer
            twice.
    """
    found: dict[str, dict[str, list[float]]] = {}
    seen: set[tuple[str, str, str]] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or ())
            if not {ID, LABEL} <= set(columns):
                raise DataError(f"{path}: expected the columns id and label; found: {', '.join(columns) or 'none'}")
            for row in reader:
                if not (row[LABEL] or "").strip():
                    continue
                where = f"{path}, line {reader.line_num}"
                key = (row.get(MODEL) or "", row[ID] or "", row.get(ANNOTATOR) or "")
                if key in seen:
                    raise DataError(f"{where}: {row[ID]!r} is labelled twice by the same annotator")
                seen.add(key)
                found.setdefault(key[0], {}).setdefault(key[1], []).append(_label(row[LABEL] or "", where))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not a CSV file in UTF-8: {error}") from error
    if not found:
        raise DataError(f"{path} has no labels")
    return found


def _label(text: str, where: str) -> float:
    word = text.strip().lower()
    try:
        value = _WORDS[word] if word in _WORDS else float(word)
    except ValueError:
        value = float("nan")
    if not 0 <= value <= 1:
        raise DataError(f"{where}: the label {text!r} is no number from 0 to 1, and not yes or no")
    return value


def verdicts_in(paths: Sequence[str], model: str, ids: Sequence[str], graded: bool) -> dict[int, Verdict]:
    """Position → what files of labels say of a model's answers; the first file that says something counts.

    Of several annotators the label of most counts, and none if two labels are given equally often; of grades, the mean.

    Args:
        paths: The files.
        model: The model.
        ids: The ids of the samples.
        graded: Whether labels are degrees from 0 to 1.

    Raises:
        DataError: If a file cannot be read, does not say whose answers it labels, or knows none of the samples.
    """
    found: dict[int, Verdict] = {}
    places = {each: place for place, each in enumerate(ids)}
    for path in paths:
        labels = read_labels(Path(path))
        if "" in labels:
            raise DataError(f"{path}: expected the column model, which says whose answer a label is of, in every row")
        given = labels.get(model, {})
        if given and not given.keys() & places.keys():
            raise DataError(
                f"{path} labels {next(iter(given))!r} of {model}, which is no sample; these are {ids[0]!r}, …"
            )
        for each, said in given.items():
            score = _together(said, graded)
            if each in places and not np.isnan(score):
                found.setdefault(places[each], Verdict(f"{score:.6g}", score, METHOD))
    return found


def _together(labels: Sequence[float], graded: bool) -> float:
    return float(np.mean(labels) if graded else majority(np.array(labels)[:, None])[0])
