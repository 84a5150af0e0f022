"""Published result tables into the store, and the store out as such a table.

Imported numbers are evaluations without outputs, marked ``imported`` with their source. They stand beside one's own
evaluations of the same cell, never over them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.db.entities import FRACTION, OVERALL, Metric, Result
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
    """Imports a table: ImageNet-testbed's (models × settings, percent) or CLIP benchmark's CSV (a row for each cell).

    Args:
        store: Where to.
        path: The file.
        model_types: ImageNet-testbed's table of model types (columns ``model`` and ``model_type``).

    Raises:
        StoreError: If the file is neither, or a value is out of range; nothing is imported then.
    """
    header, rows = _read_csv(path)
    if set(CLIP_BENCHMARK_KEYS) <= set(header):
        report = ImportReport("CLIP benchmark's table")
        cells = _clip_benchmark(header, rows, path, report)
    elif header and header[0] == "model" and len(header) > 1:
        report = ImportReport("ImageNet-testbed's table")
        cells = _imagenet_testbed(header, rows, path, report)
    else:
        raise StoreError(
            f"{path} is no table that can be imported: ImageNet-testbed's begins with a column 'model' and has a column"
            f" for each setting; CLIP benchmark's has the columns {', '.join(CLIP_BENCHMARK_KEYS)};"
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


def _number(text: str, low: float, high: float, where: str) -> float | None:
    """The number in a field; None when it is empty or NaN."""
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise StoreError(f"{where}: a number was expected, {text!r} was found") from None
    if math.isnan(value):
        return None
    if not low <= value <= high:
        raise StoreError(f"{where}: {value:g} is not between {low:g} and {high:g}")
    return value


def _imagenet_testbed(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: Path, report: ImportReport
) -> list[ImportedCell]:
    """A row for each model, a column for each setting, top-1 in percent, empty where there is none."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    seen: dict[str, Sequence[str]] = {}
    for number, row in enumerate(rows, start=2):
        model = row[0].strip()
        if model in seen:
            if list(seen[model]) != list(row):
                raise StoreError(f"{path}, row {number}: {model} has two rows that differ; which one counts?")
            report.notes.append(f"row {number} repeats {model}")
            continue
        seen[model] = row
        for column, text in zip(header[1:], row[1:], strict=True):
            value = _number(text, 0, 100, f"{path}, row {number}, column {column}")
            if value is not None:
                setting, metric = split_column(column)
                values.setdefault((model, setting), {})[metric] = value / 100
    numbers = [value for metrics in values.values() for value in metrics.values()]
    if numbers and max(numbers) <= 0.01:
        raise StoreError(f"{path}: no value exceeds 1, so these seem to be fractions; the table is to be in percent")
    return [
        ImportedCell(model, setting, tuple(Metric(name, value) for name, value in sorted(metrics.items())))
        for (model, setting), metrics in values.items()
    ]


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
            value = _number(named[column], 0, 1, f"{path}, row {number}, column {column}")
            if value is not None:
                metrics.append(Metric(CLIP_BENCHMARK_METRICS.get(column, column), value))
        cell = ImportedCell(
            f"{named['model']},{named['pretrained']}", named["dataset"], tuple(sorted(metrics, key=lambda m: m.name))
        )
        key = cell.model, cell.eval_setting
        if key in cells:
            if cells[key].metrics != cell.metrics:
                raise StoreError(f"{path}, row {number}: {key[0]} on {key[1]} has two rows that differ; which counts?")
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
    table: dict[str, dict[str, float]] = {}
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
        table.setdefault(result.model, {})[column] = result.value
    columns = sorted({column for row in table.values() for column in row})
    order = sorted(table, key=lambda model: (-table[model].get(sort_by, -1.0), model))
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["model", *columns])
            for model in order:
                row = table[model]
                writer.writerow([model, *(as_percent(row[each]) if each in row else "" for each in columns)])
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    return len(order), len(columns)


def as_percent(fraction: float) -> str:
    """A fraction in percent: the shortest decimal that is this very fraction when it is divided by 100 again."""
    near = fraction * 100
    candidates = [near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf)]
    exact = [value for value in candidates if value / 100 == fraction]
    return min((repr(value) for value in exact or [near]), key=len)
