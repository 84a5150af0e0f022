"""Reading and writing of Inspect AI's JSON logs: the answers of a model on a setting.

They have version 2, as ``inspect_ai.log.read_eval_log`` reads them.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from testbed.claims.every_eval_ever import FINISH, NOT_DEFINED, SCORE_OF, TEXT, THINKING_BEGUN
from testbed.db.store import Store
from testbed.entities import OVERALL, Metric
from testbed.errors import StoreError, shortened
from testbed.extensions.exchange.every_eval_ever.record import finite_value, model_id
from testbed.extensions.exchange.every_eval_ever.samples import SampleLines
from testbed.extensions.exchange.recorded import DIFFERENT, NO_SAMPLES, AnsweredSample, SampledRecord, checked_name
from testbed.jsontext import finite
from testbed.metric_specs import main_metric, spec_of
from testbed.models.base.capability import CUT_OFF
from testbed.paths import read_regular
from testbed.stored_results.measured_cells import MeasuredCell

VERSION = 2
LIBRARY = "testbed"
EPOCHS = "samples are of further epochs"
NO_TEXT = "samples have no answer in text"
_STOP = {"stop": "stop", CUT_OFF: "max_tokens"}
_BINARY = b"PK"  # first bytes of inspect's own .eval files

Picture = Callable[[int, str], str]
"""The picture of a sample by its position and id: a reference or a data URI; empty if missing."""


def inspect_log(store: Store, cell: MeasuredCell, picture: Picture) -> dict[str, Any]:
    """Builds the log of a model's answers. Everything comes from the store: equal stores give equal logs.

    Raises:
        StoreError: If the model's outputs are not texts, or its samples have no scores.
    """
    evaluation = cell.evaluation
    if evaluation.dataset_id is None or TEXT not in store.outputs.kinds(evaluation.id):
        raise StoreError(f"{cell.model} on {cell.eval_setting} has no answers in text")
    dataset = store.datasets.get(evaluation.dataset_id)
    samples = [
        _sample(line, cell, picture(place, line["sample_id"]))
        for place, line in enumerate(SampleLines(cell, dataset, {}).lines(store))
    ]
    if not samples:
        raise StoreError(f"{cell.model} on {cell.eval_setting} has no per-sample scores")
    done = (evaluation.completed_at or evaluation.created_at).astimezone(UTC).isoformat()
    log: dict[str, Any] = {
        "version": VERSION,
        "status": "success",
        "eval": {
            **{key: _id(cell, key) for key in ("eval_id", "run_id", "task_id")},
            "created": done,
            "task": cell.eval_setting,
            "dataset": {
                "name": cell.dataset.name.rpartition("/")[2] if cell.dataset else cell.eval_setting,
                "samples": len(samples),
                "sample_ids": [sample["id"] for sample in samples],
                "shuffled": False,
            },
            "model": model_id(cell.model),
            "config": {"epochs": 1},
            "packages": {LIBRARY: str(cell.environment.get("testbed", "unknown"))},
            "metadata": {
                "library": LIBRARY,
                "model": cell.model,
                "fingerprint": evaluation.fingerprint,
                "samples": dataset.fingerprint,
                "weights": cell.part("model", "weights") or None,
                "scoring": cell.part("view"),
            },
        },
        "plan": {"name": "plan", "steps": [], "config": _generation(cell)},
        "results": _results(cell, samples),
        "stats": {"started_at": done, "completed_at": done},
        "samples": samples,
    }
    return dict(finite(log))


def as_json(log: Mapping[str, Any]) -> str:
    """A log as the text of its file."""
    return f"{json.dumps(log, indent=1, allow_nan=False)}\n"


def _id(cell: MeasuredCell, key: str) -> str:
    parts = [key, cell.model, cell.eval_setting, cell.evaluation.fingerprint]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:22]


def _generation(cell: MeasuredCell) -> dict[str, Any]:
    given = cell.part("forward", "generation")
    names = {"max_new_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k"}
    return {theirs: given[name] for name, theirs in names.items() if name in given}


def _results(cell: MeasuredCell, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    metrics = {_title(metric): _metric(metric) for metric in cell.metrics if finite_value(metric) is not None}
    main = main_metric(spec_of(metric) for metric in cell.metrics if metric.slice == OVERALL)
    first = next((metric for metric in cell.metrics if metric.slice == OVERALL and spec_of(metric) == main), None)
    if first is not None and first.stderr is not None and math.isfinite(first.stderr):
        metrics["stderr"] = {"name": "stderr", "value": first.stderr, "metadata": {"of": first.name}}
    scored = sum(bool(sample["scores"]) for sample in samples)
    name = next((name for sample in samples for name in sample["scores"]), "score")
    told = {"scored_samples": scored, "unscored_samples": len(samples) - scored, "metrics": metrics}
    counts = {"total_samples": len(samples), "completed_samples": sum("error" not in sample for sample in samples)}
    return {**counts, "scores": [{"name": name, "scorer": str(cell.part("view", "scorer") or name), **told}]}


def _title(metric: Metric) -> str:
    return metric.name if metric.slice == OVERALL else f"{metric.name} ({metric.slice})"


def _metric(metric: Metric) -> dict[str, Any]:
    about = {"slice": metric.slice, "unit": metric.unit, "n": metric.n, "stderr": metric.stderr}
    return {"name": _title(metric), "value": metric.value, "metadata": about}


def _sample(line: Mapping[str, Any], cell: MeasuredCell, picture: str) -> dict[str, Any]:
    metadata = dict(line["metadata"])
    text = [{"type": "text", "text": line["input"]["raw"]}]
    asked = [*([{"type": "image", "image": picture}] if picture else []), *text]
    choices = line["input"].get("choices")
    said, thoughts = line["output"]["raw"], line["output"].get("reasoning_trace", [])
    user = {"role": "user", "content": asked}
    answers = []
    if said:
        content = [
            *({"type": "reasoning", "reasoning": thought} for thought in thoughts),
            {"type": "text", "text": said[0]},
        ]
        answers = [{"role": "assistant", "content": content if thoughts else said[0], "source": "generate"}]
    stop = _STOP.get(str(metadata.get(FINISH)), "unknown")
    output: dict[str, Any] = {"model": cell.model, "completion": said[0] if said else ""}
    output["choices"] = [{"message": answer, "stop_reason": stop} for answer in answers]
    output |= {"usage": line["token_usage"]} if "token_usage" in line else {}
    sample = {"id": line["sample_id"], "epoch": 1, "input": [user], "target": line["input"]["reference"]}
    sample |= {"choices": choices} if choices else {}
    sample |= {"messages": [user, *answers], "output": output, "scores": _scores(line, metadata), "metadata": metadata}
    if error := line.get("error"):
        sample["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
    return sample


def _scores(line: Mapping[str, Any], metadata: dict[str, str]) -> dict[str, Any]:
    """The scores of a sample, the main one first; without a main one it is not scored."""
    main = metadata.pop("score")
    not_scored = "score" in metadata.pop(NOT_DEFINED, "").split()
    found = {key.removeprefix(SCORE_OF): metadata.pop(key) for key in list(metadata) if key.startswith(SCORE_OF)}
    if not_scored:
        return {}
    read = next((attribution["extracted_value"] for attribution in line["answer_attribution"]), None)
    names = [main, *(entry for entry in found if entry != main)]
    return {name: {"value": float(found[name]), **({"answer": read} if read is not None else {})} for name in names}


# Reading --------------------------------------------------------------------------------------------------------------


def read_log(path: Path) -> SampledRecord:
    """Reads the samples of a log, whose task names the eval setting.

    Raises:
        StoreError: If it cannot be read, or is not such a log.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error}") from error
    if content.startswith(_BINARY):
        raise StoreError(f"{path} is a binary log; inspect log convert --to json makes a JSON log of it")
    try:
        log = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} cannot be read as JSON: {error}") from error
    about = log.get("eval") if isinstance(log, dict) else None
    if not isinstance(about, dict) or not all(isinstance(about.get(key), str) for key in ("task", "model")):
        raise StoreError(f"{path} is not a log of Inspect AI: expected eval, with a task and a model")
    metadata = about.get("metadata")
    given = metadata if isinstance(metadata, dict) else {}
    own = given.get("library") == LIBRARY and isinstance(given.get("model"), str)
    found = SampledRecord(path, checked_name(given["model"] if own else about["model"], f"{path}: the model"))
    samples = log.get("samples")
    if not isinstance(samples, list) or not samples:
        found.left_out[NO_SAMPLES] += 1
        return found
    task = checked_name(about["task"], f"{path}: the task")
    for number, sample in enumerate(samples, start=1):
        _add(found, task, sample, own, f"{path}, sample {number}")
    return found


