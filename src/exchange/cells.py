"""The measured cells of a store, as they are published: with names that tell nothing of this machine's folders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from testbed.db.parts.datasets import DatasetHead
from testbed.db.parts.names import matching_names
from testbed.db.store import Store
from testbed.entities import ELSEWHERE, Evaluation, Metric
from testbed.errors import StoreError
from testbed.redaction import redacted, redacted_word

_PATH = re.compile(r"(?:(?<=[:,@])|\A)(~?/(?!/)[^,@]*|[A-Za-z]:[\\/](?!/)[^,@]*|\\\\[^,@]*)")

_FOLDERS = re.compile(r"(?<![\w:/.~])~?/(?:[^\s/'\":,;]+/)+")  # of a path in a sentence


@dataclass(frozen=True)
class Cell:
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
        """What it was computed with: versions, devices."""
        return self.evaluation.environment or {}

    def part(self, *keys: str) -> Any:
        """A part of the identity; an empty dictionary if it has none."""
        found: Any = self.identity
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return {} if found is None else found


def measured_cells(store: Store, models: Sequence[str], settings: Sequence[str]) -> tuple[list[Cell], int]:
    """The measured cells of models on settings, by name, and the number of reported values that others measured.

    Args:
        store: The results store.
        models: Names or patterns; none means all.
        settings: Names or patterns; none means all.

    Raises:
        UnknownNameError: If a word matches nothing.
        StoreError: If nothing of these was measured here, or two names would be published as one.
    """
    rows = store.results.rows(["model", "eval_setting", "evaluation_id", "origin"])
    wanted = matching_names("model", models, {row[0] for row in rows})
    on = matching_names("eval setting", settings, {row[1] for row in rows})
    chosen = [row for row in rows if row[0] in wanted and row[1] in on]
    own = {evaluation: (model, setting) for model, setting, evaluation, origin in chosen if origin not in ELSEWHERE}
    if not own:
        raise StoreError("none of these results was measured here; testbed run measures some")
    cells = []
    for key in sorted(own, key=lambda each: (own[each], each)):
        evaluation = store.evaluations.get(key)
        names = public_name(evaluation.model), public_name(evaluation.eval_setting)
        dataset = None if evaluation.dataset_id is None else store.datasets.head(evaluation.dataset_id)
        identity = store.evaluations.identity(evaluation)
        cells.append(Cell(evaluation, *names, identity, store.results.metrics(key), dataset))
    _require_apart(cells)
    return cells, sum(row[3] in ELSEWHERE for row in chosen)


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


def _require_apart(cells: Sequence[Cell]) -> None:
    for kind in ("model", "eval_setting"):
        given: dict[str, str] = {}
        for cell in cells:
            own, public = getattr(cell.evaluation, kind), getattr(cell, kind)
            if given.setdefault(public, own) != own:
                raise StoreError(
                    f"{given[public]} and {own} would both be published as {public}; testbed store rename gives one of"
                    " them another name"
                )
