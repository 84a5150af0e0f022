"""testbed in Python, as a script or a notebook uses it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.stats
import torch
from PIL import Image
from scipy.stats import binomtest

import testbed
from testbed.errors import DataError, DuplicateNameError, RunError, UnknownNameError
from testbed.execution.report import Outcome
from testbed.models.model_base import Model, StandardTransform

pytestmark = pytest.mark.usefixtures("shared_cache")


@pytest.fixture(scope="module")
def db(tmp_path_factory):
    return str(tmp_path_factory.mktemp("api") / "testbed.db")


@pytest.fixture(scope="module")
def done(db, tmp_path_factory):
    return testbed.evaluate("digits-logreg", ["digits", "digits-c.contrast.*"], db=db, limit=60, executor="inline")


@pytest.fixture
def run(tmp_path, warm_python):
    """A function that runs a script in a folder of its own."""

    def call(code: str) -> subprocess.CompletedProcess:
        (tmp_path / "script.py").write_text(code)
        return warm_python.run(tmp_path / "script.py", [], tmp_path, os.environ)

    return call


def test_importing_testbed_imports_nothing_heavy():
    heavy = {"torch", "numpy", "pandas", "sqlalchemy", "click"}
    code = f"import sys, testbed; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_public_name_is_there_and_others_are_not():
    for name in testbed.__all__:
        assert getattr(testbed, name).__doc__
        assert name in dir(testbed)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = testbed.nothing


# Results ----------------------------------------------------------------------------------------------------------


def test_the_frame_has_every_metric_with_its_interval(done):
    frame = done.frame
    assert len(done) == 6
    row = frame[(frame.eval_setting == "digits") & (frame.metric == "top1") & (frame.slice == "overall")].iloc[0]
    interval = binomtest(round(row.value * 60), 60).proportion_ci(0.95, "wilson")
    assert (row.low, row.high) == pytest.approx((interval.low, interval.high))
    assert (row.n, row.status, row.model) == (60, "complete", "digits-logreg")
    row = frame[(frame.eval_setting == "digits") & (frame.metric == "nll") & (frame.slice == "overall")].iloc[0]
    assert row.high - row.value == pytest.approx(scipy.stats.t.ppf(0.975, row.n - 1) * row.stderr, rel=1e-5)
    assert done.failed.empty


def test_samples_agree_with_the_metrics(done):
    samples = done.samples("digits-logreg", "digits")
    assert len(samples) == 60
    right = samples["prediction"] == samples["target"]
    np.testing.assert_array_equal(right, samples["top1"] == 1)
    value = done.frame.query("eval_setting == 'digits' and metric == 'top1' and slice == 'overall'").value.item()
    assert right.mean() == pytest.approx(value)
    assert samples["confidence"].between(0, 1).all()
    assert samples["error"].isna().all()


def test_the_table_shows_main_metrics(done):
    value = done.frame.query("eval_setting == 'digits' and metric == 'top1' and slice == 'overall'").value.item()
    assert f"{100 * value:.2f}" in repr(done)
    table = done._repr_html_()
    assert f"<td>{100 * value:.2f}</td>" in table
    assert "<th scope='row'>digits-logreg</th>" in table


def test_the_preprocessing_is_told(done):
    assert done.preprocessing[0].startswith("digits-logreg: resize 32, crop 32,")


def test_what_is_stored_is_reused_and_read_again(done, db):
    again = testbed.evaluate("digits-logreg", "digits", db=db, limit=60, executor="inline")
    assert set(again.frame.status) == {"stored"}
    stored = testbed.results(db, eval_settings="digits-c*")
    assert len(stored) == 5
    assert set(stored.frame.eval_setting) == {f"digits-c.contrast.{level}" for level in range(1, 6)}
    with pytest.raises(UnknownNameError, match="nobody"):
        testbed.results(db, models="nobody")
    with testbed.Store.open(db) as store:
        assert len(store.evaluations.find()) == 6


def test_names_in_the_table_are_escaped():
    outcome = Outcome("<b>", "x&y", "failed", "<i>")
    shown = testbed.Results(None, [], [outcome])._repr_html_()
    assert "<b>" not in shown
    assert "<i>" not in shown
    assert "x&amp;y" in shown


# Definitions ------------------------------------------------------------------------------------------------------


class Halves(torch.nn.Module):
    """Tells a bright left half from a bright right half."""

    def forward(self, images):
        left, right = images.mean(1).chunk(2, dim=2)
        return torch.stack([left.mean((1, 2)), right.mean((1, 2))], dim=1)


class Broken(torch.nn.Module):
    def forward(self, images):
        raise ValueError("not today")


@pytest.fixture
def folder(tmp_path):
    """A folder of images: bright on the left, or on the right."""
    for label, place in (("left", 0), ("right", 8)):
        (tmp_path / "halves" / label).mkdir(parents=True)
        for number in range(3):
            pixels = np.zeros((16, 16, 3), np.uint8)
            pixels[:, place : place + 8] = 100 + number
            Image.fromarray(pixels).save(tmp_path / "halves" / label / f"{number}.png")
    return tmp_path / "halves"


def model(name, network=Halves):
    return Model(name, StandardTransform(16, 16), classifier_loader=network, eval_batch_size=4)


@pytest.mark.usefixtures("own_registry")
def test_a_definition_and_a_folder_are_evaluated(folder, tmp_path):
    found = testbed.evaluate(model("halves"), folder, db=tmp_path / "own.db", executor="inline")
    samples = found.samples("halves", "folder/halves")
    assert samples["top1"].mean() == 1
    assert sorted(samples["sample"]) == [f"{side}/{number}.png" for side in ("left", "right") for number in range(3)]


@pytest.mark.usefixtures("own_registry")
def test_a_run_is_tuned_as_on_the_command_line(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    tuned = {"channels_last": True, "store_dtype": "float16", "decoded_cache": 10**7, "profile": True}
    testbed.evaluate(model("halves"), folder, db=tmp_path / "own.db", executor="inline", progress=False, **tuned)
    with testbed.Store.open(str(tmp_path / "own.db")) as store:
        (each,) = store.evaluations.find()
        assert (each.dtype, each.environment["channels_last"]) == ("float32/float16", True)
        assert each.environment["times"][0]["seconds"]["forward"] > 0
        assert store.outputs.read(each.id, "logits").dtype == np.float16
    assert any("decoded" in str(file) for file in tmp_path.rglob("*"))


@pytest.mark.usefixtures("own_registry")
def test_a_cell_that_fails_is_a_row_with_its_reason_and_the_others_go_on(folder, tmp_path):
    both = [model("broken", Broken), model("halves")]
    found = testbed.evaluate(both, folder, db=tmp_path / "own.db", executor="inline")
    (row,) = found.failed.itertuples()
    assert (row.model, row.status) == ("broken", "failed")
    assert "not today" in row.reason
    assert found.samples("halves", "folder/halves")["top1"].mean() == 1
    with pytest.raises(RunError, match=r"broken on folder/halves failed: .*not today"):
        testbed.evaluate(both, folder, db=tmp_path / "own.db", executor="inline", raise_on_failure=True)


@pytest.mark.usefixtures("own_registry")
def test_mistakes_are_said(folder, tmp_path):
    with pytest.raises(UnknownNameError, match="digits-logrg"):
        testbed.evaluate("digits-logrg", "digits", db=tmp_path / "own.db")
    with pytest.raises(DataError, match="is not below the data root"):
        testbed.evaluate("digits-logreg", folder, data_root=tmp_path / "elsewhere", db=tmp_path / "own.db")
    testbed.register_model(model("twice"))
    with pytest.raises(DuplicateNameError, match="twice"):
        testbed.register_model(model("twice"))


NOTEBOOK_CELL = """
import torch
import testbed
from testbed.models.model_base import Model, StandardTransform

