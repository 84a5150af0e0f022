"""Files of prompts, checkpoints, heads and configurations beside weights; and the two commands as a whole."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from fuzzing import damaged_file, damaged_json, fuzzed, mangled, mangled_bytes, only_within, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.torch import save

from testbed.cli import eval as eval_command
from testbed.cli import program
from testbed.data.language import prompts
from testbed.errors import TestbedError
from testbed.inputs import Inputs, using
from testbed.models.loading.checkpoint_file import load_state_dict
from testbed.models.loading.saved import saved_preprocessing
from testbed.registry import registry
from testbed.tasks.parts.head_files import loaded_head


def written(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


STATE = {"fc.weight": torch.ones(2, 3), "fc.bias": torch.zeros(2)}
CHECKPOINTS = {".pth": written({"state_dict": STATE, "args": {"img_size": 64}}), ".safetensors": save(STATE)}
ARRAY = io.BytesIO()
np.save(ARRAY, np.ones((3, 2), np.float32))
HEADS = {".npy": ARRAY.getvalue(), ".pt": written(torch.ones(3, 2))}
TORCHS = Path(tempfile.gettempdir())  # where torch makes a folder for files of an old form
NAMES = {"x": ["a dog", "a cat"], "vtab/x": ["a", "b"]}
TEMPLATES = [{"x": ["a photo of a {c}."]}, {"x": {"a dog": ["a dog."]}}, {"a dog": ["one."], "a cat": ["two."]}]


@fuzzed()
@given(
    names=damaged_json(NAMES), templates=damaged_json(*TEMPLATES), lines=damaged_file("a dog\na cat\n\n"),
    key=st.sampled_from(("x", "wds/vtab/x", "y")),
)  # fmt: skip
def test_files_of_prompts(names: bytes, templates: bytes, lines: bytes, key: str, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        for file, content in (("names.json", names), ("templates.json", templates), ("classnames.txt", lines)):
            (folder / file).write_bytes(content)
        with robust(folder):
            prompts.class_names("x", folders=[folder])
        with robust(folder):
            given_names = prompts.class_names_file(folder / "names.json")
            with using(Inputs(class_names=str(given_names))):
                assert all(isinstance(each, str) for each in prompts.class_names(key, own=True) or ())
        given_templates = prompts.templates_file(folder / "templates.json")
        with using(Inputs(templates=str(given_templates))):
            prompts.templates(key, classes=["a dog", "a cat"])


CONFIG = {
    "architecture": "resnet18",
    "pretrained_cfg": {
        "input_size": [3, 224, 224], "crop_pct": 0.9, "mean": [0.5, 0.5, 0.5], "std": [0.2, 0.2, 0.2],
        "interpolation": "bicubic", "crop_mode": "center", "val_resize_size": 256,
    },
}  # fmt: skip


@fuzzed()
@given(config=damaged_json(CONFIG, CONFIG["pretrained_cfg"]))
@example(config=b'{"input_size": [[1], [1]]}')
@example(config=b'{"input_size": [3, 8, 8], "val_resize_size": "x"}')
@example(config=b'{"input_size": [3, 8, 8], "crop_pct": 1e-320}')
@example(config=b"[" * 100_000)
def test_configurations_beside_weights(config: bytes, tmp_path: Path) -> None:
    with trial(tmp_path) as folder:
        (folder / "config.json").write_bytes(config)
        (folder / "x.safetensors").write_bytes(CHECKPOINTS[".safetensors"])
        saved_preprocessing(folder / "x.safetensors", "resnet18")


@pytest.mark.parametrize("of", ["checkpoints", "heads"])
@fuzzed(2)
@given(data=st.data())
def test_checkpoints_and_heads(of: str, data: st.DataObject, tmp_path: Path) -> None:
    contents = CHECKPOINTS if of == "checkpoints" else HEADS
    suffix = data.draw(st.sampled_from(sorted(contents)))
    content = data.draw(mangled_bytes(contents[suffix]))
    with trial(tmp_path, TORCHS) as folder:
        path = folder / f"x{suffix}"
        path.write_bytes(content)
        if of == "heads":
            with using(Inputs(heads=(str(path),))):
                loaded_head(2)
            return
        with robust(folder, TORCHS):
            load_state_dict(path)
        saved_preprocessing(path, "resnet18")


# Commands -----------------------------------------------------------------------------------------------------------

EVAL = (
    "--models digits-cnn --eval-settings digits --limit 5 --batch-size 2 --dtype float32 --seed 3 --verify 1%"
    " --decoded-cache 1G --gpus 0 1 --mean 0.5 0.5 0.5 --image-size 8 4 --shots 5 --lr 0.1 --split test --language en"
    " --recall-k 1 5 --task linear_probe --scorers digits-cnn --max-megapixels 3 --executor inline --data-root x"
).split()
TESTBED = (
    *("show digits-cnn digits --slices --json", "why 1 today", "list results --models digits-cnn --on digits"),
    *("grid digits* --metric top1 --format latex", "borda x --better lower", "compare a b --on digits --score top1"),
    *("export texts digits out", "export csv out.csv", "export clip-benchmark out", "export answers 3 x.csv"),
    *("import in.csv --override", "rescore --judge a --on digits", "store status", "store check --json"),
    *("store add model digits-cnn", "store rename model a b", "store remove evaluation a b", "list models --stored"),
)


@pytest.fixture(scope="module")
def _loaded() -> None:
    registry.load()
    registry.models.names()  # which asks the libraries, in processes of their own


@st.composite
def command_lines(draw: st.DrawFn, words: list[str]) -> list[str]:
    """Some options with their words, in any order; some of the words are odd."""
    starts = [place for place, word in enumerate(words) if word.startswith("--")]
    line: list[str] = []
    for start in draw(st.lists(st.sampled_from(starts), min_size=1, max_size=4)):
        end = next((each for each in starts if each > start), len(words))
        own = words[start:end]
        if draw(st.booleans()):
            place = draw(st.integers(0, len(own) - 1))
            own = [*own[:place], draw(mangled(own[place])).replace("\0", ""), *own[place + 1 :]]
        line += own
    return [word.encode("utf-8", "replace").decode() for word in line]


def check(command: Any, words: list[str]) -> None:
    """Runs a command; it may refuse anything, but without a traceback."""
    done = CliRunner().invoke(command, words)
    of_a_file = isinstance(done.exception, OSError) and done.exception.filename  # the program says it in a line
    allowed = done.exception is None or isinstance(done.exception, SystemExit | TestbedError) or of_a_file
    assert allowed, (words, done.exc_info)
    assert done.exit_code in (0, 1, 2)
    assert "Traceback" not in done.output


@pytest.mark.usefixtures("_loaded")
@fuzzed(2)
@given(words=command_lines(EVAL))
def test_eval(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with only_within(tmp_path, TORCHS):
        check(eval_command.command, [*words, "--dry-run", "--db-url", str(tmp_path / "x.db")])


@pytest.mark.usefixtures("_loaded")
@fuzzed(2)
@given(line=st.sampled_from(TESTBED), data=st.data())
def test_testbed(
    line: str, data: st.DataObject, tmp_path: Path, sqlite_template: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = line.split()
    place = data.draw(st.integers(1, len(words) - 1))
    words[place] = data.draw(mangled(words[place])).replace("\0", "").encode("utf-8", "replace").decode()
    with trial(tmp_path, sqlite_template.parent, TORCHS) as folder:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("TESTBED_DB", str(folder / "x.db"))
        shutil.copy(sqlite_template, folder / "x.db")
        (folder / "in.csv").write_text("model,val\nresnet50,76.1\n")
        check(program.command, words)
        monkeypatch.chdir(tmp_path)
