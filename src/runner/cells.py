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
from testbed.runner.options import RunOptions
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


class PassKind(StrEnum):
    """What a pass reads: images, stored image embeddings, what generating models are shown, or texts to be embedded."""

    IMAGES = "images"
    EMBEDDINGS = "embeddings"
    MESSAGES = "messages"
    TEXTS = "texts"


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
        needs: The image embeddings that it takes instead of seeing images, by role.
        scorer: For a cell that is scored by a model, that model.
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
    needs: dict[str, Need] = field(default_factory=dict)
    scorer: OpenedModel | None = None
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


@dataclass(frozen=True)
class PassCell:
    """A cell of a pass, as workers need it.

    Attributes:
        evaluation_id: Where its outputs go.
        model_identity: The digest of model, weights and precision, for what is prepared.
        needs: Role → the ids of the evaluation that has the image embeddings, and of the data set of the samples.
    """

    evaluation_id: int
    model: str
    setting: str
    model_identity: str
    needs: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Pass:
    """Cells that read the same pixels: each image is decoded and transformed once for all of them.

    Or one cell that reads something else, see ``kind``.

    Attributes:
        id: Its place among the passes of the run.
        cells: The cells, of one model or of several with the same transform.
        source: The samples; None where they are not read.
        positions: The positions of the source, in the order of the samples.
        targets: The target of each sample, for perturbations that ask for it.
        batch_size: Images at once.
        chunk: Samples whose outputs are stored together; a multiple of the batch size, so that the batches of a range
            are the same whether or not earlier ranges were stored before.
        kind: What it reads. A pass on embeddings or on messages has one cell; one on texts has all cells of a scorer.
        outputs: Whether it makes outputs at all; else something is prepared, and that is all.
        texts: The texts of a pass on texts.
        encoder: The name under which the embeddings of these texts are stored.
        language: The language of these texts.
    """

    id: int
    cells: tuple[PassCell, ...]
    source: Source | None
    positions: Sequence[int]
    targets: Sequence[Any]
    batch_size: int
    chunk: int
    kind: PassKind = PassKind.IMAGES
    outputs: bool = True
    texts: Sequence[str] = ()
    encoder: str = ""
    language: str = "en"

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the pass, each once."""
        return tuple(dict.fromkeys(cell.model for cell in self.cells))

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings of the pass, each once."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells))

    @property
    def unit(self) -> str:
        """What its samples are, for people."""
        return "samples" if self.kind is PassKind.MESSAGES else str(self.kind)

    @property
    def label(self) -> str:
        """For people: what the pass is about."""
        return f"{_some(self.models, 'models')} × {_some(self.settings, 'settings')}"


@dataclass(frozen=True)
class Job:
    """What every worker of a run knows.

    Attributes:
        db_url: The store, in full: a worker must not depend on a variable or a working folder of its own.
        data_workers: Data-loading processes for each worker.
        threads: Threads of torch in each worker.
        check: For a run that computes stored samples again, what it needs for that.
        anew: Models for which what is prepared (heads, probes, embeddings of texts) is made anew, though it is stored.
    """

    options: RunOptions
    db_url: str
    passes: tuple[Pass, ...]
    data_workers: int
    threads: int
    check: Check | None = None
    anew: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Check:
    """That a run computes stored samples again, to compare them.

    Attributes:
        db_url: The store that has what was prepared, such as zero-shot heads.
        classes: Of a stored zero-shot head so many classes are made again.
    """

    db_url: str
    classes: int


@dataclass
class Task:
    """A range of samples of a pass, for some of its cells: what a worker does at a time.

    Attributes:
        cells: Evaluation ids of the cells that still lack this range.
        attempts: How often it was begun by workers that died.
    """

    id: int
    pass_id: int
    start: int
    stop: int
    cells: tuple[int, ...]
    attempts: int = 0

    @property
    def count(self) -> int:
        """The number of samples."""
        return self.stop - self.start


def _some(names: Sequence[str], noun: str) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} {noun}"
