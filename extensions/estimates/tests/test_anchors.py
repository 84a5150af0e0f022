"""Anchors: weights and estimates against their formulas, and how they do on drawn populations of families."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from testbed.extensions.estimates.methods.anchors import (
    ASSISTED,
    GP_IRT,
    METHODS,
    P_IRT,
    WEIGHTED,
    Anchors,
    KnownScores,
    blend,
    choose,
    estimates,
    lure_weights,
)
from testbed.extensions.estimates.methods.held_out import BY_CHANCE, IN_DOUBT, HeldOut, errors, hold_out, known_of
from testbed.extensions.estimates.methods.item_response import ABILITIES

BY_DESIGN = ("random", "stratified", "lure")  # unbiased, whatever the new model is like


def population(samples=2000, families=8, each=4, seed=0):
    """Whether models are right, [samples, models], and their families: relatives err on the same samples."""
    rng = np.random.default_rng(seed)
    easiness, a = rng.normal(1.5, 2, samples), np.abs(rng.normal(1, 0.4, samples))
    family = np.repeat(np.arange(families), each)
    ability = rng.normal(0, 1, families)[family] + rng.normal(0, 0.3, len(family))
    shared = rng.normal(0, 0.6, (samples, families))[:, family] + rng.normal(0, 0.4, (samples, len(family)))
    right = rng.random((samples, len(family))) < expit(np.multiply.outer(a, ability) + easiness[:, None] + shared)
    return right.astype(float), family


def test_the_weights_of_active_testing_are_those_of_the_paper():
    likely, n = np.array([0.05, 0.1, 0.02]), 20
    by_hand = [1 + (n - 3) / (n - m) * (1 / ((n - m + 1) * likely[m - 1]) - 1) for m in (1, 2, 3)]
    assert lure_weights(likely, n) == pytest.approx(by_hand)
    uniform = 1 / np.arange(20, 15, -1)
    assert lure_weights(uniform, 20) == pytest.approx(np.ones(5))  # a plain mean
    assert lure_weights(1 / np.arange(4, 0, -1), 4) == pytest.approx(np.ones(4))


@pytest.mark.parametrize("method", BY_DESIGN)
def test_what_is_drawn_is_right_on_average_for_any_model(method):
    right, _ = population(samples=80, families=4)
    known = known_of(right[:, :8], 1.0, None)
    strange = 1 - right[:, 8]  # as none of the others
    rng = np.random.default_rng(0)
    found = np.array(
        [
            [estimates(anchors, strange[anchors.places])[each] for each in (WEIGHTED, ASSISTED)]
            for anchors in (choose(known, 20, method, rng) for _ in range(1500))
        ]
    )
    error = found.std(axis=0) / np.sqrt(len(found))
    apart = found.mean(axis=0) - strange.mean()
    assert abs(apart[0]) < 3.5 * error[0]
    assert abs(apart[1]) < 0.02  # nearly: the ability is estimated from the same samples


@pytest.mark.parametrize("method", METHODS)
def test_a_score_that_is_the_same_everywhere_is_known_exactly(method):
    right, _ = population(samples=200, families=3)
    anchors = choose(known_of(right, 1.0, None), 30, method, np.random.default_rng(0))
    assert len(set(anchors.places.tolist())) == 30
    assert estimates(anchors, np.ones(30))[WEIGHTED] == pytest.approx(1)
    if method != "lure":
        assert anchors.weights.sum() == pytest.approx(1)


def test_strata_are_of_equally_hard_samples():
    scores = np.repeat(np.arange(10) / 10, 7)[:, None] * np.ones(3)
    anchors = choose(KnownScores(scores, 1.0, None), 10, "stratified", np.random.default_rng(0))
    assert sorted(scores[anchors.places, 0]) == pytest.approx(np.arange(10) / 10)


def test_clusters_are_counted_by_their_share():
    scores = np.repeat([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [60, 30, 10], axis=0)
    anchors = choose(KnownScores(scores, 1.0, None), 3, "clusters", np.random.default_rng(0))
    assert sorted(anchors.weights) == pytest.approx([0.1, 0.3, 0.6])
    assert estimates(anchors, scores[anchors.places, 0]) == {WEIGHTED: pytest.approx(0.4)}
    more = choose(KnownScores(scores, 1.0, None), 12, "clusters", np.random.default_rng(0))  # than different samples
    assert estimates(more, scores[more.places, 1]) == {WEIGHTED: pytest.approx(0.7)}


def test_estimates_by_item_responses_follow_their_definitions():
    right, _ = population(samples=300, families=4)
    known = known_of(right[:, :-1], 1.0, None)
    anchors = choose(known, 40, "random", np.random.default_rng(3))
    scores = right[anchors.places, -1]
    found = estimates(anchors, scores)
    chance = known.responses.chance(ABILITIES)
    seen = chance[anchors.places]
    likely = np.prod(np.where(scores[:, None] == 1, seen, 1 - seen), axis=0) * np.exp(-(ABILITIES**2) / 2)
    expected = chance @ (likely / likely.sum())
    rest = np.setdiff1d(np.arange(300), anchors.places)
    assert found[P_IRT] == pytest.approx((scores.sum() + expected[rest].sum()) / 300)
    assert found[GP_IRT] == pytest.approx((found[WEIGHTED] + found[P_IRT]) / 2)
    assert found[ASSISTED] == pytest.approx(expected.mean() + (scores - expected[anchors.places]).mean())


def test_a_blend_has_the_least_squared_error():
    weighted, p_irt, true = np.array([0.2, 0.6]), np.array([0.4, 0.5]), np.array([0.35, 0.53])
    share = blend(weighted, p_irt, true)
    around = [np.square(s * weighted + (1 - s) * p_irt - true).sum() for s in (share - 0.01, share, share + 0.01)]
    assert min(around) == around[1]
    assert blend(p_irt, p_irt, true) == 0.5


def test_errors_are_counted_over_models_and_draws():
    found = errors(np.array([[0.5, 0.7, 0.9], [0.4, 0.6, 0.6]]), np.array([0.5, 0.6, 0.8]), np.arange(3))
    assert found.mean_absolute == pytest.approx((0 + 0.1 + 0.1 + 0.1 + 0 + 0.2) / 6)
    assert found.rank_correlation == pytest.approx((1 + np.sqrt(3) / 2) / 2)
    assert errors(np.ones((2, 3)), np.array([0.1, 0.2, 0.3]), np.arange(3)).rank_correlation is None


def test_the_interval_holds_models_of_new_families_as_often_as_said():
    """Errors that families share; with few families there is a level that they can show, and no more."""
    rng = np.random.default_rng(0)
    for known, each in ((3, 1), (5, 1), (5, 4), (12, 2)):
        held, folds, stated = [], np.repeat(np.arange(known), each), []
        for _ in range(1000):
            of_families = rng.normal(size=(known + 1) * each) * 0.3 + np.repeat(rng.normal(size=known + 1), each)
            found = errors(np.tile(of_families[: known * each], (2, 1)), np.zeros(known * each), folds)
            held.append(abs(of_families[-1]) <= found.quantile)
            stated.append(found.level)
        assert set(stated) == {min(0.9, known / (known + 1))}
        assert np.mean(held) >= stated[0] - 0.02


def test_in_doubt_the_way_that_assumes_least_is_taken():
    folds, true = np.arange(4), np.full(4, 0.5)
    good, bad = np.array([[0.5, 0.5, 0.52, 0.5]]), np.array([[0.51, 0.5, 0.5, 0.5]])
    awful = np.array([[0.9, 0.8, 0.9, 0.85]])
    ways = {("clusters", P_IRT): bad, ("random", WEIGHTED): good, ("stratified", WEIGHTED): awful}
    assert HeldOut(true, folds, ways).best(list(ways)) == ("random", WEIGHTED)
    assert set(IN_DOUBT) >= set(ways)


def test_held_out_models_are_estimated_better_than_by_random_samples():
    right, family = population()
    found = hold_out(right, 1.0, None, family, 60, draws=4)
    best, by_chance = found.best_errors(list(found.estimates)), found.errors(BY_CHANCE)
    assert best.mean_absolute < 0.85 * by_chance.mean_absolute
    assert best.rank_correlation > by_chance.rank_correlation


def test_a_held_out_family_does_not_choose_its_anchors():
    right, family = population(samples=400, families=4)
    first = hold_out(right, 1.0, None, family, 30, draws=2)
    changed = right.copy()
    changed[:, family == 3] = 1 - changed[:, family == 3]
    second = hold_out(changed, 1.0, None, family, 30, draws=2)
    way = ("stratified", WEIGHTED)
    own = family == 3
    assert first.estimates[way][:, own] + second.estimates[way][:, own] == pytest.approx(1)  # the same samples


@pytest.mark.parametrize(("size", "method"), [(0, "random"), (80, "random"), (10, "irt"), (10, "lure")])
def test_what_cannot_be_chosen_is_refused(size, method):
    known = KnownScores(np.random.default_rng(0).normal(size=(80, 3)), None, None)
    with pytest.raises(ValueError, match=r"expected a number of anchors below 80|needs"):
        choose(known, size, method, np.random.default_rng(0))


@pytest.mark.long
@pytest.mark.parametrize("size", [10, 30, 100, 300])
def test_over_many_populations_the_stated_error_is_the_error_of_new_families(size):
    """The error that is stated from some families, against the error on families that were never there."""
    stated, real, by_chance = [], [], []
    for seed in range(20):
        right, family = population(samples=3000, families=14, seed=seed)
        known, new = family < 10, family >= 10
        held = hold_out(right[:, known], 1.0, None, family[known], size, draws=3)
        ways = list(held.estimates)
        way = held.best(ways)
        anchors = choose(known_of(right[:, known], 1.0, None), size, way[0], np.random.default_rng(seed))
        found = [estimates(anchors, right[anchors.places, model])[way[1]] for model in np.flatnonzero(new)]
        stated.append(held.best_errors(ways).mean_absolute)
        real.append(np.abs(found - right[:, new].mean(axis=0)).mean())
        by_chance.append(held.errors(BY_CHANCE).mean_absolute)
    print(
        f"{size}: stated {100 * np.mean(stated):.2f}, on new families {100 * np.mean(real):.2f}, random samples"
        f" {100 * np.mean(by_chance):.2f} points"
    )
    assert np.mean(real) == pytest.approx(np.mean(stated), rel=0.2)
    assert np.mean(real) < np.mean(by_chance)


def test_anchors_without_item_responses_have_one_estimate():
    assert estimates(Anchors(np.array([0]), np.array([1.0])), np.array([0.25])) == {WEIGHTED: 0.25}
