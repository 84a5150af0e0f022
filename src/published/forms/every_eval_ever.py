"""Every Eval Ever's records: a JSON object for each run of a model, with a list of results (schema 0.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.metric_specs import HIGHER, LOWER, MetricSpec, rate
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, top
from testbed.published.document import Document
from testbed.published.reading import FRACTION, PERCENT, Reading

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
KNOWN = {each.name: each for each in (top(1), top(5), MEAN_PER_CLASS_RECALL)}
SCORE = "score"  # of a metric that has no name
LONGEST = 60  # characters of a description that names a metric


def matches(document: Document) -> bool:
    """By the keys of its record."""
    return bool(document.records) and set(KEYS) <= set(document.records[0])


def read(document: Document, reading: Reading) -> None:
    """The model under its id, the setting under the evaluation's name.

    A score from 0 to 1 is a fraction, one from 0 to 100 percent; another range is a unit of its own.
    """
    for number, record in enumerate(document.records, start=1):
        document.require_columns((*KEYS, *ABOUT), given=record)
        where = f"record {number}"
        model = _object(record, "model_info")
        document.require_texts(model, ("id",), f"{where}, model_info")
        results = record["evaluation_results"]
        for place, result in enumerate(results if isinstance(results, list) else [], start=1):
            _read_result(document, reading, record, result, f"{where}, result {place}")


def _read_result(
    document: Document, reading: Reading, record: Mapping[str, Any], result: Mapping[str, Any], row: str
) -> None:
    document.require_columns((*RESULT, *OF_RESULT), given=result)
    document.require_texts(result, ("evaluation_name",), row)
    score = _object(result, "score_details")
    document.require_texts(score, ("score",), row)
    spec, whole = _metric(_object(result, "metric_config"))
    count = _object(score, "uncertainty").get("num_samples")
    n = int(count) if isinstance(count, str) and count.isdecimal() else None
    model = _object(record, "model_info")["id"]
    protocol = _protocol(record, result)
    reading.claim(model, result["evaluation_name"], spec, score["score"], row, "score", whole, protocol, n=n)


def _metric(config: Mapping[str, Any]) -> tuple[MetricSpec, int]:
    """The metric, and how the fraction 1 is written."""
    named = [config.get(key) for key in ("metric_id", "metric_name", "evaluation_description")]
    name = next((each for each in named if isinstance(each, str) and each and len(each) <= LONGEST), SCORE)
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
    """What is known of how a score was measured."""
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
    return {key: str(each) for key, each in told.items() if isinstance(each, str) and each}


def _object(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = holder.get(key)
    return found if isinstance(found, dict) else {}
