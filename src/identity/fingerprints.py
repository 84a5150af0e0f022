"""Digests by which a cell is found, and their contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.identity.describe import digest


def weights_identity(description: Mapping[str, Any], weights: str | None) -> str:
    """The digest of a model's definition and weights."""
    return digest([description, weights])


def model_identity(identity: Mapping[str, Any]) -> str:
    """The digest of model, weights and precision in the identity of a cell."""
    model = identity["model"]
    return precise_identity(weights_identity(model["spec"], model["weights"]), identity["dtype"])


def precise_identity(weights: str, dtype: str) -> str:
    """The digest of model, weights (from `weights_identity`) and precision."""
    return digest([weights, dtype])


def forward_fingerprint(weights: str, dtype: str, forward: Any) -> str:
    """The digest of what determines a cell's outputs, besides its samples.

    Args:
        weights: From `weights_identity`.
        dtype: The precision.
        forward: The description of computing outputs.
    """
    return digest([weights, dtype, forward])


def cell_fingerprint(forward: str | None, samples: str, view: Any) -> str:
    """The digest of all that determines a cell's metrics.

    Args:
        forward: From `forward_fingerprint`.
        samples: The fingerprint of the data set.
        view: The description of scoring outputs.
    """
    return digest([forward, samples, view])
