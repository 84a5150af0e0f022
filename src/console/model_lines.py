"""Reports how images are prepared for each model of a run: a line per model, and objects for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.console.output import say_some
from testbed.entities import OVERALL
from testbed.formatting import percent
from testbed.models.base.transform import LazyTransform, StandardNormalization
from testbed.models.base.weights import LocalFiles

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.graph.cells import Cell, OpenedModel

SHOWN = 12
DIGEST = 12  # characters of a digest that a line shows
DEVIATIONS = 2  # above chance, in standard errors, up to which a result looks like chance
FEWEST = 20  # fewest samples for such a report


def models_as_objects(report: Report) -> list[dict[str, Any]]:
    """Settings that decide what each model sees: preprocessing, weights, number of classes, precision."""
    found: dict[str, dict[str, Any]] = {}
    for cell in report.plan.cells:
        if cell.opened_model is not None and cell.model not in found:
            found[cell.model] = _as_object(cell.model, cell.opened_model, report.dtype)
        read = cell.opened_setting.read if cell.opened_setting is not None else None
        if read is not None and found[cell.model]["class_order"]:
            found[cell.model]["class_order"] = f"outputs: {read.known.words}"
    return list(found.values())


def _as_object(name: str, opened: OpenedModel, dtype: str) -> dict[str, Any]:
    model = opened.definition
    source = model.weights_source
    return {
        "model": name,
        "preprocessing": _spec(model.transform),
        "normalization": _spec(model.normalization),
        "preprocessing_from": model.preprocessing_from or None,
        "remarks": list(model.remarks),
        "num_classes": model.num_classes,
        "class_order": model.class_order.words if model.class_order is not None else None,
        "dtype": dtype,
        "weights": opened.weights.id if opened.weights else None,
        "weights_files": [str(path) for path in source.paths] if isinstance(source, LocalFiles) else [],
    }


def _spec(part: Any) -> Any:
    """The parameters of a transform or normalization with its type; for any other function, its name."""
    if isinstance(part, LazyTransform | StandardNormalization):
        return {"type": type(part).__name__, **part.spec()}
    return None if part is None else getattr(part, "__qualname__", type(part).__name__)


def print_models(report: Report) -> None:
    """Prints a line for each model with results that prepares its images by a transform; preparations only once."""
    done = {outcome.model for outcome in report.finished}
    lines: list[str] = []
    first: dict[str, str] = {}  # preparation → the first model with it
    for model in models_as_objects(report):
        if model["model"] in done and (prepared := _preparation(model)):
            same = first.setdefault(prepared, model["model"])
            lines.append(_line(model, prepared if same == model["model"] else f"images as for {same}"))
    say_some(lines, SHOWN, "{}; --json shows the preprocessing of each", "more model")


def lines_of_models(report: Report) -> list[str]:
    """A line for each model of a run that prepares its images by a transform."""
    return [_line(model, prepared) for model in models_as_objects(report) if (prepared := _preparation(model))]


def _preparation(model: dict[str, Any]) -> str:
    """Describes the preparation of a model's images; empty without a transform."""
    if not model["preprocessing"]:
        return ""
    found = [_words(model["preprocessing"]), _words(model["normalization"])]
    found += [f"from {model['preprocessing_from']}"] if model["preprocessing_from"] else []
    return "; ".join(filter(None, found))


def _line(model: dict[str, Any], prepared: str) -> str:
    parts = [prepared]
    if model["num_classes"] is not None:
        parts.append(_classes_in_words(model["num_classes"]))
    parts.append(model["dtype"])
    if model["weights"]:
        kind, _, digest = model["weights"].partition(":")
        files = " ".join(Path(file).name for file in model["weights_files"])
        parts.append(f"weights{files and ' '}{files} {kind}:{digest[:DIGEST]}")
    parts += model["remarks"]
    if model["class_order"]:
        parts.append(model["class_order"])
    return f"{model['model']}: {'; '.join(filter(None, parts))}"


def _words(part: Any) -> str:
    if not isinstance(part, dict):
        return part or ""
    shown = {key: value for key, value in part.items() if key != "type" and value is not None}
    return ", ".join(f"{_key(key)} {_value(value)}" for key, value in shown.items()).removesuffix(", input_space RGB")


def _classes_in_words(number: int) -> str:
    return "1 class" if number == 1 else f"{number:,} classes"


def _key(key: str) -> str:
    return key.removeprefix("img_").removesuffix("_size") if key.startswith("img_") else key


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_value(inner) for inner in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


# Chance -----------------------------------------------------------------------------------------------------------


def lines_of_chance(report: Report, results: Sequence[Any]) -> list[str]:
    """Lines about cells whose top-1 accuracy is no better than guessing: often a sign of wrong preprocessing."""
    cells = {(cell.model, cell.setting): cell for cell in report.plan.cells}
    lines = []
    for result in results:
        cell = cells.get((result.model, result.eval_setting))
        if (result.metric, result.slice) != ("top1", OVERALL) or cell is None or result.random_weights:
            continue
        classes = _classes(cell)
        if classes and result.n and result.n >= FEWEST and result.value is not None and _is_chance(result, classes):
            lines.append(
                f"At chance level: {result.model} on {result.eval_setting}: {percent(result.value)} % of"
                f" {result.n:,} samples; guessing among {_classes_in_words(classes)} gives {percent(1 / classes)} %."
                " Check the preprocessing, the order of the classes, and the weights"
            )
    return lines


def _is_chance(result: Any, classes: int) -> bool:
    chance = 1 / classes
    return bool(result.value <= chance + DEVIATIONS * math.sqrt(chance * (1 - chance) / result.n))


def _classes(cell: Cell) -> int | None:
    """The number of classes that a setting without any perturbation chooses from; None if unknown."""
    opened = cell.opened_setting
    if opened is None:
        return None
    setting = opened.setting
    if setting.perturbation or setting.metrics_fn is not None:
        return None
    if setting.class_sublist is not None:
        return len(setting.class_sublist)
    if opened.read is not None:
        return len(opened.read.columns(setting.among_present))
    names = getattr(opened.source, "class_names", None)
    return setting.num_classes or (len(names) if names else None)
