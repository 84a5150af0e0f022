"""The outcome of a run with ``until``, as a pandas frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from testbed.runner.until import UntilOutcome


def until_frame(found: UntilOutcome) -> pd.DataFrame:
    """Returns the outcome for each model on each setting; see `testbed.api.evaluate.evaluate`.

    Columns: ``model``, ``eval_setting``, ``metric``, ``value`` (a difference if models are compared) with ``low`` to
    ``high`` (of all samples, 95 % at all looks together), ``n`` of ``size`` samples, ``decided``, ``why`` (the reason
    if it was given up, else missing), ``looks`` and ``computed``: the samples that were computed.
    """
    import pandas as pd

    rows = []
    for cell in found.cells:
        row: dict[str, Any] = {"model": cell.model, "eval_setting": cell.setting}
        for name in ("metric", "value", "low", "high", "n"):
            row[name] = None if cell.estimate is None else getattr(cell.estimate, name)
        row |= {"size": None if cell.population is None else cell.population.size, "decided": cell.decided}
        rows.append({**row, "why": cell.why or None, "looks": cell.looked, "computed": cell.computed})
    return pd.DataFrame(rows)
