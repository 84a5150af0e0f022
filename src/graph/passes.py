"""Passes and shards: what is read together, and the ranges of it that workers take. Plain data, sent to workers."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.data.source import Source
from testbed.graph.nodes import ItemOp, Reads
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs, active
from testbed.models.base.capability import DEVICE

# A served model takes so many messages at once for each that it is asked at the same time: while the slowest answer is
# under way, the next ones are.
ROUNDS = 4


@dataclass(frozen=True)
class PassCell:
    """A cell of a pass, as workers need it.

    Attributes:
        evaluation_id: Where its outputs go; 0 in a pass over items, whose shards say for which cells they are.
        model_identity: The digest of model, weights and precision, for heads and probes.
        inputs: Role → the ids of the evaluation that has the rows, and of the data set of the samples.
        given: Position → the evaluation that has the outputs of that sample, and the position there.
    """

    evaluation_id: int
    model: str
    setting: str
    model_identity: str
    inputs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    given: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pass:
    """Cells that read the same pixels: each image is decoded and transformed once for all of them.

    Or one cell that reads something else, or the items that one model computes for several cells: see ``reads``.

    Attributes:
        id: Its place among the passes of the run.
        cells: The cells, of one model or of several with the same transform.
        source: The samples; None where they are not read.
        positions: The positions of the source, in the order of the samples.
        targets: The target of each sample, for perturbations that ask for it.
        batch_size: Images at once.
        chunk: Samples whose outputs are stored together; a multiple of the batch size, so that the batches of a shard
            are the same whether or not earlier shards were stored before.
        reads: What it reads.
        op: What its items are.
        node: The name under which its items are stored.
        resource: What it takes: a device, or only a network.
        alone: Whether its first shard is computed before workers take others: it makes a head or a probe that all need.
        pixels: The name of the cache of its decoded images; see `testbed.graph.fuse`. Empty for none.
        digests: The content of each sample, where there is such a cache.
    """

    id: int
    cells: tuple[PassCell, ...]
    source: Source | None
    positions: Sequence[int]
    targets: Sequence[Any]
    batch_size: int
    chunk: int
    reads: Reads = Reads.IMAGES
    op: ItemOp | None = None
    node: str = ""
    resource: str = DEVICE
    alone: bool = False
    pixels: str = ""
    digests: Sequence[str] = ()

    @property
    def of_items(self) -> bool:
        """Returns whether it computes items: its requests may not be known yet."""
        return self.op is not None

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the pass, each once."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of the pass, each once."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells))

    @property
    def label(self) -> str:
        """Describes the pass for people."""
        return f"{_some(self.models, 'models')} × {_some(self.settings, 'settings')}"


@dataclass
class Shard:
    """A range of a pass, for some of its cells: what a worker takes at a time.

    Attributes:
        cells: Evaluation ids of the cells that still lack this range.
        attempts: How often it was begun by workers that died.
        given: Positions whose outputs are stored elsewhere: they are copied, not computed.
        requests: The requests, of a pass over items; see `testbed.graph.requests`.
        share: The part of its samples that progress counts for it: other shards are of the same samples, for other
            cells, so that each sample counts once in all.
        careful: Whether a worker died that had it. Its cells are then computed one at a time, so that an error of the
            device, which comes late, is that of the cell at hand.
    """

    id: int
    pass_id: int
    start: int
    stop: int
    cells: tuple[int, ...]
    attempts: int = 0
    given: tuple[int, ...] = ()
    requests: tuple[str, ...] = ()
    share: float = 1.0
    careful: bool = False

    @property
    def size(self) -> int:
        """The number of samples."""
        return self.stop - self.start

    @property
    def positions(self) -> list[int]:
        """The positions of the samples that are computed."""
        given = set(self.given)
        return [position for position in range(self.start, self.stop) if position not in given]

    @property
    def count(self) -> int:
        """Returns the number of samples that are computed."""
        return self.size - len(self.given)

    @property
    def counted(self) -> float:
        """Returns the number of samples that it counts for in the progress of its pass."""
        return self.count * self.share


@dataclass(frozen=True)
class Job:
    """The data that every worker of a run gets.

    Attributes:
        db_url: The store, in full: a worker must not depend on its own variables or working folder.
        data_workers: Data-loading processes for each worker.
        threads: Threads of torch in each worker.
        check: For a run that computes stored samples again, what it needs for that.
        anew: Models whose heads, probes and items are computed again, though they are stored.
        inputs: Those of the run: the ones that are active where the job is made.
    """

    options: RunOptions
    db_url: str
    passes: tuple[Pass, ...]
    data_workers: int
    threads: int
    check: Check | None = None
    anew: frozenset[str] = frozenset()
    inputs: Inputs = field(default_factory=active)


@dataclass(frozen=True)
class Check:
    """That a run computes stored samples again, to compare them.

    Attributes:
        db_url: The store that has the zero-shot heads and probes.
        classes: Of a stored zero-shot head so many classes are made again.
    """

    db_url: str
    classes: int


def missing(size: int, stored: Iterable[tuple[int, int]], chunk: int) -> list[tuple[int, int]]:
    """The ranges of 0 … size that are not stored, cut at the multiples of the chunk.

    Args:
        size: The number of samples.
        stored: Ranges (start, stop), merged and in order.
        chunk: The length of a full range.
    """
    ranges, position = [], 0
    for start, stop in [*stored, (size, size)]:
        while position < min(start, size):
            end = min((position // chunk + 1) * chunk, start, size)
            ranges.append((position, end))
            position = end
        position = max(position, stop)
    return ranges


def shards_of(
    one_pass: Pass,
    stored: Mapping[int, Sequence[tuple[int, int]]],
    numbers: Iterable[int],
    only: set[int] | None = None,
) -> list[Shard]:
    """The shards of a pass over samples: for each range the cells that lack it.

    A pass over items has none as yet: its requests may not be known.

    Args:
        stored: Evaluation id → ranges whose outputs are stored.
        numbers: Ids for the shards.
        only: Evaluation ids to make shards for; None means all of the pass.
    """
    if one_pass.of_items:
        return []
    fresh = iter(numbers)
    wanting: dict[tuple[int, int, tuple[int, ...]], list[int]] = defaultdict(list)
    for cell in one_pass.cells:
        if only is None or cell.evaluation_id in only:
            for start, stop in missing(len(one_pass.positions), stored.get(cell.evaluation_id, ()), one_pass.chunk):
                given = tuple(filter(cell.given.__contains__, range(start, stop))) if cell.given else ()
                wanting[start, stop, given].append(cell.evaluation_id)
    shards = [
        Shard(next(fresh), one_pass.id, start, stop, tuple(wanting[start, stop, given]), given=given)
        for start, stop, given in sorted(wanting)
    ]
    _share_counts(shards)
    return shards


def _share_counts(shards: Sequence[Shard]) -> None:
    """Sets shares so that each sample counts once, even if several shards contain it."""
    times = Counter(position for shard in shards for position in shard.positions)
    for shard in shards:
        if shard.count:
            shard.share = sum(1 / times[position] for position in shard.positions) / shard.count


def shards_of_items(
    one_pass: Pass, requests: Sequence[str], cells: Iterable[int], numbers: Iterable[int]
) -> list[Shard]:
    """The shards of a pass over items, for some of its cells.

    Long requests come first: what does not fit into memory does not fit at once; and texts of one length need no
    padding.
    """
    fresh, members = iter(numbers), tuple(cells)
    ordered = sorted(requests, key=lambda text: (-len(text), text))
    return [
        Shard(next(fresh), one_pass.id, start, stop, members, requests=tuple(ordered[start:stop]))
        for start, stop in missing(len(ordered), (), one_pass.chunk)
    ]


def chunk_size(batch_size: int, least: int) -> int:
    """The smallest multiple of the batch size that is at least ``least``."""
    return batch_size * math.ceil(least / batch_size)


def _some(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} {noun}"
