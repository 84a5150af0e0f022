"""The tables, as SQLAlchemy 2 classes. They are private to `testbed.db`; the store returns `entities`.

docs/store.md explains them for people who query the database directly.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    case,
    false,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, column_property, mapped_column

from testbed.db.columns import Prose, UtcDateTime

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    """Base class of all tables: names of constraints, and storage of Python types."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {  # noqa: RUF012 -- SQLAlchemy reads a plain class attribute
        dict[str, Any]: JSON(none_as_null=True),
        list[str]: JSON(none_as_null=True),
        list[int]: JSON(none_as_null=True),
        datetime: UtcDateTime(),
    }


def now() -> datetime:
    """The current time, in UTC."""
    return datetime.now(UTC)


class ModelRow(Base):
    """A model, by name; the identity of each evaluation describes it."""

    __tablename__ = "models"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(512), unique=True)
    model_type: Mapped[str | None] = mapped_column(String(128))
    parameters: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime] = mapped_column(default=now)
    hidden_at: Mapped[datetime | None]


class EvalSettingRow(Base):
    """An eval setting, by name; or a node of its graph whose outputs are stored separately."""

    __tablename__ = "eval_settings"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(512))
    node: Mapped[str] = mapped_column(String(32), default="")  # such as image_embeddings; empty for the setting itself
    parent: Mapped[str | None] = mapped_column(String(512))
    task: Mapped[str | None] = mapped_column(String(64))
    created_at: Mapped[datetime] = mapped_column(default=now)
    hidden_at: Mapped[datetime | None]
    full_name: Mapped[str] = column_property(case((node == "", name), else_=name + "." + node))

    __table_args__ = (UniqueConstraint("name", "node"),)


class DatasetRow(Base):
    """An ordered list of samples, identified by the content of all of them."""

    __tablename__ = "datasets"

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(512))
    size: Mapped[int]
    class_names: Mapped[list[str] | None]
    created_at: Mapped[datetime] = mapped_column(default=now)


class SampleRow(Base):
    """One sample of a data set, without its pixels or text."""

    __tablename__ = "samples"

    dataset_id: Mapped[int] = mapped_column(ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    sample_id: Mapped[str] = mapped_column(Text)
    digest: Mapped[str] = mapped_column(String(64))
    target: Mapped[Any | None] = mapped_column(JSON(none_as_null=True))
    group_name: Mapped[str | None] = mapped_column(Text)
    slices: Mapped[dict[str, Any] | None]


class DefinitionRow(Base):
    """The content of a digest in an evaluation's identity: a model, a way to get outputs, or a way to score them."""

    __tablename__ = "definitions"

    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    content: Mapped[dict[str, Any]]


class EvaluationRow(Base):
    """One model on one eval setting: a cell, finished or running."""

    __tablename__ = "evaluations"

    id: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[int] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"))
    eval_setting_id: Mapped[int] = mapped_column(ForeignKey("eval_settings.id", ondelete="CASCADE"), index=True)
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("datasets.id"), index=True)
    derived_from_id: Mapped[int | None] = mapped_column(ForeignKey("evaluations.id"), index=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    forward_fingerprint: Mapped[str | None] = mapped_column(String(64), index=True)
    status: Mapped[str] = mapped_column(String(16))
    origin: Mapped[str] = mapped_column(String(16))
    size: Mapped[int | None]
    sample_limit: Mapped[int | None]
    run_id: Mapped[int | None] = mapped_column(index=True)
    dtype: Mapped[str | None] = mapped_column(String(16))
    random_weights: Mapped[bool] = mapped_column(Boolean, default=False)
    identity: Mapped[dict[str, Any] | None]
    environment: Mapped[dict[str, Any] | None]
    source: Mapped[str | None] = mapped_column(Prose)
    error: Mapped[str | None] = mapped_column(Prose)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)
    completed_at: Mapped[datetime | None]
    current_at: Mapped[datetime | None]  # when a run last matched it to the current definition
    hidden_at: Mapped[datetime | None]

    __table_args__ = (
        # Removing hides, and a hidden evaluation must not prevent running the cell again. (For Postgres, `schema`
        # adds the condition; adding it here would import that dialect for every lookup in a SQLite file.)
        Index(
            "uq_evaluations_visible_cell",
            "model_id",
            "eval_setting_id",
            "fingerprint",
            unique=True,
            sqlite_where=text("hidden_at IS NULL"),
        ),
    )


