"""Figures of what a store holds: a small one of digits, and a published table."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix
from stored_cells import put, samples_of

from testbed.db.store import Store
from testbed.graph.options import RunOptions
from testbed.models.base.parameters import count_parameters
from testbed.plotting.commands.figures import KINDS, command
from testbed.plotting.figures import KINDS as DRAWN
from testbed.plotting.figures import figures
from testbed.plotting.own import coverage
from testbed.plotting.own.confusion import count, most_confused
from testbed.plotting.own.cost import pareto
from testbed.plotting.own.reliability import reliability
from testbed.plotting.own.source import Omission, skipped
from testbed.registry import registry
from testbed.runner.run import run

MODELS = ["digits-logreg", "digits-mlp", "digits-knn"]
CORRUPTIONS = ("contrast", "brightness")
LEVELS = (1, 3, 5)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A store of three models on clean and corrupted digits."""
    url = str(tmp_path_factory.mktemp("own") / "testbed.db")
    settings = ["digits", *(f"digits-c.{name}.{level}" for name in CORRUPTIONS for level in LEVELS)]
    report = run(registry, RunOptions(db_url=url, executor="inline"), MODELS, settings)
    assert report.ok
    return url


@pytest.fixture(scope="module")
def drawn(digits, tmp_path_factory):
    """What the command writes, as name → numbers, and what it says."""
    out = tmp_path_factory.mktemp("figures")
    done = CliRunner().invoke(command, ["--db-url", digits, "--out", str(out)], standalone_mode=False)
    assert done.exception is None, done.output
    names = {path.stem for path in out.glob("*.html")}
    found = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json")}
    assert names == set(found)
    return found, done.output


def right(url, model, setting, score="top1"):
    """The scores of the samples."""
    with Store.open(url) as store:
        (evaluation,) = store.evaluations.find([model], [setting])
        (values,) = store.scores.read(evaluation.id, score).values()
        return values.astype(float)


# The numbers ------------------------------------------------------------------------------------------------------


def test_everything_that_is_there_is_drawn(drawn):
    names, said = drawn
    shifts = {f"shift--digits--digits-c.{name}" for name in CORRUPTIONS}
    curves = {f"severity--digits-c.{name}" for name in CORRUPTIONS} | {"severity-mean--digits-c"}
    assert shifts | curves | {"ranking--digits", "reliability--digits", "coverage--digits", "cost--digits"} <= set(
        names
    )
    assert {f"confusion--digits--{model}" for model in MODELS} <= set(names)
    (line,) = [line for line in said.splitlines() if line.startswith("skipped: ")]
    assert "cost (the number of parameters is unknown for digits-knn)" in line
    assert f"{len(names)} figures in " in said


def test_a_shift_is_drawn_against_the_unperturbed_setting_of_the_same_samples(drawn, digits):
    found = drawn[0]["shift--digits--digits-c.contrast"]
    for each in found["models"]:
        assert each["x"] == pytest.approx(100 * right(digits, each["model"], "digits").mean())
        levels = [right(digits, each["model"], f"digits-c.contrast.{level}").mean() for level in LEVELS]
        assert each["y"] == pytest.approx(100 * np.mean(levels))
    assert found["fit"] is None  # three models are too few for a line


def test_severity_curves_begin_at_the_clean_setting_and_have_wilsons_intervals(drawn, digits):
    points = drawn[0]["severity--digits-c.contrast"]["points"]
    assert {each["severity"] for each in points} == {0, *LEVELS}
    for each in points:
        setting = f"digits-c.contrast.{each['severity']}" if each["severity"] else "digits"
        correct = right(digits, each["model"], setting)
        interval = binomtest(int(correct.sum()), len(correct)).proportion_ci(0.95, "wilson")
        assert each["value"] == pytest.approx(100 * correct.mean())
        assert (each["low"], each["high"]) == pytest.approx((100 * interval.low, 100 * interval.high))