class Net(torch.nn.Module):
    def forward(self, images):
        return images.flatten(1)[:, :10] * FACTOR

testbed.register_model(Model("mine", StandardTransform(32, 32), classifier_loader=Net, eval_batch_size=64))
found = testbed.evaluate("mine", "digits", db="mine.db", limit=20, progress=True)
print("evaluation", found.frame.evaluation.iloc[0], set(found.frame.status), len(found))
"""


def test_a_script_without_a_main_guard_defines_and_evaluates_a_model_with_the_default_executor(run):
    code = NOTEBOOK_CELL.replace("* FACTOR", "") + NOTEBOOK_CELL.replace("* FACTOR", "")
    done = run(code + NOTEBOOK_CELL.replace("FACTOR", "-1"))
    assert done.returncode == 0, done.stderr
    first, second, third = [line for line in done.stdout.splitlines() if line.startswith("evaluation")]
    assert first == "evaluation 1 {'complete'} 1"
    assert second == "evaluation 1 {'stored'} 1"  # the same code again
    assert third == "evaluation 2 {'complete'} 1"  # other code
    assert "mine is defined in this program only, so this process computes everything" in done.stderr


def test_a_script_without_a_main_guard_uses_processes_for_what_they_know(run):
    call = "testbed.evaluate('digits-logreg', 'digits', db='x.db', limit=20)"
    done = run(f"print('once')\nimport testbed\nprint(len({call}))\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["once", "1"]


def test_the_reason_is_told_when_workers_die_at_the_start(run, tmp_path):
    (tmp_path / "plugin.py").write_text(
        "import multiprocessing, os\nif multiprocessing.parent_process() is not None:\n    os._exit(3)\n"
    )
    call = "testbed.evaluate('digits-logreg', 'digits', db='x.db', limit=20, plugins=['plugin.py'])"
    done = run(f"import testbed\n{call}\n")
    assert done.returncode == 1
    assert "a worker on cpu died (exit code 3)" in done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith(
        "all workers ended before the work was done: the last one with exit code 3; what it printed is above, -v shows"
        " more"
    )


def test_what_a_folder_leaves_out_is_told(tmp_path, capsys):
    for label in range(10):
        (tmp_path / "mine" / str(label)).mkdir(parents=True)
        Image.new("RGB", (8, 8), (label, 0, 0)).save(tmp_path / "mine" / str(label) / "1.png")
    Image.new("L", (8, 8)).save(tmp_path / "mine" / "3" / "2.gif")
    line = "Data of folder/mine: files with other extensions left out: 1 (3/2.gif)"
    for number, options in enumerate(({}, {"until": 50})):
        found = testbed.evaluate(
            "digits-logreg", tmp_path / "mine", db=tmp_path / f"{number}.db", executor="inline", **options
        )
        assert found.left_out == [line]
        assert capsys.readouterr().err.splitlines().count(line) == 1
