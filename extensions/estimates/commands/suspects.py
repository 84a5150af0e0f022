"""``testbed suspects``: lists samples with doubtful labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import limit_option, models_option, note, score_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, say, table
from testbed.formatting import fixed

if TYPE_CHECKING:
    from testbed.extensions.estimates.suspects import Suspect


@store_command
@setting_argument
@models_option
@score_option
@limit_option
def command(
    setting: str, models: Sequence[str], score: str | None, limit: int, db_url: str | None, as_json: bool
) -> int:
    """List samples with doubtful labels.

    A label is doubtful if the better half of the models agree on another class, or if better models get the sample
    wrong more often (a negative discrimination in item response theory).
    """
    from testbed.db.store import Store
    from testbed.extensions.estimates.suspects import suspects
    from testbed.stored_results.main_scores import main_score_on

    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting], binary=True)
        found = suspects(store, setting, models, score, note)
    if as_json:
        flags = ("alike", "negative")
        print_json(
            [{**asdict(suspect), **{name: getattr(suspect, name) for name in flags}} for suspect in found[:limit]]
        )
        return 0
    if not found:
        say(f"No label of {setting} is doubtful.")
        return 0
    click.echo(_samples(found[:limit]))
    footnote(
        f"{min(limit, len(found)):,} of {count(len(found), 'suspect')} on {setting}, by {score}; best say: the"
        " class"
        " that most of the better half of the models predict, and their number; discrimination: below 0"
        " where better models are wrong more often; hard samples look like wrong labels, so look at them; --limit"
        " shows more"
    )
    return 0


def _samples(found: Sequence[Suspect]) -> str:
    header = ["sample", "label", "best say", "by", "models wrong", "discrimination", "in doubt by"]
    lines = [
        [
            *(suspect.sample, suspect.target_name if suspect.target_name is not None else str(suspect.target)),
            *("–" if suspect.said_name is None else suspect.said_name, f"{suspect.said_by} of {suspect.best}"),
            *(
                f"{suspect.wrong} of {suspect.models}",
                f"{fixed(suspect.discrimination, 2)} ± {fixed(suspect.error, 2)}",
            ),
            " and ".join(
                [*(["the best models"] if suspect.alike else []), *(["discrimination"] if suspect.negative else [])]
            ),
        ]
        for suspect in found
    ]
    return table(header, lines, right=[3, 4, 5])
