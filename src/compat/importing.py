"""Imports published result tables into the store, and exports the store as such a table.

Imported numbers are evaluations without outputs, marked ``imported`` with their source. They never replace evaluations
that were run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from testbed.compat import earlier_store
from testbed.compat.clip_benchmark import clip_benchmark_files
from testbed.compat.clip_cc_bench import clip_cc_results
from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, Evaluation, Metric, Result, current
from testbed.errors import StoreError
from testbed.exchange.imported import ImportedCell, ImportReport, imported_cell, metric_in, named, read_csv
from testbed.metrics.scorers.classification import top
from testbed.metrics.scorers.frames import PM0, PM10
from testbed.spreadsheet import as_csv

# ImageNet-testbed's table has two columns for the settings with frame sets: metrics of the setting before the suffix.
METRIC_SUFFIXES = (PM0.name, PM10.name)
COLUMN_METRICS = {each.name: each for each in (top(1), PM0, PM10)}
_NAMED = 3  # cells in a note


def import_results(
    store: Store, source: str | Path, model_types: Path | None = None, settings: Collection[str] | None = None
) -> ImportReport:
    """Imports a table: ImageNet-testbed's (models × settings, percent), CLIP benchmark's CSV or JSON, CLIP-CC-Bench's.

    A store from before the first release is such a table, too.

    Args:
        store: The results store.
        source: The file, or a folder of CLIP benchmark's or CLIP-CC-Bench's JSON files; of a store, its path or URL.
        model_types: ImageNet-testbed's table of model types (columns ``model`` and ``model_type``).
        settings: The known eval settings: a column of ImageNet-testbed's table that names another one is refused. None
            takes any column as a setting.

    Raises:
        StoreError: If the file is neither, has a column that is not known, or a value is out of range; nothing is
            imported then.
    """
    path, name, types = Path(source), Path(source).name, dict[str, str]()
    if earlier_store.is_store(str(source)):
        report = ImportReport(earlier_store.FORM)
        cells, name, types = earlier_store.cells_of(str(source), report)
    elif (summaries := clip_cc_results.summaries_in(path)) is not None:
        report = ImportReport(clip_cc_results.FORM)
        cells = clip_cc_results.cells_of(summaries)
    elif path.is_dir() or path.suffix == ".json":
        report = ImportReport(clip_benchmark_files.FORM)
        cells = clip_benchmark_files.cells_of(clip_benchmark_files.json_records(path, report), report)
    else:
        header, rows = read_csv(path)
        if set(clip_benchmark_files.KEYS) <= set(header):
            report = ImportReport(clip_benchmark_files.FORM)
            cells = clip_benchmark_files.cells_of(clip_benchmark_files.csv_records(header, rows, path), report)
        elif header and header[0] == "model" and len(header) > 1:
            report = ImportReport("ImageNet-testbed's table")
            _check_columns(header[1:], settings, path)
            cells = _imagenet_testbed(header, rows, path, report)
        elif header and header[0] == clip_cc_results.NAME:
            report = ImportReport(clip_cc_results.FORM)
            cells = clip_cc_results.csv_cells(header, rows, path)
        else:
            raise StoreError(
                f"{path} is not a table that can be imported: ImageNet-testbed's begins with a column 'model' and has a"
                f" column for each setting; CLIP benchmark's CSV or JSON has {', '.join(clip_benchmark_files.KEYS)};"
                f" CLIP-CC-Bench's begins with a column {clip_cc_results.NAME!r};"
                f" this one begins with {', '.join(header[:4]) or 'nothing'}"
            )
    if model_types:
        types |= _read_types(model_types, report)
    report.cells = len(cells)
    report.values = sum(len(cell.metrics) for cell in cells)
    before = _reported(store)
    try:
        report.new = store.evaluations.add_imported(
            [(c.model, c.eval_setting, c.fingerprint, c.metrics) for c in cells], name, types
        )
    except StoreError as error:
        raise type(error)(f"{path} cannot be imported: {error}") from error
    report.notes += _other_imports(cells, before, _reported(store))
    return report


def _check_columns(columns: Sequence[str], settings: Collection[str] | None, path: Path) -> None:
    """Checks that the columns of ImageNet-testbed's table are settings.

    Raises:
        StoreError: If one is not.
    """
    unknown = [each for each in columns if settings is not None and split_column(each)[0] not in settings]
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        raise StoreError(
            f"{path}: each column after 'model' is an eval setting with top-1 in percent; neither the registry nor the"
            f" store has {', '.join(map(repr, unknown[:_NAMED]))}{more}; remove what is no setting (testbed"
            " list settings lists them), or import all as new settings with --override"
        )


def _reported(store: Store) -> dict[tuple[str, str], Evaluation]:
    """The imported evaluation of each cell that is reported."""
    cells: dict[tuple[str, str], list[Evaluation]] = {}
    for each in store.evaluations.find(statuses=["complete"]):
        if each.origin == "imported":
            cells.setdefault((each.model, each.eval_setting), []).append(each)
    return {cell: current(several)[0] for cell, several in cells.items()}


def _other_imports(
    cells: Sequence[ImportedCell],
    before: Mapping[tuple[str, str], Evaluation],
    after: Mapping[tuple[str, str], Evaluation],
) -> list[str]:
    """Notes of cells that were imported with other numbers before, or later."""
    replaced, kept = [], []
    for cell in cells:
        key = cell.model, cell.eval_setting
        old, new = before.get(key), after.get(key)
        if new is not None and new.fingerprint != cell.fingerprint:
            kept.append(f"{cell.model} on {cell.eval_setting} (from {new.source})")
        elif old is not None and old.fingerprint != cell.fingerprint:
            replaced.append(f"{cell.model} on {cell.eval_setting} (from {old.source})")
    return [
        *_note(replaced, "had other numbers from an earlier import; the new ones are reported now"),
        *_note(kept, "had other numbers from a later import, which are reported; --remove-evaluation hides them"),
    ]


def _note(cells: Sequence[str], what: str) -> list[str]:
    if not cells:
        return []
    more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
    number = "1 cell" if len(cells) == 1 else f"{len(cells):,} cells"
    return [f"{number} {what} (testbed show … --all shows both): {', '.join(cells[:_NAMED])}{more}"]


def _imagenet_testbed(
    header: Sequence[str], rows: Sequence[Sequence[str]], path: Path, report: ImportReport
) -> list[ImportedCell]:
    """A row for each model, a column for each setting, top-1 in percent, empty where there is none."""
    values: dict[tuple[str, str], list[Metric]] = {}
    seen: dict[str, Sequence[str]] = {}
    for number, row in enumerate(rows, start=2):
        model = named(row[0], f"{path}, row {number}")
        if model in seen:
            if list(seen[model]) != list(row):
                raise StoreError(f"{path}, row {number}: {model} has two rows that differ; remove one of them")
            report.notes.append(f"row {number} repeats {model}")
            continue
        seen[model] = row
        for column, text in zip(header[1:], row[1:], strict=True):
            setting, name = split_column(column)
            metric = metric_in(COLUMN_METRICS[name], text, 100, f"{path}, row {number}, column {column}")
            if metric is not None:
                values.setdefault((model, setting), []).append(metric)
    if values and max(metric.value or 0 for metrics in values.values() for metric in metrics) <= 0.01:
        raise StoreError(f"{path}: no value exceeds 1, so these seem to be fractions; give a table in percent")
    return [imported_cell(model, setting, metrics) for (model, setting), metrics in values.items()]


def split_column(column: str) -> tuple[str, str]:
    """Setting and metric of a column of ImageNet-testbed's table."""
    setting, _, suffix = column.rpartition("_")
    return (setting, suffix) if setting and suffix in METRIC_SUFFIXES else (column, "top1")


