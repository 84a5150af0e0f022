"""Classification: logits from a classifier, or zero-shot from a dual encoder; with the same outputs and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.data.perturbation import parameters
from testbed.entities import Metric, Score
from testbed.errors import DataError, UnsupportedError
from testbed.eval_settings.base.metric import as_metrics, checked
from testbed.graph.nodes import IMAGES, Built, Op, Steps
from testbed.graph.ops import image_spec
from testbed.metrics.scorers.classification import SCORER, score_classes
from testbed.models.base.capability import EMBED_IMAGE, EMBED_TEXT, GRADIENTS, LOGITS
from testbed.models.base.class_order import folders_of
from testbed.models.base.class_reading import class_columns, known_outputs, reading, unknown_outputs
from testbed.models.made.derived import DerivedModel
from testbed.tasks.image_embedding import FEATURES
from testbed.tasks.parts import derived, zero_shot
from testbed.tasks.parts.head_files import SavedHead, head_digests, head_files
from testbed.tasks.parts.logits import viewed_logits
from testbed.tasks.parts.zero_shot import ZeroShotHead
from testbed.tasks.task_base import Task, require

if TYPE_CHECKING:
    import numpy as np
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.base.runtime import LoadedClassifier, LoadedDualEncoder
    from testbed.models.model_base import ModelDefinition

OWN_SCORER = "metrics_fn"

BY_LOGITS = "logits"
BY_ZERO_SHOT = "zero-shot"
HEAD = "head"  # the role of a zero-shot head


@dataclass(frozen=True)
class Logits(Op):
    """Logits [C] of a classifier, or of a dual encoder with a zero-shot head, by its route."""

    route: str
    kind = "logits"

    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """The pixels, an attack, and the prompts."""
        spec: dict[str, Any] = {"task": setting.task, "route": self.route, **image_spec(setting, seed)}
        if model.classify is not None:
            spec["classify_seed"] = seed
        if setting.adversarial_attack is not None:
            spec["attack"] = setting.adversarial_attack
        if setting.class_sublist is not None and (setting.perturbation.needs_model or self.restricts(model, setting)):
            spec["class_sublist"] = setting.class_sublist
        if (columns := class_columns(model, setting, class_names)) is not None:
            spec["class_columns"] = columns
        if setting.full_targets and (setting.perturbation.attacks or setting.perturbation.needs_targets):
            spec["full_targets"] = True
        if self.route == BY_ZERO_SHOT:
            heads = head_digests()
            spec["prompts"] = {"heads": heads} if heads else setting.prompts.spec(class_names)
            spec["zero_shot_revision"] = zero_shot.REVISION
            if (language := model.text_language(setting.language)) is not None:
                spec["language"] = language
        return spec

    def restricts(self, model: ModelDefinition, setting: EvalSetting) -> bool:
        """Returns whether the model's ``classify`` restricts the logits itself."""
        return setting.class_sublist is not None and model.handles_class_sublist

    def steps(
        self,
        loaded: Any,
        setting: EvalSetting,
        ones: Mapping[str, torch.Tensor],
        class_names: Sequence[str] | None = None,
    ) -> Steps:
        """The classifier, or the image encoder and the head."""
        if self.route == BY_ZERO_SHOT:
            return _head_steps(loaded, setting, ones)
        return _classifier_steps(loaded.in_order(class_columns(loaded.definition, setting, class_names)), setting)


def _classifier_steps(loaded: LoadedClassifier, setting: EvalSetting) -> Steps:
    """All logits are stored; scoring restricts them to the setting's classes."""
    own = loaded.definition.handles_class_sublist and setting.class_sublist is not None
    handled = setting.adversarial_attack if loaded.definition.handles_attack else None
    full = loaded.classifier(setting.class_sublist if own else None, handled)
    key = f"logits/{setting.name}" if own or handled or loaded.columns is not None else "logits"
    return Steps(
        key,
        outputs=lambda logits: logits,
        features=full,
        attacked=lambda: loaded.classifier(setting.class_sublist, setting.adversarial_attack),
    )


def _head_steps(loaded: LoadedDualEncoder, setting: EvalSetting, ones: Mapping[str, torch.Tensor]) -> Steps:
    """Cells that differ only in their prompts share the image embeddings."""
    from testbed.models.base.runtime import ZeroShotClassifier

    head = ones[HEAD].to(loaded.options.device)
    return Steps(
        FEATURES,
        outputs=ZeroShotClassifier(loaded, head).from_embeddings,
        features=loaded.embed_image,
        attacked=lambda: ZeroShotClassifier(loaded, head, setting.class_sublist),
    )


