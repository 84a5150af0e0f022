"""A colour and a symbol for each model of a store, the same in all figures and on all pages.

Up to eight models have a colour each. Beyond that, each of the largest families has one, and the others share
grey. Symbols show the kind of a model; if all models are of one kind, symbols distinguish the models of a family. The
colours are Okabe and Ito's (2008).
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
IMAGENET_ONLY = ("ImageNet-1k",)  # training data according to the model's name


def model_marks(models: Mapping[str, str | None]) -> dict[str, Mark]:
    """Returns the mark of each model.

    Args:
        models: All models of a store → their declared types; figures of a subset use the marks of the whole.
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
    """The declared type, else the training data named in the model's name."""
    if model_type:
        return model_type
    known = trained_on(model)
    return (ONLY_IMAGENET if known == IMAGENET_ONLY else MORE_DATA) if known else NOT_STATED


def family_of(model: str) -> str:
    """The family of an architecture, from the model's name: ``resnet``, ``vit``, ``convnextv2`` and so on.

    Words of one or two letters, such as ``tf_``, say where its weights are from.
    """
    words = _words(model)
    return next((word for word in words if len(word) > 2), words[0] if words else NOT_STATED)


def _words(model: str) -> list[str]:
    bare = model.partition(",")[0].rpartition("/")[2].lower()
    return re.findall(r"[a-z]+v\d+|[a-z]+", bare) if re.match(r"[a-z]", bare) else []


def _groups(names: list[str]) -> dict[str, str]:
    """The groups that get colours: each of a few models, else each family; for a single family, by the second word."""
    if len(names) <= len(COLOURS):
        return {name: name for name in names}
    families = {name: family_of(name) for name in names}
    if len(set(families.values())) > 1:
        return families
    return {name: "-".join(_words(name)[:2]) or NOT_STATED for name in names}


def _kind_symbols(kinds: set[str]) -> dict[str, str]:
    """Each kind's symbol, in the order of a legend; unforeseen kinds take the remaining symbols."""
    taken = {TYPES[kind][1] for kind in kinds if kind in TYPES}
    left = [symbol for symbol in SYMBOLS if symbol not in taken] or list(SYMBOLS)
    others = [kind for kind in sorted(kinds, key=type_order) if kind not in TYPES]
    own = {kind: left[place % len(left)] for place, kind in enumerate(others)}
    return {kind: own[kind] if kind in own else TYPES[kind][1] for kind in sorted(kinds, key=type_order)}
