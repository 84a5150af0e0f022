"""The outcome of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.certificates import Certificate
from testbed.graph.cells import LeftOuts, Plan, left_out_of_all


@dataclass
class Outcome:
    """The outcome of a cell.

    Attributes:
        status: ``stored`` (before this run), ``complete``, ``derived``, ``scored``, ``unsupported``, ``failed``,
            ``incomplete`` (some samples got no answer from a served model; a rerun asks for these) or ``stopped``.
        evaluation_id: Its evaluation, if it has one.
    """

    model: str
    setting: str
    status: str
    reason: str = ""
    evaluation_id: int | None = None


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a check of a stored evaluation.

    Attributes:
        evaluation: Its id.
        because: What had changed since it was computed; empty under ``--verify``.
        result: ``"equal"``, ``"differs"`` (then a run computes a new evaluation), or ``"not checked"``.
        certificate: The comparison, if there was one.
        reason: Why it was not checked.
    """

    model: str
    eval_setting: str
    evaluation: int
    because: tuple[str, ...]
    result: str
    certificate: Certificate | None = None
    reason: str = ""


@dataclass
class Times:
    """The time that a pass took, by stage.

    Attributes:
        label: What the pass is about.
        workers: How many took part.
        seconds: Stage → seconds of all workers; see `testbed.process.profiling`.
    """

    label: str
    workers: int = 0
    seconds: Counter[str] = field(default_factory=Counter)

    def add(self, seconds: Mapping[str, float]) -> None:
        """Adds what a worker has measured."""
        self.workers += 1
        self.seconds.update(seconds)

    def as_object(self) -> dict[str, Any]:
        """For JSON."""
        return {"pass": self.label, "workers": self.workers, "seconds": dict(sorted(self.seconds.items()))}

    @classmethod
    def from_object(cls, stored: Mapping[str, Any]) -> Times:
        """The result of `as_object` read again."""
        return cls(stored["pass"], stored["workers"], Counter(stored["seconds"]))


@dataclass
class Report:
    """The outcome of a run.

    Attributes:
        stored_bytes: The number of bytes of outputs stored.
        reused: The number of samples × cells reused from an earlier run.
        hooks: Name of a hook → what it returned at the end of the run.
        checks: The outcomes of checks of stored evaluations.
        unstored: Of an interrupted run, why some of what it computed is not stored; empty if all of it is.
        dtype: The precision of the models.
        times: Pass → where its time went, with ``--profile``.
    """

    plan: Plan
    outcomes: list[Outcome] = field(default_factory=list)
    passes: int = 0
    stored_bytes: int = 0
    reused: int = 0
    hooks: dict[str, Any] = field(default_factory=dict)
    checks: list[CheckResult] = field(default_factory=list)
    interrupted: bool = False
    unstored: str = ""
    dtype: str = "float32"
    times: dict[int, Times] = field(default_factory=dict)

    def of(self, *statuses: str) -> list[Outcome]:
        """The outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def finished(self) -> list[Outcome]:
        """The outcomes of the cells that have results."""
        return self.of("complete", "stored", "derived", "scored")

    @property
    def evaluations(self) -> list[int]:
        """The evaluations of these cells."""
        return [outcome.evaluation_id for outcome in self.finished if outcome.evaluation_id is not None]

    @property
    def left_out(self) -> LeftOuts:
        """Setting → what its data set left out, for all cells of the run, stored ones too."""
        return left_out_of_all(self.plan.cells)

    @property
    def ok(self) -> bool:
        """Returns whether all supported cells, at least one, have results that no check contradicts."""
        replaced = {outcome.evaluation_id for outcome in self.of("stored")}
        contradicted = [check for check in self.checks if check.result == "differs" and check.evaluation in replaced]
        nothing = bool(self.of("unsupported")) and not self.finished
        lacking = nothing or bool(self.of("failed", "incomplete", "stopped"))
        return not self.interrupted and not lacking and not contradicted
