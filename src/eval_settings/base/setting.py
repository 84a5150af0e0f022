"""Definitions of eval settings: samples, perturbations and metrics."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from testbed.data.perturbation import check_cpu_call, gpu_call, parameters, sample_seed
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.base.metric import accuracy_topk
from testbed.inputs import ENV_DATA
from testbed.paths import data_root

if TYPE_CHECKING:
    from testbed.data.source import ImageSource, Source


class Dataset(Protocol):
    """Names a data set and knows how to open it."""

    def spec(self) -> dict[str, Any]:
        """The identity of this data set; equal for settings that read the same samples."""
        ...

    def open(self) -> Source:
        """The samples.

        Raises:
            DataError: If they are missing; says which folder is expected, and its structure.
        """
        ...


class StandardDataset:
    """An image folder: one folder per class.

    Args:
        name: A folder below the data root (``--data-root``, else ``$TESTBED_DATA``).
        path: Any folder. Give either a name or a path.
    """

    def __init__(self, name: str | None = None, path: str | Path | None = None) -> None:
        if bool(name) == bool(path):
            raise DefinitionError(f"StandardDataset takes either a name or a path, got name={name!r}, path={path!r}")
        if name is not None and (Path(name).is_absolute() or ".." in Path(name).parts):
            raise DefinitionError(f"StandardDataset(name={name!r}): a name is a folder below the data root; use path=…")
        self.name = name
        self.path = Path(path).expanduser() if path is not None else None

    def spec(self) -> dict[str, Any]:
        """Where the folder is."""
        return {"root": str(self.get_root().absolute())}

    def get_root(self) -> Path:
        """The folder.

        Raises:
            DataError: If it is below the data root, and none is set.
        """
        if self.path is not None:
            return self.path
        root = data_root()
        if root is None:
            raise DataError(
                f"data set {self.name!r}: no data root is set; give --data-root DIR or set {ENV_DATA}, where"
                f" DIR/{self.name} holds one folder per class with the images in it"
            )
        return root / str(self.name)

    def open(self) -> ImageSource:
        """The images of the folder."""
        from testbed.data.formats.image_folder import ImageFolder

        return ImageFolder(self.get_root(), self.name or str(self.path))


@dataclass(frozen=True)
class Scoring:
    """Scoring with a judge.

    Attributes:
        of: The name of the setting whose outputs are scored; empty for a setting whose own outputs are.
        by: The name of the judge, a registered model.
    """

    of: str = ""
    by: str = ""


class EvalSetting:
    """One way to evaluate a model, defined as in ImageNet-testbed.

    Args:
        name: Unique in the registry.
        dataset: Such as ``StandardDataset(name="val")``.
        size: The number of samples; checked before a run. None if the data set's files determine it.
        perturbation_fn_cpu: Takes one image, a float tensor [3, H, W] in [0, 1] as the model's transform made it, and
            returns such an image. Runs in the data workers; random numbers of ``random``, ``numpy.random`` and
            ``torch`` are seeded for each sample.
        perturbation_fn_gpu: Takes ``images`` (float tensor [B, 3, H, W] in [0, 1], on the model's device) and what else
            it names of: ``model`` (images in [0, 1] to logits, differentiable), ``seeds`` (a list of one integer for
            each image, made from this setting and the sample alone), ``targets``. Returns images of that shape.
        metrics_fn: Takes ``logits`` [n, C] and ``targets`` [n], and what else it names of ``image_paths``, ``slices``,
            ``class_names``, ``unreadable`` (booleans [n]) and ``py_model``; returns a dictionary of names to numbers,
            or a list of `Metric` and `Score`. Default: accuracies, calibration and proper scores.
        adversarial_attack: Parameters of an attack; makes batches smaller, and is passed to a model's ``classify`` that
            asks for it, which then replaces ``perturbation_fn_gpu``.
        class_sublist: Classes to which the logits are restricted, in this order; targets index into this list.
        idx_subsample_list: Positions of the data set to use; ``size`` is then their number.
        parent_eval_setting: The name of the setting whose samples and perturbation this one shares; its stored outputs
            serve this one too.
        transform: Applied to the PIL image before the model's own transform.
        task: ``"classification"``, or another module of `testbed.tasks`: ``"multilabel"``, ``"retrieval"``,
            ``"selection"``, ``"linear_probe"``, ``"image_embedding"``, ``"captioning"``.
        class_groups: Lists of classes (after the restriction to a ``class_sublist``); the logits become the largest one
            of each list, and targets index into these lists. Or a function that gives them, for lists that come with
            the data.
        other_sizes: Other numbers of samples in which the data set is distributed.
        class_names: A name for each logit, for zero-shot classification; default those of the data set.
            With a ``class_sublist`` it names all classes, those outside the list too.
        templates: Prompts with ``{c}`` for the class name, or a dictionary of class name to prompts. A setting without
            templates is for classifiers only.
        num_classes: The number of logits that a model must have, or a function that gives it; default the number of
            ``class_names``.
        language: The language of class names, templates or captions, for tokenizers that depend on it.
        keep_embeddings: Whether the image embeddings of a dual encoder are stored too, so that other prompts and other
            tasks on the same images need not run it again. Tasks on embeddings store them in any case.
        image_set: The setting after which these embeddings are named; default this one.
        task_options: Options of the task: ``recall_k`` of retrieval; ``train``, ``validation`` (names of settings) and
            ``probe`` (fields of `ProbeSpec`) of a linear probe; ``prompt`` and ``generation`` (fields of
            `GenerationConfig`) of captioning.
        scoring: For a setting whose cells are scored with a judge.
        description: A one-line description.
    """

    def __init__(
        self,
        name: str,
        dataset: Dataset,
        size: int | None,
        perturbation_fn_cpu: Callable[..., Any] | None = None,
        perturbation_fn_gpu: Callable[..., Any] | None = None,
        metrics_fn: Callable[..., Any] | None = None,
        adversarial_attack: Mapping[str, Any] | None = None,
        class_sublist: Sequence[int] | None = None,
        idx_subsample_list: Sequence[int] | None = None,
        parent_eval_setting: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        *,
        task: str = "classification",
        class_groups: Sequence[Sequence[int]] | Callable[[], Sequence[Sequence[int]]] | None = None,
        other_sizes: Sequence[int] = (),
        class_names: Sequence[str] | Callable[[], Sequence[str]] | None = None,
        templates: Sequence[str] | Mapping[str, Sequence[str]] | Callable[[], Sequence[str]] | None = None,
        num_classes: int | Callable[[], int] | None = None,
        language: str = "en",
        keep_embeddings: bool = False,
        image_set: str | None = None,
        task_options: Mapping[str, Any] | None = None,
        scoring: Scoring | None = None,
        description: str = "",
    ) -> None:
        self.name = name
        self.dataset = dataset
        self.size = None if size is None else _count(name, size)
        self.perturbation_fn_cpu = perturbation_fn_cpu
        self.perturbation_fn_gpu = perturbation_fn_gpu
        self.metrics_fn = None if metrics_fn is accuracy_topk else metrics_fn
        self.adversarial_attack = dict(adversarial_attack) if adversarial_attack else None
        self.class_sublist = [int(index) for index in class_sublist] if class_sublist is not None else None
        self.idx_subsample_list = [int(i) for i in idx_subsample_list] if idx_subsample_list is not None else None
        self.parent_eval_setting = parent_eval_setting
        self.transform = transform
        self.task = task
        self._class_groups = class_groups
        self.other_sizes = [_count(name, each) for each in other_sizes]
        self._class_names = class_names
        self._templates = templates
        self._num_classes = num_classes
        self.language = language
        self.keep_embeddings = keep_embeddings
        self.image_set = image_set or name
        self.task_options = dict(task_options or {})
        self.scoring = scoring
        self.description = description
        self._check()

    def _check(self) -> None:
        where = f"eval setting {self.name!r}"
        if not hasattr(self.dataset, "open"):
            raise DefinitionError(f"{where}: dataset must be a StandardDataset or similar, not {self.dataset!r}")
        if self.idx_subsample_list is not None and len(self.idx_subsample_list) != self.size:
            raise DefinitionError(
                f"{where}: idx_subsample_list has {len(self.idx_subsample_list)} positions, but size is {self.size}"
            )
        for what, values in (("class_sublist", self.class_sublist), ("idx_subsample_list", self.idx_subsample_list)):
            if values is not None and (len(set(values)) != len(values) or not values or min(values) < 0):
                raise DefinitionError(f"{where}: {what} must be a list of different numbers from 0")
        if self.scoring is not None and not self.scoring.by:
            raise DefinitionError(f"{where}: scoring=Scoring(of=…, by=…) needs the name of the judge in 'by'")
        if self._class_groups is not None and not callable(self._class_groups):
            _ = self.class_groups
        if self.metrics_fn is not None and not {"logits", "targets"} <= set(parameters(self.metrics_fn)):
            raise DefinitionError(
                f"{where}: metrics_fn must take the arguments 'logits' and 'targets'; it takes"
                f" {', '.join(parameters(self.metrics_fn)) or 'none'}"
            )
        for what in ("perturbation_fn_cpu", "perturbation_fn_gpu"):
            function = getattr(self, what)
            if function is not None and not callable(function):
                raise DefinitionError(f"{where}: {what} must be a function of images, not {function!r}")
        try:
            if self.perturbation_fn_cpu is not None:
                check_cpu_call(self.perturbation_fn_cpu)
            if self.perturbation_fn_gpu is not None:
                gpu_call(self.perturbation_fn_gpu)
        except DefinitionError as error:
            raise DefinitionError(f"{where}: {error}") from None

    # What is evaluated --------------------------------------------------------------------------------------------

    def get_dataset_root(self) -> Path:
        """The folder of the data set, as ImageNet-testbed's method of that name."""
        root: Path = self.dataset.get_root()  # type: ignore[attr-defined]
        return root

    def positions(self, source: Source, limit: int | None = None) -> list[int]:
        """The positions of the data set that this setting evaluates, checked against its size.

        Args:
            source: The opened data set.
            limit: The maximum number, evenly spread, to cover all classes of a sorted data set.

        Raises:
            DataError: If the data set does not have the setting's number of samples.
        """
        if self.idx_subsample_list is not None:
            if max(self.idx_subsample_list) >= len(source):
                raise DataError(
                    f"{self.name}: idx_subsample_list has the position {max(self.idx_subsample_list)}, but the data set"
                    f" {source.name} has {len(source)} samples"
                )
            positions = self.idx_subsample_list
        else:
            if self.size is not None and len(source) not in (self.size, *self.other_sizes):
                expected = " or ".join(f"{size:,}" for size in (self.size, *self.other_sizes))
                raise DataError(
                    f"{self.name}: {expected} samples are expected, {len(source):,} were found in the data set"
                    f" {source.name}{_where(source)}; it is incomplete or the wrong data set"
                )
            positions = list(range(len(source)))
        if limit is None or limit >= len(positions):
            return list(positions)
        return [positions[index * len(positions) // limit] for index in range(limit)]

    @property
    def class_groups(self) -> list[list[int]] | None:
        """The groups of classes, each scored by its largest logit.

        Raises:
            DataError: If they come with missing data.
            DefinitionError: If they are not lists of class numbers.
        """
        given = self._class_groups() if callable(self._class_groups) else self._class_groups
        if given is None:
            return None
        groups = [[operator.index(label) for label in group] for group in given]
        if not groups or not all(group and min(group) >= 0 for group in groups):
            raise DefinitionError(
                f"eval setting {self.name!r}: class_groups are lists of one or more class numbers from 0 up"
            )
        return groups

    @property
    def noise_key(self) -> str:
        """The key of the random numbers of this setting's perturbation: its parent's name, else its own."""
        return self.parent_eval_setting or self.name

    def sample_seed(self, sample_id: str, seed: int = 0) -> int:
        """The seed of one sample's random numbers in this setting."""
        return sample_seed(self.noise_key, sample_id, seed)

    @property
    def perturbed(self) -> bool:
        """Whether anything is done to the images that could use random numbers."""
        return self.perturbation_fn_cpu is not None or self.perturbation_fn_gpu is not None

    @property
    def perturbation_needs_model(self) -> bool:
        """Whether the perturbation takes the model."""
        return self.perturbation_fn_gpu is not None and "model" in gpu_call(self.perturbation_fn_gpu).arguments

    def require(self) -> None:
        """Checks that additional data of the perturbations exist, such as pictures of frost.

        Raises:
            UnsupportedError: If something is missing; says what, and where it was searched.
        """
        for function in (self.perturbation_fn_cpu, self.perturbation_fn_gpu):
            check = getattr(function, "require", None)
            if callable(check):
                check()

    # Zero-shot ----------------------------------------------------------------------------------------------------

    @property
    def has_templates(self) -> bool:
        """Whether dual encoders can do this setting zero-shot."""
        return self._templates is not None

    def prompt_spec(self, dataset_classes: Sequence[str] | None) -> dict[str, Any]:
        """Class names and templates, as plain values.

        Args:
            dataset_classes: The class names of the data set, for a setting without.

        Raises:
            DefinitionError: If there are no templates or no class names.
        """
        templates = self._templates() if callable(self._templates) else self._templates
        names = self.given_class_names(dataset_classes)
        if templates is None or not names:
            lacking = "prompt templates" if templates is None else "class names"
            raise DefinitionError(f"eval setting {self.name!r} has no {lacking}, needed for zero-shot classification")
        if isinstance(templates, Mapping):
            return {"class_names": names, "templates": {name: list(templates.get(name, ())) for name in names}}
        return {"class_names": names, "templates": list(templates)}

    def given_class_names(self, dataset_classes: Sequence[str] | None) -> list[str]:
        """The setting's class names, else those of the data set; empty if neither has any."""
        given = self._class_names() if callable(self._class_names) else self._class_names
        return list(given if given is not None else dataset_classes or ())

    def prompts(self, dataset_classes: Sequence[str] | None) -> list[list[str]]:
        """For each class its prompts.

        Args:
            dataset_classes: As `prompt_spec`.

        Raises:
            DefinitionError: If a class has none.
        """
        return prompts_of(self.prompt_spec(dataset_classes), self.name)

    @property
    def num_classes(self) -> int | None:
        """The required number of logits, if known."""
        given = self._num_classes() if callable(self._num_classes) else self._num_classes
        if given is not None or self._class_names is None or callable(self._class_names):
            return given
        return len(self._class_names)

    def __repr__(self) -> str:
        return f"EvalSetting(name={self.name!r})"


def prompts_of(spec: Mapping[str, Any], setting: str) -> list[list[str]]:
    """For each class its prompts, from what `EvalSetting.prompt_spec` gives.

    Raises:
        DefinitionError: If a class has none.
    """
    names, templates = spec["class_names"], spec["templates"]
    if isinstance(templates, Mapping):
        prompts = [list(templates[name]) for name in names]
    else:
        prompts = [[template.replace("{c}", name) for template in templates] for name in names]
    for name, of_class in zip(names, prompts, strict=True):
        if not of_class:
            raise DefinitionError(f"eval setting {setting!r} has no prompts for the class {name!r}")
    return prompts


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


def _where(source: Source) -> str:
    root = getattr(source, "root", None)
    return f" ({root})" if root is not None else ""
