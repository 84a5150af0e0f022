"""The tutorial docs/first-hour.md, command by command, as a reader types it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from warm_python import WarmPython

from testbed.cli.eval import run
from testbed.execution.executors import executor_names


def commands(page: Path) -> list[list[str]]:
    """The words of each command in the page's blocks without a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = "".join(block for language, block in blocks if not language)
    return [shlex.split(line) for line in text.replace("\\\n", " ").splitlines()]


@pytest.fixture(scope="module")
def world(root: Path, tmp_path_factory: pytest.TempPathFactory, warm_python: WarmPython) -> tuple[Path, dict[str, str]]:
    """The reader's folder after the tutorial, and what each command printed; none failed."""
    folder = tmp_path_factory.mktemp("first-hour")
    printed: dict[str, str] = {}
    for program, *words in commands(root / "docs" / "first-hour.md"):
        if words == ["serve"]:
            words = ["serve", "--help"]  # what follows tries it
        if words[0] == "run":
            words += ["--executor", "inline"]  # without worker processes, which start in seconds
        script = root / (words.pop(0) if program == "python" else f"tests/support/bin/{program}")
        done = warm_python.run(script, words, folder, os.environ)
        assert done.returncode == 0, f"{script} {words}\n{done.stdout}\n{done.stderr}"
        printed[shlex.join([program, *words])] = done.stdout
    return folder, printed


def accuracy(text: str, setting: str = "folder/photos") -> float:
    found = re.search(rf"^{re.escape(setting)} +([\d.]+)$|finetuned +([\d.]+)$", text, flags=re.MULTILINE)
    assert found, text
    return float(found[1] or found[2])


def test_the_commands_of_the_tutorial_print_what_it_says(world):
    _, printed = world
    told = iter(printed.values())
    next(told)  # the images and the models
    first, second = next(told), next(told)
    assert ": resize 256, crop 224, interpolation bilinear; mean 0.485 0.456 0.406, std 0.229 0.224 0.225;" in first
    assert (
        "from the published weights of shufflenet_v2_x0_5; 4 classes; float32; weights finetuned.pth sha256:" in first
    )
    assert re.search(r"Another image size\? .* with --image-size 73 64, instead of", first)
    assert ": resize 64, crop 64," in second
    assert accuracy(second) > accuracy(first) + 40
    metrics = next(told)
    assert re.search(
        rf"^top1 +overall +{accuracy(second):.2f} ± [\d.]+ % +\[[\d.]+, [\d.]+\] +80$", metrics, flags=re.MULTILINE
    )
    assert re.search(r"^top1 +class/2-two ", metrics, flags=re.MULTILINE)
    corrupted = next(told)
    assert "2 cells: 2 complete." in corrupted
    next(told)  # the second model
    assert "finetuned is better" in next(told)
    ranked, grid, hardest, confusions, groups = (next(told) for _ in range(5))
    assert re.search(r"^ +1 +1 +finetuned\b", ranked, flags=re.MULTILINE)
    assert "folder/photos+imagenet-c.fog.3" in grid
    assert re.search(r"^\d-\w+/\d{3}\.png ", hardest, flags=re.MULTILINE)
    assert re.search(r"^2-two +1-one +\d+", confusions, flags=re.MULTILINE)
    assert "worst group" in groups


def test_the_web_page_of_the_tutorial_shows_both_models(root, world):
    folder, _ = world
    assert any(b"older.pth" in path.read_bytes() for path in (folder / "site").rglob("*.js*"))
    pytest.importorskip("starlette", reason="needs pip install -e '.[serve]'")
    serving = subprocess.Popen(
        [sys.executable, "-m", "testbed", "serve", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert serving.stdout is not None
        address = re.search(r"http://\S+", serving.stdout.readline())
        assert address
        assert b"<html" in urlopen(address[0], timeout=30).read()
    finally:
        serving.terminate()
        serving.wait(timeout=30)


def test_the_example_of_a_model_and_a_setting_runs(root, world, warm_python):
    folder, _ = world
    files = [str(root / "examples" / name) for name in ("own_setting.py", "own_model.py")]
    words = ["--plugin", *files, "--models", "my-digits", "--eval-settings", "photos-in-shadow", "--data-root", "mine"]
    done = warm_python.run(root / "eval.py", [*words, "--executor", "inline", "--json"], folder, os.environ)
    assert done.returncode == 0, done.stderr
    values = {each["metric"]: each["value"] for each in json.loads(done.stdout)["results"]}
    assert 0.5 < values["top1"] <= 1
    assert 0 <= values["sure_and_wrong"] <= 1 - values["top1"]


def test_the_scripts_among_the_examples_are_valid(root):
    scripts = [root / "examples" / "run_all.sh", *(root / "examples" / "slurm").iterdir()]
    assert len(scripts) == 4
    for script in scripts:
        done = subprocess.run(["bash", "-n", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        # each option is one of the command's
        used = re.findall(r"testbed run([^|>\n]*)", script.read_text(encoding="utf-8"))
        assert used
        for words in used:
            known = {name for option in run.params for name in option.opts}
            assert set(re.findall(r"--[a-z-]+", words)) <= known, words


def test_the_manifests_among_the_examples_run_a_command_that_is_understood(root):
    yaml = pytest.importorskip("yaml")
    manifests = {path.stem: yaml.safe_load(path.read_text()) for path in (root / "examples/kubernetes").iterdir()}
    (container,) = manifests["job"]["spec"]["template"]["spec"]["containers"]
    commands = [[*container["command"], *container["args"]], manifests["rayjob"]["spec"]["entrypoint"].split()]
    for testbed, program, *words in commands:
        assert (testbed, program) == ("testbed", "run")
        given = run.make_context("testbed run", words).params
        assert given["models"] == ("resnet50", "densenet121")
        assert given["executor"] in executor_names()
