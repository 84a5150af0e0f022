"""The network of a known architecture for the weights in a file: what torchvision and timm build for such weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import WeightsError
from testbed.models.base.fitting import fit_state_dict, kinds_of_faults, misfit
from testbed.models.checkpoints.entries import FoundState, found_in
from testbed.models.checkpoints.file_kinds import part_of
from testbed.models.checkpoints.names import OPTION, ExpectedState, MatchedState, agrees_in_order, is_by_option, matched
from testbed.models.checkpoints.sizes import argument_of, fixed_side, sides_in
from testbed.models.checkpoints.timm_names import padding_doubt, renamed_by_timm
from testbed.models.loading.checkpoint_file import open_checkpoint
from testbed.models.loading.saved import contents

if TYPE_CHECKING:
    from testbed.models.model_base import Model

PREFIX = "timm/"
OTHER_CLASSES = 7  # of a second network, which shows what the number of classes changes
AUXILIARY = "aux"  # how the names of heads begin that only training uses


@dataclass(frozen=True)
class Plan:
    """Plan for building a checkpoint's network, and the tensors that it takes.

    Attributes:
        classes: The number of classes of its head.
        arguments: Further arguments of its builder.
        state: Its state dict, under its own names.
        found: The entry of the file that it was taken from.
        beside: Names in the file that belong to no part of the network.
        side: The side of the images that it takes (pixels); None if it takes any.
        usual_side: That of the architecture as published.
        said: The decisions that the file made, for people.
        by_option: True if it only fits because names were not compared.
    """

    classes: int
    arguments: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    found: FoundState = field(default_factory=lambda: FoundState({}))
    beside: tuple[str, ...] = ()
    side: int | None = None
    usual_side: int | None = None
    said: tuple[str, ...] = ()
    by_option: bool = False


def plan_from(stored: Mapping[str, Any]) -> Plan:
    """A plan without tensors from its fields as JSON has them."""

    def fields(values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}

    return Plan(**{**fields(stored), "found": FoundState(**fields(stored["found"]))})


@dataclass(frozen=True)
class Asked:
    """The user's options for a checkpoint.

    Attributes:
        entry: The entry of the file that has the weights; empty for the preferred one.
        by_order: True to match tensors by their order where their names do not match.
        side: The side of its images (pixels); None for the architecture's, or the one that the file shows.
    """

    entry: str = ""
    by_order: bool = False
    side: int | None = None


def load_checkpoint(
    architecture: str,
    path: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    entry: str = "",
    by_order: bool = False,
    side: int | None = None,
) -> Any:
    """The network of an architecture with the weights in a file.

    Args:
        architecture: A name of torchvision or timm, such as ``resnet50`` or ``timm/vit_base_patch16_224``.
        settings: Arguments of the builder, such as ``{"transform_input": True}``.
        entry: As in `Asked`.
        by_order: As in `Asked`.
        side: As in `Asked`.

    Raises:
        WeightsError: If they do not fit.
    """
    what = f"the checkpoint {path}"
    made = plan(architecture, open_checkpoint(path), settings or {}, what, Asked(entry, by_order, side))
    from testbed.models.loading.uninitialized import Uninitialized

    with Uninitialized():
        network = build(architecture, made.classes, made.arguments)
    fit_state_dict(network, made.state, what)
    return network


def other_entries(model: Model) -> tuple[str, ...]:
    """The entries of a model's checkpoint with weights that it does not take."""
    loader = model.classifier_loader
    if not isinstance(loader, partial) or loader.func is not load_checkpoint:
        return ()
    try:
        architecture, path, *settings = loader.args
        asked = Asked(**loader.keywords)
        return plan(architecture, contents(path), settings[0] if settings else {}, str(path), asked).found.others
    except WeightsError:
        return ()


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
    """Returns torchvision's builder arguments for published weights, where they change the logits."""
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


