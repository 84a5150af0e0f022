"""What may affect numbers without being part of a cell's identity; recorded with every evaluation."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from testbed import __version__
from testbed.graph.options import RunOptions
from testbed.planning.resources import Resources

LIBRARIES = ("torch", "torchvision", "timm", "open_clip_torch", "numpy", "pillow", "scikit-learn", "transformers")


def environment(resources: Resources, options: RunOptions) -> dict[str, Any]:
    """Versions, hardware and the setup of the run."""
    faster = {name: True for name in ("compile", "channels_last") if getattr(options, name)}
    return {
        "testbed": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "libraries": {name: version for name in LIBRARIES if (version := _version(name))},
        "devices": list(resources.devices),
        "device_names": list(resources.names) or device_names(resources.devices),
        "batch_size": options.batch_size,
        "data_workers": resources.data_workers,
        "threads": resources.threads,
        "host": platform.node(),
        **faster,
    }


def device_names(devices: Sequence[str]) -> list[str]:
    """The names of the processors or GPUs."""
    if any(device.startswith("cuda") for device in devices):
        import torch

        return [torch.cuda.get_device_name(device) for device in devices if device.startswith("cuda")]
    return [_processor()]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@cache  # reading the metadata takes milliseconds
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
