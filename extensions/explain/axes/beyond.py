"""Differences that no search can reproduce; they are listed as not tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell

NAMED = (
    "batch statistics of training",
    "random crops of training",
    "samples drawn at random",
    "another split",
    "mean over several settings (mCE)",
)


def _none(cell: EvaluatedCell) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    cell.classes  # noqa: B018 - whether it is a classification
    raise NotApplicableError("these cannot be reproduced from this evaluation alone")


for _name in NAMED:
    add_axis(Axis(_name, Stage.SCORES, _none))
