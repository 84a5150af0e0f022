"""Power laws of the error by training compute."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress
from stored_cells import declared, put, samples_of, saying

import testbed
from testbed.db.store import Store
from testbed.entities import Metric
from testbed.errors import StoreError, TestbedError
from testbed.formatting import fixed
from testbed.plotting.figures import figures
from testbed.plotting.own.compute import Training, fit, read_training

WRONG = {"a": 60, "b": 40, "c": 30, "d": 19, "e": 50, "f": 10, "perfect": 0}  # of 100 samples
TABLE = "model,compute,group\na,1e9,x\nb,4e9,x\nc,1.6e10,x\nd,6.4e10,x\ne,2e9,y\nf,3e9,y\nperfect,9e9,x\nother,1,x\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    path = tmp_path_factory.mktemp("compute") / "testbed.db"
    with Store.create(str(path)) as store:
        for model, wrong in WRONG.items():
            metric = declared(Metric("top1", 1 - wrong / 100, 100))
            put(store, model, "snaps", samples_of([0]), saying([0]), metric=metric, task="classification")
    return path


def test_a_law_without_noise_is_found():
    compute = np.array([1e9, 2e9, 8e9, 3e10])
    found = fit(compute, 5 * compute**-0.2)
    assert (found.exponent, found.factor, found.r2) == pytest.approx((-0.2, 5, 1))
    assert found.exponent_interval == pytest.approx((-0.2, -0.2))
    line, low, high = found.band(compute)
    assert line == pytest.approx(5 * compute**-0.2)
    assert (low, high) == (pytest.approx(line), pytest.approx(line))


def test_the_line_is_scipys_and_the_intervals_hold_the_law():
    """Of laws with noise, about 95 % of the intervals hold the exponent; few models give somewhat narrow ones."""
    random, held = np.random.default_rng(0), 0
    for _ in range(100):
        compute = 10 ** random.uniform(8, 12, 30)
        error = 3 * compute**-0.15 * 10 ** random.normal(0, 0.05, 30)
        found = fit(compute, error, draws=300)
        expected = linregress(np.log10(compute), np.log10(error))
        assert (found.exponent, found.factor) == pytest.approx((expected.slope, 10**expected.intercept))
        assert found.r2 == pytest.approx(expected.rvalue**2)
        held += found.exponent_interval[0] <= -0.15 <= found.exponent_interval[1]
    assert 88 <= held <= 99


def test_draws_of_one_compute_alone_do_not_count():
    found = fit(np.array([1.0, 1.0, 1.0, 10.0]), np.array([0.5, 0.6, 0.4, 0.2]))
    assert len(found.draws) < 2000
    assert np.isfinite(found.draws).all()


def test_the_same_models_always_give_the_same_intervals():
    compute, error = np.array([1.0, 5.0, 20.0, 100.0]), np.array([0.7, 0.5, 0.45, 0.2])
    assert fit(compute, error).exponent_interval == fit(compute, error).exponent_interval


def test_tables_of_both_forms(tmp_path):
    (tmp_path / "own.csv").write_text("\ufeffcompute,model\n1.5,RN50\n")
    assert read_training(tmp_path / "own.csv") == {"RN50": Training(1.5, "")}
    (tmp_path / "scaling.csv").write_text(
        "model_fullname,arch,gmacs_total,upstream_dataset\nViT-B-32 openai,x,2e9,WIT\n"
    )
    assert read_training(tmp_path / "scaling.csv") == {"ViT-B-32,openai": Training(2e9, "WIT")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,compute\na,1\n", "there is no column model"),
        ("model,flops\na,1\n", "there is no column compute"),
        ("", "there is no column model"),
        ("model,compute\na,-1\n", "row 2: a model and a positive number are expected, got '-1'"),
        ("model,compute\na,1\n,2\n", "row 3: a model and a positive number are expected, got '2'"),
        ("model,compute\na\n", "row 2: a model and a positive number are expected, got ''"),
    ],
)
def test_a_wrong_table_is_refused(tmp_path, text, said):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TestbedError, match=said):
        read_training(tmp_path / "t.csv")


def test_a_group_of_enough_models_has_a_line(filled, tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    found, _ = figures(str(filled), ["compute"], compute=tmp_path / "t.csv")
    (figure,) = found.values()
    lines = [trace for trace in figure.data if trace.name and trace.name.startswith(("x:", "y:"))]
    expected = linregress(np.log10([1e9, 4e9, 1.6e10, 6.4e10]), np.log10([0.6, 0.4, 0.3, 0.19]))
    assert [line.name.split(" [")[0] for line in lines] == [f"x: E ∝ C^{fixed(expected.slope, 3)}"]  # y has two models
    assert lines[0].y[0] == pytest.approx(100 * 10 ** (expected.intercept + expected.slope * 9))
    drawn = {each[0] for trace in figure.data for each in (trace.customdata if trace.customdata is not None else ())}
    assert drawn == set("abcdef")  # an error of 0 has no logarithm


def test_what_cannot_be_drawn_is_said(filled, tmp_path):
    (tmp_path / "t.csv").write_text("model,compute\na,1\nb,2\nc,3\n")
    found, passed = figures(str(filled), ["compute"], compute=tmp_path / "t.csv")
    assert (found, [each.why for each in passed]) == ({}, ["fewer than 4 models of a group have a known compute"])
    with pytest.raises(StoreError, match="figures of the kind compute need a table: compute=FILE"):
        testbed.results(db=str(filled)).plot("compute")
    assert figures(str(filled), ["compute"]) == ({}, [])
