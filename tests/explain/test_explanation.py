"""What an answer says of matches by chance."""

from __future__ import annotations

import pytest

from testbed.explain.axis import Stage, Variant
from testbed.explain.explanation import ENOUGH, EXCLUDED, GIVES, Explanation, Row, Target
from testbed.explain.sampling import Estimate


def explanation(gap, spread):
    """One variant gives the value, and nine others are up to a distance from it."""
    target = Target("top1", 0.7, 5e-5, 0.7 + gap)
    values = [0.7 + spread * number / 9 for number in range(10)]
    rows = [
        Row((Variant("prompt", f"{number}", Stage.TEXTS, str),), (Estimate(value),), EXCLUDED if number else GIVES)
        for number, value in enumerate(values)
    ]
    return Explanation("net", "set", (target,), 20_000, rows, not_tried={"crop": ENOUGH})


@pytest.mark.parametrize(
    ("gap", "spread", "doubt"),
    [
        (0.002, 0.0019, " chance alone would give about 0.5 such matches;"),  # ten, each within 1/20 of the gap
        (0.002, 0.017, " chance alone would give about 0.1 such matches;"),  # two of them that near
        (0.03, 0.019, ""),  # a large effect is seldom hit
    ],
)
def test_matches_near_the_stored_value_are_likelier_by_chance(gap, spread, doubt):
    said = explanation(gap, spread).sentence()
    assert said == (f"“prompt: 0” gives the published value. Preprocessing was not tried:{doubt} --thorough tries it.")