class RunRow(Base):
    """A run: its machine, and whether it is still active."""

    __tablename__ = "runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    machine: Mapped[str] = mapped_column(Prose)
    place: Mapped[str] = mapped_column(String(64))  # namespace of its process id: a boot, a container
    process: Mapped[int]
    process_start: Mapped[str] = mapped_column(String(64))
    command: Mapped[str] = mapped_column(Prose)
    started_at: Mapped[datetime]
    beat_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    outcome: Mapped[str | None] = mapped_column(String(16))


class LeaseRow(Base):
    """A range of samples of an evaluation that a run computes, so that no other one does."""

    __tablename__ = "leases"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    start: Mapped[int] = mapped_column(primary_key=True)
    stop: Mapped[int]
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)


class ItemLeaseRow(Base):
    """The same for a value keyed by content."""

    __tablename__ = "item_leases"

    node: Mapped[str] = mapped_column(String(64), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)


class OutputChunkRow(Base):
    """A model's outputs on a contiguous range of samples: an array, here or at a URI."""

    __tablename__ = "output_chunks"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32), primary_key=True)
    start: Mapped[int] = mapped_column(primary_key=True)
    count: Mapped[int]
    dtype: Mapped[str] = mapped_column(String(16))
    shape: Mapped[list[int]]
    checksum: Mapped[str] = mapped_column(String(64))
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    uri: Mapped[str | None] = mapped_column(Text)
    payload: Mapped[bytes | None] = mapped_column(LargeBinary)


class SampleErrorRow(Base):
    """A sample that could not be read; it counts as wrong."""

    __tablename__ = "sample_errors"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    error: Mapped[str] = mapped_column(Prose)


class ScoreRow(Base):
    """The per-sample values of one score of an evaluation, in the order of its samples."""

    __tablename__ = "scores"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    scorer: Mapped[str] = mapped_column(String(128), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    count: Mapped[int]
    dtype: Mapped[str] = mapped_column(String(16))
    checksum: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes] = mapped_column(LargeBinary)
    unit: Mapped[str] = mapped_column(String(32), default="", server_default=text("''"))
    better: Mapped[str | None] = mapped_column(String(8))
    lowest: Mapped[float | None] = mapped_column(Double)
    highest: Mapped[float | None] = mapped_column(Double)
    headline: Mapped[int] = mapped_column(default=0, server_default="0")
    zero_one: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())


class MetricRow(Base):
    """One number of an evaluation. An undefined value (top-5 of three classes) is NULL.

    The columns from ``better`` to ``zero_one`` are the metric's declaration, here and in `ScoreRow`.
    """

    __tablename__ = "metrics"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    scorer: Mapped[str] = mapped_column(String(128), primary_key=True)
    name: Mapped[str] = mapped_column(String(256), primary_key=True)
    slice: Mapped[str] = mapped_column(String(256), primary_key=True)
    value: Mapped[float | None] = mapped_column(Double)
    unit: Mapped[str] = mapped_column(String(32))
    n: Mapped[int | None]
    stderr: Mapped[float | None] = mapped_column(Double)
    published: Mapped[str | None] = mapped_column(Text)
    better: Mapped[str | None] = mapped_column(String(8))
    lowest: Mapped[float | None] = mapped_column(Double)
    highest: Mapped[float | None] = mapped_column(Double)
    headline: Mapped[int] = mapped_column(default=0, server_default="0")
    zero_one: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())
    clusters: Mapped[int | None]


