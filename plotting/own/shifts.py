"""Clean accuracy against accuracy under each shift, a point for each model."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from testbed.metric_specs import LOWER, NEITHER
from testbed.plotting.frame import Grid
from testbed.plotting.own.source import Drawing, Found, Omission, Own, file_name
from testbed.plotting.scatter import ScatterData, ScatterSpec, scatter_data, scatter_object
from testbed.plotting.scatter_figure import scatter_figure
from testbed.plotting.setting_labels import setting_label

CONFIDENCE = 0.95


def figures(own: Own) -> Found:
    """Yields a scatter plot for each shift; the severities of a corruption are averaged."""
    shifts = _shifts(own)
    if not shifts:
        yield Omission(
            "clean against shifts", "no stored setting is a perturbation of another; --clean SETTING names one"
        )
    for name, (clean, members) in shifts.items():
        data = shift(own, name, clean, members)
        if data is None:
            yield Omission(f"{clean} against {name}", "no model has results on both")
            continue
        yield Drawing(file_name("shift", clean, name), partial(scatter_figure, data), scatter_object(data))


def shift(own: Own, name: str, clean: str, members: list[str]) -> ScatterData | None:
    """Computes the numbers of a figure; None if no model has all results.

    Error bars are Clopper-Pearson's of 95 %. A mean over severities
    has none, since its samples are not independent.
    """
    x = own.values(clean)
    parts = [own.values(member) for member in members]
    y = pd.concat([part["value"] for part in parts], axis=1).mean(axis=1, skipna=False)
    n = parts[0]["n"] if len(parts) == 1 else pd.Series(np.nan, index=y.index)
    models = x.index.intersection(y.dropna().index)
    if models.empty:
        return None
    values = pd.DataFrame({clean: x["value"], name: y}).loc[models]
    sizes = pd.DataFrame({clean: x["n"], name: n}).loc[models]
    anywhere = bool(((values > 0) & (values < 1)).all(axis=1).any())
    spec = ScatterSpec(
        x=clean,
        y=name,
        title=f"{setting_label(clean)} and {setting_label(name)}",
        y_label=f"{setting_label(name)}, mean of {len(members)} severities" if len(members) > 1 else "",
        scale="logit" if anywhere else "linear",  # 0 % and 100 % stand at the edge of a logit scale
        least=0.0,
        least_on=clean,
        merge_types=False,
        fitted=own.specs[clean].better not in (LOWER, NEITHER),  # effective robustness is defined for accuracies
        interval=CONFIDENCE,
    )
    specs = dict.fromkeys((clean, name), own.specs[clean])
    data = scatter_data(Grid(values, sizes, x["model_type"], own.metrics[clean], specs=specs), spec)
    return data._replace(marks=own.marks, pinned=own.labels)


def _shifts(own: Own) -> dict[str, tuple[str, list[str]]]:
    """Shift → its unperturbed setting, and its own settings: one, or the severities of a corruption."""
    in_groups = {member: name for name, on in own.severities.items() for member in on.values()}
    found: dict[str, tuple[str, list[str]]] = {}
    for setting, clean in own.cleans.items():
        if own.metrics[setting] == own.metrics.get(clean):
            found.setdefault(in_groups.get(setting, setting), (clean, []))[1].append(setting)
    return found
