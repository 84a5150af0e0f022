"""Reads a checkpoint file: a state dict, alone or among what a training script saved with it.

Files are opened with ``weights_only=True``. For numpy, scalars and arrays of numbers and texts are read, by functions
of our own in place of numpy's; any other object is refused, by its name.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError
from testbed.models.base.weights import object_refused, plain, why_not_a_file
from testbed.models.checkpoints.entries import found_in
from testbed.models.checkpoints.file_kinds import described, is_safetensors, program_in
from testbed.models.checkpoints.numpy_values import stand_ins


def load_state_dict(path: Path, entry: str = "") -> dict[str, Any]:
    """The state dict in a checkpoint file (safetensors, or torch's format read with weights_only=True).

    Of several entries with weights that of averaged ones comes first, then timm's order; see `entries`.

    Args:
        entry: The path of an entry, such as ``ema.module``; empty for the preferred one.

    Raises:
        WeightsError: If the file is missing or has none.
    """
    return found_in(open_checkpoint(path), f"the checkpoint {path}", entry).state


def open_checkpoint(path: Path, content: bool = True) -> Any:
    """Reads the content of a checkpoint file: a state dict, or what a training script put around it.

    Args:
        content: False: tensors have a shape and a type but no content, and almost nothing is read.

    Raises:
        WeightsError: If it is missing, or holds more than tensors and plain values.
    """
    if not os.path.isfile(path):
        raise WeightsError(f"the checkpoint {path} {why_not_a_file(path)}")
    try:
        return _safetensors(path, content) if is_safetensors(path) else _torch(path, content)
    except Exception as error:
        raise why_not_read(path, error) from error


@contextlib.contextmanager
def plain_values() -> Iterator[None]:
    """Allows ``torch.load(…, weights_only=True)`` to read what training scripts save: their arguments and scores."""
    import torch

    with torch.serialization.safe_globals([argparse.Namespace, *stand_ins()]):
        yield


def why_not_read(path: Path, error: Exception) -> WeightsError:
    """Returns the error for a file that cannot be opened, with a description of its content."""
    return WeightsError(f"the checkpoint {path} cannot be read as weights: {_reason(path, error)}")


def _torch(path: Path, content: bool) -> Any:
    import torch

    if (program := program_in(path)) is not None:
        raise WeightsError(program)
    place = "cpu" if content else "meta"
    with plain_values():
        if path.suffix == ".safetensors":  # torch.load goes by it, where it is given a path
            with open(path, "rb") as file:
                return torch.load(file, map_location=place, weights_only=True)
        try:
            return torch.load(path, map_location=place, weights_only=True, mmap=not content)
        except RuntimeError:
            if content:
                raise
            return torch.load(path, map_location=place, weights_only=True)  # an old format, which cannot be mapped


def _safetensors(path: Path, content: bool) -> dict[str, Any]:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file

    if content:
        loaded: dict[str, Any] = load_file(path)
        return loaded
    with safe_open(path, framework="pt") as file:
        return {name: torch.empty(file.get_slice(name).get_shape(), device="meta") for name in [*file.keys()]}


# What cannot be read ----------------------------------------------------------------------------------------------


def _reason(path: Path, error: Exception) -> str:
    """Explains in a line why a file is not opened: the object in it that is refused, else the kind of the file."""
    if object_refused(error):
        return f"{plain(error)}; save the state dict by itself: torch.save(network.state_dict(), FILE)"
    system = isinstance(error, OSError) and error.errno != errno.EINVAL  # that is a place that a damaged file names
    return plain(error) if system or isinstance(error, WeightsError) else described(path)
