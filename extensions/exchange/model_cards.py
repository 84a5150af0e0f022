"""Results for model cards: ``model-index`` in the front matter of a README, and ``.eval_results`` files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from testbed.data.libraries.huggingface import parse_name
from testbed.entities import OVERALL, Metric
from testbed.errors import DataError, TestbedError
from testbed.metric_specs import main_metric, spec_of
from testbed.stored_results.measured_cells import MeasuredCell
from testbed.yamltext import YamlError, from_yaml, to_yaml

INDEX = "model-index"
UNKNOWN = "unknown"  # id of a data set without a declared one
OTHER = "other"  # task that the hub does not have
TASKS = {
    "captioning": "image-to-text",
    "question_answering": "visual-question-answering",
    "judged_answers": "visual-question-answering",
}
ACCURACY = ("top1", "accuracy")
HUB = ("id", "config", "split", "revision", "task")
# As parsed by the hub.
_FRONT = re.compile(r"\A(\ufeff?\s*---(?:\r\n|\r|\n))([\S\s]*?)((?:\r\n|\r|\n)---[ \t]*(?:\r\n|\n|\Z))")
_EMPTY = re.compile(r"\A(\ufeff?\s*---(\r\n|\r|\n))---[ \t]*(?:\r\n|\n|\Z)")
_ID = re.compile(r"[\w.-]+(/[\w.-]+)?", re.ASCII)


@dataclass(frozen=True)
class HubSet:
    """A data set on the hub.

    Attributes:
        id: Its id, such as ``ILSVRC/imagenet-1k``.
        config: Its configuration.
        split: Its split.
        revision: Its commit.
        task: The id of the task, for a data set with a leaderboard on the hub.
    """

    id: str
    config: str | None = None
    split: str | None = None
    revision: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class CardResult:
    """A result for a card."""

    cell: MeasuredCell
    metric: Metric
    hub: HubSet | None


def read_hub(words: Sequence[str]) -> dict[str, HubSet]:
    """Parses setting → data set on the hub from words such as ``val=id=ILSVRC/imagenet-1k,split=validation``.

    Raises:
        DataError: If a word is invalid.
    """
    found: dict[str, HubSet] = {}
    for word in words:
        setting, _, rest = word.partition("=")
        parts = [text.partition("=") for text in rest.split(",")]
        given = {key: value for key, _, value in parts if value}
        if not setting or setting in found or len(given) != len(parts) or not {"id"} <= set(given) <= set(HUB):
            keys = ",".join(f"{key}=…" for key in HUB)
            raise DataError(f"--hub {word} is invalid; expected SETTING={keys}, where id is required")
        if not _ID.fullmatch(given["id"]):
            raise DataError(f"--hub {word}: {given['id']!r} is not the id of a data set on the hub, such as owner/name")
        found[setting] = HubSet(**given)
    return found


def card_results(
    cells: Sequence[MeasuredCell], hub: Mapping[str, HubSet], everything: bool = False
) -> list[CardResult]:
    """Selects the results of a model for its card: the main metric of each setting, or all metrics.

    Raises:
        DataError: If ``hub`` names a setting that is not among them.
    """
    if unknown := sorted(set(hub) - {measured_cell.eval_setting for measured_cell in cells}):
        raise DataError(f"--hub names {unknown[0]}, but the model has no selected results on it")
    found = []
    for cell in cells:
        defined = [metric for metric in cell.metrics if metric.slice == OVERALL and _is_finite(metric.value)]
        main = main_metric(map(spec_of, defined))
        chosen = [metric for metric in defined if everything or spec_of(metric) == main]
        declared = hub.get(cell.eval_setting) or _declared(cell)
        found += [CardResult(cell, metric, declared) for metric in chosen]
    return found


def model_index(name: str, results: Sequence[CardResult]) -> list[dict[str, Any]]:
    """The value of ``model-index``, as the hub and huggingface_hub read it. Rates are fractions, as stored."""
    by_set: dict[str, dict[str, Any]] = {}
    for result in results:
        entry = by_set.setdefault(result.cell.eval_setting, _entry(result))
        entry["metrics"].append(
            {"type": _metric_type(result.metric), "value": result.metric.value, "name": result.metric.name}
        )
    return [{"name": name, "results": list(by_set.values())}]


def eval_results(results: Sequence[CardResult], source_url: str | None = None) -> list[dict[str, Any]]:
    """The content of a file in ``.eval_results``: results on data sets with a leaderboard on the hub."""
    found = []
    for result in results:
        if result.hub is None or result.hub.task is None:
            continue
        dataset = {"id": result.hub.id, "task_id": result.hub.task}
        dataset |= {"revision": result.hub.revision} if result.hub.revision else {}
        done = result.cell.evaluation.completed_at
        entry: dict[str, Any] = {"dataset": dataset, "value": result.metric.value}
        entry |= {"date": done.astimezone(UTC).isoformat()} if done else {}
        entry |= {"source": {"url": source_url}} if source_url else {}
        found.append({**entry, "notes": _notes(result)})
    return found


def merged_card(text: str, index: list[dict[str, Any]], name: str = "README.md") -> str:
    """Adds results to the front matter of a README; the rest stays unchanged, to the letter.

    Existing results stay unless they have the same metric on the same data set.

    Raises:
        DataError: If its front matter is not YAML, or its ``model-index`` is not in the hub's format.
    """
    start, front, end, rest = _parts(text)
    newline = "\r\n" if "\r\n" in start else "\n"
    held = _loaded(front, name)
    merged = _merged(held.get(INDEX), index, name)
    block = to_yaml({INDEX: merged}).rstrip("\n")
    lines = front.split(newline) if front else []
    first, last = _place(lines)
    made = newline.join([*lines[:first], *block.split("\n"), *lines[last:]])
    card = f"{start}{made}{end}{rest}"
    try:
        fits = _parts(card)[1] == made and _loaded(made, name) == {**held, INDEX: merged}
    except DataError:
        fits = False
    if not fits:
        raise DataError(f"{name}: the results cannot be put into its front matter; write {INDEX} as a separate block")
    return card


def _parts(text: str) -> tuple[str, str, str, str]:
    """Splits into the opening mark, the front matter, the closing mark, and the rest."""
    if empty := _EMPTY.match(text):
        return empty[1], "", f"{empty[2]}{text[empty.end(1) : empty.end()]}", text[empty.end() :]
    if found := _FRONT.match(text):
        return found[1], found[2], found[3], text[found.end() :]
    newline = "\r\n" if "\r\n" in text else "\n"
    return f"---{newline}", "", f"{newline}---{newline}", text


def _loaded(front: str, name: str) -> dict[str, Any]:
    try:
        found = from_yaml(front) if front.strip() else {}
    except YamlError as error:
        raise DataError(f"the front matter of {name} cannot be read as YAML: {str(error)[:200]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise DataError(f"the front matter of {name} should have keys and values")
    return found


def _place(lines: Sequence[str]) -> tuple[int, int]:
    """The lines of ``model-index`` in the front matter, from the first to that after the last."""
    first = next((place for place, line in enumerate(lines) if re.match(rf"['\"]?{INDEX}['\"]?\s*:", line)), None)
    if first is None:
        return len(lines), len(lines)
    last = first + 1
    while last < len(lines) and (not lines[last].strip() or lines[last][0] in " \t-#"):
        last += 1
    while last > first + 1 and (not lines[last - 1].strip() or lines[last - 1].startswith("#")):
        last -= 1  # blank lines and comments belong to what follows
    return first, last


def _merged(held: Any, index: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Merges new results into the existing index, replacing those with the same metric and data set."""
    try:
        given = [*(held or [])]
        kept = [dict(entry, results=[_without(result, index[0]) for result in entry["results"]]) for entry in given]
    except (TypeError, KeyError, AttributeError, ValueError):
        raise DataError(f"{name}: its {INDEX} is not in the hub's format, a list of names with results") from None
    for record in kept:
        record["results"] = [result for result in record["results"] if result["metrics"]]
    own = next((record for record in kept if record.get("name") == index[0]["name"]), None)
    if own is None:
        return [*(record for record in kept if record["results"]), *index]
    own["results"] += index[0]["results"]
    return [record for record in kept if record["results"]]


