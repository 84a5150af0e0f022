"""Scoring stored logits: top-1 and top-5, restriction to classes, unreadable samples, metrics of one's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, recall_score, top_k_accuracy_score

from testbed.entities import Metric, SampleInfo, Score
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from testbed.graph.values import Values
from testbed.models.model_base import Model, StandardTransform
from testbed.tasks.classification import task, with_wrong_rows
from testbed.tasks.parts.logits import restrict


def setting(**options):
    return EvalSetting(**{"name": "shift", "dataset": StandardDataset(path="/data"), "size": 1, **options})


def outputs(logits, targets, **options):
    samples = [SampleInfo(f"{index}.png", str(index), target) for index, target in enumerate(targets)]
    return Values(np.asarray(logits), samples, **options)


def score(logits, targets, made=None, model=None, **options):
    """Metrics by name, and scores by name."""
    scores, metrics = task.score(outputs(logits, targets, **options), made or setting(), model)
    overall = {each.name: each for each in metrics if each.slice == "overall"}
    return overall, {each.name: each.values for each in scores}


def random_case(n=200, classes=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, classes)).astype(np.float32), rng.integers(classes, size=n).tolist()


# The usual metrics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_top_1_and_top_5_are_scikit_learns(dtype):
    logits, targets = random_case()
    logits = logits.astype(dtype)
    metrics, scores = score(logits, targets)
    assert list(metrics) == ["top1", "top5", "nll", "brier", "ece", "mean_per_class_recall", "macro_f1"]
    assert metrics["top1"].value == pytest.approx(accuracy_score(targets, logits.argmax(axis=1)), abs=1e-12)
    expected = top_k_accuracy_score(targets, logits.astype(np.float64), k=5, labels=range(12))
    assert metrics["top5"].value == pytest.approx(expected, abs=1e-12)
    for name in ("top1", "top5"):
        metric = metrics[name]
        assert (metric.n, metric.unit, metric.slice) == (200, "fraction", "overall")
        assert metric.stderr == pytest.approx(scipy.stats.sem(scores[name].astype(float)), rel=1e-12)
        assert metric.value == pytest.approx(scores[name].mean(), abs=1e-12)
    np.testing.assert_array_equal(scores["top1"], logits.argmax(axis=1) == np.array(targets))


def test_hand_case_of_clip_benchmark():
    logits = np.array([[3, 2, 1, 0, -1], [0, 1, 2, 3, 4], [1, 5, 2, 3, 4], [2, 1, 0, 5, 4]], dtype=np.float32)
    metrics, _ = score(logits, [0, 0, 2, 3])
    assert (metrics["top1"].value, metrics["top5"].value) == (0.5, 1.0)
    assert metrics["mean_per_class_recall"].value == pytest.approx(0.5)  # 0.3 if classes without samples counted


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_top_5_is_not_defined_for_fewer_than_five_classes(classes):
    logits, targets = random_case(classes=classes)
    metrics, scores = score(logits, targets)
    assert metrics["top5"].value is None
    assert metrics["top5"].stderr is None
    assert metrics["top5"].n == 200
    assert list(scores) == ["top1", "nll", "confidence"]
    assert metrics["top1"].value == pytest.approx(accuracy_score(targets, logits.argmax(axis=1)))


def test_equal_logits_mean_the_first_class_and_of_five_classes_top_5_is_always_right():
    metrics, _ = score(np.zeros((4, 5), dtype=np.float32), [0, 1, 2, 3])
    assert (metrics["top1"].value, metrics["top5"].value) == (0.25, 1)


def test_one_sample_has_no_standard_error():
    metrics, _ = score(np.eye(6, dtype=np.float32)[:1], [0])
    assert (metrics["top1"].value, metrics["top1"].stderr) == (1.0, None)


def test_naming_accuracy_topk_gives_the_same_fractions():
    logits, targets = random_case()
    assert score(logits, targets, setting(metrics_fn=accuracy_topk))[0] == score(logits, targets)[0]


# Classes that count -----------------------------------------------------------------------------------------------


def test_a_class_sublist_restricts_the_logits_and_targets_index_into_it():
    logits, _ = random_case(classes=20)
    sublist = [17, 3, 9, 0, 11, 5]
    targets = np.random.default_rng(1).integers(6, size=200).tolist()
    metrics, _ = score(logits, targets, setting(class_sublist=sublist))
    kept = logits[:, sublist]
    assert metrics["top1"].value == pytest.approx(accuracy_score(targets, kept.argmax(axis=1)))
    assert metrics["top5"].value == pytest.approx(top_k_accuracy_score(targets, kept, k=5, labels=range(6)))


def test_logits_that_the_model_restricted_are_not_restricted_again():
    logits, targets = random_case(classes=6)
    made = setting(class_sublist=[17, 3, 9, 0, 11, 5])
    assert score(logits, targets, made, restricted=True)[0] == score(logits, targets)[0]


def test_an_own_metric_gets_the_restricted_logits():
    logits, targets = random_case(n=5, classes=8)
    seen = []
    made = setting(class_sublist=[6, 1], metrics_fn=lambda logits, targets: seen.append(logits) or {"n": len(logits)})
    score(logits, targets, made)
    np.testing.assert_array_equal(seen[0].numpy(), logits[:, [6, 1]])


def test_a_sublist_beyond_the_logits_is_a_data_error():
    with pytest.raises(DataError, match="shift restricts the logits to classes up to 9, but there are 6 logits"):
        score(*random_case(classes=6), setting(class_sublist=[0, 9]))
    np.testing.assert_array_equal(restrict(np.arange(6.0).reshape(2, 3), [2, 0], "s"), [[2, 0], [5, 3]])


@pytest.mark.parametrize(("target", "classes"), [(6, 6), (1000, 6), (-1, 6), (2, 2)])
def test_a_target_out_of_range_is_a_data_error_that_names_the_sample(target, classes):
    logits, _ = random_case(n=3, classes=classes)
    with pytest.raises(DataError) as caught:
        score(logits, [0, target, 1])
    for word in ("shift", "target", f"{classes} logits", "class_sublist"):
        assert word in str(caught.value)
    assert f"1.png has the target {target}" in str(caught.value)


def test_targets_outside_a_sublist_are_a_data_error():
    with pytest.raises(DataError, match=r"2\.png has the target 3, but there are 2 logits"):
        score(random_case(n=3, classes=6)[0], [0, 1, 3], setting(class_sublist=[0, 5]))


@pytest.mark.parametrize("targets", [["cat", "dog"], [0.5, 1.0], [None, None], [True, False], [[0, "cat"], [1]]])
def test_targets_that_are_no_class_indices_are_a_data_error(targets):
    with pytest.raises(DataError, match=r"shift: expected a class index.* as the target"):
        score(np.eye(6, dtype=np.float32)[:2], targets)


def test_a_label_out_of_range_among_several_is_a_data_error():
    with pytest.raises(DataError, match=r"1\.png has the target 6, but there are 6 logits"):
        score(np.eye(6, dtype=np.float32)[:2], [[0, 1], [2, 6]])


# Several right classes, and none ----------------------------------------------------------------------------------


def test_any_of_several_right_classes_is_right_and_a_sample_without_one_does_not_count():
    """As ImageNet-ReaL is scored (Beyer et al. 2020)."""
    logits = np.array([[5, 4, 3, 2, 1, 0, -1]] * 5, dtype=np.float32)
    metrics, scores = score(logits, [[0], [3, 0], [6, 4], [], [5, 6]])
    assert (metrics["top1"].value, metrics["top1"].n) == (0.5, 4)
    assert (metrics["top5"].value, metrics["top5"].n) == (0.75, 4)
    np.testing.assert_array_equal(scores["top1"], np.array([1, 1, 0, np.nan, 0], np.float32))
    np.testing.assert_array_equal(scores["top5"], np.array([1, 1, 1, np.nan, 0], np.float32))
    assert metrics["top1"].stderr == pytest.approx(scipy.stats.sem([1, 1, 0, 0]))
    assert set(metrics) == {"top1", "top5"}


def test_lists_of_one_label_are_as_good_as_labels():
    logits, targets = random_case()
    single, several = score(logits, targets)[0], score(logits, [[target] for target in targets])[0]
    for name in ("top1", "top5"):
        assert several[name] == single[name]


def test_if_no_sample_has_a_label_nothing_is_defined():
    metrics, _ = score(np.eye(6, dtype=np.float32)[:2], [[], []])
    assert (metrics["top1"].value, metrics["top1"].n) == (None, 0)


def test_unreadable_samples_are_wrong_whatever_is_right():
    logits = np.full((2, 6), np.nan, dtype=np.float32)
    logits[0] = np.arange(6)
    metrics, _ = score(logits, [[5, 1], [0, 1]], unreadable=[1])
    assert metrics["top1"].value == 0.5


# Groups of classes ------------------------------------------------------------------------------------------------


def test_the_logit_of_a_group_is_its_largest_and_targets_are_groups():
    logits = np.array([[0, 9, 1, 8, 2], [7, 0, 1, 2, 3], [0, 1, 2, 3, 9]], dtype=np.float32)
    made = setting(class_groups=[[0], [3, 2], [1, 4]])
    metrics, _ = score(logits, [2, 1, 2], made)
    assert metrics["top1"].value == pytest.approx(2 / 3)
    assert score(logits, [[1, 2], [1, 0], [2]], made)[0]["top1"].value == 1


def test_groups_are_of_the_classes_that_are_left():
    logits = np.array([[0, 9, 1, 8, 2]], dtype=np.float32)
    made = setting(class_sublist=[4, 3, 1], class_groups=[[0, 1], [2]])
    seen = []
    made.metrics_fn = lambda logits, targets: seen.append(logits) or {"n": 1}
    score(logits, [0], made)
    assert seen[0].tolist() == [[8, 9]]


def test_a_nan_in_a_group_is_seen():
    logits = np.array([[0, np.nan, 1]], dtype=np.float32)
    assert score(logits, [1], setting(class_groups=[[0, 1], [2]]))[0]["top1"].value == 0


def test_groups_beyond_the_logits_are_a_data_error():
    with pytest.raises(DataError, match="shift groups classes up to 9, but there are 6 logits"):
        score(*random_case(classes=6), setting(class_groups=[[0], [9]]))


@pytest.mark.parametrize("groups", [[[0], []], [[-1]]])
def test_groups_are_checked_when_they_are_defined(groups):
    with pytest.raises(DefinitionError, match="class_groups"):
        setting(class_groups=groups)


# Probabilities ----------------------------------------------------------------------------------------------------


def test_probabilities_are_scored_as_scikit_learn_and_scipy_do():
    logits, targets = random_case(n=300, classes=7)
    logits = 3 * logits
    metrics, scores = score(logits, targets)
    probabilities = scipy.special.softmax(logits.astype(np.float64), axis=1)
    assert metrics["nll"].value == pytest.approx(log_loss(targets, probabilities, labels=range(7)), rel=1e-9)
    squared = ((probabilities - np.eye(7)[targets]) ** 2).sum(axis=1)
    assert metrics["brier"].value == pytest.approx(squared.mean(), rel=1e-9)
    assert metrics["brier"].stderr == pytest.approx(scipy.stats.sem(squared), rel=1e-9)
    own = -np.log(probabilities[np.arange(300), targets])
    assert metrics["nll"].stderr == pytest.approx(scipy.stats.sem(own), rel=1e-9)
    assert (metrics["nll"].unit, metrics["brier"].unit, metrics["ece"].unit) == ("nats", "", "fraction")
    np.testing.assert_allclose(scores["nll"], own, rtol=1e-5)
    np.testing.assert_allclose(scores["confidence"], probabilities.max(axis=1), rtol=1e-6)


def test_the_calibration_error_is_torchmetrics_formula():
    """Fifteen bins of equal width; the mean over samples of the distance of a bin's accuracy and confidence."""
    logits, targets = random_case(n=400, classes=4, seed=3)
    metrics, _ = score(2 * logits, targets)
    probabilities = scipy.special.softmax(2 * logits.astype(np.float64), axis=1)
    confidence, correct = probabilities.max(axis=1), probabilities.argmax(axis=1) == np.array(targets)
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence > low) & (confidence <= low + 1 / 15 + 1e-12)
        if inside.any():
            expected += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    assert metrics["ece"].value == pytest.approx(expected, abs=1e-9)