def test_the_mean_over_corruptions_has_the_standard_error_of_its_samples(drawn, digits):
    points = drawn[0]["severity-mean--digits-c"]["points"]
    (point,) = [each for each in points if (each["model"], each["severity"]) == ("digits-mlp", 5)]
    samples = np.mean([right(digits, "digits-mlp", f"digits-c.{name}.5") for name in CORRUPTIONS], axis=0)
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert point["value"] == pytest.approx(100 * samples.mean())
    assert point["high"] - point["low"] == pytest.approx(2 * 1.959964 * 100 * error, rel=0.01)


def test_a_ranking_has_the_means_in_order_and_says_who_is_tied(drawn, digits):
    models = drawn[0]["ranking--digits"]["models"]
    means = [100 * right(digits, each["model"], "digits").mean() for each in models]
    assert [each["value"] for each in models] == pytest.approx(means)
    assert means == sorted(means, reverse=True)
    assert all(each["low"] <= each["value"] <= each["high"] for each in models)
    for each in models:  # ties are mutual
        for other in models:
            assert (other["model"] in each["tied_with"]) == (each["model"] in other["tied_with"])


def test_the_calibration_error_is_the_stored_one(drawn, digits):
    with Store.open(digits) as store:
        stored = {
            each.model: each.value
            for each in store.results.find(eval_settings=["digits"])
            if (each.metric, each.slice) == ("ece", "overall")
        }
    for each in drawn[0]["reliability--digits"]["models"]:
        assert each["expected_calibration_error"] == pytest.approx(100 * stored[each["model"]], rel=1e-6)


def test_a_curve_of_risk_ends_with_the_error_of_all_samples(drawn, digits):
    for each in drawn[0]["coverage--digits"]["models"]:
        points = each["points"]
        assert [point["coverage"] for point in points] == sorted({point["coverage"] for point in points})
        error = 100 - 100 * right(digits, each["model"], "digits").mean()
        assert points[-1] == pytest.approx({"coverage": 100, "risk": error})
    sample = coverage.line("a", np.array([0.9, np.nan, 0.5]), np.array([1.0, 1.0, 0.0])).curve
    np.testing.assert_allclose(sample.risk, [0, 1 / 2, 2 / 3])  # the unread one is wrong, and the last


