"""MTEB's results: ``results/MODEL/REVISION/TASK.json`` of its repository, or one table of them, with a row for each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.claims.document import Document, read_document
from testbed.claims.reading import Reading
from testbed.entities import OVERALL
from testbed.errors import StoreError
from testbed.extensions.published.forms.columns import mteb_setting
from testbed.metric_specs import HIGHER, MetricSpec
from testbed.metrics.scorers.classification import top

NAME = "MTEB's results"
OTHERS = True
KEYS = ("task_name", "scores", "mteb_version")
ABOUT = ("dataset_revision", "mteb_dataset_name")
LEFT_OUT = ("evaluation_time", "kg_co2_emissions", "date", "evaluation_phases")
OF_SCORES = ("hf_subset", "languages", "mteb_version")
ACCURACY = "accuracy"
MAIN_SCORE = MetricSpec("main_score", "", HIGHER)  # MTEB's task defines this metric, the file does not
DEFAULT = "default"
COLUMNS = (
    *("model", "model_revision", "task", "dataset_revision", "mteb_version", "split", "subset"),
    *(ACCURACY, "path"),
)
NEEDED = ("model", "task", "split", "subset", ACCURACY)
PROTOCOL = {
    "split": "split",
    "subset": "subset",
    "model_revision": "model revision",
    "dataset_revision": "data revision",
    "mteb_version": "mteb",
    "path": "file",
}
META = "model_meta.json"


def matches(document: Document) -> bool:
    """Recognizes the file by the columns of a table, or by the keys of a record."""
    if document.header:
        return set(NEEDED) <= set(document.header)
    return bool(document.records) and {"task_name", "scores"} <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields the model under its repository's name, the setting under the task's if testbed has none for it."""
    if document.header:
        _read_table(document, reading)
    for record in document.records:
        _read_record(document, reading, record)


def _read_table(document: Document, reading: Reading) -> None:
    document.require_columns(COLUMNS)
    for row, fields in document.lines():
        setting = mteb_setting(fields["task"]) or fields["task"]
        protocol = {name: fields.get(column, "") for column, name in PROTOCOL.items()}
        if protocol["subset"] == DEFAULT:
            del protocol["subset"]
        reading.claim(fields["model"], setting, top(1), fields[ACCURACY], row, ACCURACY, protocol=protocol)


def _read_record(document: Document, reading: Reading, record: Mapping[str, Any]) -> None:
    """Yields the accuracy for known tasks, the main score for others."""
    document.require_columns((*KEYS, *ABOUT, *LEFT_OUT), given=record)
    document.require_texts(record, ("task_name",), "the result")
    model, revision, file = _place(document)
    task = record["task_name"]
    setting = mteb_setting(task)
    known = {"model revision": revision, "data revision": record.get("dataset_revision"), "file": file}
    for split, scores in _scores(document, record):
        subset = str(scores.get("hf_subset") or DEFAULT)
        whole = subset == DEFAULT
        version = scores.get("mteb_version") or record.get("mteb_version")
        protocol = {**known, "split": split, "mteb": version, "subset": "" if whole else subset}
        told = {name: str(each) for name, each in protocol.items() if each}
        spec, column = (top(1), ACCURACY) if setting and ACCURACY in scores else (MAIN_SCORE, MAIN_SCORE.name)
        place = split if whole else f"{split}, {subset}"
        part = OVERALL if whole else subset
        reading.claim(model, setting or task, spec, scores.get(column), place, column, protocol=told, slice=part)
        for name, value in scores.items():
            if name not in (*OF_SCORES, column):
                reading.leave(name, value)
    for name in LEFT_OUT:
        reading.leave(name, record.get(name))


def _scores(document: Document, record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each split with the scores of each subset."""
    splits = record["scores"]
    for split, several in splits.items() if isinstance(splits, dict) else [("", None)]:
        if not isinstance(several, list) or not all(isinstance(scores, dict) for scores in several):
            raise StoreError(f"{document.path}: scores should be an object with a list of objects for each split")
        for scores in several:
            yield split, scores


def _place(document: Document) -> tuple[str, str, str]:
    """The model, its revision, and the file in MTEB's repository.

    Raises:
        StoreError: If neither the folders nor a file beside it name the model.
    """
    revision, model, results, *_ = (*document.folders, "", "", "")
    meta = Path(document.path).with_name(META)
    if meta.is_file():
        beside = read_document(meta)
        told = beside.records[0]
        beside.require_texts(told, ("name",), "the model")
        model, revision = told["name"], str(told.get("revision") or revision)
    elif results != "results":
        raise StoreError(
            f"{document.path}: the model is not known; the file should lie in results/MODEL/REVISION, as in MTEB's"
            f" repository, or beside its {META}"
        )
    place = (results, model.replace("/", "__"), revision) if results == "results" else ()
    return model.replace("__", "/"), revision, "/".join([*place, document.name])


def as_table(folder: Path, pattern: str) -> str:
    """Collects the results of a clone on known tasks as one table in `mteb`'s format.

    Args:
        folder: The clone.
        pattern: Pattern of the files to read.

    Raises:
        StoreError: If a file cannot be read.
    """
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(COLUMNS)
    for path in sorted(folder.glob(pattern), key=Path.as_posix):
        if mteb_setting(path.stem) is None:
            continue
        document = read_document(path, path.relative_to(folder).as_posix())
        model, revision, file = _place(document)
        for record in document.records:
            about = [record.get(key) for key in ("task_name", "dataset_revision", "mteb_version")]
            for split, scores in _scores(document, record):
                table.writerow([model, revision, *about, split, scores.get("hf_subset"), scores.get(ACCURACY), file])
    return text.getvalue()
