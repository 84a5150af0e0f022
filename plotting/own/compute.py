"""Error against training compute: power laws, fitted as lines in logarithms, with intervals by bootstrap.

As in CLIP benchmark's scaling study (Cherti et al. 2023), E = factor · C^exponent for the error E of models trained
with compute C, by least squares of log E on log C. The models are drawn with replacement for the intervals.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from testbed.arrays import Array
from testbed.errors import TestbedError, shortened
from testbed.formatting import fixed, percent
from testbed.metric_specs import HIGHER, LOWER
from testbed.paths import read_regular
from testbed.plotting.labels import add_names
from testbed.plotting.own.source import Drawing, Found, Omission, Own, file_name
from testbed.plotting.own.training import COLOURS
from testbed.plotting.style import Mark, add_points, faint, finish, padded

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FEWEST = 4  # models of a fit
DRAWS = 2000
SEED = 0
# The columns, with those of CLIP benchmark's scaling table.
MODEL, COMPUTE, GROUP = ("model", "model_fullname"), ("compute", "gmacs_total"), ("group", "upstream_dataset")
ALL = "all models"


class Training(NamedTuple):
    """A model's training.

    Attributes:
        compute: In any unit, the same for all models.
        group: Models of a group have a line of their own.
    """

    compute: float
    group: str


class Fit(NamedTuple):
    """A power law of some models.

    Attributes:
        exponent: The slope in logarithms, negative if more compute reduces the error.
        factor: The error at a compute of 1.
        exponent_interval: Its 95 % interval.
        factor_interval: Likewise.
        r2: The share of the variance of the logarithms that the line explains.
        draws: Float array [draws, 2]: the slope and the intercept (base 10) of each drawn set of models.
    """

    exponent: float
    factor: float
    exponent_interval: tuple[float, float]
    factor_interval: tuple[float, float]
    r2: float
    draws: Array

    def band(self, compute: Array) -> tuple[Array, Array, Array]:
        """The line's error at each compute [n], and the ends of its 95 % interval."""
        logs = np.log10(compute)
        lines = self.draws[:, :1] * logs + self.draws[:, 1:]
        low, high = np.quantile(lines, (0.025, 0.975), axis=0)
        return self.factor * compute**self.exponent, 10**low, 10**high


def read_training(path: Path) -> dict[str, Training]:
    """Reads a table of the models' compute.

    Args:
        path: A CSV file with the columns ``model`` and ``compute``, and optionally ``group``; or CLIP benchmark's
            scaling table, with ``model_fullname``, ``gmacs_total`` and ``upstream_dataset``.

    Raises:
        TestbedError: If it cannot be read, a column is missing, or a compute is not a positive number.
    """
    try:
        reader = csv.DictReader(io.StringIO(read_regular(path).decode("utf-8-sig"), newline=""))
        rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TestbedError(f"--compute {path}: the file cannot be read: {error}") from error
    columns = [_column(path, reader.fieldnames or (), names, names is not GROUP) for names in (MODEL, COMPUTE, GROUP)]
    found: dict[str, Training] = {}
    for number, row in enumerate(rows, start=2):
        name = (row[columns[0]] or "").strip()
        if columns[0] == MODEL[1]:
            name = name.replace(" ", ",", 1)
        compute = _number(row[columns[1]])
        if not name or compute is None:
            given = shortened(row[columns[1]] or "")
            raise TestbedError(
                f"--compute {path}, row {number}: a model and a positive number are expected, got {given}"
            )
        found[name] = Training(compute, (row[columns[2]] or "").strip() if columns[2] else "")
    return found


def _column(path: Path, header: Sequence[str], names: Sequence[str], needed: bool) -> str:
    column = next((name for name in names if name in header), "")
    if needed and not column:
        raise TestbedError(
            f"--compute {path}: there is no column {names[0]}; expected model, compute and optionally group"
        )
    return column


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


def fit(compute: Array, error: Array, draws: int = DRAWS, seed: int = SEED) -> Fit:
    """Fits error = factor · compute^exponent by least squares of the logarithms.

    Args:
        compute: Float array [n], positive, with two different values.
        error: Float array [n], positive.
        draws: Sets of n models drawn with replacement, for intervals; those of a single compute are not used.
        seed: The seed of the draws.
    """
    x, y = np.log10(compute), np.log10(error)
    slope, intercept = _line(x[None], y[None])[0]
    random = np.random.default_rng(seed)
    chosen = random.integers(0, len(x), (draws, len(x)))
    lines = _line(x[chosen], y[chosen])
    lines = lines[np.isfinite(lines).all(axis=1)]
    ends = np.quantile(lines, (0.025, 0.975), axis=0)
    variance = np.var(y)
    residual = np.mean((y - slope * x - intercept) ** 2)
    return Fit(
        *(float(slope), float(10**intercept)),
        *((float(ends[0, 0]), float(ends[1, 0])), (float(10 ** ends[0, 1]), float(10 ** ends[1, 1]))),
        *(float(1 - residual / variance) if variance > 0 else math.nan, lines),
    )


