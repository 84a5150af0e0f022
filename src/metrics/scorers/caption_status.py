"""The status of each sample's caption, and how many captions there are."""

from __future__ import annotations

from testbed.arrays import Array
from testbed.entities import Metric
from testbed.metric_specs import LAST, LOWER, NEITHER, NEVER, MetricSpec, rate
from testbed.metrics.inference.statistics import mean_and_stderr

# The values of the score ``status``: a caption, none, a blank one or a refusal, an error in place of one.
SCORED, MISSING, EMPTY, ERROR = 0, 1, 2, 3
STATUS = MetricSpec("status", "", NEITHER, 0, 3)
COVERAGE, EMPTY_SHARE = rate("coverage", headline=LAST), rate("empty", LOWER, headline=NEVER)


def shares(status: Array, scorer: str) -> list[Metric]:
    """Returns ``coverage``: the share of samples with a caption, blank or not; ``empty``: the share with a blank one.

    Args:
        status: Array [n] of the values above.
        scorer: The scorer's name in the metrics.
    """
    metrics = []
    for spec, hits in ((COVERAGE, (status != MISSING) & (status != ERROR)), (EMPTY_SHARE, status == EMPTY)):
        value, stderr = mean_and_stderr(hits)
        metrics.append(spec.metric(value, len(status), stderr, scorer=scorer))
    return metrics