def test_the_stated_error_of_the_calibration_error_is_that_of_repetition():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(60):
        confidence = rng.uniform(0.5, 1, 2000)
        logits = np.stack([np.log(confidence), np.log(1 - confidence)], axis=1)
        right = rng.uniform(size=2000) < confidence - 0.2  # overconfident everywhere
        found.append(score(logits, np.where(right, 0, 1).tolist())[0]["ece"])
    assert np.mean([each.value for each in found]) == pytest.approx(0.2, abs=0.01)
    assert np.mean([each.stderr for each in found]) == pytest.approx(np.std([each.value for each in found]), rel=0.3)


def test_logits_that_are_no_numbers_have_no_probabilities_but_count_as_wrong():
    logits = np.eye(8, dtype=np.float32)
    logits[3], logits[5, 5] = np.nan, np.inf
    metrics, scores = score(logits, list(range(8)), unreadable=[3])
    assert (metrics["top1"].value, metrics["top1"].n) == (0.875, 8)
    for name in ("nll", "brier", "ece"):
        assert metrics[name].n == 6
        assert np.isfinite(metrics[name].value)
    assert np.isnan(scores["nll"]).tolist() == [False] * 3 + [True, False, True] + [False] * 2


def test_very_large_logits_do_not_overflow():
    metrics, _ = score(np.array([[1e30, -1e30], [0, 700]], np.float32), [1, 1])
    assert metrics["brier"].value == pytest.approx(1.0)
    assert metrics["nll"].value == pytest.approx(1e30)


