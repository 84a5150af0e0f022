"""Records of cells for the store: their descriptions, and the hardware and versions of the run."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from testbed import __version__
from testbed.db.parts.evaluations import UNIDENTIFIED
from testbed.entities import REFERENCE, CellRecord
from testbed.execution.resources import Resources
from testbed.graph.cells import LEFT_OUT, Cell, left_out_as_object
from testbed.graph.options import RunOptions
from testbed.graph.stored import COMPUTED_FROM
from testbed.inputs import active

LIBRARIES = ("torch", "torchvision", "timm", "open_clip_torch", "numpy", "pillow", "scikit-learn", "transformers")


def cell_record(
    cell: Cell,
    options: RunOptions,
    environment: dict[str, Any],
    derived_from: int | None = None,
    computed_from: Mapping[str, str] | None = None,
) -> CellRecord:
    """Returns the record that the store keeps when an evaluation of a cell begins.

    Args:
        environment: Versions and hardware; what the data sets leave out is added.
        derived_from: The evaluation whose outputs it reuses.
        computed_from: From `when_begun`, for the evaluations whose outputs its own are computed from.
    """
    opened = cell.opened_setting
    limit = options.limit
    limited = (
        limit is not None and opened is not None and cell.size < len(opened.setting.samples.positions(opened.source))
    )
    return CellRecord(
        model=cell.model,
        eval_setting=cell.setting,
        fingerprint=cell.fingerprint or UNIDENTIFIED,
        forward_fingerprint=cell.forward,
        size=cell.size or None,
        sample_limit=limit if limited else None,
        dtype=(cell.identity or {}).get("dtype", options.dtype),
        random_weights=options.random_weights,
        origin="derived" if derived_from is not None else "run",
        derived_from=derived_from,
        identity=cell.identity or None,
        environment={
            **environment,
            **({LEFT_OUT: left_out_as_object(cell.left_out)} if cell.left_out else {}),
            **_reference(cell.model, options),
            **({COMPUTED_FROM: dict(computed_from)} if computed_from else {}),
        },
    )


def _reference(model: str, options: RunOptions) -> dict[str, str]:
    """The file that a short name stands for."""
    own = next((own_name for own_name in (options.inputs or active()).own_names if own_name.name == model), None)
    return {} if own is None else {REFERENCE: own.as_text()}


def columns_of(cell: Cell) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the model's and the setting's rows; empty for a definition that could not be opened."""
    model = cell.opened_model.definition if cell.opened_model else None
    setting = cell.opened_setting.setting if cell.opened_setting else None
    return (
        {"model_type": model.model_type} if model else {},
        {"parent": setting.parent_eval_setting, "task": setting.task} if setting else {},
    )


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
