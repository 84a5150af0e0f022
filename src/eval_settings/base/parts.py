"""Parts of an eval setting: its samples, its perturbation, its prompts."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.data.language.template_places import with_places
from testbed.data.perturbation import check_cpu_call, gpu_call, sample_seed
from testbed.data.random_order import first_drawn
from testbed.errors import DataError, DefinitionError

if TYPE_CHECKING:
    from testbed.data.source import Source

log = logging.getLogger("testbed")

PHOTO_DEPICTS = "A photo depicts "  # in front of captions, as Hessel et al. (2021) have it
Names = Sequence[str] | Callable[[], Sequence[str]]
Templates = Sequence[str] | Mapping[str, Sequence[str]] | Callable[[], Sequence[str] | Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Samples:
    """The samples of a data set that a setting evaluates; checked when it is made.

    Attributes:
        setting: The name of the setting, for messages.
        size: Their number; None if the data set's files determine it. Where there is a subset, its length counts.
        other_sizes: Other numbers of samples in which the data set is distributed.
        subset: Their positions in the data set; None for all of it. A repeated one counts repeatedly.
        distinct: True if each counts once nevertheless.
        anchors: The path of a file that chooses some of them (`testbed.eval_settings.base.anchor_file`); empty for all.
        part_of: The number of all samples, where only a part of the data set is available; else 0.
        first: The number of samples to take in the random order of `testbed.data.random_order`; 0 for all, in their own
            order.
    """

    setting: str
    size: int | None
    other_sizes: Sequence[int] = ()
    subset: Sequence[int] | None = None
    distinct: bool = False
    anchors: str = ""
    first: int = 0
    part_of: int = 0

    @classmethod
    def of(cls, setting: str, size: Any, other_sizes: Sequence[Any], subset: Sequence[Any] | None) -> Samples:
        """Returns the samples of a definition.

        Raises:
            DefinitionError: If sizes are not positive integers, or positions are invalid.
        """
        number = None if size is None else _count(setting, size)
        positions = None if subset is None else [int(position) for position in subset]
        if positions is not None and (not positions or min(positions) < 0):
            raise DefinitionError(f"eval setting {setting!r}: idx_subsample_list must be a list of numbers from 0")
        return cls(setting, number, [_count(setting, size) for size in other_sizes], positions)

    def positions(self, source: Source, limit: int | None = None) -> Sequence[int]:
        """The positions of the data set that are evaluated, checked against the size.

        Args:
            source: The opened data set.
            limit: The maximum number, evenly spread, to cover all classes of a sorted data set.

        Raises:
            DataError: If the data set does not have the setting's number of samples, or not as many as are drawn.
        """
        positions = self._of(source)
        if self.anchors:
            positions = self._anchors_among(positions, source)
        if self.first:
            positions = first_drawn(source, positions, self.first, self.setting)
        if limit is not None and limit < len(positions):
            positions = [positions[index * len(positions) // limit] for index in range(limit)]
        if isinstance(positions, range):  # which a list of 50,000 numbers would outweigh
            return positions
        return list(dict.fromkeys(positions)) if self.distinct else list(positions)

    def _anchors_among(self, positions: Sequence[int], source: Source) -> Sequence[int]:
        """The positions of the samples that a file names, in the order of the data set."""
        from testbed.eval_settings.base.anchor_file import read_anchors

        wanted = {sample.id for sample in read_anchors(Path(self.anchors)).samples}
        chosen = [position for position in positions if source.ids[position] in wanted]
        if lacking := wanted - {source.ids[position] for position in chosen}:
            raise DataError(
                f"{self.setting}: {len(lacking):,} of the {len(wanted):,} anchors in {self.anchors} are not samples of"
                f" {source.name}, such as {min(lacking)}; were they chosen for another data set?"
            )
        return chosen

    def _of(self, source: Source) -> Sequence[int]:
        if self.subset is not None:
            if self.size is not None and self.size != len(self.subset):
                _say_that_the_list_counts(self.setting, len(self.subset), self.size)
            if max(self.subset) >= len(source):
                raise DataError(
                    f"{self.setting}: idx_subsample_list has the position {max(self.subset)}, but the data set"
                    f" {source.name} has {len(source)} samples"
                )
            return self.subset
        if self.size is not None and len(source) not in (self.size, *self.other_sizes):
            expected = " or ".join(f"{size:,}" for size in (self.size, *self.other_sizes))
            root = getattr(source, "root", None)
            raise DataError(
                f"{self.setting}: {expected} samples are expected, {len(source):,} were found in the data set"
                f" {source.name}{f' ({root})' if root is not None else ''}; it is incomplete or the wrong data set"
            )
        if self.part_of and len(source) >= self.part_of:
            raise DataError(
                f"{self.setting}: {len(source):,} samples were found in the data set {source.name}, which has"
                f" {self.part_of:,}; name the setting without .part, for the whole"
            )
        return range(len(source))


@dataclass(frozen=True)
class Perturbation:
    """A perturbation of images; checked when it is made.

    Attributes:
        setting: The name of the setting, for messages.
        cpu: See ``perturbation_fn_cpu`` of `EvalSetting`.
        gpu: See ``perturbation_fn_gpu``.
        attack: The parameters of an attack.
        noise_key: The key of its random numbers: the name of the setting's parent, else of the setting.
    """

    setting: str
    cpu: Callable[..., Any] | None
    gpu: Callable[..., Any] | None
    attack: Mapping[str, Any] | None
    noise_key: str

    def __post_init__(self) -> None:
        where = f"eval setting {self.setting!r}"
        for what, function in (("perturbation_fn_cpu", self.cpu), ("perturbation_fn_gpu", self.gpu)):
            if function is not None and not callable(function):
                raise DefinitionError(f"{where}: {what} must be a function of images, not {function!r}")
        try:
            if self.cpu is not None:
                check_cpu_call(self.cpu)
            if self.gpu is not None:
                gpu_call(self.gpu)
        except DefinitionError as error:
            raise DefinitionError(f"{where}: {error}") from None

    def __bool__(self) -> bool:
        """Checks whether anything is done to the images that could use random numbers."""
        return self.cpu is not None or self.gpu is not None

    @property
    def needs_model(self) -> bool:
        """True if it takes the model."""
        return self.gpu is not None and "model" in gpu_call(self.gpu).arguments

    @property
    def needs_targets(self) -> bool:
        """True if it takes the targets."""
        return self.gpu is not None and "targets" in gpu_call(self.gpu).arguments

    @property
    def attacks(self) -> bool:
        """True if it is made for one model: an attack, or anything else that takes the model."""
        return self.attack is not None or self.needs_model

    def sample_seed(self, sample_id: str, seed: int = 0) -> int:
        """The seed of one sample's random numbers."""
        return sample_seed(self.noise_key, sample_id, seed)

    def require(self) -> None:
        """Checks that additional data exist, such as pictures of frost.

        Raises:
            UnsupportedError: If something is missing; the message names it and the places searched.
        """
        for function in (self.cpu, self.gpu):
            check = getattr(function, "require", None)
            if callable(check):
                check()


