"""The data of a store's figures: its results, the unperturbed setting of each shift, and severities."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from testbed.arrays import Array
from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import FRACTION, Evaluation
from testbed.metric_specs import HIGHER, LOWER, MetricSpec
from testbed.metrics.sureness import LOG_ODDS, how_sure
from testbed.paths import fitting
from testbed.plotting.frame import main_metrics, results_frame, specs_of
from testbed.plotting.marks import model_marks
from testbed.plotting.style import Mark
from testbed.stored_results.predictions import has_logits, viewed

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SEVERITY = re.compile(r"(?P<corruption>.+)\.(?P<severity>\d)(?P<form>_in-memory|_on-disk|)")
USUAL_CLEAN = "val"  # the reference of ImageNet-testbed's settings
SHOWN_REASONS = 4
SHOWN_NAMES = 3
Numbers = dict[str, Any]


class Drawing(NamedTuple):
    """A figure to be drawn.

    Attributes:
        name: Stem of its file name.
        draw: Draws the figure.
        numbers: Its numbers as plain values; rates in percent.
    """

    name: str
    draw: Callable[[], Figure]
    numbers: Numbers


class Omission(NamedTuple):
    """A figure that was not drawn, and the reason."""

    what: str
    why: str


def skipped(passed: Sequence[Omission]) -> str:
    """Describes omissions in one line: each reason with the figures concerned, the most frequent first."""
    by_reason: dict[str, list[str]] = {}
    for omission in passed:
        by_reason.setdefault(omission.why, []).append(omission.what)
    reasons = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    shown = [f"{_listed(what)} ({why})" for why, what in reasons[:SHOWN_REASONS]]
    left = sum(len(what) for _, what in reasons[SHOWN_REASONS:])
    more = [f"{left} more"] if left else []
    return f"skipped: {'; '.join([*shown, *more])}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return f"{', '.join(names[:SHOWN_NAMES])}{more}"


@dataclass
class Own:
    """Results of a store, limited to some models and settings.

    Attributes:
        store: The store, open.
        db_url: Its URL.
        models: Names or patterns; empty means all.
        settings: Names or patterns; empty means all.
        metric: The metric to draw; None: the main metric of each setting.
        clean: The setting that shifts are compared with; None: that of each shift.
        labels: Names or patterns of models that are always labelled.
        compute: A table of the models' training compute; None: no figure needs it.
    """

    store: Store
    db_url: str | None = None
    models: Sequence[str] = ()
    settings: Sequence[str] = ()
    metric: str | None = None
    clean: str | None = None
    labels: Sequence[str] = ()
    compute: Path | None = None

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row for each model and setting, as in `results_frame`: one metric of each setting, a rate."""
        frame = results_frame(self.db_url, metrics=None if self.metric is None else [self.metric])
        frame = frame[(frame["unit"] == FRACTION) & frame["value"].notna()]
        chosen = matching_names("model", self.models, set(frame["model"]))
        wanted = matching_names("eval setting", self.settings, set(frame["eval_setting"]))
        if self.clean is not None and wanted:
            wanted = {*wanted, self.clean}
        frame = frame[frame["model"].isin(chosen) & frame["eval_setting"].isin(wanted)]
        if self.metric is None:
            frame = frame[frame["metric"] == frame["eval_setting"].map(main_metrics(frame))]
        return frame.reset_index(drop=True)

    @cached_property
    def metrics(self) -> dict[str, str]:
        """Setting → the metric that is drawn."""
        return dict(zip(self.frame["eval_setting"], self.frame["metric"], strict=True))

    @cached_property
    def specs(self) -> dict[str, MetricSpec]:
        """Setting → declaration of the metric that is drawn."""
        return specs_of(self.frame)

    @cached_property
    def marks(self) -> dict[str, Mark]:
        """The mark of each model of the store, whichever are selected."""
        return model_marks({facts.name: facts.model_type for facts in self.store.results.model_facts()})

    @cached_property
    def evaluations(self) -> dict[str, dict[str, Evaluation]]:
        """Setting → model → the reported evaluation."""
        wanted = set(self.frame["evaluation_id"])
        found: dict[str, dict[str, Evaluation]] = {}
        for evaluation in self.store.evaluations.find():
            if evaluation.id in wanted:
                found.setdefault(evaluation.eval_setting, {})[evaluation.model] = evaluation
        return found

    def values(self, setting: str) -> pd.DataFrame:
        """The results on a setting by model: ``value`` (a fraction), ``n``, ``model_type``."""
        return self.frame[self.frame["eval_setting"] == setting].set_index("model")

    # Shifts -------------------------------------------------------------------------------------------------------

    @cached_property
    def severities(self) -> dict[str, dict[int, str]]:
        """Corruption → severity → setting, for corruptions with two severities or more."""
        found: dict[str, dict[int, str]] = {}
        for name in self.metrics:
            parts = SEVERITY.fullmatch(name)
            if parts:
                found.setdefault(parts["corruption"] + parts["form"], {})[int(parts["severity"])] = name
        return {name: dict(sorted(on.items())) for name, on in sorted(found.items()) if len(on) > 1}

    @cached_property
    def cleans(self) -> dict[str, str]:
        """Setting → its reference setting: the unperturbed one of the same samples, or the usual one."""
        if self.clean is not None:
            return {setting: self.clean for setting in self.metrics if setting != self.clean}
        return clean_settings(
            self.store, {name: next(iter(on.values())) for name, on in self.evaluations.items()}, self.metrics
        )

    @cached_property
    def unperturbed(self) -> list[str]:
        """The settings without a reference setting."""
        return [setting for setting in self.metrics if setting not in self.cleans]

    # Samples ------------------------------------------------------------------------------------------------------

    def log_odds(self, setting: str, model: str) -> Array | None:
        """A model's confidence in each sample, as ``testbed selective`` orders them.

        Log odds of the largest probability, float64 [samples], NaN for samples that could not be read; None if no
        logits are stored. The stored confidence is a float32, of which many may round to 1.
        """
        evaluation = self.evaluations.get(setting, {}).get(model)
        if evaluation is None or not has_logits(self.store, evaluation):
            return None
        logits = viewed(self.store, evaluation)[1]
        return how_sure(logits, [LOG_ODDS])[LOG_ODDS] if logits.shape[1] > 1 else None

    def scores(self, setting: str, model: str, name: str) -> Array | None:
        """A score of each sample, float64 [samples]; None if none is stored."""
        evaluation = self.evaluations.get(setting, {}).get(model)
        found = list(self.store.scores.read(evaluation.id, name).values()) if evaluation is not None else []
        return found[0].astype(np.float64) if found else None


