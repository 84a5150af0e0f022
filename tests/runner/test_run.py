"""Runs in this process: what is stored is what a plain loop gives, and no work is done twice."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.stats
import torch
import toy
from toy import ToyDataset, ToyNetwork, darker, noisy, toy_catalog, toy_model, toy_setting

from testbed.corruptions.adversarial import PGD
from testbed.errors import RunError
from testbed.metrics import Metric
from testbed.process.oom import DeviceError
from testbed.scoring.finish import ScoringResult


def plain_loop(setting, network=None, perturb=lambda images: images, positions=None):
    """Logits as ten lines without testbed would compute them."""
    source = setting.dataset.open()
    positions = range(len(source)) if positions is None else positions
    pixels = torch.from_numpy(source.pixels[list(positions)]).permute(0, 3, 1, 2).float() / 255
    with torch.no_grad():
        return (network or ToyNetwork(0))(perturb(pixels)).numpy()


def plain_noisy():
    setting = toy_setting("noisy", perturbation_fn_gpu=noisy)
    seeds = [setting.perturbation.sample_seed(sample_id) for sample_id in setting.dataset.open().ids]
    return plain_loop(setting, perturb=lambda images: noisy(images, seeds))


# What is stored ---------------------------------------------------------------------------------------------------


def test_logits_metrics_and_scores_are_those_of_a_plain_loop_and_how_they_came_about_is_recorded(lab):
    setting = toy_setting()
    report = lab.run(toy_catalog(toy_model(), setting), batch_size=50)
    assert report.ok
    expected = plain_loop(setting)
    np.testing.assert_allclose(lab.logits("toy", "toy-all"), expected, atol=1e-5)
    correct = expected.argmax(1) == np.array(setting.dataset.open().targets)
    top1 = lab.metrics("toy", "toy-all")["top1"]
    assert top1.value == pytest.approx(correct.mean(), abs=1e-12)
    assert top1.stderr == pytest.approx(scipy.stats.sem(correct), rel=1e-9)
    assert top1.n == 600
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
        identity, stored = store.evaluations.identity(evaluation), store.scores.read(evaluation.id)
    assert evaluation.environment["batch_size"] == 50
    assert evaluation.environment["libraries"]["torch"] == torch.__version__.split("+")[0]
    assert identity["model"]["weights"].startswith("state:")
    assert identity["forward"]["decoder"] == "pillow-rgb"
    (scores,) = [values for (_, name), values in stored.items() if name == "top1"]
    assert scores.tolist() == correct.tolist()


@pytest.mark.parametrize("batch_size", [7, 1000])
def test_logits_do_not_depend_on_the_batch_size(lab, batch_size):
    settings = [toy_setting(), toy_setting("noisy", perturbation_fn_gpu=noisy)]
    lab.run(toy_catalog(toy_model(), *settings), batch_size=batch_size)
    np.testing.assert_allclose(lab.logits("toy", "toy-all"), plain_loop(settings[0]), atol=1e-5)
    np.testing.assert_allclose(lab.logits("toy", "noisy"), plain_noisy(), atol=1e-5)


def test_logits_do_not_depend_on_sharing_a_pass(new_lab):
    def catalog():
        settings = [
            toy_setting(),
            toy_setting("dark", perturbation_fn_gpu=darker),
            toy_setting("other", 300, dataset=ToyDataset(300, 1)),
        ]
        return toy_catalog(toy_model("a", 1), toy_model("b", 2), *settings)

    shared, alone = new_lab("shared"), new_lab("alone")
    assert shared.run(catalog()).passes == 2  # two data sets
    assert alone.run(catalog(), share_passes=False).passes == 6
    for model in "ab":
        for setting in ("toy-all", "dark", "other"):
            np.testing.assert_allclose(shared.logits(model, setting), alone.logits(model, setting), atol=1e-5)
            assert shared.metrics(model, setting)["top1"].value == alone.metrics(model, setting)["top1"].value


def test_outputs_are_stored_at_the_precision_they_were_computed_in(lab):
    lab.run(toy_catalog(toy_model(), toy_setting()), dtype="bfloat16")
    with lab.open() as store:
        (evaluation,) = store.evaluations.find()
        assert store.outputs.kinds(evaluation.id) == {"logits": "bfloat16"}
        assert evaluation.dtype == "bfloat16"
        stored = store.outputs.read(evaluation.id, "logits")
    exact = plain_loop(toy_setting())
    assert np.abs(stored - exact).max() > 0
    np.testing.assert_allclose(stored, exact, atol=1.0)
    as_low = torch.from_numpy(np.array(stored)).bfloat16().float().numpy()
    np.testing.assert_array_equal(as_low, stored)


# No work twice ----------------------------------------------------------------------------------------------------


def test_outputs_stored_in_float16_are_half_as_large_and_evaluations_of_their_own(lab, work):
    catalog = toy_catalog(toy_model(), toy_setting())
    whole = lab.run(catalog)
    half = lab.run(catalog, store_dtype="float16")
    assert half.stored_bytes * 2 == whole.stored_bytes
    assert work["images through networks"] == 1200  # neither is taken for the other
    assert lab.run(catalog, store_dtype="float16").passes == 0
    with lab.open() as store:
        full, rounded = sorted(store.evaluations.find(["toy"]), key=lambda each: len(each.dtype))
        assert (full.dtype, rounded.dtype) == ("float32", "float32/float16")
        outputs = store.outputs.read(rounded.id, "logits")
        assert outputs.dtype == np.float16
        np.testing.assert_array_equal(outputs, store.outputs.read(full.id, "logits").astype(np.float16))


def test_each_image_is_read_once_for_all_settings_and_models(lab, work):
    settings = [toy_setting(), toy_setting("dark", perturbation_fn_gpu=darker)]
    settings += [toy_setting(f"noisy-{index}", perturbation_fn_gpu=noisy) for index in range(3)]
    report = lab.run(toy_catalog(toy_model("a", 1), toy_model("b", 2), *settings))
    assert report.passes == 1
    assert work["images read"] == 600
    assert work["images perturbed"] == 600  # once for both models
    assert work["images through networks"] == 600 * 5 * 2
    assert work["data sets opened"] == 1


def test_models_are_loaded_once_for_all_their_settings(lab, work):
    settings = [toy_setting(), toy_setting("dark", perturbation_fn_gpu=darker), toy_setting("few", 100)]
    lab.run(toy_catalog(toy_model(weights="given"), *settings))
    assert work["networks made"] == 1


def test_models_that_do_not_fit_together_get_passes_of_their_own(lab, work, monkeypatch):
    monkeypatch.setattr("testbed.graph.fuse.MAX_PASS_WEIGHTS", 40_000)  # one toy network has 30,720 bytes
    report = lab.run(toy_catalog(toy_model("a", 1), toy_model("b", 2), toy_setting()))
    assert report.passes == 2
    assert work["images read"] == 1200


def test_a_second_run_computes_only_what_is_new(lab, work):
    old = toy_model(weights="given"), toy_setting(), toy_setting("dark", perturbation_fn_gpu=darker)
    lab.run(toy_catalog(*old))
    work.clear()
    report = lab.run(toy_catalog(*old))
    assert [outcome.status for outcome in report.outcomes] == ["stored", "stored"]
    assert work == {"data sets opened": 1}  # to find out whether it is still the same
    part = toy_setting("part", size=3, idx_subsample_list=[500, 2, 70])
    report = lab.run(toy_catalog(*old, part, toy_setting("noisy", perturbation_fn_gpu=noisy)))
    assert sorted(outcome.status for outcome in report.outcomes) == ["complete", "derived", "stored", "stored"]
    assert work["images through networks"] == work["images read"] == 600


def test_override_computes_all_samples_again_and_keeps_the_old_evaluation(lab, work):
    catalog = toy_catalog(toy_model(), toy_setting())
    lab.run(catalog, limit=300)
    first = lab.run(catalog).outcomes[0].evaluation_id
    assert work["images through networks"] == 600
    second = lab.run(catalog, override=True).outcomes[0].evaluation_id
    assert work["images through networks"] == 1200
    with lab.open() as store:
        assert second in [each.id for each in store.evaluations.find()]
        assert [each.id for each in store.evaluations.find(hidden=True)] == [first]


# Derived cells ----------------------------------------------------------------------------------------------------


def children():
    """Settings that are functions of toy-all's outputs."""
    return [
        toy_setting("tenth", size=60, idx_subsample_list=range(0, 600, 10), parent_eval_setting="toy-all"),
        toy_setting("shuffled", size=3, idx_subsample_list=[500, 2, 70]),
        toy_setting("some-classes", class_sublist=[7, 3, 5], metrics_fn=mapped_accuracy),
        toy_setting("other-metric", metrics_fn=lambda logits, targets: {"mean": logits.mean()}),
    ]


