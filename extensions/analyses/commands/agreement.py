"""``testbed agreement``: which samples models get right and wrong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import models_option, note, score_option, setting_argument
from testbed.console.completion import stored
from testbed.console.options import ManyWords, store_command
from testbed.console.output import footnote, print_json, table
from testbed.errors import TestbedError
from testbed.formatting import percent

if TYPE_CHECKING:
    from testbed.extensions.analyses.agreement import Agreements, MeanAgreement

_BAR = 40  # characters of the longest bar


@store_command
@setting_argument
@models_option
@score_option
@click.option(
    "--with",
    "others",
    cls=ManyWords,
    metavar="NAME",
    shell_complete=stored("model"),
    help="Compare each model only with these, such as 'human:*', and print the mean.",
)
@click.option("--by", metavar="WHAT", help="With --with: within class, group or a slice; then the mean over these.")
def command(
    setting: str,
    models: Sequence[str],
    score: str | None,
    others: Sequence[str],
    by: str | None,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Measure agreement: shared errors, predicted classes.

    Prints error consistency (κ), shared errors and matching predictions of each pair of models, and how many
    models get each sample right.
    """
    from testbed.db.store import Store
    from testbed.extensions.analyses.agreement import agreement_with, agreements
    from testbed.stored_results.main_scores import main_score_on

    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting], binary=True)
        if others:
            return _with(*agreement_with(store, setting, others, models, score, by, note), setting, score, by, as_json)
        if by is not None:
            raise TestbedError("--by requires --with NAME, the models to compare with")
        found = agreements(store, setting, models, score, note)
    if as_json:
        print_json(_as_objects(found, setting, score))
        return 0
    accuracy = [[model, f"{percent(right)} %"] for model, right in found.right]
    click.echo("\n\n".join([table(["model", score], accuracy, right=[1]), _pairs(found), _histogram(found)]))
    footnote(
        f"{found.n:,} samples of {setting} that all {len(found.right)} models have: {found.counts[0]:,}"
        f" ({percent(found.counts[0] / found.n)} %) that no model gets right, {found.counts[-1]:,}"
        f" ({percent(found.counts[-1] / found.n)} %) that all get right; κ: error consistency; shared errors: share of"
        " the samples that either model gets wrong; same class: same prediction, right or wrong"
        + ("" if found.clusters is None else f"; intervals: of {found.clusters:,} groups of samples")
    )
    return 0


def _with(n: int, rows: Sequence[MeanAgreement], setting: str, score: str, by: str | None, as_json: bool) -> int:
    """Prints each model beside the others."""
    if as_json:
        common = {"kind": "with", "eval_setting": setting, "score": score, "by": by, "n": n}
        print_json(
            [
                {**common, "model": row.model, "value": row.right, "others": row.others, **asdict(row.mean)}
                for row in rows
            ]
        )
        return 0
    lines = [
        [
            *(row.model, f"{percent(row.right)} %", f"{row.others}"),
            *(_kappa(row.mean.consistency), _interval(row.mean.low, row.mean.high, _kappa)),
        ]
        for row in rows
    ]
    click.echo(table(["model", score, "with", "mean κ", "95 %"], lines, right=[1, 2, 3, 4]))
    within = "" if by is None else f", within each {by} and then over these"
    footnote(
        f"{n:,} samples of {setting}; κ: error consistency, the mean over this number of others{within}; intervals:"
        " for other"
        " samples and the same others"
    )
    return 0


def _pairs(found: Agreements) -> str:
    header = ["A", "B", "both right or wrong", "95 %", "by chance", "κ", "95 %", "shared errors", "same class"]
    lines = []
    for first, second, of, same_class in found.pairs:
        lines.append(
            [
                *(first, second, _share(of.observed)),
                *(_interval(of.observed_low, of.observed_high, percent), _share(of.expected)),
                _kappa(of.consistency),
                _interval(of.consistency_low, of.consistency_high, _kappa),
                *map(_share, (of.overlap, same_class)),
            ]
        )
    return table(header, lines, right=range(2, 9))


def _share(value: float | None) -> str:
    return "–" if value is None else f"{percent(value)} %"


def _kappa(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(low: float | None, high: float | None, shown: Callable[[float | None], str]) -> str:
    return "–" if low is None or high is None else f"[{shown(low)}, {shown(high)}]"


def _histogram(found: Agreements) -> str:
    """A histogram of the number of models that get a sample right."""
    longest = max(found.counts)
    lines = [
        [f"{k}", f"{number:,}", f"{percent(number / found.n)} %", "█" * round(_BAR * number / longest)]
        for k, number in enumerate(found.counts)
        if number
    ]
    return table(["models right", "samples", "share", ""], lines, right=[0, 1, 2])


def _as_objects(found: Agreements, setting: str, score: str) -> list[dict[str, Any]]:
    """One array of three kinds of objects: per model, per pair and per number of models that are right."""
    common = {"eval_setting": setting, "score": score}
    return [
        *({"kind": "model", **common, "model": model, "n": found.n, "value": right} for model, right in found.right),
        *(
            {
                "kind": "pair",
                **common,
                "first_model": pair.first,
                "second_model": pair.second,
                **asdict(pair.agreement),
                "clusters": found.clusters,
                "same_class": pair.same_class,
            }
            for pair in found.pairs
        ),
        *(
            {"kind": "samples", **common, "models_right": k, "models": len(found.right), "samples": number,
             "share": number / found.n}
            for k, number in enumerate(found.counts)
        ),
    ]  # fmt: skip
