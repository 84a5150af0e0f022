"""The report of answers that judges compared with an opponent's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from testbed.answers.reports.scored import Scored, by_columns, mean
from testbed.answers.verdict import Answered
from testbed.entities import Metric

WIN_RATE = "win_rate"


def pairs(answered: Answered, scorer: str) -> list[Metric]:
    """``win_rate``, in which a tie is half a win, also by category; the shares of ``wins``, ``ties`` and ``losses``."""
    rows = Scored.of(answered)
    metrics = [mean(rows, WIN_RATE, scorer), *by_columns(rows, WIN_RATE, scorer, ("category",))]
    for name, score in (("wins", 1.0), ("ties", 0.5), ("losses", 0.0)):
        shares = np.where(np.isnan(rows.scores), np.nan, rows.scores == score)
        metrics.append(mean(replace(rows, scores=shares), name, scorer))
    return metrics
