"""A model whose outputs are no numbers is told everywhere, not only as an accuracy of 0."""

from __future__ import annotations

import json

import pytest
from cli_world import WORLD

BROKEN = """
import torch
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry


class Network(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, images):
        logits = images.flatten(1)[:, :10].clone()
        if self.kind == "nan":
            logits[:] = float("nan")
        if self.kind == "overflow":  # images with a bright first pixel
            logits[logits[:, 0] > 0.5, 3] = float("inf")
        if self.kind == "mask":
            logits[:, 3] = -float("inf")
        return logits


for kind in ("nan", "overflow", "mask"):
    registry.add_model(Model(
        name=kind, transform=StandardTransform(8, 8), classifier_loader=lambda kind=kind: Network(kind),
        eval_batch_size=32, num_classes=10, weights=kind,
    ))
"""


@pytest.fixture
def run(program, tmp_path):
    """A function that runs the broken models."""
    (tmp_path / "broken.py").write_text(BROKEN)

    def run(*words, **options):
        given = ("--plugin", WORLD, "--plugin", "broken.py", "--eval-settings", "world", "--limit", "50")
        return program("eval.py", *given, "--executor", "inline", *words, **options)

    return run


def test_outputs_that_are_not_finite_are_told_in_the_table_the_store_and_json(run, program):
    done = run("--models", "nan", "overflow", "mask")
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line[:4] in ("nan ", "over", "mask")}
    assert rows["nan"].endswith("0.00 (NaN)")
    assert rows["overflow"].endswith("(NaN)")
    assert "NaN" not in rows["mask"]  # −∞ masks a class out
    told = [line for line in done.stdout.splitlines() if line.startswith("Not finite")]
    assert told[0] == "Not finite: nan on world: 50 of 50 samples have outputs that are NaN or infinite"
    assert len(told) == 2
    stored = json.loads(program("db.py", "--print-eval", "nan", "world", "--json").stdout)
    (flag,) = [each for each in stored if each["metric"] == "not_finite"]
    assert (flag["value"], flag["n"], flag["slice"]) == (1.0, 50, "overall")
    assert "50 of 50 samples have outputs that are NaN" in program("db.py", "--print-eval", "nan", "world").stdout
    assert "not_finite" not in program("db.py", "--print-eval", "mask", "world").stdout
    noted = program("testbed", "grid", "world").stderr.splitlines()
    assert [line.split()[:2] for line in noted] == [["note:", "nan"], ["note:", "overflow"]]
    assert "NaN or infinite on world" in noted[0]


def test_strict_fails_also_when_the_result_was_stored_before(run):
    assert run("--models", "nan").returncode == 0
    again = run("--models", "nan", "mask", "--strict", "--json", code=1)
    outcomes = {each["model"]: each for each in json.loads(again.stdout)["outcomes"]}
    assert (outcomes["nan"]["status"], outcomes["nan"]["not_finite"]) == ("stored", True)
    assert (outcomes["mask"]["status"], outcomes["mask"]["not_finite"]) == ("complete", False)
    assert run("--models", "mask", "--strict").returncode == 0
