"""``testbed compare``: models on the same samples, from stored outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options.stored import models_argument, score_option
from testbed.console.completion import stored
from testbed.console.options import ManyWords, store_command
from testbed.console.output import count, difference, footnote, in_percent, mean_score, print_json, table, with_unit
from testbed.errors import StoreError
from testbed.metric_specs import HIGHER, LOWER, MetricSpec

if TYPE_CHECKING:
    import numpy as np

    from testbed.analyses.side_by_side import Samples
    from testbed.db.store import Store
    from testbed.metrics.inference.paired import Comparison


@store_command
@models_argument
@click.option(
    "--on",
    "settings",
    cls=ManyWords,
    required=True,
    metavar="SETTING",
    shell_complete=stored("eval setting"),
    help="The eval settings.",
)
@score_option
def command(
    models: Sequence[str], settings: Sequence[str], score: str | None, db_url: str | None, as_json: bool
) -> int:
    """Two models or more on the same samples: paired tests.

    Prints every pair of models on every setting: the difference with its interval, and p-values adjusted over the
    table.

    \b
    Example:
      testbed compare digits-cnn digits-mlp --on digits
    """
    models, settings = list(dict.fromkeys(models)), list(dict.fromkeys(settings))
    if len(models) < 2:
        raise click.UsageError(f"two models or more are compared; got only {models[0]}")
    from testbed.analyses.main_scores import main_score, score_spec
    from testbed.analyses.side_by_side import Samples, evaluation_of
    from testbed.db.store import Store
    from testbed.metrics.inference.paired import compare, holm

    rows: list[tuple[str, str, str, Comparison]] = []
    with Store.open(db_url) as store:
        samples = Samples(store)
        cells = {each: [evaluation_of(store, model, each) for model in models] for each in settings}
        score = score or main_score(store, cells)
        spec = score_spec(store, (each for on in cells.values() for each in on), score)
        for setting in settings:
            scores = {model: _scores(store, samples, model, setting, score) for model in models}
            for first, second in combinations(models, 2):
                shared = [key for key in scores[first] if key in scores[second]]
                if not shared:
                    raise StoreError(f"{first} and {second} have no samples of {setting} in common")
                one, other = (_array([scores[model][key] for key in shared]) for model in (first, second))
                rows.append((setting, first, second, compare(one, other)))
    adjusted = holm([row[-1].p for row in rows])
    if as_json:
        print_json([_as_object(*row, spec, p) for row, p in zip(rows, adjusted, strict=True)])
        return 0
    click.echo(_table(rows, spec, adjusted))
    footnote(
        f"{_described(spec, all(row[-1].binary for row in rows))} of each sample, {count(len(rows), 'comparison')};"
        " intervals: 95 %, paired bootstrap; p: McNemar's exact test (for scores other than 0 and 1, random signs),"
        " then Holm's correction over the whole table; tied: p ≥ 0.05"
    )
    return 0


def _array(values: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.asarray(values)


def _scores(store: Store, samples: Samples, model: str, setting: str, score: str) -> dict[tuple[str, str], float]:
    """The score of each scored sample, by the sample's id and content digest."""
    from testbed.analyses.side_by_side import evaluation_of, scores_of

    evaluation = evaluation_of(store, model, setting)
    values = scores_of(store, evaluation, score)
    return {
        (sample.id, sample.digest): float(value)
        for sample, value in zip(samples.of(evaluation).samples, values, strict=True)
        if value == value  # samples that do not count are NaN
    }


def _described(spec: MetricSpec, binary: bool) -> str:
    """The score, its unit and its direction."""
    name = with_unit(spec, binary)
    return f"{name}, {spec.better} is better," if spec.better in (HIGHER, LOWER) else f"{name}, direction unknown,"


def _verdict(comparison: Comparison, spec: MetricSpec, first: str, second: str, p: float) -> str:
    from testbed.metrics.inference.paired import SIGNIFICANT

    if p >= SIGNIFICANT or comparison.difference == 0:
        return "tied"
    larger, smaller = (first, second) if comparison.difference > 0 else (second, first)
    if spec.better not in (HIGHER, LOWER):
        return f"{larger} is higher"
    return f"{larger if spec.better == HIGHER else smaller} is better"


def _table(rows: Sequence[tuple[str, str, str, Comparison]], spec: MetricSpec, adjusted: Sequence[float]) -> str:
    header = [
        "setting",
        "A",
        "B",
        "n",
        "score of A",
        "of B",
        "A − B",
        "95 % interval",
        "A higher",
        "B higher",
        "p",
        "p (Holm)",
    ]
    lines = [
        [
            *(setting, first, second, f"{each.n:,}"),
            *(mean_score(value, in_percent(spec, each.binary)) for value in (each.first, each.second)),
            difference(each.difference, in_percent(spec, each.binary)),
            _interval(each, in_percent(spec, each.binary)),
            *(f"{each.only_first:,}", f"{each.only_second:,}", f"{each.p:.3g}", f"{p:.3g}"),
            "–" if each.consistency is None else f"{each.consistency:.3f}",
            _verdict(each, spec, first, second, p),
        ]
        for (setting, first, second, each), p in zip(rows, adjusted, strict=True)
    ]
    return table([*header, "error consistency", ""], lines, right=range(3, 13))


def _interval(comparison: Comparison, in_percent: bool) -> str:
    low, high = (difference(each, in_percent) for each in (comparison.low, comparison.high))
    return f"[{low.removesuffix(' points')}, {high}]"


def _as_object(
    setting: str, first: str, second: str, comparison: Comparison, spec: MetricSpec, p: float
) -> dict[str, Any]:
    return {
        "eval_setting": setting,
        "first_model": first,
        "second_model": second,
        "score": spec.name,
        **asdict(comparison),
        "p_holm": p,
        "verdict": _verdict(comparison, spec, first, second, p),
    }