def test_the_curve_of_risk_is_that_of_the_logits_where_confidences_round_to_one(tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as store:
        targets = np.zeros(200, int)
        logits = np.zeros((200, 3))
        logits[:, 0] = np.linspace(40, 80, 200)
        logits[:10, 0] *= -1  # the least sure ones are wrong
        put(store, "sure", "val", samples_of(targets.tolist()), logits)
        found, _ = figures(str(tmp_path / "testbed.db"), kinds=["coverage"])
    (line,) = found["coverage--val"].data
    assert line.x[0] == pytest.approx(0.5)  # one sample, not all that a float32 rounds to 1
    assert line.y[-1] == pytest.approx(5)


def test_samples_that_a_model_is_equally_sure_of_are_counted():
    tied = coverage.line("a", np.array([1.0] * 90 + [0.5] * 10), np.ones(100))
    assert coverage._name(tied) == "a (90 equally sure)"
    assert coverage._name(coverage.line("a", np.linspace(0, 1, 100), np.ones(100))) == "a"


def test_bins_are_those_of_scikit_learn():
    random = np.random.default_rng(1)
    confidence = random.uniform(0.01, 0.99, 400)
    correct = (random.uniform(size=400) < confidence).astype(float)
    found = reliability("a", confidence, correct)
    accuracy, mean = calibration_curve(correct, confidence, n_bins=15)
    np.testing.assert_allclose(found.bins["accuracy"], accuracy)
    np.testing.assert_allclose(found.bins["confidence"], mean)
    assert found.bins["n"].sum() == 400


@pytest.mark.parametrize(
    ("confidence", "correct", "error", "n"),
    [([0.8], [1.0], 0.2, 1), ([0.8, np.nan], [0.0, 1.0], 0.8, 1), ([1.0, 0.0], [1.0, 0.0], 0.0, 2)],
)
def test_bins_of_few_samples(confidence, correct, error, n):
    found = reliability("a", np.array(confidence), np.array(correct))
    assert (found.error, found.n) == (pytest.approx(error), n)


def test_no_samples_have_no_error():
    assert reliability("a", np.array([np.nan]), np.array([1.0])).n == 0


def test_confusions_are_those_of_scikit_learn(drawn, digits):
    found = drawn[0]["confusion--digits--digits-mlp"]
    with Store.open(digits) as store:
        (evaluation,) = store.evaluations.find(["digits-mlp"], ["digits"])
        targets = [sample.target for sample in store.datasets.get(evaluation.dataset_id).samples]
        predicted = store.outputs.read(evaluation.id, "logits").argmax(axis=1)
    np.testing.assert_array_equal(found["counts"], confusion_matrix(targets, predicted))


def test_samples_without_a_prediction_and_empty_classes_count_nothing():
    counts = count(np.array([0, 0, 1, 3]), np.array([0, 1, -1, 3]), 4)
    np.testing.assert_array_equal(counts, [[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_array_equal(most_confused(counts, 2), [0, 1])


def test_the_front_has_the_models_that_no_other_one_beats():
    cost = np.array([1.0, 2.0, 2.0, 3.0, 4.0, 1.0])
    value = np.array([0.5, 0.6, 0.6, 0.6, 0.7, 0.4])
    np.testing.assert_array_equal(pareto(cost, value), [True, True, True, False, True, False])
    np.testing.assert_array_equal(pareto(np.array([1.0]), np.array([0.0])), [True])


def test_parameters_are_those_that_torchvision_publishes():
    from torchvision.models import ResNet18_Weights

    model = registry.get_model("resnet18")
    assert count_parameters(model) == ResNet18_Weights.DEFAULT.meta["num_params"]


# The command ------------------------------------------------------------------------------------------------------


def test_one_model_is_drawn_and_what_needs_two_is_skipped(digits):
    found, passed = figures(digits, models=["digits-mlp"])
    assert "severity-mean--digits-c" in found
    assert {"ranking on digits", "cost on digits"} <= {each.what for each in passed}


def test_a_published_table_is_drawn_against_val(published):
    brightness = [f"imagenet-c.brightness.{severity}_on-disk" for severity in range(1, 6)]
    chosen = ["val", "imagenet-sketch", *brightness]
    found, passed = figures(published, kinds=["shifts", "severity", "ranking"], eval_settings=chosen)
    sketch = found["shift--val--imagenet-sketch"]
    assert any((trace.name or "").startswith("linear fit to 1") for trace in sketch.data)
    assert "severity--imagenet-c.brightness_on-disk" in found
    assert "ranking on val" in {each.what for each in passed}  # there are no samples to test


def test_another_clean_setting_is_chosen_by_name(digits):
    found, _ = figures(digits, kinds=["shifts"], clean="digits-c.contrast.1", eval_settings=["digits"])
    assert list(found) == ["shift--digits-c.contrast.1--digits"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--clean", "nothing"], "--clean nothing: the store has no results on it"),
        (["--models", "nobody"], "nobody"),
        (["--metric", "nothing"], "the store has no results to draw"),
        (["--width", "wide", "--formats", "pdf"], "'wide' is neither column, text nor a number of points"),
        (["--kinds", "compute"], "--kinds compute needs --compute FILE"),
        (["--width", "column"], "--width is for images; ask for them with --formats pdf"),
    ],
)
def test_mistakes_are_said(digits, words, said, tmp_path):
    done = CliRunner().invoke(command, ["--db-url", digits, "--out", str(tmp_path), *words], standalone_mode=False)
    assert said in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_what_is_skipped_is_one_line_by_reason():
    passed = [Omission(name, "no results") for name in "abcd"] + [Omission("e", "no browser")]
    assert skipped(passed) == "skipped: a, b, c and 1 more (no results); e (no browser)"


def test_every_kind_has_a_figure(drawn):
    prefixes = {"shifts": "shift-", "severity": "severity-"}
    assert list(KINDS) == list(DRAWN)
    for kind in set(KINDS) - {"training", "compute"}:  # test_training_curves.py and test_compute_fits.py
        assert any(name.startswith(prefixes.get(kind, kind)) for name in drawn[0]), kind


def test_severities_of_a_published_table_are_averaged_over_corruptions(published):
    found, _ = figures(published, kinds=["severity"], models=["resnet50", "vgg19"])
    assert "severity-mean--imagenet-c_on-disk" in found
