"""The difference estimator: right on average, its intervals cover, and a larger draw contains a smaller one."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from testbed.extensions.explain import sampling
from testbed.extensions.explain.sampling import Draw, Side, estimate, from_another
from testbed.extensions.explain.table import Table, margins, values

SAMPLES, CLASSES, ROUNDS = 4000, 5, 80


def tables(spread, seed=0, group=1):
    """Logits of a protocol and of another one that moves them, alike for the samples of a group."""
    random = np.random.default_rng(seed)
    groups = np.arange(SAMPLES) // group
    labels = random.integers(0, CLASSES, SAMPLES // group)[groups]
    before = random.normal(0, 2, (SAMPLES // group, CLASSES))[groups]
    before[np.arange(SAMPLES), labels] += 3
    after = before + random.normal(0, spread, (SAMPLES // group, CLASSES))[groups]
    after[:, 0] += spread / 2
    return [Table(logits, labels.reshape(-1, 1), np.arange(SAMPLES)) for logits in (before, after)]


def estimates(monkeypatch, before, after, size):
    stored, other = (Side(values(each), margins(each)) for each in (before, after))
    found = []
    for seed in range(ROUNDS):
        monkeypatch.setattr(sampling, "SEED", seed)
        draw = Draw(stored.margins)
        rows = draw.rows(size)
        found.append(estimate(stored, stored.take(rows), other.take(rows), draw.probabilities(size)))
    return found


@pytest.mark.parametrize("spread", [pytest.param(0.05, marks=pytest.mark.long), 0.3, 2.0])
@pytest.mark.parametrize("size", [60, 400])
def test_intervals_of_95_percent_cover_the_value(monkeypatch, spread, size):
    before, after = tables(spread)
    truth = values(after).value
    found = estimates(monkeypatch, before, after, size)
    covered = np.mean([abs(each.value - truth) <= 1.96 * each.error for each in found])
    assert covered >= 0.92
    mean, error = np.mean([each.value for each in found]), np.std([each.value for each in found]) / np.sqrt(ROUNDS)
    assert abs(mean - truth) <= 3.5 * error + 1e-4
    assert abs(np.mean([each.samples for each in found]) - size) < 0.1 * size


def test_a_small_draw_without_a_right_answer_does_not_say_that_there_are_none(monkeypatch):
    before, _ = tables(0.3)
    answers = np.where(np.random.default_rng(ROUNDS).random(SAMPLES) < 0.01, 0, 1)
    other = (before.right[:, 0] + answers) % CLASSES  # right in one of a hundred cases
    after = Table(before.logits + 20.0 * (np.arange(CLASSES) == other[:, None]), before.right, before.rows)
    truth = values(after).value
    found = estimates(monkeypatch, before, after, 60)
    assert max(abs(each.value - truth) / each.error for each in found) < 3
    assert any(each.value < truth / 2 for each in found)


def test_the_last_samples_that_were_not_run_may_hold_an_answer_that_flips(monkeypatch):
    before, _ = tables(0.3)
    after = before.logits.copy()
    right = np.flatnonzero(margins(before) > 2)
    label = before.right[right[0], 0]
    after[right[0], label] -= 30
    after = Table(after, before.right, before.rows)
    truth = values(after).value
    found = [each for each in estimates(monkeypatch, before, after, 3600) if each.value != truth]
    assert found
    assert max(abs(each.value - truth) / each.error for each in found) < 2


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [60, 400])
@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_intervals_cover_the_value_of_samples_in_groups(monkeypatch, spread, size):
    """The value is that of these very samples, which are drawn one by one: groups of like ones hardly matter."""
    monkeypatch.setattr(__name__ + ".ROUNDS", 25)
    covered = []
    for seed in range(8):
        before, after = tables(spread, seed, group=20)
        truth = values(after).value
        covered += [
            abs(each.value - truth) <= 1.96 * each.error for each in estimates(monkeypatch, before, after, size)
        ]
    print(f"groups of 20, spread {spread}, {size} drawn: {100 * np.mean(covered):.0f} % covered")
    assert np.mean(covered) >= 0.92


def test_a_protocol_is_known_from_one_that_differs_little_and_was_run_on_more_samples(monkeypatch):
    before, base = tables(2.0)
    other = Table(base.logits + np.random.default_rng(9).normal(0, 0.1, base.logits.shape), base.right, base.rows)
    stored = Side(values(before), margins(before))
    truth, direct, found = values(other).value, [], []
    for seed in range(ROUNDS):
        monkeypatch.setattr(sampling, "SEED", seed)
        draw = Draw(stored.margins)
        many, few = draw.rows(1500), draw.rows(60)
        chances, its = draw.probabilities(1500), draw.probabilities(60)
        first, second = (
            Side(values(each), margins(each)) for each in (base.take(base.rows[many]), other.take(other.rows[few]))
        )
        known = estimate(stored, stored.take(many), first, chances)
        found.append(from_another(stored, known, first, second, chances, its))
        direct.append(estimate(stored, stored.take(few), second, its))
    assert np.mean([abs(each.value - truth) <= 1.96 * each.error for each in found]) >= 0.92
    assert np.std([each.value for each in found]) < 0.5 * np.std([each.value for each in direct])
    assert abs(np.mean([each.value for each in found]) - truth) < 0.005


def test_it_needs_fewer_samples_than_an_even_draw(monkeypatch):
    before, after = tables(0.3)
    changed = values(after).correct - values(before).correct
    even = np.std(changed) / np.sqrt(400) * np.sqrt(1 - 400 / SAMPLES)
    found = estimates(monkeypatch, before, after, 400)
    assert np.std([each.value for each in found]) < 0.6 * even


def test_a_draw_for_a_large_gap_is_nearly_even():
    margins = np.random.default_rng(3).exponential(size=5000)
    near, far = (Draw(margins, gap).probabilities(500) for gap in (0.01, 0.6))
    assert far.max() / far.min() < 1.7
    assert near.max() / near.min() > 5


def test_all_samples_give_the_value_itself(monkeypatch):
    before, after = tables(1.0)
    [found, *_] = estimates(monkeypatch, before, after, 10**9)
    assert (found.value, found.error) == (pytest.approx(values(after).value, abs=1e-12), 0)


def test_an_estimate_from_many_samples_takes_little_memory(monkeypatch):
    monkeypatch.setattr(__name__ + ".SAMPLES", 25_000)
    monkeypatch.setattr(__name__ + ".ROUNDS", 1)
    before, after = tables(0.3)
    tracemalloc.start()
    try:
        estimates(monkeypatch, before, after, 20_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300 * 2**20


def test_a_larger_draw_contains_a_smaller_one():
    draw = Draw(np.random.default_rng(3).exponential(size=5000))
    assert set(draw.rows(50)) < set(draw.rows(200)) < set(draw.rows(3000))


def test_a_draw_of_equal_or_no_margins_works():
    assert len(Draw(np.zeros(10)).rows(10)) == 10
    assert len(Draw(np.zeros(0)).rows(10)) == 0
