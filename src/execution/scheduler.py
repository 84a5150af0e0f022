"""Assigns shards to workers, requeues the shards of dead workers, and delays passes that depend on others.

Pure bookkeeping, no I/O.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from testbed.graph.nodes import Reads
from testbed.graph.passes import Pass, Shard

# A shard whose worker died is retried; a shard of one cell is given up after this many attempts.
MAX_ATTEMPTS = 3
# After this many attempts a shard of several cells is split, so that a cell that kills workers does not affect others.
SPLIT_AFTER = 2


@dataclass(frozen=True)
class AbandonedCell:
    """A cell that cannot be finished."""

    evaluation_id: int
    reason: str


class Wait:
    """No work now, but there may be some when a shard is done or a worker dies."""


WAIT = Wait()


class Scheduler:
    """The shards of a run.

    Args:
        passes: The passes, in the order in which they should begin.
        shards: Their shards; those of some passes are added later, when their inputs are stored.
        waits: Pass id → the evaluations whose outputs it reads and that are not complete yet.
    """

    def __init__(
        self, passes: Sequence[Pass], shards: Iterable[Shard], waits: Mapping[int, Set[int]] | None = None
    ) -> None:
        self.passes = {one_pass.id: one_pass for one_pass in passes}
        self._waiting: dict[int, deque[Shard]] = {one_pass.id: deque() for one_pass in passes}
        self._under_way: dict[int, tuple[int, Shard]] = {}  # shard id → (worker, shard)
        self._begun: dict[int, int] = {}  # worker → the shard in progress; it may have taken others in advance
        self._open: Counter[int] = Counter()  # evaluation id → its shards that are not done
        self._failed: set[int] = set()
        self._lacking = {pass_id: set(evaluations) for pass_id, evaluations in (waits or {}).items() if evaluations}
        # Passes whose first shard nobody has finished
        self._alone = {one_pass.id for one_pass in passes if one_pass.alone}
        self._last_pass: dict[int, int] = {}
        self._held: list[Shard] = []  # shards that another run computes
        self._next_id = 0
        self.shards_done = 0
        self.add(shards)

    def add(self, shards: Iterable[Shard]) -> None:
        """Adds shards."""
        for shard in shards:
            self._waiting[shard.pass_id].append(shard)
            self._count(shard)

    def _count(self, shard: Shard) -> None:
        self._next_id = max(self._next_id, shard.id + 1)
        for evaluation_id in shard.cells:
            self._open[evaluation_id] += 1

    def next_pass(self, worker: int, resource: str | None = None) -> int | Wait | None:
        """The next pass for an idle worker; None if all is done.

        Prefers passes that no worker has started, then those of models that the worker has loaded.

        Args:
            resource: What it offers; None for a worker that takes every pass.
        """
        busy = [shard.pass_id for _, shard in self._under_way.values()]
        candidates = [
            pass_id
            for pass_id, shards in self._waiting.items()
            if self._prune(shards)
            and pass_id not in self._lacking
            and not (pass_id in self._alone and pass_id in busy)
            and resource in (None, self.passes[pass_id].resource)
        ]
        if not candidates:
            return None if self.finished else WAIT
        last = self._last_pass.get(worker)
        loaded = set(self.passes[last].models) if last is not None else set()
        chosen = min(
            candidates,
            key=lambda pass_id: (busy.count(pass_id), not loaded & set(self.passes[pass_id].models), pass_id),
        )
        self._last_pass[worker] = chosen
        return chosen

    def next_shard(self, worker: int, pass_id: int) -> Shard | None:
        """The next shard of a pass for a worker; None if none is left."""
        waiting = self._waiting[pass_id]
        if not self._prune(waiting):
            return None
        shard = waiting.popleft()
        self._under_way[shard.id] = (worker, shard)
        return shard

    def shard_begun(self, worker: int, shard_id: int) -> None:
        """Notes which shard a worker computes now."""
        self._begun[worker] = shard_id

    def holds_shards(self, worker: int) -> bool:
        """Returns whether a worker has shards whose outputs are not stored yet."""
        return any(owner == worker for owner, _ in self._under_way.values())

    def computes(self, worker: int) -> bool:
        """Returns whether a worker has begun a shard whose outputs are not stored yet."""
        return self._under_way.get(self._begun.get(worker, -1), (None,))[0] == worker

    @property
    def under_way(self) -> list[Shard]:
        """The shards that workers have, also those that they have only taken in advance."""
        return [shard for _, shard in self._under_way.values()]

    def in_progress(self, shard_id: int) -> Shard:
        """A shard in progress."""
        return self._under_way[shard_id][1]

    def shard_done(self, shard_id: int) -> list[int]:
        """Marks a shard as stored; returns the evaluations without remaining shards."""
        _, shard = self._under_way.pop(shard_id)
        self.shards_done += 1
        self._alone.discard(shard.pass_id)
        return self._close(shard)

    def replace(self, shard_id: int, free: Sequence[Shard], held: Sequence[Shard]) -> list[int]:
        """Puts other shards in place of one in progress, of which other runs compute or have stored a part.

        Args:
            shard_id: The shard in progress.
            free: What is left of it to be computed; it is next.
            held: What other runs compute; it waits for `resume`.

        Returns:
            The evaluations without remaining shards.
        """
        _, shard = self._under_way.pop(shard_id)
        for each in (*free, *held):
            self._count(each)
        self._waiting[shard.pass_id].extendleft(reversed(free))
        self._held += held
        if held and shard.pass_id in self._alone:  # the others wait for the first one anyway
            self._held += self._waiting[shard.pass_id]
            self._waiting[shard.pass_id].clear()
        elif not free and not held:
            self._alone.discard(shard.pass_id)
        return self._close(shard)

    @property
    def held(self) -> list[Shard]:
        """The shards that other runs compute, of cells that have not failed."""
        self._held = [shard for shard in self._held if not self._failed.issuperset(shard.cells)]
        return list(self._held)

    def resume(self, shards: Iterable[Shard]) -> None:
        """Makes held shards available again."""
        chosen = {shard.id for shard in shards}
        for shard in self._held:
            if shard.id in chosen:
                self._waiting[shard.pass_id].append(shard)
        self._held = [shard for shard in self._held if shard.id not in chosen]

    def drop(self, shards: Sequence[Shard]) -> list[int]:
        """Drops shards that were held and that other runs have stored; returns evaluations without remaining shards."""
        dropped = {shard.id for shard in shards}
        self._held = [shard for shard in self._held if shard.id not in dropped]
        self._alone -= {shard.pass_id for shard in shards}
        return [evaluation_id for shard in shards for evaluation_id in self._close(shard)]

    def is_first(self, pass_id: int) -> bool:
        """Returns whether a pass waits for its first shard, before others may be computed in parallel."""
        return pass_id in self._alone

    def completed(self, evaluation_id: int) -> None:
        """Marks all outputs of an evaluation as stored, so that passes waiting only for it may begin."""
        for lacking in self._lacking.values():
            lacking.discard(evaluation_id)
        self._lacking = {pass_id: lacking for pass_id, lacking in self._lacking.items() if lacking}

    def cell_failed(self, evaluation_id: int) -> list[int]:
        """Marks a cell as failed and drops its shards; returns the cells that depend on it."""
        self._failed.add(evaluation_id)
        hopeless = [pass_id for pass_id, lacking in self._lacking.items() if evaluation_id in lacking]
        for pass_id in hopeless:
            del self._lacking[pass_id]
        cells = [cell.evaluation_id for pass_id in hopeless for cell in self.passes[pass_id].cells]
        return [cell for cell in cells if cell not in self._failed]

    def worker_lost(self, worker: int) -> list[AbandonedCell]:
        """Requeues the shards of a dead worker; returns the cells that are given up.

        Only the shard that it was computing counts as a failed attempt.
        """
        lost = [shard for owner, shard in self._under_way.values() if owner == worker]
        begun = self._begun.pop(worker, None)
        given_up: list[AbandonedCell] = []
        for shard in reversed(lost):
            del self._under_way[shard.id]
            shard.careful = True
            shard.attempts += shard.id == begun
            if shard.id != begun:
                self._waiting[shard.pass_id].appendleft(shard)
            elif shard.attempts >= MAX_ATTEMPTS and (len(shard.cells) == 1 or self._is_one(shard)):
                self._close(shard)
                reason = f"the worker died {shard.attempts} times {self._where(shard)}"
                given_up += [AbandonedCell(evaluation_id, reason) for evaluation_id in shard.cells]
                self._failed.update(shard.cells)
            elif shard.attempts >= SPLIT_AFTER and len(shard.cells) > 1 and not self._is_one(shard):
                self._waiting[shard.pass_id].extendleft(self._split(shard))
            else:
                self._waiting[shard.pass_id].appendleft(shard)
        return given_up

    @property
    def idle(self) -> bool:
        """Returns whether no shard is waiting or in progress."""
        return not self._under_way and not any(self._prune(shards) for shards in self._waiting.values())

    @property
    def finished(self) -> bool:
        """Returns whether no shard is waiting, held or in progress."""
        return self.idle and not self.held

    def fresh_id(self) -> int:
        """A new shard id."""
        self._next_id += 1
        return self._next_id - 1

    def _is_one(self, shard: Shard) -> bool:
        """Returns whether a shard is the same work for each of its cells: items."""
        return self.passes[shard.pass_id].of_items

    def _where(self, shard: Shard) -> str:
        one_pass = self.passes[shard.pass_id]
        if one_pass.of_items:
            return f"while {one_pass.models[0]} {'embedded texts' if one_pass.reads is Reads.TEXTS else 'answered'}"
        return f"on samples {shard.start} to {shard.stop - 1}"

    def _split(self, shard: Shard) -> list[Shard]:
        parts = []
        for evaluation_id in reversed(shard.cells):
            parts.append(
                Shard(
                    self.fresh_id(),
                    shard.pass_id,
                    shard.start,
                    shard.stop,
                    (evaluation_id,),
                    attempts=shard.attempts - 1,
                    given=shard.given,
                    share=shard.share / len(shard.cells),
                    careful=True,
                )
            )
        return parts

    def _prune(self, shards: deque[Shard]) -> bool:
        """Drops failed cells from the first shard, and shards without cells; returns whether a shard is left."""
        while shards:
            cells = tuple(cell for cell in shards[0].cells if cell not in self._failed)
            if cells:
                shards[0].cells = cells
                return True
            shards.popleft()
        return False

    def _close(self, shard: Shard) -> list[int]:
        complete = []
        for evaluation_id in shard.cells:
            self._open[evaluation_id] -= 1
            if self._open[evaluation_id] == 0 and evaluation_id not in self._failed:
                complete.append(evaluation_id)
        return complete
