"""``db.py --compare``: models on the same samples, from what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.output import count, print_json, table
from testbed.errors import StoreError

if TYPE_CHECKING:
    import numpy as np

    from testbed.db.entities import Evaluation
    from testbed.db.store import Store
    from testbed.metrics.paired import Comparison

SIGNIFICANT = 0.05
# Whether a larger score is better; of scores that are not here, only which one is higher is said.
LARGER_IS_BETTER = {"top1": True, "top5": True, "nll": False}


def compare_as_asked(given: dict[str, Any]) -> int:
    """``--compare A B SETTING``, or models alone with ``--eval-settings``."""
    words, settings = list(given["compare"]), list(given["eval_settings"])
    models, settings = (words, settings) if settings else (words[:-1], words[-1:])
    if len(dict.fromkeys(models)) < 2:
        raise click.UsageError(
            "--compare takes two models or more and a setting (--compare A B SETTING), or models alone with"
            " --eval-settings"
        )
    unique = list(dict.fromkeys(models)), list(dict.fromkeys(settings))
    return print_comparison(given["db_url"], *unique, given["score"], given["as_json"])


def print_comparison(
    db_url: str | None, models: Sequence[str], settings: Sequence[str], score: str, as_json: bool
) -> int:
    """Prints every pair of models on every setting, with p-values adjusted over the whole table.

    Args:
        db_url: The store.
        models: Two models or more.
        settings: One setting or more.
        score: The per-sample score, such as ``top1``.
        as_json: Whether to print JSON.

    Raises:
        StoreError: If an evaluation is missing, or has not that score.
    """
    from testbed.db.store import Store
    from testbed.metrics.paired import compare, holm

    rows: list[tuple[str, str, str, Comparison]] = []
    with Store.open(db_url) as store:
        keys_of = lru_cache(maxsize=8)(partial(_keys, store))  # models of one setting mostly saw one data set
        for setting in settings:
            scores = {model: _scores(store, keys_of, model, setting, score) for model in models}
            for first, second in combinations(models, 2):
                shared = [key for key in scores[first] if key in scores[second]]
                if not shared:
                    raise StoreError(f"{first} and {second} have no samples of {setting} in common")
                one, other = (_array([scores[model][key] for key in shared]) for model in (first, second))
                rows.append((setting, first, second, compare(one, other)))
    adjusted = holm([row[-1].p for row in rows])
    if as_json:
        print_json([_as_object(*row, score, p) for row, p in zip(rows, adjusted, strict=True)])
        return 0
    click.echo(_table(rows, score, adjusted))
    click.echo(
        f"{score} of each sample, {count(len(rows), 'comparison')}; intervals: 95 %, paired bootstrap; p: McNemar's"
        " exact test (for scores other than 0 and 1, random signs), then Holm's for all of the table; tied: p ≥ 0.05",
        err=True,
    )
    return 0


def _array(values: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    return np.asarray(values)


Keys = list[tuple[str, str]]


def _keys(store: Store, dataset_id: int) -> Keys:
    """What tells the samples of a data set apart: id and content."""
    return [(sample.id, sample.digest) for sample in store.dataset(dataset_id).samples]


def _scores(
    store: Store, keys_of: Callable[[int], Keys], model: str, setting: str, score: str
) -> dict[tuple[str, str], float]:
    """The score of each sample that has one, by the sample's id and content."""
    evaluation = _evaluation(store, model, setting)
    found = [values for (_, name), values in store.scores(evaluation.id).items() if name == score]
    if not found:
        names = sorted({name for _, name in store.scores(evaluation.id)})
        raise StoreError(
            f"{model} on {setting} has no per-sample score {score!r}; it has {', '.join(names) or 'none'}"
            " (python db.py --rescore computes those of today)"
        )
    assert evaluation.dataset_id is not None
    return {
        key: float(value)
        for key, value in zip(keys_of(evaluation.dataset_id), found[0], strict=True)
        if value == value  # a sample that does not count has none
    }


def _evaluation(store: Store, model: str, setting: str) -> Evaluation:
    """The evaluation that counts, of those that are not just imported."""
    from testbed.db.entities import current

    own = [
        each
        for each in store.evaluations([model], [setting])
        if each.status == "complete" and each.origin != "imported"
    ]
    if not own:
        store.require_name("model", model)
        store.require_name("eval setting", setting)
        raise StoreError(
            f"the store has no outputs of {model} on {setting}; run: python eval.py --models '{model}' --eval-settings"
            f" '{setting}'"
        )
    return current(own)[0]


def _verdict(comparison: Comparison, score: str, first: str, second: str, p: float) -> str:
    if p >= SIGNIFICANT or comparison.difference == 0:
        return "tied"
    larger, smaller = (first, second) if comparison.difference > 0 else (second, first)
    if score not in LARGER_IS_BETTER:
        return f"{larger} is higher"
    return f"{larger if LARGER_IS_BETTER[score] else smaller} is better"


def _number(value: float, binary: bool, sign: str = "") -> str:
    """A mean of scores: in percent where they are 0 and 1, else as it is."""
    return f"{100 * value:{sign}.2f} %" if binary else f"{value:{sign}.4g}"


def _table(rows: Sequence[tuple[str, str, str, Comparison]], score: str, adjusted: Sequence[float]) -> str:
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
            *(_number(each.first, each.binary), _number(each.second, each.binary)),
            _number(each.difference, each.binary, "+"),
            f"[{_number(each.low, each.binary, '+')}, {_number(each.high, each.binary, '+')}]",
            *(f"{each.only_first:,}", f"{each.only_second:,}", f"{each.p:.3g}", f"{p:.3g}"),
            "–" if each.consistency is None else f"{each.consistency:.3f}",
            _verdict(each, score, first, second, p),
        ]
        for (setting, first, second, each), p in zip(rows, adjusted, strict=True)
    ]
    return table([*header, "error consistency", ""], lines, right=range(3, 13))


def _as_object(setting: str, first: str, second: str, comparison: Comparison, score: str, p: float) -> dict[str, Any]:
    return {
        "eval_setting": setting,
        "first_model": first,
        "second_model": second,
        "score": score,
        **asdict(comparison),
        "p_holm": p,
        "verdict": _verdict(comparison, score, first, second, p),
    }
