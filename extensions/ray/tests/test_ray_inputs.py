"""A node without the weights or the data of a run, or with others, is named before the run begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray_nodes import ray_nodes
from toy import ToyImages, toy_catalog, toy_model, toy_setting

from testbed.data.content import MISSING
from testbed.extensions.ray.actor import pack
from testbed.extensions.ray.inputs import differing_inputs, found_inputs
from testbed.graph.options import RunOptions
from testbed.graph.passes import Job, Pass, PassCell

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


def test_weights_in_files_and_the_first_and_the_last_sample_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, catalog = job_of(tmp_path)
    found = found_inputs(job, catalog)
    names = ["the model net", "the sample toy/0005 of toy-all", "the sample toy/0014 of toy-all"]
    assert sorted(found) == names
    (tmp_path / "net.pt").write_bytes(b"others")
    assert [name for name, content in found_inputs(job, catalog).items() if content != found[name]] == names[:1]
    (tmp_path / "net.pt").unlink()
    assert "net.pt do not exist" in found_inputs(job, catalog)["the model net"]
    monkeypatch.setattr(ToyImages, "digests", lambda source, positions: [MISSING] * len(positions))
    assert found_inputs(job, catalog)[names[1]] == f"{names[1]} cannot be read"


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
@pytest.mark.parametrize("there", [b"weights", b"others"])
def test_a_node_with_other_files_is_named(root: Path, make_tree: Any, tmp_path: Path, there: bytes) -> None:
    folders = [tmp_path / "here", tmp_path / "there"]
    for folder, weights in zip(folders, (b"weights", there), strict=True):
        make_tree(folder / "photos", ("cat", "dog"))
        (folder / "net.pt").write_bytes(weights)
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLUGIN)
    done = on_two_nodes(root, plugin, folders, str(tmp_path / "x.db"))
    assert "Traceback" not in done.stderr
    assert done.returncode == (there != b"weights"), done.stdout + done.stderr
    said = "the Ray node 127.0.0.3 has other files than this machine: the model net differs"
    assert (said in done.stderr) == (there != b"weights"), done.stderr
