"""Metrics: pure functions on arrays, no input or output."""

from testbed.db.entities import Metric, Score

__all__ = ["Metric", "Score"]
