"""Variants as separate models and settings, which are evaluated, stored and compared like any other."""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError
from testbed.eval_settings.base.parts import Prompts
from testbed.extensions.explain.asking.asked import ANSWERED, JUDGE, asking
from testbed.extensions.explain.axis import MARK, Axis, NotApplicableError, Stage, Variant, asked_axes, axes, in_order
from testbed.extensions.explain.images import change_activation
from testbed.extensions.explain.pixels import Geometry, OtherNormalization, Pixels, pixels_of, render
from testbed.extensions.explain.texts import NORMALIZED, PROMPT_FILE, Texts, texts_of
from testbed.inputs import active
from testbed.models.base.transform import LazyTransform, Transform
from testbed.models.loading.checkpoint_network import with_entry
from testbed.models.model_base import Model, StandardNormalization
from testbed.registry.own_files import own_path
from testbed.registry.references import JUDGED, SettingReference

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

# Not part of names.
SEARCH_ONLY = ("precision", "weights", "JPEG decoder", "JPEG compression", "test-time augmentation")
LOADERS = ("classifier_loader", "encoder_loader")


def slug(text: str) -> str:
    """A name as a part of another: lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def command_for(model: str, setting: str, variants: Sequence[Variant]) -> str | None:
    """The command that evaluates a cell under variants; None if only the search supports them."""
    options: list[str] = []
    for variant in variants:
        part = f"{MARK}{slug(variant.axis)}={slug(variant.name)}"
        if variant.axis == "precision":
            options += ["--dtype", variant.name]
        elif variant.axis == "weights":
            if own_path(variant.name) is not None:
                return None  # its name does not include the options of the evaluation
            model = variant.name
        elif _in_model(variant):
            model += part
        elif _in_setting(variant):
            setting = _with_part(setting, variant, part)
            if variant.axis == PROMPT_FILE:
                options += ["--templates-file", str(active().templates)]
        else:
            return None
    return shlex.join(["testbed", "run", model, "--on", setting, *options])


def _with_part(setting: str, variant: Variant, part: str) -> str:
    """The name of a setting with a variant, inserted before the judge."""
    reference = SettingReference.parse(setting)
    if variant.axis == JUDGE:
        return str(replace(reference, judge=variant.name))
    if not reference.judge:
        return setting + part
    return ".".join([f"{reference.scored}{part}", *reference.words]) + JUDGED + reference.judge


def _in_model(variant: Variant | Axis) -> bool:
    name = variant.axis if isinstance(variant, Variant) else variant.name
    return variant.stage == Stage.IMAGES and name not in SEARCH_ONLY


def _in_setting(variant: Variant | Axis) -> bool:
    name = variant.axis if isinstance(variant, Variant) else variant.name
    texts = variant.stage == Stage.TEXTS and name not in ("averaging of prompts", "context length")
    return texts or variant.stage == Stage.ANSWERS


def _chosen(parts: Sequence[str], given: Sequence[Axis], cell: Any, name: str) -> tuple[Variant, ...]:
    """Parses the variants in a name, given in any order, and sorts them in the order of application.

    Raises:
        DefinitionError: If a part is unknown; the message lists the known ones. If two parts have the same axis.
    """
    by_slug = {slug(axis.name): axis for axis in given}
    found: list[Variant] = []
    for part in parts:
        axis_slug, _, wanted = part.partition("=")
        axis = by_slug.get(axis_slug)
        if axis is None:
            raise DefinitionError(f"{name!r}: {axis_slug!r} is not an axis; use one of {', '.join(sorted(by_slug))}")
        try:
            known = {slug(variant.name): variant for variant in axis.of(cell)}
        except NotApplicableError as error:
            raise DefinitionError(f"{name!r}: {error}") from error
        if wanted not in known:
            raise DefinitionError(f"{name!r}: {axis.name} is one of {', '.join(sorted(known))}; got {wanted!r}")
        if any(variant.axis == axis.name for variant in found):
            raise DefinitionError(f"{name!r} has two variants of {axis.name}; give one")
        found.append(known[wanted])
    return in_order(found)


# Models ---------------------------------------------------------------------------------------------------------------


class ProtocolTransform(LazyTransform):
    """Resizing and cropping by a `Geometry`, to a float tensor [3, H, W] in [0, 1]."""

    def __init__(self, geometry: Geometry) -> None:
        self.resize = list(geometry.resize)
        self.crop = list(geometry.crop)
        self.mode = geometry.mode
        self.interpolation = geometry.interpolation
        self.antialias = geometry.antialias

    def make(self) -> Transform:
        """Creates the transform."""
        (a, b), (c, d) = self.resize, self.crop
        return partial(render, geometry=Geometry((a, b), (c, d), self.mode, self.interpolation, self.antialias))


def changed_model(model: ModelDefinition, name: str, parts: Sequence[str]) -> ModelDefinition:
    """Returns a model with variants of its preprocessing or activation.

    Args:
        model: The model.
        name: The new name.
        parts: Variants as ``AXIS=VARIANT``.

    Raises:
        DefinitionError: If a part is not a variant for this model.
    """
    pixels = own = pixels_of(model)
    for variant in _chosen(parts, [axis for axis in axes() if _in_model(axis)], SimpleNamespace(model=model), name):
        pixels = variant.change(pixels)
    if pixels.entry and isinstance(model, Model):
        model = with_entry(model, name, pixels.entry)
    fields: dict[str, Any] = {}
    if pixels.geometry is not None and pixels.geometry != own.geometry:
        fields["transform"] = ProtocolTransform(pixels.geometry)
    if pixels.input != own.input:
        fields["normalization"] = _normalization(pixels)
    if pixels.activation:
        loader = next(text for text in LOADERS if hasattr(model, text))
        fields[loader] = partial(_with_activation, getattr(model, loader), pixels.activation, name)
        fields["architecture"] = {**(model.architecture or {}), "activation": pixels.activation}
    return model.under_name(name, **fields, published=())


def _normalization(pixels: Pixels) -> Any:
    if pixels.scale != 1:
        return OtherNormalization(pixels)
    mean, std = pixels.mean or (0.0,) * 3, pixels.std or (1.0,) * 3
    return StandardNormalization(mean, std, "BGR" if pixels.reversed else "RGB")


def _with_activation(load: Callable[[], Any], activation: str, name: str) -> Any:
    made = load()
    if not change_activation(made[0] if isinstance(made, tuple) else made, activation):
        raise DefinitionError(f"{name!r}: the network has no such activation")
    return made


# Settings -------------------------------------------------------------------------------------------------------------


def changed_setting(setting: EvalSetting, name: str, parts: Sequence[str]) -> EvalSetting:
    """Returns a zero-shot setting with other prompts or class names, or a setting with other ways of asking questions.

    Args:
        setting: The setting.
        name: The new name.
        parts: Variants as ``AXIS=VARIANT``.

    Raises:
        DefinitionError: If a part is not a variant for this setting, or it has no prompts.
    """
    if setting.task in ANSWERED:
        if setting.scoring is not None:
            raise DefinitionError(f"{name!r}: the changes come before the @ and the judge")
        chosen = _chosen(parts, asked_axes(), SimpleNamespace(setting=setting), name)
        return asking(setting, name, [variant.change for variant in chosen])
    other = copy.copy(setting)
    other.name = name
    made = _OtherPrompts(setting, name, tuple(parts))
    other.prompts = Prompts(name, made.names, made.templates)
    return other


class _OtherPrompts:
    """Prompts that are created on demand, since this may open the data set."""

    def __init__(self, setting: EvalSetting, name: str, parts: Sequence[str]) -> None:
        self._setting = setting
        self._name = name
        self._parts = parts

    def _texts(self) -> Texts:
        classes = self._setting.dataset.open().class_names
        prompts = self._setting.prompts.spec(classes)
        identity, dataset = {"forward": {"prompts": prompts}}, SimpleNamespace(class_names=classes)
        cell = SimpleNamespace(identity=identity, dataset=dataset, setting=self._setting)
        texts = texts_of(prompts)
        given = [axis for axis in axes() if _in_setting(axis)]
        for variant in _chosen(self._parts, given, cell, self._name):
            texts = variant.change(texts)
        assert texts.average == NORMALIZED
        return texts

    def names(self) -> list[str]:
        """A name for each class."""
        return list(self._texts().class_names)

    def templates(self) -> dict[str, list[str]]:
        """The prompts of each class."""
        texts = self._texts()
        return dict(zip(texts.class_names, texts.prompts(), strict=True))
