"""Checks that stored evaluations belong to the models and settings whose names they have."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from testbed.db.store import Store
from testbed.db.upkeep.damage import Fault
from testbed.entities import Evaluation
from testbed.errors import TestbedError
from testbed.graph.options import RunOptions
from testbed.planning.plan import Planner
from testbed.registry.catalog import Catalog

_LASTS = (
    "if their definitions have not been exchanged, names in the database have: bring a backup back, or exchange them"
    " again with testbed store rename model OLD NEW or testbed store rename setting OLD NEW"
)
_CHANGED = "the definition has changed since, so that it cannot tell whose they are"


class _Identity(NamedTuple):
    """The identity of an evaluation, in a form that can be compared."""

    model: str
    setting: str


def misnamed(store: Store, catalog: Catalog, skipped: Callable[[Evaluation, str], None]) -> Iterator[Fault]:
    """Yields the evaluations that are of another model or another setting than their names say.

    Runs no model, and fetches nothing.

    Args:
        skipped: Called with each evaluation that cannot be compared, and why.
    """
    alike: dict[tuple[Any, ...], list[Evaluation]] = defaultdict(list)
    for each in (*store.evaluations.find(), *store.evaluations.find(hidden=True)):
        if each.status == "complete" and each.origin != "imported" and not each.random_weights:
            alike[each.dtype, each.sample_limit].append(each)
    for (dtype, limit), evaluations in alike.items():
        computed, _, stored = (dtype or "float32").partition("/")
        options = RunOptions(dtype=computed, store_dtype=stored or None, limit=limit)
        names = _Names(catalog, options, evaluations)
        for each in evaluations:
            found = names.wrong(each, _identity(store.evaluations.identity(each)))
            if isinstance(found, Fault):
                yield found
            elif found:
                skipped(each, found)


class _Names:
    """Today's identities of cells.

    Args:
        options: With which the evaluations were run.
        evaluations: Their models and settings are those that may have been exchanged.
    """

    def __init__(self, catalog: Catalog, options: RunOptions, evaluations: list[Evaluation]) -> None:
        self.catalog = catalog
        self.models = sorted(
            {evaluation.model for evaluation in evaluations if catalog.contains_model(evaluation.model)}
        )
        known = catalog.contains_eval_setting
        self.settings = sorted(
            {evaluation.eval_setting for evaluation in evaluations if known(evaluation.eval_setting)}
        )
        self._planner = Planner(catalog, None, options, fetch=False)
        self._found: dict[tuple[str, str], _Identity | str] = {}

    def wrong(self, evaluation: Evaluation, stored: _Identity | None) -> Fault | str | None:
        """The fault of an evaluation, or why it cannot be compared; None if its names are right."""
        model, setting = evaluation.model, evaluation.eval_setting
        if model not in self.models or setting not in self.settings:
            return "the model or the setting is not in the registry; load its definition with --plugin FILE"
        own = self._today(model, setting)
        if isinstance(own, str):
            return own
        if stored == own:
            return None
        if stored is None:
            return _CHANGED
        of_model = self._first(stored.model == own.model, model, self.models, lambda name: self._is_model(name, stored))
        of_setting = self._first(
            stored.setting == own.setting,
            setting,
            self.settings,
            lambda name: self._is_setting(of_model or model, name, stored),
        )
        wrong = [
            f"{noun} {found}"
            for noun, found, name in (("model", of_model, model), ("setting", of_setting, setting))
            if found is not None and found != name
        ]
        if not wrong:
            return _CHANGED
        name = f"evaluation {evaluation.id} ({model} on {setting})"
        return Fault(f"{name}: by today's definitions, this is of the {' and the '.join(wrong)}", lasts=_LASTS)

    def _first(self, same: bool, own: str, names: list[str], fits: Callable[[str], bool]) -> str | None:
        return own if same else next((name for name in names if name != own and fits(name)), None)

    def _is_model(self, name: str, stored: _Identity) -> bool:
        model = self._planner.opener.model(name)
        if isinstance(model, str) or model.weights is None:
            return False
        return _text({"spec": model.description, "weights": model.weights.id}) == stored.model

    def _is_setting(self, model: str, setting: str, stored: _Identity) -> bool:
        found = self._today(model, setting)
        return isinstance(found, _Identity) and found.setting == stored.setting

    def _today(self, model: str, setting: str) -> _Identity | str:
        """The identity of a cell, or why there is none."""
        pair = (model, setting)
        if pair not in self._found:
            try:
                (cell,) = self._planner.plan_pairs([pair]).cells
            except TestbedError as error:
                self._found[pair] = str(error)
                return self._found[pair]
            whole = cell.fingerprint and _identity(cell.identity)
            self._found[pair] = whole or cell.reason or "it cannot be opened today"
        return self._found[pair]


def _identity(parts: dict[str, Any]) -> _Identity | None:
    """The two parts of an identity; None if it is not whole."""
    if not {"model", "forward", "view", "samples"} <= parts.keys():
        return None
    return _Identity(_text(parts["model"]), _text([parts["forward"], parts["view"], parts["samples"]]))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
