"""Passes on stored values alone: embeddings, from which outputs are computed, or the outputs of other cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from testbed.entities import Chunk, SampleInfo
from testbed.graph.nodes import FITTED, IMAGES, OWN, Given, OutputsOp, Steps
from testbed.graph.passes import Pass, Shard
from testbed.graph.values import RowValues
from testbed.process.profiling import stage
from testbed.tasks.image_embedding import KIND
from testbed.workers.context import Context
from testbed.workers.kernels.kernel import ShardDone, ShardKernel, ShardProgress

if TYPE_CHECKING:
    from testbed.graph.nodes import Combine


class StoredKernel(ShardKernel):
    """Reads stored values of the inputs of one cell."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell = one_pass.cells[0]
        self._stored: dict[str, RowValues] = {}
        self._kind = ""  # of the outputs

    def _names(self, role: str) -> Sequence[str] | None:
        return self.context.store.datasets.get(self.cell.inputs[role][1]).class_names

    def _samples(self, role: str) -> Sequence[SampleInfo]:
        return self.context.store.datasets.get(self.cell.inputs[role][1]).samples

    def _read(self, role: str, kind: str) -> RowValues:
        if role not in self._stored:
            evaluation_id, dataset_id = self.cell.inputs[role]
            with stage("read"):
                values, errors = self.context.store.outputs.read_values(dataset_id, [evaluation_id], kind)
            self._stored[role] = RowValues(values, self._samples(role), errors)
        return self._stored[role]

    def _done(self, shard: Shard, outputs: torch.Tensor, *unread: Mapping[int, str]) -> ShardDone:
        """The outputs of a shard, without those of samples that could not be read."""
        chunk = Chunk(self.cell.evaluation_id, self._kind, shard.start, outputs)
        errors = {
            position: why for each in unread for position, why in each.items() if shard.start <= position < shard.stop
        }
        return ShardDone(shard, [chunk], {self.cell.evaluation_id: errors} if errors else {})


class RowKernel(StoredKernel):
    """Loads the model of a cell when its first shard comes, and computes its outputs from stored embeddings."""

    _steps: Steps | None = None

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The outputs of a range of embeddings."""
        steps = self._load()
        images = self._rows(IMAGES)
        features = torch.from_numpy(images.values[shard.start : shard.stop]).to(self.context.device)
        with torch.no_grad(), stage("forward", on_device=True):
            outputs = steps.outputs(features).to("cpu")
        yield self._done(shard, outputs, images.errors)

    def _load(self) -> Steps:
        if self._steps is None:
            loaded = self.context.load_one(self.cell.model)
            setting, rows = self.context.catalog.get_eval_setting(self.cell.setting), self.context.rows(self.cell)
            given = Given(self.cell.model_identity, setting, self._names(IMAGES), self._samples, self._rows)
            self._steps = rows.op.steps(loaded, setting, self.context.ones(self.cell, rows, loaded, given))
            self._kind = rows.op.kind
        return self._steps

    def _rows(self, role: str) -> RowValues:
        return self._read(role, KIND)


class OutputKernel(StoredKernel):
    """Loads no model: computes the outputs of a derived model from those that its members have stored."""

    _combine: Combine | None = None

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The outputs of a range of samples; one that a member could not read is not read here."""
        combine = self._combine or self._prepare()
        inputs = {role: self._rows(role) for role in self.cell.inputs if role != FITTED}
        with stage("forward"):
            rows = {role: row_values.values[shard.start : shard.stop] for role, row_values in inputs.items()}
            outputs = torch.from_numpy(combine(rows))
        yield self._done(shard, outputs, *(row_values.errors for row_values in inputs.values()))

    def _prepare(self) -> Combine:
        catalog, op = self.context.catalog, self.context.rows(self.cell).op
        assert isinstance(op, OutputsOp)
        setting, self._kind = catalog.get_eval_setting(self.cell.setting), op.kind
        given = Given(
            *(self.cell.model_identity, setting, self._names(OWN), self._samples, self._rows, self._names, self._once)
        )
        self._combine, said = op.prepare(catalog.get_model(self.cell.model), given)
        if said:
            self.context.channel.note(f"{self.cell.model} on {self.cell.setting}: {said}")
        return self._combine

    def _once(self, make: Callable[[], Any]) -> Any:
        model = self.context.catalog.get_model(self.cell.model)
        on = self.context.rows(self.cell).inputs[FITTED].setting
        key = (getattr(model, "rule", ""), on, *self.cell.inputs[FITTED])
        if key not in self.context.fitted:
            self.context.fitted[key] = make()
        return self.context.fitted[key]

    def _rows(self, role: str) -> RowValues:
        return self._read(role, self._kind)
