"""Converts between the store's values and the rows of its tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from testbed.db.payloads.encoding import encode
from testbed.db.tables import EvalSettingRow, EvaluationRow, ModelRow
from testbed.entities import CellRecord, Evaluation, Metric, SampleInfo, Score
from testbed.identity.describe import digest
from testbed.metric_specs import spec_of


def columns(record: CellRecord) -> dict[str, Any]:
    """The columns of a cell besides its names, its fingerprint and its status."""
    return {
        "forward_fingerprint": record.forward_fingerprint,
        "origin": record.origin,
        "size": record.size,
        "sample_limit": record.sample_limit,
        "dtype": record.dtype,
        "random_weights": record.random_weights,
        "identity": normalized(record.identity)[0],
        "environment": record.environment,
        "source": record.source,
    }


def normalized(identity: dict[str, Any] | None) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Returns an identity with its dictionaries replaced by digests, and rows for these."""
    if identity is None:
        return None, []
    small: dict[str, Any] = {}
    rows = []
    for kind, content in identity.items():
        if isinstance(content, dict):
            small[kind] = digest(content)
            rows.append({"digest": small[kind], "kind": kind, "content": content})
        else:
            small[kind] = content
    return small, sorted(rows, key=lambda row: row["digest"])


def with_names() -> Any:
    """Selects evaluations with the names of their model and their setting."""
    return (
        sa.select(EvaluationRow, ModelRow.name, EvalSettingRow.full_name)
        .join(ModelRow, ModelRow.id == EvaluationRow.model_id)
        .join(EvalSettingRow, EvalSettingRow.id == EvaluationRow.eval_setting_id)
    )


def entity(row: EvaluationRow, model: str, eval_setting: str) -> Evaluation:
    """The evaluation in a row, as a plain value."""
    return Evaluation(
        id=row.id,
        model=model,
        eval_setting=eval_setting,
        fingerprint=row.fingerprint,
        forward_fingerprint=row.forward_fingerprint,
        status=row.status,  # type: ignore[arg-type]
        origin=row.origin,  # type: ignore[arg-type]
        dataset_id=row.dataset_id,
        derived_from=row.derived_from_id,
        size=row.size,
        sample_limit=row.sample_limit,
        dtype=row.dtype,
        random_weights=row.random_weights,
        error=row.error,
        source=row.source,
        created_at=row.created_at,
        completed_at=row.completed_at,
        current_at=row.current_at,
        hidden=row.hidden_at is not None,
        environment=row.environment,
        identity=row.identity,
        run_id=row.run_id,
    )


def metric_row(evaluation_id: int, metric: Metric) -> dict[str, Any]:
    """A metric as a row; NaN is stored as NULL."""
    value = None if metric.value is None or metric.value != metric.value else float(metric.value)
    return {
        "evaluation_id": evaluation_id,
        "scorer": metric.scorer,
        "name": metric.name,
        "slice": metric.slice,
        "value": value,
        "unit": metric.unit,
        "n": metric.n,
        "stderr": None if metric.stderr is None or metric.stderr != metric.stderr else float(metric.stderr),
        "published": metric.published,
        "clusters": metric.clusters,
        **_declared(metric),
    }


def score_row(evaluation_id: int, score: Score) -> dict[str, Any]:
    """A score's per-sample values as a row."""
    payload = encode(score.values)
    return {
        "evaluation_id": evaluation_id,
        "scorer": score.scorer,
        "name": score.name,
        "count": payload.count,
        "dtype": payload.dtype,
        "checksum": payload.checksum,
        "payload": bytes(payload.data),
        "unit": score.unit,
        **_declared(score),
    }


def _declared(each: Metric | Score) -> dict[str, Any]:
    return spec_of(each).declared()


def sample_row(dataset_id: int, position: int, sample: SampleInfo) -> dict[str, Any]:
    """A sample as a row."""
    return {
        "dataset_id": dataset_id,
        "position": position,
        "sample_id": sample.id,
        "digest": sample.digest,
        "target": sample.target,
        "group_name": sample.group,
        "slices": sample.slices,
    }
