"""``eval.py --trust`` and ``--verify``, ``testbed why``, as a user gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dimmed_plugin import NET

PLUGIN = f"""{NET}

def dimmed(images):
    return images * json.loads((BESIDE / "numbers.json").read_text())["dim"]


add_dimmed(dimmed)
"""


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "plug.py").write_text(PLUGIN)
    (tmp_path / "numbers.json").write_text('{"dim": 1}')
    return tmp_path


@pytest.fixture
def evaluate(program: Any, world: Path) -> Any:
    def run(*words: str, **options: Any) -> Any:
        plugin = str(world / "plug.py")
        words = ("--models", "net", "--eval-settings", "dimmed", "--executor", "inline", *words)
        return program("eval.py", "--plugin", plugin, *words, **options)

    return run


def dim(world: Path, number: float) -> None:
    (world / "numbers.json").write_text(f'{{"dim": {number}}}')


def test_the_report_says_what_was_checked_and_why(evaluate, program, world):
    evaluate()
    dim(world, 1.0)
    said = evaluate().stdout
    assert "Checked 1 stored evaluation on 299 samples" in said
    assert f"{world / 'numbers.json'} changed" in said
    assert "1 equal (at most 1 % of their samples may differ, at 95 % confidence), 0 differ." in said
    assert "nothing was computed" in said
    printed = program("db.py", "--print-eval", "net", "dimmed").stdout
    assert "verified" in printed
    assert "0 of 299 samples differ" in printed
    shown = json.loads(program("db.py", "--print-eval", "net", "dimmed", "--json").stdout)
    assert shown[0]["certificate"]["flips"] == 0


def test_the_report_and_why_say_what_differs_and_by_how_much(evaluate, program, world):
    evaluate()
    dim(world, 0.25)
    assert (
        "1 stored evaluation may be outdated; a run checks a few samples of them first" in evaluate("--dry-run").stdout
    )
    (cell,) = json.loads(evaluate("--dry-run", "--json").stdout)["cells"]
    assert cell["doubts"] == [f"{world / 'numbers.json'} changed"]
    assert "Not checked: net on dimmed: --trust" in evaluate("--trust").stdout
    answer = json.loads(evaluate("--json").stdout)
    (check,) = answer["checks"]
    assert (check["model"], check["eval_setting"], check["result"]) == ("net", "dimmed", "differs")
    assert check["because"] == [f"{world / 'numbers.json'} changed"]
    assert check["samples"] == check["differing"] == 320  # whole batches, since the perturbation might draw
    assert check["largest_difference"] > 0.1
    dim(world, 0.5)
    said = evaluate().stdout
    assert "Differs: net on dimmed: " in said
    assert "320 of 320 samples differ, largest relative difference 0." in said
    assert "recomputed (before: evaluation 2)" in said
    said = program("testbed", "why", "1", "2").stdout
    assert "A: evaluation 1, net on dimmed" in said
    assert f"{world / 'numbers.json'} changed" in said
    assert "540 of 540 samples differ" in said
    assert "Set aside because" in said
    assert "nll" in said
    answer = json.loads(program("testbed", "why", "1", "2", "--json").stdout)
    assert answer["identity"] == []
    assert answer["outputs"]["differing"] == 540


def test_verify_under_another_batch_size_is_a_certificate(evaluate, program):
    evaluate()
    said = evaluate("--verify", "5%", "--batch-size", "3").stdout
    assert "Checked 1 stored evaluation on 27 samples: 1 equal, 0 differ." in said
    assert "0 of 27 samples differ" in program("db.py", "--print-eval", "net", "dimmed").stdout


@pytest.mark.parametrize("amount", ["0", "-3", "101%", "some", "1.5", "5 %%"])
def test_an_amount_that_is_none_is_refused_before_anything_is_done(evaluate, amount, world):
    done = evaluate("--verify", amount, code=2)
    assert "--verify takes a number of samples or a share of them, such as 100 or 1%" in done.stderr
    assert not (world / "testbed.db").exists()


def test_why_shows_the_lines_of_code_that_changed(evaluate, program, world):
    evaluate()
    (world / "plug.py").write_text(PLUGIN.replace("return images * json", "return images**2 * json"))
    evaluate()
    said = program("testbed", "why", "1", "2").stdout
    assert "forward / perturbation_gpu" in said
    assert "-    return images * json.loads" in said
    assert "+    return images ** 2 * json.loads" in said


def test_why_an_evaluation_is_not_today_s_and_what_why_cannot_compare(evaluate, program, world):
    evaluate()
    plugin = ("--plugin", str(world / "plug.py"))
    said = program("testbed", "why", "net", "dimmed", *plugin).stdout
    assert "the same files, variables and versions" in said
    dim(world, 0.5)
    said = program("testbed", "why", "1", "today", *plugin).stdout
    assert f"{world / 'numbers.json'} changed" in said
    assert "not checked yet; testbed run --verify compares some samples" in said
    assert "no evaluation 7" in program("testbed", "why", "1", "7", code=1).stderr
    assert "two evaluation ids" in program("testbed", "why", "1", "dimmed", code=1).stderr
    assert "nett" in program("testbed", "why", "nett", "dimmed", code=1).stderr
