"""A run among others on the same store: its presence there, and the shards that it shares with them."""

from __future__ import annotations

import logging
import shlex
import sys
import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from types import TracebackType

from testbed.db.parts.leases import BEAT_SECONDS
from testbed.db.ranges import Ranges, lacking, merged
from testbed.db.store import Store
from testbed.execution.progress import Progress
from testbed.execution.scheduler import Scheduler
from testbed.graph.passes import Pass, Shard
from testbed.redaction import HIDDEN, redacted_word

log = logging.getLogger("testbed")


class Sharing:
    """Leases shards in the store before they are computed.

    Args:
        store: Open to write, of a run that has begun.
        scheduler: Has the shards.
        progress: Shows with whom the work is shared.
        anew: Models whose items are computed again though they are stored.
    """

    def __init__(self, store: Store, scheduler: Scheduler, progress: Progress, anew: frozenset[str]) -> None:
        self.store = store
        self.scheduler = scheduler
        self.progress = progress
        self.anew = anew
        self.elsewhere = 0  # outputs that other runs have stored
        self._told: set[int] = set()  # runs that the user knows of

    def take(self, shard: Shard) -> tuple[bool, list[int]]:
        """Leases a shard in progress, as far as it is free.

        Returns:
            Whether it is this run's as it is; else other shards are in its place. And the evaluations without
            remaining shards, because others have stored the rest.
        """
        one_pass = self.scheduler.passes[shard.pass_id]
        free, held = self._items(one_pass, shard) if one_pass.of_items else self._ranges(shard)
        if not held and len(free) == 1 and _same(free[0], shard):
            return True, []
        self._count(shard, exclude=[*free, *held])
        return False, self.scheduler.replace(shard.id, free, held)

    def resume(self) -> tuple[bool, list[int]]:
        """Frees or drops held shards; returns whether there were any, and the evaluations that have none left."""
        if self.scheduler.idle:
            self.store.leases.release_all()  # else two runs could wait for what has failed in the other one
        held = self.scheduler.held
        cells = {cell for shard in held if not self._of_items(shard) for cell in shard.cells}
        others = self.store.leases.others_at(cells)  # before what is stored: what is let go meanwhile is stored already
        stored = self.store.outputs.stored_ranges(cells)
        done = [shard for shard in held if self._is_stored(shard, stored)]
        free = [shard for shard in held if shard not in done and self._may_be_free(shard, stored, others)]
        self.scheduler.resume(free)
        for shard in done:
            self._count(shard)
        return bool(free or done), self.scheduler.drop(done)

    def let_go(self) -> None:
        """Gives up the leases of what no worker has: other runs may have workers for it when this one finds none."""
        ranges: dict[int, Ranges] = {}
        requests: dict[str, list[str]] = {}
        for shard in self.scheduler.under_way:
            if self._of_items(shard):
                requests.setdefault(self.scheduler.passes[shard.pass_id].node, []).extend(shard.requests)
            for each in shard.cells if not self._of_items(shard) else ():
                ranges.setdefault(each, []).append((shard.start, shard.stop))
        self.store.leases.keep_only(ranges, requests)

    def _of_items(self, shard: Shard) -> bool:
        return self.scheduler.passes[shard.pass_id].of_items

    def _is_stored(self, shard: Shard, stored: Mapping[int, Ranges]) -> bool:
        one_pass = self.scheduler.passes[shard.pass_id]
        if one_pass.of_items:
            return one_pass.models[0] not in self.anew and not self.store.items.lacking(one_pass.node, shard.requests)
        return not any(lacking(shard.start, shard.stop, stored[cell]) for cell in shard.cells)

    def _may_be_free(self, shard: Shard, stored: Mapping[int, Ranges], others: Mapping[int, Ranges]) -> bool:
        if self._of_items(shard) or self.scheduler.is_first(shard.pass_id):
            return True
        taken = {cell: merged([*stored[cell], *others.get(cell, ())]) for cell in shard.cells}
        return any(lacking(shard.start, shard.stop, taken[cell]) for cell in shard.cells)

    def _count(self, shard: Shard, exclude: Sequence[Shard] = ()) -> None:
        """Counts what other runs have stored of a shard: all of it but some parts."""
        if not self._of_items(shard):
            self.elsewhere += shard.size * len(shard.cells) - sum(each.size * len(each.cells) for each in exclude)
        self.progress.advance(shard.pass_id, shard.counted - sum(each.counted for each in exclude))

    def _ranges(self, shard: Shard) -> tuple[list[Shard], list[Shard]]:
        """Splits a shard of samples into what this run computes and what other runs compute."""
        leased = self.store.leases.lease(shard.cells, shard.start, shard.stop, self.scheduler.is_first(shard.pass_id))
        self._tell(leased.runs)
        return self._parts(shard, leased.free), self._parts(shard, leased.held)

    def _parts(self, shard: Shard, ranges: Mapping[int, Ranges]) -> list[Shard]:
        """Shards for ranges of the cells of a shard."""
        groups: dict[tuple[int, int], list[int]] = {}
        for evaluation_id, found in sorted(ranges.items()):
            for each in found:
                groups.setdefault(each, []).append(evaluation_id)
        return [
            replace(
                shard,
                id=self.scheduler.fresh_id(),
                start=start,
                stop=stop,
                cells=tuple(cells),
                given=tuple(position for position in shard.given if start <= position < stop),
                share=shard.share * len(cells) / len(shard.cells),
            )
            for (start, stop), cells in sorted(groups.items())
        ]

    def _items(self, one_pass: Pass, shard: Shard) -> tuple[list[Shard], list[Shard]]:
        """Splits a shard of requests into what this run computes and what other runs compute."""
        anew = one_pass.models[0] in self.anew
        free, held = self.store.leases.lease_items(one_pass.node, shard.requests, anew)
        own, others = set(free), set(held)
        parts = []
        for chosen in (own, others):
            requests = tuple(request for request in shard.requests if request in chosen)
            fresh = replace(shard, id=self.scheduler.fresh_id(), start=0, stop=len(requests), requests=requests)
            parts.append([fresh] if requests else [])
        return parts[0], parts[1]

    def _tell(self, runs: Set[int]) -> None:
        """Notifies the user of every other run, once."""
        if runs <= self._told:
            return
        for run in self.store.leases.runs(runs - self._told):
            self.progress.note(
                f"process {run.process} on {run.machine} computes some of the same; each part is computed once"
            )
        self._told |= runs


