"""Analyses of results as pandas frames: methods of `testbed.api.results.Results`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from testbed.api.results import Results, Words, noted, require
from testbed.db.store import Store
from testbed.entities import Better, Evaluation
from testbed.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

Find = Callable[[Store, str, str], Evaluation]


def compare(
    results: Results,
    models: Words = None,
    eval_settings: Words = None,
    score: str | None = None,
) -> pd.DataFrame:
    """Compares every pair of models on every setting, sample by sample, like ``testbed compare``.

    Columns: ``eval_setting``, ``model`` and ``other``, ``score``, ``n``, ``value`` and ``other_value``,
    ``difference`` with its 95 % interval ``low`` to ``high`` (paired bootstrap), ``p`` (McNemar's exact test; for
    scores other than 0 and 1, random signs), ``p_holm`` (adjusted over all rows) and ``verdict``.

    Args:
        models: Names or patterns; None means all of these results.
        eval_settings: Names or patterns; None means all of these results.
        score: The score of each sample; None: the main one of the settings.

    Raises:
        StoreError: If there are fewer than two models, or one of them has no outputs on a setting.
    """
    with Store.open(results.db) as store:
        return _comparisons(store, *results.chosen(models, eval_settings), score, results.evaluation)


def rank(
    results: Results,
    eval_settings: Words = None,
    models: Words = None,
    score: str | None = None,
    better: Better | None = None,
) -> pd.DataFrame:
    """Ranks models by their mean over the settings, like ``testbed rank``.

    Columns: ``rank`` with its 95 % interval ``rank_low`` to ``rank_high``, ``model``, ``score``, ``value`` with its
    interval ``low`` to ``high`` (paired bootstrap), ``mean_rank`` over the settings, and ``tied_with``: the models
    without a significant difference (Holm's correction over all pairs).

    Args:
        eval_settings: Names or patterns; None means all of these results.
        models: Names or patterns; None means all of these results.
        score: The score of each sample; None: the main one of the settings.
        better: Whether ``"higher"`` or ``"lower"`` scores are better; None: the score's declaration.

    Raises:
        StoreError: If there are fewer than two models, or one of them has no outputs on a setting.
    """
    with Store.open(results.db) as store:
        return _ranking(store, *results.chosen(models, eval_settings), score, better, results.measured())


def selective(
    results: Results,
    eval_settings: Words = None,
    models: Words = None,
    risk: float = 5.0,
    by: str = "probability",
    delta: float = 0.05,
) -> pd.DataFrame:
    """Evaluates models that may abstain, like ``testbed selective``; returns a row for each cell.

    Columns: ``eval_setting``, ``model``, ``n``, ``clusters`` (groups that are resampled as a whole, else missing),
    ``unread``, ``error`` (the risk if all samples are answered), ``aurc`` with its 95 % interval ``aurc_low`` to
    ``aurc_high``, ``excess``, ``coverage`` at the accepted risk with ``coverage_low`` to ``coverage_high``,
    and the ``guaranteed`` coverage, of answers from the confidence ``threshold`` on (0 and missing if nothing is
    guaranteed); ``fine_threshold`` is the same on a scale that does not round to 1: log odds of a probability,
    −log(1 − margin) of a margin. Rates are fractions.

    Args:
        eval_settings: Names or patterns; None means all of these results.
        models: Names or patterns; None means all of these results.
        risk: The accepted percentage of wrong answers among those given.
        by: The confidence measure: ``"probability"``, ``"margin"``, ``"entropy"`` or ``"logit"``.
        delta: The probability that the guarantee is wrong.

    Raises:
        StoreError: If a model has no logits on a setting.
        DataError: If an argument is invalid.

    Examples:
        >>> frame = testbed.results("testbed.db").selective("val", risk=10)
        >>> frame[["model", "error", "coverage"]].head(1).round(3)
           model  error  coverage
        0  vgg11  0.133     0.917
    """
    import pandas as pd

    from testbed.extensions.analyses.answered import MEASURED, selective_predictions

    require(0 < risk < 100, f"risk must be a percentage between 0 and 100; got {risk:g}")
    require(0 < delta < 1, f"delta must be a probability between 0 and 1; got {delta:g}")
    require(by in MEASURED, f"by must be one of {', '.join(MEASURED)}; got {by!r}")
    notes: list[str] = []
    with Store.open(results.db) as store:
        chosen, on = results.chosen(models, eval_settings)
        found = selective_predictions(store, chosen, on, risk / 100, by, delta, notes.append, results.evaluation)
    rows: list[dict[str, Any]] = []
    for item in found:
        area, at = item.area, item.at_risk
        row: dict[str, Any] = {name: getattr(item, name) for name in ("eval_setting", "model", "n", "clusters")}
        row |= {"unread": item.unread, "error": item.error, "aurc": area.value, "aurc_low": area.low}
        row |= {"aurc_high": area.high, "excess": area.excess, "coverage": at.coverage, "coverage_low": at.low}
        row |= {"coverage_high": at.high, "guaranteed": at.guaranteed, "threshold": at.threshold}
        row["fine_threshold"] = item.fine_threshold
        rows.append(row)
    return noted(pd.DataFrame(rows), notes)


def _comparisons(
    store: Store, models: Sequence[str], settings: Sequence[str], score: str | None, find: Find
) -> pd.DataFrame:
    """A row for each pair of models on each setting."""
    import pandas as pd

    from testbed.stored_results.paired import compare_pairs

    if len(models) < 2:
        raise StoreError(f"expected at least two models; got {', '.join(models) or 'none'}")
    found = compare_pairs(store, models, settings, score, find)
    rows = []
    for pair in found.rows:
        of = pair.comparison
        row: dict[str, Any] = {
            "eval_setting": pair.eval_setting,
            "model": pair.first,
            "other": pair.second,
            "score": found.spec.name,
        }
        row |= {"n": of.n, "value": of.first, "other_value": of.second, "difference": of.difference}
        row |= {"low": of.low, "high": of.high, "p": of.p, "p_holm": pair.p_holm, "verdict": pair.verdict}
        rows.append(row)
    return pd.DataFrame(rows)


def _ranking(
    store: Store,
    models: Sequence[str],
    settings: Sequence[str],
    score: str | None,
    better: Better | None,
    first: Collection[int],
) -> pd.DataFrame:
    """A row for each model, the best first."""
    import pandas as pd

    from testbed.stored_results.main_scores import main_score_on
    from testbed.stored_results.ranking import ranking

    score = score or main_score_on(store, settings, first=first)
    found = ranking(store, settings, models, score, better=better, first=first)
    rows = []
    for ranked in found.rows:
        place = ranked.place
        row: dict[str, Any] = {
            "rank": place.rank,
            "rank_low": place.rank_low,
            "rank_high": place.rank_high,
            "model": ranked.model,
        }
        row |= {"score": score, "value": place.value, "low": place.low, "high": place.high}
        rows.append({**row, "mean_rank": ranked.mean_rank, "tied_with": list(ranked.tied_with)})
    return pd.DataFrame(rows)
