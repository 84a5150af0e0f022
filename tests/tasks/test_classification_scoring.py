"""Scoring stored logits: top-1 and top-5, restriction to classes, unreadable samples, metrics of one's own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.metrics import accuracy_score, top_k_accuracy_score

from testbed.db.entities import Metric, SampleInfo
from testbed.errors import DataError, DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset, accuracy_topk
from testbed.models.model_base import Model, StandardTransform
from testbed.tasks.classification import restrict, task, with_wrong_rows
from testbed.tasks.task_base import Outputs


def setting(**options):
    return EvalSetting(**{"name": "shift", "dataset": StandardDataset(path="/data"), "size": 1, **options})


def outputs(logits, targets, **options):
    samples = [SampleInfo(f"{index}.png", str(index), target) for index, target in enumerate(targets)]
    return Outputs(np.asarray(logits), samples, **options)


def score(logits, targets, made=None, model=None, **options):
    """Metrics by name, and scores by name."""
    scores, metrics = task.score(outputs(logits, targets, **options), made or setting(), model)
    return {each.name: each for each in metrics}, {each.name: each.values for each in scores}


def random_case(n=200, classes=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, classes)).astype(np.float32), rng.integers(classes, size=n).tolist()


# The usual metrics ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
def test_top_1_and_top_5_are_scikit_learns(dtype):
    logits, targets = random_case()
    logits = logits.astype(dtype)
    metrics, scores = score(logits, targets)
    assert list(metrics) == ["top1", "top5"]
    assert metrics["top1"].value == pytest.approx(accuracy_score(targets, logits.argmax(axis=1)), abs=1e-12)
    expected = top_k_accuracy_score(targets, logits.astype(np.float64), k=5, labels=range(12))
    assert metrics["top5"].value == pytest.approx(expected, abs=1e-12)
    for name, metric in metrics.items():
        assert (metric.n, metric.unit, metric.slice) == (200, "fraction", "overall")
        assert metric.stderr == pytest.approx(scipy.stats.sem(scores[name].astype(float)), rel=1e-12)
        assert metric.value == pytest.approx(scores[name].mean(), abs=1e-12)
    np.testing.assert_array_equal(scores["top1"], logits.argmax(axis=1) == np.array(targets))


def test_a_hand_case():
    logits = [[3, 2, 1, 0, -1, -2], [0, 1, 2, 3, 4, 5], [1, 5, 2, 3, 4, 0], [2, 1, 0, 5, 4, 3]]
    metrics, scores = score(np.array(logits, dtype=np.float32), [0, 0, 2, 3])
    assert (metrics["top1"].value, metrics["top5"].value) == (0.5, 0.75)
    assert scores["top1"].tolist() == [1, 0, 0, 1]
    assert scores["top5"].tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_top_5_is_not_defined_for_fewer_than_five_classes(classes):
    logits, targets = random_case(classes=classes)
    metrics, scores = score(logits, targets)
    assert metrics["top5"].value is None
    assert metrics["top5"].stderr is None
    assert metrics["top5"].n == 200
    assert list(scores) == ["top1"]
    assert metrics["top1"].value == pytest.approx(accuracy_score(targets, logits.argmax(axis=1)))


def test_of_five_classes_top_5_is_always_right():
    metrics, _ = score(*random_case(classes=5))
    assert metrics["top5"].value == 1


def test_equal_logits_mean_the_first_class():
    metrics, _ = score(np.zeros((4, 6), dtype=np.float32), [0, 1, 2, 3])
    assert metrics["top1"].value == 0.25


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
    with pytest.raises(DataError, match="shift restricts the logits to classes up to 9, but the model gives 6"):
        score(*random_case(classes=6), setting(class_sublist=[0, 9]))
    np.testing.assert_array_equal(restrict(np.arange(6.0).reshape(2, 3), [2, 0], "s"), [[2, 0], [5, 3]])


@pytest.mark.parametrize(("target", "classes"), [(6, 6), (1000, 6), (-1, 6), (2, 2)])
def test_a_target_out_of_range_is_a_data_error_that_names_the_sample(target, classes):
    logits, _ = random_case(n=3, classes=classes)
    with pytest.raises(DataError) as caught:
        score(logits, [0, target, 1])
    for word in ("shift", "target", f"{classes} logits", "class_sublist"):
        assert word in str(caught.value)
    if target > 0:
        assert f"1.png has the target {target}" in str(caught.value)


def test_a_target_below_0_is_named():
    with pytest.raises(DataError, match=r"1\.png has the target -1"):
        score(random_case(n=3, classes=6)[0], [0, -1, 1])


def test_targets_outside_a_sublist_are_a_data_error():
    with pytest.raises(DataError, match=r"2\.png has the target 3, but there are 2 logits"):
        score(random_case(n=3, classes=6)[0], [0, 1, 3], setting(class_sublist=[0, 5]))


@pytest.mark.parametrize("targets", [["cat", "dog"], [0.5, 1.0], [None, None], [True, False]])
def test_targets_that_are_no_class_indices_are_a_data_error(targets):
    with pytest.raises(DataError, match="shift: a class index is expected as the target"):
        score(np.eye(6, dtype=np.float32)[:2], targets)


def test_targets_of_several_labels_are_a_data_error():
    with pytest.raises(DataError, match="shift: a class index is expected"):
        score(np.eye(6, dtype=np.float32)[:2], [[0, 1], [2]])


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
    for target in (None, "cat", -1, 4, [0, 1]):
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

    def own(targets, image_paths, py_model, logits):
        seen.update(logits=logits, targets=targets, image_paths=image_paths, py_model=py_model)
        return {"mine": 0.5}

    logits, targets = random_case(n=4, classes=3)
    given = model()
    metrics, scores = score(logits, targets, setting(metrics_fn=own), given)
    assert metrics == {"mine": Metric("mine", 0.5, 4, unit="", scorer="metrics_fn")}
    assert scores == {}
    assert isinstance(seen["logits"], torch.Tensor)
    np.testing.assert_array_equal(seen["logits"].numpy(), logits)
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


def test_an_own_metric_may_take_just_logits_and_targets():
    metrics, _ = score(*random_case(n=4), setting(metrics_fn=lambda logits, targets: {"n": len(targets)}))
    assert metrics["n"].value == 4


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
    with pytest.raises(DefinitionError, match="shift: metrics_fn returns a dictionary"):
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
    np.testing.assert_array_equal(given.values, before)
    assert [sample.target for sample in given.samples] == targets
