"""Planning: identity, what is done, derived, run, unsupported, impossible."""

from __future__ import annotations

import pytest
import toy
from toy import darker, noisy, toy_catalog, toy_model, toy_setting

from testbed.errors import DataError, WeightsError
from testbed.eval_settings.eval_setting_base import StandardDataset
from testbed.graph.cells import Action
from testbed.graph.options import RunOptions
from testbed.planning.plan import Planner
from testbed.runner.dry_run import make_plan


def cell_of(model, setting, **options):
    plan = Planner(toy_catalog(model, setting), None, RunOptions(**options)).plan([model.name], [setting.name])
    return plan.cells[0]


def fingerprint(model=None, setting=None, **options):
    cell = cell_of(model or toy_model(), setting or toy_setting(), **options)
    assert cell.fingerprint is not None, cell.reason
    return cell.fingerprint


# Identity ---------------------------------------------------------------------------------------------------------


def test_names_and_ways_of_running_are_not_part_of_the_identity():
    same = {
        fingerprint(),
        fingerprint(model=toy_model("another-name")),
        fingerprint(setting=toy_setting("another-name")),
        fingerprint(batch_size=3, data_workers=2, cpu_processes=2, share_passes=False, db_url="elsewhere.db"),
        fingerprint(seed=1),  # nothing here is random
        fingerprint(model=toy_model(eval_batch_size=2, model_type="other")),
    }
    assert len(same) == 1


def test_whatever_decides_the_numbers_is_part_of_the_identity():
    from testbed.models.model_base import StandardNormalization, StandardTransform

    def classify(images, model):
        return 2 * model(images)

    normalization = StandardNormalization([0.5] * 3, [0.5] * 3)
    different = [
        fingerprint(),
        fingerprint(model=toy_model(seed=1)),
        fingerprint(model=toy_model(transform=StandardTransform(18, 16))),
        fingerprint(model=toy_model(transform=StandardTransform(16, 16, interpolation="bicubic"))),
        fingerprint(model=toy_model(normalization=normalization)),
        fingerprint(model=toy_model(classify=classify)),
        fingerprint(setting=toy_setting(count=599)),
        fingerprint(setting=toy_setting(perturbation_fn_gpu=darker)),
        fingerprint(setting=toy_setting(perturbation_fn_gpu=noisy)),
        fingerprint(setting=toy_setting(perturbation_fn_gpu=noisy), seed=1),
        fingerprint(setting=toy_setting("other", perturbation_fn_gpu=noisy)),  # other noise
        fingerprint(setting=toy_setting(perturbation_fn_cpu=lambda image: image)),
        fingerprint(setting=toy_setting(class_sublist=[1, 2])),
        fingerprint(setting=toy_setting(class_sublist=[2, 1])),
        fingerprint(setting=toy_setting(metrics_fn=lambda logits, targets: {})),
        fingerprint(setting=toy_setting(transform=lambda image: image)),
        fingerprint(setting=toy_setting(adversarial_attack={"eps": 1})),
        fingerprint(limit=10),
        fingerprint(dtype="bfloat16"),
        fingerprint(random_weights=True),
        fingerprint(random_weights=True, seed=1),
    ]
    assert len(set(different)) == len(different)


def test_only_what_touches_the_outputs_is_part_of_the_forward_fingerprint():
    base = cell_of(toy_model(), toy_setting())
    for setting in (
        toy_setting(class_sublist=[1, 2]),
        toy_setting(metrics_fn=lambda logits, targets: {}),
        toy_setting(size=2, idx_subsample_list=[1, 2]),
    ):
        other = cell_of(toy_model(), setting)
        assert other.forward == base.forward
        assert other.fingerprint != base.fingerprint
    assert cell_of(toy_model(), toy_setting(perturbation_fn_gpu=darker)).forward != base.forward


def test_a_changed_pixel_or_target_is_another_cell(monkeypatch):
    before = fingerprint()
    original = toy.ToyImages.__init__

    def changed(self, *arguments):
        original(self, *arguments)
        self.pixels[100, 3, 3, 0] ^= 1

    monkeypatch.setattr(toy.ToyImages, "__init__", changed)
    pixel = fingerprint()

    def relabelled(self, *arguments):
        original(self, *arguments)
        self.targets[100] = (self.targets[100] + 1) % 10

    monkeypatch.setattr(toy.ToyImages, "__init__", relabelled)
    assert len({before, pixel, fingerprint()}) == 3


# Actions ----------------------------------------------------------------------------------------------------------


