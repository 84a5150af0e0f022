"""Documents of evaluations: their inputs, their metrics, and the command to reproduce them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

from testbed.claims.agreement import PublishedValues, in_words
from testbed.db.store import Store
from testbed.entities import OVERALL, Evaluation, Metric
from testbed.errors import StoreError, TestbedError
from testbed.extensions.explorer.documents import number_in
from testbed.metric_specs import main_metric, right_or_wrong, spec_of
from testbed.metrics.inference.intervals import interval_of
from testbed.plotting.own.confusion import confusions, numbers
from testbed.plotting.own.source import Own
from testbed.registry.references import is_part
from testbed.stored_results.imagenet_testbed_table import METRIC_SUFFIXES
from testbed.stored_results.unread import unread_samples

PER_DOCUMENT = 16
MOST_EXPORTED = 20_000
MOST_CONFUSIONS = 500  # maximum evaluations of a store for exporting confusions and groups of each
LONGEST = 4_000  # characters of a part of an identity; longer ones are truncated
MOST_METRICS = 400
MOST_NAMED = 20  # listed unreadable samples


class Cells:
    """``cells/K``: sixteen evaluations of this store, by id; ``confusion/ID``: the confusions of one.

    Args:
        store: The results store.
        settings: The shown settings; evaluations on hidden parts of settings have no documents.
    """

    def __init__(self, store: Store, settings: Collection[str]) -> None:
        self.store = store
        self.settings = settings
        self._confusion = lru_cache(maxsize=1)(self._confusion_of)  # requested by `paths`, then by `document`

    def paths(self) -> Iterator[str]:
        """The paths of all documents of cells; empty if there are too many evaluations for files."""
        every = [
            evaluation
            for evaluation in (*self.store.evaluations.find(), *self.store.evaluations.find(hidden=True))
            if self._shown(evaluation)
        ]
        if len(every) <= MOST_EXPORTED:
            yield from (f"cells/{number}" for number in sorted({evaluation.id // PER_DOCUMENT for evaluation in every}))
        for evaluation in self.detailed():
            if self._confusion(evaluation.id) is not None:
                yield f"confusion/{evaluation.id}"

    def detailed(self) -> list[Evaluation]:
        """The evaluations with documents computed from their samples; empty if there are too many for files."""
        every = [evaluation for evaluation in self.store.evaluations.find() if self._shown(evaluation)]
        return every if len(every) <= MOST_CONFUSIONS else []

    def document(self, path: str) -> Any:
        """Returns one of these."""
        kind, _, text = path.partition("/")
        if kind not in ("cells", "confusion"):
            raise KeyError(path)
        if kind == "confusion":
            confused = self._confusion(number_in(text))
            if confused is None:
                raise KeyError(path)
            return confused
        first = number_in(text) * PER_DOCUMENT
        several = (self.evaluation(index) for index in range(first, first + PER_DOCUMENT))
        found = {str(evaluation.id): self._cell(evaluation) for evaluation in several if evaluation is not None}
        if not found:
            raise KeyError(path)
        return found

    def _shown(self, each: Evaluation) -> bool:
        return _own(each) and (each.eval_setting in self.settings or not is_part(each.eval_setting))

    def evaluation(self, number: int) -> Evaluation | None:
        """Returns an evaluation of this store."""
        try:
            found = self.store.evaluations.get(number)
        except StoreError:
            return None
        return found if self._shown(found) else None

    def _confusion_of(self, number: int) -> dict[str, Any] | None:
        """The confusions of an evaluation; None if it has no predictions of single classes."""
        evaluation = self.evaluation(number)
        if evaluation is None or evaluation.dataset_id is None:
            return None
        try:
            return numbers(confusions(Own(self.store), evaluation))
        except TestbedError:
            return None

    def _cell(self, each: Evaluation) -> dict[str, Any]:
        identity = self.store.evaluations.identity(each)
        records = self.store.records.of([each.id])[each.id]
        metrics = self.store.results.metrics(each.id)
        cell = ([each.model], [each.eval_setting])
        history = (*self.store.evaluations.find(*cell), *self.store.evaluations.find(*cell, hidden=True))
        spec = (identity.get("model") or {}).get("spec") or {}
        return {
            "id": each.id,
            "model": each.model,
            "setting": each.eval_setting,
            "status": each.status,
            "error": each.error,
            "n": each.size,
            "limit": each.sample_limit,
            "dtype": each.dtype,
            "random": each.random_weights,
            "begun": _time(each.created_at),
            "completed": _time(each.completed_at),
            "derivedFrom": each.derived_from,
            "derivedName": self._name(each.derived_from),
            "fingerprint": each.fingerprint,
            "weights": (identity.get("model") or {}).get("weights"),
            "preprocessing": {key: _short(spec[key]) for key in ("transform", "normalization") if spec.get(key)},
            "environment": each.environment,
            "identity": {key: _short(value) for key, value in identity.items()},
            "record": _short(records[0].content) if records else None,
            "logits": "logits" in self.store.outputs.kinds(each.id),
            "command": command(each),
            "main": _main(metrics),
            "right": self._right(each.id),
            "unread": self._unread(each),
            "metrics": [_metric(metric) for metric in metrics[:MOST_METRICS]],
            "moreMetrics": max(0, len(metrics) - MOST_METRICS),
            "published": self._beside(each),
            "history": [
                [other.id, other.status, _time(other.created_at), other.hidden]
                for other in sorted(history, key=lambda other: -other.id)
                if _own(other)
            ],
        }

    def _name(self, number: int | None) -> str | None:
        found = None if number is None else self.store.evaluations.get(number)
        return None if found is None else f"{found.model} on {found.eval_setting}"

    def _right(self, number: int) -> str | None:
        """The per-sample score for correctness; None if there is none."""
        found = right_or_wrong(self.store.scores.specs([number])[number].values())
        return None if found is None else found.name

    def _unread(self, evaluation: Evaluation) -> dict[str, Any]:
        """The number of unreadable samples, and the first of them by name, with reasons."""
        count, first = unread_samples(self.store, evaluation, MOST_NAMED)
        return {"count": count, "first": [[unread.position, unread.id, unread.reason] for unread in first]}

    def _beside(self, evaluation: Evaluation) -> list[list[str]]:
        """Published values of an evaluation's metrics over all samples: metric and words."""
        if not self._published.about(evaluation.model, evaluation.eval_setting):
            return []
        compared = self._published.compare(self.store.results.of([evaluation.id]))
        return [
            [comparison.metric, in_words(comparison, about=False)]
            for comparison in compared
            if comparison.slice == OVERALL
        ]

    @cached_property
    def _published(self) -> PublishedValues:
        return PublishedValues.of_measured(self.store)


