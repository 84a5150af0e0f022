"""Results in CLIP benchmark's formats: one record per cell, in JSON files or as rows of a CSV file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.claims.tables import named
from testbed.entities import ELSEWHERE, OVERALL, Result
from testbed.errors import StoreError, shortened
from testbed.eval_settings.benchmark_families.benchmark_names import LINEAR_PROBE
from testbed.eval_settings.benchmark_families.clip_benchmark_names import (
    CAPTIONING,
    CLASSIFICATION,
    ENGLISH,
    RETRIEVAL,
    SELECTION,
    TASKS,
    ClipBenchmarkFields,
    canonical,
    place_of,
    setting_of,
)
from testbed.jsontext import to_json
from testbed.metric_specs import NEITHER, NEVER, MetricSpec
from testbed.metrics.captions.rows import SPECS as CAPTION_SPECS
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top
from testbed.metrics.scorers.multilabel import MEAN_AVERAGE_PRECISION
from testbed.metrics.scorers.retrieval import recall
from testbed.metrics.scorers.selection import ACC, IMAGE_ACC, TEXT_ACC
from testbed.paths import safe_name, write_atomically
from testbed.spreadsheet import as_csv
from testbed.stored_results.labels import prompts

if TYPE_CHECKING:
    from testbed.db.store import Store

FORM = "CLIP benchmark's table"
KEYS = ("dataset", "model", "pretrained", "task")
EXACT_SETTING = "eval_setting"  # testbed's name of the setting, if the record's other fields do not determine it
LABEL = "evaluation"  # distinguishes an evaluation from the reported one, which has no such field
TEXTS = (*KEYS, "language", EXACT_SETTING, LABEL, "model_fullname")
PROBE = ("fewshot_k", "epochs", "seed", "normalized")  # how a probe was trained; listed among the metrics
PROBE_PREFIX = "lp_"
NAMES = {"acc1": "top1", "acc5": "top5"}
ACCURACIES = ("acc1", "acc5", "mean_per_class_recall")
AVERAGE_PRECISION = "mean_average_precision"
SELECTIONS = ("image_acc", "text_acc", "acc")
CAPTIONS = ("Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr", "SPICE")
WEIGHT_DECAY = MetricSpec("weight_decay", "", NEITHER, lowest=0, headline=NEVER)  # listed among the metrics of probes
SPECS = {
    spec.name: spec
    for spec in (
        *(top(1), top(5), MEAN_PER_CLASS_RECALL, MEAN_AVERAGE_PRECISION),
        *(TEXT_ACC, IMAGE_ACC, ACC, *CAPTION_SPECS.values(), WEIGHT_DECAY),
    )
}
FALLBACK = MetricSpec("")
RECALL = re.compile(r"(image|text)_retrieval_recall@(\d+)")
# The columns of CLIP benchmark's published table, in its order; others are inserted before the last one.
COLUMNS = (*ACCURACIES, *KEYS, AVERAGE_PRECISION, "image_retrieval_recall@5", "text_retrieval_recall@5")


# Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    """One cell: its fields as text, empty if missing.

    Attributes:
        fields: Column → text.
        file: The file.
        place: The place in the file, such as ``"row 5"``.
    """

    fields: Mapping[str, str]
    file: str
    place: str

    @property
    def where(self) -> str:
        """The location, for messages."""
        return f"{self.file}, {self.place}"


def records_of(
    path: str,
    lines: Iterable[tuple[str, dict[str, str]]],
    records: Sequence[Mapping[str, Any]],
    leave: Callable[[str, str], None],
) -> Iterator[Record]:
    """Yields the rows of a table or the records of a JSON file; numbers stay text.

    Args:
        path: The file.
        lines: The rows.
        records: The records.
        leave: Called with records without metrics, which CLIP benchmark could not compute.

    Raises:
        StoreError: If a record is invalid.
    """
    for place, fields in lines:
        yield Record(fields, path, place)
    for number, record in enumerate(records, start=1):
        place = f"record {number}"
        if "metrics" in record and record["metrics"] is None:
            leave("metrics", "null")
        else:
            yield Record(_json_fields(record, f"{path}, {place}"), path, place)


def _json_fields(record: Any, where: str) -> dict[str, str]:
    metrics = record.get("metrics") if isinstance(record, dict) else None
    if not isinstance(metrics, dict) or not all(isinstance(record.get(key), str) for key in KEYS):
        raise StoreError(
            f"{where}: an object with {', '.join(KEYS)} and metrics was expected, as CLIP benchmark writes it"
        )
    fields = {key: value for key, value in record.items() if key in TEXTS and isinstance(value, str)}
    for name, value in metrics.items():
        if value is not None and not isinstance(value, bool | str):
            raise StoreError(f"{where}: the metric {name} should be a number, not {value!r}")
        fields[name] = "" if value is None else str(value)
    return fields


def cell_of(record: Record) -> tuple[str, str]:
    """Determines the model and the setting of a record.

    Raises:
        StoreError: If a field is invalid.
    """
    fields, where = record.fields, record.where
    probe = _probe(record) if fields["task"] == LINEAR_PROBE else {}
    pair = (name.strip() for name in (fields["model"], fields["pretrained"]))
    model = named(",".join(name for name in pair if name), where)
    place = ClipBenchmarkFields(
        fields["dataset"].strip(), fields["task"], fields.get("language", "").strip() or ENGLISH, probe
    )
    exact = fields.get(EXACT_SETTING, "").strip()
    setting = canonical(exact) if exact else setting_of(place)
    return model, named(setting, where, "eval setting")


def metric_columns(record: Record) -> Iterator[tuple[str, MetricSpec]]:
    """Finds the columns of a record with numbers, and their metrics.

    Raises:
        StoreError: If a column is not a metric of CLIP benchmark.
    """
    for column, text in record.fields.items():
        if column in TEXTS or column in PROBE or not text.strip():
            continue
        name = column.removeprefix(PROBE_PREFIX) if record.fields["task"] == LINEAR_PROBE else column
        yield column, _spec(NAMES.get(name, name), record.where, column)


def _spec(name: str, where: str, column: str) -> MetricSpec:
    """Returns the declaration of a column's metric.

    Raises:
        StoreError: If CLIP benchmark has no such metric.
    """
    if found := RECALL.fullmatch(name):
        return recall(f"{found[1]}_retrieval", int(found[2]))
    if name not in SPECS:
        further = "image_retrieval_recall@K, text_retrieval_recall@K"
        raise StoreError(
            f"{where}: the column {shortened(column)} is not a metric of CLIP benchmark; its metrics are"
            f" {', '.join(ACCURACIES)}, {AVERAGE_PRECISION}, {', '.join((*SELECTIONS, *CAPTIONS))}, {further}, of"
            f" probes {PROBE_PREFIX}… and {WEIGHT_DECAY.name}; remove the column"
        )
    return SPECS[name]


def _probe(record: Record) -> dict[str, Any]:
    """Parses the training parameters of a probe; pandas writes integers as floats if some are missing."""
    probe: dict[str, Any] = {}
    for key in PROBE:
        text = record.fields.get(key, "").strip()
        if not text or text.lower() == "nan":
            continue
        if key == "normalized":
            probe[key] = text.lower() not in ("false", "0", "0.0")
            continue
        if not re.fullmatch(r"-?\d{1,9}(\.0*)?", text):
            raise StoreError(f"{record.where}, column {key}: a whole number was expected, {text!r} was found")
        probe[key] = int(text.partition(".")[0])
    return probe


# Writing ----------------------------------------------------------------------------------------------------------


def records_by_cell(
    results: Iterable[Result],
    labels: Mapping[int, str] | None = None,
    texts: Mapping[int, Mapping[str, Any]] | None = None,
) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
    """Yields one record for each cell with metrics of CLIP benchmark, as in its JSON files, in the order of results.

    Measured numbers take precedence over imported ones. Missing metrics of a task are None.

    Args:
        results: The visible results, and those of further evaluations; grouped by cell.
        labels: The labels of these further evaluations, by id; each makes another record of its cell.
        texts: Further fields of records by evaluation id, such as ``classnames``.

    Yields:
        The setting, the model and the label of a cell, and its record.
    """
    known = labels or {}
    placed = cache(_placed)  # a setting has many models
    for key, of_cell in groupby(
        results, key=lambda each: (each.eval_setting, each.model, known.get(each.evaluation_id, ""))
    ):
        origins: dict[bool, dict[str, Result]] = {}
        for result in of_cell:
            if result.slice == OVERALL:
                origins.setdefault(result.origin in ELSEWHERE, {})[result.metric] = result
        if not origins:
            continue
        setting, model, label = key
        chosen = origins.get(False) or origins[True]
        record = _record(setting, model, chosen, placed)
        if record is not None:
            evaluation = next(iter(chosen.values())).evaluation_id
            yield key, {**record, **({LABEL: label} if label else {}), **(texts or {}).get(evaluation, {})}


def dumped_texts(store: Store, results: Iterable[Result], keys: Sequence[str]) -> dict[int, dict[str, Any]]:
    """The class names and templates of zero-shot evaluations, as CLIP benchmark's ``--dump_…`` options write them.

    Args:
        store: The results store.
        results: Results of the evaluations.
        keys: ``"classnames"``, ``"templates"`` or both.
    """
    evaluations = {result.evaluation_id for result in results if result.origin not in ELSEWHERE}
    found = {evaluation: prompts(store, store.evaluations.get(evaluation)) for evaluation in evaluations}
    names = {"classnames": "class_names", "templates": "templates"}
    return {
        each: {key: given[names[key]] for key in keys if given.get(names[key]) is not None}
        for each, given in found.items()
        if given is not None
    }


def _placed(setting: str, metrics: frozenset[str]) -> tuple[ClipBenchmarkFields, bool]:
    """CLIP benchmark's fields for a setting with such metrics, and whether they determine the setting."""
    place = place_of(setting, metrics)
    return place, setting_of(place) == setting


