"""How a run ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.runner.plan import Plan
from testbed.runner.trust import Checked


@dataclass
class Outcome:
    """How a cell ended.

    Attributes:
        status: ``stored`` (before this run), ``complete``, ``derived``, ``scored``, ``unsupported``, ``failed`` or
            ``stopped``.
        evaluation_id: Its evaluation, where it has one.
    """

    model: str
    setting: str
    status: str
    reason: str = ""
    evaluation_id: int | None = None


@dataclass
class Report:
    """How a run ended.

    Attributes:
        stored_bytes: How many bytes of outputs were stored.
        reused: How many samples × cells were not computed, since an earlier run had stored their outputs.
        disagreements: Lines about numbers of this run that differ from published ones.
        checks: What checks of stored evaluations gave.
    """

    plan: Plan
    outcomes: list[Outcome] = field(default_factory=list)
    passes: int = 0
    stored_bytes: int = 0
    reused: int = 0
    disagreements: list[str] = field(default_factory=list)
    checks: list[Checked] = field(default_factory=list)
    interrupted: bool = False

    def of(self, *statuses: str) -> list[Outcome]:
        """The outcomes with one of these statuses."""
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def ok(self) -> bool:
        """Whether every cell that can be had is there."""
        replaced = {each.evaluation_id for each in self.of("stored")}
        contradicted = [each for each in self.checks if each.result == "differs" and each.evaluation in replaced]
        return not self.interrupted and not self.of("failed", "stopped") and not contradicted
