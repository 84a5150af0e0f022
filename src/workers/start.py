"""Starts a worker, in any process."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from testbed.calls import reason_of
from testbed.errors import TestbedError
from testbed.graph.nodes import Reads
from testbed.graph.passes import Job
from testbed.inputs import using
from testbed.process.processes import data_processes, start_server
from testbed.tracing.patches import traced
from testbed.workers.channel import RemoteChannel

if TYPE_CHECKING:
    from testbed.db.connection.engine import Mode
    from testbed.db.store import Store

log = logging.getLogger("testbed")


# Opens a store; see `Store.open`.
OpenStore = Callable[[str, "Mode", str | None], "Store"]


def open_store(url: str, mode: Mode, payload_url: str | None) -> Store:
    """Opens a store as soon as it answers."""
    from testbed.db.connection.retry import patiently
    from testbed.db.store import Store

    return patiently(lambda: Store.open(url, mode, payload_url))


@traced
def work(channel: RemoteChannel, device: str, opener: OpenStore = open_store) -> bool:
    """Requests the job and does it; returns whether it succeeded.

    Known errors (a full disk, a broken plug-in) end the run; unexpected ones only end this worker.
    """
    try:
        import testbed.workers.worker  # noqa: F401 -- takes seconds, while the run may still be planning

        job = channel.job()
        with using(job.inputs):
            _work(channel, job, device, opener)
    except (BrokenPipeError, EOFError, ConnectionResetError):
        raise
    except TestbedError as error:
        channel.fatal(str(error))
    except Exception as error:
        log.debug("worker failed", exc_info=True)
        channel.broken(reason_of(error))
        return False
    return True


def _work(channel: RemoteChannel, job: Job, device: str, opener: OpenStore) -> None:
    from testbed.contracts.surroundings import configured
    from testbed.registry import registry
    from testbed.workers.worker import Worker

    if job.options.verbose:
        log.addHandler(_ToRun(channel))
        log.setLevel(logging.DEBUG)
    if job.data_workers and any(one_pass.reads is Reads.IMAGES for one_pass in job.passes):
        start_server(data_processes())  # it takes seconds, in which the device is set up and models are loaded
    with contextlib.ExitStack() as stack:
        stack.enter_context(configured(device, job.threads))
        registry.load(job.options.plugins)
        store = stack.enter_context(opener(job.db_url, "write", job.options.payload_url))
        checked = stack.enter_context(opener(job.check.db_url, "read", None)) if job.check is not None else None
        Worker(job, registry, store, channel, device, checked).run()


class _ToRun(logging.Handler):
    """Sends log lines to the run, which shows them."""

    def __init__(self, channel: RemoteChannel) -> None:
        super().__init__()
        self._channel = channel

    def emit(self, record: logging.LogRecord) -> None:
        """Sends a line, with its traceback if it has one."""
        self._channel.note(self.format(record))
