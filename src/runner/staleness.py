"""Decides whether a run may reuse stored evaluations; checks doubtful ones on a few samples first."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.certificates import MAY_DIFFER, METRIC_CHANGES, NEW_METRICS, Certificate
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.execution.progress import Progress
from testbed.execution.records import RunRecords
from testbed.execution.report import CheckResult
from testbed.graph.cells import Action, Cell, Plan
from testbed.graph.options import RunOptions
from testbed.planning.plan import Planner
from testbed.provenance.manifest import CHECKED, EDITED, described
from testbed.registry.catalog import Catalog
from testbed.runner.comparison import may_differ
from testbed.runner.recompute import ENOUGH, SAMPLES, Amount, Recomputation
from testbed.runner.stale_candidates import StaleCandidate, find_stale_candidates, in_order
from testbed.scoring.changes import SHOWN
from testbed.scoring.finish import changes_or_reason
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log
from testbed.tracing.own_code import is_own_class

# Complete evaluations that one run checks; the next ones stay in doubt, and the run says so.
MOST_CHECKED = 1000
# Samples of all evaluations together that are checked after an upgrade, but `SAMPLES` of each.
MOST_SAMPLES = 2400
_RECORD_SECONDS = 0.2  # how often to look for the record of what another run computes


@dataclass(eq=False)
class StalenessChecker:
    """Checks stored evaluations that may be outdated before a run computes anything.

    Args:
        store: The results store, open for writing.
        records: The records of the run, with the stored records that are valid today.
        cell_record: Makes the store's description of a cell, to adopt an evaluation for it.
        environment: The environment to record with certificates.
    """

    catalog: Catalog
    store: Store
    options: RunOptions
    records: RunRecords
    progress: Progress
    cell_record: Callable[[Cell], Any]
    environment: dict[str, Any]

    def __post_init__(self) -> None:
        self.checks: list[CheckResult] = []
        self._checked: set[int] = set()  # evaluations that need no further check
        self._unchecked: dict[int, str] = {}  # evaluation id → why its check failed
        self._unscored: dict[int, str] = {}  # why the metrics of others could not be computed
        self._suspects: set[str] = set()
        self._left = MOST_CHECKED  # checks that are still made

    def check(self, planner: Planner, pairs: Sequence[tuple[str, str]]) -> Plan:
        """The plan, in which every stored evaluation that it reuses is checked or trusted."""
        plan = planner.plan_pairs(pairs)
        opened = [cell.opened_setting for cell in (*plan.cells, *plan.others) if cell.opened_setting is not None]
        if self.store.datasets.restore_samples({setting.dataset.fingerprint: setting.dataset for setting in opened}):
            plan = planner.plan_pairs(pairs)
        if not self.options.trust and self._bring_back(self._candidates(plan)):
            plan = planner.plan_pairs(pairs)
        while candidates := self._candidates(plan):
            replan = self._take_on_trust(candidates) if self.options.trust else self._look(candidates)
            if replan:
                plan = planner.plan_pairs(pairs)
        self._refuse_unchecked(plan)
        return plan

    @property
    def suspects(self) -> frozenset[str]:
        """Models with outdated stored outputs."""
        return frozenset(self._suspects)

    def verify(self, plan: Plan, amount: Amount) -> None:
        """Compares stored evaluations with recomputed samples, even if nothing has changed, and stores the outcome."""
        candidates = [StaleCandidate(cell, cell.stored) for cell in plan.of(Action.DONE) if cell.stored is not None]
        if not candidates:
            return
        self.progress.note(f"verifying {_count(len(candidates), 'stored evaluation')}")
        for candidate, found in zip(candidates, self._recomputation().compare(candidates, amount), strict=True):
            if isinstance(found, str):
                self._add(candidate, "not checked", reason=found)
                continue
            found = replace(found, environment=self.environment)
            self.store.records.add_certificates([(candidate.evaluation.id, found)])
            self._add(candidate, "equal" if found.equal else "differs", found)

    # Doubts -------------------------------------------------------------------------------------------------------

    def _candidates(self, plan: Plan) -> list[StaleCandidate]:
        found = self._find(plan)
        while begun := [each.evaluation.id for each in found if _has_no_record_yet(each)]:
            others = self.store.leases.others_at(begun)
            found = self._find(plan)  # after the leases: a run stores records before it gives these up
            if not others:
                break
            time.sleep(_RECORD_SECONDS)
        for candidate in [stale_candidate for stale_candidate in found if _costs_money(stale_candidate.cell)]:
            self._leave(candidate, "running the model again costs money; --verify does so")
        for candidate in found:
            edited = self.records.today.edited(candidate.record or {})
            if modules := [name for name in edited if name in access_log.own_modules().values()]:
                self._leave(candidate, f"{modules[0]} {EDITED}")  # its code in memory would run again
        return [stale_candidate for stale_candidate in found if stale_candidate.evaluation.id not in self._checked]

    def _find(self, plan: Plan) -> list[StaleCandidate]:
        known = self.records
        return find_stale_candidates(plan, self.store, known.today, self._checked, known.valid, known.judged)

    def _bring_back(self, candidates: Sequence[StaleCandidate]) -> bool:
        """Restores evaluations that were set aside but match today's files, as after going back a version."""
        taken = 0
        for candidate in [each for each in candidates if each.metrics and not each.adopt]:
            cell = candidate.cell
            for earlier in self.store.records.set_aside_before(cell.fingerprint or "", cell.model, cell.setting):
                stored = self.store.records.of([earlier])[earlier]
                if any(record.metrics and not self.records.today.differences(record.content) for record in stored):
                    self.store.records.set_aside(candidate.evaluation.id, candidate.differences)
                    self.store.records.bring_back(earlier)
                    taken += 1
                    break
        if taken:
            self.progress.note(f"reusing {_count(taken, 'earlier evaluation')} from the same files and versions")
        return taken > 0

    def _take_on_trust(self, candidates: Sequence[StaleCandidate]) -> bool:
        for candidate in candidates:
            self._leave(candidate, "--trust")
            if candidate.adopt:
                self.store.records.adopt(candidate.evaluation.id, self.cell_record(candidate.cell))
        return any(candidate.adopt for candidate in candidates)

    def _leave(self, candidate: StaleCandidate, reason: str) -> None:
        """Reuses an evaluation without a check; it stays in doubt, like everything derived from it."""
        self._checked.add(candidate.evaluation.id)
        if reason.endswith(EDITED) and all(result.reason != reason for result in self.checks):
            self.progress.note(f"{reason}; until then what is stored is taken unchecked")
        self.records.doubtful[candidate.evaluation.id] = candidate.record or {}
        self._add(candidate, "not checked", reason=reason)

    def _chosen(self, candidates: Sequence[StaleCandidate]) -> list[StaleCandidate]:
        """The candidates to check: all that something new is computed from, and so many of the others."""
        built_on = [candidate for candidate in candidates if candidate.cell.action is not Action.DONE]
        others = in_order([candidate for candidate in candidates if candidate.cell.action is Action.DONE])
        for other in others[self._left :]:
            self._leave(other, "so many are checked in one run; the next run checks more, --verify all")
        chosen = others[: self._left]
        self._left -= len(chosen)
        return [*built_on, *chosen]

    def _look(self, candidates: Sequence[StaleCandidate]) -> bool:
        """Checks candidates on a few samples; returns whether the store changed, so that a new plan is needed."""
        chosen = self._chosen(candidates)
        if not chosen:
            return False
        differences = [difference for candidate in chosen for difference in candidate.differences]
        self.progress.note(f"checking {_count(len(chosen), 'stored evaluation')} ({described(differences)})")
        results: list[tuple[StaleCandidate, Certificate]] = []
        found = self._recomputation().compare(chosen, Amount(max(SAMPLES, min(ENOUGH, MOST_SAMPLES // len(chosen)))))
        for candidate, certificate in zip(chosen, found, strict=True):
            self._checked.add(candidate.evaluation.id)
            if isinstance(certificate, str):
                self._unchecked[candidate.evaluation.id] = certificate
                self._add(candidate, "not checked", reason=certificate)
                continue
            certificate = self._with_metrics(candidate, certificate)
            unscored = self._unscored.get(candidate.evaluation.id, "")
            edited = self.records.today.edited(self.records.of(candidate.cell, candidate.record))
            if certificate.equal and edited:  # what ran again may be what is in memory
                self._leave(candidate, f"{edited[0]} {EDITED}")
            else:
                results.append((candidate, certificate))
                result = "not checked" if unscored else "equal" if certificate.equal else "differs"
                self._add(candidate, result, certificate, unscored)
        self.store.records.add_certificates(
            [(candidate.evaluation.id, certificate) for candidate, certificate in results]
        )
        for candidate in [candidate for candidate, certificate in results if not certificate.equal]:
            self._suspects.add(candidate.cell.model)
            self._suspects.update(judge.definition.name for judge in candidate.cell.judges)
        self._note_records(results)
        changed = [self._apply(candidate, certificate) for candidate, certificate in results]
        return any(changed)

    def _with_metrics(self, candidate: StaleCandidate, certificate: Certificate) -> Certificate:
        """Adds a check of the metrics to a certificate, and notes why where they cannot be computed."""
        because = tuple(candidate.differences)
        noted: dict[str, Any] = {}
        if self._metrics_in_doubt(candidate) and certificate.equal:
            found = changes_or_reason(self.store, self.catalog, candidate.evaluation.id)
            if isinstance(found, str):  # the outputs are equal, and may serve other cells
                self._unscored[candidate.evaluation.id] = found
            else:
                certificate = replace(certificate, same_metrics=found.same)
                noted = {NEW_METRICS: found.new, METRIC_CHANGES: list(found.differing[:SHOWN])}
                if found.same:
                    self.store.evaluations.add(candidate.evaluation.id, found.new_scores, found.new_metrics)
        noted = {key: value for key, value in noted.items() if value}
        noted[MAY_DIFFER] = may_differ(certificate.samples, candidate.cell.size)
        environment = {**self.environment, **noted}
        return replace(certificate, because=because, environment=environment)

    def _apply(self, candidate: StaleCandidate, certificate: Certificate) -> bool:
        """Applies the outcome of a check to the store; returns whether a new plan is needed."""
        evaluation, because = candidate.evaluation, certificate.because
        if certificate.differing and candidate.adopt:
            pass  # it is of another definition, and stays what it is
        elif certificate.differing:
            self._checked.update(self.store.records.set_aside(evaluation.id, because))
        elif candidate.adopt:
            self.store.records.adopt(
                evaluation.id, self.cell_record(candidate.cell), metrics=bool(certificate.same_metrics)
            )
        elif certificate.same_metrics is False:
            self.store.records.set_aside(evaluation.id, because, outputs=False)
        return candidate.adopt or not certificate.equal

    def _note_records(self, results: Sequence[tuple[StaleCandidate, Certificate]]) -> None:
        """Records that evaluations are valid with today's files and versions."""
        whole: dict[int, dict[str, Any]] = {}
        outputs: dict[int, dict[str, Any]] = {}
        for candidate, certificate in results:
            if not certificate.differing:
                record = self.records.of(candidate.cell, candidate.record)
                record = {**record, CHECKED: {"samples": certificate.samples, MAY_DIFFER: certificate.may_differ}}
                self.records.valid[candidate.evaluation.id] = record
                metrics = candidate.metrics and certificate.same_metrics is not False
                metrics = metrics and candidate.evaluation.id not in self._unscored
                (whole if metrics else outputs)[candidate.evaluation.id] = record
                if candidate.evaluation.root != candidate.evaluation.id:
                    outputs.setdefault(candidate.evaluation.root, record)
        self.store.records.add(outputs, metrics=False)
        self.store.records.add(whole)

    def _metrics_in_doubt(self, candidate: StaleCandidate) -> bool:
        """Checks whether the metrics could differ even if the outputs are equal.

        testbed's own metrics depend only on the outputs as long as testbed and the libraries are the same.
        """
        opened = candidate.cell.opened_setting
        assert opened is not None
        if not candidate.metrics:
            return False
        return (
            candidate.adopt
            or candidate.record is None
            or opened.setting.metrics_fn is not None
            or is_own_class(type(get_task(opened.setting.task)))
            or self.records.today.code_differs(candidate.record)
        )

    def _refuse_unchecked(self, plan: Plan) -> None:
        """Marks cells whose stored evaluation could not be checked as failed; nothing is deleted."""
        for cell in [*plan.cells, *plan.needed()]:
            cell.partly = [evaluation for evaluation in cell.partly if evaluation.id not in self._unchecked]
            if cell.action in (Action.FAILED, Action.UNSUPPORTED):
                continue
            sources = [*cell.sources, cell.stored if cell.action in (Action.DONE, Action.RUN) else None]
            taken = [source.id for source in sources if isinstance(source, Evaluation)]
            reasons = [self._unchecked[each] for each in taken if each in self._unchecked]
            if cell.action is Action.DONE and cell.stored is not None and cell.stored.id in self._unscored:
                reasons.append(self._unscored[cell.stored.id])
            if reasons:
                cell.action = Action.FAILED
                cell.reason = (
                    f"its stored results may be outdated and cannot be checked: {reasons[0]}; --trust reuses them,"
                    " --override runs it again"
                )

    def _recomputation(self) -> Recomputation:
        return Recomputation(self.catalog, self.store, self.options, self.progress)

    def _add(
        self, candidate: StaleCandidate, result: str, certificate: Certificate | None = None, reason: str = ""
    ) -> None:
        evaluation = candidate.evaluation
        because = tuple(candidate.differences)
        self.checks.append(
            CheckResult(
                candidate.cell.model, candidate.cell.setting, evaluation.id, because, result, certificate, reason
            )
        )


def _has_no_record_yet(candidate: StaleCandidate) -> bool:
    """Checks whether an incomplete evaluation has no record, which the run that computes it will soon store."""
    return candidate.record is None and candidate.evaluation.status == "running"


def _costs_money(cell: Cell) -> bool:
    models = [cell.opened_model, *cell.judges]
    return any(model.definition.costs_money for model in models if model is not None)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
