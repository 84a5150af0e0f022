"""Image embeddings in the plan: each model embeds each image once, and all cells that need that take it from there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from testbed.data.source import ImageSource, dataset_of
from testbed.entities import DatasetInfo, Evaluation, SampleInfo
from testbed.errors import DataError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.eval_settings.image_embeddings_base import SUFFIX
from testbed.identity import describe_fields, digest
from testbed.runner.cells import Action, Cell, Need, OpenedModel, OpenedSetting
from testbed.tasks import image_embedding
from testbed.tasks.task_base import IMAGES, get_task

if TYPE_CHECKING:
    from testbed.runner.plan import Plan, Planner


def only_images(
    setting: EvalSetting, source: ImageSource, source_key: str, positions: Sequence[int], dataset: DatasetInfo
) -> OpenedSetting:
    """A setting of image embeddings: its samples are the images alone, without targets.

    Unless they are perturbed with random numbers made from their names, images are named by their content, and each
    different one is there once: whatever has the same images, in whatever language, finds its embeddings here.
    """
    if setting.perturbed:
        samples = [SampleInfo(sample.id, sample.digest, None) for sample in dataset.samples]
    else:
        first: dict[str, int] = {}
        for place, sample in enumerate(dataset.samples):
            first.setdefault(sample.digest, place)
        positions = [positions[place] for place in first.values()]
        samples = [SampleInfo(content, content, None) for content in first]
    return OpenedSetting(setting, source, source_key, positions, dataset_of(f"images of {dataset.name}", samples))


class EmbeddingPlanner:
    """Finds for each cell on embeddings where these are, or adds a cell that makes them.

    Args:
        planner: Whose models and settings are opened.
    """

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self._opened: dict[str, OpenedSetting | str] = {}
        self._cells: dict[tuple[str, str], Cell] = {}

    def others(self, model: OpenedModel, setting: EvalSetting) -> dict[str, Any]:
        """Role → what decides the embeddings of other images than the setting's own, targets included.

        Raises:
            TestbedError: If they cannot be had.
        """
        names = get_task(setting.task).image_settings(model.definition, setting)
        described = {}
        for role, name in names.items():
            if role != IMAGES:
                opened = self._open(name)
                if isinstance(opened, str):
                    raise DataError(opened)
                described[role] = [opened.dataset.fingerprint, self._forward(model, opened.setting)]
        return described

    def find(self, plan: Plan) -> list[Cell]:
        """Gives each cell to be run what it needs; returns the cells that must be run for that."""
        wanting: list[tuple[Cell, str, OpenedSetting, Cell]] = []
        for cell in plan.of(Action.RUN):
            model, setting = cell.opened_model, cell.opened_setting
            if model is None or setting is None or cell.forward is None:
                continue
            names = get_task(setting.setting.task).image_settings(model.definition, setting.setting)
            for role, name in names.items():
                opened = setting if role == IMAGES else self._open(name)
                assert not isinstance(opened, str)  # it was opened when the cell was identified
                wanting.append((cell, role, opened, self.cell_of(model, opened.setting)))
        made = list(self._cells.values())
        self.planner.find_stored([cell for cell in made if cell.action is Action.RUN])
        self._find_elsewhere([cell for cell in made if cell.action is Action.RUN])
        for cell, role, opened, embedding in wanting:
            if embedding.action in (Action.FAILED, Action.UNSUPPORTED):
                cell.action, cell.reason = Action.FAILED, f"its images cannot be embedded: {embedding.reason}"
                continue
            elsewhere = embedding.stored if embedding.action is Action.DONE else embedding.source
            cell.needs[role] = Need(opened, elsewhere or embedding)
        return [cell for cell in made if cell.action is Action.RUN and self._is_needed(cell, plan)]

    def cells(self) -> list[Cell]:
        """The cells of embeddings that were looked up."""
        return list(self._cells.values())

    def _is_needed(self, embedding: Cell, plan: Plan) -> bool:
        cells = plan.of(Action.RUN)
        return any(need.source is embedding for cell in cells for need in cell.needs.values())

    def _find_elsewhere(self, cells: Sequence[Cell]) -> None:
        """Marks the embeddings that are stored under another name, or are among those of more images."""
        stored: list[Evaluation] = []
        if not self.planner.options.override:
            stored = self.planner.outputs.sources({cell.forward for cell in cells if cell.forward is not None})
        made: list[Cell] = []
        for cell in sorted(cells, key=lambda cell: -cell.size):
            there = [each for each in stored if each.forward_fingerprint == cell.forward]
            found = self.planner.outputs.covering(cell, there, [each for each in made if each.forward == cell.forward])
            if found is None:
                cell.partly = self.planner.outputs.partial(cell, there)
                made.append(cell)
            else:
                cell.action, cell.source = Action.DERIVE, found

    def cell_of(self, model: OpenedModel, setting: EvalSetting) -> Cell:
        """The cell that embeds a setting's images, under the name of its image set where that has the same images."""
        opened = self._images_of(model, setting)
        name = f"{setting.name}{SUFFIX}" if isinstance(opened, str) else opened.setting.name
        key = (model.definition.name, name)
        if key not in self._cells:
            cell = self._cells[key] = Cell(model.definition.name, name)
            self.planner.identify(cell, model, opened)
        return self._cells[key]

    def _images_of(self, model: OpenedModel, setting: EvalSetting) -> OpenedSetting | str:
        own = self._open(setting.name + SUFFIX)
        if isinstance(own, str) or own.setting.perturbed or setting.image_set == setting.name:
            return own
        shared = self._open(setting.image_set + SUFFIX)
        if isinstance(shared, str) or self._forward(model, shared.setting) != self._forward(model, own.setting):
            return own
        there = {sample.digest for sample in shared.dataset.samples}
        return shared if all(sample.digest in there for sample in own.dataset.samples) else own

    def _forward(self, model: OpenedModel, setting: EvalSetting) -> str:
        spec = image_embedding.task.forward_spec(model.definition, setting, None, self.planner.options.seed)
        return digest(describe_fields(spec))

    def _open(self, name: str) -> OpenedSetting | str:
        if name not in self._opened:
            self._opened[name] = self.planner.attempt(partial(self.planner.open_setting, name))
        return self._opened[name]
