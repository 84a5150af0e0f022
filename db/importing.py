"""Published result tables into the store, and the store out as such a table.

Imported numbers are evaluations without outputs, marked ``imported`` with their source. They stand beside one's own
evaluations of the same cell, never over them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from testbed.db.entities import FRACTION, OVERALL, Metric, Result
from testbed.db.names import check_name
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.identity import digest

# ImageNet-testbed's table has two columns for the settings with frame sets: metrics of the setting before the suffix.
METRIC_SUFFIXES = ("pm0", "pm10")
CLIP_BENCHMARK_KEYS = ("dataset", "model", "pretrained", "task")
CLIP_BENCHMARK_TEXT = (*CLIP_BENCHMARK_KEYS, "model_fullname", "language")
CLIP_BENCHMARK_METRICS = {"acc1": "top1", "acc5": "top5"}
BATCH = 2000


@dataclass(frozen=True)
class ImportedCell:
    """The numbers that a table has about one model on one setting."""

    model: str
    eval_setting: str
    metrics: tuple[Metric, ...]

    @property
    def fingerprint(self) -> str:
        """Equal for equal numbers, so that importing a table twice changes nothing."""
        return digest(["imported", self.model, self.eval_setting, [[m.name, m.value] for m in self.metrics]])


@dataclass
class ImportReport:
    """What an import did.

    Attributes:
        form: The kind of table that was recognised.
        values: Numbers in the file.
        cells: Cells in the file.
        new: Cells that were not in the store yet.
        notes: Oddities, such as rows that are there twice.
    """

    form: str
    values: int = 0
    cells: int = 0
    new: int = 0
    notes: list[str] = field(default_factory=list)


def import_results(store: Store, path: Path, model_types: Path | None = None) -> ImportReport:
    """Imports a table: ImageNet-testbed's (models × settings, percent), or CLIP benchmark's CSV or JSON (cell by cell).

    Args:
        store: Where to.
        path: The file.
        model_types: ImageNet-testbed's table of model types (columns ``model`` and ``model_type``).

    Raises:
        StoreError: If the file is neither, or a value is out of range; nothing is imported then.
    """
    header, rows = _read_json(path) if path.suffix == ".json" else _read_csv(path)
    if set(CLIP_BENCHMARK_KEYS) <= set(header):
        report = ImportReport("CLIP benchmark's table")
        cells = _clip_benchmark(header, rows, path, report)
    elif header and header[0] == "model" and len(header) > 1:
        report = ImportReport("ImageNet-testbed's table")
        cells = _imagenet_testbed(header, rows, path, report)
    else:
        raise StoreError(
            f"{path} is no table that can be imported: ImageNet-testbed's begins with a column 'model' and has a column"
            f" for each setting; CLIP benchmark's CSV or JSON has {', '.join(CLIP_BENCHMARK_KEYS)};"
            f" this one begins with {', '.join(header[:4]) or 'nothing'}"
        )
    types = _read_types(model_types, report) if model_types else {}
    report.cells = len(cells)
    report.values = sum(len(cell.metrics) for cell in cells)
    report.new = store.add_imported(
        [(c.model, c.eval_setting, c.fingerprint, c.metrics) for c in cells], path.name, types
    )
    return report


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"{path} cannot be read as a CSV file: {error}") from error
    if not rows:
        raise StoreError(f"{path} is empty")
    header = [name.strip() for name in rows[0]]
    twice = [name for name in header if header.count(name) > 1]
    if twice:
        raise StoreError(f"{path} has the column {twice[0]!r} twice")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise StoreError(f"{path}, row {number}: {len(header)} columns were expected, {len(row)} were found")
    return header, rows[1:]


def _read_json(path: Path) -> tuple[list[str], list[list[str]]]:
    """CLIP benchmark's JSON as the rows of its CSV: an object, or a list of them, with the numbers in ``metrics``."""
    try:
        # Numbers stay as they are written; CLIP benchmark writes a bare NaN where a metric is not defined.
        given = json.loads(path.read_text(encoding="utf-8"), parse_float=str, parse_int=str, parse_constant=str)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise StoreError(f"{path} cannot be read as a JSON file: {error}") from error
    records = given if isinstance(given, list) else [given]
    rows: list[dict[str, str]] = []
    for number, record in enumerate(records, start=1):
        metrics = record.get("metrics") if isinstance(record, dict) else None
        if not isinstance(metrics, dict) or not all(isinstance(record.get(key), str) for key in CLIP_BENCHMARK_KEYS):
            raise StoreError(
                f"{path}, record {number}: an object with {', '.join(CLIP_BENCHMARK_KEYS)} and metrics was expected, as"
                " CLIP benchmark writes it"
            )
        texts = {key: value for key, value in record.items() if key in CLIP_BENCHMARK_TEXT and isinstance(value, str)}
        for name, value in metrics.items():
            if value is not None and not isinstance(value, str):
                raise StoreError(f"{path}, record {number}: the metric {name} should be a number, not {value!r}")
        rows.append({**texts, **{name: value or "" for name, value in metrics.items()}})
    if not rows:
        raise StoreError(f"{path} is empty")
    header = list(dict.fromkeys(name for row in rows for name in row))
    return header, [[row.get(name, "") for name in header] for row in rows]


def _metric(name: str, text: str, whole: int, where: str) -> Metric | None:
    """The metric in a field, as the fraction nearest to the decimal that is written there; None if there is none.

    Args:
        name: The metric.
        text: The field; empty or NaN where there is no value.
        whole: What the fraction 1 is written as: 100 for percent, 1 for fractions.
        where: For messages.
    """
    if not text.strip():
        return None
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise StoreError(f"{where}: a number was expected, {text!r} was found") from None
    if value.is_nan():
        return None
    if not 0 <= value <= whole:
        raise StoreError(f"{where}: {value:g} is not between 0 and {whole}")
    return Metric(name, float(value / whole), published=text.strip())


