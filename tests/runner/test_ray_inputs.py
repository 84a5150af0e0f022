"""A node without the weights or the data of a run, or with others, is named before the run begins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import RayNodes, ray_nodes
from toy import ToyImages, toy_catalog, toy_model, toy_setting

from testbed.db.store import Store
from testbed.execution.ray.inputs import differing_inputs, found_inputs
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job, Pass, PassCell
from testbed.workers.actor import pack

PLUGIN = '''
import os
import re
from pathlib import Path
from testbed.data.formats.image_folder import ImageFolder
from testbed.models.model_base import Model, StandardTransform
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.registry import registry
import torch

HERE = Path(os.environ["NODE_FILES"])

class Network(torch.nn.Module):
    def forward(self, images):
        return images.flatten(1)[:, :2]

class Local(ImageFolder):
    """Looks on each node at the node's own files."""
    def digests(self, positions):
        self.root = HERE / "photos"
        return super().digests(positions)

class Photos:
    def spec(self):
        return {"photos": 1}
    def open(self):
        return Local(HERE / "photos", "photos")

registry.add_model(Model(name="net", transform=StandardTransform(8, 8), classifier_loader=Network, eval_batch_size=4,
                         num_classes=2, weights=HERE / "net.pt"))
registry.add_eval_setting(EvalSetting("photos", Photos(), 8, num_classes=2))
'''


def job_of(tmp_path: Path, **options: Any) -> tuple[Job, Any]:
    (tmp_path / "net.pt").write_bytes(b"weights")
    catalog = toy_catalog(toy_model("net", weights=tmp_path / "net.pt"), toy_model("word", weights="1"), toy_setting())
    cells = (PassCell(1, "net", "toy-all", ""), PassCell(2, "word", "toy-all", ""))
    one_pass = Pass(0, cells, ToyImages(20, 0, ()), range(5, 15), [0] * 20, batch_size=4, chunk=4)
    return Job(RunOptions(**options), "", (one_pass,), 0, 1), catalog


def test_weights_in_files_and_the_first_and_the_last_sample_are_compared(tmp_path: Path) -> None:
    job, catalog = job_of(tmp_path)
    found = found_inputs(job, catalog)
    names = ["the model net", "the sample toy/0005 of toy-all", "the sample toy/0014 of toy-all"]
    assert sorted(found) == names
    (tmp_path / "net.pt").write_bytes(b"others")
    assert [name for name, content in found_inputs(job, catalog).items() if content != found[name]] == names[:1]
    (tmp_path / "net.pt").unlink()
    assert "net.pt do not exist" in found_inputs(job, catalog)["the model net"]


def test_untrained_networks_have_no_weights_that_could_differ(tmp_path: Path) -> None:
    job, catalog = job_of(tmp_path, random_weights=True)
    assert "the model net" not in found_inputs(job, catalog)


def test_differences_are_told_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, catalog = job_of(tmp_path)
    found = found_inputs(job, catalog)
    monkeypatch.setattr("testbed.registry.registry.get_model", catalog.get_model)
    packed = pack(job)
    assert differing_inputs(packed, found, {}) == []
    sample = "the sample toy/0005 of toy-all"
    assert differing_inputs(packed, {**found, sample: "0" * 32}, {}) == [f"{sample} differs"]
    (tmp_path / "net.pt").unlink()
    (line,) = differing_inputs(packed, found, {})
    assert line == f"the model net: the weights {tmp_path}/net.pt do not exist"


# On clusters ------------------------------------------------------------------------------------------------------


def on_two_nodes(root: Path, plugin: Path, folders: list[Path], url: str) -> subprocess.CompletedProcess[str]:
    """A run on two nodes that have different files at what is one path for the plug-in."""
    pytest.importorskip("ray", reason="testbed[ray] is not here")
    with ray_nodes(1, NODE_FILES=str(folders[0]), OMP_NUM_THREADS="1") as cluster:
        cluster.environment = {**cluster.environment, "NODE_FILES": str(folders[1])}
        cluster.add(1)
        cluster.wait()
        words = ["--models", "net", "--eval-settings", "photos", "--plugin", str(plugin), "--db-url", url]
        return subprocess.run(
            [sys.executable, str(root / "eval.py"), *words, "--executor", "ray", "--ray-address", cluster.address],
            env={**cluster.environment, "NODE_FILES": str(folders[0])},
            text=True,
            capture_output=True,
            timeout=120,
        )


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("none", ""),
        ("no weights", "the model net: the weights .*/net.pt do not exist"),
        ("other weights", "the model net differs"),
        ("no photos", "the sample cat/000.png of photos cannot be read"),
    ],
)
def test_a_node_that_lacks_files_is_named(root: Path, make_tree: Any, tmp_path: Path, fault: str, told: str) -> None:
    folders = [tmp_path / "here", tmp_path / "there"]
    for folder in folders:
        make_tree(folder / "photos", ("cat", "dog"))
        (folder / "net.pt").write_bytes(b"weights")
    if fault == "no weights":
        (folders[1] / "net.pt").unlink()
    elif fault == "other weights":
        (folders[1] / "net.pt").write_bytes(b"others")
    elif fault == "no photos":
        for each in (folders[1] / "photos").rglob("*.png"):
            each.unlink()
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    done = on_two_nodes(root, plugin, folders, str(tmp_path / "x.db"))
    assert "Traceback" not in done.stderr
    if not told:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 1, done.stdout
    assert "the Ray node 127.0.0.3 has other files than this machine: " in done.stderr
    assert re.search(told, done.stderr), done.stderr


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    pytest.importorskip("ray", reason="testbed[ray] is not here")
    with ray_nodes(1, 1, WORLD_MARKS=str(tmp_path), OMP_NUM_THREADS="1") as nodes:
        yield nodes


@pytest.mark.long
def test_the_loss_of_the_head_is_told_at_once_and_the_run_ends_with_its_summary(
    root: Path, cluster: RayNodes, tmp_path: Path
) -> None:
    (tmp_path / "pace").touch()
    os.utime(tmp_path / "pace", (20, 20))
    url, plugin = str(tmp_path / "ray.db"), Path(__file__).parent.parent / "plugins" / "world.py"
    words = ["--models", "world-slow", "--eval-settings", "world", "--plugin", str(plugin), "--db-url", url]
    process = subprocess.Popen(
        [sys.executable, str(root / "eval.py"), *words, "--executor", "ray", "--ray-address", cluster.address],
        env=dict(cluster.environment),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + 90
    while not (tmp_path / "batches").exists():
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(2)
    cluster.kill("127.0.0.2")
    out, err = process.communicate(timeout=75)
    assert process.returncode == 1
    lines = err.splitlines()
    told = [place for place, line in enumerate(lines) if "does not answer; the workers that are left go on" in line]
    assert len(told) == 1, err
    assert lines[-1].startswith(f"Error: the head of the Ray cluster, {cluster.address}, does not answer any more."), (
        err
    )
    assert "1 cell: 1 stopped." in out
    assert "Traceback" not in err
    with Store.open(url) as store:  # what the worker that was left computed until the end is stored
        (evaluation,) = store.evaluations(["world-slow"])
        assert store.stored_ranges([evaluation.id], "logits")[evaluation.id]
        assert [each.outcome for each in store.runs()] == ["failed"]
