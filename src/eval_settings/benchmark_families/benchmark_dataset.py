"""Declarations of named data sets, from which settings for every task are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.errors import DefinitionError
from testbed.eval_settings.base.setting import Dataset

KINDS = ("classification", "multilabel", "retrieval", "selection")

Names = Callable[[str], Sequence[str]]
Templates = Callable[[str], Sequence[str] | Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class BenchmarkDataset:
    """A named data set.

    Attributes:
        name: Such as ``"cifar10"`` or ``"sugar_crepe/add_att"``.
        kind: One of `KINDS`; it determines the targets. Classification: a class index. Multilabel: a list of
            class indices. Retrieval: the captions of the image. Selection: ``{"captions": […],
            "answer": index or None}``, with the instance as the sample's group.
        dataset: Maps a split and a language to the data set; opens nothing.
        splits: The splits, the evaluated one first.
        languages: The languages, the default one first.
        any_language: True if another language may also be named; files then provide class names and templates in it.
        sizes: Split → number of samples, if known; several where the split is distributed in several sizes.
        class_names: Maps a language to a name for each class; None means the data set's own names.
        templates: Maps a language to templates with ``{c}``, or to prompts by class; None means no zero-shot
            classification.
        collections: The collections of the data set.
        description: A one-line description.
        num_classes: The number of classes, or a function of the language that gives it; it must match a classifier's
            logits. None where it is not known.
        metrics_fn: The metrics of the data set's own task, as in `testbed.eval_settings.base.setting.EvalSetting`; None
            means the usual ones.
        about_prompts: Maps a language to lines for a run's report, where class names or templates are in no file.
    """

    name: str
    kind: str
    dataset: Callable[[str, str], Dataset]
    splits: tuple[str, ...] = ("test",)
    languages: tuple[str, ...] = ("en",)
    any_language: bool = False
    sizes: Mapping[str, int | tuple[int, ...]] = field(default_factory=dict)
    class_names: Names | None = None
    templates: Templates | None = None
    collections: tuple[str, ...] = ()
    description: str = ""
    num_classes: int | Callable[[str], int] | None = None
    metrics_fn: Callable[..., Any] | None = None
    about_prompts: Callable[[str], Sequence[str]] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DefinitionError(f"data set {self.name!r}: kind is one of {', '.join(KINDS)}, not {self.kind!r}")
        if not self.splits or not self.languages:
            raise DefinitionError(f"data set {self.name!r} needs a split and a language")
