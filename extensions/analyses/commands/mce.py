"""``testbed mce``: mean corruption error, relative to AlexNet or any stored model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import STORED_MODEL, STORED_SETTING, note
from testbed.console.completion import stored
from testbed.console.options import Argument, ManyWords, Option, store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import interval, percent

if TYPE_CHECKING:
    from testbed.extensions.analyses.corruptions import CorruptionErrors

_SHOWN = 8  # models whose errors under each corruption are printed


@store_command
@click.argument("models", nargs=-1, metavar="[MODEL]...", cls=Argument, shell_complete=stored("model"))
@click.option(
    "--on",
    "settings",
    cls=ManyWords,
    help="Corruptions of one family: names or patterns.  [default: imagenet-c.*_on-disk]",
    **STORED_SETTING,
)
@click.option(
    "--clean",
    cls=Option,
    default="val",
    show_default=True,
    help="The setting without corruption.",
    **STORED_SETTING,
)
@click.option(
    "--baseline",
    cls=Option,
    help="The model to normalize errors by.  [default: AlexNet's published ones]",
    **STORED_MODEL,
)
def command(
    models: Sequence[str], settings: Sequence[str], clean: str, baseline: str | None, db_url: str | None, as_json: bool
) -> int:
    """Compute the mean corruption error (mCE) of ImageNet-C.

    MODEL takes names and patterns; by default, all models with such results are shown, including imported ones.

    \b
    Examples:
      testbed mce resnet50 vgg16_bn
      testbed mce --on 'digits-c.*' --clean digits --baseline digits-knn
    """
    from testbed.db.store import Store
    from testbed.extensions.analyses.corruptions import ON, corruption_errors

    with Store.open(db_url) as store:
        found = corruption_errors(store, models, settings or (ON,), clean, baseline, note)
    if as_json:
        print_json([{**asdict(row), "baseline": baseline or "AlexNet (published)"} for row in found])
        return 0
    click.echo(_means(found))
    if len(found) <= _SHOWN:
        click.echo(f"\n{_each(found)}")
    footnote(
        f"in % of the errors of {baseline or 'AlexNet, as published (Hendrycks & Dietterich 2019)'}: less is better;"
        f" error: on {clean}; relative: what is lost under corruptions in % of what the baseline loses; 95 %: of other"
        f" images, the same under all corruptions{'' if len(found) <= _SHOWN else '; --json has each corruption'}"
    )
    return 0


def _means(found: Sequence[CorruptionErrors]) -> str:
    lines = [
        [
            *(row.model, percent(row.clean)),
            *(percent(row.mce), interval(row.low, row.high)),
            *(percent(row.relative), interval(row.relative_low, row.relative_high)),
        ]
        for row in found
    ]
    return table(["model", "error", "mCE", "95 %", "relative mCE", "95 %"], lines, right=range(1, 6))


def _each(found: Sequence[CorruptionErrors]) -> str:
    corruptions = dict.fromkeys(name for row in found for name in row.errors)
    lines = [[name, *(percent(row.errors.get(name), 1) for row in found)] for name in corruptions]
    return table(["CE", *(row.model for row in found)], lines, right=range(1, len(found) + 1))