def _without(result: dict[str, Any], index: Mapping[str, Any]) -> dict[str, Any]:
    """Removes the re-measured metrics from a result."""
    dataset = _key(result)
    new = {metric["name"] for entry in index["results"] if _key(entry) == dataset for metric in entry["metrics"]}
    return dict(result, metrics=[entry for entry in result["metrics"] if entry.get("name") not in new])


def _key(result: Mapping[str, Any]) -> tuple[Any, ...]:
    dataset = result["dataset"]
    return result["task"]["type"], *(dataset.get(key) for key in ("type", "name", "config", "split", "revision"))


def _entry(result: CardResult) -> dict[str, Any]:
    setting, hub = result.cell.eval_setting, result.hub
    if hub is None:  # readers distinguish data sets by these
        dataset: dict[str, Any] = {"type": UNKNOWN, "name": setting, "config": setting}
    else:
        dataset = {"type": hub.id, "name": setting}
        dataset |= {key: value for key in ("config", "split", "revision") if (value := getattr(hub, key))}
    task, forward = str(result.cell.part("forward", "task") or ""), result.cell.part("forward")
    kind = TASKS.get(task, OTHER)
    if task == "classification":
        kind = "zero-shot-image-classification" if forward.get("route") == "zero-shot" else "image-classification"
    named = {"name": task} if kind == OTHER and task else {}
    return {"task": {"type": kind, **named}, "dataset": dataset, "metrics": []}


def _metric_type(metric: Metric) -> str:
    return "accuracy" if metric.name in ACCURACY else metric.name


def _notes(result: CardResult) -> str:
    """Facts that the format has no field for."""
    metric = result.metric
    told = [f"{metric.name} on {result.cell.eval_setting}"]
    told += [] if metric.n is None else [f"{metric.n} samples"]
    told += [] if metric.stderr is None else [f"standard error {metric.stderr!r}"]
    return ", ".join([*told, f"testbed {result.cell.environment.get('testbed', UNKNOWN)}"])


def _declared(cell: MeasuredCell) -> HubSet | None:
    """The data set of a cell if it was read from the hub: its name is ``hf/OWNER/NAME@CONFIG`` then."""
    try:
        return None if cell.dataset is None else HubSet(*parse_name(cell.dataset.name))
    except TestbedError:
        return None


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
