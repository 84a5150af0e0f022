"""Verdicts on estimates, and what an answer says of matches by chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.extensions.explain.axis import Stage, Variant
from testbed.extensions.explain.explanation import (
    ENOUGH,
    EXCLUDED,
    GIVES,
    UNDECIDED,
    Explanation,
    Target,
    VariantResult,
    expected_by_chance,
    most_by_chance,
    verdict,
)
from testbed.extensions.explain.sampling import SampledValue


def explanation(gap, spread):
    """One variant gives the value, and nine others are up to a distance from it."""
    target = Target("top1", 0.7, 5e-5, 0.7 + gap)
    values = [0.7 + spread * number / 9 for number in range(10)]
    rows = [
        VariantResult(
            (Variant("prompt", f"{number}", Stage.TEXTS, str),), (SampledValue(value),), EXCLUDED if number else GIVES
        )
        for number, value in enumerate(values)
    ]
    luck = expected_by_chance(rows, [target], small_effects=True)
    return Explanation("net", "set", (target,), 20_000, rows, not_tried={"crop": ENOUGH}, by_chance=luck)


@pytest.mark.parametrize(
    ("gap", "spread", "chance"),
    [
        (0.0015, 0.0014, 0.67),  # ten, each within 1/15 of the gap
        (0.002, 0.017, 0.1),  # two of them that near
        (0.03, 0.019, 0.05),  # a large effect is seldom hit
    ],
)
def test_matches_near_the_stored_value_are_likelier_by_chance(gap, spread, chance):
    found = explanation(gap, spread)
    said = found.sentence()
    assert found.by_chance == pytest.approx(chance, abs=0.01)
    assert found.explained == (chance < 0.5)
    if found.explained:
        luck = f"Chance alone would give about {chance:.2g} such matches"
        assert (
            said == f"“prompt: 0” gives the published value. {luck}. Preprocessing was not tried: --thorough tries it."
        )
    else:
        assert "chance alone would give about 0.7; another published metric would decide" in said
        assert said.startswith("Unexplained: “prompt: 0” gives the published value, but")


def test_few_samples_have_few_values_so_that_chance_gives_more_of_them():
    """Of 100 samples a share is one of 101 values: within 2 points around there are five."""
    rows = [VariantResult((Variant("prompt", "0", Stage.TEXTS, str),), (SampledValue(0.7),), GIVES)]
    many, few = (Target("top1", 0.7, 5e-5, 0.9, samples=n) for n in (100_000, 100))
    assert expected_by_chance(rows, [many], small_effects=True) == pytest.approx(1e-4 / 0.02)
    assert expected_by_chance(rows, [few], small_effects=True) == pytest.approx(0.005 / 0.02)


def test_of_few_samples_other_arithmetic_changes_no_share_a_little():
    """One answer more is 0.04 points of 2,500 samples, so a value within 0.01 points is another one."""
    near = SampledValue(0.70009)
    assert verdict([near], [Target("top1", 0.7, 5e-5, 0.9, samples=100_000)]) == GIVES
    assert verdict([near], [Target("top1", 0.7, 5e-5, 0.9, samples=2_500)]) == EXCLUDED


def said_of(*found, stored=0.9, value=0.8):
    """The verdict on estimates of metrics that were published at one value, as (value, error)."""
    targets = [Target(f"metric {number}", value, 5e-5, stored) for number in range(len(found))]
    return verdict([SampledValue(*each, samples=100) for each in found], targets)


def test_a_narrow_interval_that_holds_the_value_gives_it():
    assert said_of((0.8004, 0.0004)) == GIVES
    assert said_of((0.8004, 0.0008)) == UNDECIDED
    assert said_of((0.801, 0.0004)) == UNDECIDED  # 2.4 errors: within 95 %, but not out for certain
    assert said_of((0.8016, 0.0004)) == EXCLUDED


def test_one_metric_alone_needs_an_interval_that_several_may_miss_five_times():
    assert said_of((0.801, 0.001)) == UNDECIDED
    assert said_of((0.801, 0.001), (0.801, 0.001)) == GIVES


def test_a_large_gap_needs_an_interval_of_3_percent_of_it():
    assert said_of((0.501, 0.006), (0.501, 0.006), value=0.5) == GIVES
    assert said_of((0.501, 0.007), (0.501, 0.007), value=0.5) == UNDECIDED
    assert said_of((0.501, 0.0012), value=0.5) == UNDECIDED  # of one metric alone, no gap makes it wider


def test_of_few_samples_an_interval_of_a_few_answers_is_narrow():
    target = Target("top1", 0.8, 5e-5, 0.9, samples=1_000)
    assert verdict([SampledValue(0.8005, 0.002, 500)], [target]) == GIVES
    assert verdict([SampledValue(0.8005, 0.0021, 500)], [target]) == UNDECIDED


def test_intervals_of_several_metrics_hold_all_values_together():
    near, off = (0.8, 0.001), (0.8022, 0.001)  # off by 2.1 errors besides the rounding
    assert said_of(off) == UNDECIDED
    assert said_of(off, near) == GIVES
    assert said_of((0.8036, 0.001)) == EXCLUDED
    assert said_of((0.8036, 0.001), near) == UNDECIDED
    assert said_of((0.8038, 0.001), near) == EXCLUDED


def test_a_variant_of_preprocessing_that_chance_may_give_explains_nothing():
    """A value that one of 600 samples more would change is hit by many of a dozen variants."""
    target = Target("top1", 0.7, 5e-5, 0.72, samples=600)
    rows = [
        VariantResult(
            (Variant("crop", f"{n}", Stage.IMAGES, str),),
            (SampledValue(0.7 + n / 600, 0, 600),),
            EXCLUDED if n else GIVES,
        )
        for n in range(12)
    ]
    luck = expected_by_chance(rows, [target], small_effects=True)
    assert luck == pytest.approx(12 * (0.5 / 600) / 0.02)
    found = Explanation("net", "set", (target,), 600, rows, by_chance=luck)
    assert not found.explained
    found.by_chance = expected_by_chance(rows[:3], [target], small_effects=True)
    assert found.explained


def test_one_metric_may_tell_it_from_what_is_stored():
    targets = [Target("top1", 0.8, 5e-5, 0.9), Target("top5", 0.95, 5e-5, 0.951)]
    assert verdict([SampledValue(0.8, 0.001, 9), SampledValue(0.9505, 0.001, 9)], targets) == GIVES
    assert verdict([SampledValue(0.9505, 0.001, 9)], targets[1:]) == UNDECIDED


def test_what_is_undecided_could_not_have_given_it_by_chance():
    target = Target("top1", 0.8, 5e-5, 0.9)
    variant = (Variant("crop", "0.9", Stage.IMAGES, str),)
    rows = [
        VariantResult(variant, (SampledValue(0.8, 0.1, 9),), UNDECIDED),
        VariantResult(variant, (SampledValue(0.8, 0.001, 900),), GIVES),
    ]
    near = 1e-4 + 1.96 * 0.001  # of values within ± 2 points
    assert expected_by_chance(rows, [target]) == pytest.approx(near / 0.02, abs=1e-4)


def test_how_many_pairs_chance_may_give_depends_on_the_metrics_that_were_published():
    one, two = Target("top1", 0.8, 5e-5, 0.9), Target("top5", 0.95, 5e-5, 0.96)
    assert most_by_chance(300, [one]) == pytest.approx(300 * 1e-4 / 0.02)
    assert most_by_chance(300, [one, two]) == pytest.approx(300 * (1e-4 / 0.02) ** 2)


def test_a_pair_of_what_is_stored_says_that_preprocessing_was_not_tried():
    target = Target("top1", 0.7, 5e-5, 0.9)
    pair = VariantResult(
        tuple(Variant(axis, "other", Stage.SCORES, str) for axis in ("a", "b")), (SampledValue(0.7),), GIVES
    )
    found = Explanation(
        "net", "set", (target,), 500, combinations=[pair], combinations_tried=9, not_tried={"c": ENOUGH}
    )
    assert found.sentence() == (
        "No single variant gives it. “a: other + b: other” gives the published value. 0 single variants and 9"
        " combinations were tried. Preprocessing was not tried: --thorough tries it."
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [(SampledValue(0.7, 0, 500), "they were run no further"), (SampledValue(0.7), "more --samples would")],
)
def test_what_stays_undecided_after_one_was_run_on_all_is_not_decided_by_more_samples(found, said):
    one, other = (Variant("crop", name, Stage.IMAGES, str) for name in ("0.9", "0.8"))
    rows = [VariantResult((one,), (found,), GIVES), VariantResult((other,), (SampledValue(0.71, 0.01, 24),), UNDECIDED)]
    told = Explanation("net", "set", (Target("top1", 0.7, 5e-5, 0.9),), 500, rows)
    assert f"Undecided: crop: 0.8; {said}" in told.sentence()


def test_what_is_undecided_is_not_said_not_to_give_it():
    variant = Variant("crop", "0.8", Stage.IMAGES, str)
    row = VariantResult((variant,), (SampledValue(0.71, 0.01, 24),), UNDECIDED)
    told = Explanation("net", "set", (Target("top1", 0.7, 5e-5, 0.9),), 500, [row])
    assert told.sentence().startswith("Unexplained: no variant is known to give it; 1 single variants and 0 comb")
    row = replace(row, verdict=EXCLUDED)
    assert "no variant gives it" in replace(told, rows=[row]).sentence()


def test_an_answer_says_how_many_samples_would_decide_what_is_undecided():
    target = Target("top1", 0.7, 5e-5, 0.9)
    pair = VariantResult(
        tuple(Variant(axis, "other", Stage.IMAGES, str) for axis in ("a", "b")), (SampledValue(0.7, 0.1, 9),), UNDECIDED
    )
    found = Explanation("net", "set", (target,), 500, combinations=[pair], combinations_tried=9, enough=12_000)
    assert found.sentence() == (
        "Unexplained: no variant is known to give it; 0 single variants and 9 combinations were tried. Combinations"
        " that are undecided: 1; --samples 12000 would decide most."
    )
    found.enough = 0
    assert found.sentence().endswith("were tried.")
