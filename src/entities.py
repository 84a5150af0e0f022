"""The store's inputs and results: plain frozen values without database sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from testbed.samples import DatasetInfo as DatasetInfo
from testbed.samples import SampleColumns as SampleColumns
from testbed.samples import SampleInfo as SampleInfo
from testbed.samples import groups_of as groups_of
from testbed.samples import targets_of as targets_of

if TYPE_CHECKING:
    import numpy as np

Status = Literal["running", "complete", "failed", "unsupported"]
Origin = Literal["run", "derived", "imported", "published"]
PUBLISHED: Origin = "published"
ELSEWHERE = ("imported", PUBLISHED)  # origins of numbers that were not computed in this store
Better = Literal["higher", "lower", "neither"]
Kind = Literal["model", "eval setting"]  # of a definition

OVERALL = "overall"
FRACTION = "fraction"
JUDGE_SLICE = "judge"  # prefix of the slices of the metric `unread` that give the reasons of a judge without a verdict
# The share of the outputs for which a model gave no finite numbers; absent where all are finite.
NOT_FINITE = "not_finite"
# The share of the samples that a model refused, absent where it refused none; and the prefix of its slices, which give
# the reasons.
REFUSED, REASON_SLICE = "refused", "reason"
REMARKS = "remarks"  # in the environment of an evaluation: lines about its outputs
MEAN_PROBABILITY = "mean_probability"  # how a group of classes has one logit, other than by its largest
TEXTS = "texts"  # its slice for the embeddings of texts
REFERENCE = "reference"  # in the environment of an evaluation: the file that its model's short name stands for
CHECKPOINT = "checkpoint"  # in the environment of an evaluation: which step of which training run its model is


@dataclass(frozen=True)
class TrainingCheckpoint:
    """A model on its way through a training run.

    Attributes:
        run: The folder of the training run.
        step: Its progress, counted in ``unit``.
        unit: ``"step"``, or ``"epoch"`` where only these are known.
        epoch: The epoch, if it is known.
    """

    run: str
    step: int
    unit: str = "step"
    epoch: int | None = None

    @property
    def label(self) -> str:
        """For people, such as ``epoch 3``."""
        return f"{self.unit} {self.step:,}"


@dataclass(frozen=True)
class Metric:
    """One number of an evaluation; `testbed.metric_specs.MetricSpec.metric` makes one.

    Attributes:
        name: Such as ``top1``.
        value: A fraction in [0, 1] for rates; None if undefined.
        n: The number of samples.
        stderr: The standard error of the value, in its unit.
        slice: ``overall``, or the slice of the samples.
        unit: ``fraction``, or another unit; empty if it has none.
        scorer: The scorer that computed it, with its version.
        published: The text of the number in the table that it was imported from.
        better: As the further fields to ``zero_one``, what the metric declares; see `testbed.metric_specs.MetricSpec`.
        clusters: The effective number of clusters that the samples come in, see
            `testbed.metrics.inference.clusters.effective_clusters`; None if each is alone, or it is not known.
    """

    name: str
    value: float | None
    n: int | None = None
    stderr: float | None = None
    slice: str = OVERALL
    unit: str = FRACTION
    scorer: str = ""
    published: str | None = None
    better: Better | None = None
    lowest: float | None = None
    highest: float | None = None
    headline: int = 0
    zero_one: bool = False
    clusters: int | None = None


@dataclass(frozen=True)
class Score:
    """The value of one score for every sample, in their order: array of shape [n].

    The further fields are those of `Metric`; `testbed.metric_specs.MetricSpec.score` makes one.
    """

    name: str
    values: np.ndarray[Any, Any]
    scorer: str = ""
    unit: str = ""
    better: Better | None = None
    lowest: float | None = None
    highest: float | None = None
    headline: int = 0
    zero_one: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """A row of the view ``results``: one visible metric of one cell."""

    model: str
    eval_setting: str
    metric: str
    slice: str
    value: float | None
    n: int | None
    stderr: float | None
    unit: str
    scorer: str
    origin: Origin
    model_type: str | None
    dtype: str | None
    sample_limit: int | None
    random_weights: bool
    evaluation_id: int
    completed_at: datetime | None
    published: str | None = None
    better: Better | None = None
    lowest: float | None = None
    highest: float | None = None
    headline: int = 0
    zero_one: bool = False
    clusters: int | None = None


@dataclass(frozen=True)
class ClaimSource:
    """A file of published values.

    Attributes:
        name: Such as ``timm``; its files have it in common.
        repository: ``owner/name``; empty if it is not known, as are further fields.
        revision: The commit.
        path: In the repository, or the file's name.
        sha256: The digest of the file.
        licence: As SPDX names it.
        date: The date of the commit, as ``2026-06-27``.
        form: The recognised form of the file.
        rows: The rows or records in the file.
        left_out: Column → the number of its values that are not claims, such as numbers of parameters.
        place: The position among the sources: for several claims about one number, results show the first one's.
    """

    name: str
    path: str
    sha256: str
    form: str
    repository: str = ""
    revision: str = ""
    licence: str = ""
    date: str = ""
    rows: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    place: int = 0

    @property
    def file(self) -> str:
        """The file with its commit and the date of it, for people."""
        told = f"{self.path} at {self.revision[:7]}" if self.revision else self.path
        return f"{told} of {self.date}" if self.date else told


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that somebody published.

    Attributes:
        model: testbed's name of the model, or the publisher's where ``why`` says so.
        eval_setting: The eval setting, likewise.
        metric: Such as ``top1``.
        value: As `Metric.value`: a fraction for rates.
        unit: As `Metric.unit`.
        published: The number as it is printed in the file.
        row: Its place in the file: the row or the record.
        column: Its column or key.
        slice: As `Metric.slice`.
        n: The number of samples, if the file has it.
        stderr: The standard error of the value, in its unit, if the file has it.
        better: As the further fields to ``zero_one``, what the metric declares.
        protocol: The conditions of the measurement in the file: image size, crop, split, revision, …
        why: The reason why the model or the setting is not one of testbed's; None if both are.
        source: The file; None before it is stored.
    """

    model: str
    eval_setting: str
    metric: str
    value: float
    unit: str
    published: str
    row: str
    column: str
    slice: str = OVERALL
    n: int | None = None
    stderr: float | None = None
    better: Better | None = None
    lowest: float | None = None
    highest: float | None = None
    headline: int = 0
    zero_one: bool = False
    protocol: dict[str, str] = field(default_factory=dict)
    why: str | None = None
    source: ClaimSource | None = None


