"""Draws the results of a store: shifts, severities, rankings, reliability, coverage, confusions, costs, training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.api.results import Results, words
from testbed.db.parts.names import matching_names
from testbed.errors import StoreError, TestbedError
from testbed.paths import expanded
from testbed.plotting.own import compute as training_compute
from testbed.plotting.own import confusion, cost, coverage, places, reliability, severity, shifts, training
from testbed.plotting.own.source import Drawing, Found, Omission, Own, skipped

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

KINDS: dict[str, Callable[[Own], Found]] = {
    "shifts": shifts.figures,
    "severity": severity.figures,
    "ranking": places.figures,
    "reliability": reliability.figures,
    "coverage": coverage.figures,
    "confusion": confusion.figures,
    "cost": cost.figures,
    "compute": training_compute.figures,
    "training": training.figures,
}


def figures(
    db_url: str | None = None,
    kinds: Sequence[str] = (),
    models: Sequence[str] = (),
    eval_settings: Sequence[str] = (),
    metric: str | None = None,
    clean: str | None = None,
    labels: Sequence[str] = (),
    compute: str | Path | None = None,
) -> tuple[dict[str, Figure], list[Omission]]:
    """Returns the figures of a store's results.

    Args:
        db_url: The store; the default is that of `testbed.results`.
        kinds: Kinds in `KINDS`; empty means all.
        models: Names or patterns; empty means all.
        eval_settings: Names or patterns; empty means all.
        metric: The metric to draw, a rate; None: the main metric of each setting.
        clean: The setting that the others are compared with; None: for perturbed settings the unperturbed one of the
            same samples, for others ``val`` if it is stored.
        labels: Names or patterns of models that are always labelled; extreme ones are labelled where there is room.
        compute: A table of the models' training compute, for the kind ``"compute"``; see
            `testbed.plotting.own.compute.read_training`.

    Returns:
        Name → plotly's figure; and what was skipped, with the reasons.

    Raises:
        TestbedError: If there is no store, or it has no matching results.
    """
    from testbed.db.store import Store

    with Store.open(db_url) as store:
        table = None if compute is None else expanded(compute)
        drawn, passed = collect(Own(store, db_url, models, eval_settings, metric, clean, labels, table), kinds)
        return {drawing.name: drawing.draw() for drawing in drawn}, passed


def collect(own: Own, kinds: Sequence[str] = ()) -> tuple[list[Drawing], list[Omission]]:
    """Collects the figures, without drawing them, and what was skipped.

    Raises:
        TestbedError: If the store has no results to draw.
    """
    if own.frame.empty:
        raise TestbedError("the store has no results to draw; testbed run or testbed import adds some")
    if own.clean is not None and own.clean not in own.metrics:
        raise TestbedError(f"--clean {own.clean}: the store has no results on it; testbed list settings --stored")
    if own.labels:
        matching_names("model", own.labels, set(own.frame["model"]))  # raises for a pattern without a match
    drawn: list[Drawing] = []
    passed: list[Omission] = []
    for kind in kinds or KINDS:
        for omission in KINDS[kind](own):
            if isinstance(omission, Drawing):
                same = sum(
                    other.name == omission.name for other in drawn
                )  # names may differ only in special characters
                drawn.append(omission._replace(name=f"{omission.name}--{same + 1}") if same else omission)
            else:
                passed.append(omission)
    return drawn, passed


class Figures(dict[str, Any]):
    """Figures of plotly by name; a notebook shows all of them."""

    def _ipython_display_(self) -> None:
        for figure in self.values():
            figure.show()


def plot(
    results: Results,
    *kinds: str,
    metric: str | None = None,
    labels: Iterable[str] = (),
    compute: str | Path | None = None,
) -> dict[str, Figure]:
    """Draws the figures of ``testbed figures`` for these models and settings; a notebook shows them.

    Args:
        kinds: Any of ``"shifts"``, ``"severity"``, ``"ranking"``, ``"reliability"``, ``"coverage"``, ``"confusion"``,
            ``"cost"``, ``"compute"`` and ``"training"``; empty means all.
        metric: A rate; None: the main one of each setting.
        labels: Names or patterns of models that are always labelled.
        compute: As in `figures`.

    Raises:
        StoreError: If nothing can be drawn, with the reasons.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise StoreError(f"unknown figure kind {unknown[0]!r}; expected one of {', '.join(KINDS)}")
    models = list(dict.fromkeys(row.model for row in results.rows))
    settings = list(dict.fromkeys(row.eval_setting for row in results.rows))
    if "compute" in kinds and compute is None:
        raise StoreError("figures of the kind compute need a table: compute=FILE, with the columns model and compute")
    found, passed = figures(results.db, kinds, models, settings, metric, labels=words(labels), compute=compute)
    if not found:
        raise StoreError(f"nothing was drawn: {skipped(passed)}")
    return Figures(found)
