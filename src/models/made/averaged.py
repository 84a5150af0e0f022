"""Models whose weights are a mean of the weights of others, of the same architecture.

Wortsman et al., "Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing
inference time" (2022), the uniform soup; and "Robust fine-tuning of zero-shot models" (2022), WiSE-FT.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError, WeightsError
from testbed.models.base.weights import loading

if TYPE_CHECKING:
    from testbed.models.base.definition import ModelDefinition

REVISION = 1  # of how weights are averaged; raised when the same members give other ones
LOADERS = ("classifier_loader", "encoder_loader")
COUNTERS = "num_batches_tracked"  # how often a BatchNorm has updated its statistics, which no evaluation uses


def averaged(name: str, members: Sequence[ModelDefinition], shares: Sequence[float]) -> ModelDefinition:
    """A model like the first of several, except for its weights.

    Args:
        shares: The share of each, of sum 1.

    Raises:
        DefinitionError: If they are not of one kind, have no networks of torch, or order their classes differently.
    """
    first = members[0]
    loader = next((loader for loader in LOADERS if hasattr(first, loader)), None)
    for member in members:
        if loader is None or type(member) is not type(first):
            kinds = " and ".join(dict.fromkeys(type(one).__name__ for one in members))
            raise DefinitionError(
                f"{name}: weights can be averaged of classifiers, image encoders or dual encoders of one architecture;"
                f" these are {kinds}"
            )
        if member.class_order != first.class_order:
            raise DefinitionError(f"{name}: {first.name} and {member.name} order their classes differently")
    assert loader is not None
    architecture = {**(first.architecture or {}), "averaged": {"shares": list(shares), "revision": REVISION}}
    load = partial(_load, name, members, shares)
    fields: dict[str, Any] = {loader: load, "architecture": architecture, "_weights": None}
    model = first.under_name(name, **fields, published=())
    model.made_of = tuple(member.name for member in members)
    told = ", ".join(f"{share:.4g} of {member.name}" for share, member in zip(shares, members, strict=True))
    model.remarks = (f"mean of weights: {told}",)
    model.preprocessing_from = f"the definition of {first.name}"
    return model


def _load(name: str, members: Sequence[ModelDefinition], shares: Sequence[float]) -> Any:
    """Returns what the loader of the first member returns, with the mean of the weights."""
    made = members[0].make_network()
    network = made[0] if isinstance(made, tuple) else made
    mean = {key: value.double() * shares[0] for key, value in _floats(network, members[0]).items()}
    for member, share in zip(members[1:], shares[1:], strict=True):
        with loading(member.name):
            other = member.make_network()
        other = other[0] if isinstance(other, tuple) else other
        _require_alike(name, members[0], network, member, other)
        for key, value in _floats(other, member).items():
            mean[key] += value.double() * share
    own = network.state_dict()
    network.load_state_dict({key: mean[key].to(value.dtype) if key in mean else value for key, value in own.items()})
    return made


def _floats(network: Any, member: ModelDefinition) -> dict[str, Any]:
    """The parameters and statistics that can be averaged."""
    import torch

    if not isinstance(network, torch.nn.Module):
        raise WeightsError(f"{member.name}: its loader returns a {type(network).__name__}, which has no weights")
    state = network.state_dict()
    return {key: value for key, value in state.items() if isinstance(value, torch.Tensor) and value.is_floating_point()}


def _require_alike(name: str, first: ModelDefinition, network: Any, second: ModelDefinition, other: Any) -> None:
    """Checks that two networks have the same entries of the same shapes, and the same whole numbers.

    Raises:
        WeightsError: If they do not; names the first entry that differs.
    """
    import torch

    _floats(other, second)
    one, two = network.state_dict(), other.state_dict()
    for key in dict.fromkeys([*one, *two]):
        lacking = first if key not in one else second if key not in two else None
        if lacking is not None:
            raise WeightsError(f"{name}: its members are of different architectures: {lacking.name} has no {key}")
        if not isinstance(one[key], torch.Tensor) or key.endswith(COUNTERS):
            continue
        shapes = tuple(one[key].shape), tuple(two[key].shape)
        if shapes[0] != shapes[1]:
            raise WeightsError(
                f"{name}: {key} has the shape {shapes[0]} in {first.name} and {shapes[1]} in {second.name}; weights can"
                " be averaged of one architecture"
            )
        if not one[key].is_floating_point() and not torch.equal(one[key], two[key]):
            raise WeightsError(f"{name}: {key} is of whole numbers that differ in {first.name} and {second.name}")
