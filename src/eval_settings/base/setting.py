"""Definitions of eval settings: samples, perturbations and metrics."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from testbed.data.perturbation import parameters
from testbed.entities import MEAN_PROBABILITY
from testbed.errors import DataError, DefinitionError, TestbedError
from testbed.eval_settings.base.metric import accuracy_topk
from testbed.eval_settings.base.parts import Names, Perturbation, Prompts, Samples, Templates, check_different
from testbed.inputs import ENV_DATA
from testbed.paths import data_root, expanded
from testbed.registry.references import AND, LABELS

if TYPE_CHECKING:
    from testbed.data.source import ImageSource, Source


class Dataset(Protocol):
    """Names a data set and can open it."""

    def spec(self) -> dict[str, Any]:
        """The identity of this data set; equal for settings that read the same samples."""
        ...

    def open(self) -> Source:
        """Opens the samples.

        Raises:
            DataError: If they are missing; the message names the expected folder and its structure.
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
        self.path = expanded(path) if path is not None else None

    def spec(self) -> dict[str, Any]:
        """Returns the folder."""
        return {"root": str(Path(self.get_root()).absolute())}

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

    def folders(self) -> list[str] | None:
        """The names of the classes' folders in the order of the classes; None where a class is something else."""
        if type(self).open is not StandardDataset.open:
            return None
        from testbed.data.formats.image_folder import class_folders

        return class_folders(Path(self.get_root()))

    def open(self) -> ImageSource:
        """The images of the folder."""
        from testbed.data.formats.folder_level import check_level
        from testbed.data.formats.image_folder import ImageFolder

        root, name = Path(self.get_root()), self.name or str(self.path)
        check_level(root, f"data set {name!r}")
        return ImageFolder(root, name)


@dataclass(frozen=True)
class Scoring:
    """Scoring with a judge.

    Attributes:
        of: The name of the setting whose outputs are scored; empty if they are its own.
        by: The name of the judge, a registered model; for a panel several, with ``&`` between them. For answers also
            files of labels, ``labels:human.csv``: judges are asked only about answers without a label.
    """

    of: str = ""
    by: str = ""

    @property
    def judges(self) -> list[str]:
        """The judges: one, or those of a panel; none if there are files of labels alone."""
        return [part for part in self._parts if not part.startswith(LABELS)]

    @property
    def labels(self) -> list[str]:
        """The paths of the files of labels."""
        return [part.removeprefix(LABELS) for part in self._parts if part.startswith(LABELS)]

    @property
    def _parts(self) -> list[str]:
        return [part.strip() for part in self.by.split(AND)]


