"""The cells of a run: each model on each setting, and the action planned for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from testbed.data.source import Source
from testbed.entities import DatasetInfo, Evaluation
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity import digest
from testbed.models.model_base import ModelDefinition
from testbed.models.weights_base import Weights
from testbed.tasks.generation_base import GenerationTask
from testbed.tasks.task_base import get_task


class Action(StrEnum):
    """What a run does with a cell."""

    DONE = "done"
    DERIVE = "derive"
    SCORE = "score"
    RUN = "run"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


@dataclass(frozen=True)
class OpenedModel:
    """A model whose weights are known.

    Attributes:
        weights: None if not downloaded yet (a dry run downloads nothing).
        identity: A digest of definition and weights; None if the weights are not downloaded yet.
        files: The source files of the definition.
    """

    definition: ModelDefinition
    weights: Weights | None
    description: dict[str, Any]
    identity: str | None
    files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OpenedSetting:
    """A setting whose samples are known.

    Attributes:
        source_key: Equal for settings that read the same data set.
        positions: The evaluated positions of the source, in order.
        dataset: The samples at these positions.
        files: The source files of the data set's definition.
    """

    setting: EvalSetting
    source: Source
    source_key: str
    positions: Sequence[int]
    dataset: DatasetInfo
    files: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Need:
    """Image embeddings that a cell reads from the store.

    Attributes:
        opened: The setting whose images are embedded, and its samples.
        source: The stored evaluation with the embeddings, or the cell of this run that computes them.
    """

    opened: OpenedSetting
    source: Evaluation | Cell


@dataclass(frozen=True)
class Encoder:
    """Who embeds the texts that a cell is scored with.

    Attributes:
        model: The name of the model: the cell's own, or a judge.
        node: The name under which its embeddings are stored; empty while its weights are missing.
        language: The language of the texts.
    """

    model: str
    node: str
    language: str

    @property
    def key(self) -> str:
        """Equal for cells whose texts are embedded together."""
        return self.node or f"{self.model}/{self.language}"


@dataclass
class Cell:
    """One model on one setting.

    Attributes:
        action: What the run does with it.
        reason: Why it is unsupported or failed; for a run, a remark.
        fingerprint: The digest of everything that determines its numbers.
        forward: The digest of everything that determines the outputs of a sample.
        identity: The content of the digests.
        stored: The stored evaluation, complete or not.
        source: For a derived or scored cell, the stored evaluation or the cell of this run whose outputs it reuses.
        partly: For a cell that is run, stored evaluations that have the outputs of some of its samples.
        needs: The image embeddings that it reads instead of images, by role.
        scorer: The judge, for a cell that is scored by a model.
        encoder: The model that embeds texts, for a cell that is scored with such embeddings.
        kept: Reuse stored outputs despite ``--override``: an implicit dependency.
        files: The source files of its definitions.
        older: A stored evaluation with the same names whose identity has an older scheme.
    """

    model: str
    setting: str
    action: Action = Action.RUN
    reason: str = ""
    opened_model: OpenedModel | None = None
    opened_setting: OpenedSetting | None = None
    fingerprint: str | None = None
    forward: str | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    stored: Evaluation | None = None
    source: Evaluation | Cell | None = None
    partly: list[Evaluation] = field(default_factory=list)
    needs: dict[str, Need] = field(default_factory=dict)
    scorer: OpenedModel | None = None
    encoder: Encoder | None = None
    kept: bool = False
    files: set[str] = field(default_factory=set)
    older: Evaluation | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.model} on {self.setting}"

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.opened_setting.positions) if self.opened_setting else 0

    @property
    def generates(self) -> bool:
        """Whether its model generates text."""
        assert self.opened_setting is not None
        return isinstance(get_task(self.opened_setting.setting.task), GenerationTask)

    @property
    def model_identity(self) -> str:
        """The digest of model, weights and precision: the key of cached artifacts of the model."""
        return model_identity(self.identity)


def weights_identity(description: Mapping[str, Any], weights: str | None) -> str:
    """The digest of a model's definition and weights."""
    return digest([description, weights])


def model_identity(identity: Mapping[str, Any]) -> str:
    """The digest of model, weights and precision in the identity of a cell."""
    model = identity["model"]
    return digest([weights_identity(model["spec"], model["weights"]), identity["dtype"]])
