"""The outputs of derived models: computed from those that their members have stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.errors import DataError, UnsupportedError
from testbed.graph.build import Graph
from testbed.graph.nodes import FITTED, OWN, Given, OutputsOf, OutputsOp, Rows
from testbed.models.base.class_reading import seen_outputs
from testbed.models.made.derived import (
    MEAN_LOGITS,
    PRIOR_BY_EM,
    PRIOR_OF_LABELS,
    PRIOR_OF_SETTING,
    PROBABILITIES,
    RANKS,
    TEMPERATURE,
    DerivedModel,
)
from testbed.registry.references import PRESENT
from testbed.tasks.parts.logits import viewed_logits
from testbed.tasks.task_base import get_task

if TYPE_CHECKING:
    import numpy as np

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.nodes import Combine
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]
    Rule = Callable[[Sequence[Array]], Array]

PRIORS = (PRIOR_BY_EM, PRIOR_OF_LABELS, PRIOR_OF_SETTING)
TASKS = ("classification", "linear_probe")  # whose logits are those of one class of several


class DerivedLogits(OutputsOp):
    """Logits [C] of a derived model, of the classes that the setting evaluates, in float64."""

    kind = "logits"

    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """The evaluated classes; the rule is in the model's identity, and the inputs in the graph's."""
        assert isinstance(model, DerivedModel)
        seen = [seen_outputs(member, setting, class_names) for member in model.members]
        read = {"outputs_read": seen} if any(each is not None for each in seen) else {}
        return {"task": "derived", "class_sublist": setting.class_sublist, **read}

    def restricts(self, model: ModelDefinition, setting: EvalSetting) -> bool:
        """Always, where the setting has a list of classes."""
        return setting.class_sublist is not None

    def prepare(self, model: ModelDefinition, given: Given) -> tuple[Combine, str]:
        """See `OutputsOp.prepare`."""
        assert isinstance(model, DerivedModel)
        correct, said = _fitted(model, given)

        def combine(inputs: Mapping[str, Any]) -> Array:
            names = given.class_names
            logits = [
                _viewed(each, inputs[str(place)], given.setting, names) for place, each in enumerate(model.members)
            ]
            widths = {logit.shape[1] for logit in logits}
            if len(widths) > 1:
                told = " and ".join(map(str, sorted(widths)))
                raise DataError(f"the members of {model.name} return different numbers of logits: {told}")
            return correct(logits)

        return combine, said


def route(model: DerivedModel, setting: EvalSetting, of_member: Callable[[ModelDefinition, EvalSetting], str]) -> str:
    """``"derived"``, if all members can do the task.

    Args:
        of_member: The route of a member.

    Raises:
        UnsupportedError: If one cannot, the setting attacks each model by itself, or their classes differ.
    """
    if setting.task not in TASKS:
        raise UnsupportedError(f"{setting.name} is of the task {setting.task}; {model.name} has logits of one class")
    if setting.perturbation.attacks:
        raise UnsupportedError(
            f"{setting.name} attacks each model by itself; what its members have stored is not of an attack on"
            f" {model.name}"
        )
    grouped = [each.name for each in (setting, model.fitted_on) if each is not None and each.class_groups is not None]
    if grouped and model.rule in PRIORS:
        raise UnsupportedError(f"{grouped[0]} groups classes; {model.name} would need the share of each class")
    for definition in model.members:
        of_member(definition, setting)
    if model.fitted_on is not None:
        if model.fitted_on.task not in TASKS:
            raise UnsupportedError(
                f"{model.fitted_on.name}, which {model.name} is fitted on, is not a classification setting"
            )
        of_member(model.members[0], model.fitted_on)
    if model.fitted_on is not None and model.rule == PRIOR_OF_SETTING:
        _require_same_classes(model, setting, model.fitted_on)
    classes = {member.name: member.num_classes for member in model.members if member.num_classes is not None}
    if len(set(classes.values())) > 1 and not setting.among_present:
        told = " and ".join(f"{name} returns {number}" for name, number in classes.items())
        raise UnsupportedError(
            f"the members of {model.name} have different numbers of classes: {told} logits{_remedy(setting)}"
        )
    return "derived"


def _remedy(setting: EvalSetting) -> str:
    """Suggests what else can be done with members of different classes."""
    by_name = setting.class_sublist is None and setting.class_groups is None and setting.metrics_fn is None
    return f"; if they know the classes by name: {setting.name}{PRESENT}" if by_name else ""


def _require_same_classes(model: DerivedModel, setting: EvalSetting, on: EvalSetting) -> None:
    """Checks what is known of the classes before any data is opened."""
    here, there = ([*(eval_setting.class_sublist or ())] or eval_setting.num_classes for eval_setting in (setting, on))
    if here != there and None not in (here, there):
        raise UnsupportedError(
            f"{setting.name} and {on.name} evaluate different classes{_numbers(here, there)}; {model.name} takes the"
            " share of each class from there"
        )


def _numbers(here: Any, there: Any) -> str:
    one, other = (each if isinstance(each, int) else len(each) for each in (here, there))
    return f" ({one:,} and {other:,})" if one != other else ""


def rows(model: DerivedModel, setting: EvalSetting) -> Rows:
    """The outputs of a derived model on a setting."""
    inputs = {str(place): OutputsOf(setting.name, by=definition.name) for place, definition in enumerate(model.members)}
    fitted_on = setting if model.rule in (PRIOR_BY_EM, PRIOR_OF_LABELS) else model.fitted_on
    if fitted_on is not None:
        inputs[FITTED] = OutputsOf(fitted_on.name, by=model.members[0].name)
    return Rows(DerivedLogits(), inputs)


# Rules ----------------------------------------------------------------------------------------------------------------


def _fitted(model: DerivedModel, given: Given) -> tuple[Rule, str]:
    """The rule of a model as a function of its members' logits, and what was fitted for it, in words."""
    from testbed.metrics import combining

    plain = {
        PROBABILITIES: combining.mean_probabilities,
        MEAN_LOGITS: combining.mean_logits,
        RANKS: combining.mean_ranks,
    }
    if model.rule in plain:
        return plain[model.rule], ""
    fits = {
        TEMPERATURE: _temperature,
        PRIOR_BY_EM: _prior_by_em,
        PRIOR_OF_LABELS: _prior_of_labels,
        PRIOR_OF_SETTING: _prior_of_setting,
    }
    return fits[model.rule](model, given)


