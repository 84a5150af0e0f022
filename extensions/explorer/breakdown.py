"""Documents of what is behind an evaluation's number: its worst classes, slices and groups, and its calibration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import TestbedError
from testbed.extensions.explorer.cells import Cells
from testbed.extensions.explorer.documents import number_in
from testbed.formatting import shown_unit
from testbed.metrics.inference.groups import GroupMean, Groups
from testbed.plotting.own.reliability import reliability
from testbed.plotting.own.source import clean_settings
from testbed.stored_results.main_scores import larger_is_better, main_score_on, score_spec
from testbed.stored_results.side_by_side import SampleTable, side_by_side
from testbed.stored_results.slices import CLASS, GroupScores, grouped_in, groupings

PATH, CLEANS = "breakdown", "cleans"
MOST_GROUPS = 100  # listed groups of a grouping, the worst first
MOST_GROUPINGS = 12


class Breakdowns:
    """``breakdown/ID``: groups and calibration of an evaluation; ``cleans``: the clean setting of perturbed ones.

    Args:
        store: The results store.
        cells: The evaluations.
    """

    def __init__(self, store: Store, cells: Cells) -> None:
        self.store = store
        self.cells = cells
        self._samples = SampleTable(store)
        self._found = lru_cache(maxsize=1)(self._breakdown)  # requested by `paths`, then by `document`

    def paths(self) -> Iterator[str]:
        """The paths of all documents; of evaluations only while there are few enough for files."""
        yield CLEANS
        for evaluation in self.cells.detailed():
            if self._found(evaluation.id) is not None:
                yield f"{PATH}/{evaluation.id}"

    def document(self, path: str) -> Any:
        """Returns one of these."""
        kind, _, text = path.partition("/")
        if path == CLEANS:
            return self._cleans()
        found = self._found(number_in(text)) if kind == PATH else None
        if found is None:
            raise KeyError(path)
        return found

    def _cleans(self) -> dict[str, str]:
        """Perturbed setting → the unperturbed one, as in figures of severity."""
        first: dict[str, Evaluation] = {}
        for evaluation in self.store.evaluations.find():
            first.setdefault(evaluation.eval_setting, evaluation)
        return clean_settings(self.store, first, self.cells.settings)

    def _breakdown(self, number: int) -> dict[str, Any] | None:
        """The groups and the calibration of an evaluation; None if it has neither."""
        evaluation = self.cells.evaluation(number)
        if evaluation is None or evaluation.dataset_id is None or evaluation.status != "complete":
            return None
        found = {"groups": self._groups(evaluation), "reliability": self._reliability(evaluation)}
        return found if any(found.values()) else None

    def _groups(self, evaluation: Evaluation) -> list[dict[str, Any]]:
        """Each grouping of the samples, as ``testbed groups`` computes it by the main score."""
        setting = evaluation.eval_setting
        try:
            score = main_score_on(self.store, [setting])
            spec = score_spec(self.store, [evaluation], score)
            larger = larger_is_better(spec)
            table = side_by_side(self.store, self._samples, setting, {evaluation.model: evaluation}, score)
        except TestbedError:
            return []
        made = []
        for by in [CLASS, *groupings(self._samples, table)][:MOST_GROUPINGS]:
            try:
                found = grouped_in(self.store, self._samples, table, spec, larger, by)
            except TestbedError:
                continue  # its samples have no such groups
            groups = found.rows[0][1]
            if 1 < len(groups.groups) < groups.n:
                made.append({"score": score, **_grouping(found, groups, larger)})
        return made

    def _reliability(self, evaluation: Evaluation) -> dict[str, Any] | None:
        """The accuracy by confidence, as in figures of reliability; fractions."""
        right, confidence = (self._score(evaluation, name) for name in ("top1", "confidence"))
        if right is None or confidence is None:
            return None
        found = reliability(evaluation.model, confidence, right)
        return {"error": found.error, "n": found.n, "bins": found.bins.to_dict("records")} if found.n else None

    def _score(self, evaluation: Evaluation, name: str) -> Any:
        found: Mapping[Any, Any] = self.store.scores.read(evaluation.id, name)
        return next((np.asarray(values, dtype=np.float64) for values in found.values()), None)


def _grouping(found: GroupScores, groups: Groups, larger: bool) -> dict[str, Any]:
    ordered = sorted(groups.groups, key=lambda group: (group.value if larger else -group.value, group.name))
    return {
        "by": found.by,
        "unit": shown_unit(found.spec, found.binary),
        "binary": found.binary,
        "n": groups.n,
        "count": len(ordered),
        "mean": groups.mean,
        "balanced": groups.balanced,
        "gap": groups.gap,
        "best": _row(groups.best),
        "worst": [_row(group) for group in ordered[:MOST_GROUPS]],
    }


def _row(group: GroupMean) -> list[Any]:
    return [group.name, group.n, group.value, group.low, group.high]
