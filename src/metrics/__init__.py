"""Metrics: pure functions on arrays.

`CLIPScore` and `clip_score` are here too, for code that takes them from torchmetrics. They load models; torch is
imported when they are first asked for.
"""

from typing import TYPE_CHECKING, Any

from testbed.entities import Metric, Score
from testbed.metric_specs import MetricSpec

if TYPE_CHECKING:
    from testbed.metrics.clip.score import CLIPScore, clip_score

__all__ = ["CLIPScore", "Metric", "MetricSpec", "Score", "clip_score"]

_LAZY = {
    "CLIPScore": "testbed.metrics.clip.score",
    "clip_score": "testbed.metrics.clip.score",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