# Classes ----------------------------------------------------------------------------------------------------------


def classes_of(logits, targets, **options):
    _, metrics = task.score(outputs(logits, targets, **options), setting(), None)
    return {each.slice: each for each in metrics if each.slice != "overall"}


def test_recall_by_class_is_scikit_learns():
    logits, targets = random_case(n=500, classes=6)
    slices = classes_of(logits, targets)
    recalls = recall_score(targets, logits.argmax(axis=1), average=None)
    assert [each.value for each in slices.values()] == pytest.approx(recalls.tolist())
    assert [each.n for each in slices.values()] == np.bincount(targets).tolist()
    metrics, _ = score(logits, targets)
    mean = metrics["mean_per_class_recall"]
    assert mean.value == pytest.approx(balanced_accuracy_score(targets, logits.argmax(axis=1)))
    assert mean.n == 500
    errors = [each.stderr for each in slices.values()]
    assert mean.stderr == pytest.approx(np.sqrt(np.square(errors).sum()) / 6)


def test_classes_without_samples_do_not_count():
    logits = np.eye(6, dtype=np.float32)[[0, 0, 3]]
    slices = classes_of(logits, [0, 1, 3])
    assert {name: each.value for name, each in slices.items()} == {"class/0": 1, "class/1": 0, "class/3": 1}
    mean = score(logits, [0, 1, 3])[0]["mean_per_class_recall"]
    assert (mean.value, mean.stderr) == (pytest.approx(2 / 3), None)


