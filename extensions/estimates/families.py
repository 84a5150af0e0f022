"""The families of models, whose likeness must not leak: near twins are held out together.

A family is what a table of yours says, else the kind of architecture that the model's stored definition declares: the
module of timm or torchvision that defines it, the kind of open_clip's image tower, transformers' model type. Names are
not guessed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from testbed.errors import DataError
from testbed.spreadsheet import plain, reading_csv

Array = np.ndarray[Any, Any]
MODEL, FAMILY = "model", "family"
_FOLDS = 10  # at most
_RESNET, _VIT = "resnet", "vision_transformer"  # as timm calls them


def read_families(path: Path) -> dict[str, str]:
    """Model → its family, from a CSV table with the columns ``model`` and ``family``.

    Raises:
        DataError: If it cannot be read, lacks a column, or has two families for a model.
    """
    found: dict[str, str] = {}
    with reading_csv(path) as reader:
        if not {MODEL, FAMILY} <= set(reader.fieldnames or ()):
            columns = ", ".join(reader.fieldnames or ()) or "none"
            raise DataError(f"{path}: expected the columns model and family, found {columns}")
        for row in reader:
            model, family = (plain(row[name] or "").strip() for name in (MODEL, FAMILY))
            if not model or not family:
                raise DataError(f"{path}, line {reader.line_num}: expected a model and its family")
            if found.setdefault(model, family) != family:
                raise DataError(f"{path}, line {reader.line_num}: {model} has two families")
    return found


def declared_family(spec: Mapping[str, Any]) -> str | None:
    """The family that a model's stored definition declares; None if it declares none.

    Args:
        spec: What `testbed.models.base.definition.ModelDefinition.spec` gave.
    """
    network, arch = spec.get("network"), spec.get("arch")
    if not isinstance(network, dict):
        return None
    if "digits" in network:
        return str(network["digits"])
    if "checkpoint" in network:
        of, _, kind = str(network["checkpoint"]).rpartition("/")
        return _defined_in(of or "torchvision", kind)
    library = network.get("library")
    config = network.get("config")
    if library == "open_clip" and isinstance(config, dict):
        return f"open_clip {_tower(config.get('vision_cfg') or {})}"
    if library == "transformers" and isinstance(config, dict):
        return f"transformers {config['model_type']}" if "model_type" in config else None
    return _defined_in(str(library), arch) if isinstance(arch, str) else None


def _tower(config: Mapping[str, Any]) -> str:
    """The kind of an image tower of open_clip, by what its configuration has."""
    if name := config.get("timm_model_name"):
        return _defined_in("timm", str(name)) or str(name)
    return _RESNET if isinstance(config.get("layers"), list) else _VIT


def _defined_in(library: str, arch: str) -> str | None:
    """The module of a library that defines an architecture, such as ``resnet``; None if none does."""
    try:
        if library == "timm":
            from timm.models import model_entrypoint

            return str(model_entrypoint(arch.partition(".")[0]).__module__).rpartition(".")[2]
        if library == "torchvision":
            from torchvision.models import get_model_builder

            return str(get_model_builder(arch).__module__).rpartition(".")[2]
    except (RuntimeError, ValueError):  # not of the installed version
        pass
    return None


def folds_of(families: Iterable[str], seed: int = 0) -> Array:
    """The fold of each model, integer array [models]: a family for each of ten folds, or several if there are more."""
    names = list(families)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    order = np.random.default_rng(seed).permutation(len(numbers))
    return np.array([order[numbers[name]] % _FOLDS for name in names])
