"""Cells that are scored by a model of their own, in the plan: whose outputs they take, what the scorer must embed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from testbed.entities import Evaluation
from testbed.errors import TestbedError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity import digest
from testbed.runner.cells import Action, Cell, Need, OpenedModel
from testbed.tasks.embedding_base import text_node
from testbed.tasks.scorer_base import ScorerTask
from testbed.tasks.task_base import IMAGES, get_task
from testbed.tasks.texts import text_language

if TYPE_CHECKING:
    from testbed.runner.plan import Plan, Planner

SCORED_BY = "scored_by"  # in what decides the metrics: the scorer, as it was


def scorer_of(identity: Mapping[str, Any]) -> dict[str, Any] | None:
    """The scorer of an evaluation: ``encoder`` (names its text embeddings), ``images`` (its image embeddings) and more.

    Args:
        identity: What the fingerprint was made of, in full.
    """
    found: dict[str, Any] | None = identity.get("view", {}).get(SCORED_BY)
    return found


def kept_scorer(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The part of what decides the metrics that stays when an evaluation is scored again: the same scorer."""
    found = scorer_of(identity)
    return {} if found is None else {SCORED_BY: found}


class ScorerPlanner:
    """Plans the cells that are scored by a model.

    Args:
        planner: Whose models and settings are opened.
    """

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self._models: dict[str, OpenedModel | str] = {}
        self._captions: dict[tuple[str, str], Cell] = {}  # of which scored cells take the outputs

    def require(self, setting: EvalSetting) -> None:
        """Checks that the scorer fits.

        Raises:
            UnsupportedError: If it does not.
        """
        assert setting.scoring is not None
        scorer = self.planner.catalog.get_model(setting.scoring.by)
        _task(setting).require_scorer(scorer, setting)
        text_language(scorer, setting.language)

    def describe(self, cell: Cell, setting: EvalSetting) -> dict[str, Any]:
        """What tells the scorer from others, as a part of what decides the metrics; empty where there is none.

        Raises:
            TestbedError: If its weights cannot be had.
        """
        if setting.scoring is None:
            return {}
        model = self._open(setting.scoring.by)
        cell.scorer = model
        dtype = self.planner.options.dtype
        described: dict[str, Any] = {
            "model": {"spec": model.description, "weights": model.weights.id if model.weights else None},
            "dtype": dtype,
            "encoder": None,
            "images": None,
        }
        if model.identity is not None:
            described["encoder"] = text_node(digest([model.identity, dtype]), model.definition, setting.language)
            if _task(setting).needs_images:
                described["images"] = self._images(model, setting).forward
        return {SCORED_BY: described}

    def find_captions(self, plan: Plan) -> list[Cell]:
        """For each cell to be scored the cell whose outputs it takes; returns those that nobody asked for."""
        asked = {(cell.model, cell.setting): cell for cell in plan.cells}
        made: list[Cell] = []
        for cell in self._scored(plan):
            key = (cell.model, self._scoring(cell).of)
            if key not in self._captions:
                self._captions[key] = asked.get(key) or Cell(*key, kept=True)
                if key not in asked:
                    made.append(self._captions[key])
                    self.planner.identify_as(self._captions[key], cell.opened_model, key[1])
        return made

    def settle(self, plan: Plan) -> list[Cell]:
        """Says of each cell to be scored what it takes; returns the cells that nobody asked for and that it needs."""
        needed: dict[int, Cell] = {}
        for cell in self._scored(plan):
            captions = self._captions[cell.model, self._scoring(cell).of]
            if captions.action in (Action.FAILED, Action.UNSUPPORTED):
                cell.action, cell.reason = captions.action, f"its captions cannot be had: {captions.reason}"
                continue
            opened = cell.opened_setting
            assert opened is not None
            if _task(opened.setting).needs_images and cell.scorer is not None and cell.scorer.identity is not None:
                images = self._images(cell.scorer, opened.setting)
                if images.action in (Action.FAILED, Action.UNSUPPORTED):
                    cell.action, cell.reason = Action.FAILED, f"its images cannot be embedded: {images.reason}"
                    continue
                cell.needs[IMAGES] = Need(opened, _holder(images))
            cell.action, cell.source = Action.SCORE, _holder(captions)
            for source in (cell.source, *(need.source for need in cell.needs.values())):
                if isinstance(source, Cell):
                    needed[id(source)] = source
        asked = {id(cell) for cell in plan.cells}
        return [cell for key, cell in needed.items() if key not in asked]

    def _scored(self, plan: Plan) -> list[Cell]:
        return [
            cell
            for cell in plan.of(Action.RUN)
            if cell.opened_setting is not None and cell.opened_setting.setting.scoring is not None
        ]

    def _scoring(self, cell: Cell) -> Any:
        assert cell.opened_setting is not None
        return cell.opened_setting.setting.scoring

    def _images(self, scorer: OpenedModel, setting: EvalSetting) -> Cell:
        assert setting.scoring is not None
        return self.planner.embeddings.cell_of(scorer, self.planner.catalog.get_eval_setting(setting.scoring.of))

    def _open(self, name: str) -> OpenedModel:
        if name not in self._models:
            self._models[name] = self.planner.attempt(partial(self.planner.open_model, name))
        model = self._models[name]
        if isinstance(model, str):
            raise TestbedError(f"the scorer {name} cannot be had: {model}")
        return model


def _holder(cell: Cell) -> Evaluation | Cell:
    """Who has the outputs of a cell, or will have them."""
    elsewhere = cell.stored if cell.action is Action.DONE else cell.source
    return elsewhere or cell


def _task(setting: EvalSetting) -> ScorerTask:
    task = get_task(setting.task)
    assert isinstance(task, ScorerTask), f"{setting.name} has a scorer, but its task {setting.task} takes none"
    return task