@dataclass(frozen=True)
class StoredDefinition:
    """A stored model or eval setting."""

    id: int
    name: str
    hidden: bool
    evaluations: int = 0
    model_type: str | None = None
    parent: str | None = None


@dataclass(frozen=True)
class ModelFacts:
    """The store's facts about a model.

    Attributes:
        parameters: The number of its network's parameters, once it was loaded here.
        since: The time when it came into the store.
    """

    name: str
    model_type: str | None
    parameters: int | None
    since: datetime


@dataclass(frozen=True)
class CellRecord:
    """The record that the store writes when an evaluation begins.

    Attributes:
        identity: The content of the fingerprint. Parts that are dictionaries (the model, the computation of outputs,
            the scoring) are stored once and shared by evaluations.
    """

    model: str
    eval_setting: str
    fingerprint: str
    forward_fingerprint: str | None = None
    size: int | None = None
    sample_limit: int | None = None
    dtype: str | None = None
    random_weights: bool = False
    origin: Origin = "run"
    derived_from: int | None = None
    identity: dict[str, Any] | None = None
    environment: dict[str, Any] | None = None
    source: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """A stored evaluation.

    Attributes:
        identity: The content of the fingerprint, large parts as digests; `Store.evaluations.identity` has it in full.
        run_id: The run that was the last to begin it, if that is known.
    """

    id: int
    model: str
    eval_setting: str
    fingerprint: str
    forward_fingerprint: str | None
    status: Status
    origin: Origin
    dataset_id: int | None
    derived_from: int | None
    size: int | None
    sample_limit: int | None
    dtype: str | None
    random_weights: bool
    error: str | None
    source: str | None
    created_at: datetime
    completed_at: datetime | None
    current_at: datetime | None
    hidden: bool
    environment: dict[str, Any] | None = field(default=None, compare=False)
    identity: dict[str, Any] | None = field(default=None, compare=False)
    run_id: int | None = field(default=None, compare=False)

    @property
    def root(self) -> int:
        """The evaluation with its outputs: itself, or the one it is derived from."""
        return self.id if self.derived_from is None else self.derived_from


@dataclass(frozen=True)
class StoredRecord:
    """The files and versions that an evaluation was computed from, besides its identity.

    Attributes:
        content: A record from `testbed.provenance.manifest`.
        metrics: True if it is valid for the metrics, not only for the outputs.
        key: The digest of its content.
    """

    content: dict[str, Any]
    metrics: bool
    created_at: datetime
    key: str


def are_new(names: Sequence[str]) -> str:
    """A line about new metrics; empty without any."""
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} new" if names else ""


def current(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """The reported evaluations among the complete visible evaluations of one cell, as in the view ``results``.

    These are, with all samples and trained weights if there is one, that which a run found last to be today's, and
    the latest imported one.
    """
    chosen: dict[bool, Evaluation] = {}
    for evaluation in evaluations:
        held = chosen.get(evaluation.origin == "imported")
        if held is None or _precedence(evaluation) > _precedence(held):
            chosen[evaluation.origin == "imported"] = evaluation
    return [chosen[imported] for imported in (False, True) if imported in chosen]


def _precedence(evaluation: Evaluation) -> tuple[Any, ...]:
    return (not evaluation.random_weights, evaluation.sample_limit is None, evaluation.current_at, evaluation.id)


@dataclass(frozen=True)
class Chunk:
    """Outputs of one kind for the samples start … start + len(values) - 1, to be stored.

    Attributes:
        values: Array of shape [count, …], as for `payloads.encode`.
    """

    evaluation_id: int
    kind: str
    start: int
    values: Any
