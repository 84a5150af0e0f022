"""``testbed hardest``: the samples that models get wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import limit_option, models_option, note, score_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, table
from testbed.formatting import percent

if TYPE_CHECKING:
    from testbed.stored_results.mistakes import HardSample


@store_command
@setting_argument
@models_option
@score_option
@limit_option
def command(
    setting: str, models: Sequence[str], score: str | None, limit: int, db_url: str | None, as_json: bool
) -> int:
    """List the samples that most models get wrong."""
    from testbed.db.store import Store
    from testbed.stored_results.main_scores import main_score_on
    from testbed.stored_results.mistakes import hardest

    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting], binary=True)
        found = hardest(store, setting, models, score, limit, note)
    if as_json:
        print_json(
            [
                {"eval_setting": setting, **asdict(sample), "share_wrong": sample.wrong / sample.models}
                for sample in found
            ]
        )
        return 0
    click.echo(_samples(found))
    footnote(
        f"of {count(found[0].models, 'model')} on {setting}, by {score}; ties: by mean nll, then by id;"
        " mostly taken for: the class that most models predict, and their number; --limit shows more"
    )
    return 0


def _samples(found: list[HardSample]) -> str:
    header = ["sample", "target", "models wrong", "share", "mean nll", "mostly taken for", "by"]
    lines = [
        [
            *(item.sample, item.target_name if item.target_name is not None else str(item.target)),
            *(f"{item.wrong} of {item.models}", f"{percent(item.wrong / item.models, 1)} %"),
            "–" if item.mean_nll is None else f"{item.mean_nll:.3f}",
            "–" if item.predicted_name is None else item.predicted_name,
            "" if item.predicted_by is None else str(item.predicted_by),
        ]
        for item in found
    ]
    return table(header, lines, right=[2, 3, 4, 6])
