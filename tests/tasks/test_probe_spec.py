"""What a linear probe is fitted with: shots, validation split, search, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
from tables import cases

from testbed.errors import DataError, DefinitionError
from testbed.identity.describe import digest
from testbed.tasks.probe.spec import (
    ProbeSpec,
    check_targets,
    default_weight_decay,
    few_shot,
    find_peak,
    split_validation,
    weight_decays,
)

TARGETS = [index * 7 % 5 for index in range(200)]


@pytest.mark.parametrize("k", [1, 3, 40])
def test_shots_are_k_of_each_class(k):
    shots = few_shot(TARGETS, k, seed=3, num_classes=5)
    assert shots == sorted(set(shots))
    assert np.bincount([TARGETS[position] for position in shots]).tolist() == [k] * 5


def test_shots_of_k_are_among_those_of_more():
    chosen = [set(few_shot(TARGETS, k, 0, 5)) for k in (1, 2, 5, 16, 40)]
    assert all(fewer < more for fewer, more in pairwise(chosen))


def test_shots_depend_on_the_seed_and_on_no_other_random_number():
    first = few_shot(TARGETS, 5, 0, 5)
    np.random.seed(7)
    torch.manual_seed(7)
    torch.rand(3)
    assert few_shot(torch.tensor(TARGETS), 5, 0, 5) == few_shot(np.array(TARGETS), 5, 0, 5) == first
    assert few_shot(TARGETS, 5, 1, 5) != first
    # The very numbers, so that stored probes keep their shots under other versions of numpy.
    assert few_shot(TARGETS, 1, 0, 5) == [65, 149, 151, 187, 198]
    assert split_validation(20, 0.2, 0)[1] == [3, 13, 16, 19]


def test_shots_of_shots_are_the_same():
    shots = few_shot(TARGETS, 5, 0, 5)
    assert few_shot([TARGETS[position] for position in shots], 5, 0, 5) == list(range(25))


def test_every_sample_is_as_likely_as_any_other_to_be_a_shot():
    drawn = np.bincount([position for seed in range(400) for position in few_shot([0] * 10, 2, seed, 1)], minlength=10)
    assert drawn.sum() == 800
    assert abs(drawn - 80).max() < 40  # five standard deviations


def test_classes_with_too_few_samples_are_named_with_their_counts():
    with pytest.raises(DataError, match=r"^3 training samples .* class 1 has 2, class 3 has 0; choose a smaller"):
        few_shot([0, 0, 0, 1, 1, 2, 2, 2, 2], 3, 0, 4)
    with pytest.raises(DataError, match=r"class 9 has 1 and 40 more classes have fewer"):
        few_shot(list(range(50)), 2, 0, 50)


@pytest.mark.parametrize("targets", [[0, 5], [-1, 0], [0.0, 1.0], [True, 0], ["0"], [None]])
def test_targets_that_are_no_class_are_refused_with_their_position(targets):
    position = 1 if targets == [0, 5] else 0
    with pytest.raises(DataError, match=rf"0 to 4, but that of sample {position} is"):
        check_targets(targets, 5)
    with pytest.raises(DataError, match="at least 1 class"):
        check_targets([], 0)


@pytest.mark.parametrize(("count", "proportion", "held"), [(10, 0.2, 2), (2, 0.01, 1), (2, 0.99, 1), (1257, 0.1, 126)])
def test_validation_is_its_share_of_the_samples(count, proportion, held):
    train, validation = split_validation(count, proportion, 0)
    assert len(validation) == held
    assert sorted(train + validation) == list(range(count))
    assert (train, validation) == (sorted(train), sorted(validation))


def test_the_validation_split_depends_on_the_seed_alone():
    assert split_validation(100, 0.3, 1) == split_validation(100, 0.3, 1)
    assert split_validation(100, 0.3, 1) != split_validation(100, 0.3, 2)
    # Not the complement of the shots, nor they: drawn apart.
    assert split_validation(100, 0.3, 1)[1] != few_shot([0] * 100, 30, 1, 1)


def test_one_sample_cannot_be_split():
    with pytest.raises(DataError, match="1 training samples cannot be split"):
        split_validation(1, 0.5, 0)


@cases(
    ("values", "message"),
    [
        ({"method": "sgd"}, "adamw or lbfgs, not by 'sgd'"),
        ({"fewshot_k": 0}, "at least 1, not 0; None takes all"),
        ({"fewshot_k": -1}, "at least 1, not -1"),
        ({"fewshot_k": 1.5}, "not 1.5"),
        ({"fewshot_k": True}, "not True"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
        ({"lr": 0}, "learning rate"),
        ({"lr": float("nan")}, "learning rate"),
        ({"lr": "0.1"}, "learning rate"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"val_proportion": 0}, "greater than 0 and less than 1, got 0"),
        ({"val_proportion": 1.0}, "val_proportion"),
        ({"val_proportion": -0.1}, "val_proportion"),
        ({"val_proportion": float("nan")}, "val_proportion"),
    ],
)
def test_values_out_of_range_are_refused(values, message):
    with pytest.raises(DefinitionError, match=message):
        ProbeSpec(**values)


def test_functions_refuse_what_a_spec_refuses():
    with pytest.raises(DefinitionError, match="fewshot_k"):
        few_shot(TARGETS, 0, 0, 5)
    with pytest.raises(DefinitionError, match="val_proportion"):
        split_validation(10, 1, 0)
    with pytest.raises(DefinitionError, match="seed"):
        split_validation(10, 0.5, -1)


def test_a_spec_tells_what_decides_the_probe_and_nothing_else():
    assert digest(ProbeSpec()) == digest(ProbeSpec(normalize=True))
    changed = [{"seed": 1}, {"lr": 0.2}, {"epochs": 11}, {"batch_size": 32}, {"normalize": False}, {"fewshot_k": 5}]
    changed += [{"val_proportion": 0.1}, {"method": "lbfgs"}, {}]
    assert len({digest(ProbeSpec(**each)) for each in changed}) == len(changed)
    assert ProbeSpec(method="lbfgs", lr=0.3, epochs=2, batch_size=8).spec() == ProbeSpec(method="lbfgs").spec()
    assert isinstance(ProbeSpec().spec()["revision"], int)


def test_the_grids_of_both_protocols():
    adamw, lbfgs = weight_decays("adamw"), weight_decays("lbfgs")
    assert len(adamw) == len(lbfgs) == 97
    np.testing.assert_allclose(adamw[::16], np.logspace(-6, 2, 7))
    np.testing.assert_allclose(lbfgs[::16], [1e-6, 1e-4, 1e-2, 1, 1e2, 1e4, 1e6])
    assert default_weight_decay("adamw", True) == default_weight_decay("adamw", False) == 0
    assert default_weight_decay("lbfgs", False) == pytest.approx(1 / 0.316)


def search(curve):
    """CLIP benchmark's search, one training after another, on a curve of accuracies."""

    def find(indices):
        best, highest = 0, 0
        for index in indices:
            tried.add(index)
            if highest < curve[index]:
                best, highest = index, curve[index]
        return best

    tried: set[int] = set()
    peak = find(range(0, 97, 16))
    span = 8
    while span > 0:
        peak = find([max(peak - span, 0), peak, min(peak + span, 96)])
        span //= 2
    return peak, tried


