"""The settings of the digits family, as they are registered."""

from __future__ import annotations

import json

from tables import cases

from testbed.corruptions import Corruption
from testbed.corruptions.adversarial import PGD
from testbed.data.sets.digits import CLASS_NAMES, Digits
from testbed.identity.describe import describe
from testbed.registry import registry

CORRUPTIONS = ("gaussian_noise", "impulse_noise", "gaussian_blur", "contrast", "brightness")
CORRUPTED = [f"digits-c.{name}.{severity}" for name in CORRUPTIONS for severity in range(1, 6)]
PLAIN = ["digits", "digits-inverted", "digits-rotated", "digits-unseen-prompt", "digits-even", "digits_10percent"]
PLAIN += ["digits-pgd.linf.eps0.1"]


@cases("name", PLAIN + CORRUPTED)
def test_each_setting_is_registered_and_fits_its_data(name):
    setting = registry.get_eval_setting(name)
    assert setting.name == name
    assert setting.num_classes == 10
    source = setting.dataset.open()
    positions = setting.samples.positions(source)
    assert len(positions) == setting.size
    assert len(setting.prompts.texts(None)) == 10
    json.dumps(describe([setting.dataset.spec(), setting.perturbation_fn_gpu]))


def test_the_collection_demo_lists_them_all():
    registry.load()
    assert set(PLAIN + CORRUPTED) <= set(registry.eval_setting_collections.members("demo"))
    assert registry.eval_setting_collections.members("digits-c") == ["digits-c.*"]


def test_the_prompts_are_those_that_digits_clip_learned_and_one_that_it_did_not():
    from testbed.models.digits import TEMPLATES

    seen = registry.get_eval_setting("digits").prompts.texts(None)
    assert seen[3] == [template.replace("{c}", "three") for template in TEMPLATES]
    assert [prompts[1].rpartition(" ")[2] for prompts in seen] == list(CLASS_NAMES)
    unseen = registry.get_eval_setting("digits-unseen-prompt").prompts.texts(None)
    assert [len(prompts) for prompts in unseen] == [1] * 10
    assert not set(unseen[3]) & set(seen[3])


def test_the_even_digits_have_their_own_samples_and_classes():
    setting = registry.get_eval_setting("digits-even")
    source = setting.dataset.open()
    assert setting.size == len(source) == 270
    assert setting.class_sublist == [0, 2, 4, 6, 8]
    everything = Digits("test")
    true_digit = dict(zip(everything.ids, everything.targets, strict=True))
    assert [setting.class_sublist[target] for target in source.targets] == [true_digit[each] for each in source.ids]


def test_the_subsample_is_a_child_of_digits():
    child = registry.get_eval_setting("digits_10percent")
    assert child.parent_eval_setting == "digits"
    assert child.samples.positions(child.dataset.open()) == list(range(0, 540, 10))
    assert child.dataset.spec() == registry.get_eval_setting("digits").dataset.spec()


@cases("name", CORRUPTIONS)
@cases("severity", [1, 5])
def test_a_corrupted_setting_has_the_corruption_of_its_name(name, severity):
    perturbation = registry.get_eval_setting(f"digits-c.{name}.{severity}").perturbation_fn_gpu
    assert isinstance(perturbation, Corruption)
    assert perturbation.name.rpartition(".")[2] == name
    assert perturbation.severity == severity


def test_the_attack_has_the_parameters_of_its_name():
    setting = registry.get_eval_setting("digits-pgd.linf.eps0.1")
    assert isinstance(setting.perturbation_fn_gpu, PGD)
    assert setting.adversarial_attack == setting.perturbation_fn_gpu.spec()
    assert (setting.adversarial_attack["norm"], setting.adversarial_attack["eps"]) == ("linf", 0.1)
    assert setting.perturbation.needs_model


def test_imagenet_val_has_its_published_size_names_and_templates():
    setting = registry.get_eval_setting("val")
    assert (setting.size, setting.num_classes) == (50_000, 1000)
    prompts = setting.prompts.texts(None)
    assert len(prompts) == 1000
    assert {len(each) for each in prompts} == {80}
    assert prompts[0][0] == "a bad photo of a tench."
    assert prompts[999][0] == "a bad photo of a toilet paper."
