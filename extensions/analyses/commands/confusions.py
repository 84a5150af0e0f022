"""``testbed confusions``: the classes that models confuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import limit_option, models_option, note, setting_argument
from testbed.console.options import store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import percent

if TYPE_CHECKING:
    from testbed.extensions.analyses.confusions import Confusion


@store_command
@setting_argument
@click.option("--by-model", is_flag=True, help="List each model separately.")
@models_option
@limit_option
def command(setting: str, by_model: bool, models: Sequence[str], limit: int, db_url: str | None, as_json: bool) -> int:
    """List the classes that are most often confused."""
    from testbed.db.store import Store
    from testbed.extensions.analyses.confusions import confused_classes

    with Store.open(db_url) as store:
        found = confused_classes(store, setting, models, by_model, limit, note)
    if as_json:
        print_json([{"eval_setting": setting, **asdict(confusion), "share": confusion.share} for confusion in found])
        return 0
    click.echo(_classes(found, by_model) if found else "no class is confused with another")
    footnote(f"on {setting}; share: of the predictions for samples of the true class")
    return 0


def _classes(found: list[Confusion], each_model: bool) -> str:
    header = ["true class", "predicted", "count", "of", "share"]
    lines = [
        [
            *([str(confusion.model)] if each_model else []),
            *(
                confusion.true_name,
                confusion.predicted_name,
                f"{confusion.count:,}",
                f"{confusion.n:,}",
                f"{percent(confusion.share)} %",
            ),
        ]
        for confusion in found
    ]
    first = int(each_model)
    return table([*(["model"] if each_model else []), *header], lines, right=range(2 + first, 5 + first))