def clean_settings(store: Store, first: Mapping[str, Evaluation], settings: Collection[str]) -> dict[str, str]:
    """Returns the reference setting of each perturbed one: the unperturbed one of the same samples, or the usual one.

    Args:
        store: The results store.
        first: Setting → any of its evaluations; published settings have none.
        settings: The settings with results.
    """
    plain: dict[int, str] = {}
    perturbed: dict[str, int] = {}
    for setting, evaluation in first.items():
        if evaluation.dataset_id is None:
            continue
        if _is_perturbed(store, evaluation):
            perturbed[setting] = evaluation.dataset_id
        elif evaluation.derived_from is None:
            plain.setdefault(evaluation.dataset_id, setting)
    found = {setting: plain[dataset] for setting, dataset in perturbed.items() if dataset in plain}
    if USUAL_CLEAN in settings:
        found = {**dict.fromkeys(settings, USUAL_CLEAN), **found}
        found.pop(USUAL_CLEAN)
    return found


def _is_perturbed(store: Store, evaluation: Evaluation) -> bool:
    forward = store.evaluations.identity(evaluation).get("forward") or {}
    return any(value for key, value in forward.items() if key.startswith(("perturbation", "attack", "adversarial")))


def best(values: pd.DataFrame, most: int, spec: MetricSpec) -> list[str]:
    """The models with the best values, up to a number; in order of names if it is unknown what is better."""
    if spec.better not in (HIGHER, LOWER):
        return sorted(str(name) for name in values.index)[:most]
    order = values["value"].sort_values(ascending=spec.better == LOWER, kind="stable")
    return [str(name) for name in order.index[:most]]


def file_name(*parts: str) -> str:
    """Makes a file name from names with any characters."""
    return "--".join(fitting(re.sub(r"[^A-Za-z0-9._-]+", "_", part).strip("_.") or "_", part) for part in parts)


def short(name: str, most: int = 40) -> str:
    """Shortens a name to fit on an axis by omitting the middle."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[-most // 2 :]}"


Found = Iterator[Drawing | Omission]


def by_confidence(
    own: Own,
    kind: str,
    most: int,
    of_model: Callable[[str, Array, Array], Any],
    draw: Callable[..., Figure],
    numbers: Callable[[Any], Numbers],
    confidence_of: Callable[[Own, str, str], Array | None] | None = None,
) -> Found:
    """Yields a figure for each unperturbed setting, of models with a confidence for each sample.

    Args:
        own: The results.
        kind: First word of the figure's name.
        most: Maximum number of models; the best are kept.
        of_model: Function of a model, its confidences (NaN for unreadable samples) and its correctness that returns
            the drawn data, with ``model`` and ``n``, the number of samples.
        draw: Draws the figure from the data, the setting and the models' marks.
        numbers: Returns a model's data as plain values.
        confidence_of: How sure a model is on a setting; by default the stored confidences.
    """
    for setting in own.unperturbed:
        values = own.values(setting)
        found = []
        for model in best(values, most, own.specs[setting]):
            correct, confidence = (own.scores(setting, model, name) for name in ("top1", "confidence"))
            if correct is not None and confidence is not None and confidence_of is not None:
                finer = confidence_of(own, setting, model)
                confidence = confidence if finer is None else finer
            if correct is not None and confidence is not None and len(correct):
                found.append(of_model(model, confidence, correct))
        found = [data for data in found if data.n]
        if not found:
            yield Omission(f"{kind} on {setting}", "no confidence of samples is stored")
            continue
        if len(values) > most:
            yield Omission(f"{kind} on {setting}", f"{len(values) - most} less accurate models")
        shown = [{"model": data.model, "n": data.n, **numbers(data)} for data in found]
        figure = partial(draw, found, setting, own.marks)
        yield Drawing(file_name(kind, setting), figure, {"eval_setting": setting, "models": shown})
