"""A colour and a symbol for each model of a store, the same in all figures and on all pages.

Up to eight models have a colour each. Of more, each of the largest families has one, and the others share grey. Symbols
say of what kind models are; where all are of one kind, they tell the models of a family apart. The colours are Okabe
and Ito's (2008).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from testbed.claims.names import trained_on
from testbed.plotting.style import MORE_DATA, ONLY_IMAGENET, TYPES, Mark, type_order
from testbed.registry.table import natural_key

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#000000")
GREY = "#777777"
SYMBOLS = (
    *("circle", "square", "diamond", "triangle-up", "triangle-down"),
    *("cross", "x", "star", "pentagon", "hexagon"),
)
OTHERS = "other families"
NOT_STATED = "not stated"
IMAGENET_ONLY = ("ImageNet-1k",)  # all that a model has seen, as its name says


def model_marks(models: Mapping[str, str | None]) -> dict[str, Mark]:
    """The mark of each model.

    Args:
        models: All models of a store → the type that is stated; figures of some of them have the marks of all.
    """
    names = sorted(models, key=natural_key)
    kinds = {name: kind_of(name, models[name]) for name in names}
    symbols = _kind_symbols(set(kinds.values()))
    groups = _groups(names)
    sizes = Counter(groups.values())
    largest = sorted(sizes, key=lambda group: (-sizes[group], natural_key(group)))[: len(COLOURS)]
    colours = dict(zip(largest, COLOURS, strict=False))
    found: dict[str, Mark] = {}
    before: Counter[str] = Counter()
    for name in names:
        group, kind = groups[name], kinds[name]
        symbol = symbols[kind] if len(symbols) > 1 else SYMBOLS[before[group] % len(SYMBOLS)]
        before[group] += 1
        found[name] = Mark(group if group in colours else OTHERS, colours.get(group, GREY), kind, symbol)
    return found


def kind_of(model: str, model_type: str | None) -> str:
    """The type that is stated; where none is, what the model's name says of its training data."""
    if model_type:
        return model_type
    known = trained_on(model)
    return (ONLY_IMAGENET if known == IMAGENET_ONLY else MORE_DATA) if known else NOT_STATED


def family_of(model: str) -> str:
    """The family of an architecture, from the model's name: ``resnet``, ``vit``, ``convnext`` and so on."""
    return next(iter(_words(model)), NOT_STATED)


def _words(model: str) -> list[str]:
    bare = model.partition(",")[0].rpartition("/")[2].lower()
    return re.findall(r"[a-z]+", bare) if re.match(r"[a-z]", bare) else []


def _groups(names: list[str]) -> dict[str, str]:
    """What has a colour: each of a few models, else each family; of a single family, by the second word."""
    if len(names) <= len(COLOURS):
        return {name: name for name in names}
    families = {name: family_of(name) for name in names}
    if len(set(families.values())) > 1:
        return families
    return {name: "-".join(_words(name)[:2]) or NOT_STATED for name in names}


def _kind_symbols(kinds: set[str]) -> dict[str, str]:
    """Each kind's symbol, in the order of a legend; kinds that nobody foresaw take the symbols that are left."""
    taken = {TYPES[kind][1] for kind in kinds if kind in TYPES}
    left = [symbol for symbol in SYMBOLS if symbol not in taken] or list(SYMBOLS)
    others = [kind for kind in sorted(kinds, key=type_order) if kind not in TYPES]
    own = {kind: left[place % len(left)] for place, kind in enumerate(others)}
    return {kind: own[kind] if kind in own else TYPES[kind][1] for kind in sorted(kinds, key=type_order)}
