"""Names in published files: which are testbed's or the store's, and which mean the same published weights.

open_clip, timm and torchvision name the repository of the Hugging Face hub, or the URL, of their models' weights;
``same_weights.tsv`` adds what they leave out, such as the repositories that OpenAI made for transformers.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.errors import PluginError, TestbedError
from testbed.registry import registry
from testbed.registry.library_names import library_names, places_of_weights
from testbed.registry.own_files import own_path
from testbed.registry.training_data import training_data

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.entities import Claim, Kind

OPEN_CLIP = "open_clip_torch"
SAME = Path(__file__).parent / "same_weights.tsv"
PREFIXES = ("transformers/", "hf-hub:", "open_clip/")
# open_clip names one repository for two checkpoints that were published apart.
APART = {"ViT-B-16-plus-240,laion400m_e32"}
# Why a claim names no model or setting of testbed.
NO_MODEL = "testbed has no such model"
NO_SETTING = "testbed has no such eval setting"
_KINDS: Final[tuple[Kind, ...]] = ("model", "eval setting")
AT = "@"  # before the image size that a model was evaluated at


def weights(model: str) -> str:
    """The name that stands for all names of a model's weights: the model's own if it has no other."""
    name = at_own_size(model)
    return _groups()[0].get(name, name)


def names_of(model: str) -> list[str]:
    """All names of a model's weights known to testbed, without image sizes; the model's own name is one."""
    found = weights(model)
    return sorted({at_own_size(model), found, *_groups()[1].get(found, ())})


def at_own_size(model: str) -> str:
    """A model's name without the image size and the prefix of its loader."""
    for prefix in PREFIXES:
        model = model.removeprefix(prefix)
    name, at, size = model.rpartition(AT)
    return name if at and size.isdigit() else model


def trained_on(model: str) -> tuple[str, ...]:
    """The data sets named by the tag in a model's name, or in another name of its weights; empty if there is none."""
    return training_data(model) or next((found for name in names_of(model) if (found := training_data(name))), ())


@cache
def is_model(name: str) -> bool:
    """Checks whether testbed has a model of this name, at some image size. Files of one's own do not count."""
    bare = name.rpartition(AT)[0] if name.rpartition(AT)[2].isdigit() and AT in name else name
    architecture, comma, tag = bare.partition(",")
    if comma:
        return tag in library_names(OPEN_CLIP).get(architecture, ()) or _base_has(architecture, tag)
    registry.load()
    try:
        return registry.models.canonical(bare) is not None
    except TestbedError:  # no name that a model can have
        return False


@cache
def eval_setting(name: str) -> tuple[str, bool]:
    """The one spelling of a setting's name, and whether it is registered."""
    registry.load()
    try:
        found = registry.eval_settings.canonical(name)
    except TestbedError:  # no name that a setting can have
        found = None
    scored, at, _ = name.rpartition("@")
    if found is None and at:  # a judge that is defined elsewhere scores a setting that is here
        return name, eval_setting(scored)[1]
    return found or name, found is not None


def evaluated_names(store: Store) -> tuple[set[str], set[str]]:
    """The names of the models, and of the eval settings, that the store has evaluations of."""
    models, settings = ({each.name for each in store.names.all(kind) if each.evaluations} for kind in _KINDS)
    return models, settings


def short_names(store: Store, names: Iterable[str]) -> dict[str, str]:
    """Those of some names that are of models in files, ``timm/resnet18,/path/last.pth`` → the store's short names."""
    files = {name for name in names if own_path(name) is not None}
    if not files:  # all evaluations would be looked through
        return {}
    return {own_name.reference: own_name.name for own_name in store.names.own() if own_name.reference in files}


def mapped_now(store: Store, claims: Iterable[Claim]) -> list[Claim]:
    """Claims as they would be read today: a model or a setting that the store has evaluated since is known."""
    found = list(claims)
    short = short_names(store, (claim.model for claim in found))
    found = [replace(claim, model=short[claim.model]) if claim.model in short else claim for claim in found]
    if not any(claim.why in (NO_MODEL, NO_SETTING) for claim in found):
        return found
    models, settings = evaluated_names(store)
    return [replace(claim, why=_why_now(claim, models, settings)) for claim in found]


def _why_now(claim: Claim, models: Collection[str], settings: Collection[str]) -> str | None:
    if claim.why not in (NO_MODEL, NO_SETTING) or (claim.why == NO_MODEL and claim.model not in models):
        return claim.why
    known = claim.eval_setting in settings or eval_setting(claim.eval_setting)[1]
    return None if known else NO_SETTING


def _base_has(architecture: str, tag: str) -> bool:
    """Checks whether a tag belongs to an architecture that open_clip names without QuickGELU."""
    known = library_names(OPEN_CLIP)
    bare = architecture.removesuffix("-quickgelu")
    return architecture not in known and tag in known.get(bare, ())


@cache
def _groups() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Name → what stands for its weights, and that → all names."""
    key: dict[str, str] = {}
    for distribution in (OPEN_CLIP, "timm", "torchvision"):
        try:
            places = places_of_weights(distribution)
        except PluginError:  # a library that cannot be imported has no models here
            continue
        for place, several in places.items():
            alike = [place, *(name for name in several if name not in APART)]
            key |= dict.fromkeys(alike, next((key[each] for each in alike if each in key), place))
    for name, other in reviewed():
        key[name] = key.setdefault(other, other)
    names: dict[str, list[str]] = {}
    for name, found in key.items():
        if "://" not in name:
            names.setdefault(found, []).append(name)
    return key, names


def reviewed() -> Iterable[tuple[str, str]]:
    """The reviewed pairs of names of the same weights."""
    with SAME.open(encoding="utf-8", newline="") as file:
        return [(row["name"], row["same_as"]) for row in csv.DictReader(file, delimiter="\t")]
