"""Metrics out of what a benchmark's own code reports: a table of pandas, or a dictionary."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.entities import OVERALL, Metric
from testbed.errors import DataError
from testbed.metric_specs import HIGHER, MAIN, MetricSpec

# Of what a benchmark reports itself nothing is known, but that its main number puts the best model first on boards.
SCORE = MetricSpec("score", "", HIGHER, headline=MAIN)

# Texts in a table's row that mean all samples.
_MAIN = ("overall", "acc", "score")  # in the name of the main metric, the likeliest first
_SPLITS = ("test", "validation", "val", "dev")
_ALL = frozenset({"", "none", "all", "overall"})


def reported_metrics(report: Any, n: int, scorer: str, primary: Mapping[str, Any] | None = None) -> list[Metric]:
    """Extracts the metrics of a report.

    In a table, each column of numbers is a metric, and each row a slice, named by its columns of texts: ``split=test``.
    A dictionary of lists of one length is also a table. In other dictionaries, the names of what lies within others are
    joined by dots, and the numbers of a list are counted from 1: ``math.acc``, ``Bleu_4``.

    Args:
        report: The report.
        n: The number of answers.
        scorer: The scorer that computed them.
        primary: The main metrics: their names, such as `flat` has, and their values. Default: the overall one, else
            the first.

    Returns:
        The metrics, the main ones first, and the first main one again as ``score``.

    Raises:
        DataError: If it is something else, or has no numbers.
    """
    values: dict[tuple[str, str], float | None] = {}
    for name, part, value in _entries(report):
        place, number = part, 1
        while (name, place) in values:  # rows of the same name
            number += 1
            place = f"{part}, row={number}"
        values[name, place] = value
    if not values:
        raise DataError(f"evaluate has reported no number, but {_kind(report)}")
    main = primary or main_of({flat_name(*key): value for key, value in values.items()})
    values.setdefault(("score", OVERALL), _number(next(iter(main.values()), None)))
    ordered = sorted(values, key=lambda key: flat_name(*key) not in main)
    specs = {SCORE.name: SCORE}
    return [
        specs.get(name, MetricSpec(name, "")).metric(
            values[name, part], n if part == OVERALL else None, slice=part, scorer=scorer
        )
        for name, part in ordered
    ]


def flat(report: Any) -> dict[str, float | None]:
    """A report as VLMEvalKit writes it into ``status.json``: ``Overall``, or ``split=test|Overall`` of a slice."""
    return {flat_name(name, part): value for name, part, value in _entries(report)}


def main_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The main metric of a report as `flat` gives it, as VLMEvalKit chooses it; without any of its words the first.

    An overall one comes before an accuracy, and that before a score; of several, that of the test split before those of
    the validation and the development split.
    """
    known = {name: value for name, value in report.items() if value is not None} or report
    name = min(known, key=_order, default=None)
    return {} if name is None else {name: report[name]}


def _order(name: str) -> tuple[int, list[str]]:
    """Returns the order of main metrics: by rank, and by name where it is informative; else as they are reported."""
    rank = _rank(name.lower())
    return -rank, name.split("|") if rank else []


def _rank(name: str) -> int:
    """Ranks how well a name, in lower case, fits the main metric; 0 for an uninformative one."""
    for index, word in enumerate(_MAIN):
        if word in name:
            ends = name == word or name.endswith(f"|{word}")
            split = next((len(_SPLITS) - at for at, split in enumerate(_SPLITS) if f"split={split}" in name), 0)
            return 100 * (len(_MAIN) - index) + (20 if name == word else 10 if ends else 0) + split
    return 0


def flat_name(name: str, part: str) -> str:
    """The name of a metric of a slice in `flat`."""
    return name if part == OVERALL else f"{part}|{name}"


def _entries(report: Any) -> Iterator[tuple[str, str, float | None]]:
    """The metrics: name, slice, value."""
    if isinstance(report, Mapping):
        columns = list(report.values())
        if (
            not columns
            or not all(isinstance(column, list | tuple) for column in columns)
            or len(set(map(len, columns))) > 1
        ):
            yield from _nested(report, "")
            return
        yield from _table({str(name): list(column) for name, column in report.items()})
    elif hasattr(report, "columns") and hasattr(report, "to_dict"):
        yield from _table({str(name): list(report[name]) for name in report.columns})
    else:
        raise DataError(f"evaluate reports a table (DataFrame) or a dictionary; it has returned {_kind(report)}")


def _table(columns: Mapping[str, list[Any]]) -> Iterator[tuple[str, str, float | None]]:
    values = {name: [_number(cell) for cell in cells] for name, cells in columns.items()}
    texts = [name for name, cells in columns.items() if any(not _is_number(cell) for cell in cells)]
    for row in range(max(map(len, columns.values()), default=0)):
        part = ", ".join(
            f"{name}={columns[name][row]}" for name in texts if str(columns[name][row]).strip().lower() not in _ALL
        )
        for name in columns:
            if name not in texts:
                yield name, part or OVERALL, values[name][row]


def _nested(report: Mapping[Any, Any], before: str) -> Iterator[tuple[str, str, float | None]]:
    for key, value in report.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _nested(value, f"{name}.")
        elif isinstance(value, list | tuple):
            for number, item in enumerate(value, start=1):
                if _is_number(item):
                    yield f"{name}_{number}" if len(value) > 1 else name, OVERALL, _number(item)
        elif _is_number(value):
            yield name, OVERALL, _number(value)


def _is_number(cell: Any) -> bool:
    if cell is None or isinstance(cell, numbers.Real) or hasattr(cell, "dtype"):
        return True
    try:
        float(str(cell).strip())
    except ValueError:
        return False
    return isinstance(cell, str)


def _number(cell: Any) -> float | None:
    """Returns a number; None for one that is undefined, and for anything else."""
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _kind(report: Any) -> str:
    return "None" if report is None else f"{type(report).__name__} ({str(report)[:60]!r})"