class Classification(Task):
    """Assigns images to one of C classes."""

    name = "classification"
    scorer = SCORER

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"logits"`` for a classifier, ``"zero-shot"`` for a dual encoder given templates, or ``"derived"``."""
        if isinstance(model, DerivedModel):
            return derived.route(model, setting, self.route)
        if LOGITS in model.capabilities:
            _check_classes(model, setting)
            route = BY_LOGITS
        elif {EMBED_IMAGE, EMBED_TEXT} <= model.capabilities:
            if setting.prompts.templates is None and not head_files():
                raise UnsupportedError(
                    f"{setting.name} has no prompt templates; {model.name} needs them for zero-shot classification"
                )
            route = BY_ZERO_SHOT
        else:
            have = ", ".join(sorted(model.capabilities)) or "none of them"
            raise UnsupportedError(
                f"{setting.name} needs logits, or embed_image and embed_text; {model.name} has {have}"
            )
        if setting.adversarial_attack is not None and not model.handles_attack:
            require(model, {GRADIENTS}, setting)
        return route

    def build(self, graph: Graph) -> Built:
        """The logits; of a dual encoder on a setting that keeps embeddings, computed from these."""
        if isinstance(graph.model, DerivedModel):
            return Built(derived.rows(graph.model, graph.setting))
        route = self.route(graph.model, graph.setting)
        if route == BY_LOGITS:
            return Built(graph.rows(Logits(route)))
        setting = graph.setting
        stored = setting.keep_embeddings and not setting.perturbation.attacks
        inputs = {IMAGES: graph.image_embeddings()} if stored else {}
        return Built(graph.rows(Logits(route), inputs, {HEAD: SavedHead() if head_files() else ZeroShotHead()}))

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The evaluated classes, their groups, and the metric."""
        metric = {"own": setting.metrics_fn} if setting.metrics_fn is not None else {"scorer": self.scorer}
        spec = {"class_sublist": setting.class_sublist, "metric": metric}
        groups = setting.grouping
        return spec if groups is None else {**spec, "class_groups": groups}

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Accuracies, calibration and proper scores, or what the setting's own ``metrics_fn`` returns."""
        _check_width(values, setting)
        sublist = setting.class_sublist if values.among is None else values.among
        logits = viewed_logits(values.outputs, sublist, setting.grouping, values.restricted, setting.name)
        if setting.metrics_fn is not None:
            return _own_metrics(logits, values, setting, model)
        return score_classes(logits, values.samples, values.class_names, setting.name)


task = Classification()


def _check_classes(model: ModelDefinition, setting: EvalSetting) -> None:
    wanted, given = setting.num_classes, model.num_classes
    if wanted is None or given is None or wanted == given or setting.metrics_fn is not None:
        return
    if _read_early(model, setting):
        return
    raise UnsupportedError(unknown_outputs(model, setting, wanted))


def _check_width(values: Values, setting: EvalSetting) -> None:
    """Checks the number of logits of a model that did not say it, against the number of a setting's classes.

    Raises:
        DataError: If they differ, so that nothing says which class a logit is.
    """
    chosen = (values.among, setting.class_sublist, setting.class_groups, setting.metrics_fn)
    counted = getattr(setting.dataset, "named_when_opened", False)  # then the store knows the names without the data
    wanted = len(values.class_names or ()) or None if counted else setting.num_classes
    given = values.outputs.shape[1]
    if wanted is not None and wanted != given and all(each is None for each in chosen):
        raise DataError(
            f"{setting.name} has {wanted:,} classes, but the model returned {given:,} logits; define it with"
            f" num_classes={given}, so that the classes are matched by name, or use a model of these classes"
        )


def _read_early(model: ModelDefinition, setting: EvalSetting) -> bool:
    """Checks whether the names of a setting's classes, known without its data, are outputs of a classifier.

    Raises:
        UnsupportedError: If some are and others are not.
    """
    names, later = setting.names_if_known(), getattr(setting.dataset, "named_when_opened", False)
    if known_outputs(model) is not None and (later or (names is None and not _lists_folders(setting))):
        return True
    return reading(model, setting, names) is not None


def _lists_folders(setting: EvalSetting) -> bool:
    """Checks whether the folders of a setting's classes can be listed; else opening the data gives the reason."""
    try:
        folders_of(setting)
    except DataError:
        return False
    return True


def with_wrong_rows(
    logits: np.ndarray[Any, Any], targets: Sequence[Any], unreadable: Sequence[int]
) -> np.ndarray[Any, Any]:
    """A copy of the logits in which unreadable samples are wrong for any metric that ranks classes.

    Their NaN rows become 0, with −inf at the target, because a custom metric may treat NaN as the maximum.
    """
    import numpy as np

    copy = np.array(logits)
    for position in unreadable:
        copy[position] = 0
        for target in targets[position] if isinstance(targets[position], list) else [targets[position]]:
            if isinstance(target, int) and 0 <= target < copy.shape[1]:
                copy[position, target] = -np.inf
    return copy


def _own_metrics(
    logits: np.ndarray[Any, Any], values: Values, setting: EvalSetting, model: ModelDefinition | None
) -> tuple[list[Score], list[Metric]]:
    """The result of the setting's ``metrics_fn``, called with torch tensors as in ImageNet-testbed."""
    import numpy as np
    import torch

    function = setting.metrics_fn
    assert function is not None
    targets = [sample.target for sample in values.samples]
    offered = {
        "logits": torch.from_numpy(with_wrong_rows(logits, targets, values.unreadable)),
        "targets": torch.tensor(targets) if all(isinstance(target, int | float) for target in targets) else targets,
        "image_paths": np.array([sample.id for sample in values.samples]),
        "slices": [sample.slices or {} for sample in values.samples],
        "class_names": values.class_names,
        "unreadable": np.isin(np.arange(len(targets)), values.unreadable),
        "py_model": model,
    }
    returned = function(**{name: offered[name] for name in parameters(function) if name in offered})
    listed = returned if isinstance(returned, list | tuple) else []
    scores = [checked(each, setting.name) for each in listed if isinstance(each, Score)]
    if scores:
        returned = [each for each in returned if not isinstance(each, Score)]
    return scores, as_metrics(returned, len(targets), OWN_SCORER, setting.name)