def _record(
    setting: str,
    model: str,
    results: Mapping[str, Result],
    placed: Callable[[str, frozenset[str]], tuple[ClipBenchmarkFields, bool]],
) -> dict[str, Any] | None:
    values = {name: result.value for name, result in results.items() if result.unit == SPECS.get(name, FALLBACK).unit}
    place, determined = placed(setting, frozenset(values))
    metrics = _METRICS[place.task](values)
    if all(value is None for value in metrics.values()):
        return None
    architecture, _, pretrained = model.partition(",")
    if not pretrained:  # a name without a comma, or with a trailing one
        architecture = model
    record: dict[str, Any] = {
        "dataset": place.dataset,
        "model": architecture,
        "pretrained": pretrained,
        "task": place.task,
        "metrics": {**metrics, **place.probe},
        "language": place.language,
    }
    if not determined:
        record[EXACT_SETTING] = setting
    return record


def _classification(values: Mapping[str, float | None]) -> dict[str, float | None]:
    found = {name: values.get(NAMES.get(name, name)) for name in ACCURACIES}
    if AVERAGE_PRECISION not in values:
        return found
    multilabel = {AVERAGE_PRECISION: values[AVERAGE_PRECISION]}
    return multilabel if all(value is None for value in found.values()) else {**found, **multilabel}


