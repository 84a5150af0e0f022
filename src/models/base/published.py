"""Published numbers of a model, to compare its evaluations with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A published number of a model.

    Attributes:
        eval_setting: The setting, such as ``"val"``.
        metric: The metric, such as ``"top1"``.
        value: The value; a fraction for rates.
        source: Its publication, for messages.
    """

    eval_setting: str
    metric: str
    value: float
    source: str
