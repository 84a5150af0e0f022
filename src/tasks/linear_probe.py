"""Linear probing: a linear classifier of image embeddings, fitted on another split and scored like any classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, DefinitionError
from testbed.identity import digest
from testbed.models.capability_base import EMBED_IMAGE
from testbed.tasks import image_embedding
from testbed.tasks.classification import Classification
from testbed.tasks.probe_spec import ProbeSpec
from testbed.tasks.task_base import IMAGES, BoundCell, EmbeddedImages, PrepareContext, require

if TYPE_CHECKING:
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition
    from testbed.tasks.probe_fit import Probe

TRAIN, VALIDATION = "train", "validation"


class LinearProbe(Classification):
    """Maps embeddings to logits by a linear layer fitted on the embeddings of a training split."""

    name = "linear_probe"

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embeddings"``, for all models that embed images."""
        require(model, {EMBED_IMAGE}, setting)
        image_embedding.task.route(model, setting)
        if TRAIN not in setting.task_options:
            raise DefinitionError(f"{setting.name}: task_options['train'] must name the setting to fit the probe on")
        probe_spec(setting)
        return "embeddings"

    def image_settings(self, model: ModelDefinition, setting: EvalSetting) -> dict[str, str]:
        """Its own images, the training images, and those of the validation split."""
        roles = {IMAGES: setting.name, TRAIN: setting.task_options[TRAIN]}
        if setting.task_options.get(VALIDATION):
            roles[VALIDATION] = setting.task_options[VALIDATION]
        return roles

    def forward_spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """What determines the embeddings of its own images, and how the probe is fitted."""
        spec = image_embedding.task.forward_spec(model, setting, class_names, seed)
        return {**spec, "task": self.name, "probe": probe_spec(setting).spec()}

    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """Fits the probe, unless it is fitted already."""
        return ProbeCell(prepared_probe(setting, context, loaded.options.device))


task = LinearProbe()


class ProbeCell(BoundCell):
    """A probe on embeddings."""

    feature_key = "image-embeddings"

    def __init__(self, probe: Probe) -> None:
        self.probe = probe

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Never called: embeddings come from the store."""
        raise NotImplementedError

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """The probe's logits."""
        from testbed.tasks.probe_fit import probe_logits

        return probe_logits(features, self.probe)

    def attacked_model(self) -> Any:
        """Never called: attacks are not supported."""
        raise NotImplementedError


def probe_spec(setting: EvalSetting) -> ProbeSpec:
    """How a setting's probe is fitted.

    Raises:
        DefinitionError: If its fields are unknown or invalid.
    """
    try:
        return ProbeSpec(**setting.task_options.get("probe", {}))
    except TypeError as error:
        raise DefinitionError(f"{setting.name}: task_options['probe'] has fields of ProbeSpec: {error}") from None


def prepared_probe(setting: EvalSetting, context: PrepareContext, device: str) -> Probe:
    """The probe, fitted once for a model and its samples and then cached by its content."""
    import numpy as np
    import torch

    from testbed.tasks.probe_fit import Probe, fit_probe

    assert context.embedded is not None
    spec = probe_spec(setting)
    train = context.embedded(TRAIN)
    held = context.embedded(VALIDATION) if setting.task_options.get(VALIDATION) else None
    classes = _num_classes(setting, context, train)
    parts = [_content(each) for each in (train, held) if each is not None]
    fingerprint = digest(["linear-probe", spec.spec(), context.model_identity, classes, *parts])
    found = context.get(fingerprint)
    if found is None:
        probe = fit_probe(
            torch.from_numpy(train.values),
            [sample.target for sample in train.samples],
            classes,
            spec,
            None if held is None else (torch.from_numpy(held.values), [sample.target for sample in held.samples]),
            device,
        )
        both = torch.cat([probe.weight, probe.bias[None]])
        about = {"probe": spec.spec(), "weight_decay": probe.weight_decay, **probe.info}
        context.put(fingerprint, "linear-probe", both, about)
        found = context.get(fingerprint)
        if found is None:
            return probe
    table = torch.from_numpy(np.array(found))
    return Probe(table[:-1], table[-1], weight_decay=None, normalize=spec.normalize)


def _content(images: EmbeddedImages) -> list[list[Any]]:
    return [[sample.digest, sample.target] for sample in images.samples]


def _num_classes(setting: EvalSetting, context: PrepareContext, train: EmbeddedImages) -> int:
    """The number of logits of the probe: one per class name, else one per class up to the last that occurs."""
    known = setting.num_classes or (len(context.class_names) if context.class_names else None)
    if known is not None:
        return known
    targets = [sample.target for sample in (*train.samples, *context.samples)]
    if not all(type(target) is int for target in targets):
        raise DataError(f"{setting.name}: a linear probe needs one class index for each sample")
    return max(int(target) for target in targets) + 1
