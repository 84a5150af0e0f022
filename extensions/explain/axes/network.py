"""Precision, activation, and other weights of the architecture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from testbed.errors import TestbedError
from testbed.extensions.explain.axis import REPLACES, Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.pixels import Pixels, pixels_of
from testbed.inputs import active
from testbed.models.base.capability import LOGITS
from testbed.models.checkpoints.entries import is_averaged
from testbed.models.loading.checkpoint_network import other_entries
from testbed.models.model_base import Model, ModelDefinition
from testbed.registry.own_files import own_path
from testbed.registry.table import natural_key

PRECISIONS = ("float32", "bfloat16", "float16")
ACTIVATIONS = {"QuickGELU": "quick_gelu", "GELU": "gelu"}

MOST_BESIDE = 10  # checkpoints in the folder of the model's own
SUFFIXES = (".pth", ".pt", ".safetensors", ".ckpt", ".pth.tar")

Found = Iterator[tuple[str, Callable[[Pixels], Pixels]]]


def _precision(cell: EvaluatedCell) -> Found:
    for name in PRECISIONS:
        if name != cell.dtype:
            yield name, partial(replace, dtype=name)


def _activation(cell: EvaluatedCell) -> Found:
    for name, activation in ACTIVATIONS.items():
        yield name, partial(replace, activation=activation)


def _weights(cell: EvaluatedCell) -> Found:
    """Other local weights of a classifier's architecture, with their own preprocessing."""
    model = cell.model
    if LOGITS not in model.capabilities or not model.arch:
        raise NotApplicableError("the model has no architecture with other weights")
    siblings = [name for name in cell.catalog.model_names() if name.partition(".")[0] == model.name.partition(".")[0]]
    stored = [entry.name for entry in cell.store.names.all("model")]
    for name in dict.fromkeys([*siblings, *stored, *_beside(cell)]):
        if name != model.name and (other := _other(cell, name)) is not None:
            yield name, partial(_with_weights, other)


def _beside(cell: EvaluatedCell) -> list[str]:
    """The checkpoints in the model's own folder, nearest in alphabetical order first."""
    reference = next(
        (own_name.reference for own_name in active().own_names if own_name.name == cell.model.name), cell.model.name
    )
    found = own_path(reference)
    if found is None or not found[1].is_file():
        return []
    before, own = found
    files = {path for path in own.parent.iterdir() if path.is_file() and path.name.endswith(SUFFIXES)}
    ordered = sorted({*files, own}, key=lambda each: natural_key(each.name))
    nearest = sorted(ordered, key=lambda each: abs(ordered.index(each) - ordered.index(own)))
    return [f"{before}{path}" for path in nearest[1 : MOST_BESIDE + 1]]


def _other(cell: EvaluatedCell, name: str) -> ModelDefinition | None:
    """A model of the same architecture with local weights; None if there is no such model."""
    try:
        other = cell.catalog.get_model(name)
        same = other.arch == cell.model.arch and other.capabilities == cell.model.capabilities
        return other if same and (other.identified_by_loading or other.weights(fetch=False)) else None
    except TestbedError:  # a removed model, or one without weights
        return None


def _with_weights(other: ModelDefinition, pixels: Pixels) -> Pixels:
    """Uses another checkpoint with the stored protocol; published weights with their own preprocessing."""
    if "checkpoint" in (other.architecture or {}):
        return replace(pixels, weights=other.name)
    return replace(pixels_of(other), weights=other.name, dtype=pixels.dtype)


def _entries(cell: EvaluatedCell) -> Found:
    """Averaged and plain weights in the same file."""
    model = cell.model
    entries = other_entries(model) if isinstance(model, Model) else ()
    if not entries:
        raise NotApplicableError("the weights are not a checkpoint with several entries")
    for entry in entries:
        yield f"{entry} ({'averaged' if is_averaged(entry) else 'not averaged'})", partial(replace, entry=entry)


add_axis(Axis("precision", Stage.IMAGES, _precision))
add_axis(Axis("activation", Stage.IMAGES, _activation))
add_axis(Axis("weights", Stage.IMAGES, _weights, order=REPLACES))
add_axis(Axis("weights in the file", Stage.IMAGES, _entries))
