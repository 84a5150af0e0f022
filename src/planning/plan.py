"""Planning: which cells are stored, which follow from stored outputs, which must be run, which are unsupported."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from testbed.db.parts.records import SET_ASIDE
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation, current
from testbed.graph.cells import Action, Cell, Edge, Plan
from testbed.graph.nodes import OutputsOf
from testbed.graph.options import RunOptions
from testbed.graph.stored import COMPUTED_FROM, StoredOutputs, when_begun
from testbed.identity.alike import IdentityComparison
from testbed.planning.identify import Identifier, image_fingerprint, others
from testbed.planning.opening import Opener
from testbed.registry.catalog import Catalog
from testbed.registry.references import DISTINCT, IMAGE_EMBEDDINGS, SettingReference
from testbed.tasks.task_base import get_task
from testbed.tracing import access_log

UNUSABLE = (Action.FAILED, Action.UNSUPPORTED)
# Why a cell is run though its evaluation is stored, by the status of that.


class Planner:
    """Decides about every cell.

    Args:
        store: What is stored; None for a store that does not exist yet.
        fetch: Whether to download, train or load weights that are missing; a dry run does not.
        opener: Opens models and settings; None makes one.

    Attributes:
        planned: Whether there was a plan, so that making it again is quick.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: Store | None,
        options: RunOptions,
        fetch: bool = True,
        opener: Opener | None = None,
    ) -> None:
        self.catalog = catalog
        self.store = store
        self.options = options
        self.opener = opener or Opener(catalog, options, fetch)
        self.outputs = StoredOutputs(store, options.strict)
        self._identifier = Identifier(catalog, self.opener, options, self._images_of, self._cell)
        self._cells: dict[tuple[str, str], Cell] = {}
        self.planned = False

    def plan(self, models: Sequence[str], settings: Sequence[str]) -> Plan:
        """Decides about every model on every setting; nothing in the store is changed."""
        return self.plan_pairs([(model, setting) for model in models for setting in settings])

    def plan_pairs(self, pairs: Sequence[tuple[str, str]]) -> Plan:
        """Decides about pairs of a model and a setting.

        What was opened for an earlier plan stays open, so that planning again is quick.
        """
        self._cells = {}
        plan = Plan([self._asked(*pair) for pair in dict.fromkeys(pairs)])
        for cell in plan.cells:
            cell.owned = True
        self._look_up()
        for cell in self._cells.values():
            self._decide(cell)
        asked = {id(cell) for cell in plan.cells}
        plan.others = [cell for cell in self._cells.values() if id(cell) not in asked]
        self.planned = True
        return plan

    def _asked(self, model: str, setting: str) -> Cell:
        """The cell of a pair; where only a part of the setting's data is there, that of the part, by its own name."""
        cell = self._cell(model, setting)
        if cell.action is not Action.FAILED or cell.opened_setting is not None:
            return cell
        reference = SettingReference.parse(setting)
        part = str(replace(reference, part=True))
        if reference.part or not self.catalog.contains_eval_setting(part):
            return cell
        if not isinstance(self.opener.setting(setting), str) or isinstance(self.opener.setting(part), str):
            return cell
        del self._cells[model, setting]
        return self._cell(model, part)

    # The graph ----------------------------------------------------------------------------------------------------

    def _cell(self, model: str, setting: str, node: str = "") -> Cell:
        """The cell of a model on a setting, or on one of its nodes: always the same object."""
        setting = str(SettingReference(setting, node=node))
        key = (model, setting)
        if key not in self._cells:
            cell = self._cells[key] = Cell(model, setting)
            # Data are read, and weights fetched, only for a pair that fits.
            if self._identifier.fits(cell):
                self._identifier.identify(cell)
            cell.owned = _embeds(cell)
            if cell.computed and _repeats(cell) and not cell.takes_outputs:
                self._cell(model, setting, DISTINCT)
        return self._cells[key]

    def _images_of(self, model: str, setting: str) -> Cell:
        """The cell in which a model embeds a setting's images: that of its image set, if it has the same images."""
        shared = self.catalog.get_eval_setting(setting).image_set
        alike = shared != setting and self._same_images(model, setting, shared)
        return self._cell(model, shared if alike else setting, IMAGE_EMBEDDINGS)

    def _same_images(self, model: str, setting: str, shared: str) -> bool:
        opened = self.opener.model(model)
        own, other = (
            self.opener.setting(str(SettingReference(each, node=IMAGE_EMBEDDINGS))) for each in (setting, shared)
        )
        if isinstance(own, str) or isinstance(other, str) or isinstance(opened, str) or own.setting.perturbation:
            return False
        prints = [image_fingerprint(opened_setting.setting, self.options.seed) for opened_setting in (own, other)]
        there = {sample.digest for sample in other.dataset.samples}
        return prints[0] == prints[1] and all(sample.digest in there for sample in own.dataset.samples)

    def _look_up(self) -> None:
        """Marks what is stored, and connects the other cells with those that they take from."""
        known: set[int] = set()
        while fresh := [cell for cell in self._cells.values() if id(cell) not in known and not _embeds(cell)]:
            known.update(id(cell) for cell in fresh)
            self._find_stored([cell for cell in fresh if cell.action is Action.RUN])
            for cell in fresh:
                if (outputs := _taken(cell)) is not None and not outputs.node:
                    cell.source = self._cell(cell.model, outputs.setting)
        plain = [cell for cell in self._cells.values() if not _embeds(cell)]
        for cell in plain:
            self._run_lost(cell)
        self._find_sources([cell for cell in plain if cell.computed and not cell.takes_outputs])
        for cell in plain:
            self._look_at_outputs(cell)
            self._connect(cell)
        images = [cell for cell in self._cells.values() if _embeds(cell)]
        self._find_stored([cell for cell in images if cell.action is Action.RUN])
        self._find_sources([cell for cell in images if cell.computed])

    def _run_lost(self, cell: Cell) -> None:
        """Has those cells run again whose outputs a cell takes, and whose files are missing."""
        if cell.action is not Action.RUN:
            return
        taken = [cell.source] if isinstance(cell.source, Cell) else []
        if cell.takes_outputs and cell.rows is not None:
            taken += [self._cell(each.by or cell.model, each.setting) for each in cell.rows.inputs.values()]
        for each in taken:
            if each.action is Action.DONE and each.stored is not None and not self.outputs.are_there(each.stored):
                each.action, each.outdated, each.reason = Action.RUN, True, "its stored outputs are gone"

    def _look_at_outputs(self, cell: Cell) -> None:
        """Marks a cell as outdated if it was computed from other outputs of its members than those that count today.

        What a model is made of is in its identity; whether its members were evaluated again is not.
        """
        if not cell.takes_outputs or cell.stored is None or cell.outdated:
            return
        assert cell.rows is not None
        assert self.store is not None
        members = {role: self._cell(each.by or cell.model, each.setting) for role, each in cell.rows.inputs.items()}
        for member in members.values():
            self._look_at_outputs(member)
        holders = {role: each.holder for role, each in members.items()}
        roots = {role: each.root for role, each in holders.items() if isinstance(each, Evaluation)}
        computed_from = (cell.stored.environment or {}).get(COMPUTED_FROM)
        if len(roots) < len(holders) or when_begun(self.store, roots) != computed_from:
            cell.outdated = True
            if cell.action is Action.DONE:
                cell.action, cell.reason = Action.RUN, "the models that it is made of were evaluated again"

    def _connect(self, cell: Cell) -> None:
        """Notes which rows of other cells a cell takes, is computed from, or is scored with."""
        if cell.built is None or cell.action not in (Action.RUN, Action.DERIVE):
            return
        if (outputs := _taken(cell)) is not None and outputs.node:
            cell.source = self._images_of(cell.model, outputs.setting)
        inputs = {role: each for role, each in cell.built.inputs.items() if isinstance(each, OutputsOf)}
        if cell.computed and cell.rows is not None:
            inputs |= cell.rows.inputs
        datasets: dict[str, DatasetInfo] = {}
        if cell.computed and cell.rows is not None and cell.opened_setting is not None:
            datasets = self.opener.fitted_on(cell.opened_setting, others(cell.rows))
        for role, each in inputs.items():
            by = each.by or cell.model
            opened = self.opener.setting(each.setting)
            assert not isinstance(opened, str)  # it was opened when the cell was identified
            dataset = datasets.get(role, opened.dataset)
            found = self._images_of(by, each.setting) if each.node else self._cell(by, each.setting)
            cell.inputs[role] = Edge(found, dataset)

    def _decide(self, cell: Cell) -> None:
        """Decides about a cell that takes from others, when it is known what is stored of them."""
        if cell.action not in (Action.RUN, Action.DERIVE):
            return
        for edge in cell.inputs.values():
            if edge.cell.action in UNUSABLE:
                what = "its images cannot be embedded" if _embeds(edge.cell) else f"{edge.cell.name} cannot be run"
                cell.action, cell.reason = Action.FAILED, f"{what}: {edge.cell.reason}"
                return
        if cell.rows is None and isinstance(cell.source, Cell):
            if cell.source.action in UNUSABLE:
                images = _embeds(cell.source)
                what = "its images cannot be embedded" if images else "its captions are not available"
                cell.action = Action.FAILED if images else cell.source.action
                cell.reason = f"{what}: {cell.source.reason}"
                return
            self._decide(cell.source)
            cell.source = cell.source.holder
            if cell.judges:
                cell.action = Action.SCORE

    # What is stored -----------------------------------------------------------------------------------------------

    def _find_stored(self, cells: Sequence[Cell]) -> None:
        """Marks the cells whose evaluation is stored and complete."""
        if self.store is None or not cells:
            return
        evaluations = self.store.evaluations.find({cell.model for cell in cells}, {cell.setting for cell in cells})
        by_cell = {
            (evaluation.model, evaluation.eval_setting, evaluation.fingerprint): evaluation
            for evaluation in evaluations
        }
        complete: dict[tuple[str, str], list[Evaluation]] = defaultdict(list)
        for each in evaluations:
            if each.status == "complete" and each.origin != "imported":
                complete[each.model, each.eval_setting].append(each)
        for cell in cells:
            cell.stored = by_cell.get((cell.model, cell.setting, cell.fingerprint or ""))
            cell.alike = None if cell.stored is not None else self._alike(cell, complete[cell.model, cell.setting])
            if cell.stored is not None and cell.stored.status == "complete" and not self._again(cell):
                cell.action = Action.DONE
            elif not cell.reason:
                cell.reason = self._why_run(cell, evaluations)
        if self.options.strict:
            self._refuse_unread([cell for cell in cells if cell.action is Action.DONE])

    def _why_run(self, cell: Cell, evaluations: Sequence[Evaluation]) -> str:
        """Explains why a cell is run although something is stored for it; empty if nothing is."""
        if cell.alike is not None:
            return ""
        if cell.stored is not None:
            return {"complete": "--override", "running": "resumed", "failed": "it failed before"}.get(
                cell.stored.status, ""
            )
        same = (cell.model, cell.setting, self.options.precision, self.options.random_weights)
        for evaluation in evaluations:
            of = (evaluation.model, evaluation.eval_setting, evaluation.dtype, evaluation.random_weights)
            if of == same and evaluation.status == "complete" and evaluation.origin != "imported":
                if evaluation.size != cell.size:
                    return f"stored for {evaluation.size:,} samples" if evaluation.size else ""
                return f"stored for another definition: testbed why '{cell.model}' '{cell.setting}'"
        return ""

    def _alike(self, cell: Cell, complete: Sequence[Evaluation]) -> Evaluation | None:
        """The reported evaluation of a cell if its identity differs only in how code is written."""
        assert self.store is not None
        reported = current(complete)
        if cell.fingerprint is None or not reported or not self._is_of_kind(reported[0]):
            return None
        return reported[0] if self._says_the_same(cell, self.store.evaluations.identity(reported[0])) else None

    def _is_of_kind(self, evaluation: Evaluation) -> bool:
        """Checks whether an evaluation is of this kind of run, and not outdated."""
        return (
            evaluation.dtype == self.options.precision
            and evaluation.random_weights == self.options.random_weights
            and SET_ASIDE not in (evaluation.identity or {})
        )

    def _says_the_same(self, cell: Cell, stored: Mapping[str, Any]) -> bool:
        folders = {os.path.dirname(file) for file in cell.files}
        return IdentityComparison([access_log.working_folder(), *sorted(folders)]).identities(
            stored, cell.identity or {}
        )

    def _refuse_unread(self, cells: Sequence[Cell]) -> None:
        """Rejects stored evaluations with unreadable samples under --strict."""
        assert self.store is not None
        unread = self.store.outputs.unreadable([cell.stored.id for cell in cells if cell.stored is not None])
        for cell in cells:
            if cell.stored is not None and cell.stored.id in unread:
                cell.action = Action.FAILED
                number, captions = unread[cell.stored.id], self._captions_of(cell)
                cell.reason = (
                    f"{number} sample{'s' if number > 1 else ''} of the stored evaluation could not be read, and"
                    f" --strict is given; --override{f' with the setting {captions}' if captions else ''} runs it again"
                )

    def _captions_of(self, cell: Cell) -> str:
        """The other setting that must be requested to recompute a cell's outputs; empty if it was requested."""
        assert cell.built is not None
        outputs = cell.built.outputs
        if isinstance(outputs, OutputsOf) and not outputs.node:
            return outputs.setting
        return "" if cell.owned else cell.setting

    def _find_sources(self, cells: Sequence[Cell]) -> None:
        """Marks the cells whose outputs are stored under another name, or will be when another cell has been run.

        A cell can take the outputs of another one with the same forward fingerprint that has all its samples.
        """
        by_forward: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            if cell.forward is not None:
                by_forward[cell.forward].append(cell)
        stored: dict[str, list[Evaluation]] = defaultdict(list)
        replaced = {cell.stored.id for cell in cells if cell.stored is not None and self._again(cell)}
        for evaluation in self.outputs.sources(by_forward):
            if evaluation.id not in replaced:
                stored[evaluation.forward_fingerprint or ""].append(evaluation)
        for forward, members in by_forward.items():
            # The largest first, so that a cell finds the one that it is a part of among those before it.
            members.sort(
                key=lambda cell: (-_distinct(cell), _repeats(cell), cell.setting != _root_setting(members, cell))
            )
            ran: list[Cell] = []
            for cell in members:
                there = [] if self._again(cell) else stored[forward]
                source = self.outputs.covering(cell, there, ran)
                if source is None:
                    cell.partly = self.outputs.partial(cell, there)
                    ran.append(cell)
                else:
                    cell.action, cell.source, cell.reason = Action.DERIVE, source, ""

    def _again(self, cell: Cell) -> bool:
        """Checks whether a cell is run even if it is stored."""
        return self.options.override and cell.owned


def _taken(cell: Cell) -> OutputsOf | None:
    """The outputs of another cell that a cell to be run takes as its own."""
    if cell.action is not Action.RUN or cell.built is None or not isinstance(cell.built.outputs, OutputsOf):
        return None
    return cell.built.outputs


def _embeds(cell: Cell) -> bool:
    return cell.opened_setting is not None and get_task(cell.opened_setting.setting.task).of_images_alone


def _distinct(cell: Cell) -> int:
    """The number of different samples of a cell."""
    return cell.opened_setting.distinct if cell.opened_setting is not None else 0


def _repeats(cell: Cell) -> bool:
    """Checks whether a cell contains a sample more than once."""
    return _distinct(cell) < cell.size


def _root_setting(members: Iterable[Cell], cell: Cell) -> str:
    """Among equals, a setting that others name as their parent comes first."""
    parents = {
        member.opened_setting.setting.parent_eval_setting for member in members if member.opened_setting is not None
    }
    return cell.setting if cell.setting in parents else ""
