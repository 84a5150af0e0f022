"""VLMEvalKit's files beside a file of answers: reports, and the score of each answer. Pickles are never read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.data.formats.annotations import read_json
from testbed.data.tables.answers import INDEX
from testbed.data.tables.files import SUFFIXES, read_records
from testbed.errors import DataError

# How the names of reports end, and of tables with a row for each answer.
REPORTS = (
    *("_acc.csv", "_acc.json", "_acc_all.csv", "_score.csv", "_score.json", "_score_fine.csv", "_rating.json"),
    "_results.tsv",  # 3DSRBench's
)
TABLES = tuple(
    f"_{word}{suffix}" for word in ("result", "results", "auxmatch", "score") for suffix in (".xlsx", ".tsv", ".json")
)
SCORES = ("hit", "eval_score", "score")  # the column with the score, the first that is there
MATCHES = "eval_match"

_TRUTH = {"true": 1.0, "false": 0.0}

Value = float | str


@dataclass(frozen=True)
class RecordedScores:
    """Recorded scores beside a file of answers.

    Attributes:
        predictions: The file of answers.
        reports: The reports by file name: for a CSV file its rows, by column, numbers as floats and empty cells left
            out; for a JSON file its value.
        answers: The score of each answer by its index, by file name; answers whose score is not a number are left out.
        matches: The match of an answer with each reference (the column ``eval_match``), by its index, by file name.
            Their meaning depends on the set: for ANLS they are distances. ``eval_score`` is their mean, whatever they
            are, and not the score that VLMEvalKit reports.
    """

    predictions: Path
    reports: Mapping[str, Sequence[Mapping[str, Value]] | Any]
    answers: Mapping[str, Mapping[str, float]]
    matches: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)


def recorded_scores(path: Path) -> RecordedScores:
    """The scores that VLMEvalKit recorded beside a file of answers, if there are any.

    They are the files ``MODEL_SET_acc.csv``, ``_score.csv``, ``_score.json``, ``_rating.json``, ``_result.xlsx`` and
    others, with the name of a judge before the last word or without, in the folder of the file of answers (or in that
    of the file which it links to).

    Raises:
        DataError: If the file of answers does not exist, or one of the others cannot be read.
    """
    if not path.is_file():
        raise DataError(f"the file of answers {path} does not exist")
    reports: dict[str, Any] = {}
    answers: dict[str, Mapping[str, float]] = {}
    matches: dict[str, Mapping[str, Sequence[float]]] = {}
    for folder in dict.fromkeys((path.absolute().parent, path.resolve().parent)):
        for file in _beside(folder, path.stem):
            if file.name in reports or file.name in answers:
                continue
            rows = _rows(file) if file.name.endswith(TABLES) else None
            if rows is not None:
                answers[file.name], matches[file.name] = _answers(rows), _matches(rows)
            elif file.name.endswith(REPORTS):
                reports[file.name] = _report(file)
    return RecordedScores(path, reports, answers, matches)


def is_table_of_scores(path: Path) -> bool:
    """Checks whether a table with a row for each answer is VLMEvalKit's copy with scores, beside the file of answers.

    The copy is called as that file, with a word such as ``_exact_matching_result`` after it.
    """
    if not path.name.endswith(TABLES):
        return False
    parts = path.stem.split("_")
    return any(
        path.with_name(f"{'_'.join(parts[:count])}{suffix}").is_file()
        for count in range(1, len(parts))
        for suffix in SUFFIXES
    )


def _beside(folder: Path, stem: str) -> list[Path]:
    """The files of scores that belong to a file of answers, but not to one with a longer name."""
    there = sorted(path for path in folder.iterdir() if path.name.startswith(f"{stem}_") and path.is_file())
    files = [path for path in there if path.name.endswith((*REPORTS, *TABLES))]
    # MODEL_MMBench.xlsx and MODEL_MMBench_V11.xlsx lie in one folder.
    others = [path.stem for path in there if path.suffix in SUFFIXES and path not in files]
    return [path for path in files if not any(path.name.startswith(f"{other}_") for other in others)]


def _report(file: Path) -> Any:
    if file.suffix == ".json":
        return read_json(file)
    return [{name: _value(text) for name, text in row.items()} for row in read_records(file)]


def _rows(file: Path) -> list[Mapping[str, str]] | None:
    """Returns the rows of a table with a row for each answer; None if the file does not have them."""
    if file.suffix == ".json":
        value = read_json(file)
        if not (isinstance(value, list) and value and all(isinstance(row, dict) and INDEX in row for row in value)):
            return None
    rows = [row for row in read_records(file) if INDEX in row]
    return None if not rows and file.name.endswith(REPORTS) else rows


def _answers(rows: Sequence[Mapping[str, str]]) -> dict[str, float]:
    """The score of each row."""
    column = next((name for name in SCORES if any(name in row for row in rows)), None)
    texts = {row[INDEX]: row.get(column, "") for row in rows} if column is not None else {}
    scores = {index: _score(text) for index, text in texts.items()}
    return {index: value for index, value in scores.items() if isinstance(value, float)}


def _matches(rows: Sequence[Mapping[str, str]]) -> dict[str, list[float]]:
    """The numbers in the column `MATCHES` of each row that has a list of numbers there."""
    cells = {row[INDEX]: row.get(MATCHES, "").strip() for row in rows}
    lists = {
        index: [_score(part) for part in cell[1:-1].split(",")]
        for index, cell in cells.items()
        if cell.startswith("[") and cell.endswith("]")
    }
    numbers = {index: [value for value in values if isinstance(value, float)] for index, values in lists.items()}
    return {index: own for index, own in numbers.items() if own and len(own) == len(lists[index])}


def _score(text: str) -> Value:
    return _TRUTH.get(text.strip().lower(), _value(text))


def _value(text: str) -> Value:
    """Returns a number, or a text that is not one."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