class ArtifactRow(Base):
    """An array prepared for a model and a setting, such as a zero-shot head, keyed by content."""

    __tablename__ = "artifacts"

    fingerprint: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    spec: Mapped[dict[str, Any] | None]
    dtype: Mapped[str] = mapped_column(String(16))
    shape: Mapped[list[int]]
    checksum: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(default=now)


class ItemValueRow(Base):
    """A value keyed by content: a node's output for an item, such as a model's embedding of a text."""

    __tablename__ = "item_values"

    node: Mapped[str] = mapped_column(String(64), primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    dtype: Mapped[str] = mapped_column(String(16))
    shape: Mapped[list[int]]
    checksum: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes] = mapped_column(LargeBinary)


class EvaluationRecordRow(Base):
    """The inputs of an evaluation in addition to its identity; an evaluation can be valid under several."""

    __tablename__ = "evaluation_records"

    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True)
    record: Mapped[str] = mapped_column(String(64), primary_key=True)  # a digest in `definitions`
    metrics: Mapped[bool] = mapped_column(Boolean)
    created_at: Mapped[datetime] = mapped_column(default=now)


class CertificateRow(Base):
    """A comparison of stored outputs with recomputed outputs of the same samples."""

    __tablename__ = "certificates"

    id: Mapped[int] = mapped_column(primary_key=True)
    evaluation_id: Mapped[int] = mapped_column(ForeignKey("evaluations.id", ondelete="CASCADE"), index=True)
    samples: Mapped[int]
    flips: Mapped[int | None]
    differing: Mapped[int]
    largest_difference: Mapped[float | None] = mapped_column(Double)
    tolerance: Mapped[float | None] = mapped_column(Double)
    same_metrics: Mapped[bool | None] = mapped_column(Boolean)
    because: Mapped[list[str]]
    environment: Mapped[dict[str, Any] | None]
    created_at: Mapped[datetime] = mapped_column(default=now)


class ClaimSourceRow(Base):
    """A file of published values: its origin, and a summary of its contents."""

    __tablename__ = "claim_sources"

    id: Mapped[int] = mapped_column(primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64), unique=True)
    name: Mapped[str] = mapped_column(String(128))
    repository: Mapped[str] = mapped_column(String(256))
    revision: Mapped[str] = mapped_column(String(64))
    path: Mapped[str] = mapped_column(String(1024))
    sha256: Mapped[str] = mapped_column(String(64))
    licence: Mapped[str] = mapped_column(String(64))
    date: Mapped[str] = mapped_column(String(32))
    form: Mapped[str] = mapped_column(String(512))
    rows: Mapped[int]
    left_out: Mapped[dict[str, Any] | None]  # column → number of values that are not claims
    digest: Mapped[str] = mapped_column(String(64))  # of the claims
    place: Mapped[int]  # among the sources, whose first one's claims are preferred


class ClaimRow(Base):
    """A published value. A cell can have several, and none replaces another."""

    __tablename__ = "claims"

    source_id: Mapped[int] = mapped_column(ForeignKey("claim_sources.id", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(String(512), index=True)
    eval_setting: Mapped[str] = mapped_column(String(512), index=True)
    metric: Mapped[str] = mapped_column(String(256))
    slice: Mapped[str] = mapped_column(String(256))
    value: Mapped[float] = mapped_column(Double)
    unit: Mapped[str] = mapped_column(String(32))
    published: Mapped[str] = mapped_column(Text)
    n: Mapped[int | None]
    stderr: Mapped[float | None] = mapped_column(Double)
    better: Mapped[str | None] = mapped_column(String(16))
    lowest: Mapped[float | None] = mapped_column(Double)
    highest: Mapped[float | None] = mapped_column(Double)
    headline: Mapped[int]
    zero_one: Mapped[bool] = mapped_column(Boolean)
    protocol: Mapped[dict[str, Any] | None]
    file_row: Mapped[str] = mapped_column(String(128))
    file_column: Mapped[str] = mapped_column(String(256))
    why: Mapped[str | None] = mapped_column(String(256))  # why testbed has no such model or setting
    preferred: Mapped[bool] = mapped_column(Boolean)  # whether this claim about a number is in the view `results`
