"""The resources of a run: devices, data workers, threads."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from testbed.data.threads import cores
from testbed.errors import RunError
from testbed.graph.options import RunOptions
from testbed.models.base.definition import TF32

MAX_DATA_WORKERS = 16
TF32_CAPABILITY = (8, 0)  # Ampere, the first GPUs with TensorFloat-32
_GPU_FILES = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, and WSL


@dataclass(frozen=True)
class Resources:
    """The resources of a run.

    Attributes:
        devices: One per evaluation process.
        data_workers: Data-loading processes for each of them.
        threads: Threads of torch in each of them.
        names: The names of the processors or GPUs, where they are not those of this machine.
    """

    devices: list[str]
    data_workers: int
    threads: int
    names: tuple[str, ...] = ()


def choose_resources(options: RunOptions) -> Resources:
    """Chooses the requested resources, or by default all that are available.

    Raises:
        RunError: If a requested GPU does not exist or does not support TensorFloat-32 for ``--dtype tf32``, or
            ``--compile`` finds no compiler.
    """
    devices = choose_devices(options)
    if options.dtype == TF32:
        require_tf32(devices)
    if options.compile:
        require_compiler(devices[0])
    share = max(1, cores() // len(devices))
    workers = options.data_workers
    if workers is None:  # on the CPU the model keeps all cores busy
        workers = min(MAX_DATA_WORKERS, share) if devices[0].startswith("cuda") else 0
    return Resources(devices, workers, share)


def choose_devices(options: RunOptions) -> list[str]:
    """The devices of a run, one for each evaluation process; raises RunError if a requested GPU does not exist."""
    if options.gpus:
        visible = visible_gpus()
        absent = [gpu for gpu in options.gpus if gpu >= visible]
        if absent:
            found = f"{visible} (numbered from 0)" if visible else "none"
            raise RunError(f"--gpus {absent[0]}: torch sees {found}. Omit --gpus to use what is available")
        return [f"cuda:{gpu}" for gpu in options.gpus]
    if options.cpu_processes is None and (visible := visible_gpus()):
        return [f"cuda:{gpu}" for gpu in range(visible)]
    return ["cpu"] * (options.cpu_processes or 1)


def require_compiler(device: str) -> None:
    """Checks that torch.compile finds what it generates code for, rather than have each network fail.

    Raises:
        RunError: If it does not.
    """
    if device.startswith("cuda"):
        if importlib.util.find_spec("triton") is None:
            raise RunError("--compile needs the package triton on a GPU, which is not installed: pip install triton")
    elif not any(map(shutil.which, (os.environ.get("CXX") or "g++", "clang++"))):
        raise RunError("--compile needs a C++ compiler on the CPU (g++ or clang++), and none was found; install one")


def require_tf32(devices: Sequence[str]) -> None:
    """Checks that the devices have TensorFloat-32; others would compute in float32 under its name.

    Raises:
        RunError: If one does not.
    """
    import torch

    for device in devices:
        if not device.startswith("cuda") or torch.cuda.get_device_capability(device) < TF32_CAPABILITY:
            raise no_tf32(device)


def no_tf32(device: str) -> RunError:
    """Explains why a run with ``--dtype tf32`` cannot use a device."""
    return RunError(
        f"--dtype tf32 needs NVIDIA GPUs of compute capability 8.0 or more, and this run would use {device}, which has"
        " no TensorFloat-32; use --dtype float32 or bfloat16"
    )


def visible_gpus() -> int:
    """The number of GPUs that torch can use. Does not import torch if the machine has no GPU."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return 0
    if platform.system() == "Linux" and not any(map(os.path.exists, _GPU_FILES)):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
