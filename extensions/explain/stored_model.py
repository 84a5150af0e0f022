"""The model whose outputs are stored, with the preprocessing that its identity records.

A checkpoint that was evaluated with ``--image-size`` or ``--mean`` has a preprocessing that its name does not show.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.errors import TestbedError
from testbed.identity.describe import describe
from testbed.models.base.transform import LazyTransform, StandardNormalization, StandardTransform
from testbed.models.model_base import ModelDefinition

FIELDS = ("transform", "normalization")
REPEATED = 16  # images whose stored outputs are verified before other protocols are evaluated
# Tolerance relative to the largest output, by precision: effects of other machines and of storing float16.
TOLERANCE, TOLERANCE_BELOW_FLOAT32 = 2e-3, 5e-2


def model_as_stored(definition: ModelDefinition, identity: Mapping[str, Any]) -> ModelDefinition:
    """Returns a model with the transform and normalization recorded in an identity, if they can be rebuilt.

    Args:
        definition: The registered model.
        identity: Identity of a stored cell of that model.
    """
    recorded = identity.get("model", {}).get("spec") or {}
    changes = {}
    for field in FIELDS:
        own = getattr(definition, field, None)
        if field not in recorded or recorded[field] == _description(own):
            continue
        made = _made(recorded[field], own)
        if recorded[field] == _description(made):
            changes[field] = made
    return definition.under_name(definition.name, **changes) if changes else definition


def difference(outputs: Array, stored: Array, dtype: str) -> str:
    """Describes how recomputed outputs differ from the stored ones; empty if only by rounding.

    Args:
        outputs: Float array [m, C]; rows of unreadable samples are NaN.
        stored: Float array [m, C].
        dtype: The precision of the network.
    """
    if outputs.shape != stored.shape:
        return f"they have {outputs.shape[1]:,} columns, and the stored ones {stored.shape[1]:,}"
    both = np.isfinite(outputs).all(axis=1) & np.isfinite(stored).all(axis=1)
    if not both.any():
        return "none of the images could be read"
    largest = float(np.abs(stored[both]).max())
    apart = float(np.abs(outputs[both].astype(np.float64) - stored[both]).max())
    tolerance = TOLERANCE if dtype in ("float32", "tf32") else TOLERANCE_BELOW_FLOAT32
    if apart <= tolerance * max(largest, 1e-12):
        return ""
    return f"on {int(both.sum())} images they differ by up to {apart:.3g}, where the largest is {largest:.3g}"


def _description(value: Any) -> Any:
    try:
        return describe(value)
    except TestbedError:
        return None


def _made(recorded: Any, like: Any) -> Any:
    """Rebuilds a transform or a normalization from its description; None if that is not possible."""
    if not isinstance(recorded, Mapping):
        return None
    fields = recorded.get("!spec")
    kinds = {entry.__name__: entry for entry in (StandardTransform, StandardNormalization)}
    kind = kinds.get(str(recorded.get("type")))
    if kind is not None and isinstance(fields, Mapping):
        return kind(**fields)
    if isinstance(like, LazyTransform) and type(like).__name__ == recorded.get("type") and isinstance(fields, Mapping):
        other = copy.copy(like)
        vars(other).update(fields, _made=None)
        return other
    return None