def _read_types(path: Path, report: ImportReport) -> dict[str, str]:
    header, rows = read_csv(path)
    if not {"model", "model_type"} <= set(header):
        raise StoreError(f"{path} should have the columns 'model' and 'model_type'; it has {', '.join(header)}")
    return {row[header.index("model")]: row[header.index("model_type")] for row in rows}


# Exporting --------------------------------------------------------------------------------------------------------


def export_csv(results: Iterable[Result], path: Path, sort_by: str = "val") -> tuple[int, int]:
    """Writes ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent.

    The metrics pm0 and pm10 of a setting X become the columns X_pm0 and X_pm10. An evaluation that was
    run takes precedence over an imported one.

    Args:
        results: The visible results.
        path: The file.
        sort_by: The column to sort models by, best first; models without it come last, by name.

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
        rows = [[model, *(_printed(table[model].get(each)) for each in columns)] for model in order]
        path.write_text(as_csv([["model", *columns], *rows]), encoding="utf-8", newline="")
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    return len(order), len(columns)


def _printed(result: Result | None) -> str:
    """A fraction in percent; imported ones with the digits of their table, if that was in percent. Empty for None."""
    if result is None:
        return ""
    fraction = result.value or 0.0
    if result.published and float(Decimal(result.published) / 100) == fraction:
        return result.published
    return as_percent(fraction)


def as_percent(fraction: float) -> str:
    """A fraction in percent, with the digits of its shortest decimal, so that importing it gives the same fraction."""
    percent = Decimal(repr(fraction)) * 100
    short = repr(float(percent))
    return short if Decimal(short) == percent else f"{percent.normalize():f}"