def _add(found: SampledRecord, task: str, sample: Any, own: bool, where: str) -> None:
    name = sample.get("id") if isinstance(sample, dict) else None
    if type(name) not in (str, int) or not str(name).strip():
        raise StoreError(f"{where}: id should be a text or a whole number, not {shortened(repr(name))}")
    if sample.get("epoch", 1) != 1:
        found.left_out[EPOCHS] += 1
        return
    said = _answer(sample, own, where)
    if said.text is None:
        found.left_out[NO_TEXT] += 1
    held = found.samples.setdefault(task, {}).setdefault(checked_name(str(name), f"{where}: id"), said)
    if held is not said:
        found.left_out[DIFFERENT] += 1


def _answer(sample: Mapping[str, Any], own: bool, where: str) -> AnsweredSample:
    output = sample.get("output") or {}
    choices = output.get("choices") if isinstance(output, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(output, dict) or not isinstance(choice, dict):
        raise StoreError(f"{where}: output should have choices, each with a message")
    message = choice.get("message") or {}
    parts = _parts(message.get("content") if isinstance(message, dict) else None, where)
    texts, thoughts = ([text for kind, text in parts if kind == wanted] for wanted in ("text", "reasoning"))
    target = sample.get("target")
    asked = sample.get("input")
    turns = asked if isinstance(asked, list) else [{"content": asked}]
    questions = [text for turn in turns if isinstance(turn, dict) for _, text in _parts(turn.get("content"), where)]
    scores = _values(sample.get("scores"), where)
    first = next(iter(scores.values()), None)
    metadata = sample.get("metadata") if own else None
    ending = str(metadata.get(FINISH, "")) if isinstance(metadata, dict) else ""
    error = sample.get("error")
    return AnsweredSample(
        text="\n".join(texts) if texts else None,
        question="\n".join(questions),
        right=[entry for entry in (target if isinstance(target, list) else [target]) if isinstance(entry, str)],
        thinking="\n".join(thoughts),
        score=first,
        correct=_correct(sample.get("scores")),
        error=str(error.get("message", "")) if isinstance(error, dict) else "",
        finish_reason=CUT_OFF if choice.get("stop_reason") == _STOP[CUT_OFF] else ending,
        scores=scores,
        own=own,
        begun=isinstance(metadata, dict) and THINKING_BEGUN in metadata,
    )


def _parts(content: Any, where: str) -> list[tuple[str, str]]:
    """Kind and text of each part of a message that has one."""
    if content is None or isinstance(content, str):
        return [("text", content)] if content is not None else []
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise StoreError(f"{where}: the content of a message should be a text or a list of parts")
    kinds = [(part.get("type"), part.get(str(part.get("type")))) for part in content]
    return [(kind, text) for kind, text in kinds if kind in ("text", "reasoning") and isinstance(text, str)]


def _values(scores: Any, where: str) -> dict[str, float]:
    """The scores that are numbers, or C and I for right and wrong."""
    if scores is None:
        return {}
    if not isinstance(scores, dict) or not all(isinstance(score, dict) for score in scores.values()):
        raise StoreError(f"{where}: scores should have a score, with a value, for each scorer")
    found = {}
    for name, score in scores.items():
        value = {"C": 1.0, "I": 0.0}.get(score["value"]) if isinstance(score.get("value"), str) else score.get("value")
        if isinstance(value, bool | int | float) and abs(value) < 1e300:
            found[name] = float(value)
    return found


def _correct(scores: Any) -> bool | None:
    """Returns whether the first score is C or I; None if it is a number, which may be a degree."""
    first: dict[str, Any] = next(iter(scores.values()), {}) if isinstance(scores, dict) else {}
    value = first.get("value")
    return value if isinstance(value, bool) else {"C": True, "I": False}.get(value) if isinstance(value, str) else None
