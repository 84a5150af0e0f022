"""Linear probing: a linear classifier of image embeddings, fitted on another split and scored like any classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from testbed.entities import targets_of
from testbed.errors import DataError
from testbed.graph.nodes import IMAGES, Artifact, Built, Given, Op, Reads, Steps
from testbed.graph.ops import image_spec
from testbed.identity.describe import digest
from testbed.models.base.capability import EMBED_IMAGE
from testbed.models.made.derived import DerivedModel
from testbed.tasks import image_embedding
from testbed.tasks.classification import Classification
from testbed.tasks.image_embedding import FEATURES
from testbed.tasks.parts import derived
from testbed.tasks.probe.spec import ProbeSpec
from testbed.tasks.task_base import options_of, require

if TYPE_CHECKING:
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.models.model_base import ModelDefinition
    from testbed.tasks.probe.fit import Probe

TRAIN, VALIDATION = "train", "validation"
PROBE = "probe"


class ProbeLogits(Op):
    """Logits [C] of a probe."""

    kind = "logits"
    reads = Reads.ROWS

    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """The pixels, and how the probe is fitted."""
        probe = probe_spec(setting).spec(_declared_classes(setting, class_names))
        return {"task": setting.task, **image_spec(setting, seed), "probe": probe}

    def steps(
        self,
        loaded: Any,
        setting: EvalSetting,
        ones: Mapping[str, torch.Tensor],
        class_names: Sequence[str] | None = None,
    ) -> Steps:
        """The probe, on stored embeddings."""
        from testbed.tasks.probe.fit import probe_logits

        probe = _probe_of(ones[PROBE], probe_spec(setting))
        return Steps(FEATURES, lambda features: probe_logits(features, probe))


@dataclass(frozen=True)
class FittedProbe(Artifact):
    """A probe, chosen with a validation split or not, as one table, float32 [D + 1, C]: weights above bias."""

    validation: bool
    kind = "linear-probe"

    def fingerprint(self, given: Given, definition: ModelDefinition) -> str:
        """The model, how the probe is fitted, and the samples that it is fitted to."""
        classes = _num_classes(given, self._roles)
        spec = probe_spec(given.setting).spec(classes)
        parts = [[[sample.digest, sample.target] for sample in given.samples(role)] for role in self._roles]
        return digest(["linear-probe", spec, given.model_identity, classes, *parts])

    def make(self, loaded: Any, given: Given) -> tuple[torch.Tensor, dict[str, Any]]:
        """Fits the probe."""
        import torch

        from testbed.tasks.probe.fit import fit_probe

        spec, classes = probe_spec(given.setting), _num_classes(given, self._roles)
        parts = []
        for role in self._roles:
            rows = given.rows(role)
            parts.append((torch.from_numpy(rows.values), [sample.target for sample in rows.samples]))
        others = parts[1] if self.validation else None
        probe = fit_probe(*parts[0], classes, spec, others, loaded.options.device)
        about = {"probe": spec.spec(classes), "weight_decay": probe.weight_decay, **probe.info}
        return torch.cat([probe.weight, probe.bias[None]]), about

    @property
    def _roles(self) -> list[str]:
        return [TRAIN, VALIDATION] if self.validation else [TRAIN]


@dataclass(frozen=True)
class LinearProbeOptions:
    """The task options of a linear probe.

    Attributes:
        train: The setting that the probe is fitted to.
        validation: The setting that its weight decay is chosen on.
        probe: How it is fitted.
    """

    train: str
    validation: str | None = None
    probe: ProbeSpec = field(default_factory=ProbeSpec)


class LinearProbe(Classification):
    """Maps embeddings to logits by a linear layer fitted on the embeddings of a training split."""

    name = "linear_probe"
    options = LinearProbeOptions

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embeddings"``, for all models that embed images, or ``"derived"``."""
        if isinstance(model, DerivedModel):
            return derived.route(model, setting, self.route)
        require(model, {EMBED_IMAGE}, setting)
        image_embedding.task.route(model, setting)
        return "embeddings"

    def build(self, graph: Graph) -> Built:
        """The logits, from the embeddings of its own images, the training images and those of the validation split."""
        if isinstance(graph.model, DerivedModel):
            return Built(derived.rows(graph.model, graph.setting))
        options = options_of(graph.setting, LinearProbeOptions)
        inputs = {IMAGES: graph.image_embeddings(), TRAIN: graph.image_embeddings(options.train)}
        if options.validation:
            inputs[VALIDATION] = graph.image_embeddings(options.validation)
        return Built(graph.rows(ProbeLogits(), inputs, {PROBE: FittedProbe(VALIDATION in inputs)}))


task = LinearProbe()


def probe_spec(setting: EvalSetting) -> ProbeSpec:
    """Returns how a setting's probe is fitted."""
    return options_of(setting, LinearProbeOptions).probe


def _probe_of(table: torch.Tensor, spec: ProbeSpec) -> Probe:
    from testbed.tasks.probe.fit import Probe

    return Probe(table[:-1], table[-1], weight_decay=None, normalize=spec.normalize)


def _declared_classes(setting: EvalSetting, class_names: Sequence[str] | None) -> int | None:
    """The number of classes, as far as the setting or the data set says it."""
    return setting.num_classes or (len(class_names) if class_names else None)


def _num_classes(given: Given, roles: Sequence[str]) -> int:
    """The number of logits of the probe: one per class name, else one per class up to the last that occurs.

    Classes that only the training samples have come after the names.
    """
    known = _declared_classes(given.setting, given.class_names)
    if known is not None and not given.class_names:
        return known
    if known is not None:
        return max(known, *(1 + max(map(int, targets_of(given.samples(role))), default=0) for role in roles))
    targets = [sample.target for sample in (*given.samples(TRAIN), *given.samples(IMAGES))]
    if not all(type(target) is int for target in targets):
        raise DataError(f"{given.setting.name}: a linear probe needs one class index for each sample")
    return max(int(target) for target in targets) + 1