def _metric(metric: Metric) -> list[Any]:
    """Name, slice, value, standard error, samples, unit, the ends of the interval, direction."""
    low, high = interval_of(metric) or (None, None)
    return [metric.name, metric.slice, metric.value, metric.stderr, metric.n, metric.unit, low, high, metric.better]


def _main(metrics: Sequence[Metric]) -> str | None:
    """The metric that is the setting's column."""
    overall = (spec_of(metric) for metric in metrics if metric.slice == OVERALL and metric.name not in METRIC_SUFFIXES)
    found = main_metric(overall)
    return None if found is None else found.name


def _own(evaluation: Evaluation) -> bool:
    return evaluation.origin != "imported"


def command(evaluation: Evaluation) -> str:
    """Returns the command that reproduces an evaluation."""
    words = ["testbed", "run", evaluation.model, "--on", evaluation.eval_setting]
    if evaluation.sample_limit is not None:
        words += ["--limit", str(evaluation.sample_limit)]
    if evaluation.dtype not in (None, "float32"):
        words += ["--dtype", str(evaluation.dtype)]
    if evaluation.random_weights:
        words.append("--random-weights")
    return shlex.join(words)


def _time(value: Any) -> str | None:
    return None if value is None else value.strftime("%Y-%m-%d %H:%M UTC")


def _short(value: Any) -> Any:
    """Truncates long lists and texts."""
    if isinstance(value, dict):
        return {str(key): _short(inner) for key, inner in value.items()}
    text = json.dumps(value, default=str)
    if len(text) <= LONGEST:
        return json.loads(text)
    return f"{text[:LONGEST]}… ({len(text):,} characters)"