def _named(text: str, where: str) -> str:
    """The name of a model in a field."""
    name = text.strip()
    try:
        check_name("model", name)
    except StoreError as error:
        raise StoreError(f"{where}: {error}") from None
    return name


def _imagenet_testbed(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: Path, report: ImportReport
) -> list[ImportedCell]:
    """A row for each model, a column for each setting, top-1 in percent, empty where there is none."""
    values: dict[tuple[str, str], list[Metric]] = {}
    seen: dict[str, Sequence[str]] = {}
    for number, row in enumerate(rows, start=2):
        model = _named(row[0], f"{path}, row {number}")
        if model in seen:
            if list(seen[model]) != list(row):
                raise StoreError(f"{path}, row {number}: {model} has two rows that differ; which one counts?")
            report.notes.append(f"row {number} repeats {model}")
            continue
        seen[model] = row
        for column, text in zip(header[1:], row[1:], strict=True):
            setting, name = split_column(column)
            metric = _metric(name, text, 100, f"{path}, row {number}, column {column}")
            if metric is not None:
                values.setdefault((model, setting), []).append(metric)
    if values and max(metric.value or 0 for metrics in values.values() for metric in metrics) <= 0.01:
        raise StoreError(f"{path}: no value exceeds 1, so these seem to be fractions; the table is to be in percent")
    return [_cell(model, setting, metrics) for (model, setting), metrics in values.items()]


def _cell(model: str, setting: str, metrics: Iterable[Metric]) -> ImportedCell:
    return ImportedCell(model, setting, tuple(sorted(metrics, key=lambda each: each.name)))


def split_column(column: str) -> tuple[str, str]:
    """Setting and metric of a column of ImageNet-testbed's table."""
    setting, _, suffix = column.rpartition("_")
    return (setting, suffix) if setting and suffix in METRIC_SUFFIXES else (column, "top1")


def _clip_benchmark(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: Path, report: ImportReport
) -> list[ImportedCell]:
    """A row for each cell, fractions; the model is written ``architecture,pretrained``, as here."""
    cells: dict[tuple[str, str], ImportedCell] = {}
    for number, row in enumerate(rows, start=2):
        named = dict(zip(header, row, strict=True))
        metrics = []
        for column in header:
            if column in CLIP_BENCHMARK_TEXT:
                continue
            name = CLIP_BENCHMARK_METRICS.get(column, column)
            metric = _metric(name, named[column], 1, f"{path}, row {number}, column {column}")
            if metric is not None:
                metrics.append(metric)
        model = _named(f"{named['model']},{named['pretrained']}", f"{path}, row {number}")
        cell = _cell(model, named["dataset"], metrics)
        key = cell.model, cell.eval_setting
        if key in cells:
            if cells[key].metrics != cell.metrics:
                raise StoreError(
                    f"{path}, row {number}: {key[0]} on {key[1]} has two rows that differ; which one counts? If they"
                    " are of two tasks, import each task from a file of its own, its data sets named apart"
                )
            report.notes.append(f"row {number} repeats {key[0]} on {key[1]}")
        cells[key] = cell
    return list(cells.values())


def _read_types(path: Path, report: ImportReport) -> dict[str, str]:
    header, rows = _read_csv(path)
    if not {"model", "model_type"} <= set(header):
        raise StoreError(f"{path} should have the columns 'model' and 'model_type'; it has {', '.join(header)}")
    return {row[header.index("model")]: row[header.index("model_type")] for row in rows}


# Exporting --------------------------------------------------------------------------------------------------------


def export_csv(results: Iterable[Result], path: Path, sort_by: str = "val") -> tuple[int, int]:
    """Writes ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent.

    The metrics pm0 and pm10 of a setting X become the columns X_pm0 and X_pm10. One's own evaluation of a cell goes
    before an imported one.

    Args:
        results: The visible results.
        path: The file.
        sort_by: The column by which models are sorted, the best first; those without it come last, by name.

    Returns:
        The numbers of models and of columns.
    """
    table: dict[str, dict[str, Result]] = {}
    for result in sorted(results, key=lambda each: each.origin != "imported"):
        metric = result.metric
        if result.slice != OVERALL or result.unit != FRACTION or result.value is None:
            continue
        if metric == "top1":
            column = result.eval_setting
        elif metric in METRIC_SUFFIXES:
            column = f"{result.eval_setting}_{metric}"
        else:
            continue
        table.setdefault(result.model, {})[column] = result
    columns = sorted({column for row in table.values() for column in row})

    def rank(model: str) -> tuple[float, str]:
        best = table[model].get(sort_by)
        return (1.0 if best is None else -(best.value or 0.0), model)

    order = sorted(table, key=rank)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", *columns])
            for model in order:
                row = table[model]
                writer.writerow([model, *(_printed(row[each]) if each in row else "" for each in columns)])
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    return len(order), len(columns)


def _printed(result: Result) -> str:
    """A fraction in percent; an imported one in the digits of its table, if that was in percent."""
    fraction = result.value or 0.0
    if result.published and float(Decimal(result.published) / 100) == fraction:
        return result.published
    return as_percent(fraction)


def as_percent(fraction: float) -> str:
    """A fraction in percent: the digits of its shortest decimal, so that importing them gives this very fraction."""
    percent = Decimal(repr(fraction)) * 100
    short = repr(float(percent))
    return short if Decimal(short) == percent else f"{percent.normalize():f}"
