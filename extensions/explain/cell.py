"""The stored data of a cell for the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.db.store import Store
from testbed.entities import FRACTION, OVERALL, DatasetInfo, Evaluation, current
from testbed.errors import StoreError, TestbedError, UnknownNameError
from testbed.extensions.explain.stored_model import model_as_stored
from testbed.extensions.explain.table import (
    CALIBRATION,
    MEAN_PER_CLASS,
    NotApplicableError,
    Table,
    metric_of,
    right_classes,
)
from testbed.graph.stored import read_outputs
from testbed.registry.references import IMAGE_EMBEDDINGS
from testbed.stored_results.predictions import LOGITS, has_logits
from testbed.tasks.parts.logits import viewed_logits

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition
    from testbed.registry.catalog import Catalog


@dataclass
class EvaluatedCell:
    """An evaluation with its stored outputs.

    Attributes:
        evaluation: The reported evaluation.
        identity: The content of its fingerprint.
        dataset: Its samples.
        logits: Float array [n, C]: the model's output, before a restriction to some classes; [n, 0] for other tasks.
        class_sublist: The logits in use, in the order of the right classes; None for all.
        class_groups: Groups of logits; the largest of each counts.
        unreadable: The samples that could not be read.
    """

    store: Store
    catalog: Catalog
    evaluation: Evaluation
    identity: Mapping[str, Any]
    dataset: DatasetInfo
    logits: Array
    class_sublist: Sequence[int] | None = None
    class_groups: Sequence[Sequence[int]] | None = None
    unreadable: Sequence[int] = field(default=())

    @classmethod
    def open(cls, store: Store, catalog: Catalog, model: str, setting: str) -> EvaluatedCell:
        """Opens the reported evaluation of a model on a setting.

        Raises:
            UnknownNameError: If the store does not have one.
            StoreError: If its samples are not stored.
        """
        evaluation = reported(store, model, setting)
        if evaluation.dataset_id is None:
            raise StoreError(f"the store does not have the samples of {model} on {setting}")
        identity = store.evaluations.identity(evaluation)
        view, restricted = identity.get("view") or {}, bool(identity.get("forward", {}).get("restricted"))
        dataset = store.datasets.get(evaluation.dataset_id)
        classifies = has_logits(store, evaluation)
        logits = store.outputs.read(evaluation.id, LOGITS) if classifies else np.empty((len(dataset.samples), 0))
        return cls(
            store,
            catalog,
            evaluation,
            identity,
            dataset,
            logits,
            None if restricted else view.get("class_sublist"),
            view.get("class_groups"),
            sorted(store.outputs.errors(evaluation.id)),
        )

    def __len__(self) -> int:
        return len(self.dataset.samples)

    @property
    def classifies(self) -> bool:
        """True if there are logits; other tasks have only scores of samples."""
        return bool(self.logits.shape[1])

    @cached_property
    def right(self) -> Array:
        """The right classes of every sample; see `Table.right`."""
        return right_classes(self.dataset.targets)

    def table(self, metric: str, logits: Array | None = None, rows: Array | None = None) -> Table:
        """Returns a table as defined by the setting.

        Args:
            metric: The name of a metric: a share of right classes, a calibration error, or the mean of a stored score.
            logits: Float array [m, C]: other outputs; default the stored ones.
            rows: Integer array [m]: positions of these samples; default all.

        Raises:
            StoreError: If the metric is not one of these.
        """
        rows = np.arange(len(self)) if rows is None else rows
        calibration = self.classifies and metric == CALIBRATION
        kind = (1, False) if calibration else metric_of(metric) if self.classifies else None
        if kind is None:
            scores = self.scores(metric)
            if scores is None:
                raise StoreError(
                    f"{metric!r} of {self.evaluation.model} on {self.evaluation.eval_setting} is neither a share of"
                    " right"
                    " answers nor the mean of a stored score; testbed explain supports top1, top5 (or"
                    f" another k), {MEAN_PER_CLASS}, {CALIBRATION}, and accuracies of other tasks"
                )
            return Table(self.logits[rows], np.zeros((len(rows), 1), dtype=np.int64), rows, scores=scores[rows])
        logits = self.logits[rows] if logits is None else logits
        whole = None if self.class_sublist is None else logits
        k, by_class = kind
        return Table(self.viewed(logits), self.right[rows], rows, k, by_class, whole, calibration=calibration)

    def scores(self, metric: str, evaluation: Evaluation | None = None) -> Array | None:
        """The per-sample scores with a metric as their mean, from this evaluation or another one; None if missing."""
        of = evaluation or self.evaluation
        wanted = metric, OVERALL, FRACTION
        metrics = self.store.results.metrics(of.id)
        value = next((each.value for each in metrics if (each.name, each.slice, each.unit) == wanted), None)
        for scores in self.store.scores.read(of.id).values():
            counted = scores[np.isfinite(scores)]
            if value is not None and len(counted) and abs(float(np.mean(counted, dtype=np.float64)) - value) < 1e-6:
                return scores
        return None

    @cached_property
    def answers(self) -> Sequence[dict[str, Any] | None]:
        """The stored answers in text, or those that a judge scored."""
        return list(read_outputs(self.store, self.evaluation.id))

    @cached_property
    def turns(self) -> list[int]:
        """The number of turns of each sample's question."""
        return [1 if answer is None else 1 + len(answer.get("turns", ())) for answer in self.answers]

    def viewed(self, logits: Array) -> Array:
        """Restricts and groups logits as defined by the setting."""
        return viewed_logits(logits, self.class_sublist, self.class_groups, False, self.evaluation.eval_setting)

    @property
    def classes(self) -> int:
        """The number of logits in use.

        Raises:
            NotApplicableError: If the task is not classification.
        """
        if not self.classifies:
            raise NotApplicableError("the task is not classification")
        return int(self.viewed(self.logits[:1]).shape[1])

    # What is opened where an axis needs it ------------------------------------------------------------------------

    @cached_property
    def model(self) -> ModelDefinition:
        """The model's definition, with the preprocessing of the stored outputs.

        Raises:
            NotApplicableError: If it is no longer registered.
        """
        try:
            return model_as_stored(self.catalog.get_model(self.evaluation.model), self.identity)
        except TestbedError as error:
            raise NotApplicableError(f"the model cannot be opened: {error}") from error

    @cached_property
    def setting(self) -> EvalSetting:
        """The setting's definition.

        Raises:
            NotApplicableError: If it is no longer registered.
        """
        try:
            return self.catalog.get_eval_setting(self.evaluation.eval_setting)
        except TestbedError as error:
            raise NotApplicableError(f"the setting cannot be opened: {error}") from error

    @property
    def dtype(self) -> str:
        """The precision of the network; outputs may be stored at a lower one."""
        return (self.evaluation.dtype or "float32").split("/")[0]

    @property
    def random_seed(self) -> int | None:
        """The seed of an untrained network; None for trained weights."""
        if not self.evaluation.random_weights:
            return None
        seed = str(self.identity.get("model", {}).get("weights", "")).removeprefix("random:")
        return int(seed) if seed.isdigit() else 0

    @property
    def zero_shot(self) -> bool:
        """True if the logits come from a zero-shot head."""
        return bool(self.identity.get("forward", {}).get("prompts"))

    @cached_property
    def embeddings(self) -> Array:
        """The stored image embeddings of every sample: float array [n, D], not normalized.

        Raises:
            NotApplicableError: If they are not stored.
        """
        assert self.evaluation.dataset_id is not None
        if not self.zero_shot:
            raise NotApplicableError("no class prompts are involved")
        found = self.store.evaluations.find([self.evaluation.model], statuses=["complete"])
        model = self.identity.get("model")
        nodes = [
            item.id
            for item in found
            if item.eval_setting.endswith(f".{IMAGE_EMBEDDINGS}")
            and self.store.evaluations.identity(item).get("model") == model
        ]
        try:
            values, _ = self.store.outputs.read_values(self.evaluation.dataset_id, nodes, IMAGE_EMBEDDINGS)
        except StoreError as error:
            name = f"{self.evaluation.eval_setting}.{IMAGE_EMBEDDINGS}"
            raise NotApplicableError(
                f"image embeddings are not stored; testbed run {self.evaluation.model} --on {name} stores them"
            ) from error
        return values


def model_order(cell: EvaluatedCell) -> Array | None:
    """The position of each class among the model's own outputs; None if these are in the order of the classes."""
    columns = np.asarray(cell.identity.get("forward", {}).get("class_columns") or (), dtype=np.int64)
    if len(columns) != cell.classes or not np.array_equal(np.sort(columns), np.arange(len(columns))):
        return None
    return None if np.array_equal(columns, np.arange(len(columns))) else columns


def reported(store: Store, model: str, setting: str) -> Evaluation:
    """Returns the reported evaluation of a cell that was measured in this store.

    Raises:
        UnknownNameError: If it does not exist.
    """
    store.names.require("model", model)
    store.names.require("eval setting", setting)
    complete = store.evaluations.find([model], [setting], statuses=["complete"])
    found = [evaluation for evaluation in current(complete) if evaluation.origin != "imported"]
    if not found:
        raise UnknownNameError(
            f"the store has no complete evaluation of {model} on {setting}; testbed run {model} --on {setting} adds it"
        )
    return found[0]
