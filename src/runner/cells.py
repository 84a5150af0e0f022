"""The cells of a run: each model on each setting, what is known of it, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from testbed.data.source import Source
from testbed.db.entities import DatasetInfo, Evaluation
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity import digest
from testbed.models.model_base import ModelDefinition
from testbed.models.weights_base import Weights
from testbed.tasks.generation_base import GenerationTask
from testbed.tasks.task_base import get_task


class Action(StrEnum):
    """What is to be done about a cell."""

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
        weights: None when they are not here yet (a dry run fetches nothing).
        identity: A digest of definition and weights; None when the weights are not here yet.
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
        positions: The positions of the source that are evaluated, in order.
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
    """Image embeddings that a cell takes from the store.

    Attributes:
        opened: The setting whose images they are of, and its samples.
        source: The stored evaluation that has them, or the cell of this run that will.
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
        action: What is to be done.
        reason: Why it is unsupported or has failed; for a run, what is worth knowing.
        fingerprint: The digest of everything that decides its numbers.
        forward: The digest of everything that decides the outputs of a sample.
        identity: What the digests were made of.
        stored: The evaluation that is stored, complete or not.
        source: For a cell that is derived or scored, the stored evaluation or the cell of this run whose outputs it
            takes.
        partly: For a cell that is run, stored evaluations that have the outputs of some of its samples.
        needs: The image embeddings that it takes instead of seeing images, by role.
        scorer: For a cell that is scored by a model, that model.
        encoder: For a cell that is scored with embeddings of texts, who embeds them.
        kept: Whether what is stored of it is used even if stored evaluations are to be run again: nobody asked for it.
        files: The source files of its definitions.
        older: A stored evaluation of the same names whose identity an older scheme describes.
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
        """Whether its model answers messages."""
        assert self.opened_setting is not None
        return isinstance(get_task(self.opened_setting.setting.task), GenerationTask)

    @property
    def model_identity(self) -> str:
        """The digest of model, weights and precision, by which what is prepared for it is found."""
        return model_identity(self.identity)


def weights_identity(description: Mapping[str, Any], weights: str | None) -> str:
    """The digest of a model's definition and weights."""
    return digest([description, weights])


def model_identity(identity: Mapping[str, Any]) -> str:
    """The digest of model, weights and precision in what a cell's fingerprint was made of."""
    model = identity["model"]
    return digest([weights_identity(model["spec"], model["weights"]), identity["dtype"]])
