"""Models ranked over several settings by Borda count, such as over decoders."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.db.parts.names import matching_names, parts_left_out, without_parts
from testbed.db.store import Store
from testbed.entities import OVERALL, Better, Evaluation, Result
from testbed.errors import StoreError
from testbed.metric_specs import agreed, spec_of
from testbed.metrics.inference.borda import BordaPlace, borda
from testbed.registry.references import JUDGED, SettingReference
from testbed.stored_results.main_scores import larger_is_better
from testbed.stored_results.side_by_side import (
    Chosen,
    Tell,
    evaluations_on,
    matching_settings,
    odd_ones,
    tell_of_other_scorers,
)

HM_CF, HM_CF_RAW = "hm_cf", "hm_cf_raw"


@dataclass(frozen=True)
class BordaRanking:
    """Models in the order of their ranks.

    Attributes:
        metric: The metric that orders models on each setting.
        settings: The settings, in the order of the columns.
        models: The models, in the order of their ranks.
        places: Their ranks and points.
        values: The unrounded values of each model on the settings.
        larger: Whether larger values are better.
    """

    metric: str
    settings: tuple[str, ...]
    models: tuple[str, ...]
    places: tuple[BordaPlace, ...]
    values: tuple[tuple[float, ...], ...]
    larger: bool


def borda_ranking(
    store: Store,
    settings: Sequence[str] = (),
    models: Sequence[str] = (),
    metric: str = HM_CF,
    tell: Tell = lambda note: None,
    first: Collection[int] = (),
    better: Better | None = None,
) -> BordaRanking:
    """Ranks models by the sum of their points over the settings. Numbers from elsewhere count where there is no own.

    Args:
        settings: Names or patterns; none means all with a judge (``…@…``) and the metric, if these judge the same
            setting.
        models: Names or patterns; none means all.
        metric: The metric that orders models on a setting.
        tell: Called with notes on models that some settings lack, and on means over different samples.
        first: Ids of evaluations that take precedence over the reported ones.
        better: Whether the ``"higher"`` or the ``"lower"`` metric is better; by default what it declares.

    Raises:
        StoreError: If no setting has the metric, no model has it on all settings, or it is not known which is better.
    """
    named = matching_settings(store, settings, imported=True) if settings else _scored(store, metric, tell)
    published = _published(store, named, metric)
    found: Chosen = {setting: _evaluations(store, setting, first, required=not published[setting]) for setting in named}
    values = _values(store, found, metric)
    for setting, on in published.items():
        values[setting] = on | values[setting]
    every = {model for on in values.values() for model in on}
    wanted = sorted(matching_names("model", models, every)) if every else []
    lacking = {model: [setting for setting in named if model not in values[setting]] for model in wanted}
    left = [model for model in wanted if not lacking[model]]
    out = [f"{model} (no {metric} on {', '.join(lacking[model])})" for model in wanted if lacking[model]]
    if out:
        tell(f"left out: {'; '.join(out)}")
    if not left:
        raise StoreError(f"no model has {metric} on all of {', '.join(named)}")
    compared = {
        setting: {model: found[setting][model] for model in left if model in found[setting]} for setting in named
    }
    tell_of_other_scorers(compared, tell)
    _tell_of_other_samples(compared, values, tell)
    spec = agreed(spec_of(values[setting][model]) for setting in named for model in left)
    larger = larger_is_better(spec, better)
    table = np.array([[values[setting][model].value for model in left] for setting in named])
    places = borda(table, larger, left)
    return BordaRanking(
        metric,
        tuple(named),
        tuple(left[place.candidate] for place in places),
        tuple(places),
        tuple(tuple(table[:, place.candidate].tolist()) for place in places),
        larger,
    )


def _published(store: Store, settings: Sequence[str], metric: str) -> dict[str, dict[str, Result]]:
    """Setting → model → the published value, for models without a measured one."""
    found: dict[str, dict[str, Result]] = {setting: {} for setting in settings}
    for each in store.results.find(None, settings, [metric], [OVERALL]):
        if each.origin == "published":
            found[each.eval_setting][each.model] = each
    return found


def _evaluations(store: Store, setting: str, first: Collection[int], required: bool) -> dict[str, Evaluation]:
    try:
        return evaluations_on(store, setting, first, imported=True)
    except StoreError:
        if required:
            raise
        return {}


def usual_metric(store: Store, settings: Sequence[str] = ()) -> str:
    """``hm_cf``; where settings have only that of unchanged cosines, as CLIP-CC-Bench's published results, this one."""
    rows = store.results.rows(["eval_setting", "metric"], metrics=[HM_CF, HM_CF_RAW], slices=[OVERALL])
    wanted = matching_settings(store, settings, imported=True) if settings else without_parts(row[0] for row in rows)
    metrics = {row[1] for row in rows if row[0] in wanted}
    return HM_CF_RAW if metrics == {HM_CF_RAW} else HM_CF


def _scored(store: Store, metric: str, tell: Tell) -> list[str]:
    """The settings with a judge that have the metric, without parts of others.

    Raises:
        StoreError: If there is none, or they judge different captions.
    """
    rows = store.results.rows(["eval_setting"], metrics=[metric], slices=[OVERALL])
    references = {row[0]: SettingReference.parse(row[0]) for row in rows}
    judged = sorted(name for name, reference in references.items() if reference.judge)
    if parts := parts_left_out(judged):
        tell(parts)
    names = without_parts(judged)
    if not names:
        raise StoreError(
            f"the store has no setting with a judge (SETTING{JUDGED}JUDGE) and the metric {metric}; name"
            " settings, or run one with testbed run --scorers"
        )
    about = sorted({references[name].question for name in names})
    if len(about) > 1:
        raise StoreError(
            f"the store has {metric} of {len(about)} settings ({', '.join(about[:6])}), which are not ranked together"
            f" by default; choose one, for example testbed borda '{about[0]}{JUDGED}*'"
        )
    return names


def _values(store: Store, found: Chosen, metric: str) -> dict[str, dict[str, Result]]:
    """Setting → model → result, for those with a finite value."""
    cells = {evaluation.id: (setting, model) for setting, on in found.items() for model, evaluation in on.items()}
    values: dict[str, dict[str, Result]] = {setting: {} for setting in found}
    for result in store.results.of(cells):
        known = result.metric == metric and result.slice == OVERALL
        if known and result.value is not None and math.isfinite(result.value):
            setting, model = cells[result.evaluation_id]
            values[setting][model] = result
    return values


def _tell_of_other_samples(compared: Chosen, values: dict[str, dict[str, Result]], tell: Tell) -> None:
    """Notes settings whose means are over different samples."""
    for setting, on in compared.items():
        odd = odd_ones({model: evaluation.dataset_id for model, evaluation in on.items()})
        if odd:
            tell(f"on {setting}, {odd} evaluated on different samples or references than most; run all of them again")
    counts = [(result.n or 0, model, setting) for setting in compared for model, result in values[setting].items()]
    if not any(compared.values()):
        return
    fewest, model, setting = min(count for count in counts if count[1] in compared[count[2]])
    most = max(values[setting][model].n or 0 for model in compared[setting])
    if fewest < most:
        tell(
            f"means on {setting} cover {fewest:,} ({model}) to {most:,} samples, those with a score; testbed rank"
            f" '{setting}' compares models on the samples that all of them have"
        )
