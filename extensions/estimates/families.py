"""Families of models. Similar models are held out together to prevent leakage.

A family comes from a user's table, else it is the kind of architecture in the model's stored definition: the
module of timm or torchvision that defines it, the kind of open_clip's image tower, transformers' model type. Families
are never guessed from names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import DataError
from testbed.spreadsheet import plain, reading_csv

MODEL, FAMILY = "model", "family"
_FOLDS = 10  # maximum
_RESNET, _VIT = "resnet", "vision_transformer"  # timm's names


def read_families(path: Path) -> dict[str, str]:
    """Reads model → family from a CSV table with the columns ``model`` and ``family``.

    Raises:
        DataError: If it cannot be read, a column is missing, or a model has two families.
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
    """Returns the family declared by a model's stored definition; None without a declaration.

    Args:
        spec: The result of `testbed.models.base.definition.ModelDefinition.spec`.
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
    """The kind of an image tower of open_clip, according to its configuration."""
    if name := config.get("timm_model_name"):
        return _defined_in("timm", str(name)) or str(name)
    return _RESNET if isinstance(config.get("layers"), list) else _VIT


def _defined_in(library: str, arch: str) -> str | None:
    """The module of a library that defines an architecture, such as ``resnet``; None if unknown."""
    try:
        if library == "timm":
            from timm.models import model_entrypoint

            return str(model_entrypoint(arch.partition(".")[0]).__module__).rpartition(".")[2]
        if library == "torchvision":
            from torchvision.models import get_model_builder

            return str(get_model_builder(arch).__module__).rpartition(".")[2]
    except (RuntimeError, ValueError):  # not in the installed version
        pass
    return None


def folds_of(families: Iterable[str], seed: int = 0) -> Array:
    """The fold of each model, integer array [models]: a family for each of ten folds, or several if there are more."""
    names = list(families)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    order = np.random.default_rng(seed).permutation(len(numbers))
    return np.array([order[numbers[name]] % _FOLDS for name in names])
