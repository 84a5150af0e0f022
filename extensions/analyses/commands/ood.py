"""``testbed ood``: out-of-distribution detection from stored logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import STORED_SETTING, models_argument, note
from testbed.console.options import ManyWords, Option, store_command
from testbed.console.output import footnote, print_json, table
from testbed.formatting import interval, percent

if TYPE_CHECKING:
    from testbed.extensions.analyses.detection import DetectionInterval
    from testbed.extensions.analyses.unknown import Detection

_HEADER = ("model", "score", "", "out of the distribution", "n", "AUROC", "FPR95", "AUPR out", "AUPR in")


@store_command
@models_argument
@click.option("--in", "inside", cls=Option, required=True, help="In-distribution samples.", **STORED_SETTING)
@click.option(
    "--near",
    cls=ManyWords,
    help="Out-of-distribution samples that are hard to detect; also prints their mean.",
    **STORED_SETTING,
)
@click.option(
    "--far",
    cls=ManyWords,
    help="Out-of-distribution samples that are easier to detect; also prints their mean.",
    **STORED_SETTING,
)
@click.option("--out", cls=ManyWords, help="Other out-of-distribution samples.", **STORED_SETTING)
@click.option(
    "--score",
    "scores",
    cls=ManyWords,
    metavar="NAME",
    help="Any of msp, max_logit, energy, kl_uniform, kl_matching, gen.  [default: all]",
)
@click.option(
    "--fit",
    cls=Option,
    help="The samples that kl_matching is fitted on.  [default: a tenth of those of --in]",
    **STORED_SETTING,
)
def command(
    models: Sequence[str],
    inside: str,
    near: Sequence[str],
    far: Sequence[str],
    out: Sequence[str],
    scores: Sequence[str],
    fit: str | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Evaluate out-of-distribution detection from stored logits.

    MODEL, --near, --far and --out take names and patterns. Out-of-distribution samples are the positives.

    \b
    Example:
      testbed ood 'digits-*' --in digits --near digits-rotated --far digits-inverted
    """
    from testbed.db.store import Store
    from testbed.extensions.analyses.unknown import detections
    from testbed.stored_results.side_by_side import matching_settings

    with Store.open(db_url) as store:
        kinds = {"near": near, "far": far, "out": out}
        outside = {kind: matching_settings(store, words) for kind, words in kinds.items() if words}
        found = detections(store, models, inside, outside, scores, fit, note)
    if as_json:
        print_json([{**asdict(row), "in": inside} for row in found])
        return 0
    click.echo(table(_HEADER, _cells(found), right=range(4, len(_HEADER))))
    footnote(
        f"in %, with 95 % intervals; in the distribution: {found[0].n_in:,} samples of {inside}; positive: those out of"
        f" it; FPR95: samples of {inside} taken for others where 95 % of the others are found; intervals: linearised"
        " (of AUROC DeLong's), with the samples of a group or of the same image as one"
    )
    return 0


def _cells(found: Sequence[Detection]) -> list[list[str]]:
    """The rows of the table; values repeated from the previous row are left out."""
    lines: list[list[str]] = []
    before: Detection | None = None
    for row in found:
        model = row.model if before is None or row.model != before.model else ""
        score = row.score if model or before is None or row.score != before.score else ""
        numbers = map(_value, (row.auroc, row.fpr95, row.aupr_out, row.aupr_in))
        lines.append([model, score, row.kind, row.eval_setting, f"{row.n_out:,}", *numbers])
        before = row
    return lines


def _value(found: DetectionInterval) -> str:
    """A number with its interval."""
    return f"{percent(found.value)} {interval(found.low, found.high):>14}"
