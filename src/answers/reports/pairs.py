"""The report of answers that judges compared with an opponent's."""

from __future__ import annotations

import numpy as np

from testbed.answers.reports.benchmark import add_report
from testbed.answers.reports.scored import ScoredRows, by_columns, mean
from testbed.answers.verdict import AnsweredQuestions
from testbed.entities import Metric
from testbed.metric_specs import LOWER, NEITHER, PREFERRED, rate

WIN_RATE = rate("win_rate", headline=PREFERRED)
_OUTCOMES = ((rate("wins"), 1.0), (rate("ties", NEITHER), 0.5), (rate("losses", LOWER), 0.0))


@add_report("pairs", WIN_RATE.name)
def pairs(answered: AnsweredQuestions, scorer: str) -> list[Metric]:
    """Reports ``win_rate``, a tie being half a win, also by category; the shares of ``wins``, ``ties``, ``losses``."""
    rows = ScoredRows.of(answered)
    metrics = [mean(rows, WIN_RATE, scorer), *by_columns(rows, WIN_RATE, scorer, ("category",))]
    for spec, score in _OUTCOMES:
        metrics.append(mean(rows.scored(np.where(rows.counted, rows.scores == score, np.nan)), spec, scorer))
    return metrics
