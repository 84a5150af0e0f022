"""Answers that rules, or judges, could not read: each model's share, where it affects the score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from testbed.console.output import say
from testbed.entities import OVERALL
from testbed.formatting import percent

ENOUGH = 0.02  # smallest share of a model's answers that is reported
_SHARES = ("unread", "unparsed")  # metrics; answers counted by the first are not scored
_JUDGED = "judged"  # the share of answers that ``unread`` refers to


def unread_lines(results: Sequence[Any]) -> list[str]:
    """A line for each setting on which more than 2 % of a model's answers could not be read."""
    found: dict[str, list[str]] = {}
    for (model, setting), share in _shares(results).items():
        if share > ENOUGH:
            found.setdefault(setting, []).append(f"{model} {percent(share, 1)} %")
    return [
        f"Unread answers on {setting}: {', '.join(models)}. Scores hold only as far as answers were read"
        for setting, models in found.items()
    ]


def unread_share(metrics: Iterable[Any]) -> float:
    """The share of the answers that could not be read, from the metrics of one evaluation; 0 without such a metric."""
    values = {metric.name: metric.value for metric in metrics if metric.slice == OVERALL}
    return _share(values)


def print_unread(results: Sequence[Any]) -> None:
    """Prints these lines."""
    for line in unread_lines(results):
        say(line)


def _shares(results: Sequence[Any]) -> dict[tuple[str, str], float]:
    values: dict[tuple[str, str], dict[str, float | None]] = {}
    for result in results:
        if result.slice == OVERALL and result.metric in (*_SHARES, _JUDGED):
            values.setdefault((result.model, result.eval_setting), {})[result.metric] = result.value
    return {cell: _share(of) for cell, of in values.items()}


def _share(values: dict[str, float | None]) -> float:
    unread, unparsed = ((values.get(name) or 0.0) for name in _SHARES)
    if _JUDGED in values:  # a judge was asked: convert to a share of all answers
        return unread * (values[_JUDGED] or 0.0)
    return max(unread, unparsed)