def mapped_accuracy(logits, targets):
    place = {7: 0, 3: 1, 5: 2}
    kept = [index for index, target in enumerate(targets.tolist()) if target in place]
    wanted = torch.tensor([place[int(targets[index])] for index in kept])
    return {"top1": (logits[kept].argmax(1) == wanted).float().mean().item()}


def test_children_are_derived_and_equal_what_running_them_gives(new_lab, work):
    derived, ran = new_lab("derived"), new_lab("ran")
    report = derived.run(toy_catalog(toy_model(), toy_setting(), *children()))
    assert sorted(outcome.status for outcome in report.outcomes) == ["complete"] + ["derived"] * 4
    assert work["images through networks"] == work["images read"] == 600  # one pass, over the parent
    for child in children():
        ran.run(toy_catalog(toy_model(), child))  # one at a time, so that none is derived from another
        np.testing.assert_allclose(derived.logits("toy", child.name), ran.logits("toy", child.name), atol=1e-5)
        found, metrics = ([*lab.metrics("toy", child.name).values()] for lab in (derived, ran))
        assert [(each.metric, each.slice, each.n) for each in found] == [
            (each.metric, each.slice, each.n) for each in metrics
        ]
        assert [each.value for each in found] == pytest.approx([each.value for each in metrics], rel=1e-5)


