"""``testbed anchors``: estimates the full score from a few samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from testbed.cli.options.stored import models_argument, models_option, note, score_option, setting_argument
from testbed.console.groups import Group
from testbed.console.options import store_command
from testbed.console.output import count, footnote, print_json, say, shares, table
from testbed.entities import FRACTION
from testbed.formatting import bare_value, interval, mean_score

if TYPE_CHECKING:
    from testbed.eval_settings.base.anchor_file import AnchorFile, Errors
    from testbed.extensions.estimates.choosing import AnchorChoice
    from testbed.extensions.estimates.estimating import ScoreEstimate

_METHODS = ("best", "stratified", "random", "lure", "irt", "clusters")
_ESTIMATORS = ("weighted", "assisted", "p-irt", "gp-irt")
_NAMED = 5
_PATH = click.Path(path_type=Path)


@store_command
@setting_argument
@click.option("-o", "--output", "file", type=_PATH, required=True, metavar="FILE.json", help="Write the anchors there.")
@click.option("--size", type=click.IntRange(min=1), default=100, show_default=True, help="The number of anchors.")
@models_option
@score_option
@click.option("--method", type=click.Choice(_METHODS), default="best", show_default=True, help="How to choose anchors.")
@click.option(
    "--estimator",
    type=click.Choice(_ESTIMATORS),
    help="How to estimate the score.  [default: the best for the method]",
)
@click.option(
    "--families", type=_PATH, metavar="FILE.csv", help="The columns model and family.  [default: as declared by models]"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed.")
def choose(
    setting: str,
    file: Path,
    size: int,
    models: Sequence[str],
    score: str | None,
    method: str,
    estimator: str | None,
    families: Path | None,
    seed: int,
    db_url: str | None,
    as_json: bool,
) -> int:
    """Choose a few samples that represent all.

    Uses the stored scores of other models, and measures the error on held-out families of models.

    \b
    Example:
      testbed anchors choose digits --size 100 -o anchors.json
      testbed run MODEL --on digits.anchors:anchors.json
      testbed anchors estimate MODEL --anchors anchors.json
    """
    from testbed.db.store import Store
    from testbed.eval_settings.base.anchor_file import check_path
    from testbed.extensions.estimates.choosing import choose_anchors
    from testbed.extensions.estimates.families import read_families
    from testbed.stored_results.main_scores import main_score_on

    check_path(file)
    given = None if families is None else read_families(families)
    with Store.open(db_url) as store:
        score = score or main_score_on(store, [setting])
        found = choose_anchors(store, setting, models, score, size, method, estimator, given, seed, note, shares())
    found.file.write(file)
    if as_json:
        print_json(_as_object(found, file))
        return 0
    chosen = found.file
    held_out, by_chance = (_error(errors, chosen.fraction) for errors in (chosen.held_out, chosen.random))
    say(
        f"{size:,} of {chosen.n:,} samples of {setting} are in {file}: {chosen.method}, {chosen.estimator}. The"
        f" {chosen.score} of held-out models is off by {held_out}; with as many random samples by {by_chance}."
    )
    click.echo(f"\n{_ways(found)}")
    footnote(
        f"mean absolute errors{' in points' if chosen.fraction else ''} of {count(len(chosen.models), 'model')} in"
        f" {len(found.families):,} families, each held out with its family; in the first line the way is also"
        " chosen"
        " without it"
    )
    if found.undeclared:
        named = ", ".join(found.undeclared[:_NAMED])
        more = f" and {len(found.undeclared) - _NAMED} more" if len(found.undeclared) > _NAMED else ""
        note(
            f"{named}{more}: no family is declared, so each was held out separately; if any are related, errors"
            " of"
            " new models are larger than these (use --families)"
        )
    return 0


@store_command
@models_argument
@click.option("--anchors", "path", type=_PATH, required=True, metavar="FILE.json", help="The anchors.")
def estimate(models: Sequence[str], path: Path, db_url: str | None, as_json: bool) -> int:
    """Estimate models' scores from anchors alone.

    Each model must have been evaluated on the anchors (testbed run MODEL --on SETTING.anchors:FILE.json), or on all
    samples, in which case the true score is also shown.
    """
    from testbed.db.store import Store
    from testbed.eval_settings.base.anchor_file import read_anchors
    from testbed.extensions.estimates.estimating import estimate as estimated
    from testbed.stored_results.side_by_side import matching_models

    file = read_anchors(path)
    with Store.open(db_url) as store:
        found = estimated(store, matching_models(store, models), file, path)
    if as_json:
        shared = {"eval_setting": file.eval_setting, "score": file.score, "anchors": len(file.samples), "n": file.n}
        shared["level"] = file.held_out.level
        print_json([{**asdict(found_one), **shared, "is_estimate": True} for found_one in found])
        return 0
    click.echo(_estimates(found, file, file.fraction))
    footnote(
        f"estimates of {file.score} on the {file.n:,} samples of {file.eval_setting} from {len(file.samples):,}"
        f" anchors, not measured values; {_level(file)}; rank: among the {count(len(file.models), 'model')} that the"
        " anchors were chosen by"
    )
    known = {known_model.name for known_model in file.models}
    if seen := [row.model for row in found if row.model in known]:
        note(f"the anchors were also chosen by {', '.join(seen)}, so this result does not transfer to new models")
    return 0


def _level(file: AnchorFile) -> str:
    from testbed.extensions.estimates.methods.held_out import LEVEL

    level = file.held_out.level
    if level is None:
        return "the interval was computed by an older version and is too narrow: choose the anchors again"
    few = f", the most that {len({model.family for model in file.models})} families can show" * (level < LEVEL)
    return f"the interval is the error that {math.floor(100 * level)} % of models of new families stay below{few}"


def _estimates(found: Sequence[ScoreEstimate], file: AnchorFile, points: bool) -> str:
    unit = _unit(points)
    header = ["model", f"estimated {file.score}", "interval", "rank", "true", "error"]
    lines = [
        [
            estimate.model,
            mean_score(estimate.value, unit),
            interval(estimate.low, estimate.high, unit),
            f"{estimate.rank} ({estimate.rank_low}–{estimate.rank_high})",
            "–" if estimate.true is None else mean_score(estimate.true, unit),
            "–" if estimate.true is None else bare_value(estimate.value - estimate.true, unit, signed=True),
        ]
        for estimate in found
    ]
    return table(header, lines, right=[1, 3, 4, 5])


def _ways(found: AnchorChoice) -> str:
    """The mean error of each way: a row for each method, a column for each estimator."""
    unit = _unit(found.file.fraction)
    estimators = [name for name in _ESTIMATORS if any(way[1] == name for way in found.errors)]
    lines = [
        [
            method,
            *(bare_value(found.errors[method, estimator].mean_absolute, unit) for estimator in estimators),
        ]
        for method in _METHODS
        if (method, estimators[0]) in found.errors
    ]
    return table(["chosen", *estimators], lines, right=range(1, len(estimators) + 1))


def _error(each: Errors, points: bool) -> str:
    ranks = "" if each.rank_correlation is None else f" (rank correlation {each.rank_correlation:.2f})"
    return f"{bare_value(each.mean_absolute, _unit(points))}{' points' if points else ''} on average{ranks}"


def _unit(fraction: bool) -> str:
    return FRACTION if fraction else ""


def _as_object(found: AnchorChoice, path: Path) -> dict[str, object]:
    file = found.file
    return {
        "file": str(path),
        **{name: getattr(file, name) for name in ("eval_setting", "score", "n", "method", "estimator", "seed")},
        "size": len(file.samples),
        "held_out": asdict(file.held_out),
        "random": asdict(file.random),
        "families": dict(found.families),
        "undeclared": list(found.undeclared),
        "ways": [{"method": way[0], "estimator": way[1], **asdict(value)} for way, value in found.errors.items()],
    }


@click.command(cls=Group, sections={"Anchors": {"choose": f"{__name__}:choose", "estimate": f"{__name__}:estimate"}})
def command() -> None:
    """Estimate the full score from a few samples."""
