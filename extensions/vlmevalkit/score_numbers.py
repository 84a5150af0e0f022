"""VLMEvalKit's files of scores as numbers with labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.extensions.vlmevalkit.vlmevalkit_scores import ScaledMetric, ScoreFile

LABELS = ("split", "cycle", "type", "Task&Skill", "subject", "setting", "group", "Metric")  # columns that name rows

Key = tuple[str, str]  # labels of the row and the column


def cells_of(form: ScoreFile) -> dict[Key, ScaledMetric]:
    """The cells of a file by row and column."""
    if form.fields is not None:
        named = [(name, value) for name, several in form.fields.items() for value in _numbered(name, several)]
        return {("", name): cell for _, (name, cell) in named}
    header, *rows = form.rows
    found = {}
    for row in rows:
        label = " ".join(str(entry) for entry in row if not isinstance(entry, ScaledMetric))
        found.update(
            {(label, str(name)): cell for name, cell in zip(header, row, strict=True) if isinstance(cell, ScaledMetric)}
        )
    return found


def numbers_of(recorded: Any) -> dict[Key, float]:
    """Extracts the numbers of a recorded report by row and column, labelled as in `cells_of`.

    Args:
        recorded: As in `testbed.data.tables.scores.RecordedScores.reports`. Other values are left out.
    """
    found: dict[Key, float] = {}
    for row in recorded if isinstance(recorded, list) else [recorded]:
        if isinstance(row, dict):
            label = " ".join(_label(row[name]) for name in LABELS if name in row)
            found.update({(label, name): value for name, value in _flat(row, "") if name not in LABELS})
    return found


def _flat(row: Mapping[str, Any], before: str) -> list[tuple[str, float]]:
    """The numbers in an object, including nested objects."""
    found: list[tuple[str, float]] = []
    for name, value in row.items():
        if isinstance(value, dict):
            found += _flat(value, f"{before}{name}|")
            continue
        several = _numbered(before + name, value)
        found += [(own, float(each)) for own, each in several if _is_number(each)]
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbered(name: str, value: Any) -> list[tuple[str, Any]]:
    """The parts of a list, numbered from 1; anything else by its name."""
    if isinstance(value, ScaledMetric) or not isinstance(value, list | tuple):
        return [(name, value)]
    return [(f"{name}_{number}", each) for number, each in enumerate(value, start=1)]


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
