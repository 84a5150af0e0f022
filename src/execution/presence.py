"""A run's presence in the store: noted when it begins, renewed by a thread, and ended with it."""

from __future__ import annotations

import logging
import shlex
import sys
import threading
from types import TracebackType

from testbed.db.parts.leases import BEAT_SECONDS
from testbed.db.store import Store
from testbed.redaction import HIDDEN, redacted_word

log = logging.getLogger("testbed")


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
