"""Models that vLLM runs, asked with the programs; a stand-in answers in place of vLLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from table_world import questions

pytestmark = pytest.mark.usefixtures("shared_cache")
PLUGIN = Path(__file__).parent.parent / "plugins" / "vllm_world.py"
COUNT = 72


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A model and a table of questions."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen2_vl"}')
    save_file({"weight": np.ones((2, 2), np.float32)}, folder / "model.safetensors")
    questions(tmp_path / "lmu" / "mine.tsv", COUNT)
    return tmp_path


def run(
    program: Any, world: Path, *words: str, model: str = "vllm/./model", code: int | None = 0, **variables: str
) -> dict[str, Any]:
    done = program(
        *("eval.py", "--plugin", PLUGIN.as_posix(), "--models", model, "--eval-settings", "mine"),
        *("--lmu-data", str(world / "lmu"), "--executor", "inline", "--json", *words),
        VLLM_LOG=str(world / "log"),
        code=code,
        **variables,
    )
    return json.loads(done.stdout) if code == 0 else {}


def counts(world: Path) -> list[int]:
    """The numbers of messages of the calls so far."""
    lines = map(json.loads, (world / "log").read_text().splitlines())
    return [line["count"] for line in lines if "count" in line]


def values(answer: dict[str, Any]) -> dict[Any, float]:
    return {(each["metric"], each["slice"]): each["value"] for each in answer["results"]}


def test_a_range_of_samples_is_one_call_whatever_the_batch_size(program: Any, world: Path) -> None:
    answer = run(program, world, "--batch-size", "4")
    assert answer["outcomes"][0]["status"] == "complete"
    assert counts(world) == [COUNT]
    assert run(program, world)["outcomes"][0]["status"] != "failed"
    assert counts(world) == [COUNT]  # answers are in the store
    run(program, world, VLLM_BATCH_INVARIANT="1")
    assert counts(world) == [COUNT, COUNT]  # another model


def test_a_killed_run_goes_on_where_it_was_with_the_answers_of_a_quiet_one(program: Any, world: Path) -> None:
    run(program, world, model="drawn", code=None, VLLM_DIES_AT=str(COUNT - 64))
    assert counts(world) == [32, 32, COUNT - 64]
    resumed = run(program, world, "--trust", model="drawn")
    asked = counts(world)[3:]
    assert asked == [COUNT - 64]  # what was stored is not asked again
    assert resumed["outcomes"][0]["status"] == "complete"
    quiet = run(program, world, "--db-url", "other.db", "--batch-size", "3", model="drawn")
    assert counts(world)[3 + len(asked) :] == [32, 32, COUNT - 64]
    assert values(resumed) == values(quiet)
