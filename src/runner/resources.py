"""What a run computes on: devices, data workers, threads."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from testbed.errors import RunError
from testbed.runner.options import RunOptions

MAX_DATA_WORKERS = 8
_GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA's, AMD's, and Windows' for its Linux subsystem


@dataclass(frozen=True)
class Resources:
    """What a run computes on.

    Attributes:
        devices: One for each evaluation process.
        data_workers: Data-loading processes for each of them.
        threads: Threads of torch in each of them.
    """

    devices: list[str]
    data_workers: int
    threads: int


def choose_resources(options: RunOptions) -> Resources:
    """What is asked for, else what there is.

    Raises:
        RunError: If a GPU is asked for that is not there.
    """
    devices = choose_devices(options)
    share = max(1, cores() // len(devices))
    workers = options.data_workers
    if workers is None:  # on the CPU the model keeps all cores busy
        workers = min(MAX_DATA_WORKERS, share) if devices[0].startswith("cuda") else 0
    return Resources(devices, workers, share)


def choose_devices(options: RunOptions) -> list[str]:
    """The devices of a run, one for each evaluation process.

    Raises:
        RunError: If a GPU is asked for that is not there.
    """
    if options.gpus:
        visible = visible_gpus()
        absent = [gpu for gpu in options.gpus if gpu >= visible]
        if absent:
            found = f"{visible} (numbered from 0)" if visible else "none"
            raise RunError(
                f"GPU {absent[0]} is asked for; torch sees {found}. Without --gpus a run takes what there is"
            )
        return [f"cuda:{gpu}" for gpu in options.gpus]
    if options.cpu_processes is None and (visible := visible_gpus()):
        return [f"cuda:{gpu}" for gpu in range(visible)]
    return ["cpu"] * (options.cpu_processes or 1)


def visible_gpus() -> int:
    """How many GPUs torch can use. Where the machine has no such device, torch is not imported to find out."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    if platform.system() == "Linux" and not any(map(os.path.exists, _GPU_FILES)):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
