"""A cell as an aggregate record: the model, the data, and a result for each metric."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from testbed.claims.every_eval_ever import (
    DECLARATIONS,
    LIBRARY,
    METRIC,
    SLICE,
    UNBOUNDED,
    UNIT,
    VERSION,
)
from testbed.entities import OVERALL, DatasetInfo, Metric
from testbed.metric_specs import LOWER
from testbed.paths import fitting
from testbed.redaction import redacted_values
from testbed.stored_results.measured_cells import MeasuredCell, public_name

LOCAL = "local"  # the developer of a model without one in its name
_GIVEN = ("temperature", "top_p", "top_k")  # generation arguments that have the same name there
_OF_PATHS = re.compile(r'[<>:"\\|?*/\s\x00-\x1f]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9]|data)(\..*)?", re.IGNORECASE)


def model_id(name: str) -> str:
    """Returns a model's id, ``developer/model``."""
    given = "/".join(part for part in name.split("/") if part)
    return given if "/" in given else f"{LOCAL}/{given or 'model'}"


def folder_of(cell: MeasuredCell, dataset: DatasetInfo) -> tuple[str, str, str]:
    """Returns the folders of its files: the collection, the developer and the model."""
    developer, _, model = model_id(cell.model).partition("/")
    return _component(public_name(dataset.name)), _component(developer), _component(model)


def record_of(cell: MeasuredCell, dataset: DatasetInfo, organization: str, relationship: str) -> dict[str, Any]:
    """Returns the record, without samples; metrics without a value are left out.

    Args:
        cell: The cell.
        dataset: Its data set.
        organization: The evaluating organization.
        relationship: Its relationship to the model: one of `testbed.claims.every_eval_ever.RELATIONSHIPS`.
    """
    done = cell.evaluation.completed_at or cell.evaluation.created_at
    record = {
        "schema_version": VERSION,
        "evaluation_id": f"{cell.eval_setting}/{model_id(cell.model)}/{_seconds(done)}",
        "evaluation_timestamp": done.astimezone(UTC).isoformat(),
        "retrieved_timestamp": _seconds(done),
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": LIBRARY,
            "version": str(cell.environment.get("testbed", "unknown")),
            "additional_details": _texts(
                {"python": cell.environment.get("python"), **(cell.environment.get("libraries") or {})}
            ),
        },
        "model_info": _model(cell),
        "evaluation_results": [
            _result(cell, dataset, metric) for metric in cell.metrics if finite_value(metric) is not None
        ],
    }
    return dict(redacted_values(record))


def finite_value(metric: Metric) -> float | None:
    """The value of a metric; None if JSON cannot hold it."""
    return metric.value if metric.value is not None and math.isfinite(metric.value) else None


def result_id(metric: Metric) -> str:
    """Distinguishes a result of a record from its others."""
    return f"{metric.name}|{metric.slice}"


def _model(cell: MeasuredCell) -> dict[str, Any]:
    details = {"weights": cell.part("model", "weights"), "dtype": cell.evaluation.dtype}
    details |= {"devices": ", ".join(map(str, cell.environment.get("device_names", ())))}
    details |= {"random_weights": "true"} if cell.evaluation.random_weights else {}
    owner, slash, _ = cell.model.partition("/")
    return {
        "name": cell.model,
        "id": model_id(cell.model),
        **({"developer": owner} if slash and owner else {}),
        # The owner of the weights is unknown.
        "additional_details": {"deployment_type": "unknown", "model_availability": "unknown", **_texts(details)},
    }


def _result(cell: MeasuredCell, dataset: DatasetInfo, metric: Metric) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {}
    if metric.stderr is not None and math.isfinite(metric.stderr):
        uncertainty["standard_error"] = {"value": metric.stderr}
    if metric.n is not None:
        uncertainty["num_samples"] = metric.n
    details: dict[str, Any] = {"fingerprint": cell.evaluation.fingerprint, "scorer": metric.scorer}
    details |= {"sample_limit": cell.evaluation.sample_limit}
    return {
        "evaluation_result_id": result_id(metric),
        "evaluation_name": cell.eval_setting,
        "source_data": {
            "dataset_name": public_name(dataset.name),
            "source_type": "other",
            "additional_details": {"digest": dataset.fingerprint, "samples": str(len(dataset.samples))},
        },
        "metric_config": _metric_config(metric),
        "score_details": {
            "score": metric.value,
            "details": _texts(details),
            **({"uncertainty": uncertainty} if uncertainty else {}),
        },
        "generation_config": _generation(cell),
    }


def _metric_config(metric: Metric) -> dict[str, Any]:
    low, high = metric.lowest, metric.highest
    name = metric.name if metric.slice == OVERALL else f"{metric.name} ({metric.slice})"
    return {
        "metric_id": metric.name if metric.slice == OVERALL else f"{metric.name}/{metric.slice}",
        "metric_name": name,
        "lower_is_better": metric.better == LOWER,
        "score_type": "continuous",
        "min_score": UNBOUNDED[0] if low is None else low,
        "max_score": UNBOUNDED[1] if high is None else high,
        "additional_details": {
            METRIC: metric.name,
            SLICE: metric.slice,
            UNIT: metric.unit,
            **{name: json.dumps(getattr(metric, name)) for name in DECLARATIONS},
        },
    }


def _generation(cell: MeasuredCell) -> dict[str, Any]:
    """The generation arguments and other computation details in the identity."""
    given = cell.part("forward", "generation")
    arguments = {name: given[name] for name in _GIVEN if name in given}
    if "max_new_tokens" in given:
        arguments["max_tokens"] = given["max_new_tokens"]
    told: dict[str, Any] = {name: given[name] for name in given if name not in (*_GIVEN, "max_new_tokens")}
    forward = cell.part("forward")
    told |= {name: forward[name] for name in forward if name not in ("generation", "restricted")}
    told |= {"scoring": cell.part("view")}
    told |= {"data_set": public_name(told["data_set"])} if isinstance(told.get("data_set"), str) else {}
    written = {name: json.dumps(value, sort_keys=True) for name, value in told.items() if value not in (None, {}, "")}
    return {"generation_args": arguments, "additional_details": written}


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    """Converts details to texts; leaves out unknown ones."""
    return {name: str(value) for name, value in given.items() if value not in (None, "", {})}


def _component(name: str) -> str:
    """Makes a folder name from a name that is valid on every system."""
    plain = fitting(_OF_PATHS.sub("_", name).strip(". ") or "name", name)
    return f"_{plain}" if _RESERVED.fullmatch(plain) else plain


def _seconds(moment: datetime) -> str:
    return str(moment.timestamp())
