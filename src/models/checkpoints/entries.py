"""The entries of a checkpoint that hold tensors of a network, and which of them is taken.

Training scripts save a network beside its average, its teacher, the state of an optimizer and their own counters, each
under names of their own. So entries are found by what they hold: a mapping of names to tensors, at any depth.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.errors import WeightsError
from testbed.models.base.fitting import counted, prefixes_of, renamed
from testbed.models.checkpoints.numpy_values import PlainArray

OPTION = "--weights-entry"
PLAIN = ("state_dict", "model_state_dict", "model")  # timm's order; after averaged weights
AVERAGED = ("state_dict_ema", "model_ema")  # timm's names, which come first among averaged weights
EARLIER = (*AVERAGED, *PLAIN, "ema")  # what earlier versions took, without a look at the architecture
DEEPEST = 6
SHOWN = 4
HALF = 0.5
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_OF_AVERAGES = frozenset({"ema", "swa", "avg", "average", "averaged", "averaging", "polyak"})
_OF_OPTIMIZERS = re.compile(r"optim|^(max_)?exp_(avg|inf)|momentum_buffer|^square_avg|^grads?$|gradient", re.IGNORECASE)


@dataclass(frozen=True)
class Entry:
    """A mapping of names to tensors in a file.

    Attributes:
        path: Its keys from the outermost on, with dots between them; empty for the file itself.
        state: Name → tensor; plain values may be among them.
        faults: The number of names or shapes that differ from the architecture's, its head aside; None if unknown.
    """

    path: str
    state: Mapping[str, Any]
    faults: int | None = None

    @property
    def of_optimizer(self) -> bool:
        """True if it belongs to an optimizer, whose moments have the names and shapes of the weights."""
        return any(_OF_OPTIMIZERS.search(part) for part in self.path.split("."))


@dataclass(frozen=True)
class FoundState:
    """A state dict in a file.

    Attributes:
        state: Name → tensor, with torch's ``_metadata`` if the file has any.
        entry: The entry of the file that holds it; empty for the file itself.
        others: Entries with other weights that are not taken.
        rule: The reason for this choice, for people.
        usual: True if earlier versions also took it, so that an identity need not name it.
    """

    state: dict[str, Any]
    entry: str = ""
    others: tuple[str, ...] = ()
    rule: str = ""
    usual: bool = True


def is_averaged(path: str) -> bool:
    """Checks whether the keys of an entry call its weights an average over training, such as ``ema.module``."""
    return any(word.lower() in _OF_AVERAGES for word in _WORDS.findall(path))


def entries_in(loaded: Any) -> list[Entry]:
    """Yields every mapping of names to tensors in a file's content, the outer ones first."""
    return list(_walk(loaded, (), DEEPEST))


def _walk(value: Any, keys: tuple[str, ...], deepest: int) -> Iterator[Entry]:
    if isinstance(value, Mapping):
        if is_state(value):
            yield Entry(".".join(keys), value)
        inner = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        inner = [(str(index), item) for index, item in enumerate(value)]
    else:
        return
    for key, item in inner if deepest else ():
        if isinstance(item, Mapping | list | tuple):
            yield from _walk(item, (*keys, key), deepest - 1)


def is_state(value: Any) -> bool:
    """Checks whether it is a mapping of names to tensors; other plain values may be among them."""
    import torch

    return (
        isinstance(value, Mapping)
        and all(isinstance(key, str) for key in value)
        and any(isinstance(item, torch.Tensor) for item in value.values())
    )


