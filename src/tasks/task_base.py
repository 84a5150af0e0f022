"""Tasks: check that a model fits, bind the loaded model to the setting, and score its outputs."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DefinitionError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

    Array = np.ndarray[Any, Any]

T = TypeVar("T")

IMAGES = "images"  # the role of the embeddings of a setting's own images


@dataclass(frozen=True)
class PrepareContext:
    """The context for preparing a cell.

    Attributes:
        model_identity: The fingerprint of the loaded model, including its precision.
        class_names: The class names of the data set.
        get: Looks up a cached array by its fingerprint.
        put: Caches an array: fingerprint, kind, array, description.
        samples: The samples of the cell, for tasks on embeddings.
        embedded: Reads stored image embeddings by their role (see `Task.image_settings`).
        again: The number of parts of a cached array (classes of a zero-shot head) to recompute and use, so that a check
            of stored outputs notices if today's code computes different ones.
    """

    model_identity: str
    class_names: Sequence[str] | None
    get: Callable[[str], Array | None]
    put: Callable[[str, str, Any, dict[str, Any]], None]
    samples: Sequence[SampleInfo] = ()
    embedded: Callable[[str], EmbeddedImages] | None = None
    again: int = 0


@dataclass(frozen=True)
class EmbeddedImages:
    """Stored image embeddings.

    Attributes:
        values: Float array [n, D]; rows of images that could not be read are NaN.
        samples: The n samples, with their targets.
        errors: Position → why that image could not be read.
    """

    values: Array
    samples: Sequence[SampleInfo]
    errors: Mapping[int, str]


class BoundCell(ABC):
    """A loaded model bound to a setting.

    Attributes:
        feature_key: Cells with equal keys share features of the same images, which are computed once.
    """

    feature_key: str

    @abstractmethod
    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, H, W] in [0, 1] to features: the expensive part."""

    @abstractmethod
    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """Maps features to the stored outputs, [B, …]."""

    @abstractmethod
    def attacked_model(self) -> Any:
        """The ``model`` argument of a perturbation: maps images in [0, 1] to logits, differentiable."""


@dataclass(frozen=True)
class Outputs:
    """Stored outputs of a cell, with everything needed to score them.

    Attributes:
        values: Array [n, …], float, rows of unreadable samples NaN; or [n] objects, those of unreadable samples None.
        samples: The n samples.
        restricted: Whether the model has restricted the logits to the setting's ``class_sublist`` itself.
        unreadable: Positions of unreadable samples, which count as wrong.
        class_names: The class names of the data set.
        model_identity: The fingerprint of the model, its precision included, as what was prepared is found by it.
        artifact: Looks up a prepared array by its fingerprint.
        texts: Embeddings [n, D] of n texts, by the model or by the judge; for tasks that are scored with them.
        images: The scorer's embeddings of the samples' images; for settings whose scorer needs them.
    """

    values: Array
    samples: Sequence[SampleInfo]
    restricted: bool = False
    unreadable: Sequence[int] = ()
    class_names: Sequence[str] | None = None
    model_identity: str = ""
    artifact: Callable[[str], Array | None] = lambda fingerprint: None
    texts: Callable[[Sequence[str]], Array] | None = None
    images: Callable[[], EmbeddedImages] | None = None


class Task(ABC):
    """One kind of evaluation, such as classification.

    Attributes:
        name: The module in `testbed.tasks`: the task of a setting.
        output_kind: The kind of outputs, such as ``"logits"``.
        has_outputs: Whether its cells store outputs; else the image embeddings are their outputs.
    """

    name: ClassVar[str]
    output_kind: ClassVar[str]
    has_outputs: ClassVar[bool] = True

    @abstractmethod
    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """The way the model does this task, by its capabilities.

        Raises:
            UnsupportedError: If it cannot; names what is needed and what the model has.
        """

    @abstractmethod
    def forward_spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """What determines the outputs besides the model and the samples."""

    @abstractmethod
    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """What determines the metrics besides the outputs and the samples."""

    def image_settings(self, model: ModelDefinition, setting: EvalSetting) -> dict[str, str]:
        """The settings whose image embeddings are needed, by role; `IMAGES` is the setting's own.

        None by default. Otherwise the model does not see the images for this cell: they are embedded once, stored, and
        read from the store by all cells that need them.
        """
        return {}

    def texts(
        self, setting: EvalSetting, samples: Sequence[SampleInfo], outputs: Callable[[], Iterable[Any]]
    ) -> list[str]:
        """The texts whose embeddings `score` asks for; none by default.

        Args:
            setting: The setting.
            samples: The samples of the cell.
            outputs: Reads the stored outputs, for tasks whose texts are in them.
        """
        return []

    @abstractmethod
    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """Prepares what the cell needs, and binds the model to it."""

    @abstractmethod
    def score(
        self, outputs: Outputs, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """Per-sample scores and metrics, from stored outputs. Runs no model."""

    def restricts(self, model: ModelDefinition, setting: EvalSetting) -> bool:
        """Whether the stored outputs are restricted to the setting's ``class_sublist`` already."""
        return False


def get_task(name: str) -> Task:
    """The task with this name: the object ``task`` of the module ``testbed.tasks.<name>``.

    Raises:
        DefinitionError: If there is none.
    """
    try:
        module = importlib.import_module(f"testbed.tasks.{name}")
        task: Task = module.task
    except (ImportError, AttributeError) as error:
        raise DefinitionError(f"there is no task {name!r} in testbed.tasks: {error}") from error
    return task


def require(model: ModelDefinition, needed: set[str], setting: EvalSetting) -> None:
    """Checks a model's capabilities.

    Raises:
        UnsupportedError: If one is missing; names it.
    """
    missing = needed - model.capabilities
    if missing:
        raise UnsupportedError(
            f"{setting.name} needs {_listed(needed)}; {model.name} has {_listed(model.capabilities)}"
        )


def options_as(kind: Callable[..., T], setting: EvalSetting, option: str) -> T:
    """Converts a setting's task option, a dictionary, to a dataclass.

    Raises:
        DefinitionError: If it has an unknown field.
    """
    given = dict(setting.task_options.get(option, {}))
    known = [field.name for field in fields(cast(Any, kind))]
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise DefinitionError(
            f"{setting.name}: the task option {option!r} has no {unknown[0]!r}; it has {', '.join(known)}"
        )
    return kind(**given)


def _listed(capabilities: set[str] | frozenset[str]) -> str:
    return " and ".join(sorted(capabilities)) or "no capability"
