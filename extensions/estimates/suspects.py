"""Samples with doubtful labels: better models get them wrong more often, or the best ones agree on another class.

Either is only a hint for people, since hard samples look the same (Northcutt, Athalye and Mueller 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testbed.db.store import Store
from testbed.extensions.estimates.methods.item_response import fit
from testbed.metrics.inference.agreement import most_common
from testbed.stored_results.mistakes import infos_of, target_name
from testbed.stored_results.predictions import best_names, has_logits, predictions_of
from testbed.stored_results.side_by_side import SampleTable, Tell, choose, require_binary, side_by_side

LEAST = 4  # models
ALIKE = 0.9  # share of the best models
_Z = 1.6448536269514722  # 95 % quantile of the normal distribution


@dataclass(frozen=True)
class Suspect:
    """A sample with a doubtful label.

    Attributes:
        sample: Its id.
        target: Its label in the data set.
        target_name: The label's name; None without a name.
        wrong: Number of models that get it wrong.
        models: The number of models.
        discrimination: Discrimination in item response theory; below 0 if better models are wrong more often.
        error: Its standard error.
        said: The class that most of the better half of the models predict; None if classes are not stored.
        said_name: Its name.
        said_by: Number of these models.
        best: Number of models in the better half with stored classes.
    """

    sample: str
    target: Any
    target_name: str | None
    wrong: int
    models: int
    discrimination: float
    error: float
    said: int | None
    said_name: str | None
    said_by: int
    best: int

    @property
    def alike(self) -> bool:
        """True if the best models agree on a class other than the label."""
        return self.best > 1 and self.said_by >= ALIKE * self.best

    @property
    def negative(self) -> bool:
        """True if its discrimination is below 0, with a confidence of 95 %."""
        return self.discrimination + _Z * self.error < 0


def suspects(
    store: Store, setting: str, models: Sequence[str], score: str, tell: Tell = lambda note: None
) -> list[Suspect]:
    """Finds doubtful samples: first those where the best models agree against the label, by the number of wrong models.

    Args:
        store: The results store.
        setting: The setting.
        models: Names or patterns; empty means all.
        score: A score of 0 and 1, such as ``top1``.
        tell: Called with notes on what was left out.

    Raises:
        StoreError: If there are fewer than four models with such scores.
    """
    cells = choose(store, [setting], models, score, at_least=LEAST, tell=tell)[setting]
    samples = SampleTable(store)
    table = side_by_side(store, samples, setting, cells, score, tell)
    require_binary(table, score, "suspects")
    responses = fit(table.scores)
    better = np.argsort(-table.scores.mean(axis=0), kind="stable")[: (len(table.models) + 1) // 2]
    said, names = [], []
    for column in better:
        each = table.evaluations[column]
        if has_logits(store, each):
            predictions = predictions_of(store, each, samples.of(each))
            right = table.scores[:, column] == 1
            said.append(np.where(right, -1, predictions.classes[table.places[column]]))
            names.append(predictions.classes_named)
    named, infos = best_names(names), infos_of(samples, table)
    columns = np.stack(said, axis=1) if said else np.full((len(infos), 0), -1)
    found = []
    for row in np.flatnonzero((table.scores == 0).any(axis=1)):
        info, common = infos[row], most_common(columns[row].tolist())
        found.append(
            Suspect(
                sample=info.id,
                target=info.target,
                target_name=target_name(info.target, named.of),
                wrong=int((table.scores[row] == 0).sum()),
                models=len(table.models),
                discrimination=float(responses.discrimination[row]),
                error=float(responses.discrimination_error[row]),
                said=common[0] if common else None,
                said_name=named.of(common[0]) if common else None,
                said_by=common[1] if common else 0,
                best=len(said),
            )
        )
    kept = [suspect for suspect in found if suspect.alike or suspect.negative]
    return sorted(kept, key=lambda each: (not each.alike, -each.wrong, each.discrimination, each.sample))