def test_a_dry_run_needs_no_store_and_makes_none(tmp_path):
    url = str(tmp_path / "none.db")
    plan = make_plan(toy_catalog(toy_model(), toy_setting()), RunOptions(db_url=url), ["toy"], ["toy-all"])
    assert plan.counts() == {Action.RUN: 1}
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_fetches_no_weights(tmp_path):
    class Elsewhere:
        def files(self, fetch):
            assert not fetch
            return None

    options = RunOptions(db_url=str(tmp_path / "none.db"))
    plan = make_plan(toy_catalog(toy_model(weights=Elsewhere()), toy_setting()), options, ["toy"], ["toy-all"])
    assert plan.cells[0].action is Action.RUN
    assert "not downloaded yet" in plan.cells[0].reason


def test_neither_weights_nor_data_are_touched_for_what_does_not_fit(work):
    class Forbidden:
        def files(self, fetch):
            raise AssertionError("asked for weights")

    catalog = toy_catalog(toy_model(weights=Forbidden()), toy_setting(num_classes=3))
    plan = Planner(catalog, None, RunOptions()).plan(["toy"], ["toy-all"])
    assert plan.counts() == {Action.UNSUPPORTED: 1}
    assert work["data sets opened"] == 0


def test_weights_that_cannot_be_had_fail_their_model_alone():
    class Missing:
        def files(self, fetch):
            raise WeightsError("get it from https://example.org")

    catalog = toy_catalog(toy_model("lost", weights=Missing()), toy_model("here"), toy_setting())
    plan = Planner(catalog, None, RunOptions()).plan(["lost", "here"], ["toy-all"])
    assert [(cell.model, cell.action) for cell in plan.cells] == [("lost", Action.FAILED), ("here", Action.RUN)]
    assert "https://example.org" in plan.cells[0].reason


def test_missing_data_fail_their_settings_alone(monkeypatch):
    monkeypatch.delenv("TESTBED_DATA", raising=False)
    lost = toy_setting("lost", dataset=StandardDataset(name="nowhere"))
    catalog = toy_catalog(toy_model(), lost, toy_setting())
    plan = Planner(catalog, None, RunOptions()).plan(["toy"], ["lost", "toy-all"])
    assert [cell.action for cell in plan.cells] == [Action.FAILED, Action.RUN]
    assert "--data-root" in plan.cells[0].reason


class Exploding(toy.ToyDataset):
    def open(self):
        raise ZeroDivisionError("oops")


@pytest.mark.parametrize(
    ("dataset", "words"), [(Exploding(), ["ZeroDivisionError: oops"]), (toy.ToyDataset(599), ["600", "599"])]
)
def test_what_is_wrong_with_a_data_set_is_a_reason_before_the_run(dataset, words):
    cell = cell_of(toy_model(), toy_setting(dataset=dataset))
    assert cell.action is Action.FAILED
    assert all(word in cell.reason for word in words)


def test_each_data_set_is_opened_and_each_model_identified_once(work, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))  # in which another test's weights may be remembered
    catalog = toy_catalog(toy_model("a", 1), toy_model("b", 2), *[toy_setting(f"s{index}") for index in range(5)])
    Planner(catalog, None, RunOptions()).plan(["a", "b"], [f"s{index}" for index in range(5)])
    assert work["data sets opened"] == 1
    assert work["networks made"] == 2


def test_unopenable_settings_are_not_opened_again_for_each_model(work, monkeypatch):
    def failing_open(self):
        toy.WORK["tries"] += 1
        raise DataError("nothing here")

    monkeypatch.setattr(toy.ToyDataset, "open", failing_open)
    catalog = toy_catalog(toy_model("a", 1), toy_model("b", 2), toy_setting("s1"), toy_setting("s2"))
    plan = Planner(catalog, None, RunOptions()).plan(["a", "b"], ["s1", "s2"])
    assert plan.counts() == {Action.FAILED: 4}
    assert work["tries"] == 1


def test_the_plan_says_why_a_cell_is_run_again(lab):
    def reason(catalog, **options):
        (cell,) = make_plan(catalog, RunOptions(db_url=lab.url, **options), ["toy"], ["toy-all"]).cells
        assert cell.action is Action.RUN
        return cell.reason

    assert reason(toy_catalog(toy_model(), toy_setting())) == ""
    lab.run(toy_catalog(toy_model(), toy_setting()), limit=100)
    assert reason(toy_catalog(toy_model(), toy_setting())) == "stored for 100 samples"
    assert reason(toy_catalog(toy_model(), toy_setting()), limit=100, override=True) == "--override"
    changed = toy_catalog(toy_model(seed=1), toy_setting())
    assert reason(changed, limit=100) == "stored for another definition: testbed why 'toy' 'toy-all'"
    broken = toy_catalog(toy_model(), toy_setting(metrics_fn=lambda logits, targets: 1 / 0))
    lab.run(broken, limit=100)
    assert reason(broken, limit=100, override=True) == "it failed before"
