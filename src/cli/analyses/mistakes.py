"""``db.py --hardest`` and ``--confusions``: the samples and the classes that models get wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.analyses import note
from testbed.console.output import count, percent, print_json, table

if TYPE_CHECKING:
    from testbed.analyses.mistakes import Confusion, HardSample


def run_hardest(given: dict[str, Any]) -> int:
    """``--hardest SETTING``."""
    from testbed.analyses.main_scores import main_score
    from testbed.analyses.mistakes import hardest
    from testbed.analyses.side_by_side import evaluations_on
    from testbed.db.store import Store

    setting = given["hardest"]
    with Store.open(given["db_url"]) as store:
        score = given["score"] or main_score(store, {setting: evaluations_on(store, setting).values()}, binary=True)
        found = hardest(store, setting, given["models"], score, given["limit"], note)
    if given["as_json"]:
        print_json(
            [{"eval_setting": setting, **asdict(each), "share_wrong": each.wrong / each.models} for each in found]
        )
        return 0
    click.echo(_samples(found))
    click.echo(
        f"of {count(found[0].models, 'model')} on {setting}, by {score}; ties: by mean nll, then by id;"
        " mostly taken for: the class that most models predict, and how many do; --limit shows more",
        err=True,
    )
    return 0


def _samples(found: list[HardSample]) -> str:
    header = ["sample", "target", "models wrong", "share", "mean nll", "mostly taken for", "by"]
    lines = [
        [
            *(each.sample, each.target_name if each.target_name is not None else str(each.target)),
            *(f"{each.wrong} of {each.models}", f"{percent(each.wrong / each.models, 1)} %"),
            "–" if each.mean_nll is None else f"{each.mean_nll:.3f}",
            "–" if each.predicted_name is None else each.predicted_name,
            "" if each.predicted_by is None else str(each.predicted_by),
        ]
        for each in found
    ]
    return table(header, lines, right=[2, 3, 4, 6])


def run_confusions(given: dict[str, Any]) -> int:
    """``--confusions SETTING``, over all models, or for each model with ``--by model``."""
    from testbed.analyses.mistakes import confused_classes
    from testbed.db.store import Store

    setting = given["confusions"]
    if given["by"] not in (None, "model"):
        raise click.UsageError(f"with --confusions, --by takes only 'model', not {given['by']!r}")
    with Store.open(given["db_url"]) as store:
        found = confused_classes(store, setting, given["models"], given["by"] == "model", given["limit"], note)
    if given["as_json"]:
        print_json([{"eval_setting": setting, **asdict(each), "share": each.share} for each in found])
        return 0
    click.echo(_classes(found, given["by"] == "model") if found else "no class is confused with another")
    click.echo(f"on {setting}; share: of the predictions for samples of the true class", err=True)
    return 0


def _classes(found: list[Confusion], each_model: bool) -> str:
    header = ["true class", "predicted", "count", "of", "share"]
    lines = [
        [
            *([str(each.model)] if each_model else []),
            *(each.true_name, each.predicted_name, f"{each.count:,}", f"{each.n:,}", f"{percent(each.share)} %"),
        ]
        for each in found
    ]
    first = int(each_model)
    return table([*(["model"] if each_model else []), *header], lines, right=range(2 + first, 5 + first))