def _recalls(values: Mapping[str, float | None]) -> dict[str, float | None]:
    found = [(int(match[2]), match[1], name) for name in values if (match := RECALL.fullmatch(name))]
    return {name: values[name] for _, _, name in sorted(found)}


def _linear_probe(values: Mapping[str, float | None]) -> dict[str, float | None]:
    found = {f"{PROBE_PREFIX}{name}": values.get(NAMES.get(name, name)) for name in ACCURACIES}
    return {**found, "weight_decay": values["weight_decay"]} if "weight_decay" in values else found


_METRICS: dict[str, Callable[[Mapping[str, float | None]], dict[str, float | None]]] = {
    CLASSIFICATION: _classification,
    RETRIEVAL: _recalls,
    SELECTION: lambda values: {name: values.get(name) for name in SELECTIONS},
    LINEAR_PROBE: _linear_probe,
    CAPTIONING: lambda values: {name: values[name] for name in CAPTIONS if name in values},
}
assert set(_METRICS) == set(TASKS)


def write_json(records: Iterable[Mapping[str, Any]], folder: Path) -> int:
    """Writes each record to a separate file; returns the number of files.

    Raises:
        StoreError: If the folder cannot be written.
    """
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for written, record in enumerate(records, start=1):  # noqa: B007 -- it is what is returned
            write_atomically(folder / file_name(record), f"{to_json(record)}\n".encode())
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
    return written


def file_name(record: Mapping[str, Any]) -> str:
    """The file name of a record: unique for each cell, and valid on every system."""
    probe = {key: record["metrics"][key] for key in PROBE if key in record["metrics"]}
    place = ClipBenchmarkFields(record["dataset"], record["task"], record["language"], probe)
    setting = record.get(EXACT_SETTING) or setting_of(place)
    model = ",".join(filter(None, (record["model"], record["pretrained"])))
    label = f"__{safe_name(record[LABEL])}" if LABEL in record else ""
    return f"{safe_name(setting)}__{safe_name(model)}{label}.json"


def write_csv(records: Sequence[Mapping[str, Any]], path: Path) -> int:
    """Writes CLIP benchmark's table, and returns the number of its rows.

    The columns are those of its published table in their order. Before the last one, ``model_fullname``, come other
    metrics, ``language`` if one is not English, ``eval_setting`` if the other columns do not determine it, and
    ``evaluation`` if there are evaluations besides the reported ones.

    Raises:
        StoreError: If the file cannot be written.
    """
    rows = [
        {**{key: value for key, value in record.items() if key != "metrics"}, **record["metrics"]} for record in records
    ]
    there = {name for row in rows for name, value in row.items() if value is not None}
    columns = [*COLUMNS, *(name for name in _further(there) if name in there)]
    columns += ["language"] * any(row["language"] != ENGLISH for row in rows)
    columns += [*(name for name in (EXACT_SETTING, LABEL) if name in there), "model_fullname"]
    table = [columns]
    for row in rows:
        row["model_fullname"] = f"{row['model']} {row['pretrained']}".strip()
        table.append(["" if row.get(name) is None else row[name] for name in columns])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, as_csv(table).encode())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(rows)


def _further(names: Iterable[str]) -> list[str]:
    """The columns of metrics that are not in the published table, in a fixed order."""
    found = (match for name in names if name not in COLUMNS and (match := RECALL.fullmatch(name)))
    recalls = [match[0] for match in sorted(found, key=lambda match: (int(match[2]), match[1]))]
    probe = [*(f"{PROBE_PREFIX}{name}" for name in ACCURACIES), "weight_decay", *PROBE]
    return [*recalls, *SELECTIONS, *probe, *CAPTIONS]