def _temperature(model: DerivedModel, given: Given) -> tuple[Rule, str]:
    from testbed.metrics.combining import fit_temperature

    on = model.fitted_on
    assert on is not None

    def fit() -> tuple[float, int]:
        logits, targets = _labelled(model, given, on)
        return fit_temperature(logits, targets), len(targets)

    temperature, number = given.once(fit)
    said = f"temperature {temperature:.4g}, fitted to {number:,} samples of {on.name}"
    return lambda members: members[0] / temperature, f"{said}{_shared(given, on)}"


def _shared(given: Given, on: EvalSetting) -> str:
    """Describes which samples of an evaluation something was fitted to."""
    if on.name == given.setting.name:
        return ": fitted here, on the very samples that it is evaluated on"
    own, fitted = given.samples(OWN), {sample.digest for sample in given.samples(FITTED)}
    number = sum(sample.digest in fitted for sample in own)
    if not number:
        return ""
    return f", which has {'all' if number == len(own) else f'{number:,} of the {len(own):,}'} images of this setting"


def _prior_by_em(model: DerivedModel, given: Given) -> tuple[Rule, str]:
    from testbed.metrics.combining import shares_by_em, with_prior

    shares = given.once(lambda: shares_by_em(_readable(model, given, given.setting)[0]))
    said = f"shares of the classes from {shares.min():.2g} to {shares.max():.2g}, estimated here without labels"
    return lambda members: with_prior(members[0], shares), said


def _prior_of_labels(model: DerivedModel, given: Given) -> tuple[Rule, str]:
    return _counted(model, given, given.setting, "here: an oracle")


