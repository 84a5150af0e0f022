"""``testbed calibrate``: corrects scores from rules or judges with people's labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import models_option, score_option, setting_argument
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, sample_count, table
from testbed.errors import TestbedError
from testbed.formatting import interval, percent

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.extensions.analyses.calibrated import CorrectedMean
    from testbed.extensions.analyses.calibration import Method


@store_command
@setting_argument
@click.option(
    "--labels",
    "file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="A CSV with the columns id and label (0 to 1), and optionally model and annotator.",
)
@click.option(
    "--method",
    type=click.Choice(["ppi", "post-stratified", "rogan-gladen"]),
    default="ppi",
    show_default=True,
    help="ppi and post-stratified are for labels of answers drawn at random, rogan-gladen for labels chosen by truth.",
)
@models_option
@score_option
def command(
    setting: str,
    file: Path,
    method: Method,
    models: Sequence[str],
    score: str | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Correct scores from rules or judges with human labels.

    The labels cover some of the same answers; testbed export answers draws them.
    """
    from testbed.answers.judges.label_files import read_labels
    from testbed.db.store import Store
    from testbed.extensions.analyses.calibration import calibrate

    labels = read_labels(file)
    with Store.open(db_url) as store:
        found = calibrate(store, setting, labels, method, score or _main(store, setting), models)
    for item in found:
        if item.outdated:
            said = count(item.outdated, "label")
            footnote(f"{item.model}: left out {said} for answers other than the stored ones")
    if as_json:
        print_json([{"eval_setting": setting, "method": method, **asdict(item)} for item in found])
        return 0
    header = ["model", "n", "stored", "labels", "labels alone, 95 %", f"{method}, 95 %", "alpha"]
    lines = [
        [
            *(
                row.model,
                sample_count(row.n, row.clusters),
                percent(row.stored),
                f"{row.labels.labels:,}",
            ),
            *(_interval(row.labels), _interval(row.corrected)),
            "–" if row.alpha is None else f"{row.alpha:.3f}",
        ]
        for row in found
    ]
    click.echo(table(header, lines, right=[1, 2, 3, 4, 5, 6]))
    grouped = any(item.clusters for item in found)
    footnote(
        f"scores on {setting} in %; see docs/reading-answers.md for the assumptions of each method"
        + ("; intervals account for the groups of samples of the data set" if grouped else "")
    )
    return 0


def _main(store: Store, setting: str) -> str:
    """The main score of a setting; that of answers where none is declared."""
    from testbed.stored_results.main_scores import main_score_on

    try:
        return main_score_on(store, [setting])
    except TestbedError:
        return "score"


def _interval(found: CorrectedMean) -> str:
    return f"{percent(found.value)} {interval(found.low, found.high)}"
