"""Results as DataComp's records: one for each of its data sets, with all metrics and the main one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from testbed.entities import ELSEWHERE, OVERALL, Result
from testbed.errors import StoreError
from testbed.eval_settings.benchmark_families.datacomp import BY_SETTING, MEAN_RECALL, SETS, DataCompSet
from testbed.jsontext import finite
from testbed.metrics.scorers.classification import MEAN_PER_CLASS_RECALL, TOP_K, top
from testbed.paths import safe_name, write_atomically

# DataComp's name of a metric → that of testbed.
NAMES = {**{f"acc{k}": top(k).name for k in TOP_K}, **{MEAN_PER_CLASS_RECALL.name: MEAN_PER_CLASS_RECALL.name}}
RECALL = re.compile(r"(image|text)_retrieval_recall@\d+")
# Metrics of its own, under its names; those of groups have slices.
OWN = re.compile(r"(avg_)?jaccard_score[\d_-]*|(F1|recall)-macro_all|(acc|toxicity)_[\w-]+")
_RATE = re.compile(r"^(acc_top5|acc_(race|gender|age)(?=_race_binary)|acc_gender_x|acc|toxicity_(crime|nonhuman))_")
# The overall accuracy of a data set with groups, which DataComp lists again.
AVERAGES = {
    **dict.fromkeys(("wilds/iwildcam", "wilds/camelyon17", "wilds/fmow", "fairness/geode"), ("acc_avg", top(1).name)),
    "fairness/dollar_street": ("acc_top5_avg", top(5).name),
}
Cells = dict[str, dict[str, dict[tuple[str, str], Result]]]  # model → setting → (metric, slice) → result


def cells_of(results: Iterable[Result]) -> Cells:
    """Groups results on DataComp's data sets; measured numbers take precedence over imported ones."""
    origins: dict[tuple[str, str], dict[bool, dict[tuple[str, str], Result]]] = {}
    for result in results:
        if result.eval_setting in BY_SETTING:
            of_cell = origins.setdefault((result.model, result.eval_setting), {})
            of_cell.setdefault(result.origin in ELSEWHERE, {})[result.metric, result.slice] = result
    cells: Cells = {}
    for (model, setting), found in origins.items():
        cells.setdefault(model, {})[setting] = found.get(False) or found[True]
    return cells


def records_of(model: str, cells: Mapping[str, Mapping[tuple[str, str], Result]]) -> list[dict[str, Any]]:
    """DataComp's records of a model, in the order of its list; each also names the model."""
    return [
        {"key": each.key, "dataset": each.title, "metrics": metrics, "model": model}
        for each in SETS
        if each.setting in cells and (metrics := _metrics(each, cells[each.setting]))
    ]


def main_metrics(records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Setting → the value of the main metric, from records."""
    settings = {each.key: each.setting for each in SETS}
    values = {settings[record["key"]]: record["metrics"]["main_metric"] for record in records}
    return {setting: value for setting, value in values.items() if value is not None}


def write(records: Iterable[Mapping[str, Any]], folder: Path, model: str) -> Path:
    """Writes the records of a model to a file in a folder, and returns it.

    Raises:
        StoreError: If it cannot be written.
    """
    path = folder / f"{safe_name(model)}.jsonl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "".join(f"{json.dumps(finite(record))}\n" for record in records).encode())
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from error
    return path


def _metrics(of: DataCompSet, results: Mapping[tuple[str, str], Result]) -> dict[str, float | int | None]:
    overall = {metric: result.value for (metric, slice), result in results.items() if slice == OVERALL}
    metrics: dict[str, float | int | None] = {}
    if top(1).name in overall:
        metrics |= {name: overall.get(ours) for name, ours in NAMES.items()}
    metrics |= {name: overall[name] for name in sorted(overall, key=_by_number) if RECALL.fullmatch(name)}
    both = [overall.get(f"{direction}_retrieval_recall@1") for direction in ("text", "image")]
    if both[0] is not None and both[1] is not None:
        metrics[MEAN_RECALL.name] = 0.5 * (both[0] + both[1])
    if of.setting in AVERAGES:
        name, ours = AVERAGES[of.setting]
        metrics[name] = overall.get(ours)
    for (metric, slice), result in results.items():
        if not OWN.fullmatch(metric):
            continue
        if slice == OVERALL:
            metrics[metric] = result.value
            continue
        metrics[f"{metric}:{slice}"] = result.value
        metrics[f"count_{_group(metric)}:{slice}"] = result.n
    if any(value is not None for value in metrics.values()):
        metrics["main_metric"] = metrics.get(_name(of.main.name)) if of.main is not None else None
        return metrics
    return {}


def _name(ours: str) -> str:
    return next((name for name, metric in NAMES.items() if metric == ours), ours)


def _by_number(name: str) -> tuple[int, str]:
    number = name.rpartition("@")[2]
    return (int(number) if number.isdigit() else 0, name)


def _group(metric: str) -> str:
    """The attribute of a metric of groups: that of ``acc_top5_income_ds`` is ``income_ds``."""
    return _RATE.sub("", metric)
