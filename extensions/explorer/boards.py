"""Boards: the leaderboard's columns by task, so that different tasks are on different sheets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from testbed.entities import ELSEWHERE
from testbed.eval_settings.benchmark_families.benchmark import parse_name
from testbed.registry.catalog import Catalog
from testbed.tasks.classification import task as classification
from testbed.tasks.retrieval import task as retrieval

USUAL_METRICS = ("top1", "top5")  # these metrics imply classification if the setting is unknown
OTHERS = "others"
ENGLISH = "en"


def board_of(setting: str, task: str | None, metric: str, catalog: Catalog) -> str:
    """Returns the board of a setting.

    Args:
        setting: Its name.
        task: The task in the store; None without evaluations in this store.
        metric: Its main metric.
        catalog: Catalog to look its definition up in.
    """
    known = catalog.find_eval_setting(setting)
    task = task or (known.task if known else classification.name if metric in USUAL_METRICS else OTHERS)
    told = task.replace("_", " ")
    if task == classification.name and parse_name(setting) is not None and not catalog.eval_settings.defines(setting):
        return f"{told} (CLIP benchmark)"
    if task == retrieval.name and known is not None and known.language != ENGLISH:
        return f"{told} (other languages)"
    return told


class FillCounts:
    """Numbers of models with a value in each column, and of those measured in this store.

    Args:
        rows: Settings, metrics and origins, with the number of values of each.
    """

    def __init__(self, rows: Iterable[tuple[str, str, str, int]]) -> None:
        self._all: Counter[tuple[str, str]] = Counter()
        self._own: Counter[tuple[str, str]] = Counter()
        for setting, metric, origin, number in rows:
            self._all[setting, metric] += number
            self._own[setting, metric] += number * (origin not in ELSEWHERE)

    def totals(self) -> tuple[int, int]:
        """The number of values that were measured in this store, and of all values."""
        return sum(self._own.values()), sum(self._all.values())

    def about(self, setting: str | None, metric: str) -> dict[str, int]:
        """The numbers of a column; an average, which has no setting, has none."""
        key = setting or "", metric
        return {"models": self._all[key], "own": self._own[key]}
