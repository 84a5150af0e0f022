"""The cells of a run: each model on each setting, and the action planned for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from testbed.data.class_lists import differences
from testbed.data.left_out import LeftOut, merged
from testbed.data.source import Source
from testbed.entities import DatasetInfo, Evaluation
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.nodes import Built, Items, Reads, Rows
from testbed.identity.fingerprints import model_identity, precise_identity
from testbed.models.base.capability import DEVICE
from testbed.models.base.class_reading import ClassReading
from testbed.models.base.weights import Weights
from testbed.models.model_base import ModelDefinition
from testbed.registry.references import SettingReference

LEFT_OUT = "left_out"  # of the environment of an evaluation

LeftOuts = Mapping[str, Sequence[LeftOut]]


class Action(StrEnum):
    """The action of a run for a cell."""

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
        parts: The models that it is made of, by name.
    """

    definition: ModelDefinition
    weights: Weights | None
    description: dict[str, Any]
    identity: str | None
    files: frozenset[str] = frozenset()
    parts: Mapping[str, OpenedModel] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedSetting:
    """A setting whose samples are known.

    Attributes:
        source_key: Equal for settings that read the same data set.
        positions: The evaluated positions of the source, in order.
        dataset: The samples at these positions.
        files: The source files of the data set's definition.
        remarks: What is lost where the samples are read, and which of them are the same.
        read: How its classes are read as outputs of the model; None if their order decides.
    """

    setting: EvalSetting
    source: Source
    source_key: str
    positions: Sequence[int]
    dataset: DatasetInfo
    files: frozenset[str] = frozenset()
    remarks: tuple[LeftOut, ...] = ()
    read: ClassReading | None = None

    @cached_property
    def distinct(self) -> int:
        """The number of different samples."""
        return len(set(self.positions))


@dataclass(frozen=True)
class Edge:
    """Rows that a cell takes from another cell."""

    cell: Cell
    dataset: DatasetInfo

    @property
    def holder(self) -> Evaluation | Cell:
        """Who has the rows: a stored evaluation, or a cell that this run computes."""
        return self.cell.holder


@dataclass(frozen=True)
class ItemNode:
    """Items that a cell is scored with.

    Attributes:
        role: Their role for the task.
        items: What they are.
        model: The name of the model that computes them: the cell's own, or a judge.
        node: The name under which they are stored; empty while its weights are missing.
        resource: What computing them takes, see `ModelDefinition`.
        together: How many requests a served model, or one that takes whole ranges, is given at the same time; None for
            other models.
    """

    role: str
    items: Items
    model: str
    node: str
    resource: str = DEVICE
    together: int | None = None

    @property
    def key(self) -> str:
        """Equal for cells whose items are computed together."""
        return self.node or f"{self.model}/{self.items.op}"


@dataclass
class Cell:
    """One model on one setting.

    Attributes:
        action: What the run does with it.
        reason: Why it is unsupported or failed; for a run, a remark.
        built: What its task needs.
        fingerprint: The digest of everything that determines its numbers.
        forward: The digest of everything that determines the outputs of a sample.
        identity: The content of the digests.
        stored: The stored evaluation, complete or not.
        source: For a cell whose outputs are those of another one: the stored evaluation, or the cell of this run.
        partly: For a cell that is run, stored evaluations that have the outputs of some of its samples.
        inputs: Rows of other cells that it is computed from or scored with, by role.
        items: Items that it is scored with, in order.
        judges: The judges: one for most settings that have any, several for a panel.
        files: The source files of its definitions.
        alike: A stored evaluation with the same names whose identity differs only in how code is written.
        left_out: What its data sets leave out, by the setting that has the samples.
        outdated: Whether its stored evaluation is set aside: it is computed from other outputs than those that count
            today, or its own are gone and another cell takes them.
        owned: Whether ``--override`` recomputes it: it was asked for, or embeds the images of what was.
    """

    model: str
    setting: str
    action: Action = Action.RUN
    reason: str = ""
    built: Built | None = None
    opened_model: OpenedModel | None = None
    opened_setting: OpenedSetting | None = None
    fingerprint: str | None = None
    forward: str | None = None
    identity: dict[str, Any] = field(default_factory=dict)
    stored: Evaluation | None = None
    source: Evaluation | Cell | None = None
    partly: list[Evaluation] = field(default_factory=list)
    inputs: dict[str, Edge] = field(default_factory=dict)
    items: list[ItemNode] = field(default_factory=list)
    judges: Sequence[OpenedModel] = ()
    files: set[str] = field(default_factory=set)
    alike: Evaluation | None = None
    left_out: LeftOuts = field(default_factory=dict)
    outdated: bool = False
    owned: bool = False

    @property
    def name(self) -> str:
        """For messages."""
        return f"{self.model} on {self.setting}"

    @property
    def size(self) -> int:
        """The number of samples."""
        return len(self.opened_setting.positions) if self.opened_setting else 0

    @property
    def rows(self) -> Rows | None:
        """The outputs that are computed for it; None if they are those of another cell by definition."""
        return self.built.outputs if self.built is not None and isinstance(self.built.outputs, Rows) else None

    @property
    def takes_outputs(self) -> bool:
        """Returns whether its outputs are computed from those of other cells."""
        return self.rows is not None and self.rows.reads is Reads.OUTPUTS

    @property
    def computed(self) -> bool:
        """Returns whether the run computes outputs for it."""
        return self.action is Action.RUN and self.rows is not None

    @property
    def holder(self) -> Evaluation | Cell:
        """Who has its outputs: a stored evaluation, or a cell that this run computes."""
        elsewhere = self.stored if self.action is Action.DONE else self.source
        return elsewhere or self

    @property
    def sources(self) -> list[Evaluation | Cell]:
        """The other cells and evaluations whose rows it takes."""
        taken = [self.source, *(edge.holder for edge in self.inputs.values())]
        return [each for each in taken if each is not None and each is not self]

    @property
    def model_identity(self) -> str:
        """The digest of model, weights and precision: the key of cached artifacts of the model."""
        opened = self.opened_model
        if opened is not None and opened.identity is not None:  # thousands of cells share it
            return precise_identity(opened.identity, self.identity["dtype"])
        return model_identity(self.identity)


