"""Computing a few stored samples again: which ones, and how their outputs compare with the stored ones."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from testbed.certificates import Certificate
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation
from testbed.errors import RunError, TestbedError, UnreadOutputError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.execution.computation import Computation
from testbed.execution.items import requests_of
from testbed.execution.progress import Progress
from testbed.execution.report import Report
from testbed.graph.build import Graph
from testbed.graph.cells import Cell, ItemNode, Plan
from testbed.graph.nodes import Reads, Rows
from testbed.graph.options import RunOptions
from testbed.graph.passes import Check
from testbed.graph.stored import depends_on_batch
from testbed.paths import own_temporary
from testbed.planning.identify import others
from testbed.planning.opening import Opener
from testbed.planning.plan import Planner
from testbed.registry.catalog import Catalog
from testbed.registry.references import SettingReference
from testbed.runner.comparison import OutputComparison, enough, places_in, tolerance
from testbed.runner.stale_candidates import StaleCandidate
from testbed.tasks.task_base import get_task

SAMPLES = 8  # of an evaluation, where nobody says how many
ENOUGH = enough(0.01)  # so many that less than 1 % of all samples differ if none of these does
CLASSES = 4  # of a zero-shot head
STOPPED = "the check was stopped"  # the reason why there is no certificate


@dataclass(frozen=True)
class Amount:
    """The number of samples of each evaluation that are computed again, or their share."""

    number: int = SAMPLES
    share: float | None = None

    def of(self, size: int) -> int:
        """Returns the number of samples among a total."""
        wanted = self.number if self.share is None else math.ceil(self.share * size)
        return max(1, min(size, wanted))


class RecomputationInterrupt(KeyboardInterrupt):
    """The user has interrupted a comparison.

    Args:
        found: What was found until then, as `Recomputation.compare` returns it.
    """

    def __init__(self, found: Sequence[Certificate | str]) -> None:
        super().__init__()
        self.found = list(found)


def amount(text: str, option: str = "--verify") -> Amount:
    """Parses the value of ``--verify``: ``"100"``, or ``"1%"``; raises RunError if it is neither."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", text.strip())
    number = float(match[1]) if match else 0.0
    if match is not None and match[2] and 0 < number <= 100:
        return Amount(share=number / 100)
    if match is not None and not match[2] and number >= 1 and number.is_integer():
        return Amount(int(number))
    raise RunError(f"{option} takes a number of samples or a share of them, such as 100 or 1%; got {text!r}")


