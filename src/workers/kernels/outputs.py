"""Passes on stored outputs of other cells, of which those of a derived model are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from testbed.entities import Chunk, SampleInfo
from testbed.graph.nodes import FITTED, OWN, Given, OutputsOp
from testbed.graph.passes import Pass, Shard
from testbed.graph.values import RowValues
from testbed.process.profiling import stage
from testbed.workers.context import Context
from testbed.workers.kernels.kernel import ShardDone, ShardKernel, ShardProgress

if TYPE_CHECKING:
    from testbed.graph.nodes import Combine


class OutputKernel(ShardKernel):
    """Loads no model: reads what its members have stored."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        super().__init__(context, one_pass)
        self.cell = one_pass.cells[0]
        self._stored: dict[str, RowValues] = {}
        self._combine: Combine | None = None
        self._kind = ""

    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """The outputs of a range of samples; one that a member could not read is not read here."""
        combine = self._combine or self._prepare()
        inputs = {role: self._rows(role) for role in self.cell.inputs if role != FITTED}
        with stage("forward"):
            rows = {role: each.values[shard.start : shard.stop] for role, each in inputs.items()}
            outputs = torch.from_numpy(combine(rows))
        chunk = Chunk(self.cell.evaluation_id, self._kind, shard.start, outputs)
        errors = {
            position: why
            for each in inputs.values()
            for position, why in each.errors.items()
            if shard.start <= position < shard.stop
        }
        yield ShardDone(shard, [chunk], {self.cell.evaluation_id: errors} if errors else {})

    def _prepare(self) -> Combine:
        catalog, op = self.context.catalog, self.context.rows(self.cell).op
        assert isinstance(op, OutputsOp)
        setting, self._kind = catalog.get_eval_setting(self.cell.setting), op.kind
        given = Given(
            *(self.cell.model_identity, setting, self._names(OWN), self._samples, self._rows, self._names, self._once)
        )
        self._combine, said = op.prepare(catalog.get_model(self.cell.model), given)
        if said:
            self.context.note(f"{self.cell.model} on {self.cell.setting}: {said}")
        return self._combine

    def _names(self, role: str) -> Sequence[str] | None:
        return self.context.store.datasets.get(self.cell.inputs[role][1]).class_names

    def _once(self, make: Callable[[], Any]) -> Any:
        model = self.context.catalog.get_model(self.cell.model)
        on = self.context.rows(self.cell).inputs[FITTED].setting
        key = (getattr(model, "rule", ""), on, *self.cell.inputs[FITTED])
        if key not in self.context.fitted:
            self.context.fitted[key] = make()
        return self.context.fitted[key]

    def _samples(self, role: str) -> Sequence[SampleInfo]:
        return self.context.store.datasets.get(self.cell.inputs[role][1]).samples

    def _rows(self, role: str) -> RowValues:
        if role not in self._stored:
            evaluation_id, dataset_id = self.cell.inputs[role]
            with stage("read"):
                values, errors = self.context.store.outputs.read_values(dataset_id, [evaluation_id], self._kind)
            self._stored[role] = RowValues(values, self._samples(role), errors)
        return self._stored[role]
