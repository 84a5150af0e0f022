"""ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from testbed.entities import ELSEWHERE, FRACTION, OVERALL, Result
from testbed.errors import StoreError
from testbed.metrics.scorers.classification import top
from testbed.metrics.scorers.frames import PM0, PM10
from testbed.spreadsheet import as_csv

# It has two columns for the settings with frame sets: metrics of the setting before the suffix.
METRIC_SUFFIXES = (PM0.name, PM10.name)
COLUMN_METRICS = {spec.name: spec for spec in (top(1), PM0, PM10)}


def split_column(column: str) -> tuple[str, str]:
    """Setting and metric of a column of ImageNet-testbed's table."""
    setting, _, suffix = column.rpartition("_")
    return (setting, suffix) if setting and suffix in METRIC_SUFFIXES else (column, "top1")


def export_csv(results: Iterable[Result], path: Path, sort_by: str = "val") -> tuple[int, int]:
    """Writes ImageNet-testbed's table: a row for each model, a column for each setting, top-1 in percent.

    The metrics pm0 and pm10 of a setting X become the columns X_pm0 and X_pm10. An evaluation that was
    run takes precedence over a number from elsewhere.

    Args:
        results: The visible results.
        sort_by: The column to sort models by, best first; models without it come last, by name.

    Returns:
        The numbers of models and of columns.
    """
    table: dict[str, dict[str, Result]] = {}
    for result in sorted(results, key=lambda each: each.origin not in ELSEWHERE):
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
    """A fraction in percent; published ones with the digits of their table, if that was in percent. Empty for None."""
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
