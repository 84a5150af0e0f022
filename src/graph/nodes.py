"""What a task asks for: the values that are stored for its cells, and what they are scored with. Plain data.

A **node** is something that is computed once and stored, however many cells need it. Its op says what that is.

- `Rows` have one value for each sample of a setting: logits, embeddings, answers. They are an evaluation's outputs.
- `OutputsOf` are the rows of another cell.
- `Items` have one value for each different request, whichever cell makes it: embeddings of texts, answers of a judge.
- `Artifact` is a single value for a model: a zero-shot head, a probe.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar

from testbed.models.base.capability import Message
from testbed.registry.references import SettingReference

if TYPE_CHECKING:
    import torch

    from testbed.entities import SampleInfo
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.values import RowValues, Values
    from testbed.models.model_base import ModelDefinition

    Combine = Callable[[Mapping[str, Any]], Any]

IMAGES = "images"  # the role of the embeddings of a cell's images
OWN = "0"  # the role of the outputs of the first member of a derived model on the cell's own samples; "1" of the second
FITTED = "fitted"  # the role of outputs that something is fitted to, which determine those of every sample

Request = str | Message


class Reads(StrEnum):
    """The input of a pass; each kind has a kernel in `testbed.workers.kernels`."""

    IMAGES = "images"
    ROWS = "stored embeddings"
    OUTPUTS = "stored outputs"
    MESSAGES = "samples"
    TEXTS = "texts"
    QUESTIONS = "questions"


@dataclass(frozen=True)
class Steps:
    """The computation of rows with a loaded model.

    Attributes:
        key: Cells of a model with equal keys share the features of the same images, which are computed once.
        outputs: Maps features to the stored outputs, [B, …].
        features: Maps images [B, 3, H, W] in [0, 1] to features: the expensive part. None for ops on stored embeddings.
        attacked: Makes the ``model`` argument of a perturbation: maps images in [0, 1] to logits, differentiable.
    """

    key: str
    outputs: Callable[[torch.Tensor], torch.Tensor]
    features: Callable[[torch.Tensor], torch.Tensor] | None = None
    attacked: Callable[[], Any] | None = None


class Op(ABC):
    """The definition of rows.

    Attributes:
        kind: The kind of the stored values, such as ``"logits"``.
        reads: What a pass over them reads.
    """

    kind: ClassVar[str]
    reads: ClassVar[Reads] = Reads.IMAGES

    @abstractmethod
    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """Returns everything that determines the values besides the model and the samples."""

    def restricts(self, model: ModelDefinition, setting: EvalSetting) -> bool:
        """True if the values are already restricted to the setting's ``class_sublist``."""
        return False

    def steps(
        self,
        loaded: Any,
        setting: EvalSetting,
        ones: Mapping[str, torch.Tensor],
        class_names: Sequence[str] | None = None,
    ) -> Steps:
        """Computes them with a loaded model; for ops on images or stored embeddings.

        Args:
            loaded: The model.
            ones: The values of `Rows.ones`, by role.
            class_names: The class names of the data set.
        """
        raise NotImplementedError(f"{type(self).__name__} has no steps on images")


@dataclass(frozen=True)
class Given:
    """The inputs from which an `Artifact` is made.

    Attributes:
        model_identity: The digest of model, weights and precision.
        class_names: The class names of the data set.
        samples: Role → the samples of an input; ``images`` are the cell's own.
        rows: Role → the stored embeddings of an input.
        names: Role → the class names of an input's data set.
        once: What a function returns that fits something to the rows of `FITTED` by the model's rule; a worker calls it
            once for all cells with these rows.
    """

    model_identity: str
    setting: EvalSetting
    class_names: Sequence[str] | None
    samples: Callable[[str], Sequence[SampleInfo]]
    rows: Callable[[str], RowValues]
    names: Callable[[str], Sequence[str] | None] = lambda role: None
    once: Callable[[Callable[[], Any]], Any] = lambda make: make()


class Artifact(ABC):
    """A single value for a model, made once and stored as an artifact."""

    kind: ClassVar[str]

    @abstractmethod
    def fingerprint(self, given: Given, definition: ModelDefinition) -> str:
        """The digest of everything that determines it; reads no values."""

    @abstractmethod
    def make(self, loaded: Any, given: Given) -> tuple[torch.Tensor, dict[str, Any]]:
        """The value, and a description of how it was made."""

    def remake(self, value: torch.Tensor, loaded: Any, given: Given, parts: int) -> torch.Tensor:
        """The stored value with some of its parts made again, so that a check notices if they differ today."""
        return value


class OutputsOp(Op):
    """Rows that are computed from the outputs of other cells, without a model."""

    reads = Reads.OUTPUTS

    @abstractmethod
    def prepare(self, model: ModelDefinition, given: Given) -> tuple[Combine, str]:
        """Describes the computation of the rows and anything fitted for it; empty if nothing was fitted.

        Args:
            given: Has the rows of each input.

        Returns:
            A function from the rows [n, …] of the inputs, by role and without `FITTED`, to as many rows; and the words.
        """


@dataclass(frozen=True)
class OutputsOf:
    """The rows of another cell.

    Attributes:
        setting: The setting whose samples they are of.
        node: What they are: its outputs (empty), or its ``"image_embeddings"``.
        by: The model of the cell; empty for the model under test.
    """

    setting: str
    node: str = ""
    by: str = ""

    @property
    def name(self) -> str:
        """The name of the cell's setting, or node."""
        return str(SettingReference(self.setting, node=self.node))


@dataclass(frozen=True)
class Rows:
    """One value for each sample of a cell, computed for it and stored as its outputs.

    Attributes:
        op: What they are.
        inputs: Stored rows that they are computed from, by role: embeddings, with which as `IMAGES` the model sees no
            image, or outputs, for an `OutputsOp`.
        ones: What the model needs for it, by role.
    """

    op: Op
    inputs: Mapping[str, OutputsOf] = field(default_factory=dict)
    ones: Mapping[str, Artifact] = field(default_factory=dict)

    @property
    def reads(self) -> Reads:
        """The input of a pass over them."""
        return Reads.ROWS if IMAGES in self.inputs else self.op.reads


class ItemOp(ABC):
    """The definition of items.

    Attributes:
        reads: What a pass over them reads.
        needs: The capability that it takes.
    """

    reads: ClassVar[Reads]
    needs: ClassVar[str]

    @abstractmethod
    def node(self, model_identity: str, definition: ModelDefinition, seed: int) -> str:
        """The name under which a model's values are stored: a digest of what determines them besides the request.

        Args:
            model_identity: The digest of model, weights and precision.
            seed: The run's ``--seed``.
        """


@dataclass(frozen=True)
class Items:
    """One value for each different request that a task makes of its samples and their outputs.

    Attributes:
        op: What they are.
        requests: Lists the requests of a setting's cell, from its samples and stored values.
        by: The model that answers; empty for the model under test.
    """

    op: ItemOp
    requests: Callable[[EvalSetting, Values], Sequence[Request]]
    by: str = ""


@dataclass(frozen=True)
class Built:
    """The requirements of a task on a cell.

    Attributes:
        outputs: The outputs of its evaluation.
        inputs: What they are scored with, by role; requests may use the values of the roles before.
    """

    outputs: Rows | OutputsOf
    inputs: Mapping[str, Items | OutputsOf] = field(default_factory=dict)
