"""Recomputes samples of stored cells and compares them, those longest unverified first, within a time budget.

Whatever no description of a cell shows (a server, a driver, a file that C code opens) shows in its outputs. Each
verification takes the next samples of a cell, in an order that the cell's data set fixes. Where it goes on is stored
with the certificate, so that all samples get their turn. After a difference, the same samples are taken again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from testbed.certificates import DIFFERING, Certificate
from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import RunError
from testbed.execution.cell_record import environment
from testbed.execution.executors import make_executor
from testbed.execution.progress import Progress, SilentProgress
from testbed.execution.sharing import Presence
from testbed.execution.worker_events import NO_TIME
from testbed.graph.cells import Action, Cell
from testbed.graph.options import RunOptions
from testbed.inputs import active, using
from testbed.planning.opening import Opener, attempt
from testbed.planning.plan import Planner
from testbed.registry.catalog import Catalog
from testbed.runner.greedy import with_stored_soups
from testbed.runner.recompute import STOPPED, Amount, Recomputation, RecomputationInterrupt, why_unreachable
from testbed.runner.stale_candidates import StaleCandidate
from testbed.runner.standing import WINDOW, Standing, Tally, standings, tally
from testbed.tracing.patches import traced

ROTATION = "rotation"  # in the environment of a certificate: which samples were compared
CLAIMS = "verify-store"  # the node of the leases on cells that a run verifies
SHOWN_SAMPLES = 20  # ids of differing samples that are stored

NOT_LOADED = "not in the registry today; --plugin FILE loads the definitions of a file"
IMPORTED = "imported: there are no outputs to compare"
COSTS_MONEY = "running the model again costs money; testbed run --verify does so"
DIFFERENT = "defined differently today, or evaluated with options that change the definition"
OTHERWISE = "its definition is written otherwise; testbed run checks it"
ELSEWHERE = "another run verifies it at the moment"


class Clock:
    """The time."""

    def now(self) -> datetime:
        """The moment, in UTC."""
        return datetime.now(UTC)

    def seconds(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()


@dataclass(frozen=True)
class VerifiedCell:
    """A cell that was verified, with the ids of the samples that differ."""

    evaluation: Evaluation
    certificate: Certificate
    differing: Sequence[str] = ()


@dataclass
class ScrubReport:
    """The outcome of a verification of a store.

    Attributes:
        verified: The cells that were verified, in order.
        not_verified: Reason → the cells that could not be verified.
        left: The cells that were not reached in time.
        differing: The cells whose last verification found a difference, now or earlier.
        tally: What is known of all cells afterwards.
        seconds: How long it took.
    """

    verified: list[VerifiedCell] = field(default_factory=list)
    not_verified: dict[str, list[Evaluation]] = field(default_factory=dict)
    left: list[Evaluation] = field(default_factory=list)
    differing: list[Standing] = field(default_factory=list)
    tally: Tally = field(default_factory=lambda: Tally(0, 0, 0))
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def ok(self) -> bool:
        """Returns whether no cell is known to differ."""
        return not self.tally.differ and not self.interrupted


@traced
def verify_store(
    catalog: Catalog,
    options: RunOptions,
    budget: timedelta,
    amount: Amount,
    models: Sequence[str] = (),
    eval_settings: Sequence[str] = (),
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> ScrubReport:
    """Verifies reported evaluations of a store, those longest unverified first, until the time is over.

    Args:
        options: The store, the plug-ins and the devices. What decides numbers (precision, limit, seed) is each
            evaluation's own.
        budget: How long cells may begin; those that have begun are finished.
        amount: How many samples of each evaluation.
        models: Names or patterns of stored models; none means all.
        eval_settings: Names or patterns of stored settings; none means all.
        clock: Tells the time.

    Raises:
        TestbedError: If the store cannot be used, or a plug-in cannot be loaded.
    """
    options, clock = options.resolved(), clock or Clock()
    with using(options.inputs or active()):
        catalog.load(options.plugins)
        with Store.open(options.db_url, "write", options.payload_url) as store:
            cells = standings(store, models, eval_settings)
            done = ScrubReport()
            began = clock.seconds()
            if cells:
                named = dict.fromkeys(cell.evaluation.model for cell in cells)
                options = with_stored_soups(catalog, options, store, list(named))
                with using(options.inputs or active()), Presence(store) as presence:
                    _Scrub(catalog, store, options, amount, progress or SilentProgress(), clock, done).run(
                        cells, budget
                    )
                    presence.outcome = "interrupted" if done.interrupted else "complete"
            known = standings(store, models, eval_settings)
            done.differing = [standing for standing in known if standing.differs]
            done.tally, done.seconds = tally(known, clock.now()), clock.seconds() - began
            return done


class _Notes(Progress):
    """Passes on notes alone: the passes are short, and those of each model are numbered anew."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def note(self, text: str) -> None:
        """To the user."""
        self._progress.note(text)