def test_frames_of_a_video_count_as_one_for_standard_errors():
    logits, targets = random_case(n=60, classes=3)
    logits[5] = np.nan  # a video that could not be read
    alone = task.score(outputs(logits, targets), setting(), None)[1]
    frames = [
        SampleInfo(f"{video}/{frame}.png", f"{video}/{frame}", target, f"video {video}")
        for video, target in enumerate(targets)
        for frame in range(4)
    ]
    repeated = task.score(Values(np.repeat(logits, 4, axis=0), frames), setting(), None)[1]
    assert [each.name for each in repeated] == [each.name for each in alone]
    for one, other in zip(alone, repeated, strict=True):
        assert (other.slice, other.n) == (one.slice, 4 * one.n)
        assert other.value == pytest.approx(one.value)
        assert other.stderr == (None if one.stderr is None else pytest.approx(one.stderr))


def test_slices_have_the_names_of_classes_where_they_are_different():
    logits, targets = np.eye(6, dtype=np.float32)[:4], [0, 1, 2, 3]
    names = ["cat", "crane", "dog", "crane"]
    assert list(classes_of(logits, targets, class_names=names)) == [
        "class/cat",
        "class/crane (1)",
        "class/dog",
        "class/crane (3)",
    ]
    assert list(classes_of(logits, targets, class_names=["cat"])) == [f"class/{label}" for label in range(4)]


