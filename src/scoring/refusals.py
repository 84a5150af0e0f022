"""The share of samples that a model refused, and its reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from testbed.answers.reports.scored import slice_name
from testbed.entities import OVERALL, REASON_SLICE, REFUSED, Metric
from testbed.metric_specs import LOWER, NEVER, rate
from testbed.tasks.parts.generation import refusal_of

REFUSED_SHARE = rate(REFUSED, LOWER, NEVER)
MOST_REASONS, OTHER_REASONS = 5, "other reasons"


def refused(outputs: Sequence[Any]) -> list[Metric]:
    """The metric `REFUSED` of stored answers, also for each reason; nothing where no answer was refused.

    Args:
        outputs: The stored outputs; those that are no answers are not looked at.
    """
    texts = (each for each in outputs if isinstance(each, dict) and "finish_reason" in each)
    found = Counter(reason for each in texts if (reason := refusal_of(each)) is not None)
    total = found.total()
    if not total:
        return []
    told: Counter[str] = Counter()
    for place, (reason, number) in enumerate(found.most_common()):
        told[slice_name(REASON_SLICE, reason if place < MOST_REASONS else OTHER_REASONS)] += number
    return [
        REFUSED_SHARE.metric(number / len(outputs), len(outputs), slice=part, scorer="outputs")
        for part, number in {OVERALL: total, **told}.items()
    ]
