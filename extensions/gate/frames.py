"""Decisions of a gate as pandas frames: a method of `testbed.api.results.Results`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.api.results import Results
from testbed.db.store import Store

if TYPE_CHECKING:
    import pandas as pd


def gate(results: Results, policy: str | Path, candidate: str, baseline: str) -> pd.DataFrame:
    """Decides whether a model may replace another one, like ``testbed gate``; returns a row for each rule and setting.

    Columns: ``tier``, ``eval_setting``, ``group``, ``score``, ``verdict`` (holds, loses, open or missing), ``n``,
    the paired ``gain`` with its interval ``low`` to ``high``, ``detectable`` (the loss that these samples would
    show with a power of 80 %), ``margin`` in the same unit, ``p_loses`` (Holm's correction over the tier) and
    ``missing`` (with the reason). ``frame.attrs["verdict"]`` is the verdict of all: passes, fails or open.

    Args:
        policy: A YAML file.
        candidate: The new model.
        baseline: The model before.

    Raises:
        DataError: If the policy is invalid, or the models are the same.
        StoreError: If one of them is not in the store.
    """
    with Store.open(results.db) as store:
        return _verdicts(store, policy, candidate, baseline)


def _verdicts(store: Store, policy: str | Path, candidate: str, baseline: str) -> pd.DataFrame:
    """A row for each rule on each setting and group."""
    import pandas as pd

    from testbed.extensions.gate.decision import decide
    from testbed.extensions.gate.policy import read_policy

    found = decide(store, read_policy(Path(policy)), candidate, baseline)
    rows = []
    for each in found.rows:
        row: dict[str, Any] = {"tier": each.rule.tier, "eval_setting": each.eval_setting, "group": each.group}
        row |= {"score": each.score, "verdict": each.verdict}
        of = each.change
        for name in ("n", "gain", "low", "high", "detectable"):
            row[name] = None if of is None else getattr(of, name)
        row |= {"margin": each.rule.margin / 100 if each.points else each.rule.margin}
        rows.append({**row, "p_loses": each.p_loses, "missing": each.why or None})
    frame = pd.DataFrame(rows)
    frame.attrs["verdict"] = found.verdict
    return frame
