"""Recorded answers in VLMEvalKit's files, ``MODEL_SET.xlsx``, ``.tsv`` or ``.json``: a row for each question.

They have the columns of the table of questions without ``image``, and ``prediction``; a model that reasons apart from
its answer adds ``thinking``, and some services add ``extra_records``.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from testbed.data.formats.predictions import ASKED, Predictions
from testbed.data.formats.text_records import ID, fault_of
from testbed.data.tables.files import SUFFIXES, read_records
from testbed.errors import DataError, shortened

log = logging.getLogger("testbed")

INDEX, PREDICTION = "index", "prediction"
EXTRAS = ("thinking", "extra_records")
FAILED = "Failed to obtain answer"  # how the text begins that VLMEvalKit writes where a service gave no answer
_BEGINNING = 1 << 22  # bytes, which hold the first record
_LONGEST_CELL = 32_767  # characters, in a workbook; a longer text is cut silently


def is_prediction_table(path: Path) -> bool:
    """Checks whether a file has answers in VLMEvalKit's form, not in one of `testbed.data.formats.predictions`.

    A JSON file has if its first record has an index and a prediction, and either no id or a question.
    """
    if path.suffix.lower() != ".json":
        return path.suffix.lower() in SUFFIXES
    try:
        with path.open("rb") as file:
            text = file.read(_BEGINNING).decode("utf-8-sig", "ignore").lstrip()
        record, _ = json.JSONDecoder().raw_decode(text, text.index("{")) if text.startswith("[") else (None, 0)
    except (OSError, ValueError, RecursionError):
        return False  # the error is reported when the file is read
    return (
        isinstance(record, dict) and {INDEX, PREDICTION} <= set(record) and (ID not in record or "question" in record)
    )


def read_prediction_table(path: Path) -> Predictions:
    """The answers in a file of VLMEvalKit, by the index of the question.

    An empty prediction is blank; ``None`` and ``NA`` are texts. The text that VLMEvalKit writes where a service gave no
    answer is an error of that sample.

    Raises:
        DataError: If the file cannot be read, lacks a column, or has an index twice.
        MissingExtraError: If it is a workbook and openpyxl is not installed.
    """
    texts: dict[str, str] = {}
    faults: dict[str, str] = {}
    extras: dict[str, dict[str, Any]] = {}
    asked: dict[str, dict[str, str]] = {}
    cut = 0
    columns = set[str]()
    for number, row in enumerate(read_records(path), start=1):
        columns.update(row)
        sample, text = row.get(INDEX, ""), row.get(PREDICTION, "")
        if not sample.strip():
            raise DataError(f"{path}, record {number:,} has no {INDEX}; it has {shortened(', '.join(row))}")
        if sample in texts or sample in faults:
            raise DataError(f"{path} has the index {shortened(sample)} twice; remove one of them")
        asked[sample] = {name: row[name] for name in ASKED if row.get(name)}
        cut += len(text) == _LONGEST_CELL and path.suffix.lower() == ".xlsx"
        fault = text.strip()[:200] if text.strip().startswith(FAILED) else fault_of(text)
        if fault is not None:
            faults[sample] = fault
        else:
            texts[sample] = text
            beside = {name: row[name] for name in EXTRAS if row.get(name, "").strip()}  # such as the reasoning
            extras[sample] = {name: said for name, said in beside.items() if fault_of(said) is None}
    if PREDICTION not in columns:
        content = f"it has {shortened(', '.join(sorted(columns)), 200)}" if columns else "it has no records"
        raise DataError(f"{path} has no {PREDICTION}s, which VLMEvalKit's files of answers have; {content}")
    if cut:
        log.warning(
            "%s: %d of %d answers have %s characters, the most that a cell of a workbook takes; they may have been cut",
            *(path, cut, len(texts) + len(faults), f"{_LONGEST_CELL:,}"),
        )
    kept = {sample: own for sample, own in extras.items() if own}
    return Predictions(path, texts, faults, frozenset(), kept, asked)
