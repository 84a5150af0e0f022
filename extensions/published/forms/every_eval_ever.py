"""Every Eval Ever's records: a JSON object for each run of a model, with a list of results (schemas 0.2 and 0.3).

Records written by testbed have the metric's declaration and its samples in their details.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from testbed.claims.document import Document
from testbed.claims.every_eval_ever import DECLARATIONS, LIBRARY, METRIC, SLICE, UNBOUNDED, UNIT
from testbed.claims.reading import FRACTION, PERCENT, Reading
from testbed.entities import OVERALL
from testbed.errors import DefinitionError, StoreError
from testbed.metric_specs import DIRECTIONS, HIGHER, LOWER, MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top

NAME = "Every Eval Ever's record"
OTHERS = True
KEYS = ("schema_version", "evaluation_id", "model_info", "evaluation_results")
ABOUT = (
    *("retrieved_timestamp", "evaluation_timestamp", "source_metadata", "eval_library", "dedupe_identity"),
    *("detailed_evaluation_results", "evaluation_source", "source_data"),
)
RESULT = ("evaluation_name", "metric_config", "score_details")
OF_RESULT = (
    *("source_data", "evaluation_timestamp", "generation_config", "evaluation_result_id"),
    "detailed_evaluation_results_url",
)
KNOWN = {metric_spec.name: metric_spec for metric_spec in (top(1), top(5), MEAN_PER_CLASS_RECALL)}
SCORE = "score"  # name of a metric without one
LONGEST = 60  # characters of a description that names a metric
_LONGEST_NAME = 256  # characters of the name of a metric or a slice
_LONGEST_NUMBER = 400  # characters


def matches(document: Document) -> bool:
    """Recognizes the file by the keys of its record."""
    return bool(document.records) and set(KEYS) <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """Yields the model under its id, the setting under the evaluation's name.

    A score from 0 to 1 is a fraction, one from 0 to 100 percent; any other range is a unit of its own.
    """
    for number, record in enumerate(document.records, start=1):
        document.require_columns((*KEYS, *ABOUT), given=record)
        where = f"record {number}"
        model = _object(record, "model_info")
        document.require_texts(model, ("id",), f"{where}, model_info")
        results = record["evaluation_results"]
        if not isinstance(results, list) or not all(isinstance(entry, dict) for entry in results):
            raise StoreError(f"{document.path}, {where}: evaluation_results should be a list of objects")
        for place, result in enumerate(results, start=1):
            _read_result(document, reading, record, result, f"{where}, result {place}")


def _read_result(
    document: Document, reading: Reading, record: Mapping[str, Any], result: Mapping[str, Any], row: str
) -> None:
    document.require_columns((*RESULT, *OF_RESULT), given=result)
    document.require_texts(result, ("evaluation_name",), row)
    score, config = _object(result, "score_details"), _object(result, "metric_config")
    document.require_texts(score, ("score",), row)
    details, where = _object(config, "additional_details"), f"{document.path}, {row}"
    own = _object(record, "eval_library").get("name") == LIBRARY and METRIC in details
    spec, whole = (_own_metric(config, details, where), FRACTION) if own else _metric(config)
    uncertainty = _object(score, "uncertainty")
    model = _object(record, "model_info")
    reading.claim(
        model["name"] if own and isinstance(model.get("name"), str) else model["id"],
        *(result["evaluation_name"], spec, score["score"], row, "score", whole, _protocol(record, result)),
        n=_count(uncertainty.get("num_samples")),
        slice=str(details.get(SLICE, OVERALL))[:_LONGEST_NAME] if own else OVERALL,
        stderr=_error(_object(uncertainty, "standard_error").get("value"), whole, where),
    )


def _count(text: Any) -> int | None:
    return int(text) if isinstance(text, str) and re.fullmatch(r"[0-9]{1,9}", text) else None


def _error(text: Any, whole: int, where: str) -> float | None:
    """Parses a standard error; in percent if the score is."""
    if text is None:
        return None
    found = _number(text)
    if found is None or not 0 <= found < math.inf:
        raise StoreError(f"{where}: the standard error should be a number that is not negative, not {text!r:.40}")
    return float(Decimal(str(text)) / whole) if whole != FRACTION else found


def _number(text: Any) -> float | None:
    """Parses a number like `Document`; None if it is not a number."""
    try:
        return float(text) if isinstance(text, str) and len(text) < _LONGEST_NUMBER else None
    except ValueError:
        return None


def _own_metric(config: Mapping[str, Any], details: Mapping[str, Any], where: str) -> MetricSpec:
    """Returns the metric as declared by testbed.

    Raises:
        StoreError: If the details are not testbed's.
    """
    name, unit = details[METRIC], details.get(UNIT, "")
    low, high = (
        None if config.get(key) in UNBOUNDED else _number(config.get(key)) for key in ("min_score", "max_score")
    )
    try:
        better, headline, zero_one = (json.loads(str(details[text])) for text in DECLARATIONS)
    except (KeyError, ValueError, RecursionError):
        better, headline, zero_one = "", 0, False
    fits = isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and isinstance(unit, str) and len(unit) <= LONGEST
    fits = fits and type(zero_one) is bool and type(headline) is int and abs(headline) < _LONGEST_NAME
    if not fits or (better is not None and better not in DIRECTIONS) or _is_nan(low) or _is_nan(high):
        raise StoreError(f"{where}: the details of the metric {name!r:.40} are not as testbed writes them")
    try:
        return MetricSpec(name, unit, better, low, high, headline, zero_one)
    except DefinitionError as error:
        raise StoreError(f"{where}: {error}") from None


def _is_nan(number: float | None) -> bool:
    return number is not None and math.isnan(number)


def _metric(config: Mapping[str, Any]) -> tuple[MetricSpec, int]:
    """The metric, and the representation of the fraction 1."""
    named = [config.get(key) for key in ("metric_id", "metric_name", "evaluation_description")]
    name = next((entry for entry in named if isinstance(entry, str) and entry and len(entry) <= LONGEST), SCORE)
    better = LOWER if config.get("lower_is_better") is True else HIGHER
    ends = [str(config.get(key, "")).removesuffix(".0") for key in ("min_score", "max_score")]
    if name in KNOWN:
        return KNOWN[name], PERCENT if ends == ["0", "100"] else FRACTION
    if ends == ["0", "1"] or config.get("score_type") == "binary":
        return rate(name, better), FRACTION
    if ends == ["0", "100"]:
        return rate(name, better), PERCENT
    return MetricSpec(name, "", better), FRACTION


def _protocol(record: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, str]:
    """The known protocol of a score."""
    data = _object(result, "source_data")
    library, source = _object(record, "eval_library"), _object(record, "source_metadata")
    arguments = _object(_object(result, "generation_config"), "generation_args")
    told = {
        "data": data.get("hf_repo") or data.get("dataset_name"),
        "split": data.get("hf_split"),
        "library": " ".join(str(library[key]) for key in ("name", "version") if library.get(key)),
        "evaluated by": source.get("source_organization_name"),
        "relationship": source.get("evaluator_relationship"),
        "evaluated at": result.get("evaluation_timestamp") or record.get("evaluation_timestamp"),
        **{key.replace("_", " "): arguments.get(key) for key in ("temperature", "max_tokens", "prompt_template")},
    }
    return {key: str(value) for key, value in told.items() if isinstance(value, str) and value}


def _object(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = holder.get(key)
    return found if isinstance(found, dict) else {}