def _line(x: Array, y: Array) -> Array:
    """Least squares of each row: slopes and intercepts [rows, 2], NaN where all x are equal."""
    centred = x - x.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=1)
    alike = np.ptp(x, axis=1) == 0
    slope = (centred * y).sum(axis=1) / np.where(alike, np.nan, spread)
    return np.stack([slope, y.mean(axis=1) - slope * x.mean(axis=1)], axis=1)


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting with enough models of known compute; none without a table."""
    if own.compute is None:
        return
    training = read_training(own.compute)
    for setting in own.unperturbed:
        better = own.specs[setting].better
        if better not in (HIGHER, LOWER):
            why = f"it is unknown whether a higher or a lower {own.metrics[setting]} is better"
            yield Omission(f"compute on {setting}", why)
            continue
        values = own.values(setting)
        values = values[values.index.isin(list(training))]
        points = values[["model_type", "value"]].assign(
            error=1 - values["value"] if better == HIGHER else values["value"],
            compute=[training[name].compute for name in values.index],
            group=[training[name].group or ALL for name in values.index],
        )
        points = points[points["error"] > 0]
        fits = {
            str(group): fit(rows["compute"].to_numpy(), rows["error"].to_numpy())
            for group, rows in points.groupby("group")
            if len(rows) >= FEWEST and rows["compute"].nunique() > 1
        }
        if not fits:
            yield Omission(f"compute on {setting}", f"fewer than {FEWEST} models of a group have a known compute")
            continue
        yield Drawing(
            file_name("compute", setting),
            partial(draw, points, fits, setting, own.metrics[setting], own.marks, own.labels),
            numbers(points, fits, setting, own.metrics[setting]),
        )


def draw(
    points: pd.DataFrame,
    fits: Mapping[str, Fit],
    setting: str,
    metric: str,
    marks: Mapping[str, Mark],
    pinned: Sequence[str] = (),
) -> Figure:
    """Draws a point for each model, and the line of each group with its band."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, (group, found) in enumerate(fits.items()):
        colour = COLOURS[place % len(COLOURS)]
        own = points.loc[points["group"] == group, "compute"]
        xs = np.logspace(np.log10(own.min()), np.log10(own.max()), 50)
        line, low, high = found.band(xs)
        figure.add_trace(
            go.Scatter(
                x=[*xs, *xs[::-1]],
                y=100 * np.concatenate([low, high[::-1]]),
                mode="lines",
                line={"width": 0},
                fill="toself",
                fillcolor=faint(colour, 0.15),
                showlegend=False,
                hoverinfo="skip",
            )
        )
        figure.add_trace(go.Scatter(x=xs, y=100 * line, mode="lines", line={"color": colour}, name=_name(group, found)))
    add_points(
        figure,
        points["model_type"].fillna("not stated"),
        points["compute"],
        100 * points["error"],
        [[name, percent(error)] for name, error in points["error"].items()],
        "<b>%{customdata[0]}</b><br>compute %{x:.3s}<br>error %{customdata[1]} %<extra>%{fullData.name}</extra>",
        marks=[marks[name] for name in points.index],
    )
    x, y = np.log10(points["compute"].to_numpy()), np.log10(100 * points["error"].to_numpy())
    figure.update_xaxes(title_text="training compute", type="log", range=padded(x))
    figure.update_yaxes(title_text=f"error on {setting} (%, of {metric})", type="log", range=padded(y))
    finish(figure, f"Error on {setting} by training compute; bands: 95 % over models")
    add_names(figure, x, y, list(points.index), None, pinned)
    return figure


def _name(group: str, found: Fit) -> str:
    low, high = found.exponent_interval
    return f"{group}: E ∝ C^{fixed(found.exponent, 3)} [{fixed(low, 3)}, {fixed(high, 3)}]"


def numbers(points: pd.DataFrame, fits: Mapping[str, Fit], setting: str, metric: str) -> dict[str, Any]:
    """The numbers as plain values; errors in percent."""
    return {
        "eval_setting": setting,
        "metric": metric,
        "fits": [
            {
                "group": group,
                "models": int((points["group"] == group).sum()),
                "exponent": found.exponent,
                "exponent_interval": list(found.exponent_interval),
                "factor": 100 * found.factor,
                "factor_interval": [100 * end for end in found.factor_interval],
                "r2": None if math.isnan(found.r2) else found.r2,
            }
            for group, found in fits.items()
        ],
        "models": [
            {"model": row.Index, "group": row.group, "compute": row.compute, "error": 100 * row.error}
            for row in points.itertuples()
        ],
    }
