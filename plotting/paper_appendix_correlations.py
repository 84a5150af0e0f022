"""Appendix: correlation of effective robustness to synthetic and natural shifts, for every pair of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from testbed.formatting import fixed
from testbed.plotting.frame import CORRUPTED, Grid
from testbed.plotting.page import scaled
from testbed.plotting.paper import both_robustnesses, correlation, of_all_models
from testbed.plotting.paper_shifts import SHIFTS
from testbed.plotting.picture import Choice, Picture
from testbed.plotting.scatter import ScatterData, ScatterSpec
from testbed.plotting.setting_labels import setting_label
from testbed.plotting.style import finish, margins

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

NATURAL = "imagenetv2 objectnet vid_robust ytbb_robust vid_robust_pm10 ytbb_robust_pm10 imagenet_a".split()
SYNTHETIC = ("_in-memory", "_on-disk", "pgd.", "avg_", "stylized_imagenet", "greyscale")


def data(grid: Grid, choice: Choice) -> pd.DataFrame:
    """Draws how effective robustness to synthetic shifts correlates with that to natural ones."""
    natural = [SHIFTS[name] for name in NATURAL if {SHIFTS[name].x, SHIFTS[name].y} <= set(grid.values)]
    table = pd.DataFrame(index=_synthetic(grid), columns=[spec.y for spec in natural], dtype=float)
    scale = choice.scale or "logit"
    of_natural = {spec.y: _robustness(grid, replace(spec, merge_types=True, scale=scale)) for spec in natural}
    for shift in table.index:
        of_shift = _robustness(grid, ScatterSpec(choice.x or "val", shift, scale=scale, least_on="val"))
        for other, found in of_natural.items():
            if of_shift is not None and found is not None:
                table.loc[shift, other] = correlation(both_robustnesses(of_shift, found))
    table = table.dropna(how="all").dropna(how="all", axis=1)
    if table.empty:
        raise ValueError("too few models have both synthetic and natural shifts")
    return table


def _robustness(grid: Grid, spec: ScatterSpec) -> ScatterData | None:
    """Effective robustness of all models; None if too few have both settings for a line."""
    try:
        return of_all_models(grid, spec)
    except ValueError:
        return None


def _synthetic(grid: Grid) -> list[str]:
    return sorted(
        column
        for column in grid.matching()
        if any(part in column for part in SYNTHETIC) and not CORRUPTED.fullmatch(column)
    )


def figure(table: pd.DataFrame) -> Figure:
    """A heat map of correlation coefficients."""
    import plotly.graph_objects as go

    drawn = go.Figure(
        go.Heatmap(
            z=table.to_numpy(),
            x=[setting_label(column) for column in table.columns],
            y=list(table.index),
            colorscale="RdBu",
            reversescale=True,
            zmid=0,
            zmin=-1,
            zmax=1,
            text=_texts(table, 2),
            texttemplate="%{text}",
            textfont={"size": scaled(11)},  # without a colour: plotly takes the one with more contrast in each cell
            customdata=_texts(table, 3),
            hovertemplate="%{y}<br>%{x}<br>r = %{customdata}<extra></extra>",
            colorbar={"title": "r", "len": 0.4},
        )
    )
    drawn.update_layout(showlegend=False)
    finish(drawn, "Correlation of effective robustness", width=980, height=260 + 24 * len(table))
    drawn.update_layout(margin=margins(240, 60, 60, 200))
    drawn.update_xaxes(tickangle=-40, tickfont={"size": scaled(12)}, showgrid=False)
    drawn.update_yaxes(autorange="reversed", tickfont={"size": scaled(12)}, dtick=1, showgrid=False)
    return drawn


def numbers(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The numbers as plain values."""
    return [
        {"synthetic": shift, "natural": natural, "r": float(r)}
        for shift, row in table.iterrows()
        for natural, r in row.dropna().items()
    ]


PICTURE = Picture("appendix_correlations", data, figure, numbers)

if __name__ == "__main__":
    PICTURE.main()


def _texts(table: pd.DataFrame, decimals: int) -> list[list[str]]:
    return [["" if math.isnan(value) else fixed(value, decimals) for value in row] for row in table.to_numpy()]
