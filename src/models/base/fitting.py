"""Loads a state dict into a network: under the names that training scripts and older libraries gave its tensors."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.errors import WeightsError
from testbed.models.base.weights import plain

COUNTED = "num_batches_tracked"
COUNTER = "n_averaged"  # of torch.optim.swa_utils.AveragedModel, beside the network
# torchvision's first DenseNets; its builders and timm's rename them in this way.
OLD_NAMES = ((re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12])\."), r"\1\2."),)
SHOWN = 3


@dataclass(frozen=True)
class NamedState:
    """A state dict under a network's own names.

    Attributes:
        state: Name → tensor.
        prefix: The prefix of each name, such as ``module.`` (DataParallel) or ``model.`` (Lightning).
        beside: Names outside the prefix, which belong to other modules than the network.
    """

    state: dict[str, Any]
    prefix: str = ""
    beside: tuple[str, ...] = ()


def under_own_names(own: Iterable[str], state: Mapping[str, Any], what: str) -> NamedState:
    """A state dict under a network's own names.

    The prefix of its names is the one under which most of the network's own names are found.

    Args:
        own: The names in the network's state dict.
        state: The saved state.
        what: The file, for messages.

    Raises:
        WeightsError: If the network is there several times under different prefixes.
    """
    names = list(own)
    today = renamed(set(names), state)
    counts = {prefix: sum(prefix + name in today for name in names) for prefix in prefixes_of(names, today)}
    most = max(counts.values(), default=0)
    best = [prefix for prefix, count in counts.items() if count == most]
    if not most or "" in best or (len(best) > 1 and most * 2 <= len(names)):
        return NamedState(today)
    if len(best) > 1:
        raise WeightsError(
            f"{what} holds the network several times, under the names {', '.join(f'{name}*' for name in sorted(best))};"
            " save the state dict of the one that is meant"
        )
    prefix = best[0]
    averages = {f"{prefix.removesuffix('module.')}{COUNTER}"}
    beside = [name for name in today if not name.startswith(prefix) and name not in averages]
    inner: Any = OrderedDict(
        (name.removeprefix(prefix), value) for name, value in today.items() if name.startswith(prefix)
    )
    if hasattr(today, "_metadata"):
        inner._metadata = OrderedDict(
            (name.removeprefix(prefix) if name.startswith(prefix) else "", versions)
            for name, versions in today._metadata.items()
            if f"{name}.".startswith(prefix)
        )
    return NamedState(inner, prefix, tuple(beside))


def counted(names: Iterable[str]) -> list[str]:
    """The names without those of the counters of batch norms, which evaluation does not use."""
    return [name for name in names if not name.endswith(COUNTED)]


def prefixes_of(own: Iterable[str], state: Mapping[str, Any]) -> set[str]:
    """Returns possible prefixes of the network's own names: the empty one, and those in front of one of them."""
    names, prefixes = list(own), {""}
    for name in names[:1] + names[-1:]:
        prefixes.update(key.removesuffix(name) for key in state if key.endswith(f".{name}"))
    return prefixes


def renamed(own: set[str], state: Mapping[str, Any]) -> Any:
    """Renames the tensors of a state dict of an older library, if there are any."""
    renames = {}
    for name in [key for key in state if key not in own]:
        for pattern, today in OLD_NAMES:
            if (changed := pattern.sub(today, name)) != name:
                renames[name] = changed
    if not renames:
        return state
    renamed_state: Any = OrderedDict((renames.get(name, name), value) for name, value in state.items())
    if hasattr(state, "_metadata"):
        renamed_state._metadata = state._metadata
    return renamed_state


def fit_state_dict(network: Any, state: Mapping[str, Any], what: str) -> NamedState:
    """Loads a state dict into a network, as strictly as torch does.

    Whatever torch's modules accept from older versions is accepted: batch norms without ``num_batches_tracked``, for
    example.

    Args:
        network: The network; if the state dict does not fit, its weights are undefined.
        state: The state dict, under the network's names or with a common prefix.
        what: The file, for messages.

    Raises:
        WeightsError: If it does not fit; the message lists the first faults.
    """
    own = network.state_dict()
    named = under_own_names(own, state, what)
    try:
        try:
            network.load_state_dict(named.state, strict=True)
        except ValueError:  # the version that a module stores, which safetensors does not keep
            versioned: Any = OrderedDict(named.state)
            versioned._metadata = own._metadata
            network.load_state_dict(versioned, strict=True)
    except (RuntimeError, ValueError) as error:
        if not faults(own, named.state):
            raise WeightsError(f"{what} does not fit the architecture: {plain(error)}") from error
        raise misfit(what, own, named.state) from error
    return named


def faults(own: Mapping[str, Any], state: Mapping[str, Any]) -> list[str]:
    """Describes how a state dict differs from a network's, the most informative differences first."""
    return [fault for kind in kinds_of_faults(own, state) for fault in kind]


def kinds_of_faults(own: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Returns the names missing in a state dict, its additional names, and the shapes that differ."""
    shapes = [
        f"{name} is {tuple(state[name].shape)}, not {tuple(own[name].shape)}"
        for name in own
        if name in state and hasattr(own[name], "shape") and _shape(state[name]) != _shape(own[name])
    ]
    missing = [name for name in own if name not in state]
    missing = [f"missing {name}" for name in counted(missing) or missing]
    return missing, [f"unexpected {name}" for name in state if name not in own], shapes


def misfit(what: str, own: Mapping[str, Any], state: Mapping[str, Any], hint: str = "") -> WeightsError:
    """Returns the error for weights that do not fit: a few faults are all listed, of many the first of each kind."""
    kinds = kinds_of_faults(own, state)
    if sum(map(len, kinds)) <= SHOWN:
        said = [fault for kind in kinds for fault in kind]
    else:
        said = [f"{kind[0]}{f' and {len(kind) - 1} more' if len(kind) > 1 else ''}" for kind in kinds if kind]
    return WeightsError(f"{what} does not fit the architecture: {'; '.join(said)}{hint}")


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))