def test_a_child_of_a_random_perturbation_is_derived_with_the_same_noise(new_lab):
    parent = toy_setting("noisy", perturbation_fn_gpu=noisy)
    child = toy_setting(
        "noisy-tenth",
        size=60,
        idx_subsample_list=range(0, 600, 10),
        parent_eval_setting="noisy",
        perturbation_fn_gpu=noisy,
    )
    both, alone = new_lab("both"), new_lab("alone")
    assert {each.status for each in both.run(toy_catalog(toy_model(), parent, child)).outcomes} == {
        "complete",
        "derived",
    }
    assert alone.run(toy_catalog(toy_model(), child)).outcomes[0].status == "complete"
    np.testing.assert_allclose(both.logits("toy", "noisy-tenth"), alone.logits("toy", "noisy-tenth"), atol=1e-5)


def test_two_names_of_one_model_are_run_once(lab, work):
    report = lab.run(toy_catalog(toy_model("first"), toy_model("second"), toy_setting()))
    assert sorted(outcome.status for outcome in report.outcomes) == ["complete", "derived"]
    assert work["images through networks"] == 600
    np.testing.assert_array_equal(lab.logits("first", "toy-all"), lab.logits("second", "toy-all"))


def test_a_limited_run_is_a_subset_of_a_full_one_and_does_not_replace_it(lab, work):
    catalog = toy_catalog(toy_model(), toy_setting())
    full = lab.run(catalog).outcomes[0]
    report = lab.run(catalog, limit=10)
    assert report.outcomes[0].status == "derived"
    with lab.open() as store:
        assert {each.evaluation_id for each in store.results.find()} == {full.evaluation_id}
        limited = store.evaluations.get(report.outcomes[0].evaluation_id)
        assert (limited.size, limited.sample_limit) == (10, 10)
        ids = [sample.id for sample in store.datasets.get(limited.dataset_id).samples]
    assert ids == [f"toy/{index:04d}" for index in range(0, 600, 60)]


# What goes wrong --------------------------------------------------------------------------------------------------


def test_a_batch_that_does_not_fit_is_halved(lab):
    class Hungry(ToyNetwork):
        def forward(self, images):
            if len(images) > 10:
                raise torch.OutOfMemoryError("no room")
            return super().forward(images)

    catalog = toy_catalog(toy_model(classifier_loader=lambda: Hungry(0)), toy_setting())
    report = lab.run(catalog)
    assert report.ok
    np.testing.assert_allclose(lab.logits("toy", "toy-all"), plain_loop(toy_setting()), atol=1e-5)
    halvings = [note for note in lab.progress.notes if "does not fit" in note]
    assert len(halvings) == 3  # 64 → 32 → 16 → 8, and then never again