# Unreadable samples -----------------------------------------------------------------------------------------------


def test_unreadable_samples_are_wrong_and_count():
    logits = np.eye(8, dtype=np.float32)
    logits[[2, 5]] = np.nan
    metrics, scores = score(logits, list(range(8)), unreadable=[2, 5])
    assert metrics["top1"].value == metrics["top5"].value == 0.75
    assert metrics["top1"].n == 8
    assert scores["top1"].tolist() == [1, 1, 0, 1, 1, 0, 1, 1]


def test_unreadable_samples_are_wrong_for_five_classes_too():
    logits = np.eye(5, dtype=np.float32)
    logits[0] = np.nan
    metrics, _ = score(logits, list(range(5)), unreadable=[0])
    assert (metrics["top1"].value, metrics["top5"].value) == (0.8, 0.8)


def topk_by_torch(logits, targets):
    best = logits.topk(3, dim=1).indices
    hits = best == targets[:, None]
    return {"top1": hits[:, 0].float().mean(), "top3": hits.any(dim=1).float().mean()}


def argmax_by_numpy(logits, targets):
    return {"top1": (logits.numpy().argmax(axis=1) == targets.numpy()).mean()}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("unreadable", [[0], [7], [0, 3, 7]])
def test_unreadable_samples_are_wrong_for_metrics_of_ones_own(unreadable, dtype):
    # numpy takes NaN for the maximum, and so does torch.topk: class 0 would be right for the sample of class 0.
    logits = np.eye(8, dtype=dtype)
    logits[unreadable] = np.nan
    for own in (topk_by_torch, argmax_by_numpy):
        metrics, _ = score(logits, list(range(8)), setting(metrics_fn=own), unreadable=unreadable)
        for metric in metrics.values():
            assert metric.value == pytest.approx((8 - len(unreadable)) / 8)


def test_unreadable_samples_are_wrong_within_a_sublist():
    logits = np.eye(8, dtype=np.float32)[[6, 1, 4]]
    logits[1] = np.nan
    made = setting(class_sublist=[6, 1, 4, 0], metrics_fn=topk_by_torch)
    metrics, _ = score(logits, [0, 1, 2], made, unreadable=[1])
    assert metrics["top1"].value == metrics["top3"].value == pytest.approx(2 / 3)


def test_wrong_rows_are_made_in_a_copy():
    logits = np.ones((3, 4), dtype=np.float32)
    logits[1] = np.nan
    made = with_wrong_rows(logits, [0, 2, 3], [1])
    np.testing.assert_array_equal(made, [[1, 1, 1, 1], [0, 0, -np.inf, 0], [1, 1, 1, 1]])
    assert np.isnan(logits[1]).all()
    np.testing.assert_array_equal(with_wrong_rows(logits, [0, [0, 3], 3], [1])[1], [-np.inf, 0, 0, -np.inf])
    for target in (None, "cat", -1, 4, []):
        np.testing.assert_array_equal(with_wrong_rows(logits, [0, target, 3], [1])[1], [0, 0, 0, 0])


def test_a_readable_sample_with_nan_logits_is_wrong():
    logits = np.eye(8, dtype=np.float32)
    logits[3, 6] = np.nan
    metrics, _ = score(logits, list(range(8)))
    assert metrics["top1"].value == metrics["top5"].value == 7 / 8


# Metrics of one's own ---------------------------------------------------------------------------------------------


def model():
    return Model("net", StandardTransform(8, 8), lambda: None, 4)


