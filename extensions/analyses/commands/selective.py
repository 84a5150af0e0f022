"""``testbed selective``: accuracy of models that may abstain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import models_argument, note, required_settings_option
from testbed.console.options import store_command
from testbed.console.output import CLUSTERED, footnote, print_json, sample_count, table
from testbed.formatting import MINUS, percent

if TYPE_CHECKING:
    from testbed.extensions.analyses.answered import Selective

BY = ("probability", "margin", "entropy", "logit")
_POINTS = 200  # of a curve in JSON
_FINE = {"probability": "log odds {:.4g}", "margin": "−log(1 − margin) {:.4g}"}


@store_command
@models_argument
@required_settings_option
@click.option(
    "--risk",
    type=click.FloatRange(0, 100, min_open=True, max_open=True),
    default=5.0,
    show_default=True,
    metavar="PERCENT",
    help="The accepted percentage of wrong answers among those given.",
)
@click.option(
    "--by",
    type=click.Choice(BY),
    default=BY[0],
    show_default=True,
    help="The confidence measure: largest probability; margin to the second; negative entropy; largest logit.",
)
@click.option(
    "--delta",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="The probability that the guarantee is wrong.",
)
def command(
    models: Sequence[str],
    settings: Sequence[str],
    risk: float,
    by: str,
    delta: float,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Report accuracy when models may abstain.

    A model answers its most confident samples. Prints the mean risk over all coverages, the coverage at a given risk,
    and a threshold that also keeps this risk on new samples.

    \b
    Example:
      testbed selective digits-cnn digits-mlp --on digits --risk 1
    """
    from testbed.db.store import Store
    from testbed.extensions.analyses.answered import selective_predictions

    with Store.open(db_url) as store:
        found = selective_predictions(store, models, settings, risk / 100, by, delta, note)
    if as_json:
        print_json([_as_object(selective, risk, by, delta) for selective in found])
        return 0
    header = ["setting", "model", "n", "risk of all", "AURC", "95 %", "excess"]
    header += [f"answered at {risk:g} %", "95 %", "guaranteed", "from"]
    click.echo(table(header, [_cells(row, by) for row in found], right=range(2, len(header))))
    clustered = any(selective.clusters for selective in found)
    footnote(
        "in percent; risk: wrong answers among those given; AURC: the mean risk over all coverages; excess: AURC"
        " minus that"
        " of the best order of the same answers; answered: the largest coverage with a risk of"
        f" {risk:g} % on these samples; guaranteed: the coverage of a threshold ({by}) whose risk on new samples like"
        f" these is at most {risk:g} %, wrong with the probability {delta:g} (SGR); intervals: bootstrap"
        + (f"; {CLUSTERED}, and no threshold is guaranteed for groups" if clustered else "")
    )
    return 0


def _cells(row: Selective, by: str) -> list[str]:
    area, at = row.area, row.at_risk
    return [
        *(row.eval_setting, row.model, sample_count(row.n, row.clusters), percent(row.error)),
        *(percent(area.value), _interval(area.low, area.high), percent(area.excess)),
        *(percent(at.coverage, 1), _interval(at.low, at.high, 1)),
        *(("nothing", "–") if at.threshold is None else (percent(at.guaranteed, 1), _threshold(row, by))),
    ]


def _threshold(row: Selective, by: str) -> str:
    """A threshold that can be applied: on the scale that does not saturate where the usual one rounds to 1."""
    shown = f"{row.at_risk.threshold:.6g}"
    if shown != "1" or row.fine_threshold is None or by not in _FINE:
        return shown.replace("-", MINUS)
    return _FINE[by].format(row.fine_threshold)


def _interval(low: float, high: float, digits: int = 2) -> str:
    return f"[{percent(low, digits)}, {percent(high, digits)}]"


def _as_object(row: Selective, risk: float, by: str, delta: float) -> dict[str, Any]:
    whole = row.curve
    step = max(1, len(whole.coverage) // _POINTS)
    places = sorted({*range(0, len(whole.coverage), step), len(whole.coverage) - 1})
    return {
        **{"model": row.model, "eval_setting": row.eval_setting, "n": row.n, "unread": row.unread},
        **{"clusters": row.clusters, "by": by, "error": row.error, "aurc": asdict(row.area)},
        "at_risk": {"risk": risk / 100, "delta": delta, **asdict(row.at_risk), "fine_threshold": row.fine_threshold},
        "curve": [
            {
                "coverage": whole.coverage[place],
                "risk": whole.risk[place],
                "threshold": _finite(whole.thresholds[place]),
            }
            for place in places
        ],
    }


def _finite(value: float) -> float | None:
    return float(value) if value > float("-inf") else None