def failing(images, model):
    raise ZeroDivisionError("by design")


def wrong_shape(images):
    return images[:, :1]


def too_much(images):
    raise torch.OutOfMemoryError("no room")


def test_settings_that_fail_fail_alone(lab):
    functions = {"design": failing, "returned": wrong_shape, "room": too_much}
    bad = [toy_setting(reason, perturbation_fn_gpu=function) for reason, function in functions.items()]
    assert [each.setting for each in lab.run(toy_catalog(toy_model(), toy_setting(), *bad)).of("complete")] == [
        "toy-all"
    ]
    with lab.open() as store:
        errors = {each.eval_setting: each.error for each in store.evaluations.find() if each.status == "failed"}
    assert errors.keys() == functions.keys()
    assert all(reason in error for reason, error in errors.items())


def test_a_failing_model_fails_alone(lab):
    def fail(*given):
        raise RuntimeError("the file is gone" if not given else "cannot do that")

    catalog = toy_catalog(
        toy_model("good"),
        toy_model("no-weights", classifier_loader=fail, weights="given"),
        toy_model("bad-transform", 1, transform=lambda image: fail(image)),
        toy_model("odd", classify=lambda images, model: model(images)[:, 0]),
        toy_setting(),
    )
    report = lab.run(catalog)
    (complete,) = report.of("complete")
    assert complete.model == "good"
    reasons = {each.model: each.reason for each in report.of("failed")}
    assert "the file is gone" in reasons["no-weights"]
    assert "cannot do that" in reasons["bad-transform"]
    assert "logits of shape (64, classes)" in reasons["odd"]


class PanicError(BaseException):
    """As libraries written in Rust raise it."""


def test_code_that_would_end_the_process_fails_what_it_belongs_to(lab):
    def end(*_):
        sys.exit("download it first")

    def panic(*_):
        raise PanicError("download it first")

    class Ending(ToyNetwork):
        forward = panic

    catalog = toy_catalog(
        toy_model("good"),
        toy_model("loaded", 1, classifier_loader=end),
        toy_model("worker", 2, classifier_loader=panic, weights="given"),
        toy_model("forward", 3, classifier_loader=lambda: Ending(3)),
        toy_model("transform", 4, transform=end),
        toy_setting(),
        toy_setting("gpu", perturbation_fn_gpu=lambda images: end()),
        toy_setting("cpu", perturbation_fn_cpu=panic),
        toy_setting("metric", metrics_fn=lambda logits, targets: end()),
    )
    report = lab.run(catalog)
    assert [(each.model, each.setting) for each in report.outcomes if each.status != "failed"] == [("good", "toy-all")]
    failed = report.of("failed")
    said = {f"{name}: download it first" for name in ("SystemExit", "PanicError")}
    assert ({each.reason.split("failed: ")[-1] for each in failed}, len(failed)) == (said, 19)


def test_an_unreadable_sample_counts_as_wrong_and_is_recorded(new_lab):
    whole, hurt = new_lab("whole"), new_lab("hurt")
    whole.run(toy_catalog(toy_model(), toy_setting()))
    hurt.run(toy_catalog(toy_model(), toy_setting(broken=[3, 599])))
    expected = whole.logits("toy", "toy-all").copy()
    expected[[3, 599]] = np.nan
    np.testing.assert_allclose(hurt.logits("toy", "toy-all"), expected, atol=1e-5)
    with hurt.open() as store:
        (evaluation,) = store.evaluations.find()
        assert store.outputs.errors(evaluation.id) == {3: "toy/0003 is broken", 599: "toy/0599 is broken"}
    targets = np.array(toy.ToyDataset().open().targets)
    correct = whole.logits("toy", "toy-all").argmax(1) == targets
    correct[[3, 599]] = False
    assert hurt.metrics("toy", "toy-all")["top1"].value == pytest.approx(correct.mean())
    assert hurt.metrics("toy", "toy-all")["top1"].n == 600


def test_a_whole_chunk_of_unreadable_samples_is_no_gap(lab):
    report = lab.run(toy_catalog(toy_model(), toy_setting(broken=range(256, 512))))
    assert report.ok
    assert np.isnan(lab.logits("toy", "toy-all")[256:512]).all()