def _prior_of_setting(model: DerivedModel, given: Given) -> tuple[Rule, str]:
    """The shares of the classes among the labels of another setting.

    Saerens, Latinne & Decaestecker, "Adjusting the outputs of a classifier to new a priori probabilities" (2002),
    equation 2.4, with the old shares all 1 / C: p'(c | x) = p(c | x) p'(c) C / Σ_k p(k | x) p'(k) C, where
    p'(c) = (n_c + 1) / (n + C) for n_c of n labels (Laplace), so that none is 0.

    Raises:
        DataError: If the classes differ.
    """
    on = model.fitted_on
    assert on is not None
    here, there = given.class_names, given.names(FITTED)
    if here and there and list(here) != list(there):
        place = next(place for place in range(max(len(here), len(there))) if here[place:][:1] != there[place:][:1])
        one, other = (repr(each[place]) if place < len(each) else "nothing" for each in (here, there))
        raise DataError(
            f"{model.name} takes the share of each class from {on.name}, whose classes are not those of"
            f" {given.setting.name}: class {place} is {other} there, {one} here"
        )
    return _counted(model, given, on, f"of {on.name}{_shared(given, on)}")


def _counted(model: DerivedModel, given: Given, on: EvalSetting, where: str) -> tuple[Rule, str]:
    """The rule with the shares of the classes among the labels of a setting."""
    from testbed.metrics.combining import shares_of, with_prior

    def count() -> Array:
        logits, targets = _labelled(model, given, on)
        return shares_of(targets, logits.shape[1])

    shares = given.once(count)

    def correct(members: Sequence[Array]) -> Array:
        if members[0].shape[1] != len(shares):
            raise DataError(
                f"{model.name} has {members[0].shape[1]:,} logits on {given.setting.name} and {len(shares):,} on"
                f" {on.name}, where it takes the share of each class"
            )
        return with_prior(members[0], shares)

    return correct, f"shares of the classes from {shares.min():.2g} to {shares.max():.2g}, of the labels {where}"


# Logits of members ----------------------------------------------------------------------------------------------------


def _viewed(
    model: ModelDefinition, logits: Array, setting: EvalSetting, class_names: Sequence[str] | None, groups: bool = False
) -> Array:
    """A member's logits of the classes that a setting evaluates, in float64."""
    import numpy as np

    outputs = get_task(setting.task).build(Graph(model, setting)).outputs
    restricted = isinstance(outputs, Rows) and outputs.op.restricts(model, setting)
    class_groups = setting.grouping if groups else None
    sublist = setting.class_sublist
    if sublist is None and not isinstance(model, DerivedModel):
        sublist = seen_outputs(model, setting, class_names)
    found = viewed_logits(logits, sublist, class_groups, restricted, setting.name)
    return np.asarray(found, dtype=np.float64)


def _readable(model: DerivedModel, given: Given, setting: EvalSetting) -> tuple[Array, list[Any]]:
    """The logits [n, C] that something is fitted to, and their n targets, without unreadable samples."""
    import numpy as np

    rows = given.rows(FITTED)
    logits = _viewed(model.members[0], rows.values, setting, given.names(FITTED), groups=True)
    known: Array = np.asarray(np.isfinite(logits).all(axis=1))
    return logits[known], [sample.target for sample, there in zip(rows.samples, known, strict=True) if there]


def _labelled(model: DerivedModel, given: Given, setting: EvalSetting) -> tuple[Array, Array]:
    """Returns the readable samples, see `_readable`, with one class for each.

    Raises:
        DataError: If a sample has no class, or several.
    """
    import numpy as np

    logits, targets = _readable(model, given, setting)
    for target in targets:
        if type(target) is not int or not 0 <= target < logits.shape[1]:
            raise DataError(
                f"{model.name} takes the labels of {setting.name}, which should be one of {logits.shape[1]} classes for"
                f" each sample; one is {target!r:.40}"
            )
    return logits, np.asarray(targets, dtype=np.int64)
