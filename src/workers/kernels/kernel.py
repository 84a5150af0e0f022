"""The common interface of a worker's kernels: shards in, values out."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.calls import reason_of
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
                    yield from self.compute(shard)
                    continue
                except (StoreError, DeviceError, StrictError):
                    raise
                except Exception as error:  # models and settings are users' code
                    log.debug("%s failed", self.one_pass.label, exc_info=True)
                    failed.update(shard.cells)
                    for evaluation_id in shard.cells:
                        self.context.fail(evaluation_id, self.reason(error))
                    if is_device_error(error):
                        raise DeviceError(reason_of(error)) from error
            yield ShardDone(shard)

    @abstractmethod
    def compute(self, shard: Shard) -> Iterator[ShardProgress | ShardDone]:
        """Computes a shard; the last event is its `ShardDone`."""

    def reason(self, error: Exception) -> str:
        """Explains why the cells of a shard have failed."""
        return reason_of(error)
