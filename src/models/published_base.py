"""Numbers that were published about a model, to hold its evaluations against."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A number that somebody published about a model.

    Attributes:
        eval_setting: On what, such as ``"val"``.
        metric: Which number, such as ``"top1"``.
        value: A fraction where the metric is a rate.
        source: Who published it, for people.
    """

    eval_setting: str
    metric: str
    value: float
    source: str