class EvalSetting:
    """One way to evaluate a model, defined as in ImageNet-testbed.

    Args:
        name: Unique in the registry.
        dataset: Such as ``StandardDataset(name="val")``.
        size: The number of samples; checked before a run. None if the data set's files determine it.
        perturbation_fn_cpu: Takes one image, a float tensor [3, H, W] in [0, 1] as the model's transform made it, and
            returns such an image. Runs in the data workers; random numbers of ``random``, ``numpy.random`` and
            ``torch`` are seeded for each sample.
        perturbation_fn_gpu: Takes ``images`` (float tensor [B, 3, H, W] in [0, 1], on the model's device), and if it
            names them also: ``model`` (images in [0, 1] to logits, differentiable), ``seeds`` (a list of one integer
            for each image, made from this setting and the sample alone), ``targets``. Returns images of that shape.
        metrics_fn: Takes ``logits`` [n, C] and ``targets`` [n], and if it names them also ``image_paths``, ``slices``,
            ``class_names``, ``unreadable`` (booleans [n]) and ``py_model``; returns a dictionary of names to numbers,
            or a list of `Metric` and `Score`. Default: accuracies, calibration and proper scores.
        adversarial_attack: Parameters of an attack; makes batches smaller, and is passed to a model's ``classify`` that
            asks for it, which then replaces ``perturbation_fn_gpu``.
        class_sublist: Classes to which the logits are restricted, in this order; targets index into this list.
        full_targets: With a ``class_sublist``: True if targets are classes of the full data set instead of indices into
            the list. All samples must be of classes in the list; choose them by ``idx_subsample_list``.
        idx_subsample_list: Positions of the data set to use; a repeated one counts repeatedly. If ``size`` differs from
            their number, their number counts.
        parent_eval_setting: The name of the setting whose samples and perturbation this one shares; its stored outputs
            also serve this one.
        transform: Applied to the PIL image before the model's own transform.
        task: ``"classification"``, or another module of `testbed.tasks`: ``"multilabel"``, ``"retrieval"``,
            ``"selection"``, ``"association"``, ``"linear_probe"``, ``"image_embedding"``, ``"captioning"``.
        class_groups: Lists of classes (after the restriction to a ``class_sublist``); the logits become the largest one
            of each list, and targets index into these lists. Or a function that gives them, for lists that come with
            the data.
        group_by: The logit of a group: the largest (None), or ``"mean_probability"``: by the mean probability
            of its classes.
        other_sizes: Other numbers of samples in which the data set is distributed.
        class_names: A name for each logit, for zero-shot classification; default those of the data set.
            With a ``class_sublist`` it names all classes, also those outside the list.
        templates: Prompts with ``{c}`` for the class name, or a dictionary of class name to prompts. A setting without
            templates is for classifiers only.
        num_classes: The number of logits that a model must have, or a function that gives it; default the number of
            ``class_names``.
        language: The language of class names, templates or captions, for tokenizers that depend on it.
        keep_embeddings: Also stores the image embeddings of a dual encoder, so that other prompts and other
            tasks on the same images need not run it again. Tasks on embeddings always store them.
        image_set: The setting whose name these embeddings get; default this one.
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
        full_targets: bool = False,
        class_groups: Sequence[Sequence[int]] | Callable[[], Sequence[Sequence[int]]] | None = None,
        group_by: str | None = None,
        other_sizes: Sequence[int] = (),
        class_names: Names | None = None,
        templates: Templates | None = None,
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
        self.samples = Samples.of(name, size, other_sizes, idx_subsample_list)
        attack = dict(adversarial_attack) if adversarial_attack else None
        noise_key = parent_eval_setting or name
        self.perturbation = Perturbation(name, perturbation_fn_cpu, perturbation_fn_gpu, attack, noise_key)
        self.prompts = Prompts(name, class_names, templates)
        self.metrics_fn = None if metrics_fn is accuracy_topk else metrics_fn
        self.class_sublist = [int(index) for index in class_sublist] if class_sublist is not None else None
        self.full_targets = full_targets
        self.parent_eval_setting = parent_eval_setting
        self.transform = transform
        self.task = task
        self._class_groups = class_groups
        self.group_by = group_by
        self._num_classes = num_classes
        self.language = language
        self.keep_embeddings = keep_embeddings
        self.image_set = image_set or name
        self.task_options = dict(task_options or {})
        self.scoring = scoring
        self.description = description
        self.among_present = False  # see `testbed.registry.references.PRESENT`
        self._check()

    def _check(self) -> None:
        where = f"eval setting {self.name!r}"
        lacking = [name for name in ("spec", "open") if not callable(getattr(self.dataset, name, None))]
        if lacking:
            raise DefinitionError(
                f"{where}: its dataset, of type {type(self.dataset).__name__}, has no {'() and no '.join(lacking)}();"
                " derive the type from StandardDataset and override get_root(), or give it spec(), what identifies it"
                " as plain values, and open(), its images as a Source"
            )
        check_different(self.name, "class_sublist", self.class_sublist)
        if self.full_targets and self.class_sublist is None:
            raise DefinitionError(f"{where}: full_targets=True goes with a class_sublist")
        if self.scoring is not None and not self.scoring.by:
            raise DefinitionError(f"{where}: scoring=Scoring(of=…, by=…) needs the name of the judge in 'by'")
        if self._class_groups is not None and not callable(self._class_groups):
            _ = self.class_groups
        if self.group_by is not None and (self.group_by != MEAN_PROBABILITY or self._class_groups is None):
            raise DefinitionError(f"{where}: group_by is '{MEAN_PROBABILITY}' or None, and goes with class_groups")
        if self.metrics_fn is not None and not {"logits", "targets"} <= set(parameters(self.metrics_fn)):
            raise DefinitionError(
                f"{where}: metrics_fn must take the arguments 'logits' and 'targets'; it takes"
                f" {', '.join(parameters(self.metrics_fn)) or 'none'}"
            )

    def target(self, sample: str, target: Any) -> Any:
        """The target of a sample as the metrics see it: the index into the ``class_sublist``, with ``full_targets``.

        Args:
            sample: Its id, for the message.
            target: Its target in the data set: a class or a list of classes.

        Raises:
            DataError: If a class is not in the list.
        """
        if not self.full_targets or self.class_sublist is None:
            return target
        if isinstance(target, list):
            return [self.target(sample, item) for item in target]
        if target not in self.class_sublist:
            raise DataError(
                f"{self.name}: the sample {sample} has the class {target!r}, which is not in class_sublist; choose"
                " samples of these classes by idx_subsample_list"
            )
        return self.class_sublist.index(target)

    # The arguments that belong together, one by one ---------------------------------------------------------------

    @property
    def size(self) -> int | None:
        """The number of samples; None if the data set's files determine it."""
        return self.samples.size

    @property
    def other_sizes(self) -> Sequence[int]:
        """Other numbers of samples in which the data set is distributed."""
        return self.samples.other_sizes

    @property
    def idx_subsample_list(self) -> Sequence[int] | None:
        """Positions of the data set to use; None for all."""
        return self.samples.subset

    @property
    def perturbation_fn_cpu(self) -> Callable[..., Any] | None:
        """The perturbation of one image, in the data workers."""
        return self.perturbation.cpu

    @property
    def perturbation_fn_gpu(self) -> Callable[..., Any] | None:
        """The perturbation of a batch, on the device."""
        return self.perturbation.gpu

    @property
    def adversarial_attack(self) -> Mapping[str, Any] | None:
        """The parameters of an attack."""
        return self.perturbation.attack

    # What is evaluated --------------------------------------------------------------------------------------------

    def get_dataset_root(self) -> Path:
        """The folder of the data set, as ImageNet-testbed's method of that name."""
        return Path(self.dataset.get_root())  # type: ignore[attr-defined]

    def get_metrics(self, logits: Any, targets: Any, image_paths: Any, py_model: Any) -> dict[str, Any]:
        """The metrics of logits, for scripts: ImageNet-testbed's method of that name.

        Args:
            logits: Tensor [n, C].
            targets: Tensor [n].
            image_paths: The ids of the samples.
            py_model: The model's definition.

        Returns:
            The result of ``metrics_fn``; without one, top-1 and top-5 in percent.
        """
        function = self.metrics_fn or accuracy_topk
        offered = {"logits": logits, "targets": targets, "image_paths": image_paths, "py_model": py_model}
        return dict(function(**{name: offered[name] for name in parameters(function) if name in offered}))

    def get_perturbation_fn_gpu(self, py_model: Any) -> Callable[..., Any] | None:
        """The perturbation of a batch, unless the model handles the attack: ImageNet-testbed's method of that name."""
        handled = self.adversarial_attack is not None and getattr(py_model, "handles_attack", False)
        return None if handled else self.perturbation_fn_gpu

    def get_perturbation_fn_cpu(self, py_model: Any) -> Callable[..., Any] | None:
        """The perturbation of one image: ImageNet-testbed's method of that name."""
        return self.perturbation_fn_cpu

    def get_idx_subsample_list(self, py_model: Any) -> Sequence[int] | None:
        """The positions to use: ImageNet-testbed's method of that name."""
        return self.idx_subsample_list

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
    def grouping(self) -> list[list[int]] | dict[str, list[list[int]]] | None:
        """The groups of classes and the logit of each, as `testbed.metrics.classification.grouped` takes them."""
        groups = self.class_groups
        return groups if groups is None or self.group_by is None else {self.group_by: groups}

    @property
    def num_classes(self) -> int | None:
        """The required number of logits, if known."""
        given = self._num_classes() if callable(self._num_classes) else self._num_classes
        names = self.prompts.class_names
        return given if given is not None or names is None or callable(names) else len(names)

    def names_if_known(self) -> Sequence[str] | None:
        """Returns the class names, if they are available without opening the data set; else None."""
        try:
            given = self.prompts.class_names
            return given() if callable(given) else given
        except TestbedError:
            return None

    def __repr__(self) -> str:
        return f"EvalSetting(name={self.name!r})"