def _same(part: Shard, shard: Shard) -> bool:
    """Returns whether a part of a shard is the whole shard."""
    if shard.requests:
        return part.requests == shard.requests
    return (part.start, part.stop, set(part.cells)) == (shard.start, shard.stop, set(shard.cells))


class Presence:
    """While this context is open, other runs see that this one is alive, and what it has leased.

    Attributes:
        outcome: How the run has ended; see `testbed.db.parts.leases.RunInfo`.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.outcome = "failed"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="presence", daemon=True)

    def __enter__(self) -> Presence:
        self.store.leases.begin_run(" ".join(map(_shown, sys.argv)))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        try:
            failed = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
            self.store.leases.end_run(self.outcome if error is None else failed)
        except Exception:  # such as a store that is full; the leases expire without it
            if error is None:
                raise
            log.debug("the end of the run cannot be stored", exc_info=True)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            try:
                self.store.leases.beat()
            except Exception:  # a server that restarts, a file that is locked for long; the next one may get through
                log.debug("the run's sign of life cannot be stored", exc_info=True)


def _shown(word: str) -> str:
    """A word of a command line as a shell takes it, without passwords; what stands for them needs no quotes."""
    word = redacted_word(word)
    bare = word.replace(HIDDEN, "")
    return word if bare and shlex.quote(bare) == bare else shlex.quote(word)