@dataclass(frozen=True)
class Prompts:
    """Class names and templates, for zero-shot classification.

    Attributes:
        setting: The name of the setting, for messages.
        class_names: A name for each logit; None for those of the data set.
        templates: Prompts with ``{c}`` for the class name, or class name → prompts; None for a setting without.
        about: Lines for a run's report: where the prompts come from, where no file has them.
    """

    setting: str
    class_names: Names | None
    templates: Templates | None
    about: Callable[[], Sequence[str]] | None = None

    def names(self, dataset_classes: Sequence[str] | None) -> list[str]:
        """The setting's class names, else those of the data set; empty if neither has any."""
        given = self.class_names() if callable(self.class_names) else self.class_names
        return list(given if given is not None else dataset_classes or ())

    def spec(self, dataset_classes: Sequence[str] | None) -> dict[str, Any]:
        """Class names and templates, as plain values.

        Args:
            dataset_classes: The class names of the data set, for a setting without.

        Raises:
            DefinitionError: If there are no templates or no class names.
        """
        templates = self.templates() if callable(self.templates) else self.templates
        names = self.names(dataset_classes)
        if templates is None or not names:
            lacking = "prompt templates" if templates is None else "class names"
            raise DefinitionError(
                f"eval setting {self.setting!r} has no {lacking}, needed for zero-shot classification"
            )
        if isinstance(templates, Mapping):
            return {"class_names": names, "templates": {name: list(templates.get(name, ())) for name in names}}
        return {"class_names": names, "templates": self._with_places(list(templates))}

    def _with_places(self, templates: list[str]) -> list[str]:
        try:
            return with_places(templates, lambda index: f"eval setting {self.setting!r}: template {index + 1}")
        except DataError as error:
            raise DefinitionError(str(error)) from None

    def texts(self, dataset_classes: Sequence[str] | None) -> list[list[str]]:
        """Returns the prompts of each class, named as by `spec`; raises DefinitionError if a class has none."""
        return prompts_of(self.spec(dataset_classes), self.setting)


def prompts_of(spec: Mapping[str, Any], setting: str) -> list[list[str]]:
    """Returns the prompts of each class, from what `Prompts.spec` gives; raises DefinitionError if a class has none."""
    names, templates = spec["class_names"], spec["templates"]
    if isinstance(templates, Mapping):
        prompts = [list(templates[name]) for name in names]
    else:
        prompts = [[template.replace("{c}", name) for template in templates] for name in names]
    for name, of_class in zip(names, prompts, strict=True):
        if not of_class:
            raise DefinitionError(f"eval setting {setting!r} has no prompts for the class {name!r}")
    return prompts


def check_different(setting: str, what: str, values: Sequence[int] | None) -> None:
    """Checks a list of different numbers from 0; raises DefinitionError if it is not one."""
    if values is not None and (len(set(values)) != len(values) or not values or min(values) < 0):
        raise DefinitionError(f"eval setting {setting!r}: {what} must be a list of different numbers from 0")


@lru_cache(maxsize=256)  # once
def _say_that_the_list_counts(setting: str, positions: int, size: int) -> None:
    log.warning(f"{setting}: idx_subsample_list has {positions:,} positions, but size is {size:,}; the list counts")


def _count(name: str, size: Any) -> int:
    """The size of a setting, of whatever integer type."""
    try:
        number = operator.index(size)
    except TypeError:
        number = 0
    if number < 1 or isinstance(size, bool):
        raise DefinitionError(
            f"eval setting {name!r}: size must be the number of samples, a positive integer; got {size!r}"
        )
    return number