def found_in(
    loaded: Any, what: str, wanted: str = "", own: Mapping[str, Any] | None = None, heads: Sequence[str] = ()
) -> FoundState:
    """The state dict in what `open_checkpoint` returned: that of an entry, or the preferred one.

    Args:
        loaded: The content of the file; tensors need no content.
        what: The file, for messages.
        wanted: The path of an entry, such as ``ema.module``; empty for the preferred one.
        own: The network's state dict, if the architecture is known: only entries that fit it are then considered.
        heads: Those of its names whose shape the number of classes decides.

    Raises:
        WeightsError: If there is none, or several between which no rule decides.
    """
    if not isinstance(loaded, Mapping) and not (isinstance(loaded, list | tuple) and entries_in(loaded)):
        raise _none(what, f"it holds {_kind(loaded)}")
    entries = entries_in(loaded)
    weights = [entry for entry in entries if not entry.of_optimizer]
    holders = _holders(weights, own, heads)
    if wanted:
        return _wanted(entries, holders, what, wanted, loaded)
    if not weights:
        kept = f", and {_listed([entry.path for entry in entries])} are of an optimizer" if entries else ""
        held = f"it has the entries {', '.join(map(repr, list(loaded)[:6]))}{kept}" if loaded else "it is empty"
        if isinstance(loaded, Mapping) and any(isinstance(value, PlainArray) for value in loaded.values()):
            held += (
                "; its values are numpy arrays: save tensors, torch.save({name: torch.from_numpy(array) for name, array"
                " in ARRAYS.items()}, OTHER)"
            )
        raise _none(what, held)
    best = min(_faults(holder) for holder in holders)
    fitting = _distinct([holder for holder in holders if _faults(holder) == best])
    chosen, rule = _preferred(fitting, what)
    others = tuple(
        holder.path or "the file itself"
        for holder in holders
        if holder is not chosen and not _same_tensors(holder, chosen)
    )
    if others and not rule:
        rule = "it fits the architecture best"
    return FoundState(copied(chosen.state), chosen.path, others, rule, chosen.path == _earlier(loaded))


def _faults(entry: Entry) -> int:
    return entry.faults or 0


def _distinct(entries: list[Entry]) -> list[Entry]:
    """The entries without those whose tensors are another's: a module that two others share is saved twice."""
    kept: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.path.count(".")):
        if not any(_same_tensors(entry, other) for other in kept):
            kept.append(entry)
    return [entry for entry in entries if any(entry is one for one in kept)]


def _same_tensors(one: Entry, other: Entry) -> bool:
    """Checks whether the tensors of two entries lie at the same place in memory, whatever is in front of their names.

    Those without content have such places too.
    """
    return one is other or _places(one) == _places(other)


def _places(entry: Entry) -> list[tuple[Any, ...]]:
    return [
        (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape))
        for tensor in entry.state.values()
        if hasattr(tensor, "untyped_storage")
    ]


def _holders(entries: list[Entry], own: Mapping[str, Any] | None, heads: Sequence[str]) -> list[Entry]:
    """The entries that hold the network: those with most of its tensors, else those with many or a usual name."""
    holders = [held for entry in entries for held in _networks_in(entry, own, heads)] if own is not None else []
    if holders or not entries:
        return holders
    sizes = {id(entry): _size(entry) for entry in entries}
    most = max(sizes.values())
    known = (*AVERAGED, *PLAIN)
    return [entry for entry in entries if sizes[id(entry)] >= most * HALF or entry.path.rpartition(".")[2] in known]


def _size(entry: Entry) -> int:
    return sum(hasattr(item, "shape") for item in entry.state.values())


def _networks_in(entry: Entry, own: Mapping[str, Any], heads: Sequence[str]) -> Iterator[Entry]:
    """The networks in one mapping: one for each prefix of names under which most of the architecture's are found."""
    state = renamed(set(own), entry.state)
    names = [name for name in counted(own) if name not in heads]
    under: dict[str, int] = {}
    for prefix in sorted(prefixes_of(own, state)):
        same = sum(_alike(state.get(prefix + name), own[name]) for name in names)
        if same > len(names) * HALF:
            under[prefix] = same
    for prefix, same in under.items():
        inside = [name for name in counted(state) if name.startswith(prefix)]
        foreign = sum(name.removeprefix(prefix) not in own for name in inside) if prefix or len(under) == 1 else 0
        faults = len(names) - same + foreign
        if len(under) == 1:
            yield Entry(entry.path, entry.state, faults)
        else:
            yield Entry(_joined(entry.path, prefix.rstrip(".")), _below(entry.state, prefix, under), faults)


def _alike(given: Any, own: Any) -> bool:
    return given is not None and tuple(getattr(given, "shape", ())) == tuple(own.shape)


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _below(state: Mapping[str, Any], prefix: str, prefixes: Mapping[str, int]) -> Mapping[str, Any]:
    """The tensors below a prefix; for the empty one, those below none of the others."""
    others = tuple(prefix for prefix in prefixes if prefix)
    chosen: Any = OrderedDict(
        (name, value)
        for name, value in state.items()
        if (name.startswith(prefix) if prefix else not name.startswith(others))
    )
    if hasattr(state, "_metadata"):
        chosen._metadata = state._metadata
    return chosen  # type: ignore[no-any-return]