def test_when_no_sample_can_be_read_the_cell_has_failed(lab):
    report = lab.run(toy_catalog(toy_model(), toy_setting(count=20, broken=range(20))))
    assert report.outcomes[0].status == "failed"
    assert "none of the 20 samples" in report.outcomes[0].reason


def test_strict_takes_no_outputs_that_lack_a_sample(lab):
    catalog = toy_catalog(
        toy_model(),
        toy_setting(broken=[3]),
        toy_setting("same", broken=[3], parent_eval_setting="toy-all"),
        toy_setting("tenth", size=60, idx_subsample_list=range(0, 600, 10), parent_eval_setting="toy-all"),
        toy_setting("half", size=300, idx_subsample_list=range(0, 600, 2), parent_eval_setting="toy-all"),
    )
    lab.run(catalog, settings=["toy-all"])
    with pytest.raises(RunError, match="toy/0003 is broken"):
        lab.run(catalog, settings=["same"], strict=True)
    assert lab.run(catalog, settings=["same", "half"]).of("derived")
    (refused,) = lab.run(catalog, settings=["same"], strict=True).of("failed")
    assert "1 sample of the stored evaluation could not be read" in refused.reason
    assert lab.run(catalog, settings=["half"], strict=True).of("stored")  # the sample is not among its own
    assert lab.run(catalog, settings=["tenth"], strict=True).of("complete")  # nor here, but its outputs are not taken


def test_a_failing_metric_keeps_the_outputs_for_a_repaired_one(lab, work):
    def faulty(logits, targets):
        raise KeyError("typo")

    def repaired(logits, targets):
        return {"first": logits[0, 0].item()}

    report = lab.run(toy_catalog(toy_model(), toy_setting("own", metrics_fn=faulty)))
    assert report.outcomes[0].status == "failed"
    assert "typo" in report.outcomes[0].reason
    work.clear()
    report = lab.run(toy_catalog(toy_model(), toy_setting("own", metrics_fn=repaired)))
    assert report.outcomes[0].status == "derived"
    assert work["images through networks"] == 0
    assert lab.metrics("toy", "own")["first"].value == pytest.approx(plain_loop(toy_setting())[0, 0], abs=1e-5)


def test_a_metric_that_failed_for_a_passing_reason_is_scored_again(lab, work, tmp_path):
    table = tmp_path / "table"

    def from_table(logits, targets):
        return {"rows": len(table.read_text())}

    catalog = toy_catalog(toy_model(), toy_setting("own", metrics_fn=from_table))
    assert lab.run(catalog).outcomes[0].status == "failed"
    table.write_text("abc")
    work.clear()
    assert lab.run(catalog).outcomes[0].status == "complete"
    assert work["images through networks"] == 0
    assert lab.metrics("toy", "own")["rows"].value == 3


def test_what_failed_is_tried_again(lab, tmp_path):
    marker = tmp_path / "repaired"

    def sometimes(images):
        if not marker.exists():
            raise RuntimeError("not yet")
        return images

    catalog = toy_catalog(toy_model(), toy_setting("moody", perturbation_fn_gpu=sometimes))
    assert lab.run(catalog).outcomes[0].status == "failed"
    marker.touch()
    assert lab.run(catalog).outcomes[0].status == "complete"
    with lab.open() as store:
        assert [each.status for each in store.evaluations.find()] == ["complete"]


# What settings and models may ask for -----------------------------------------------------------------------------


def test_cpu_perturbations_run_on_the_transformed_image_with_numbers_of_their_sample(lab):
    def perturb(image):
        return (image + 0.1 * torch.rand(image.shape) + float(np.random.rand())).clamp(0, 1)

    setting = toy_setting("cpu", perturbation_fn_cpu=perturb)
    lab.run(toy_catalog(toy_model(), toy_setting(), setting), batch_size=7)
    source = setting.dataset.open()
    image = torch.from_numpy(source.pixels[5]).permute(2, 0, 1).float() / 255
    from testbed.data.reader import seed_everything

    seed_everything(setting.perturbation.sample_seed(source.ids[5]))
    with torch.no_grad():
        expected = ToyNetwork(0)(perturb(image)[None]).numpy()[0]
    np.testing.assert_allclose(lab.logits("toy", "cpu")[5], expected, atol=1e-5)