@dataclass
class Plan:
    """The cells of a run and what is to be done about each.

    Attributes:
        cells: What was asked for.
        others: The other cells of the graph: those whose outputs these take.
        stale_candidates: Stored evaluations that it builds on and that a run checks first (of a dry run alone).
        passes: What a run reads, pass by pass (of a dry run alone).
    """

    cells: list[Cell] = field(default_factory=list)
    others: list[Cell] = field(default_factory=list)
    stale_candidates: list[Any] = field(default_factory=list)
    passes: list[Any] = field(default_factory=list)

    def of(self, *actions: Action) -> list[Cell]:
        """The cells with one of these actions, in order."""
        return [cell for cell in self.cells if cell.action in actions]

    def counts(self) -> dict[Action, int]:
        """Counts the cells by action."""
        counted = Counter(cell.action for cell in self.cells)
        return {action: counted[action] for action in Action if counted[action]}

    def needed(self) -> list[Cell]:
        """The cells whose outputs must be computed though nobody asked for them, those first that others take from."""
        asked = {id(cell) for cell in self.cells}
        found: dict[int, Cell] = {}

        def visit(cell: Cell) -> None:
            for source in cell.sources:
                if isinstance(source, Cell):
                    visit(source)
                    if id(source) not in asked:
                        found[id(source)] = source

        for cell in self.of(Action.RUN, Action.DERIVE, Action.SCORE):
            visit(cell)
        return list(found.values())

    def computed(self) -> list[Cell]:
        """All cells whose outputs are computed."""
        return [cell for cell in (*self.needed(), *self.cells) if cell.computed]

    def derived(self) -> list[Cell]:
        """The cells that take the outputs of another one."""
        return [cell for cell in self.of(Action.RUN, Action.DERIVE, Action.SCORE) if not cell.computed]


def left_out_of(own: OpenedSetting, others: Iterable[OpenedSetting]) -> LeftOuts:
    """Returns what is left out of the data sets of a cell, including those it is fitted on, by setting."""
    found = {_named(own): (*own.source.left_out, *own.remarks)}
    for other in others:
        differing = differences(own.dataset, other.dataset)
        found[_named(other)] = merged((*other.source.left_out, *other.remarks, *differing))
    return {name: each for name, each in found.items() if each}


def left_out_of_all(cells: Iterable[Cell]) -> LeftOuts:
    """Returns what is left out of the samples of cells, each data set once."""
    return {name: each for cell in cells for name, each in cell.left_out.items()}


def left_out_lines(found: LeftOuts) -> list[str]:
    """A line for each data set and reason, for people."""
    return [f"Data of {name}: {part}" for name, parts in found.items() for part in parts]


def left_out_as_object(found: LeftOuts) -> dict[str, list[dict[str, Any]]]:
    """For JSON: setting → what is left out."""
    return {name: [part.as_object() for part in parts] for name, parts in found.items()}


def _named(opened: OpenedSetting) -> str:
    return str(SettingReference.parse(opened.setting.image_set).setting)
