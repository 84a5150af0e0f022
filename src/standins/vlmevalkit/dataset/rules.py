"""Scores answers for VLMEvalKit classes with their own ``evaluate``: by testbed's rules, without a judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from testbed.answers.reports.choice import are_rotations, base_index
from testbed.answers.scorings import SCORINGS
from testbed.errors import UnsupportedError
from testbed.standins.vlmevalkit.smp.file import dump, get_intermediate_file_path, load

RULES = "default"


def columns_of(line: Any) -> dict[str, str]:
    """The cells of a row as texts, without pictures; an empty one is left out."""
    return {
        str(name): str(value)
        for name, value in line.items()
        if name not in ("image", "image_path") and not isinstance(value, list) and not pd.isna(value)
    }


def scored(eval_file: str, scoring: str, judge_kwargs: dict[str, Any]) -> pd.DataFrame:
    """The table of answers with the columns ``extracted`` and ``hit`` (in [0, 1]).

    Raises:
        UnsupportedError: If a judge is asked for.
    """
    judge = judge_kwargs.get("model", "exact_matching")
    if judge != "exact_matching":
        raise UnsupportedError(f"the judge {judge!r} is VLMEvalKit's; without it, answers are read by rules alone")
    rules = SCORINGS[scoring]
    table: pd.DataFrame = load(eval_file)
    verdicts = [rules(columns_of(row), str(row["prediction"]), RULES) for _, row in table.iterrows()]
    return table.assign(
        extracted=[verdict.extracted for verdict in verdicts], hit=[verdict.score for verdict in verdicts]
    )


def report(table: pd.DataFrame, eval_file: str, scale: float) -> Any:
    """The means of ``hit`` by split, also in the file ``…_acc.csv``."""
    scores = by_split(table, scale)
    dump(scores, get_intermediate_file_path(eval_file, "_acc", "csv"))
    return scores


def by_split(table: pd.DataFrame, scale: float, by: Sequence[str] = ("l2-category", "category")) -> pd.DataFrame:
    """The mean of ``hit``: a row for each ``split`` (``none`` without), a column for all and for each category."""
    splits = table["split"].fillna("none") if "split" in table else pd.Series("none", index=table.index)
    rows = []
    for split in sorted(set(splits)):
        part = table[splits == split]
        row = {"split": split, "Overall": part["hit"].mean() * scale}
        for column in by:
            if column in table:
                row |= {str(name): rest["hit"].mean() * scale for name, rest in part.groupby(column)}
        rows.append(row)
    return pd.DataFrame(rows)


def together(table: pd.DataFrame) -> pd.DataFrame:
    """The base rows of questions that are asked in rotations, with ``hit`` 1 if all rotations are right.

    A table of other questions is left as it is.
    """
    ids = [str(sample_id) for sample_id in table["index"]]
    columns = [columns_of(row) for _, row in table.iterrows()]
    if not are_rotations(ids, columns):
        return table
    bases = pd.Series([base_index(*base) for base in _bases(ids, columns)], index=table.index)
    right = table["hit"].groupby(bases).min()
    first = table[[int(sample_id) == base for sample_id, base in zip(ids, bases, strict=True)]]
    return first.assign(hit=[right[int(sample_id)] for sample_id in first["index"]])


def _bases(ids: Sequence[str], columns: Sequence[dict[str, str]]) -> list[tuple[str, str | None]]:
    return [(sample_id, row.get("g_index")) for sample_id, row in zip(ids, columns, strict=True)]
