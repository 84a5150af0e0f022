"""Dates and outcomes of the last verification of each reported evaluation. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from testbed.certificates import Certificate
from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import Evaluation, current

WINDOW = timedelta(days=30)  # a verification counts as recent for so long
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Standing:
    """A cell: its reported evaluation, and how that was verified last.

    Attributes:
        last: The latest comparison with recomputed outputs, for whatever reason; None if there was none.
    """

    evaluation: Evaluation
    last: Certificate | None

    @property
    def verified_at(self) -> datetime:
        """The time of the last verification; the beginning of time if there was none."""
        return (self.last.created_at if self.last is not None else None) or _NEVER

    @property
    def differs(self) -> bool:
        """Returns whether the last verification found a difference."""
        return self.last is not None and not self.last.equal


@dataclass(frozen=True)
class Tally:
    """Numbers of cells whose outputs were computed, not of imported numbers.

    Attributes:
        cells: All of them.
        verified: Those that were verified in the last 30 days.
        differ: Those whose last verification found a difference, however long ago.
    """

    cells: int
    verified: int
    differ: int


def standings(store: Store, models: Sequence[str] = (), eval_settings: Sequence[str] = ()) -> list[Standing]:
    """The reported evaluations, those longest unverified first.

    Evaluations that were never verified come first, the oldest before the others.

    Args:
        models: Names or patterns of stored models; none means all.
        eval_settings: Names or patterns of stored settings; none means all.

    Raises:
        UnknownNameError: If a name or pattern matches nothing in the store.
    """
    cells: dict[tuple[str, str], list[Evaluation]] = {}
    for each in store.evaluations.find(statuses=("complete",)):
        cells.setdefault((each.model, each.eval_setting), []).append(each)
    chosen = matching_names("model", models, {model for model, _ in cells})
    settings = matching_names("eval setting", eval_settings, {setting for _, setting in cells}, parts=True)
    last = store.records.last_certificates()
    found = [
        Standing(evaluation, last.get(evaluation.id))
        for (model, setting), evaluations in cells.items()
        if model in chosen and setting in settings
        for evaluation in current(evaluations)
    ]
    return sorted(found, key=lambda each: (each.verified_at, each.evaluation.completed_at or _NEVER))


def tally(cells: Iterable[Standing], moment: datetime) -> Tally:
    """Counts cells at a moment."""
    known = [cell for cell in cells if cell.evaluation.origin != "imported"]
    recent = sum(standing.verified_at >= moment - WINDOW for standing in known)
    return Tally(len(known), recent, sum(standing.differs for standing in known))
