"""``testbed factors``: accuracy by factor, such as those of ImageNet-X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from testbed.cli.options.stored import models_option, note, score_option, setting_argument
from testbed.console.options import Option, store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import percent


@store_command
@setting_argument
@click.option(
    "--from",
    "annotations",
    cls=Option,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="JSON lines or a CSV with file_name (or id) and a column of 0 and 1 for each factor.",
)
@click.option(
    "--leave-out",
    cls=Option,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A CSV with a column file_name: images to leave out.",
)
@models_option
@score_option
def command(
    setting: str,
    annotations: Path,
    leave_out: Path | None,
    models: Sequence[str],
    score: str | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Report accuracy by factor and error ratios (ImageNet-X).

    An image may have several factors. The error ratio is the error rate of images with a factor divided by that of
    all annotated images.

    \b
    Example:
      testbed factors val --from imagenet_x_val_multi_factor.jsonl --leave-out prototypical_paths.csv
    """
    from testbed.db.store import Store
    from testbed.extensions.analyses.factors import by_factor
    from testbed.stored_results.main_scores import main_score_on

    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting], binary=True)
        found = by_factor(store, setting, models, score, annotations, leave_out, note)
    if as_json:
        print_json([{"eval_setting": setting, "score": score, **asdict(row)} for row in found])
        return 0
    lines = []
    for row in found:
        lines.append([row.model, "all annotated", f"{row.n:,}", percent(row.accuracy), "", ""])
        for name, of in row.factors.items():
            interval = "–" if of.low is None else f"[{of.low:.2f}, {of.high:.2f}]"
            ratio = "–" if of.ratio is None else f"{of.ratio:.2f}"
            lines.append(["", name, f"{of.n:,}", percent(of.accuracy), ratio, interval])
    click.echo(table(["model", "factor", "n", score, "error ratio", "95 %"], lines, right=[2, 3, 4, 5]))
    footnote(
        f"{score} on {setting} in %; error ratio: the error with the factor divided by that of all annotated samples;"
        " intervals: each for a single factor, not corrected for choosing the largest; images may have several factors"
    )
    return 0