def test_a_setting_transform_runs_before_the_models(lab):
    setting = toy_setting("flipped", transform=lambda image: image.transpose(0))  # FLIP_LEFT_RIGHT
    lab.run(toy_catalog(toy_model(), setting))
    expected = plain_loop(setting, perturb=lambda images: images.flip(3))
    np.testing.assert_allclose(lab.logits("toy", "flipped"), expected, atol=1e-5)


def test_classify_gets_normalized_images_sublist_and_attack(lab):
    seen = []

    def classify(images, model, class_sublist, adversarial_attack):
        seen.append((class_sublist, adversarial_attack, len(images)))
        return model(images)[:, class_sublist]

    model = toy_model(classify=classify, eval_batch_size=64)
    attacked = toy_setting(
        "attacked",
        class_sublist=[4, 2],
        adversarial_attack={"eps": 1},
        perturbation_fn_gpu=failing,  # left to classify, so never called
        metrics_fn=lambda logits, targets: {"classes": logits.shape[1]},
    )
    assert lab.run(toy_catalog(model, attacked)).ok
    assert seen[0] == ([4, 2], {"eps": 1}, 8)  # an eighth of the batch
    assert lab.logits("toy", "attacked").shape == (600, 2)
    assert lab.metrics("toy", "attacked")["classes"].value == 2


def test_an_attack_lowers_accuracy_and_does_not_depend_on_the_batch(new_lab):
    attack = PGD("linf", eps=0.02, step_size=0.01, steps=3)
    setting = toy_setting("attack", 64, perturbation_fn_gpu=attack, adversarial_attack=attack.spec())
    labels = torch.from_numpy(plain_loop(setting).argmax(1))
    clean = toy_setting("clean", 64, metrics_fn=lambda logits, targets: {"kept": _kept(logits, labels)})
    setting.metrics_fn = clean.metrics_fn
    small, large = new_lab("small"), new_lab("large")
    small.run(toy_catalog(toy_model(), setting, clean), batch_size=8)
    large.run(toy_catalog(toy_model(), setting, clean), batch_size=512)
    assert small.metrics("toy", "clean")["kept"].value == 1
    assert small.metrics("toy", "attack")["kept"].value < 0.5
    np.testing.assert_allclose(small.logits("toy", "attack"), large.logits("toy", "attack"), atol=1e-4)