class Recomputation:
    """Computes samples of stored evaluations again, by today's code, in a scratch store.

    Args:
        store: Has the evaluations.
        over: Says that no further cells are to begin; see `Computation`.
        first: Evaluation id → the place, in the order by which samples are chosen, of the first one.
        silent: Places of outputs that do not answer, which are not asked again; those that are found are added.

    Attributes:
        differing: Evaluation id → the ids of the samples that differ.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        options: RunOptions,
        progress: Progress,
        over: Callable[[], bool] | None = None,
        first: Mapping[int, int] | None = None,
        silent: set[str] | None = None,
    ) -> None:
        self.catalog = catalog
        self.store = store
        self.options = options
        self.progress = progress
        self.differing: dict[int, list[str]] = {}
        self._over = over
        self._first = first or {}
        self._silent = set() if silent is None else silent
        self._datasets: dict[int, DatasetInfo] = {}

    def compare(self, candidates: Sequence[StaleCandidate], amount: Amount) -> list[Certificate | str]:
        """For each candidate how the stored outputs compare, or the reason why its samples cannot be computed.

        Where something of the user's own has changed, which may concern few samples, at least `ENOUGH` are compared.

        Raises:
            RecomputationInterrupt: If the user interrupts.
        """
        try:
            found = self._compare(candidates, amount)
        except RecomputationInterrupt as stopped:
            for number in self._to_repeat(candidates, stopped.found):
                stopped.found[number] = STOPPED
            raise
        # What is drawn, or rounded, may depend on the batch that a sample is in: then the first one, as it was.
        for again in self._together(candidates, self._to_repeat(candidates, found)):
            try:
                whole = self._compare([candidates[number] for number in again], amount, batches=True)
            except RecomputationInterrupt as stopped:
                raise RecomputationInterrupt(_with(found, again, stopped.found)) from None
            found = _with(found, again, whole)
        return found

    def _together(self, candidates: Sequence[StaleCandidate], numbers: Sequence[int]) -> list[list[int]]:
        """Numbers of candidates whose batches do not disturb each other: each model may begin at a place of its own."""
        by_model: dict[str, list[int]] = {}
        for number in numbers:
            by_model.setdefault(candidates[number].cell.model if self._first else "", []).append(number)
        return list(by_model.values())

    def _to_repeat(self, candidates: Sequence[StaleCandidate], found: Sequence[Certificate | str]) -> list[int]:
        """The numbers of the candidates whose samples may differ only because they were in another batch."""
        return [
            number
            for number, each in enumerate(found)
            if isinstance(each, Certificate)
            and each.differing
            and _batch_that_counts(candidates[number].cell, self.options)
        ]

    def _compare(
        self, candidates: Sequence[StaleCandidate], amount: Amount, batches: bool = False
    ) -> list[Certificate | str]:
        chosen = self._chosen(candidates, amount, batches)
        with own_temporary() as folder:
            url = str(Path(folder) / "scratch.db")
            options = replace(self.options, db_url=url, payload_url="", override=False, limit=None, strict=False)
            with Store.create(url, "") as scratch:
                plan, report = self._recompute(candidates, chosen, options, scratch)
                made = {(cell.model, cell.setting): cell for cell in [*plan.cells, *plan.others]}
                ended = {(outcome.model, outcome.setting): outcome for outcome in report.outcomes}
                found = [self._certificate(candidate, made, ended, scratch) for candidate in candidates]
        if report.interrupted:
            raise RecomputationInterrupt(found)
        return found

    def _pairs(self, cell: Cell) -> list[tuple[str, str]]:
        """The models and settings to be computed for a cell: its own, or what it was fitted to or computed from.

        A fitted probe is not fitted again: it follows from the embeddings that it was fitted to. So do the outputs of a
        derived model from those of its members.
        """
        return list(dict.fromkeys(self._followed(cell.model, cell.setting, cell.rows)))

    def _followed(self, model: str, setting: str, rows: Rows | None) -> Iterator[tuple[str, str]]:
        if rows is None or not (rows.reads is Reads.OUTPUTS or others(rows)):
            yield model, setting
            return
        for outputs_of in rows.inputs.values():
            by, taken = outputs_of.by or model, None
            if not outputs_of.node:
                definition = self.catalog.get_eval_setting(outputs_of.setting)
                taken = get_task(definition.task).build(Graph(self.catalog.get_model(by), definition)).outputs
            yield from self._followed(by, outputs_of.name, taken if isinstance(taken, Rows) else None)

    # Choosing -----------------------------------------------------------------------------------------------------

    def _chosen(self, candidates: Sequence[StaleCandidate], amount: Amount, batches: bool) -> dict[str, set[int]]:
        """Setting → positions in its source."""
        chosen: dict[str, set[int]] = {}
        for candidate in candidates:
            cell = candidate.cell
            assert cell.opened_setting is not None
            places = self._places(candidate, amount, batches)
            positions = {cell.opened_setting.positions[place] for place in places}
            for _, name in self._pairs(cell):
                chosen.setdefault(name, set()).update(positions)
        return chosen

    def _places(self, candidate: StaleCandidate, amount: Amount, batches: bool) -> list[int]:
        """Places among the samples of a cell, by a fixed rule: equal for cells on the same samples.

        Args:
            candidate: The cell, and the evaluation that has its outputs.
            amount: How many.
            batches: Whether to take whole batches from the beginning.
        """
        cell = candidate.cell
        opened = cell.opened_setting
        assert opened is not None
        if candidate.evaluation.status == "complete":
            unread = self.store.outputs.errors(candidate.evaluation.id) if candidate.metrics else {}
            there: Sequence[int] = [place for place in range(cell.size) if place not in unread]
            if candidate.evaluation in cell.partly:
                among = places_in(self._dataset(candidate.evaluation), opened.dataset.samples)
                there = [place for place in there if among[place] is not None]
        else:
            ranges = self.store.outputs.stored_ranges([candidate.evaluation.id])[candidate.evaluation.id]
            there = [place for start, stop in ranges for place in range(start, min(stop, cell.size))]
        number = max(amount.of(len(there)), min(len(there), ENOUGH if candidate.own else 0))
        first = self._first.get(candidate.evaluation.id, 0) % max(1, len(there))
        if batches and (whole := _batch_that_counts(cell, self.options)):
            wanted = {place % len(there) // whole for place in range(first, first + number)} if there else set()
            return [place for number, place in enumerate(there) if number // whole in wanted]
        ranked = sorted(
            there, key=lambda place: hashlib.sha256(f"{opened.dataset.fingerprint}/{place}".encode()).digest()
        )
        places = set([*ranked[first:], *ranked[:first]][:number])
        if cell.rows is None and not cell.judges:  # an instance may be of several images
            samples = opened.dataset.samples
            groups = {samples[place].group for place in places} - {None}
            places |= {place for place in there if samples[place].group in groups}
        return sorted(places)

    # Computing ----------------------------------------------------------------------------------------------------

    def _recompute(
        self, candidates: Sequence[StaleCandidate], chosen: Mapping[str, set[int]], options: RunOptions, scratch: Store
    ) -> tuple[Plan, Report]:
        pairs = {pair: None for candidate in candidates for pair in self._pairs(candidate.cell)}
        models = {
            candidate.cell.model: candidate.cell.opened_model
            for candidate in candidates
            if candidate.cell.opened_model is not None
        }
        check = Check(self.store.full_url, CLASSES)
        computation = Computation(self.catalog, options, scratch, self.progress, check, self._over)
        computation.executor.start_ahead()  # while the plan is made
        opener = Opener(self.catalog, options, choose=partial(_chosen_positions, chosen), models=models)
        plan = Planner(self.catalog, None, options, opener=opener).plan_pairs(list(pairs))
        return plan, computation.compute(plan)

    # Comparing ----------------------------------------------------------------------------------------------------

    def _certificate(
        self,
        candidate: StaleCandidate,
        made: Mapping[tuple[str, str], Cell],
        ended: Mapping[tuple[str, str], Any],
        scratch: Store,
    ) -> Certificate | str:
        comparison = OutputComparison(tolerance(self.options.precision))
        self.differing[candidate.evaluation.id] = []
        for key in self._pairs(candidate.cell):
            outcome = ended.get(key)
            if (
                outcome is None
                or outcome.evaluation_id is None
                or outcome.status not in ("complete", "derived", "scored")
            ):
                if outcome is None or outcome.status == "stopped":
                    return STOPPED
                return outcome.reason or STOPPED
            cell = made[key]
            own = key == (candidate.cell.model, candidate.cell.setting)
            stored = candidate.evaluation if own else self._holder(cell)
            if stored is None:
                return f"the stored outputs of {cell.name} are gone"
            if reason := why_unreachable(self.store, stored.id, self._silent):
                return reason
            try:
                differing = self._compare_outputs(comparison, cell, scratch, outcome.evaluation_id, stored)
                self.differing[candidate.evaluation.id] += differing
                self._compare_items(comparison, candidate.cell, cell, scratch, outcome.evaluation_id)
            except TestbedError as error:
                if isinstance(error, UnreadOutputError) and error.silent:
                    self._silent.add(error.silent)
                return str(error)
        if not comparison.samples:
            return "none of the chosen samples has stored outputs"
        return comparison.certificate()

    def _holder(self, cell: Cell) -> Evaluation | None:
        """A stored evaluation with the outputs of these very samples."""
        assert cell.opened_setting is not None
        for evaluation in self.store.evaluations.sources({cell.forward or ""}):
            if None not in places_in(self._dataset(evaluation), cell.opened_setting.dataset.samples):
                return evaluation
        return None

    def _dataset(self, evaluation: Evaluation) -> DatasetInfo:
        assert evaluation.dataset_id is not None
        if evaluation.dataset_id not in self._datasets:
            self._datasets[evaluation.dataset_id] = self.store.datasets.get(evaluation.dataset_id)
        return self._datasets[evaluation.dataset_id]

    def _compare_outputs(
        self, comparison: OutputComparison, cell: Cell, scratch: Store, evaluation_id: int, stored: Evaluation
    ) -> list[str]:
        """Compares the outputs of samples; returns the ids of those that differ."""
        assert cell.opened_setting is not None
        samples = cell.opened_setting.dataset.samples
        kind = next(iter(scratch.outputs.kinds(evaluation_id)), "")
        found = enumerate(places_in(self._dataset(stored), samples))
        places = [(place, position) for place, position in found if position is not None]
        before = self.store.outputs.read_rows(stored.id, kind, [position for _, position in places])
        now = scratch.outputs.read_rows(evaluation_id, kind, [place for place, _ in places])
        return [
            samples[place].id
            for (place, _), old, new in zip(places, before, now, strict=True)
            if old is not None and new is not None and comparison.add(old, new, answers=kind == "logits")
        ]

    def _compare_items(
        self, comparison: OutputComparison, cell: Cell, few: Cell, scratch: Store, evaluation_id: int
    ) -> None:
        """Compares the embeddings of texts and the answers that were computed on the way."""
        for node, own in zip(few.items, cell.items, strict=False):
            requests = list(dict.fromkeys(requests_of(scratch, few, evaluation_id, node)))
            if node.items.op.reads is Reads.TEXTS:
                before = self._stored_texts(own, requests)
                known = [request for request in requests if request in before]
                if known:
                    comparison.add_texts([before[text] for text in known], scratch.items.read(node.node, known))
            else:
                stored = self.store.items.read_answers(own.node, requests)
                comparison.add_answers(stored, scratch.items.read_answers(node.node, requests))

    def _stored_texts(self, node: ItemNode, texts: Sequence[str]) -> dict[str, Any]:
        """The stored embeddings of those of some texts that have one."""
        lacking = set(self.store.items.lacking(node.node, texts))
        known = [text for text in texts if text not in lacking]
        return dict(zip(known, self.store.items.read(node.node, known), strict=True)) if known else {}


def why_unreachable(store: Store, evaluation_id: int, silent: set[str]) -> str | None:
    """Why the outputs of an evaluation are not read: they are at one of the places that do not answer."""
    found = sorted(store.outputs.places(evaluation_id) & silent) if silent else []
    return f"the outputs are at {found[0]}, which does not answer; they are not tried" if found else None


def _with(
    found: Sequence[Certificate | str], numbers: Sequence[int], others: Sequence[Certificate | str]
) -> list[Certificate | str]:
    """Returns the results with these numbers replaced."""
    return list((dict(enumerate(found)) | dict(zip(numbers, others, strict=True))).values())


def _chosen_positions(chosen: Mapping[str, set[int]], setting: EvalSetting, positions: Sequence[int]) -> Sequence[int]:
    """The chosen positions of a setting; those of a setting on which another one builds are that one's."""
    names = [setting.name, str(SettingReference.parse(setting.name).setting)]
    names += [name for name in chosen if name.startswith((f"{names[1]}@", f"{names[1]}."))]
    wanted: set[int] = set().union(*(chosen.get(name, set()) for name in names))
    return [position for position in positions if position in wanted]


def _batch_that_counts(cell: Cell, options: RunOptions) -> int | None:
    """The batch size, for a cell whose outputs depend on the batch that a sample is in; None for others."""
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    model, setting = cell.opened_model.definition, cell.opened_setting.setting
    if setting.adversarial_attack is not None:
        return model.batch_size(adversarial=True)
    return model.batch_size(adversarial=False, override=options.batch_size) if depends_on_batch(cell) else None
