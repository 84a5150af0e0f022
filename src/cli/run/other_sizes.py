"""Finds checkpoints that do far better at an image size other than that of their architecture's published weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.console.output import say
from testbed.entities import OVERALL
from testbed.formatting import percent
from testbed.paths import own_temporary

if TYPE_CHECKING:
    from testbed.execution.report import Report
    from testbed.graph.options import RunOptions
    from testbed.registry.catalog import Catalog

SIZES = (32, 64, 128)  # smaller sizes cost little; a model trained on larger images loses less
SAMPLES = 200
FEWEST = 40
GOOD = 0.95  # nothing is far better than this accuracy


@dataclass(frozen=True)
class OtherSize:
    """An image size at which a checkpoint does far better.

    Attributes:
        resize: The shorter side after resizing (pixels).
        crop: The side of the crop (pixels).
        top1: Accuracy at this size on ``n`` evenly spread samples.
        usual: Accuracy of the run on all samples.
    """

    model: str
    eval_setting: str
    resize: int
    crop: int
    top1: float
    n: int
    usual: float


def other_sizes(catalog: Catalog, options: RunOptions, report: Report, results: Sequence[Any]) -> list[OtherSize]:
    """The best other size of each checkpoint that this run computed and whose size was only assumed.

    Far better means that the 95 % intervals (Wilson, 1927) of the two accuracies do not overlap.
    """
    doubtful = {model: (setting, result) for model, setting, result in _doubtful(report, results)}
    found: dict[str, OtherSize] = {}
    sizes = SIZES if doubtful and not report.interrupted else ()
    for crop in sizes:
        for model, result in _tried(catalog, options, doubtful, crop):
            usual = doubtful[model][1]
            if _far_better(result, usual) and (model not in found or result.value > found[model].top1):
                found[model] = OtherSize(
                    model, usual.eval_setting, _resize(crop), crop, result.value, result.n, usual.value
                )
    return list(found.values())


def as_objects(found: Sequence[OtherSize]) -> list[dict[str, Any]]:
    """The sizes as plain values."""
    return [asdict(size) for size in found]


def print_other_sizes(found: Sequence[OtherSize]) -> None:
    """Prints a line for each size."""
    for size in found:
        say(
            f"Another image size? {size.model} on {size.eval_setting}: {percent(size.top1)} % of {size.n} samples with"
            f" --image-size {size.resize} {size.crop}, instead of {percent(size.usual)} %. If it was trained on images"
            " of this size, run again with that option"
        )


def _doubtful(report: Report, results: Sequence[Any]) -> Iterator[tuple[str, str, Any]]:
    """The checkpoints in question, each with its first unperturbed setting and its accuracy there."""
    cells = {(cell.model, cell.setting): cell for cell in report.plan.cells}
    computed = {(outcome.model, outcome.setting) for outcome in report.of("complete")}
    seen = set()
    for result in results:
        place = (result.model, result.eval_setting)
        if (result.metric, result.slice) != ("top1", OVERALL) or place not in computed or result.model in seen:
            continue
        cell = cells[place]
        known = cell.opened_model is None or not cell.opened_model.definition.size_is_assumed
        perturbed = cell.opened_setting is None or bool(cell.opened_setting.setting.perturbation)
        if known or perturbed or result.random_weights or not result.n or result.n < FEWEST or result.value is None:
            continue
        seen.add(result.model)
        if result.value < GOOD:
            yield result.model, result.eval_setting, result


def _tried(
    catalog: Catalog, options: RunOptions, doubtful: dict[str, tuple[str, Any]], crop: int
) -> Iterator[tuple[str, Any]]:
    """Accuracy at this crop size; None if the network does not accept images of this size."""
    from testbed.db.store import Store
    from testbed.runner.run import run

    inputs = options.inputs
    if inputs is None:
        return
    asked = replace(inputs.preprocessing, resize=_resize(crop), crop=crop)
    own = [
        replace(own_name, preprocessing=replace(own_name.preprocessing, resize=_resize(crop), crop=crop))
        for own_name in inputs.own_names
    ]
    with own_temporary() as folder:
        trial = replace(
            options,
            db_url=str(Path(folder) / "results.db"),
            payload_url="",
            limit=SAMPLES,
            executor="inline",
            override=False,
            verify=None,
            inputs=replace(inputs, preprocessing=asked, own_names=tuple(own)),
        )
        for setting in dict.fromkeys(setting for setting, _ in doubtful.values()):
            models = [model for model, (first, _) in doubtful.items() if first == setting]
            report = run(catalog, trial, models, [setting])
            with Store.open(trial.db_url) as store:
                done = [outcome.evaluation_id for outcome in report.of("complete") if outcome.evaluation_id is not None]
                for result in store.results.of(done):
                    if (result.metric, result.slice) == ("top1", OVERALL) and result.value is not None:
                        yield result.model, result


def _resize(crop: int) -> int:
    """The shorter side after resizing for this crop, in ImageNet's usual ratio."""
    return round(crop * 256 / 224)


def _far_better(tried: Any, usual: Any) -> bool:
    from testbed.metrics.inference.statistics import wilson

    low, _ = wilson(tried.value, tried.n)
    _, high = wilson(usual.value, usual.n)
    return float(low) > float(high)
