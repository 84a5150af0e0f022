"""Workers as Ray actors: one for each GPU of a cluster, or on its CPUs.

Ray places the workers, and restarts them elsewhere when a machine is lost; the pool assigns shards to workers, as
it does for processes.
"""

from __future__ import annotations

import contextlib

from testbed.db.store import Store
from testbed.errors import RunError
from testbed.execution.pool import Pool
from testbed.execution.progress import Progress
from testbed.execution.resources import MAX_DATA_WORKERS, Resources, no_tf32
from testbed.execution.scheduler import Scheduler
from testbed.execution.worker_events import WorkerEvents
from testbed.extensions.ray import cluster
from testbed.extensions.ray.inputs import require_inputs
from testbed.extensions.ray.workers import RayWorkers
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job
from testbed.models.base.capability import NETWORK
from testbed.models.base.definition import TF32
from testbed.registry.catalog import Catalog


class RayExecutor:
    """Runs a job on a Ray cluster.

    Raises:
        RunError: If the cluster does not answer, has no room for a worker, or a node cannot run this testbed.
    """

    def __init__(self, options: RunOptions) -> None:
        if options.gpus:
            raise RunError("--gpus names GPUs of this machine; --executor ray uses all GPUs that the cluster has")
        self._ray = cluster.connect(options.ray_address, options.verbose)
        self._nodes = cluster.checked(self._ray, cluster.nodes(self._ray), options.plugins, options.compile)
        if not self._nodes:
            raise RunError("the Ray cluster has no node with a GPU or a CPU for workers")
        self._options = options
        if options.dtype == TF32 and not self._use_gpus:
            raise no_tf32("CPUs")
        self.resources = self._on_gpus() if self._use_gpus else self._on_cpus()

    @property
    def _use_gpus(self) -> bool:
        return self._options.cpu_processes is None and any(node.gpus for node in self._nodes)

    def _on_gpus(self) -> Resources:
        """One worker for each GPU, with an equal share of its node's CPUs."""
        with_gpus = [node for node in self._nodes if node.gpus]
        share = min(node.cpus // node.gpus for node in with_gpus)
        workers = self._options.data_workers
        names = tuple(node.gpu_name or "GPU" for node in with_gpus for _ in range(node.gpus))
        return Resources(
            ["cuda:0"] * len(names),  # Ray shows each worker only its own
            min(MAX_DATA_WORKERS, share) if workers is None else workers,
            max(1, share),
            names,
        )

    def _on_cpus(self) -> Resources:
        """One worker for each node with all its CPUs, or as many as the options say, with an equal share."""
        number = self._options.cpu_processes or len(self._nodes)
        rooms = sorted((node.cpus for node in self._nodes), reverse=True)
        share = max(size for size in range(1, rooms[0] + 1) if _fits(rooms, size, number) or size == 1)
        if not _fits(rooms, share, number):
            raise RunError(f"--cpu-processes {number}: the Ray cluster has {sum(rooms)} CPUs for workers")
        names = dict.fromkeys(node.processor for node in self._nodes)
        return Resources(["cpu"] * number, self._options.data_workers or 0, share, tuple(names))

    @staticmethod
    def start_ahead() -> None:
        """Does nothing: the cluster is already running."""

    def run(
        self, job: Job, catalog: Catalog, store: Store, scheduler: Scheduler, events: WorkerEvents, progress: Progress
    ) -> None:
        """See `testbed.execution.executors.Executor`."""
        require_inputs(self._ray, self._nodes, job, catalog)
        served = any(one_pass.resource == NETWORK for one_pass in job.passes)
        devices = [*self.resources.devices, *([NETWORK] if served else [])]
        room = {"num_gpus": 1, "num_cpus": 0} if self._use_gpus else {"num_cpus": self.resources.threads}
        with (
            contextlib.redirect_stdout(cluster.Notices()),  # Ray writes there when a worker has died
            RayWorkers(self._ray, devices, room, job, store, progress.note) as workers,
        ):
            Pool(job, workers, scheduler, events, progress).run()


def _fits(rooms: list[int], size: int, number: int) -> bool:
    """Returns whether this many workers with this many CPUs fit."""
    return sum(room // size for room in rooms) >= number
