"""The network of a known architecture for the weights in a file: what torchvision and timm build for such weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import WeightsError
from testbed.models.base.fitting import faults, fit_state_dict, misfit, under_own_names
from testbed.models.loading.checkpoint_file import load_state_dict
from testbed.models.loading.saved import shapes

if TYPE_CHECKING:
    from testbed.models.model_base import Model

PREFIX = "timm/"
OTHER_CLASSES = 7  # of a second network, which shows what the number of classes changes
AUXILIARY = "aux"  # how the names of heads begin that only training uses


@dataclass(frozen=True)
class Plan:
    """How a network is built for a state dict.

    Attributes:
        classes: The number of classes of its head.
        arguments: What its builder is given besides.
        beside: Names in the file that belong to no part of the network.
    """

    classes: int
    arguments: dict[str, Any] = field(default_factory=dict)
    beside: tuple[str, ...] = ()


def load_checkpoint(
    architecture: str, path: Path, settings: Mapping[str, Any] | None = None, *, entry: str = ""
) -> Any:
    """The network of an architecture with the weights in a file.

    Args:
        architecture: A name of torchvision or timm, such as ``resnet50`` or ``timm/vit_base_patch16_224``.
        path: The file.
        settings: What the builder is given, such as ``{"transform_input": True}``.
        entry: The entry of the file that has the weights; empty for the preferred one.

    Raises:
        WeightsError: If they do not fit.
    """
    state, what = load_state_dict(path, entry), f"the checkpoint {path}"
    made = plan(architecture, state, settings or {}, what)
    network = build(architecture, made.classes, made.arguments)
    fit_state_dict(network, state, what)
    return network


def other_entries(model: Model) -> tuple[str, ...]:
    """The entries of a model's checkpoint with weights that it does not take."""
    loader = model.classifier_loader
    if not isinstance(loader, partial) or loader.func is not load_checkpoint:
        return ()
    found = shapes(loader.args[1])
    return found.others if found is not None else ()


def with_entry(model: Model, name: str, entry: str) -> Model:
    """A model of a checkpoint with the weights of another entry; see `other_entries`."""
    loader: Any = model.classifier_loader
    loader = partial(loader, entry=entry)
    made = model.under_name(name, classifier_loader=loader, architecture={**(model.architecture or {}), "entry": entry})
    made.remarks = (f"weights from {entry}",)
    return made


def build(architecture: str, classes: int | None = None, arguments: Mapping[str, Any] | None = None) -> Any:
    """An untrained network; with ``classes``, its head has as many outputs."""
    given = {**(arguments or {}), **({} if classes is None else {"num_classes": classes})}
    if architecture.startswith(PREFIX):
        import timm

        return timm.create_model(architecture.removeprefix(PREFIX), pretrained=False, **given)
    from torchvision import models

    return models.get_model(architecture, weights=None, **given)


def published_settings(architecture: str, weights: Any) -> dict[str, Any]:
    """What torchvision's builder gives a network that it makes for published weights, where that changes its logits."""
    takes = _parameters(architecture)
    settings: dict[str, Any] = {}
    if "transform_input" in takes:  # Inception and GoogLeNet, whose weights want Google's normalization
        settings["transform_input"] = True
    if "image_size" in takes and (size := weights.meta["min_size"][0]) != DEFAULT_SIZE:
        settings["image_size"] = size
    return settings


DEFAULT_SIZE = 224  # pixels, of torchvision's vision transformers


def _parameters(architecture: str) -> Mapping[str, Any]:
    return inspect.signature(type(_sketch(architecture, None, {})).__init__).parameters


def plan(architecture: str, state: Mapping[str, Any], settings: Mapping[str, Any], what: str) -> Plan:
    """How the network of a state dict is built; its tensors need no content.

    Raises:
        WeightsError: If it does not fit.
    """
    arguments = {**settings, **_auxiliary(architecture, state)}
    sketch = _sketch(architecture, None, arguments)
    own = sketch.state_dict()
    named = under_own_names(own, state, what)
    heads = _heads(own, _sketch(architecture, OTHER_CLASSES, arguments).state_dict())
    found = faults({name: each for name, each in own.items() if name not in heads}, named.state)
    lacking = [name for name in heads if name not in named.state]
    if lacking and not [each for each in found if not each.startswith("unexpected")]:
        raise WeightsError(
            f"{what} does not fit the architecture: it has no head, {', '.join(f'missing {name}' for name in lacking)}"
        )
    odd = [name for name in heads if name in named.state and not _is_head_like(named.state[name], own[name])]
    if lacking or odd:
        raise misfit(what, faults(own, named.state))
    sizes = {name: int(named.state[name].shape[0]) for name in heads}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} of {size}" for name, size in sizes.items())
        raise WeightsError(f"{what} does not fit the architecture: it has heads for different classes: {told}")
    return Plan(next(iter(sizes.values())), arguments, named.beside)


def _sketch(architecture: str, classes: int | None, arguments: Mapping[str, Any]) -> Any:
    """A network without content, to see the names and shapes of its tensors."""
    import torch

    try:
        with torch.device("meta"):
            return build(architecture, classes, arguments)
    except (RuntimeError, NotImplementedError):  # of one that computes with numbers while it is made
        return build(architecture, classes, arguments)


def _auxiliary(architecture: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Whether a network has auxiliary heads, which are not used in evaluation, as the state dict says."""
    if architecture.startswith(PREFIX):
        return {}
    takes = _parameters(architecture)
    arguments: dict[str, Any] = {}
    if "aux_logits" in takes:
        parts = {part.lower() for name in state for part in name.split(".")[:-1]}
        arguments["aux_logits"] = any(part.startswith(AUXILIARY) for part in parts)
    if "init_weights" in takes:  # takes half a minute, for weights that are replaced
        arguments["init_weights"] = False
    return arguments


def _heads(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of the tensors whose shape the number of classes decides."""
    return [name for name in own if name in other and own[name].shape != other[name].shape]


def _is_head_like(given: Any, own: Any) -> bool:
    return bool(getattr(given, "ndim", 0) == own.ndim and given.ndim > 0 and given.shape[1:] == own.shape[1:])
