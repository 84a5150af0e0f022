"""Passes on stored embeddings: outputs are computed from them, by a head or a probe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from testbed.entities import Chunk, SampleInfo
from testbed.graph.nodes import IMAGES, Given, Steps
from testbed.graph.passes import Pass, Shard
from testbed.graph.values import RowValues
from testbed.process.profiling import stage
from testbed.tasks.image_embedding import KIND
from testbed.workers.context import Context
from testbed.workers.kernels.kernel import ShardDone, ShardKernel, ShardProgress


class RowKernel(ShardKernel):
    """Loads the model of a cell when its first shard comes, and computes its outputs."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell = one_pass.cells[0]
        self._embedded: dict[str, RowValues] = {}
        self._steps: Steps | None = None
        self._kind = ""

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The outputs of a range of embeddings."""
        steps = self._load()
        images = self._rows(IMAGES)
        features = torch.from_numpy(images.values[shard.start : shard.stop]).to(self.context.device)
        with torch.no_grad(), stage("forward", on_device=True):
            outputs = steps.outputs(features).to("cpu")
        errors = {position: why for position, why in images.errors.items() if shard.start <= position < shard.stop}
        chunk = Chunk(self.cell.evaluation_id, self._kind, shard.start, outputs)
        yield ShardDone(shard, [chunk], {self.cell.evaluation_id: errors} if errors else {})

    def _load(self) -> Steps:
        if self._steps is None:
            loaded = self.context.load_one(self.cell.model)
            setting, rows = self.context.catalog.get_eval_setting(self.cell.setting), self.context.rows(self.cell)
            names = self.context.store.datasets.get(self.cell.inputs[IMAGES][1]).class_names
            given = Given(self.cell.model_identity, setting, names, self._samples, self._rows)
            self._steps = rows.op.steps(loaded, setting, self.context.ones(self.cell, rows, loaded, given))
            self._kind = rows.op.kind
        return self._steps

    def _samples(self, role: str) -> Sequence[SampleInfo]:
        return self.context.store.datasets.get(self.cell.inputs[role][1]).samples

    def _rows(self, role: str) -> RowValues:
        if role not in self._embedded:
            evaluation_id, dataset_id = self.cell.inputs[role]
            with stage("read"):
                values, errors = self.context.store.outputs.read_values(dataset_id, [evaluation_id], KIND)
            self._embedded[role] = RowValues(values, self._samples(role), errors)
        return self._embedded[role]
