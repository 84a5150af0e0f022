"""The samples of an evaluation that could not be read, by name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.entities import Evaluation


@dataclass(frozen=True)
class UnreadSample:
    """A sample that could not be read: its position in the data set, its id, and the reason."""

    position: int
    id: str
    reason: str


def unread_samples(store: Store, evaluation: Evaluation, most: int) -> tuple[int, list[UnreadSample]]:
    """Counts the samples that could not be read, and returns the first of them, at most ``most``."""
    errors = store.outputs.errors(evaluation.id)
    if not errors or evaluation.dataset_id is None:
        return len(errors), []
    first = sorted(errors)[:most]
    infos = store.datasets.samples(evaluation.dataset_id, first)
    return len(errors), [UnreadSample(at, infos[at].id, without_folder(errors[at], infos[at].id)) for at in first]


def without_folder(reason: str, sample: str) -> str:
    """A reason that names a sample's file by the sample's id alone."""
    return re.sub(rf"\S*/{re.escape(sample)}", lambda _: sample, reason)