def plan(architecture: str, loaded: Any, settings: Mapping[str, Any], what: str, asked: Asked = Asked()) -> Plan:
    """Plans how to build the network of a checkpoint; its tensors need no content.

    Args:
        architecture: As in `load_checkpoint`.
        loaded: The result of `open_checkpoint`.
        settings: As in `load_checkpoint`.
        what: The file, for messages.
        asked: The user's options for it.

    Raises:
        WeightsError: If it does not fit.
    """
    usual = _Sketch(architecture, {**settings, **_uninitialized(architecture)})
    entry = found_in(loaded, what, asked.entry, usual.own, usual.heads)
    arguments = {**settings, **_auxiliary(architecture, entry.state), **_pooling(usual, entry.state)}
    sketch, result = _fitted(_Sketch(architecture, arguments), entry.state, what, asked)
    heads, state = sketch.heads, result.state
    if not heads:
        raise WeightsError(f"{what} cannot be a classifier: the architecture {architecture} has no head")
    if not sketch.wanted.fits(state):
        raise _misfit(what, sketch, entry.state, result)
    sizes = {name: int(state[name].shape[0]) for name in heads}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} of {size}" for name, size in sizes.items())
        raise WeightsError(f"{what} does not fit the architecture: it has heads for different classes: {told}")
    side = fixed_side(sketch.network)
    if asked.side is not None and side not in (None, asked.side):
        raise WeightsError(
            f"{what} has a network for images of {side} pixels, as the shapes of its tensors show; it cannot be"
            f" evaluated on images of {asked.side} pixels"
        )
    said = list(result.said)
    if "global_pool" in arguments and "global_pool" not in settings:
        said.append("the mean of the tokens for the class token, as its fc_norm shows")
    usual_side = fixed_side(usual.network)
    if side is not None and side != usual_side:
        said.append(f"built for images of {side} pixels, not {usual_side}")
    if architecture.startswith(PREFIX):
        stem = Path(what).stem if what else ""
        said += filter(None, [padding_doubt(architecture.removeprefix(PREFIX), stem, entry.state)])
    return Plan(
        next(iter(sizes.values())),
        sketch.arguments,
        state,
        entry,
        result.beside,
        side,
        usual_side,
        tuple(said),
        is_by_option(result),
    )


class _Sketch:
    """A network without content, to see the names and shapes of its tensors.

    Args:
        architecture: Its name.
        arguments: Arguments of its builder.
    """

    def __init__(self, architecture: str, arguments: dict[str, Any]) -> None:
        self.architecture = architecture
        self.arguments = arguments
        self.network = _sketch(architecture, None, arguments)
        if not getattr(self.network, "num_classes", 1):  # published without a head, as DINOv2
            self.network = _sketch(architecture, OTHER_CLASSES + 1, arguments)
        self.own: dict[str, Any] = self.network.state_dict()
        other = _sketch(architecture, OTHER_CLASSES, arguments).state_dict()
        self.heads = _heads(self.own, other)

    @property
    def wanted(self) -> ExpectedState:
        """The names and shapes that it needs of a state dict."""
        name = self.architecture.removeprefix(PREFIX)
        rename = partial(renamed_by_timm, name, self.network) if name != self.architecture else None
        return ExpectedState(self.own, self.heads, rename)

    def at(self, side: int) -> _Sketch | None:
        """The same for images of another size; None if it takes no such argument."""
        given = argument_of(lambda more: _sketch(self.architecture, None, {**self.arguments, **more}), side)
        return None if given is None else _Sketch(self.architecture, {**self.arguments, **given})


def _fitted(sketch: _Sketch, state: Mapping[str, Any], what: str, asked: Asked) -> tuple[_Sketch, MatchedState]:
    """The network for a state dict, at the size of images that its tensors show or that was asked for."""
    usual = fixed_side(sketch.network)
    first = sketch
    if asked.side is not None and usual not in (None, asked.side):
        first = sketch.at(asked.side) or sketch
    result = matched(first.wanted, state, what, asked.by_order)
    if first.wanted.fits(result.state):
        return first, result
    plain = matched(sketch.wanted, state, what, asked.by_order)
    for side in dict.fromkeys(sides_in(sketch.own, sketch.heads, plain.state, usual)) if usual else ():
        other = sketch.at(side) if side != usual else sketch
        if other is not None:
            result = matched(other.wanted, state, what, asked.by_order)
            if other.wanted.fits(result.state):
                return other, result
    return sketch, plain