def test_an_own_metric_gets_what_it_names():
    seen = {}

    def own(targets, image_paths, py_model, logits, class_names, unreadable):
        seen.update(logits=logits, targets=targets, image_paths=image_paths, py_model=py_model)
        seen.update(class_names=class_names, unreadable=unreadable.tolist())
        return {"mine": 0.5}

    logits, targets = random_case(n=4, classes=3)
    given = model()
    about = {"class_names": ["a", "b", "c"], "unreadable": [2]}
    metrics, scores = score(logits, targets, setting(metrics_fn=own), given, **about)
    assert metrics == {"mine": Metric("mine", 0.5, 4, unit="", scorer="metrics_fn", headline=10)}
    assert scores == {}
    assert isinstance(seen["logits"], torch.Tensor)
    np.testing.assert_array_equal(seen["logits"].numpy()[[0, 1, 3]], logits[[0, 1, 3]])
    assert (seen["class_names"], seen["unreadable"]) == (["a", "b", "c"], [False, False, True, False])
    assert seen["targets"].dtype == torch.int64
    assert seen["targets"].tolist() == targets
    assert list(seen["image_paths"]) == ["0.png", "1.png", "2.png", "3.png"]
    assert seen["py_model"] is given


def test_image_paths_can_be_indexed_by_masks_as_in_imagenet_testbed():
    def own(logits, targets, image_paths):
        wrong = (logits.argmax(dim=1) != targets).numpy()
        return {"wrong": len(image_paths[wrong]), "first": int(image_paths[wrong][0].partition(".")[0])}

    metrics, _ = score(np.eye(6, dtype=np.float32), [0, 1, 5, 3, 0, 5], setting(metrics_fn=own))
    assert (metrics["wrong"].value, metrics["first"].value) == (2, 2)


def test_accuracy_topk_in_an_own_metric_is_stored_as_the_default_is():
    def own(logits, targets):
        return accuracy_topk(logits, targets)

    logits, targets = random_case()
    mine, usual = score(logits, targets, setting(metrics_fn=own))[0], score(logits, targets)[0]
    for name in ("top1", "top5"):
        assert mine[name].value == pytest.approx(usual[name].value, abs=1e-12)
        assert mine[name].unit == usual[name].unit


def test_targets_of_other_kinds_reach_an_own_metric():
    seen = []

    def own(logits, targets):
        seen.append(targets)
        return {"n": 1}

    for targets in ([[0, 1], [2]], ["cat", "dog"], [0.5, 1.5]):
        score(np.zeros((2, 3), dtype=np.float32), targets, setting(metrics_fn=own))
    assert seen[:2] == [[[0, 1], [2]], ["cat", "dog"]]
    assert seen[2].tolist() == [0.5, 1.5]


def test_an_own_metric_that_returns_garbage_is_named():
    with pytest.raises(DefinitionError, match="shift: metrics_fn must return a dictionary"):
        score(*random_case(n=4), setting(metrics_fn=lambda logits, targets: 0.5))
    with pytest.raises(DefinitionError, match="shift: the metric 'mine'"):
        score(*random_case(n=4), setting(metrics_fn=lambda logits, targets: {"mine": "good"}))


def test_stored_outputs_are_not_changed_by_a_metric():
    def destructive(logits, targets):
        logits.zero_()
        targets.zero_()
        return {"n": 1}

    logits, targets = random_case(n=4)
    before = logits.copy()
    given = outputs(logits, targets)
    task.score(given, setting(metrics_fn=destructive), None)
    np.testing.assert_array_equal(given.outputs, before)
    assert [sample.target for sample in given.samples] == targets


def test_an_own_metric_may_return_scores_and_see_slices():
    def own(logits, targets, slices):
        assert [each["night"] for each in slices] == [True, False]
        return [Metric("night", 0.5, 1, slice="night"), Score("easy", np.array([1.0, 0.0]))]

    given = outputs(np.eye(3, dtype=np.float32)[:2], [0, 1])
    samples = [replace(each, slices={"night": not place}) for place, each in enumerate(given.samples)]
    scores, metrics = task.score(Values(given.outputs, samples), setting(metrics_fn=own), None)
    assert [each.name for each in scores] == ["easy"]
    assert [(each.name, each.slice, each.scorer) for each in metrics] == [("night", "night", "metrics_fn")]
