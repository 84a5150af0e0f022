"""Starting processes: forked from a server that has imported torch once for all of them, or else each anew.

A process that starts anew spends seconds on importing torch. The server uses no GPU and no threads, so that what is
forked from it is as good as new. It is started once for a program, or for a worker that has data workers.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from testbed.process.parent_death import end_with_parent
from testbed.process.signals import held_back

LIBRARIES = ("torch", "torchvision.transforms", "PIL.Image")  # what all processes need


def process_context(modules: Sequence[str]) -> Any:
    """Returns multiprocessing's context for processes that import these modules, besides torch."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["testbed.process.fork_server", *LIBRARIES, *modules])
    return context


def data_processes() -> Any:
    """Returns the context of multiprocessing for starting data workers."""
    return process_context(["testbed.workers.data_process"])


@contextlib.contextmanager
def without_main() -> Iterator[None]:
    """Processes that start in this context do not run the program itself once more, as multiprocessing has them do.

    They load definitions from files, so they need nothing of it; and a script may have no ``if __name__ ==
    "__main__"``.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def start_server(context: Any) -> None:
    """Starts the server of a context, if it has one, without waiting until it has imported everything."""
    if context.get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        with held_back():
            ensure_running()


def begin(environment: Mapping[str, str]) -> None:
    """Prepares a new process: it ends with the one that started it, and has its environment variables. Call it first.

    The server has the variables of the time when it was started.
    """
    end_with_parent()
    _watch_parent()
    if dict(os.environ) != environment:
        os.environ.clear()
        os.environ.update(environment)
    if "numpy" in sys.modules:  # or else all processes would draw the same where nobody gives a seed
        sys.modules["numpy"].random.seed()


def _watch_parent() -> None:
    """Ends this process when its parent ends: the kernel does so only for the server's end, and not on all systems."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
