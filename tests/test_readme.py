"""The README's commands, the examples of how a model and a setting are added, and ImageNet-testbed's own two."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from original_files import ORIGINAL_MODEL, ORIGINAL_SETTING
from own_copy import copy_testbed
from torchvision.models import resnet50
from warm_python import WarmPython

import testbed
from testbed.data.sets.imagenet import synsets
from testbed.db.store import Store

LIMIT = 6


@pytest.fixture(scope="module")
def torch_home(tmp_path_factory):
    """A folder in which torchvision finds a resnet50: of random weights, since the real ones cannot be had here."""
    home = tmp_path_factory.mktemp("torch")
    (home / "hub" / "checkpoints").mkdir(parents=True)
    torch.manual_seed(5)
    torch.save(resnet50(weights=None).state_dict(), home / "hub" / "checkpoints" / "resnet50-0676ba61.pth")
    return home


@pytest.fixture(scope="module")
def data_root(tmp_path_factory, make_tree):
    """50,000 images of 1,000 classes: links to a few real photos."""
    root = tmp_path_factory.mktemp("data")
    photos = sorted(make_tree(root / "photos", each=5, size=64).rglob("*.png"))
    for label in range(1000):
        folder = root / "val" / synsets()[label]
        folder.mkdir(parents=True)
        for index in range(50):
            os.link(photos[(7 * label + index) % len(photos)], folder / f"{index:02d}.png")
    return root


@pytest.fixture
def run_eval(warm_python: WarmPython, root: Path, torch_home: Path, data_root: Path, tmp_path: Path) -> Any:
    """A function that runs an ``eval.py`` and gives its results."""

    def run(*words: str, script: Path = root / "eval.py") -> list[dict]:
        variables = {**os.environ, "TORCH_HOME": str(torch_home), "TESTBED_DATA": str(data_root)}
        common = ["--limit", str(LIMIT), "--executor", "inline", "--json", "--db-url", "results.db"]
        done = warm_python.run(script, [*words, *common], tmp_path, variables, anew=True)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)["results"]

    return run


def stored_logits(folder: Path, model: str, setting: str) -> np.ndarray:
    with Store.open(str(folder / "results.db")) as store:
        (evaluation,) = store.evaluations.find([model], [setting])
        return np.array(store.outputs.read(evaluation.id, "logits"))


def check_original(results: list[dict], logits: np.ndarray) -> None:
    metrics = {each["metric"]: each for each in results}
    assert set(metrics) == {"top1", "top5", "paths"}
    assert metrics["paths"]["value"] == LIMIT
    assert 0 <= metrics["top1"]["value"] <= metrics["top5"]["value"] <= 1  # fractions, though accuracy_topk has percent
    assert logits.shape == (LIMIT, 500)


@pytest.mark.long
def test_the_originals_examples_run_verbatim_as_plugins(tmp_path, run_eval):
    (tmp_path / "model.py").write_text(ORIGINAL_MODEL)
    (tmp_path / "setting.py").write_text(ORIGINAL_SETTING)
    results = run_eval("--plugin", "model.py", "setting.py", "--models", "resnet50", "--eval-settings", "val")
    check_original(results, stored_logits(tmp_path, "resnet50", "val"))


@pytest.mark.slow
def test_the_examples_of_the_docs_work_as_files_in_their_packages(root, tmp_path, run_eval):
    pages = [(root / "docs" / f"adding-a-{kind}.md").read_text() for kind in ("model", "setting")]
    model, setting = [re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0] for page in pages]
    script = copy_testbed(root, tmp_path)
    (tmp_path / "testbed/models/my_model.py").write_text(model)
    (tmp_path / "testbed/eval_settings/my_setting.py").write_text(setting)
    results = run_eval("--models", "my-resnet50", "resnet50", "--eval-settings", "val", "val-darker", script=script)
    values = {(each["model"], each["eval_setting"]): each["value"] for each in results if each["metric"] == "top1"}
    assert len(values) == 4
    # The example is torchvision's own definition written out, so both give the same logits.
    for name in ("val", "val-darker"):
        mine, theirs = stored_logits(tmp_path, "my-resnet50", name), stored_logits(tmp_path, "resnet50", name)
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    assert (
        np.abs(stored_logits(tmp_path, "resnet50", "val") - stored_logits(tmp_path, "resnet50", "val-darker")).max() > 0
    )


def test_the_commands_of_the_readme_are_understood(root):
    from testbed.cli.program import command

    shell = "\n".join(re.findall(r"```\n(.*?)```", (root / "README.md").read_text(), flags=re.DOTALL))
    seen = 0
    for line in re.findall(r"testbed [^#&\n]*", shell):
        name, *words = line.replace("'", "").split()[1:]
        command.get_command(click.Context(command), name).make_context(name, words)
        seen += 1
    assert seen >= 6


@pytest.mark.usefixtures("shared_cache")
def test_the_rankings_of_the_readme_and_the_home_page_are_what_the_command_prints(root, tmp_path):
    """The values depend on models that each machine trains, so only names, ranks and the form of a row are compared."""
    from testbed.cli.program import command

    url = str(tmp_path / "demo.db")
    testbed.evaluate("demo", "digits", db=url, progress=False)
    printed = CliRunner().invoke(command, ["rank", "digits", "--db-url", url]).stdout
    values = {row.split()[2]: row for row in printed.splitlines() if "digits-" in row and "[" in row}
    for page in ("README.md", "docs/index.md"):
        rows = re.findall(r"^ +\d+ +\d.*digits-\S+ .*\[.*$", (root / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(rows) >= 4
        same = [row for row in rows if row.split()[3] == values[row.split()[2]].split()[3]]
        assert same, f"{page}: no accuracy is that of a model that was trained here, not even the nearest neighbours'"
        for row in same:  # the same accuracy has the same interval
            assert re.findall(r"\[.*?\]", row) == re.findall(r"\[.*?\]", values[row.split()[2]]), page
