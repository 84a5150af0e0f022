"""Conversion of logits to probabilities, which affects calibration but not the order of classes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from testbed.arrays import Array
from testbed.errors import TestbedError
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.table import Table
from testbed.extensions.explain.texts import SCALE
from testbed.models.model_base import LoadOptions

COSINES, UNTRAINED = 1.0, 1 / 0.07  # factors of cosines; the second one is the initial value of CLIP's training

Found = Iterator[tuple[str, Callable[[Table], Table]]]


def _scaled(of: Callable[[], tuple[float, float]], table: Table) -> Table:
    """Logits with another scale and bias; the table itself if these do not matter, without looking them up."""
    if not table.calibration:
        return table
    scale, bias = of()

    def changed(logits: Array) -> Array:
        return logits.astype("float64") * (scale / SCALE) + bias

    whole = None if table.whole is None else changed(table.whole)
    return replace(table, logits=changed(table.logits), whole=whole)


def _scales(cell: EvaluatedCell) -> Found:
    if not cell.zero_shot:
        raise NotApplicableError("no class prompts are involved")
    yield "1: logits are cosines", partial(_scaled, lambda: (COSINES, 0.0))
    yield "14.3, as before training", partial(_scaled, lambda: (UNTRAINED, 0.0))
    if _is_here(cell):
        yield "the network's own, with its bias", partial(_scaled, functools.cache(partial(_own, cell)))


def _is_here(cell: EvaluatedCell) -> bool:
    with contextlib.suppress(TestbedError):
        return cell.model.identified_by_loading or bool(cell.model.weights(fetch=False))
    return False


def _own(cell: EvaluatedCell) -> tuple[float, float]:
    """The scale and the bias that a network was trained with; those of the stored logits by default."""
    loaded = cell.model.load(LoadOptions(random_seed=cell.random_seed))
    found = {name.rpartition(".")[2]: each for name, each in loaded.network.named_parameters()}
    scale, bias = (found.get(f"logit_{name}") for name in ("scale", "bias"))
    return (SCALE if scale is None else float(scale.exp())), (0.0 if bias is None else float(bias))


def _probabilities(cell: EvaluatedCell) -> Found:
    cell.classes  # noqa: B018 - whether it is a classification
    yield "sigmoid of each logit", lambda table: replace(table, sigmoid=table.calibration)


add_axis(Axis("logit scale", Stage.SCORES, _scales))
add_axis(Axis("probabilities", Stage.SCORES, _probabilities))