# The choice -------------------------------------------------------------------------------------------------------


def _preferred(entries: list[Entry], what: str) -> tuple[Entry, str]:
    """The entry that is taken among those that fit equally well, and by which rule."""
    if len(entries) == 1:
        return entries[0], ""
    averaged = [entry for entry in entries if is_averaged(entry.path)]
    for group, names in ((averaged, AVERAGED), (entries if not averaged else [], PLAIN)):
        ranked = sorted(group, key=lambda entry: _rank(entry.path, names))
        if len(group) == 1 or (len(group) > 1 and _rank(ranked[0].path, names) < _rank(ranked[1].path, names)):
            return ranked[0], "averaged" if averaged else "timm's order"
    raise WeightsError(
        f"{what} has several state dicts: {_listed([entry.path for entry in entries], len(entries))}, and no rule"
        f" decides which of them is meant; choose by {OPTION} NAME, or weights_entry= of checkpoint_model"
    )


def _rank(path: str, names: tuple[str, ...]) -> int:
    """The place of an entry in an order of names, by the first of its keys that is one of them."""
    return next((names.index(part) for part in path.split(".") if part in names), len(names))


def _earlier(loaded: Any) -> str | None:
    """The entry that earlier versions took: the first of some names at the top, the file itself, or its only one."""
    if not isinstance(loaded, Mapping):
        return None
    held = [key for key, value in loaded.items() if isinstance(key, str) and is_state(value)]
    known = next((key for key in EARLIER if key in held), None)
    if known is None and is_state(loaded):
        return ""
    return known if known is not None else held[0] if len(held) == 1 else None


def _wanted(entries: list[Entry], holders: list[Entry], what: str, wanted: str, loaded: Any) -> FoundState:
    """The entry that was asked for, by its path or by one that leads to no other."""
    known = {entry.path: entry for entry in [*entries, *holders]}
    paths = [path for path in known if path == wanted or path.startswith(f"{wanted}.")]
    paths = [path for path in paths if any(holder.path == path for holder in holders)] or paths
    paths = [wanted] if wanted in paths else paths
    if len(paths) > 1:
        raise WeightsError(f"{what}: {wanted!r} stands for several entries: {_listed(paths, 6)}; name one of them")
    if not paths:
        weights = [entry for entry in known.values() if not entry.of_optimizer]
        held = ", ".join(repr(holder.path or "the file itself") for holder in weights)
        raise _none(what, f"{wanted!r} is not one of its entries with weights ({held or 'none'})")
    chosen = known[paths[0]]
    if chosen.of_optimizer:
        raise _none(what, f"{chosen.path!r} belongs to an optimizer: its tensors are not weights")
    others = tuple(holder.path or "the file itself" for holder in holders if holder.path != chosen.path)
    usual = chosen.path == _earlier(loaded)
    return FoundState(copied(chosen.state), chosen.path, others, f"as {OPTION} says", usual)


def said_of(found: FoundState) -> str:
    """Describes which entry was taken, and by which rule, for people; empty if a file has only one."""
    instead = f", not {_listed(list(found.others), SHOWN, ' or ')}" if found.others else ""
    where = found.entry or "the file itself"
    if is_averaged(found.entry):
        why = f", {found.rule}" if found.rule.startswith("as ") else ""
        return f"averaged weights (EMA) from {where}{instead}{why}"
    return f"weights from {where}{instead} ({found.rule})" if found.others or found.rule.startswith("as ") else ""


def _listed(paths: list[str], most: int = SHOWN, last: str = ", ") -> str:
    shown = [path or "the file itself" for path in paths[:most]]
    words = shown if last != ", " else [repr(name) for name in shown]
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return f"{last.join(words)}{more}"


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state dict with the versions of its modules, which torch keeps in an attribute."""
    copy: Any = OrderedDict(state)
    if hasattr(state, "_metadata"):
        copy._metadata = OrderedDict(state._metadata)
    return copy  # type: ignore[no-any-return]


def _none(what: str, content: str) -> WeightsError:
    return WeightsError(f"{what} has no state dict (a mapping of names to tensors); {content}")


def _kind(loaded: Any) -> str:
    return "a tensor" if type(loaded).__name__ == "Tensor" else f"one value of type {type(loaded).__name__}"
