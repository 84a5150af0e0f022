"""Metrics: pure functions on arrays, no input or output."""

from testbed.db.entities import Metric

__all__ = ["Metric"]
