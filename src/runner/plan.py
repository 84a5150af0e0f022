"""Planning: which cells are stored already, which follow from stored outputs, which must be run, which cannot be."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from testbed import reading, sourcecode
from testbed.data.source import Source
from testbed.db.records import SET_ASIDE
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation
from testbed.errors import IdentityError, TestbedError, UnsupportedError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.reuse import StoredOutputs
from testbed.identity import SCHEME, describe, describe_fields, digest
from testbed.registry.catalog import Catalog
from testbed.registry.table import Registry
from testbed.runner.cells import Action, Cell, Encoder, Need, OpenedModel, OpenedSetting, weights_identity
from testbed.runner.embeddings import EmbeddingPlanner, only_images
from testbed.runner.options import RunOptions
from testbed.runner.scorers import SCORED_BY, ScorerPlanner
from testbed.tasks import image_embedding
from testbed.tasks.embedding_base import TextTask, text_node
from testbed.tasks.task_base import Task, get_task

log = logging.getLogger("testbed")
T = TypeVar("T")


@dataclass
class Plan:
    """The cells of a run and what is to be done about each.

    Attributes:
        cells: What was asked for.
        prerequisites: Cells that nobody asked for: image embeddings and captions that the others take, and that are not
            stored yet.
        others: All cells that were looked up for the sake of those that were asked for.
        doubts: Stored evaluations that it builds on and that a run checks first (of a dry run alone).
        passes: What a run reads, pass by pass (of a dry run alone).
    """

    cells: list[Cell] = field(default_factory=list)
    prerequisites: list[Cell] = field(default_factory=list)
    others: list[Cell] = field(default_factory=list)
    doubts: list[Any] = field(default_factory=list)
    passes: list[Any] = field(default_factory=list)

    def of(self, *actions: Action) -> list[Cell]:
        """The cells with one of these actions, in order."""
        return [cell for cell in self.cells if cell.action in actions]

    def counts(self) -> dict[Action, int]:
        """How many cells have each action."""
        counted = Counter(cell.action for cell in self.cells)
        return {action: counted[action] for action in Action if counted[action]}


class Planner:
    """Opens each model and each setting once, and decides about every cell.

    Args:
        catalog: Where names are looked up.
        store: What is stored; None for a store that does not exist yet.
        options: The run's options.
        fetch: Whether to download, train or load weights that are not here; a dry run does not.
    """

    def __init__(self, catalog: Catalog, store: Store | None, options: RunOptions, fetch: bool = True) -> None:
        self.catalog = catalog
        self.store = store
        self.options = options
        self.fetch = fetch
        self._opened: dict[str, OpenedSetting | str] = {}
        self._models: dict[str, OpenedModel | str] = {}
        self._datasets: dict[int, tuple[str, set[str], Any]] = {}  # id → its digest, files, and the object itself
        self._sources: dict[str, Any] = {}
        self._samples: dict[str, DatasetInfo] = {}
        self.outputs = StoredOutputs(store, options.strict)
        self.embeddings = EmbeddingPlanner(self)
        self._scorers = ScorerPlanner(self)

    def plan(self, models: Sequence[str], settings: Sequence[str]) -> Plan:
        """Decides about every model on every setting; nothing in the store is changed."""
        return self.plan_pairs([(model, setting) for model in models for setting in settings])

    def plan_pairs(self, pairs: Sequence[tuple[str, str]]) -> Plan:
        """Decides about pairs of a model and a setting.

        What was opened for an earlier plan stays open, so that planning again is quick.
        """
        self.embeddings = EmbeddingPlanner(self)
        self._scorers = ScorerPlanner(self)
        plan = Plan()
        for model, setting in pairs:
            cell = Cell(model, setting)
            plan.cells.append(cell)
            if not self._fits(cell):
                continue
            # Data are read, and weights fetched, only for a pair that fits.
            if setting not in self._opened:
                self._opened[setting] = self.attempt(partial(self.open_setting, setting))
            if model not in self._models:
                self._models[model] = self.attempt(partial(self.open_model, model))
            self.identify(cell, self._models[model], self._opened[setting])
        captions = self._scorers.find_captions(plan)
        self.find_stored([*plan.of(Action.RUN), *(cell for cell in captions if cell.action is Action.RUN)])
        to_run = [cell for cell in (*plan.cells, *captions) if cell.action is Action.RUN]
        self._find_sources([cell for cell in to_run if self._task(cell).has_outputs])
        prerequisites = [*self.embeddings.find(plan), *self._scorers.settle(plan)]
        plan.prerequisites = _not_asked_for(plan, list({id(cell): cell for cell in prerequisites}.values()))
        plan.others = [*captions, *self.embeddings.cells()]
        return plan

    # Opening ------------------------------------------------------------------------------------------------------

    def attempt(self, open_it: Callable[[], T]) -> T | str:
        """What a function returns, or the reason why it failed."""
        try:
            return open_it()
        except TestbedError as error:
            return str(error)
        except Exception as error:  # definitions are the user's own code, and may raise anything
            log.debug("planning failed", exc_info=True)
            return f"{type(error).__name__}: {error}"

    def open_setting(self, name: str) -> OpenedSetting:
        """A setting and its samples.

        Raises:
            TestbedError: If they cannot be had.
        """
        setting = self.catalog.get_eval_setting(name)
        source_key, files = self._describe_dataset(setting)
        if source_key not in self._sources:
            self._sources[source_key] = self.attempt(setting.dataset.open)
        source = self._sources[source_key]
        if isinstance(source, str):
            raise TestbedError(source)
        positions = self.positions(setting, source)
        samples_key = digest([source_key, positions])
        if samples_key not in self._samples:
            self._samples[samples_key] = source.describe_samples(positions)
        if setting.task == image_embedding.task.name:
            opened = only_images(setting, source, source_key, positions, self._samples[samples_key])
        else:
            opened = OpenedSetting(setting, source, source_key, positions, self._samples[samples_key])
        return replace(opened, files=frozenset(files | self._origin(self.catalog.eval_settings, name)))

    def _describe_dataset(self, setting: EvalSetting) -> tuple[str, set[str]]:
        """The digest of a setting's data set, and the files of its definition; settings often share the object."""
        key = id(setting.dataset)
        if key not in self._datasets:
            files: set[str] = set()
            self._datasets[key] = (digest(describe(setting.dataset, files)), files, setting.dataset)
        return self._datasets[key][:2]

    def positions(self, setting: EvalSetting, source: Source) -> Sequence[int]:
        """The positions of the source that are evaluated."""
        return setting.positions(source, self.options.limit)

    def _origin(self, registry: Registry[Any], name: str) -> set[str]:
        """The file in which a name is defined, where it is the user's own."""
        file = registry.origin(name)
        return {file} if file is not None and sourcecode.is_own("", file) else set()

    def open_model(self, name: str) -> OpenedModel:
        """A model and what its weights are.

        Raises:
            TestbedError: If they cannot be had.
        """
        definition = self.catalog.get_model(name)
        files = self._origin(self.catalog.models, name)
        fields = definition.spec()
        if self.options.random_weights:
            fields = {**fields, **definition.random_spec()}
        description = describe_fields(fields, files)
        with reading.watch(reading.model(name)):
            weights = definition.weights(self.options.random_seed, self.fetch)
        identity = weights_identity(description, weights.id) if weights is not None else None
        return OpenedModel(definition, weights, description, identity, frozenset(files))

    def _fits(self, cell: Cell) -> bool:
        """Whether the model can do the setting's task at all; asks for neither data nor weights."""
        try:
            model, setting = self.catalog.get_model(cell.model), self.catalog.get_eval_setting(cell.setting)
            get_task(setting.task).route(model, setting)
            setting.require()
            if setting.scoring is not None:
                self._scorers.require(setting)
        except UnsupportedError as error:
            cell.action, cell.reason = Action.UNSUPPORTED, str(error)
        except TestbedError as error:
            cell.action, cell.reason = Action.FAILED, str(error)
        except Exception as error:  # a family may be a plug-in's
            cell.action, cell.reason = Action.FAILED, f"it cannot be defined: {type(error).__name__}: {error}"
        return cell.action is Action.RUN

    def identify(self, cell: Cell, model: OpenedModel | str, setting: OpenedSetting | str) -> None:
        """Fills in what tells a cell from others."""
        if isinstance(model, str) or isinstance(setting, str):
            cell.action = Action.FAILED
            cell.reason = model if isinstance(model, str) else str(setting)
            return
        cell.opened_model, cell.opened_setting = model, setting
        cell.files |= model.files | setting.files
        specs = self.attempt(partial(self._specs, cell, model, setting))
        if isinstance(specs, str):
            cell.action, cell.reason = Action.FAILED, specs
            return
        forward, view = specs
        self._note_encoder(cell, model, setting.setting, view)
        cell.identity = {
            "model": {"spec": model.description, "weights": model.weights.id if model.weights else None},
            "forward": forward,
            "view": view,
            "samples": setting.dataset.fingerprint,
            "dtype": self.options.dtype,
            "scheme": SCHEME,
        }
        if cell.encoder is not None and cell.scorer is None:
            cell.identity["texts"] = cell.encoder.node
        if model.identity is None:
            cell.reason = "its weights are not here yet"
            return
        if cell.scorer is not None and cell.scorer.identity is None:
            cell.reason = "the weights of its scorer are not here yet"
            return
        cell.forward = digest([model.identity, self.options.dtype, forward])
        cell.fingerprint = digest([cell.forward, setting.dataset.fingerprint, view])

    def _note_encoder(self, cell: Cell, model: OpenedModel, setting: EvalSetting, view: dict[str, Any]) -> None:
        """Notes who embeds the texts that a cell is scored with, and under which name they are stored."""
        if cell.scorer is not None:
            cell.encoder = Encoder(cell.scorer.definition.name, view[SCORED_BY]["encoder"] or "", setting.language)
        elif isinstance(get_task(setting.task), TextTask):
            known = model.identity is not None
            identity = digest([model.identity, self.options.dtype])
            node = text_node(identity, model.definition, setting.language) if known else ""
            cell.encoder = Encoder(cell.model, node, setting.language)

    def identify_as(self, cell: Cell, model: OpenedModel | None, setting: str) -> None:
        """Fills in what tells a cell of a model on a setting by its name."""
        assert model is not None
        if self._fits(cell):
            self.identify(cell, model, self.attempt(partial(self.open_setting, setting)))

    def _specs(self, cell: Cell, model: OpenedModel, setting: OpenedSetting) -> tuple[Any, Any]:
        definition = setting.setting
        task = get_task(definition.task)
        # Outputs that are scored are those of another setting, which says what decides them.
        runs = definition if definition.scoring is None else self.catalog.get_eval_setting(definition.scoring.of)
        forward = task.forward_spec(model.definition, runs, setting.dataset.class_names, self.options.seed)
        forward["restricted"] = task.restricts(model.definition, definition)
        if others := self.embeddings.others(model, definition):
            forward["embedded"] = others
        source = type(setting.source)
        if sourcecode.is_own_class(source):  # what it calls a sample's content may not be all of it
            with contextlib.suppress(IdentityError):
                forward["source"] = describe(source, cell.files)
        view = describe_fields(task.view_spec(definition), cell.files) | self._scorers.describe(cell, definition)
        return describe_fields(forward, cell.files), view

    def _task(self, cell: Cell) -> Task:
        return get_task(self.catalog.get_eval_setting(cell.setting).task)

    # What is stored -----------------------------------------------------------------------------------------------

    def find_stored(self, cells: Sequence[Cell]) -> None:
        """Marks the cells whose evaluation is stored and complete."""
        if self.store is None or not cells:
            return
        evaluations = self.store.evaluations({cell.model for cell in cells}, {cell.setting for cell in cells})
        by_cell = {(each.model, each.eval_setting, each.fingerprint): each for each in evaluations}
        older = {(each.model, each.eval_setting): each for each in evaluations if self._is_older(each)}
        for cell in cells:
            cell.stored = by_cell.get((cell.model, cell.setting, cell.fingerprint or ""))
            cell.older = older.get((cell.model, cell.setting)) if cell.stored is None else None
            if cell.stored is not None and cell.stored.status == "complete" and not self._again(cell):
                cell.action = Action.DONE
        if self.options.strict:
            self._refuse_unread([cell for cell in cells if cell.action is Action.DONE])

    def _is_older(self, evaluation: Evaluation) -> bool:
        """Whether an evaluation is one of this kind of run, but its identity is described by an older scheme."""
        return (
            evaluation.status == "complete"
            and evaluation.origin != "imported"
            and evaluation.dtype == self.options.dtype
            and evaluation.random_weights == self.options.random_weights
            and (evaluation.identity or {}).get("scheme", 1) < SCHEME
            and SET_ASIDE not in (evaluation.identity or {})
        )

    def _refuse_unread(self, cells: Sequence[Cell]) -> None:
        """Under --strict, an evaluation some of whose samples could not be read is as good as none."""
        assert self.store is not None
        unread = self.store.unreadable([cell.stored.id for cell in cells if cell.stored is not None])
        for cell in cells:
            if cell.stored is not None and cell.stored.id in unread:
                cell.action = Action.FAILED
                number, captions = unread[cell.stored.id], _captions_of(cell)
                cell.reason = (
                    f"{number} sample{'s' if number > 1 else ''} of the stored evaluation could not be read, and"
                    f" --strict is given; --override{f' with the setting {captions}' if captions else ''} runs it again"
                )

    def _find_sources(self, cells: Sequence[Cell]) -> None:
        """Marks the cells whose outputs are stored under another name, or will be when another cell has been run.

        A cell can take the outputs of another one with the same forward fingerprint that saw all its samples.
        """
        by_forward: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            if cell.forward is not None:
                by_forward[cell.forward].append(cell)
        stored: dict[str, list[Evaluation]] = defaultdict(list)
        if self.store is not None and not all(self._again(cell) for cell in cells):
            replaced = {cell.stored.id for cell in cells if cell.stored is not None and self._again(cell)}
            for evaluation in self.outputs.sources(by_forward):
                if evaluation.id not in replaced:
                    stored[evaluation.forward_fingerprint or ""].append(evaluation)
        for forward, members in by_forward.items():
            # The largest first, so that a cell finds the one that it is a part of among those before it.
            members.sort(key=lambda cell: (-cell.size, cell.setting != _root_setting(members, cell)))
            ran: list[Cell] = []
            for cell in members:
                there = [] if self._again(cell) else stored[forward]
                source = self.outputs.covering(cell, there, ran)
                if source is None:
                    cell.partly = self.outputs.partial(cell, there)
                    ran.append(cell)
                else:
                    cell.action, cell.source = Action.DERIVE, source

    def _again(self, cell: Cell) -> bool:
        """Whether a cell is to be run even if it is stored."""
        return self.options.override and not cell.kept


