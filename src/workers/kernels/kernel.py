"""The common interface of a worker's kernels: shards in, values out."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from testbed.calls import catchable, reason_of
from testbed.data.reader import Batch
from testbed.entities import Chunk
from testbed.errors import RunError, StoreError
from testbed.graph.passes import Pass, Shard
from testbed.process.oom import DeviceError, is_device_error
from testbed.workers.context import Context

log = logging.getLogger("testbed")


class StrictError(RunError):
    """A sample could not be read, which stops a strict run."""


@dataclass(frozen=True)
class ShardStarted:
    """A shard is being computed, not only prefetched."""

    shard: Shard


@dataclass(frozen=True)
class ShardProgress:
    """More samples or texts were computed; parts of samples, where some of the cells are computed."""

    count: float


@dataclass(frozen=True)
class ItemBatch:
    """Values of requests.

    Attributes:
        node: The name under which they are stored.
        requests: Different ones.
        values: Tensor [len(requests), D] on the CPU, or a list of JSON values.
        replace: Whether they replace stored ones.
    """

    node: str
    requests: Sequence[str]
    values: Any
    replace: bool = False


@dataclass(frozen=True)
class ShardDone:
    """The results for a shard.

    Attributes:
        chunks: Outputs of its cells.
        errors: Evaluation id → position → why that sample could not be read.
        items: The values of its requests.
        whole: Whether the shard is complete; else these are its first samples, because the run is being stopped.
    """

    shard: Shard
    chunks: Sequence[Chunk] = ()
    errors: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    items: ItemBatch | None = None
    whole: bool = True


Event = ShardStarted | ShardProgress | ShardDone


class ShardBuffer:
    """Collects the outputs of a shard, batch by batch."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.begun = False
        self.read = 0
        self.errors: dict[int, str] = {}
        self.arrays: dict[int, torch.Tensor] = {}

    @property
    def complete(self) -> bool:
        """Returns whether all samples of the shard were read, except for those that are given."""
        return self.read == self.shard.count

    @property
    def end(self) -> int:
        """Returns the position up to which outputs are known."""
        return self.shard.stop if self.complete else self.shard.positions[self.read]

    def put(self, evaluation_id: int, places: Sequence[int], outputs: torch.Tensor) -> None:
        """Stores outputs [len(places), …] in their rows; missing rows stay NaN."""
        if evaluation_id not in self.arrays:
            shape = (self.shard.size, *outputs.shape[1:])
            self.arrays[evaluation_id] = torch.full(shape, float("nan"), dtype=outputs.dtype)
        rows = torch.tensor([place - self.shard.start for place in places])
        self.arrays[evaluation_id][rows] = outputs.to(self.arrays[evaluation_id].dtype)

    def note_read(self, batch: Batch) -> None:
        """Counts the samples of a batch whose outputs are here."""
        self.read += len(batch.indices)
        self.errors.update(batch.errors)

    def chunks(self, kinds: Mapping[int, str]) -> tuple[list[Chunk], dict[int, dict[int, str]]]:
        """The outputs so far of evaluations, by their kinds, and the errors of unreadable samples for each."""
        chunks = [
            Chunk(evaluation_id, kind, self.shard.start, self.arrays[evaluation_id][: self.end - self.shard.start])
            for evaluation_id, kind in kinds.items()
            if evaluation_id in self.arrays
        ]
        return chunks, {evaluation_id: dict(self.errors) for evaluation_id in kinds} if self.errors else {}


class Kernel(ABC):
    """Computes one kind of pass in a worker."""

    def __init__(self, context: Context, one_pass: Pass) -> None:
        self.context = context
        self.one_pass = one_pass

    @abstractmethod
    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """Computes shards until none is left or the run is being stopped.

        A kernel may prefetch shards. Each shard ends with one `ShardDone`, even if its cells have failed. Errors of
        users' code fail the cells they belong to, not the run.

        Raises:
            StoreError: If the store cannot be read.
            DeviceError: If this process can no longer use its device.
            StrictError: If a sample cannot be read and the run is strict.
        """


class ShardKernel(Kernel):
    """A kernel that computes one shard at a time."""

    def run(self, shards: Iterator[Shard]) -> Generator[Event, None, None]:
        """See `Kernel.run`; the other shards of cells that have failed are only passed on."""
        failed: set[int] = set()
        for shard in shards:
            yield ShardStarted(shard)
            if not failed.issuperset(shard.cells):
                try:
                    with catchable():
                        yield from self.compute(shard)
                    continue
                except (StoreError, DeviceError, StrictError):
                    raise
                except Exception as error:  # models and settings are users' code
                    log.debug("%s failed", self.one_pass.label, exc_info=True)
                    failed.update(shard.cells)
                    for evaluation_id in shard.cells:
                        self.context.channel.cell_failed(evaluation_id, self.reason(error))
                    if is_device_error(error):
                        raise DeviceError(reason_of(error)) from error
            yield ShardDone(shard)

    @abstractmethod
    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """Computes a shard; the last event is its `ShardDone`."""

    def reason(self, error: Exception) -> str:
        """Explains why the cells of a shard have failed."""
        return reason_of(error)
