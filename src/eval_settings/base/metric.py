"""The results of custom metrics, and the metric of ImageNet-testbed's settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from testbed.entities import OVERALL, Metric, Score
from testbed.errors import DefinitionError
from testbed.metric_specs import MAIN, MetricSpec, spec_of

log = logging.getLogger("testbed")


class Percent(float):
    """A rate in percent, stored as a fraction.

    Attributes:
        spec: Its declaration; None if it is only a rate.
    """

    spec: MetricSpec | None = None

    @classmethod
    def of(cls, fraction: float, spec: MetricSpec) -> Percent:
        """Returns a fraction with its declaration."""
        made = cls(100 * fraction)
        made.spec = spec
        return made


def accuracy_topk(logits: Any, targets: Any, topk: Sequence[int] = (1, 5)) -> dict[str, Percent]:
    """Computes top-k accuracies in percent, ``{"top1": …, "top5": …}``, as ImageNet-testbed's function of that name.

    Args:
        logits: Tensor or array [n, C].
        targets: Tensor or array [n] of class indices; one for which there is no logit is wrong.
        topk: The k to compute; one that exceeds C is NaN.
    """
    import numpy as np

    from testbed.metrics.classification import NEVER, target_ranks, topk_correct
    from testbed.metrics.scorers.classification import top

    values = np.asarray(logits.float() if hasattr(logits, "float") else logits)
    wanted = np.asarray(targets)
    known = (wanted >= 0) & (wanted < values.shape[1])
    ranks = np.where(known, target_ranks(values, np.where(known, wanted, 0)), NEVER)
    return {
        f"top{k}": Percent.of(
            topk_correct(ranks, k).mean() if k <= values.shape[1] and len(ranks) else float("nan"), top(k)
        )
        for k in topk
    }


def as_metrics(returned: Any, n: int, scorer: str, what: str) -> list[Metric]:
    """Converts the result of a ``metrics_fn`` to metrics.

    Args:
        returned: A dictionary of names to numbers, to pairs (number, unit), or to `Metric`; or a list of `Metric`.
        n: The number of samples, for numbers without one.
        scorer: The scorer that computed them.
        what: The setting, for messages.

    Returns:
        Metrics with unchanged values, except `Percent` values, which become fractions. Unit, direction and range are
        those that a `Metric` or a `Percent` declares; for a plain number they are unknown. If none is declared as a
        main metric, the first is the main one. Texts beside numbers are left out, with a line in the log.

    Raises:
        DefinitionError: If it is something else.
    """
    if isinstance(returned, Mapping):
        texts = {name: value for name, value in returned.items() if isinstance(value, str)}
        numbers = {name: value for name, value in returned.items() if name not in texts}
        if texts and numbers:  # such as how classes were merged
            said = ", ".join(f"{name}={value!r:.40}" for name, value in texts.items())
            log.warning(f"{what}: metrics are numbers; not stored: {said}")
            returned = numbers
        return _with_main([_as_metric(str(name), value, n, scorer, what) for name, value in returned.items()])
    if isinstance(returned, list | tuple) and returned and all(isinstance(value, Metric) for value in returned):
        return _with_main([_as_metric(value.name, value, n, scorer, what) for value in returned])
    raise DefinitionError(
        f"{what}: metrics_fn must return a dictionary of names to numbers (or a list of Metric), not {returned!r:.80}"
    )


def _as_metric(name: str, value: Any, n: int, scorer: str, what: str) -> Metric:
    if isinstance(value, Metric):
        return replace(checked(value, what), name=name, scorer=scorer, published=None)
    if isinstance(value, Percent):
        spec = value.spec or MetricSpec(name, lowest=0, highest=1)
        return replace(spec, name=name).metric(float(value) / 100, n, scorer=scorer)
    unit = ""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str):
        value, unit = value
    try:
        number = float(value)
        if isinstance(value, str | bytes):
            raise TypeError
    except (TypeError, ValueError):
        raise DefinitionError(f"{what}: the metric {name!r} is {value!r:.80}, which is not a number") from None
    return MetricSpec(name, unit).metric(number, n, scorer=scorer)


def _with_main(metrics: list[Metric]) -> list[Metric]:
    """The metrics with the first of all samples as the main one, unless one is declared as such."""
    first = next((metric for metric in metrics if metric.slice == OVERALL), None)
    if first is None or any(metric.headline > 0 for metric in metrics):
        return metrics
    return [replace(metric, headline=MAIN) if metric is first else metric for metric in metrics]


AnyValue = TypeVar("AnyValue", Metric, Score)


def checked(value: AnyValue, what: str) -> AnyValue:
    """A metric or a score whose declaration is valid; raises DefinitionError if it is not."""
    try:
        spec_of(value)
    except DefinitionError as error:
        raise DefinitionError(f"{what}: {error}") from None
    return value
