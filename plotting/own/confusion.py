"""Confusion matrices: which classes a model mistakes for which others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from testbed.arrays import Array
from testbed.entities import Evaluation
from testbed.errors import TestbedError
from testbed.formatting import percent
from testbed.plotting.own.source import Drawing, Found, Omission, Own, best, file_name, short
from testbed.plotting.page import printing, scaled
from testbed.plotting.style import finish, resize
from testbed.stored_results.predictions import has_logits, predictions_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

WIDTH, HEIGHT = 820, 780  # pixels
MOST_MODELS = 3
MOST_CLASSES = 30
SHOWN_COUNTS = 15  # largest number of classes with counts written into the fields


class Confusions(NamedTuple):
    """Counts of predicted classes for each true class.

    Attributes:
        counts: Integer array [classes, classes]: true × predicted.
        names: Names of the classes.
        left_out: Number of omitted classes.
        unread: Number of unreadable samples, which do not count.
        recall: For each class, the share of its samples that are predicted as it: its accuracy; NaN without samples.
        precision: For each class, the share of right ones among its predictions; NaN without predictions.
        samples: The number of samples of each class that count.
    """

    model: str
    eval_setting: str
    counts: Array
    names: list[str]
    left_out: int
    unread: int
    recall: Array
    precision: Array
    samples: Array


def figures(own: Own) -> Found:
    """Yields a figure for each of the best models on each unperturbed setting."""
    for setting in own.unperturbed:
        values = own.values(setting)
        drawn = 0
        for model in best(values, MOST_MODELS, own.specs[setting]):
            evaluation = own.evaluations.get(setting, {}).get(model)
            if evaluation is None or evaluation.dataset_id is None or not has_logits(own.store, evaluation):
                continue
            try:
                found = confusions(own, evaluation)
            except TestbedError as error:
                yield Omission(f"confusion of {model} on {setting}", str(error))
                continue
            drawn += 1
            yield Drawing(file_name("confusion", setting, model), partial(draw, found), numbers(found))
        if not drawn:
            yield Omission(f"confusion on {setting}", "no predicted classes are stored")
        elif len(values) > MOST_MODELS:
            yield Omission(f"confusion on {setting}", f"{len(values) - MOST_MODELS} less accurate models")


def confusions(own: Own, evaluation: Evaluation) -> Confusions:
    """Counts the confusions of an evaluation; if there are many classes, only the most confused ones.

    Raises:
        StoreError: If the targets are not single classes.
    """
    from testbed.errors import StoreError

    dataset = own.store.datasets.get(evaluation.dataset_id or 0)
    predicted = predictions_of(own.store, evaluation, dataset)
    targets = [sample.target for sample in dataset.samples]
    size = len(predicted.classes_named.names)
    if not all(type(target) is int and 0 <= target < size for target in targets):
        raise StoreError("its targets are not single classes")
    counts = count(np.array(targets), predicted.classes, size)
    shown = most_confused(counts, MOST_CLASSES)
    right, there, said = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    return Confusions(
        evaluation.model,
        evaluation.eval_setting,
        counts[np.ix_(shown, shown)],
        [predicted.classes_named.of(int(class_number)) for class_number in shown],
        size - len(shown),
        int((predicted.classes < 0).sum()),
        _shares(right, there)[shown],
        _shares(right, said)[shown],
        there[shown],
    )


def count(targets: Array, predicted: Array, classes: int) -> Array:
    """Counts [classes, classes], true × predicted, of samples with a prediction."""
    known = predicted >= 0
    places = targets[known] * classes + predicted[known]
    return np.bincount(places, minlength=classes * classes).reshape(classes, classes)


def _shares(part: Array, whole: Array) -> Array:
    shares: Array = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return shares


def most_confused(counts: Array, most: int) -> Array:
    """The classes involved in the most mistakes, up to a number, in their original order."""
    wrong = counts - np.diag(np.diag(counts))
    order = np.argsort(-(wrong.sum(axis=0) + wrong.sum(axis=1)), kind="stable")
    return np.sort(order[:most])


def _hover(counts: Array, shares: Array) -> list[list[str]]:
    return [
        [f"{count:,} samples, {percent(share / 100)} %" for count, share in zip(*row, strict=True)]
        for row in zip(counts, shares, strict=True)
    ]


def draw(found: Confusions) -> Figure:
    """Draws a field for each pair of classes, shaded by its share of the true class."""
    import plotly.graph_objects as go

    totals = found.counts.sum(axis=1, keepdims=True)
    shares = 100 * _shares(found.counts, np.broadcast_to(totals, found.counts.shape))
    names = [short(name, 24) for name in found.names]
    few = len(names) <= SHOWN_COUNTS
    figure = go.Figure(
        go.Heatmap(
            z=shares,
            x=names,
            y=names,
            zmin=0,
            zmax=100,
            colorscale="Blues",
            colorbar={"title": {"text": "% of the<br>true class"}, "thickness": scaled(30)},
            text=found.counts if few else None,
            texttemplate="%{text}" if few else None,
            customdata=_hover(found.counts, shares),
            hovertemplate="true %{y}<br>predicted %{x}<br>%{customdata}<extra></extra>",
        )
    )
    figure.update_xaxes(title_text="predicted", type="category", automargin=True, constrain="domain")
    figure.update_yaxes(title_text="true", type="category", autorange="reversed", automargin=True)
    figure.update_yaxes(scaleanchor="x", constrain="domain")
    finish(figure, f"{short(found.model, 48)} on {found.eval_setting}", width=WIDTH, height=HEIGHT)
    if printing():  # square fields need no more
        resize(figure, figure.layout.width * HEIGHT / WIDTH)
    notes = [f"the {len(names)} most confused classes; {found.left_out} others"] if found.left_out else []
    notes += [f"{found.unread} samples could not be read"] if found.unread else []
    figure.update_layout(title={"subtitle": {"text": "; ".join(notes)}})
    return figure


def numbers(found: Confusions) -> dict[str, Any]:
    """The counts as plain values."""
    return {
        "model": found.model,
        "eval_setting": found.eval_setting,
        "classes": found.names,
        "left_out": found.left_out,
        "counts": found.counts.tolist(),
        "samples": found.samples.tolist(),
        **{name: [_known(share) for share in getattr(found, name)] for name in ("recall", "precision")},
    }


def _known(share: float) -> float | None:
    return None if np.isnan(share) else float(share)