def computed_and_judged(plan: Plan) -> tuple[list[Cell], list[Cell]]:
    """The cells of a plan whose outputs are computed, and those that are scored with embeddings of texts."""
    cells = [*plan.prerequisites, *plan.of(Action.RUN)]
    judged = [cell for cell in cells if cell.encoder is not None]
    return [cell for cell in cells if cell.encoder is None], [*judged, *plan.of(Action.SCORE)]


def _not_asked_for(plan: Plan, prerequisites: Sequence[Cell]) -> list[Cell]:
    """Prerequisites without those that somebody asked for, too; cells take from the asked ones instead."""
    asked = {(cell.model, cell.setting, cell.fingerprint): cell for cell in plan.of(Action.RUN)}
    kept = []
    for cell in prerequisites:
        twin = asked.get((cell.model, cell.setting, cell.fingerprint))
        if twin is None:
            kept.append(cell)
            continue
        for other in plan.cells:
            other.source = twin if other.source is cell else other.source
            for role, need in other.needs.items():
                other.needs[role] = Need(need.opened, twin) if need.source is cell else need
    return kept


def _captions_of(cell: Cell) -> str:
    """The setting that must be asked for, too, for a cell's captions to be said again; empty if it is asked for."""
    assert cell.opened_setting is not None
    scoring = cell.opened_setting.setting.scoring
    return scoring.of if scoring is not None else cell.setting if cell.kept else ""


def _root_setting(members: Sequence[Cell], cell: Cell) -> str:
    """Among equals, a setting that others name as their parent comes first."""
    assert cell.opened_setting is not None
    parents = {each.opened_setting.setting.parent_eval_setting for each in members if each.opened_setting is not None}
    return cell.setting if cell.setting in parents else ""