@pytest.mark.parametrize("shape", ["noise", "steps", "hill", "flat", "zero", "rising", "falling"])
def test_the_search_is_clip_benchmarks_and_trains_nothing_twice(shape):
    for seed in range(20):
        x, random = np.arange(97), np.random.default_rng(seed)
        curve = {
            "noise": random.random(97),
            "steps": random.integers(0, 3, 97) / 3,
            "hill": -np.abs(x - random.integers(97)) + 100.0,
            "flat": np.full(97, 0.5),
            "zero": np.zeros(97),
            "rising": x / 97,
            "falling": (96 - x) / 97,
        }[shape].tolist()
        asked: list[int] = []

        def accuracies(indices, curve=curve, asked=asked):
            asked.extend(indices)
            return [curve[index] for index in indices]

        peak, known = find_peak(97, accuracies)
        expected, tried = search(curve)
        assert peak == expected
        assert sorted(asked) == sorted(tried)  # each once
        assert known == {index: curve[index] for index in tried}
        if shape == "hill":
            assert curve[peak] == max(curve)


def test_specs_and_shots_need_no_torch():
    code = "import sys, testbed.tasks.probe.spec as p; p.few_shot([0, 1], 1, 0, 2); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_probes_by_lbfgs_for_two_classes_are_not_those_of_before():
    """Their penalty was half as strong; those for more classes have stayed as they are."""
    by_lbfgs, by_adamw = ProbeSpec(method="lbfgs"), ProbeSpec()
    assert by_lbfgs.spec(2) == by_lbfgs.spec() != by_lbfgs.spec(3) == {**by_lbfgs.spec(2), "revision": 1}
    assert by_adamw.spec(2) == by_adamw.spec(3) == by_adamw.spec()
