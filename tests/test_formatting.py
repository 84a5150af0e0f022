"""Numbers for people: what `testbed.formatting` makes of values, ends, differences and errors."""

from __future__ import annotations

import math

import pytest
from tables import cases

from testbed import formatting
from testbed.entities import FRACTION
from testbed.metric_specs import MetricSpec


@cases(
    ("value", "unit", "text"),
    [
        (0.9759259259, FRACTION, "97.59"),
        (1.0, FRACTION, "100.00"),
        (0.00125, FRACTION, "0.13"),  # 0.125 exactly: away from 0, as the page rounds it
        (0.00004, FRACTION, "0.00"),
        (-0.00004, FRACTION, "0.00"),
        (-0.0074, FRACTION, "−0.74"),
        (0.5, "nats", "0.5000"),
        (0.0000123456, "", "1.2e−5"),
        (-0.00002, "nats", "−2.0e−5"),
        (1234567.891, "points", "1,234,567.89"),
        (3e17, "", "3.000e17"),
        (0.0, "", "0.0000"),
        (2, "rank", "2.00"),
        (math.inf, "nats", "∞"),
        (math.nan, FRACTION, "–"),
        (None, "", "–"),
    ],
)
def test_a_value_has_the_decimals_of_its_metric(value, unit, text):
    assert formatting.bare_value(value, unit) == text
    assert MetricSpec("any", unit).decimals == (2 if unit in (FRACTION, "points", "rank") else 4)


def test_units_signs_errors_and_intervals():
    assert formatting.metric_value(0.975, FRACTION, 0.01234) == "97.50 ± 1.23 %"
    assert formatting.metric_value(0.0842, "nats", 0.0103) == "0.0842 ± 0.0103 nats"
    assert formatting.metric_value(None, FRACTION) == "not defined"
    assert formatting.mean_score(0.975, FRACTION) == "97.50 %"
    assert formatting.mean_score(0.975, "nats") == "0.9750"
    assert formatting.difference(-0.0074, FRACTION) == "−0.74 points"
    assert formatting.difference(0.0125, "nats") == "+0.0125"
    assert formatting.difference(0.0, FRACTION) == "0.00 points"
    assert formatting.interval(0.98598, 1.0) == "[98.60, 100.00]"  # as it is, not ± half of it
    assert formatting.interval(-0.0074, 0.0185, signed=True) == "[−0.74, +1.85]"
    assert formatting.interval(None, None) == "–"


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.0000"), (0.58123, "0.5812"), (1e-4, "0.0001"), (9.9e-5, "<0.0001"), (0.0, "<0.0001")]
)
def test_a_p_value_has_four_decimals_or_is_below_them(value, text):
    assert formatting.p_value(value) == text
