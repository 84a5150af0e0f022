"""Documents of evaluations: what they were computed from, their metrics, and the command to repeat them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from testbed.db.store import Store
from testbed.entities import Evaluation
from testbed.errors import TestbedError
from testbed.plotting.own.confusion import confusions, numbers
from testbed.plotting.own.source import Own

PER_DOCUMENT = 16
MOST_EXPORTED = 20_000
MOST_CONFUSIONS = 500  # evaluations of a store whose export has the confusions of each
LONGEST = 4_000  # characters of a part of an identity; longer ones are shown by their beginning
MOST_METRICS = 400


class Cells:
    """``cells/K``: sixteen evaluations that were run here, by id; ``confusion/ID``: the confusions of one.

    Args:
        store: The results store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def _evaluations(self) -> dict[int, Evaluation]:
        every = (*self.store.evaluations(), *self.store.evaluations(hidden=True))
        return {each.id: each for each in every if each.origin != "imported"}

    @cached_property
    def _history(self) -> dict[tuple[str, str], list[Evaluation]]:
        found: dict[tuple[str, str], list[Evaluation]] = {}
        for each in self._evaluations.values():
            found.setdefault((each.model, each.eval_setting), []).append(each)
        return found

    def paths(self) -> Iterator[str]:
        """All documents of cells; none where there are too many evaluations for files."""
        if len(self._evaluations) <= MOST_EXPORTED:
            yield from (f"cells/{number}" for number in sorted({each // PER_DOCUMENT for each in self._evaluations}))
        if len(self._evaluations) <= MOST_CONFUSIONS:
            for each in self.store.evaluations():
                if each.id in self._evaluations and self._confusion(each.id) is not None:
                    yield f"confusion/{each.id}"

    def document(self, path: str) -> Any:
        """One of these."""
        kind, _, number = path.partition("/")
        if kind not in ("cells", "confusion") or not number.isdecimal():
            raise KeyError(path)
        if kind == "confusion":
            confused = self._confusion(int(number))
            if confused is None:
                raise KeyError(path)
            return confused
        first = int(number) * PER_DOCUMENT
        found = [self._evaluations[each] for each in range(first, first + PER_DOCUMENT) if each in self._evaluations]
        if not found:
            raise KeyError(path)
        return {str(each.id): self._cell(each) for each in found}

    def _confusion(self, number: int) -> dict[str, Any] | None:
        """The confusions of an evaluation; None if it has no predictions of single classes."""
        evaluation = self._evaluations.get(number)
        if evaluation is None or evaluation.dataset_id is None:
            return None
        try:
            return numbers(confusions(Own(self.store), evaluation))
        except TestbedError:
            return None

    def _cell(self, each: Evaluation) -> dict[str, Any]:
        identity = self.store.identity(each)
        records = self.store.records([each.id])[each.id]
        metrics = self.store.metrics(each.id)
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
            "fingerprint": each.fingerprint,
            "weights": (identity.get("model") or {}).get("weights"),
            "preprocessing": {key: _short(spec[key]) for key in ("transform", "normalization") if spec.get(key)},
            "environment": each.environment,
            "identity": {key: _short(value) for key, value in identity.items()},
            "record": _short(records[0].content) if records else None,
            "logits": "logits" in self.store.kinds(each.id),
            "command": command(each),
            "metrics": [[m.name, m.slice, m.value, m.stderr, m.n, m.unit] for m in metrics[:MOST_METRICS]],
            "moreMetrics": max(0, len(metrics) - MOST_METRICS),
            "history": [
                [other.id, other.status, _time(other.created_at), other.hidden]
                for other in sorted(self._history[each.model, each.eval_setting], key=lambda other: -other.id)
            ],
        }


def command(evaluation: Evaluation) -> str:
    """The command that computes an evaluation again."""
    words = ["python", "eval.py", "--models", evaluation.model, "--eval-settings", evaluation.eval_setting]
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
    """A value that is not too long to be shown; long lists and texts by their beginning."""
    if isinstance(value, dict):
        return {str(key): _short(inner) for key, inner in value.items()}
    text = json.dumps(value, default=str)
    if len(text) <= LONGEST:
        return json.loads(text)
    return f"{text[:LONGEST]}… ({len(text):,} characters)"
