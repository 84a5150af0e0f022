"""The measured cells of a store, as they are published: with names that reveal nothing about this machine's folders."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from testbed.db.parts.datasets import DatasetHead
from testbed.db.parts.names import matching_names, parts_left_out
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, Evaluation, Metric
from testbed.errors import StoreError
from testbed.redaction import redacted, redacted_word
from testbed.registry.references import is_part

OF_OTHERS = "values are not measured here"
PARTS = "cells are of parts of settings, which are written only where they are named"

_PATH = re.compile(r"(?:(?<=[:,@])|\A)(~?/(?!/)[^,@]*|[A-Za-z]:[\\/](?!/)[^,@]*|\\\\[^,@]*)")

_FOLDERS = re.compile(r"(?<![\w:/.~])~?/(?:[^\s/'\":,;]+/)+")  # of a path in a sentence


@dataclass(frozen=True)
class MeasuredCell:
    """A measured cell.

    Attributes:
        evaluation: The reported evaluation.
        model: The model's name as it is published, see `public_name`.
        eval_setting: The setting's name, likewise.
        identity: The full content of the evaluation's fingerprint.
        metrics: All metrics, those of slices too.
        dataset: Its data set; None if it has no samples.
    """

    evaluation: Evaluation
    model: str
    eval_setting: str
    identity: dict[str, Any]
    metrics: Sequence[Metric]
    dataset: DatasetHead | None

    @property
    def environment(self) -> dict[str, Any]:
        """Returns the versions and devices that it was computed with."""
        return self.evaluation.environment or {}

    def part(self, *keys: str) -> Any:
        """A part of the identity; an empty dictionary if it has none."""
        found: Any = self.identity
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return {} if found is None else found


def measured_cells(
    store: Store, models: Sequence[str], settings: Sequence[str]
) -> tuple[list[MeasuredCell], Counter[str]]:
    """The measured cells of models on settings, by name, and what was left out: which things → how many.

    Args:
        models: Names or patterns; none means all.
        settings: Names or patterns; none means all but parts of others.

    Raises:
        UnknownNameError: If a word matches nothing.
        StoreError: If nothing of these was measured here, or two names would be published as one.
    """
    rows = store.results.rows(["model", "eval_setting", "evaluation_id", "origin"])
    wanted = matching_names("model", models, {row[0] for row in rows})
    on = matching_names("eval setting", settings, {row[1] for row in rows})
    chosen = [row for row in rows if row[0] in wanted and row[1] in on]
    own = {evaluation: (model, setting) for model, setting, evaluation, origin in chosen if origin not in ELSEWHERE}
    here = [row for row in rows if row[0] in wanted and row[3] not in ELSEWHERE]
    parts = set() if settings else {(row[0], row[1]) for row in here if is_part(row[1])}
    if not own:
        told = parts_left_out(setting for _, setting in parts) or "testbed run measures some"
        raise StoreError(f"none of these results was measured here; {told}")
    cells = []
    for key in sorted(own, key=lambda each: (own[each], each)):
        evaluation = store.evaluations.get(key)
        names = public_name(evaluation.model), public_name(evaluation.eval_setting)
        dataset = None if evaluation.dataset_id is None else store.datasets.head(evaluation.dataset_id)
        identity = store.evaluations.identity(evaluation)
        cells.append(MeasuredCell(evaluation, *names, identity, store.results.metrics(key), dataset))
    _require_apart(cells)
    return cells, +Counter({OF_OTHERS: sum(row[3] in ELSEWHERE for row in chosen), PARTS: len(parts)})


def public_name(name: str) -> str:
    """A name without what only this machine knows: of a path its last part, of a URL no passwords.

    ``replay:/home/me/answers.json`` becomes ``replay:answers.json``.
    """
    return redacted_word(_PATH.sub(_last_part, name))


def public_text(text: str) -> str:
    """A message, such as that of an error, likewise."""
    return redacted(_FOLDERS.sub("", text))


def _last_part(found: re.Match[str]) -> str:
    path = found[1]
    return PureWindowsPath(path).name if "\\" in path or path[1:2] == ":" else PurePosixPath(path).name


def _require_apart(cells: Sequence[MeasuredCell]) -> None:
    for kind in ("model", "eval_setting"):
        given: dict[str, str] = {}
        for cell in cells:
            own, public = getattr(cell.evaluation, kind), getattr(cell, kind)
            if given.setdefault(public, own) != own:
                raise StoreError(
                    f"{given[public]} and {own} would both be published as {public}; testbed store rename gives one of"
                    " them another name"
                )
