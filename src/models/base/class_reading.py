"""Classes of data and outputs of a classifier, matched by name.

A folder with some of a network's classes is evaluated over all of its outputs. The class of an output follows from the
checkpoint (`class_order`), or from the published set of classes that the weights were trained on (`class_vocabulary`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.data.language.class_vocabulary import ClassVocabulary, imagenet, subset_of, vocabulary_of
from testbed.errors import DataError, UnsupportedError
from testbed.models.base.class_order import LISTED, OPTION, SETTING, class_orders_columns, folders_of, matches_as_set

if TYPE_CHECKING:
    from testbed.eval_settings.base.setting import EvalSetting
    from testbed.models.base.definition import ModelDefinition

CLASSIFICATION = "classification"
SHOWN = 3
SHORT = 60  # characters of a name that a message shows


@dataclass(frozen=True)
class KnownOutputs:
    """The known classes of a classifier's outputs.

    Attributes:
        vocabulary: Their names, in order.
        where: The source.
        assumed: True if there is no source, and only their number suggests it.
    """

    vocabulary: ClassVocabulary
    where: str
    assumed: bool = False

    @property
    def words(self) -> str:
        """For people: ``the 1,000 classes of ImageNet-1k (from timm's configuration)``."""
        count = f"the {len(self.vocabulary):,} classes"
        if not self.vocabulary.published:
            return f"{count} listed by {self.where}"
        said = f"assumed from {self.where}" if self.assumed else f"from {self.where}"
        return f"{count} of {self.vocabulary.title} ({said})"


@dataclass(frozen=True)
class ClassReading:
    """A reading of a data set's classes as outputs of a classifier.

    Attributes:
        classes: The names of the data's classes.
        outputs: The output for each of them.
        known: The classes of the outputs.
    """

    classes: tuple[str, ...]
    outputs: tuple[int, ...]
    known: KnownOutputs

    def columns(self, among_present: bool) -> list[int]:
        """The outputs that count, those of the data's classes first and in their order: targets index into these.

        Args:
            among_present: True if only these count, not all.
        """
        present = set(self.outputs)
        others = () if among_present else (index for index in range(len(self.known.vocabulary)) if index not in present)
        return [*self.outputs, *others]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each class of the data, and for people the name of what it is read as."""
        display = self.known.vocabulary.display
        return [(name, display(output)) for name, output in zip(self.classes, self.outputs, strict=True)]


def seen_outputs(model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None) -> list[int] | None:
    """Returns the outputs of a classifier that count on a setting, in class order; None where `reading` is None.

    Raises:
        UnsupportedError: As `reading`.
    """
    read = reading(model, setting, class_names)
    return None if read is None else read.columns(setting.among_present)


def class_columns(model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None) -> list[int] | None:
    """Returns the classifier's output for each class of a setting; None if the order is the same, or `reading` applies.

    Raises:
        DataError: If the classifier's classes have other names than the setting's.
    """
    order = model.class_order
    if order is None or reading(model, setting, class_names) is not None:
        return None
    return class_orders_columns(order, model, setting, class_names)


def reading(model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None) -> ClassReading | None:
    """Reads the classes of a setting's data as outputs of a classifier.

    Args:
        model: The classifier.
        class_names: The class names of its data; those of its folders come first.

    Returns:
        None where no name is needed: the setting or the model itself assigns outputs to classes, or
        both have as many classes and their order counts.

    Raises:
        UnsupportedError: If there are fewer or more classes than outputs, and one of them is unknown or ambiguous.
    """
    candidates = [list(names) for names in (_folders(setting), class_names) if names]
    if not candidates or model.num_classes is None or not _is_open(setting):
        return None
    known = known_outputs(model)
    if any(known is not None and _is_as_it_is(names, known, model) for names in candidates):
        return None
    alike = len(candidates[0]) == model.num_classes
    if known is None and not alike:
        raise UnsupportedError(unknown_outputs(model, setting, len(candidates[0])))
    try:
        match = None if known is None else _first_match(candidates, known, setting.name, model.name)
    except UnsupportedError:
        if alike:
            return None
        raise
    if match is None or (alike and (match.known.assumed or match.outputs == tuple(range(len(match.outputs))))):
        return None
    return match


def numbered_outputs(
    model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None
) -> KnownOutputs | None:
    """Returns the outputs' classes, where a setting's labels are their numbers because its data have no class names."""
    nameless = not class_names and not folders_of(setting) and setting.num_classes is None
    return known_outputs(model) if nameless and model.num_classes is not None and _is_open(setting) else None


def _first_match(candidates: Sequence[Sequence[str]], known: KnownOutputs, setting: str, model: str) -> ClassReading:
    """The reading of the first list of names whose classes are all known.

    Raises:
        UnsupportedError: If there is none: of the first list.
    """
    first: UnsupportedError | None = None
    for names in candidates:
        try:
            return ClassReading(tuple(names), matched(names, known, setting, model), known)
        except UnsupportedError as error:
            first = first or error
    assert first is not None
    raise first


def unknown_outputs(model: ModelDefinition, setting: EvalSetting, classes: int) -> str:
    """Explains why classes cannot be matched to unknown outputs."""
    return (
        f"{setting.name} has {classes:,} classes; {model.name} returns {model.num_classes:,} logits, and nothing"
        f" determines which of them these classes are: {ways_out()}"
    )


def _folders(setting: EvalSetting) -> list[str] | None:
    """The folders of a setting's classes; None where there are none, also because the data are missing."""
    try:
        return folders_of(setting)
    except DataError:
        return None


def _is_open(setting: EvalSetting) -> bool:
    """Checks whether the names of a setting's classes decide which outputs they are."""
    return (
        setting.task == CLASSIFICATION
        and setting.class_sublist is None
        and setting.class_groups is None
        and setting.metrics_fn is None
    )


def _is_as_it_is(names: Sequence[str], known: KnownOutputs, model: ModelDefinition) -> bool:
    """Checks whether classes are those of the outputs in some order that is known without looking at each name."""
    if tuple(names) == known.vocabulary.ids:
        return True
    order = model.class_order
    if order is None:
        return False
    if order.rule == LISTED:
        return matches_as_set(names, order.names)
    return len(names) == model.num_classes and (order.rule != SETTING or order.where != "")


def known_outputs(model: ModelDefinition) -> KnownOutputs | None:
    """Returns the known classes of a classifier's outputs; None if there is no source."""
    order, count = model.class_order, model.num_classes
    if order is not None and order.rule == LISTED:
        return KnownOutputs(vocabulary_of(order.names), order.where)
    if model.class_set is not None:
        vocabulary = imagenet(model.class_set[0])
        if len(vocabulary) == count:
            return KnownOutputs(vocabulary, model.class_set[1])
    subset = subset_of(count)
    return None if subset is None else KnownOutputs(imagenet(subset), "their number", assumed=True)


def matched(names: Sequence[str], known: KnownOutputs, setting: str, model: str) -> tuple[int, ...]:
    """The output for each name.

    Different names are different classes: one that another name stands for is not what an ambiguous name means.

    Args:
        names: The class names of the data.
        known: The classes of the outputs.
        setting: The setting's name, for messages.
        model: The model's name, likewise.

    Raises:
        UnsupportedError: If a name is unknown or ambiguous, or two are one class; names the nearest classes.
    """
    vocabulary = known.vocabulary
    choices = [set(vocabulary.candidates(name)) for name in names]
    _refuse_own_numbers(names, known, setting)
    while True:
        sure = {next(iter(candidates)) for candidates in choices if len(candidates) == 1}
        left = [candidates - sure if len(candidates) > 1 else candidates for candidates in choices]
        if left == choices:
            break
        choices = left
    unknown = [name for name, candidates in zip(names, choices, strict=True) if not candidates]
    if unknown:
        counts = f"{setting} has {len(names):,} classes; {model} returns {len(vocabulary)} logits"
        raise UnsupportedError(f"{counts}, and {_unknown(unknown, known)}")
    several = next(
        ((name, candidates) for name, candidates in zip(names, choices, strict=True) if len(candidates) > 1), None
    )
    if several is not None:
        may = " or ".join(f"{vocabulary.display(index)!r} ({vocabulary.wnid(index)})" for index in sorted(several[1]))
        raise UnsupportedError(
            f"{setting}: the class {_short(several[0])} may be {may}, of {known.words}; name it by what is meant"
        )
    outputs = tuple(next(iter(candidates)) for candidates in choices)
    first: dict[int, str] = {}
    for name, output in zip(names, outputs, strict=True):
        if output in first:
            raise UnsupportedError(
                f"{setting}: the classes {_short(first[output])} and {_short(name)} are both"
                f" {vocabulary.display(output)!r}, of {known.words}; merge them"
            )
        first[output] = name
    return outputs


def _refuse_own_numbers(names: Sequence[str], known: KnownOutputs, setting: str) -> None:
    """Refuses classes that are numbered 0, 1, 2, … or 1, 2, 3, …: most likely not by the outputs.

    Raises:
        UnsupportedError: If they are.
    """
    ids = set(known.vocabulary.ids)
    if len(names) >= len(ids) or not all(name.strip().isdecimal() and name not in ids for name in names):
        return
    numbers = sorted(int(name) for name in names)
    if numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        raise UnsupportedError(
            f"{setting}: the {len(names):,} classes are numbered from {numbers[0]} on, which does not identify the"
            f" outputs: {known.words}; name them by {_example(known)}"
        )


def _unknown(unknown: Sequence[str], known: KnownOutputs) -> str:
    near = known.vocabulary.nearest(unknown[0])
    nearest = f"the nearest: {', '.join(map(repr, near))}" if near else f"names are such as {_example(known)}"
    more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
    lacking = f"{_short(unknown[0])}{more} {'are' if more else 'is'} not among {known.words}"
    return f"{lacking}; {nearest}. Rename the class, {ways_out()}"


def ways_out() -> str:
    """Lists other remedies for classes that do not match, for messages."""
    return (
        f"give the names of the outputs ({OPTION} FILE, for checkpoints), fine-tune the model on these classes, or use"
        " a dual encoder"
    )


def _example(known: KnownOutputs) -> str:
    vocabulary = known.vocabulary
    shown = ", ".join(repr(vocabulary.display(index)) for index in range(min(SHOWN, len(vocabulary))))
    first = vocabulary.wnid(0)
    return shown if first == vocabulary.display(0) else f"{shown}, or WordNet ids such as {first}"


def _short(name: Any) -> str:
    text = repr(name)
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"
