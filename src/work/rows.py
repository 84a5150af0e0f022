"""Passes on stored embeddings: outputs are made out of them, by a head or a probe."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from testbed.entities import Chunk
from testbed.graph.passes import Pass, Shard
from testbed.runner.stored_images import embedded_images
from testbed.tasks.task_base import IMAGES, BoundCell, EmbeddedImages, PrepareContext, get_task
from testbed.work.context import Context
from testbed.work.kernel import Counted, Done, ShardKernel


class RowKernel(ShardKernel):
    """Prepares a cell when its first shard comes, and makes its outputs."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell = one_pass.cells[0]
        self._embedded: dict[str, EmbeddedImages] = {}
        self._bound: BoundCell | None = None
        self._kind = ""

    def compute(self, shard: Shard) -> Iterator[Counted | Done]:
        """The outputs of a range of embeddings."""
        bound = self._bind()
        images = self._images(IMAGES)
        features = torch.from_numpy(images.values[shard.start : shard.stop]).to(self.context.device)
        with torch.no_grad():
            outputs = bound.outputs(features).to("cpu")
        errors = {position: why for position, why in images.errors.items() if shard.start <= position < shard.stop}
        chunk = Chunk(self.cell.evaluation_id, self._kind, shard.start, outputs)
        yield Done(shard, [chunk], {self.cell.evaluation_id: errors} if errors else {})

    def _bind(self) -> BoundCell:
        if self._bound is None:
            loaded = self.context.load_one(self.cell.model)
            setting = self.context.catalog.get_eval_setting(self.cell.setting)
            task = get_task(setting.task)
            own = self.context.store.dataset(self.cell.needs[IMAGES][1])
            prepare = PrepareContext(
                self.cell.model_identity,
                own.class_names,
                *self.context.artifacts(self.cell.model),
                own.samples,
                self._images,
                self.context.again,
            )
            self._bound, self._kind = task.bind(loaded, setting, prepare), task.output_kind
        return self._bound

    def _images(self, role: str) -> EmbeddedImages:
        if role not in self._embedded:
            self._embedded[role] = embedded_images(self.context.store, *self.cell.needs[role])
        return self._embedded[role]
