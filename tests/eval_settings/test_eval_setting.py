"""Definitions of eval settings: what is refused, which samples are taken, and the seeds of their random numbers."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tables import cases

from testbed.data.perturbation import sample_seed
from testbed.data.source import ImageSource
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from testbed.registry import Catalog
from testbed.tasks.linear_probe import LinearProbeOptions
from testbed.tasks.probe.spec import ProbeSpec
from testbed.tasks.task_base import check_options, options_of


class Named(ImageSource):
    """A source that is listed and never read."""

    def __init__(self, targets):
        self.name = "listed"
        self.targets = list(targets)
        self.ids = [f"{index}.png" for index in range(len(self.targets))]

    def image(self, position):
        raise NotImplementedError

    def digests(self, positions):
        return [str(position) for position in positions]


def setting(**options):
    arguments = {"name": "s", "dataset": StandardDataset(path="/data"), "size": 10, **options}
    return EvalSetting(**arguments)


# Arguments --------------------------------------------------------------------------------------------------------


@cases(
    ("options", "words"),
    [
        ({"size": 0}, ["'s'", "size", "positive integer", "got 0"]),
        ({"size": -3}, ["size", "-3"]),
        ({"size": 2.5}, ["size", "integer", "2.5"]),
        ({"size": "10"}, ["size", "'10'"]),
        ({"dataset": "val"}, ["'s'", "dataset", "StandardDataset", "of type str"]),
        ({"size": 2, "idx_subsample_list": [-1, 1]}, ["idx_subsample_list", "numbers from 0"]),
        ({"size": 2, "idx_subsample_list": []}, ["idx_subsample_list", "numbers from 0"]),
        ({"class_sublist": [3, 3]}, ["class_sublist", "different numbers"]),
        ({"class_sublist": [-1]}, ["class_sublist", "different numbers from 0"]),
        ({"class_sublist": []}, ["class_sublist"]),
        (
            {"metrics_fn": lambda predictions, labels: {}},
            ["metrics_fn", "'logits'", "'targets'", "predictions, labels"],
        ),
        ({"metrics_fn": lambda logits: {}}, ["metrics_fn", "'targets'", "it takes logits"]),
        ({"metrics_fn": 7}, ["metrics_fn", "it takes none"]),
        ({"perturbation_fn_cpu": "blur"}, ["perturbation_fn_cpu", "function of images"]),
        ({"perturbation_fn_gpu": 3}, ["perturbation_fn_gpu", "function of images"]),
        *(({what: lambda: None}, [what]) for what in ("perturbation_fn_cpu", "perturbation_fn_gpu")),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, words):
    with pytest.raises(DefinitionError) as caught:
        setting(**options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_the_arguments_of_imagenet_testbed_are_taken_by_position():
    def cpu(image):
        return image

    def gpu(images, model):
        return images

    def metrics(logits, targets):
        return {}

    def transform(image):
        return image

    dataset = StandardDataset(path="/data")
    made = EvalSetting("s", dataset, 2, cpu, gpu, metrics, {"eps": 1}, [4, 2], [5, 0], "parent", transform)
    assert (made.name, made.dataset, made.size) == ("s", dataset, 2)
    assert (made.perturbation_fn_cpu, made.perturbation_fn_gpu, made.metrics_fn) == (cpu, gpu, metrics)
    assert (made.adversarial_attack, made.class_sublist, made.idx_subsample_list) == ({"eps": 1}, [4, 2], [5, 0])
    assert (made.parent_eval_setting, made.transform) == ("parent", transform)
    assert made.get_dataset_root() == dataset.get_root()


def test_arguments_are_copied_and_become_plain():
    attack = {"eps": 1}
    made = setting(
        size=3, idx_subsample_list=np.array([2, 0, 1]), class_sublist=np.arange(2), adversarial_attack=attack,
        metrics_fn=accuracy_topk,
    )  # fmt: skip
    assert made.metrics_fn is None  # which is the default
    attack["eps"] = 2
    made.samples.positions(Named(range(3))).append(5)
    assert (made.adversarial_attack, made.idx_subsample_list, made.class_sublist) == ({"eps": 1}, [2, 0, 1], [0, 1])
    assert {type(value) for value in made.idx_subsample_list + made.class_sublist} == {int}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"class_names": ["a", "b"]}, 2),
        ({"class_names": lambda: ["a", "b"]}, None),
        ({"class_names": lambda: ["a", "b"], "num_classes": 2}, 2),
        ({"class_names": ["a", "b"], "num_classes": 5}, 5),
    ],
)
def test_number_of_classes_is_known_without_calling_anything(options, expected):
    assert setting(**options).num_classes == expected


def test_whether_anything_perturbs_and_whether_it_needs_the_model():
    assert not setting().perturbation
    assert setting(perturbation_fn_cpu=lambda image: image).perturbation
    plain, with_model = setting(perturbation_fn_gpu=lambda x: x), setting(perturbation_fn_gpu=lambda x, m: x)
    assert plain.perturbation
    assert with_model.perturbation
    assert not plain.perturbation.needs_model
    assert with_model.perturbation.needs_model
    assert not setting().perturbation.needs_model


# Positions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [9, 11, 0])
def test_another_number_of_samples_is_refused(found, tmp_path):
    source = Named(range(found))
    source.root = tmp_path
    with pytest.raises(DataError) as caught:
        setting(size=10).samples.positions(source)
    for word in ("s:", "10 samples are expected", f"{found} were found", "listed", str(tmp_path)):
        assert word in str(caught.value)


def test_a_subsample_keeps_its_own_order():
    made = setting(size=3, idx_subsample_list=[7, 0, 3])
    assert made.samples.positions(Named(range(8))) == [7, 0, 3]
    assert made.samples.positions(Named(range(100))) == [7, 0, 3]


def test_a_subsample_beyond_the_data_is_refused():
    with pytest.raises(DataError, match=r"has the position 7.*listed has 7 samples"):
        setting(size=3, idx_subsample_list=[7, 0, 3]).samples.positions(Named(range(7)))


@pytest.mark.parametrize("limit", [10, 20, 25, 99, 499])
def test_a_limit_spreads_evenly_over_the_classes_of_a_sorted_data_set(limit):
    targets = sorted(list(range(10)) * 50)
    positions = setting(size=500).samples.positions(Named(targets), limit)
    assert len(positions) == limit
    assert positions == sorted(set(positions))
    counts = Counter(targets[position] for position in positions)
    assert set(counts) == set(range(10))
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("limit", [None, 6, 7, 10**6])
def test_a_limit_that_is_no_limit_takes_all_in_order(limit):
    assert list(setting(size=6).samples.positions(Named(range(6)), limit)) == list(range(6))
    made = setting(size=4, idx_subsample_list=[9, 1, 5, 3])
    assert made.samples.positions(Named(range(10)), 2) == [9, 5]


# Seeds ------------------------------------------------------------------------------------------------------------


def test_sample_seed_is_63_bits_of_a_hash_of_key_id_and_seed():
    digest = hashlib.sha256(b"fog\x00a/1.png\x003").digest()
    expected = int.from_bytes(digest[:8], "little") >> 1
    assert sample_seed("fog", "a/1.png", 3) == expected
    assert setting(name="fog").perturbation.sample_seed("a/1.png", 3) == expected
    assert 0 <= expected < 2**63


def test_sample_seed_depends_on_setting_sample_and_seed_alone():
    first = setting(name="fog")
    same = setting(name="fog", size=99, perturbation_fn_gpu=lambda x: x, class_sublist=[1], description="other")
    assert first.perturbation.sample_seed("a", 1) == same.perturbation.sample_seed("a", 1)
    others = [
        setting(name="rain").perturbation.sample_seed("a", 1),
        first.perturbation.sample_seed("b", 1),
        first.perturbation.sample_seed("a", 2),
    ]
    assert len({first.perturbation.sample_seed("a", 1), *others}) == 4


def test_a_child_shares_the_random_numbers_of_its_parent():
    parent, child = setting(name="fog"), setting(name="fog_10percent", parent_eval_setting="fog")
    assert child.perturbation.noise_key == parent.perturbation.noise_key == "fog"
    assert child.perturbation.sample_seed("a", 4) == parent.perturbation.sample_seed("a", 4)


def test_a_task_option_that_the_task_does_not_know_is_a_mistake():
    misspelt = setting(task="retrieval", task_options={"recal_k": [1]})
    with pytest.raises(DefinitionError, match="the task retrieval has no 'recal_k'; it has recall_k"):
        check_options(misspelt)
    with pytest.raises(DefinitionError, match="the task classification has no 'prompt'; it has none"):
        check_options(setting(task_options={"prompt": "x"}))
    with pytest.raises(DefinitionError, match="has no 'recal_k'"):
        Catalog(packages=(), entry_points=False).add_eval_setting(misspelt)


@cases(
    ("task", "given", "told"),
    [
        ("retrieval", {"recall_k": 5}, "the task option 'recall_k' is 5; expected a list, each a whole number"),
        ("retrieval", {"recall_k": [1, "5"]}, "expected a list, each a whole number"),
        ("retrieval", {"recall_k": [0]}, "recall_k is a list of integers larger than 0, not [0]"),
        ("clip_score", {"prefix": 5}, "the task option 'prefix' is 5; expected a text"),
        ("linear_probe", {}, "the task linear_probe needs 'train': a text"),
        ("linear_probe", {"train": "x", "validation": 1}, "'validation' is 1; expected a text or None"),
        ("linear_probe", {"train": "x", "probe": 1}, "'probe' is 1; expected a dictionary with method, fewshot_k"),
        ("linear_probe", {"train": "x", "probe": {"shots": 3}}, "'probe' has no 'shots'; it has method, fewshot_k"),
        ("linear_probe", {"train": "x", "probe": {"epochs": True}}, "'epochs' is True; expected a whole number"),
        ("captioning", {"overlap": {"meteor": 1}}, "'meteor' is 1; expected True or False"),
        ("captioning", {"generation": {"temperature": "hot"}}, "'temperature' is 'hot'; expected a number"),
        ("question_answering", {"prompt": "Which?"}, "'prompt' is 'Which?'; expected a function"),
        ("question_answering", {"prompt": print, "generation": {"tokens": 3}}, "'generation' has no 'tokens'"),
        ("question_answering", {"prompt": print, "rules": "mine"}, "'rules' is 'mine'; known: default, vlmevalkit"),
    ],
)
def test_a_task_option_that_is_no_such_thing_is_a_mistake(task: str, given: dict[str, Any], told: str):
    with pytest.raises(DefinitionError, match=re.escape(told)):
        check_options(setting(task=task, task_options=given))


def test_task_options_are_typed_and_values_stay_as_they_are():
    given = {"train": "x", "probe": {"epochs": 3, "lr": 1}}
    options = options_of(setting(task="linear_probe", task_options=given), LinearProbeOptions)
    assert options == LinearProbeOptions("x", None, ProbeSpec(epochs=3, lr=1))
    assert type(options.probe.lr) is int
