"""Which variants get the forward passes."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.extensions.explain.axis import Stage, Variant
from testbed.extensions.explain.explanation import EXCLUDED, GIVES, UNDECIDED, Target, verdict
from testbed.extensions.explain.race import Race, default_samples
from testbed.extensions.explain.sampling import SampledValue

SAMPLES = 10_000
TARGET = Target("top1", 0.7, 5e-5, 0.8)


def arm(name):
    return (Variant("axis", name, Stage.IMAGES, str),)


class Passes:
    """Counts the samples that each protocol was run on."""

    def __init__(self):
        self.seen = {}
        self.failed = {}

    @property
    def forwards(self):
        return sum(map(len, self.seen.values()))

    def missing(self, protocol, rows):
        return [row for row in rows.tolist() if row not in self.seen.get(protocol, ())]

    def passes(self, protocol, rows):
        return len(self.missing(protocol, rows))

    def run(self, protocols, rows):
        for each in protocols:
            self.seen.setdefault(each, set()).update(rows.tolist())


class Bench:
    """Variants with known values, estimated as an even draw would, some of them of the first samples only."""

    def __init__(self, values, first=(), spread=0.45):
        self.values, self.first, self.spread = values, dict(first), spread
        self.cell, self.images = range(SAMPLES), Passes()
        self.order = np.random.default_rng(1).permutation(SAMPLES)
        self.noise = dict(zip(values, np.random.default_rng(2).normal(size=len(values)), strict=True))

    def rows(self, arm, size):
        rows = np.sort(self.order[:size])
        return rows[rows < self.count(arm)]

    def count(self, arm):
        return self.first.get(arm, SAMPLES)

    def pixels(self, arm):
        return arm

    def estimated(self, arm, size, outputs=None):
        drawn, of = len(self.rows(arm, size)), self.count(arm)
        error = self.spread * np.sqrt((1 - drawn / of) / max(drawn, 1))
        return (SampledValue(self.values[arm] + error * self.noise[arm], error, drawn),)


@pytest.fixture
def bench():
    return Bench({arm(f"{number}"): 0.7 + 0.03 * number for number in range(-10, 10)})


def test_the_variants_that_may_give_the_value_get_the_passes(bench):
    race = Race(bench, [TARGET])
    race.run(bench.values, 12_000)
    most = max(race.sizes, key=race.sizes.get)
    assert most == arm("0")
    near = sum(len(bench.images.seen[arm(str(number))]) for number in (-1, 0, 1))
    assert near > 0.75 * bench.images.forwards
    assert race.alive([arm("0")])
    assert max(len(bench.images.seen[arm(str(number))]) for number in (-9, -8, 8, 9)) < 100


def test_it_spends_what_it_may_and_no_more(bench):
    for budget in (2000, 5000):
        race = Race(bench, [TARGET])
        race.run(bench.values, budget)
        assert 0.9 * budget <= bench.images.forwards <= budget


def test_it_stops_when_one_that_gives_the_value_was_run_on_all_samples(bench):
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9)
    assert race.known[arm("0")] == (SampledValue(0.7, 0.0, SAMPLES),)
    assert sum(size == SAMPLES for size in race.sizes.values()) == 1
    assert bench.images.forwards < 2 * SAMPLES


def test_one_that_was_run_on_all_samples_for_nothing_gives_way_to_the_next(bench):
    bench.values[arm("0")], bench.noise[arm("0")] = 0.699, 0.1  # the nearest, until all is run
    bench.values[arm("1")], bench.noise[arm("1")] = 0.7, 1.5
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9)
    assert verdict(race.known[arm("0")], [TARGET]) == EXCLUDED
    assert verdict(race.known[arm("1")], [TARGET]) == GIVES


def test_one_that_comes_near_is_dropped_before_it_was_run_on_all_samples():
    near, true = arm("near"), arm("true")
    bench = Bench({near: 0.706, true: 0.7})
    bench.noise = {near: -1.0, true: 2.0}  # at first the near one seems to give it
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9)
    assert verdict(race.known[true], [TARGET]) == GIVES
    assert 0.75 * SAMPLES < len(bench.images.seen[near]) < SAMPLES


def test_it_may_stop_as_soon_as_one_is_sure(bench):
    bench.spread = 0.02
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9, until_sure=True)
    until_sure = bench.images.forwards
    [found] = race.known[arm("0")]
    assert 1.96 * found.error < 0.005
    race.run(bench.values, 10**9)
    assert until_sure < 0.8 * bench.images.forwards


def test_a_variant_of_the_first_samples_costs_as_many_passes():
    few = arm("first 100")
    bench = Bench({few: 0.7, arm("other"): 0.71}, {few: 100})
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9)
    assert race.known[few] == (SampledValue(0.7, 0.0, 100),)
    assert len(bench.images.seen[few]) == 100


def test_a_variant_that_the_network_does_not_take_is_left_out(bench):
    bench.images.failed[arm("0")] = "too small"
    race = Race(bench, [TARGET])
    race.run(bench.values, 5000)
    assert arm("0") not in race.known
    assert race.failed(arm("0")) == "too small"


def test_variants_of_one_protocol_share_what_was_run_of_one_of_them():
    alone, combined = arm("crop"), arm("crop with other labels")
    bench = Bench({alone: 0.7, combined: 0.7})
    bench.pixels = lambda each: alone
    race = Race(bench, [TARGET])
    race.run([alone], 200)
    race.run([combined], 2000)
    ran = bench.images.forwards
    race.refresh([alone])
    assert race.sizes[alone] == race.sizes[combined] > 1000
    assert bench.images.forwards == ran


@pytest.mark.parametrize("noise", [2.1, 2.3, 2.5])
def test_the_likeliest_is_not_left_between_the_intervals_of_95_and_99_percent(noise):
    bench = Bench({arm("likeliest"): 0.7, arm("other"): 0.5})
    bench.noise[arm("likeliest")] = noise
    race = Race(bench, [TARGET])
    race.run(bench.values, 10**9, until_sure=True)
    assert verdict(race.known[arm("likeliest")], [TARGET]) == GIVES


def test_a_variant_can_be_run_until_it_is_excluded():
    doubted = arm("doubted")
    bench = Bench({arm("gives"): 0.7, doubted: 0.75})
    bench.noise[doubted] = -2.0
    race = Race(bench, [TARGET])
    race._draw([doubted], 300)
    assert verdict(race.known[doubted], [TARGET]) == UNDECIDED
    race.decide([doubted], 400)
    assert len(bench.images.seen[doubted]) <= 400
    assert verdict(race.known[doubted], [TARGET]) == UNDECIDED
    race.decide([doubted], 10**9)
    assert verdict(race.known[doubted], [TARGET]) == EXCLUDED
    assert bench.images.forwards < SAMPLES


@pytest.mark.timeout(20)
def test_a_variant_that_fails_while_it_is_decided_is_left():
    doubted = arm("doubted")
    bench = Bench({doubted: 0.75})
    bench.noise[doubted] = -2.0
    race = Race(bench, [TARGET])
    race._draw([doubted], 300)
    bench.images.run = lambda protocols, rows: bench.images.failed.update({doubted: "out of memory"})
    race.decide([doubted], 10**9)
    assert race.sizes[doubted] == 300


@pytest.mark.parametrize(
    ("evaluated", "variants", "expected"),
    [
        (100, 30, 3_000),  # all of a tiny set
        (1_000, 30, 10_000),
        (4_000, 30, 24_000),  # six evaluations of a small one
        (12_000, 30, 50_000),
        (25_000, 30, 50_000),  # two evaluations
        (50_000, 60, 100_000),
    ],
)
def test_the_default_is_two_evaluations_of_a_large_set_and_more_of_a_small_one(evaluated, variants, expected):
    assert default_samples(evaluated, variants) == expected