@dataclass(eq=False)
class _Scrub:
    """The work of `verify_store`."""

    catalog: Catalog
    store: Store
    options: RunOptions
    amount: Amount
    progress: Progress
    clock: Clock
    done: ScrubReport

    def __post_init__(self) -> None:
        self.progress = _Notes(self.progress)
        self.resources = make_executor(self.options).resources
        self._verified: set[int] = set()  # evaluations that were verified, or cannot be
        self._openers: dict[RunOptions, Opener] = {}
        self._silent: set[str] = set()  # places of outputs that do not answer
        self._end = 0.0
        self._tried = False  # whether a model has been run

    def run(self, cells: Sequence[Standing], budget: timedelta) -> None:
        """Verifies cells, model by model."""
        self._end = self.clock.seconds() + budget.total_seconds()
        open_cells = [cell for cell in cells if not self._refused(cell.evaluation)]
        recent = self.clock.now() - WINDOW
        groups = _by_model(open_cells, recent, len(self.resources.devices))
        try:
            for group in groups:
                if self._ends():
                    break
                self._verify(group)
        except KeyboardInterrupt:
            self.done.interrupted = True
        self.done.left = [cell.evaluation for cell in cells if cell.evaluation.id not in self._verified]

    def _over(self) -> bool:
        return self.clock.seconds() >= self._end

    def _ends(self) -> bool:
        """Returns whether to begin no further cell: each run verifies something, however long it takes."""
        return self._tried and self._over()

    def _note_not_verified(self, evaluation: Evaluation, reason: str) -> None:
        self.done.not_verified.setdefault(reason, []).append(evaluation)
        self._verified.add(evaluation.id)

    def _refused(self, evaluation: Evaluation) -> bool:
        """Checks whether a cell cannot be verified, judging by its names; notes the reason."""
        reason = attempt(lambda: self._why_refused(evaluation))
        if reason is not None:
            self._note_not_verified(evaluation, reason)
        return reason is not None

    def _why_refused(self, evaluation: Evaluation) -> str | None:
        if evaluation.origin == "imported":
            return IMPORTED
        if not self.catalog.contains_model(evaluation.model):
            return f"the model is {NOT_LOADED}"
        if not self.catalog.contains_eval_setting(evaluation.eval_setting):
            return f"the setting is {NOT_LOADED}"
        scoring = self.catalog.get_eval_setting(evaluation.eval_setting).scoring
        names = [evaluation.model, *(scoring.judges if scoring is not None else ())]
        return COSTS_MONEY if any(self.catalog.get_model(name).costs_money for name in names) else None

    # A group of cells ---------------------------------------------------------------------------------------------

    def _verify(self, group: Sequence[Standing]) -> None:
        """Verifies the cells of some models that no other run verifies."""
        first = self._claim(group)
        by_options: dict[RunOptions, list[Evaluation]] = {}
        for standing in group:
            if standing.evaluation.id in first:
                by_options.setdefault(self._options_of(standing.evaluation), []).append(standing.evaluation)
        for options, evaluations in by_options.items():
            candidates = self._candidates(options, evaluations)
            if candidates and not self._ends():
                self._compare(options, candidates, first)
        done = [str(cell.evaluation.id) for cell in self.done.verified]
        self.store.leases.keep_only({}, {CLAIMS: done})  # another run may have what the others lack here

    def _claim(self, group: Sequence[Standing]) -> dict[int, int]:
        """Claims cells; returns those that are this run's, each with the place of the first sample to compare."""
        ids = [standing.evaluation.id for standing in group]
        own, _ = self.store.leases.lease_items(CLAIMS, list(map(str, ids)), anew=True)
        known = self.store.records.certificates(ids)
        claimed: dict[int, int] = {}
        for standing in group:
            evaluation, certificates = standing.evaluation, known[standing.evaluation.id]
            last = certificates[-1].created_at if certificates else None
            if str(evaluation.id) not in own:
                self._note_not_verified(evaluation, ELSEWHERE)
            elif reason := why_unreachable(self.store, evaluation.id, self._silent):
                self._note_not_verified(evaluation, reason)
            elif last != (standing.last.created_at if standing.last is not None else None):
                self._verified.add(evaluation.id)  # another run has verified it since this one began
            else:
                claimed[evaluation.id] = _next_place(certificates)
        return claimed

    def _options_of(self, evaluation: Evaluation) -> RunOptions:
        """The options with which an evaluation was made, as far as the store says."""
        dtype, _, stored = (evaluation.dtype or "float32").partition("/")
        return replace(
            self.options,
            dtype=dtype,
            store_dtype=stored or None,
            limit=evaluation.sample_limit,
            random_weights=evaluation.random_weights,
            seed=_seed(self.store.evaluations.identity(evaluation)),
        )

    def _candidates(self, options: RunOptions, evaluations: Sequence[Evaluation]) -> list[StaleCandidate]:
        """The evaluations that today's definitions describe, with their cells; notes why others are not."""
        if options not in self._openers:
            self._openers[options] = Opener(self.catalog, options, fetch=False)
        planner = Planner(self.catalog, self.store, options, opener=self._openers[options])
        plan = planner.plan_pairs([(each.model, each.eval_setting) for each in evaluations])
        candidates = []
        for cell, evaluation in zip(plan.cells, evaluations, strict=True):
            if (reason := _why_not(cell, evaluation)) is None:
                candidates.append(StaleCandidate(cell, evaluation, metrics=True))
            else:
                self._note_not_verified(evaluation, reason)
        return candidates

    def _compare(self, options: RunOptions, candidates: Sequence[StaleCandidate], first: Mapping[int, int]) -> None:
        work = Recomputation(self.catalog, self.store, options, self.progress, self._over, first, self._silent)
        self._tried = True
        models = ", ".join(dict.fromkeys(candidate.cell.model for candidate in candidates))
        self.progress.note(f"verifying {models} ({len(candidates):,} cell{'s' if len(candidates) > 1 else ''})")
        try:
            found: Sequence[Certificate | str] = work.compare(candidates, self.amount)
        except RecomputationInterrupt as stopped:
            self._keep(options, candidates, stopped.found, first, work.differing)
            raise
        except RunError as error:  # such as workers that die of a model; the others may be well
            found = [str(error)] * len(candidates)
        self._keep(options, candidates, found, first, work.differing)

    def _keep(
        self,
        options: RunOptions,
        candidates: Sequence[StaleCandidate],
        found: Sequence[Certificate | str],
        first: Mapping[int, int],
        differing: Mapping[int, Sequence[str]],
    ) -> None:
        """Stores the certificates."""
        here = environment(self.resources, options)
        kept = []
        for candidate, each in zip(candidates, found, strict=True):
            evaluation = candidate.evaluation
            if isinstance(each, str):
                if NO_TIME not in each and each != STOPPED:
                    self._note_not_verified(evaluation, each)
                continue
            ids = list(differing[evaluation.id])
            more: dict[str, Any] = {ROTATION: self._rotation(candidate, each, first[evaluation.id])}
            more |= {DIFFERING: ids[:SHOWN_SAMPLES]} if ids else {}
            certificate = replace(each, environment={**here, **more}, created_at=self.clock.now())
            kept.append(VerifiedCell(evaluation, certificate, ids))
        self.store.records.add_certificates([(cell.evaluation.id, cell.certificate) for cell in kept])
        self.done.verified += kept
        self._verified.update(cell.evaluation.id for cell in kept)

    def _rotation(self, candidate: StaleCandidate, certificate: Certificate, first: int) -> dict[str, int]:
        """Returns which samples were compared, in the order of `Recomputation`, and where the next run begins."""
        readable = candidate.cell.size - len(self.store.outputs.errors(candidate.evaluation.id))
        number = self.amount.of(readable)
        after = (first + number) % readable if certificate.equal and readable > 0 else first
        return {"first": first, "samples": number, "of": readable, "next": after}