def _misfit(what: str, sketch: _Sketch, state: Mapping[str, Any], result: MatchedState) -> WeightsError:
    """The error for a file that does not fit: what differs, and what can be done."""
    own, heads, given = sketch.own, sketch.heads, result.state
    tensors = {name: tensor for name, tensor in state.items() if hasattr(tensor, "shape")}
    hint = f"; {part}" if (part := part_of(Path(what))) else ""
    kinds = kinds_of_faults(
        *({name: tensor for name, tensor in some.items() if name not in heads} for some in (own, given))
    )
    if not (kinds[0] or kinds[1]) and fixed_side(sketch.network) is not None:
        hint += "; for a network for images of another size, set --image-size"
    if agrees_in_order(sketch.wanted, tensors):
        hint += (
            f"; its {len(tensors)} tensors have the shapes of the architecture's in the same order: {OPTION} matches"
            " them so"
        )
    lacking = [name for name in heads if name not in given]
    if lacking and not (kinds[0] or kinds[2]):
        left = [*result.beside, *(name for name in given if name not in own)]
        more = f"; left over: {left[0]}{f' and {len(left) - 1} more' if len(left) > 1 else ''}" if left else ""
        missing = ", ".join(f"missing {name}" for name in lacking)
        return WeightsError(f"{what} does not fit the architecture: it has no head, {missing}{more}{hint}")
    here = {name: tensor for name, tensor in own.items() if name not in heads or _is_wrong(sketch, name, given)}
    return misfit(what, here, {name: tensor for name, tensor in given.items() if name in here or name not in own}, hint)


def _is_wrong(sketch: _Sketch, name: str, given: Mapping[str, Any]) -> bool:
    return name not in given or not sketch.wanted.alike(name, given[name])


@lru_cache(maxsize=16)
def _kept(architecture: str, classes: int | None, arguments: tuple[tuple[str, Any], ...]) -> Any:
    import torch

    from testbed.models.loading.uninitialized import Uninitialized

    try:
        with torch.device("meta"), Uninitialized():
            return build(architecture, classes, dict(arguments))
    except (RuntimeError, NotImplementedError):  # of one that computes with numbers while it is made
        return build(architecture, classes, dict(arguments))


def _sketch(architecture: str, classes: int | None, arguments: Mapping[str, Any]) -> Any:
    """A network without content, to see the names and shapes of its tensors."""
    try:
        return _kept(architecture, classes, tuple(sorted(arguments.items())))
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        return _kept.__wrapped__(architecture, classes, tuple(arguments.items()))


def _pooling(sketch: _Sketch, state: Mapping[str, Any]) -> dict[str, Any]:
    """Detects MAE's and BEiT's fine-tuned networks by the file's names: they average the tokens, then normalize."""
    names = ("fc_norm.weight", "norm.weight")
    after, before = (any(f".{key}".endswith(f".{name}") for key in state) for name in names)
    takes = "global_pool" in inspect.signature(type(sketch.network).__init__).parameters
    averages = after and names[0] not in sketch.own and names[1] in sketch.own and not before
    return {"global_pool": "avg"} if averages and takes and sketch.architecture.startswith(PREFIX) else {}


def _auxiliary(architecture: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Checks whether the state dict of a network has auxiliary heads, which are not used in evaluation."""
    if architecture.startswith(PREFIX):
        return {}
    takes = _parameters(architecture)
    arguments: dict[str, Any] = {}
    if "aux_logits" in takes:
        parts = {part.lower() for name in state for part in name.split(".")[:-1]}
        arguments["aux_logits"] = any(part.startswith(AUXILIARY) for part in parts)
    return {**arguments, **_uninitialized(architecture)}


def _uninitialized(architecture: str) -> dict[str, Any]:
    """Keeps torchvision's builders from initializing weights that are replaced, which takes half a minute."""
    takes = {} if architecture.startswith(PREFIX) else _parameters(architecture)
    return {"init_weights": False} if "init_weights" in takes else {}


def _heads(own: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of the tensors whose shape the number of classes decides."""
    return [name for name in own if name in other and own[name].shape != other[name].shape]
