"""The tensors of a file under the network's own names, whatever the file calls them.

Tried in this order, and each only if all tensors then fit: the network's names behind a prefix; a head under another
name; the names of the architecture's authors, which timm renames; names without a rule, where the order decides.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from testbed.models.base.fitting import COUNTED, counted, under_own_names

OPTION = "--match-by-order"
_NUMBER = re.compile(r"(\d+)$")


@dataclass(frozen=True)
class MatchedState:
    """A state dict under a network's own names.

    Attributes:
        state: Name → tensor.
        beside: Names in the file that do not belong to the network.
        said: The changes to its names, for people.
    """

    state: dict[str, Any]
    beside: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExpectedState:
    """The names and shapes that the network of an architecture needs.

    Attributes:
        own: Its state dict; tensors need no content.
        heads: Those of its names whose shape the number of classes decides.
        rename: Renames the state dict of the architecture's authors, if needed; see `timm_names`.
    """

    own: Mapping[str, Any]
    heads: Sequence[str]
    rename: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def fits(self, state: Mapping[str, Any]) -> bool:
        """Checks whether a state dict has all its names, no others, and its shapes, except the number of classes."""
        names = set(counted(self.own))
        return names == set(counted(state)) and all(self.alike(name, state[name]) for name in names)

    def alike(self, name: str, given: Any) -> bool:
        """Checks whether a tensor has the shape of the one of that name; for a head, except the number of classes."""
        shape, own = tuple(getattr(given, "shape", ())), tuple(self.own[name].shape)
        if name in self.heads:
            return bool(shape) and len(shape) == len(own) and shape[1:] == own[1:]
        return shape == own


def matched(wanted: ExpectedState, state: Mapping[str, Any], what: str, by_order: bool = False) -> MatchedState:
    """A state dict under a network's own names; those that fit best if none do.

    Args:
        wanted: The state that the network needs.
        state: The saved state.
        what: The file, for messages.
        by_order: True if the order of the tensors decides if no rule does and only their shapes agree.

    Raises:
        WeightsError: If the network is there several times under different prefixes.
    """
    named = under_own_names(wanted.own, state, what)
    plain = MatchedState(named.state, named.beside)
    if wanted.fits(plain.state):
        return plain
    for attempt in _attempts(wanted, state, plain, by_order):
        if wanted.fits(attempt.state):
            return attempt
    return plain


def _attempts(
    wanted: ExpectedState, state: Mapping[str, Any], plain: MatchedState, by_order: bool
) -> Iterator[MatchedState]:
    head = _with_head(wanted, plain, state)
    if head is not None:
        yield head
    if wanted.rename is not None:
        yield from _by_authors(wanted, state)
    tensors = {name: value for name, value in state.items() if hasattr(value, "shape")}
    if agrees_in_order(wanted, tensors) and (by_order or _is_certain(wanted, tensors)):
        yield _in_order(wanted, tensors, by_order)


# The head under another name --------------------------------------------------------------------------------------


def _with_head(wanted: ExpectedState, plain: MatchedState, state: Mapping[str, Any]) -> MatchedState | None:
    """The network with the one layer that is left over as its head, such as ``head.fc`` beside ``backbone.*``."""
    lacking = [name for name in wanted.heads if name not in plain.state]
    stems = {name.rpartition(".")[0] for name in wanted.heads}
    if len(stems) != 1 or lacking != list(wanted.heads):
        return None
    stem = stems.pop()
    left = [*plain.beside, *(name for name in plain.state if name not in wanted.own)]
    leaves = {name.rpartition(".")[2]: name for name in wanted.heads}
    heads = []
    for other in dict.fromkeys(name.rpartition(".")[0] for name in left):
        layer = {leaf: f"{other}.{leaf}" if other else leaf for leaf in leaves}
        if all(name in state and wanted.alike(leaves[leaf], state[name]) for leaf, name in layer.items()):
            heads.append(layer)
    if len(heads) != 1:
        return None
    taken = set(heads[0].values())
    body = {name: value for name, value in plain.state.items() if name not in taken}
    made = _like(plain.state, {**body, **{leaves[leaf]: state[name] for leaf, name in heads[0].items()}})
    other = next(iter(heads[0].values())).rpartition(".")[0]
    return MatchedState(made, tuple(name for name in plain.beside if name not in taken), (f"head {stem} from {other}",))


# Names of the architecture's authors ------------------------------------------------------------------------------


def _by_authors(wanted: ExpectedState, state: Mapping[str, Any]) -> Iterator[MatchedState]:
    """Renames an architecture's tensors from its authors' names, with or without a prefix, as timm does."""
    assert wanted.rename is not None
    for prefix in _wrappers(state):
        inner = {name.removeprefix(prefix): value for name, value in state.items()}
        try:
            made = wanted.rename(inner)
        except Exception:
            continue
        if made and wanted.fits(made) and _is_whole(made, state):
            yield MatchedState(OrderedDict(made), (), ("names of the architecture's authors, renamed by timm",))
            return
        plain = MatchedState(OrderedDict(made or {}))
        head = _with_head(wanted, plain, plain.state)
        if head is not None and _is_whole(head.state, state):
            said = ("names of the architecture's authors, renamed by timm", *head.said)
            yield MatchedState(head.state, head.beside, said)


def _wrappers(state: Mapping[str, Any]) -> list[str]:
    """Returns possible prefixes of foreign names: none, or the first part of most of them, with the next ones."""
    prefixes, prefix = [""], ""
    while len(prefixes) <= 4:
        inner = [name.removeprefix(prefix) for name in state if name.startswith(prefix)]
        first, count = Counter(name.partition(".")[0] for name in inner).most_common(1)[0]
        if count * 2 < len(inner) or first.isdigit() or not any(name.startswith(f"{first}.") for name in inner):
            break
        prefix += f"{first}."
        prefixes.append(prefix)
    return prefixes


def _is_whole(made: Mapping[str, Any], state: Mapping[str, Any]) -> bool:
    """Checks whether renaming took tensors as they are: none was resampled to another size, or made up."""
    before = Counter(value.numel() for value in state.values() if hasattr(value, "numel"))
    return not Counter(value.numel() for name, value in made.items() if not name.endswith(COUNTED)) - before


# Names without a rule ---------------------------------------------------------------------------------------------


def agrees_in_order(wanted: ExpectedState, tensors: Mapping[str, Any]) -> bool:
    """Checks whether a file has as many tensors as the network, of the same shapes in the same order."""
    own, names = counted(wanted.own), counted(tensors)
    return len(own) == len(names) and all(
        wanted.alike(name, tensors[other]) for name, other in zip(own, names, strict=True)
    )


def _is_certain(wanted: ExpectedState, tensors: Mapping[str, Any]) -> bool:
    """Checks whether only this order is possible: kinds of tensors and their layers agree one by one.

    Where layers of one shape follow each other, as query, key and value do, their names have to be equal or numbered.
    """
    pairs = list(zip(counted(wanted.own), counted(tensors), strict=True))
    if any(_leaf(own) != _leaf(other) for own, other in pairs):
        return False
    layers = [(key, list(group)) for key, group in groupby(pairs, lambda pair: tuple(map(_layer, pair)))]
    if len({own for (own, _), _ in layers}) != len(layers) or len({other for (_, other), _ in layers}) != len(layers):
        return False
    kinds = [[(_leaf(own), tuple(wanted.own[own].shape)) for own, _ in group] for _, group in layers]
    return all(
        kind != following or _same_order(first, second)
        for kind, following, (first, _), (second, _) in zip(kinds, kinds[1:], layers, layers[1:], strict=False)
    )


def _same_order(first: tuple[str, str], second: tuple[str, str]) -> bool:
    """Checks whether two neighbouring layers are named alike in both, or numbered in both."""
    if all(_leaf(own) == _leaf(other) for own, other in (first, second)):
        return True
    numbers = [(_NUMBER.search(before), _NUMBER.search(after)) for before, after in zip(first, second, strict=True)]
    return all(before and after and int(before[1]) < int(after[1]) for before, after in numbers)


def _in_order(wanted: ExpectedState, tensors: Mapping[str, Any], asked: bool) -> MatchedState:
    pairs = list(zip(counted(wanted.own), counted(tensors), strict=True))
    certain = _is_certain(wanted, tensors)
    why = "shapes and kinds agree one by one" if certain else f"only their shapes agree, as {OPTION} allows"
    first = next((f"{other} is {own}" for own, other in pairs if own != other), "")
    said = f"{len(pairs)} tensors matched by order, {first}: {why}"
    return MatchedState(OrderedDict((own, tensors[other]) for own, other in pairs), (), (said,))


def is_by_option(found: MatchedState) -> bool:
    """Checks whether only `OPTION` let a file be matched."""
    return any(OPTION in line for line in found.said)


def _leaf(name: str) -> str:
    return name.rpartition(".")[2]


def _layer(name: str) -> str:
    return name.rpartition(".")[0]


def _like(state: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    made: Any = OrderedDict(content)
    if hasattr(state, "_metadata"):
        made._metadata = state._metadata
    return made  # type: ignore[no-any-return]
