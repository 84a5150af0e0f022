"""What a command line says of inputs is in the run's options, is over with the command, and is never a variable."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import wds_world

from testbed.cli import eval, lists
from testbed.errors import UnknownNameError
from testbed.extensions.exchange.commands import corrupt, webdataset
from testbed.graph.options import RunOptions
from testbed.inputs import Inputs, active
from testbed.registry import registry

CONFIG = """
decoder: {name: "judge-of-inputs", type: "nvembed", path: "decoder_models/nv-embed"}
models_to_evaluate: ["captioner"]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registry: Any) -> Iterator[Path]:
    """A folder with one of each input; whatever the commands load is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    wds_world.write_split(
        tmp_path / "data" / "wds_pets",
        [wds_world.samples({"a": b"0", "b": b"1"})],
        classnames="x\ny\n",
        templates="a {c}\n",
    )
    (tmp_path / "names.json").write_text(json.dumps({"pets": ["cat", "dog"]}))
    (tmp_path / "templates.json").write_text(json.dumps({"pets": ["a {c}"]}))
    np.save(tmp_path / "head.npy", np.zeros((3, 2), np.float32))
    (tmp_path / "said").mkdir()
    (tmp_path / "bench").mkdir()
    (tmp_path / "judge.yaml").write_text(CONFIG)
    monkeypatch.setattr(registry, "plugins", list(registry.plugins))
    logger = logging.getLogger("testbed")
    kept = logger.handlers, logger.propagate, logger.level
    yield tmp_path
    logger.handlers, logger.propagate, logger.level = kept


def call(command: click.Command, *words: object) -> Any:
    return command.main([str(word) for word in words], standalone_mode=False)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunOptions]:
    """A function that gives the options of the run that eval.py would make, and does not make it."""
    asked: list[tuple[RunOptions, Inputs]] = []

    def show(catalog: Any, options: RunOptions, *rest: Any) -> int:
        asked.append((options, active()))
        return 0

    monkeypatch.setattr(eval, "show_plan", show)

    def ask(*words: object) -> RunOptions:
        before = dict(os.environ)
        assert call(eval.command, *words, "--dry-run") == 0
        assert dict(os.environ) == before
        assert active() == Inputs.from_environment()
        found, current = asked.pop()
        assert found.inputs == current
        return found

    return ask


def test_the_options_of_a_run_have_what_the_command_line_says(
    files: Path, options: Callable[..., RunOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = ("--models", "digits-cnn", "--eval-settings", "wds/pets", "--data-root", "data")
    root = str(files / "data")
    assert options(*cell).inputs == Inputs(data_root=root)
    given = ("--classnames-file", "names.json", "--templates-file", "templates.json", "--load-clfs", "head.npy")
    everything = Inputs(
        data_root=root,
        predictions=str(files / "said"),
        class_names=str(files / "names.json"),
        templates=str(files / "templates.json"),
        heads=(str(files / "head.npy"),),
    )
    assert options(*cell, *given, "--predictions", "said").inputs == everything
    monkeypatch.setenv("TESTBED_DATA", "/nowhere")
    monkeypatch.setenv("TESTBED_PREDICTIONS", "/said")
    assert options(*cell).inputs == Inputs(data_root=root, predictions="/said")


def test_so_has_a_run_of_clip_cc_bench(files: Path, options: Callable[..., RunOptions]) -> None:
    found = options("--clip-cc", "judge.yaml", "--base-dir", "bench", "--models", "captioner").inputs
    assert found == Inputs(
        predictions=str(files / "bench" / "data" / "models"),
        clip_cc_base=str(files / "bench"),
        clip_cc_ground_truth=str(files / "bench" / "data" / "ground_truth" / "clip_cc_dataset.json"),
    )


def test_a_mistake_leaves_nothing_behind(files: Path) -> None:
    before = dict(os.environ)
    with pytest.raises(UnknownNameError, match="unknown eval setting 'pests'"):
        call(eval.command, "--models", "digits-cnn", "--eval-settings", "pests", "--data-root", "data", "--dry-run")
    assert dict(os.environ) == before
    assert active() == Inputs()


def test_other_commands_leave_the_variables_alone(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: value for name, value in os.environ.items() if name.startswith("TESTBED_")}
    call(webdataset.command, "-d", "wds/pets", "-o", "again", "--data-root", "data")
    assert (files / "again" / "test" / "0.tar").is_file()
    call(lists.settings, "--data-root", "data")
    (files / "photos").mkdir()
    (files / "photos" / "a.png").write_bytes(wds_world.picture(0))
    words = ("--corruptions", "gaussian_noise", "--severities", 1, "--data-root", "data")
    call(corrupt.command, "photos", "corrupted", *words)
    assert list((files / "corrupted").rglob("*.png"))
    assert {name: value for name, value in os.environ.items() if name.startswith("TESTBED_")} == before
    assert active() == Inputs()