def _by_model(cells: Sequence[Standing], recent: datetime, at_once: int) -> Iterator[list[Standing]]:
    """Groups cells by model, as many models at once as there are devices, so that each loads a model once.

    Cells that were not verified recently come before the others.
    """
    for part in (
        [cell for cell in cells if cell.verified_at < recent],
        [cell for cell in cells if cell.verified_at >= recent],
    ):
        by_model: dict[str, list[Standing]] = {}
        for standing in part:
            by_model.setdefault(standing.evaluation.model, []).append(standing)
        members = list(by_model.values())
        for start in range(0, len(members), max(1, at_once)):
            yield [standing for several in members[start : start + max(1, at_once)] for standing in several]


def _next_place(certificates: Sequence[Certificate]) -> int:
    """Returns where the next verification begins, from the last certificate that contains it."""
    for certificate in reversed(certificates):
        rotation = certificate.environment.get(ROTATION) if isinstance(certificate.environment, dict) else None
        place = rotation.get("next") if isinstance(rotation, dict) else None
        if isinstance(place, int) and place >= 0:
            return place
    return 0


def _why_not(cell: Cell, evaluation: Evaluation) -> str | None:
    """Explains why an evaluation cannot be compared with today's outputs; None if it can."""
    if cell.action in (Action.FAILED, Action.UNSUPPORTED) or cell.fingerprint is None:
        return cell.reason
    if cell.action is Action.DONE and cell.stored is not None and cell.stored.id == evaluation.id:
        return None
    return OTHERWISE if cell.alike is not None and cell.alike.id == evaluation.id else DIFFERENT


def _seed(identity: Mapping[str, Any]) -> int:
    """The ``--seed`` of an evaluation; 0 where nothing was drawn."""
    weights = str((identity.get("model") or {}).get("weights") or "")
    if weights.startswith("random:"):
        return int(weights.partition(":")[2])
    forward = identity.get("forward") or {}
    noise = forward.get("noise") or [None, None]
    drawn = [noise[-1], forward.get("classify_seed"), forward.get("sampling")]
    return next((each for each in drawn if isinstance(each, int)), 0)
