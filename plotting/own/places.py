"""Models ranked on a setting: bars with intervals, and which models do not differ significantly from the best."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from testbed.errors import StoreError
from testbed.formatting import percent
from testbed.plotting.own.source import Drawing, Found, Omission, Own, best, file_name, short
from testbed.plotting.page import printing, scaled
from testbed.plotting.style import finish
from testbed.stored_results.ranking import RankedModel, ranking

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_MODELS = 30
TIED, OTHER = "#0072B2", "#9CB8CC"
ROW, LETTER = 26, 12  # pixels


def figures(own: Own) -> Found:
    """Yields a figure for each unperturbed setting."""
    for setting in own.unperturbed:
        values = own.values(setting)
        models = best(values, MOST_MODELS, own.specs[setting])
        try:
            found = ranking(own.store, [setting], models, own.metrics[setting])
        except StoreError as error:
            yield Omission(f"ranking on {setting}", str(error))
            continue
        if len(values) > MOST_MODELS:
            yield Omission(f"ranking on {setting}", f"{len(values) - MOST_MODELS} worse models")
        yield Drawing(
            file_name("ranking", setting),
            partial(draw, found.rows, setting, own.metrics[setting]),
            numbers(found.rows, setting, own.metrics[setting]),
        )


def draw(rows: list[RankedModel], setting: str, metric: str) -> Figure:
    """Draws a bar for each model, the best on top. Dark ones do not differ significantly from the best."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for label, colour, members in (
        ("the best, and ties with it", TIED, [row for row in rows if is_tied(row, rows)]),
        ("others", OTHER, [row for row in rows if not is_tied(row, rows)]),
    ):
        if not members:
            continue
        values = [100 * row.place.value for row in members]
        ends = [_ends(row) or (value, value) for row, value in zip(members, values, strict=True)]
        figure.add_trace(
            go.Bar(
                x=values,
                y=[short(row.model) for row in members],
                orientation="h",
                name=label,
                marker={"color": colour},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [end - value for (_, end), value in zip(ends, values, strict=True)],
                    "arrayminus": [value - end for (end, _), value in zip(ends, values, strict=True)],
                    "thickness": 1.2,
                },
                text=[_rank(row) for row in members],
                textposition="inside",
                insidetextanchor="start",
                textangle=0,
                textfont={"size": scaled(LETTER)},
                customdata=[
                    [row.model, ", ".join(row.tied_with) or "none", percent(row.place.value)] for row in members
                ],
                hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[2]} %<br>ties: %{customdata[1]}<extra></extra>",
            )
        )
    figure.update_xaxes(title_text=f"{metric} (%)")
    order = [short(row.model) for row in rows]
    figure.update_yaxes(autorange="reversed", categoryorder="array", categoryarray=order, automargin=True, dtick=1)
    finish(figure, f"Ranking on {setting}", height=230 + ROW * len(rows))
    figure.update_layout(
        title={"subtitle": {"text": "bars: 95 %, bootstrap over samples; ties: McNemar's or sign-flip test, Holm"}},
        margin={"t": figure.layout.margin.t + scaled(20)},
    )
    if not printing():
        figure.update_layout(legend={"yref": "container", "y": 0.02, "yanchor": "bottom"}, margin={"b": 110})
    return figure


def is_tied(row: RankedModel, rows: list[RankedModel]) -> bool:
    """Returns whether a model is the best or does not differ significantly from it."""
    return row.place.rank == rows[0].place.rank or rows[0].model in row.tied_with


def _rank(row: RankedModel) -> str:
    """The rank, and its interval if it is wider."""
    place = row.place
    return (
        f"{place.rank}" if place.rank_low == place.rank_high else f"{place.rank} ({place.rank_low}–{place.rank_high})"
    )


def _ends(row: RankedModel) -> tuple[float, float] | None:
    """The interval of a model's value in percent; None if the spread is unknown."""
    low, high = row.place.low, row.place.high
    return None if low is None or high is None else (100 * low, 100 * high)


def numbers(rows: list[RankedModel], setting: str, metric: str) -> dict[str, Any]:
    """The numbers as plain values, rates in percent."""
    return {
        "eval_setting": setting,
        "metric": metric,
        "models": [
            {
                "model": row.model,
                "value": 100 * row.place.value,
                "low": ends[0] if (ends := _ends(row)) else None,
                "high": ends[1] if ends else None,
                "rank": row.place.rank,
                "rank_low": row.place.rank_low,
                "rank_high": row.place.rank_high,
                "tied_with": list(row.tied_with),
            }
            for row in rows
        ],
    }