def _kept(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


def test_own_metrics_keep_their_units_and_slices(lab):
    def metrics(logits, targets, image_paths, py_model):
        assert image_paths[0] == "toy/0000"
        assert py_model.name == "toy"
        return {
            "plain": 3,
            "with unit": (2.5, "bits"),
            "full": Metric("full", 0.25, 4, 0.1, slice="class 1"),
        }

    lab.run(toy_catalog(toy_model(), toy_setting("own", metrics_fn=metrics)))
    found = lab.metrics("toy", "own")
    assert (found["plain"].value, found["plain"].unit, found["plain"].n) == (3, "", 600)
    assert (found["with unit"].value, found["with unit"].unit) == (2.5, "bits")
    assert (found["full"].slice, found["full"].n, found["full"].stderr) == ("class 1", 4, 0.1)


def test_random_weights_are_marked_and_stand_behind_real_ones(lab):
    catalog = toy_catalog(toy_model(), toy_setting())
    random = lab.run(catalog, random_weights=True).outcomes[0]
    assert lab.metrics("toy", "toy-all")["top1"].random_weights is True
    real = lab.run(catalog).outcomes[0]
    assert random.evaluation_id != real.evaluation_id
    assert lab.metrics("toy", "toy-all")["top1"].evaluation_id == real.evaluation_id


def test_unsupported_cells_say_why_and_are_rows(lab):
    catalog = toy_catalog(
        toy_model(differentiable=False),
        toy_setting("attack", perturbation_fn_gpu=failing, adversarial_attack={"eps": 1}),
        toy_setting("more-classes", num_classes=11),
        toy_setting(),
    )
    report = lab.run(catalog)
    assert {each.setting: each.status for each in report.outcomes} == {
        "attack": "unsupported",
        "more-classes": "unsupported",
        "toy-all": "complete",
    }
    assert report.ok  # nothing went wrong
    assert not lab.run(catalog, settings=["attack", "more-classes"]).ok  # nothing has a result
    with lab.open() as store:
        rows = {each.eval_setting: (each.status, each.error) for each in store.evaluations.find()}
    assert rows["attack"][0] == "unsupported"
    assert "gradients" in rows["attack"][1]
    assert "11 classes" in rows["more-classes"][1]


# What users' functions may do -------------------------------------------------------------------------------------


def darker_in_place(images):
    return images.mul_(0.5)


class InPlace(ToyNetwork):
    def forward(self, images):
        return super().forward(images.mul_(2).sub_(1))


def test_functions_that_work_in_place_do_not_change_what_others_see(lab):
    models = toy_model("a", 1), toy_model("b", classifier_loader=lambda: InPlace(2)), toy_model("c", 3)
    settings = toy_setting("dark", perturbation_fn_gpu=darker_in_place), toy_setting("plain")
    assert lab.run(toy_catalog(*models, *settings)).passes == 1
    for name, network in (("a", ToyNetwork(1)), ("b", InPlace(2)), ("c", ToyNetwork(3))):
        for setting, factor in (("dark", 0.5), ("plain", 1)):
            expected = plain_loop(settings[0], network, lambda images, factor=factor: images * factor)
            np.testing.assert_allclose(lab.logits(name, setting), expected, atol=1e-5)


def drawing(images, model):
    return model(images + 0.1 * torch.randn_like(images))


def test_a_classify_that_draws_gives_the_same_numbers_in_every_run_and_others_for_another_seed(new_lab):
    def logits(name, settings=(), **given):
        lab = new_lab(name)
        lab.run(toy_catalog(toy_model(classify=drawing), toy_setting(), *settings), **given)
        with lab.open() as store:
            (evaluation,) = store.evaluations.find(["toy"], ["toy-all"])
        return lab.logits("toy", "toy-all"), evaluation.fingerprint

    once, again, beside, other = (
        logits("once"),
        logits("again"),
        logits("beside", [toy_setting("dark", perturbation_fn_gpu=darker)]),
        logits("other", seed=1),
    )
    np.testing.assert_array_equal(once[0], again[0])
    np.testing.assert_array_equal(once[0], beside[0])
    assert once[1] == again[1] != other[1]
    assert (once[0] != other[0]).any()


class Fragile(ToyDataset):
    """Images some of which cannot be read until the folder is there again; their content is known from before."""

    away = True

    def open(self):
        images = super().open()
        images.broken = set(range(600)) if Fragile.away == "all" else {3, 300} if Fragile.away else set()
        return images


@pytest.mark.parametrize("away", ["all", "some"])
def test_samples_that_could_not_be_read_are_read_again_when_the_cell_is(lab, away, monkeypatch):
    monkeypatch.setattr(Fragile, "away", away)
    if away == "some":  # interrupted before it was complete: here by a metric that fails
        stop = lambda *_: ScoringResult(reason="stopped")  # noqa: E731
        monkeypatch.setattr("testbed.execution.state.score", stop)
    catalog = toy_catalog(toy_model(), toy_setting(dataset=Fragile()))
    assert [each.status for each in lab.run(catalog).outcomes] == ["failed"]
    monkeypatch.undo()
    monkeypatch.setattr(Fragile, "away", False)
    assert lab.run(catalog).ok
    np.testing.assert_allclose(lab.logits("toy", "toy-all"), plain_loop(toy_setting()), atol=1e-5)
    with lab.open() as store:
        assert store.outputs.unreadable([1]) == {}


def test_a_device_that_answers_nothing_but_errors_ends_the_worker_and_fails_one_cell_only(lab):
    def fails(images):
        raise RuntimeError("CUDA error: device-side assert triggered")

    settings = toy_setting("bad", perturbation_fn_gpu=fails), toy_setting("good")
    with pytest.raises(DeviceError):
        lab.run(toy_catalog(toy_model(), *settings))
    with lab.open() as store:
        statuses = {each.eval_setting: each.status for each in store.evaluations.find()}
    assert statuses == {"bad": "failed", "good": "running"}  # which another worker would go on with


def test_a_setting_whose_metrics_fail_leaves_its_outputs_to_others(lab, work):
    groups = toy_setting("groups", class_groups=[list(range(5)), list(range(5, 10))])
    report = lab.run(toy_catalog(toy_model(), toy_setting(), groups))
    assert {each.setting: each.status for each in report.outcomes} == {"groups": "failed", "toy-all": "derived"}
    assert work["images through networks"] == 600
    assert lab.run(toy_catalog(toy_model(), toy_setting())).outcomes[0].status == "stored"


# Samples that other evaluations have -------------------------------------------------------------------------------


def test_a_growing_limit_computes_each_sample_once(lab, work):
    catalog = toy_catalog(toy_model(), toy_setting(), toy_setting("noisy", perturbation_fn_gpu=noisy))
    for limit in (7, 300, None):
        report = lab.run(catalog, limit=limit)
        assert report.ok
    seen = {index * 600 // limit for limit in (7, 300) for index in range(limit)}
    assert len(seen) > 300  # they are not all among each other
    assert work["images through networks"] == 2 * 600
    assert work["images read"] == 600  # the two settings share their passes
    assert report.reused == 2 * len(seen)
    np.testing.assert_allclose(lab.logits_of_all("toy", "toy-all"), plain_loop(toy_setting()), atol=1e-5)
    np.testing.assert_allclose(lab.logits_of_all("toy", "noisy"), plain_noisy(), atol=1e-5)


def test_a_superset_and_sets_that_overlap_compute_what_is_lacking(lab, work):
    first = toy_setting("first", size=400, idx_subsample_list=range(400))
    last = toy_setting("last", size=400, idx_subsample_list=range(200, 600))
    everything = toy_setting()
    lab.run(toy_catalog(toy_model(), first))
    assert work["images through networks"] == 400
    lab.run(toy_catalog(toy_model(), last))
    assert work["images through networks"] == 600
    assert lab.run(toy_catalog(toy_model(), everything)).outcomes[0].status == "complete"
    assert work["images through networks"] == 600
    np.testing.assert_allclose(lab.logits("toy", "toy-all"), plain_loop(everything), atol=1e-5)
    np.testing.assert_array_equal(lab.logits("toy", "last"), lab.logits("toy", "toy-all")[200:])


def test_a_sample_that_could_not_be_read_is_read_again_in_another_set(lab, work):
    part = toy_setting("part", size=300, idx_subsample_list=range(300), broken=[5])
    lab.run(toy_catalog(toy_model(), part))
    work.clear()
    lab.run(toy_catalog(toy_model(), toy_setting(broken=[5])))
    assert work["images read"] == 301
    assert np.isnan(lab.logits("toy", "toy-all")[5]).all()
    with lab.open() as store:
        (whole,) = store.evaluations.find(["toy"], ["toy-all"])
        assert list(store.outputs.errors(whole.id)) == [5]


def test_what_depends_on_the_batch_is_not_put_together_from_several_runs(lab, work):
    def drawn(images):
        return images + 0.1 * torch.rand(())

    catalog = toy_catalog(toy_model(), toy_setting(perturbation_fn_gpu=drawn))
    lab.run(catalog, limit=300)
    assert lab.run(catalog).reused == 0
    assert work["images through networks"] == 900


def test_a_network_that_changed_takes_nothing_of_what_it_gave_before(lab, work):
    before = toy_catalog(toy_model(weights="promised"), toy_setting())
    lab.run(before, limit=300)
    other = toy_model(weights="promised", classifier_loader=lambda: ToyNetwork(0 + 1))
    lab.run(toy_catalog(other, toy_setting()))
    np.testing.assert_allclose(lab.logits_of_all("toy", "toy-all"), plain_loop(toy_setting(), ToyNetwork(1)), atol=1e-5)


def test_reading_that_fails_ends_a_cell_that_takes_stored_samples(lab, monkeypatch):
    def broken(items):
        raise RuntimeError("no such luck")

    lab.run(toy_catalog(toy_model(), toy_setting("part", size=256, idx_subsample_list=range(256))))
    monkeypatch.setattr("testbed.workers.kernels.images.collate", broken)
    (failed,) = lab.run(toy_catalog(toy_model(), toy_setting())).outcomes
    assert (failed.status, failed.reason) == ("failed", "reading failed: RuntimeError: no such luck")
