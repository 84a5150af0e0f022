"""``testbed store verify`` as a nightly job gives it: what it prints, its exit status, and what other commands show."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from dimmed_plugin import NET

# The brightness is the size of a file: Python does not say who asks for that.
PLUGIN = f"""{NET}

def dimmed(images, seeds):
    return images * ((BESIDE / "brightness").stat().st_size / 10)


add_dimmed(dimmed)
registry.add_model(Model("net2", StandardTransform(8, 8), lambda: Net(1), 64))
"""
DIFFERENCE = "8 of 8 samples differ, largest relative difference"


@pytest.fixture
def world(tmp_path: Path) -> Path:
    (tmp_path / "plug.py").write_text(PLUGIN)
    brightness(tmp_path, 10)
    return tmp_path


def brightness(world: Path, number: int) -> None:
    (world / "brightness").write_bytes(b"." * number)


@pytest.fixture
def evaluate(program: Any, world: Path) -> Any:
    def run(*words: str) -> Any:
        plugin = ("--plugin", str(world / "plug.py"), "--executor", "inline")
        return program("eval.py", *plugin, "--models", "net", "net2", "--eval-settings", *words)

    return run


@pytest.fixture
def verify(program: Any, world: Path) -> Any:
    def run(*words: str, code: int = 0, plugin: bool = True, inline: bool = True) -> Any:
        words = (*(("--plugin", str(world / "plug.py")) if plugin else ()), *words)
        words = (*(("--executor", "inline") if inline else ()), *words)
        return program("testbed", "store", "verify", *words, code=code)

    return run


def test_a_store_without_differences_exits_0(evaluate, verify, program):
    evaluate("digits", "dimmed")
    done = verify("--budget", "5m")
    assert "Verified 4 cells of 2 models on 32 samples in " in done.stdout
    assert "4 equal, 0 differ." in done.stdout
    assert done.stdout.endswith("verified in the last 30 days: 4 of 4 cells, 0 differ\n")
    assert "0 of 8 samples differ" in program("db.py", "--print-eval", "net", "dimmed").stdout
    assert "verified in the last 30 days: 4 of 4 cells, 0 differ" in program("testbed", "store", "status").stdout


def test_processes_compute_it_too(evaluate, verify):
    evaluate("dimmed")
    assert "2 equal, 0 differ." in verify("--budget", "5m", "--cpu-processes", "2", inline=False).stdout


def test_a_difference_exits_1_and_every_view_says_so(evaluate, verify, program, world):
    evaluate("digits", "dimmed")
    before = json.loads(program("db.py", "--print-eval", "net", "dimmed", "--json").stdout)
    brightness(world, 20)
    said = verify("--models", "net", code=1).stdout
    assert f"Differs: net on dimmed: {DIFFERENCE}" in said
    ids = said.partition("; samples ")[2].partition("; ")[0].split(", ")
    assert len(ids) == 8
    assert all(each.startswith("digits/") for each in ids) or len(set(ids)) == 8
    assert "testbed why 2 today" in said
    assert "verified in the last 30 days: 2 of 2 cells, 1 differs" in said

    shown = program("db.py", "--print-eval", "net", "dimmed").stdout
    assert "DIFFERED at its last verification" in shown
    assert DIFFERENCE in shown
    assert ids[0] in shown
    after = json.loads(program("db.py", "--print-eval", "net", "dimmed", "--json").stdout)
    assert [each["value"] for each in after] == [each["value"] for each in before]
    assert after[0]["certificate"]["equal"] is False
    assert after[0]["certificate"]["differing_samples"] == ids

    status = program("testbed", "store", "status").stdout
    assert "verified in the last 30 days: 2 of 4 cells, 1 differs" in status
    assert "differed at its last verification: net on dimmed: " in status
    told = json.loads(program("testbed", "store", "status", "--json").stdout)["verified"]
    assert [told[key] for key in ("days", "cells", "verified", "differ")] == [30, 4, 2, 1]
    assert told["differing"][0]["eval_setting"] == "dimmed"


def test_an_earlier_difference_still_exits_1_until_the_cell_is_run_again(evaluate, verify, program, world):
    evaluate("dimmed")
    brightness(world, 20)
    verify("--models", "net", code=1)
    brightness(world, 10)
    said = verify("--budget", "0.001s", code=1).stdout  # net2, which was never verified
    assert "1 equal, 0 differ." in said
    assert "Differed at its last verification: net on dimmed: 20" in said
    assert "Not reached: 1 cell; the next run begins there" in said
    assert "2 equal, 0 differ." in verify().stdout


def test_json_has_everything_and_what_is_not_loaded_is_counted(evaluate, verify, world):
    evaluate("digits", "dimmed")
    said = verify(plugin=False).stdout
    assert "Not verified: 4 cells: the model is not in the registry today; --plugin FILE" in said
    assert "verified in the last 30 days: 0 of 4 cells, 0 differ" in said
    (reason,) = json.loads(verify("--json", plugin=False).stdout)["not_verified"]
    assert len(reason["cells"]) == 4
    brightness(world, 20)
    answer = json.loads(verify("--json", "--samples", "1%", code=1).stdout)
    assert (answer["ok"], answer["interrupted"]) == (False, False)
    assert answer["store"] == {"days": 30, "cells": 4, "verified": 4, "differ": 2}
    results = {(each["model"], each["eval_setting"]): each for each in answer["verified"]}
    equal_or_not = {"digits": "equal", "dimmed": "differs"}
    assert results.keys() == {(model, setting) for model in ("net", "net2") for setting in equal_or_not}
    assert all(each["result"] == equal_or_not[setting] for (_, setting), each in results.items())
    assert results["net", "dimmed"]["certificate"]["samples"] == 6
    assert len(results["net", "dimmed"]["differing_samples"]) == 6
    assert {each["model"] for each in answer["differing"]} == {"net", "net2"}
    assert answer["not_verified"] == []
    assert answer["not_reached"] == []


def test_a_definition_that_has_changed_is_counted(evaluate, verify, world):
    evaluate("dimmed")
    (world / "plug.py").write_text(PLUGIN.replace("images * (", "images**2 * ("))
    said = verify().stdout
    assert "Not verified: 2 cells: defined differently today" in said
    assert "0 differ" in said


def test_a_store_with_nothing_to_verify_says_so(verify, program, world):
    (world / "table.csv").write_text("model,val\nnet,50.0\n")
    program("testbed", "import", "table.csv")
    assert verify().stdout == "nothing to verify: the store has no results with outputs\n"
    assert json.loads(verify("--json").stdout)["ok"] is True


def test_without_a_store_there_is_one_clear_line(verify):
    assert "no results store at" in verify(code=1).stderr


@pytest.mark.parametrize("budget", ["10", "0m", "-5m", "10 minutes", "9999999h", "٣m", ""])
def test_a_budget_that_is_none_is_refused(verify, budget):
    said = verify("--budget", budget, code=2).stderr
    assert "write for example 10m" in said


@pytest.mark.parametrize("samples", ["0", "101%", "some"])
def test_an_amount_that_is_none_is_refused(verify, samples):
    said = verify("--samples", samples, code=2).stderr
    assert "--samples takes a number of samples or a share of them, such as 100 or 1%" in said


def test_damage_to_a_certificate_is_no_traceback(evaluate, verify, ask, world):
    """Where the verification goes on may have been written by somebody else."""
    evaluate("dimmed")
    verify()
    for text in ('{"rotation": {"next": "x"}, "differing_samples": 5}', '{"rotation": 3}', "[1]", "null"):
        with closing(sqlite3.connect(world / "testbed.db")) as connection, connection:
            connection.execute("UPDATE certificates SET environment = ?, differing = 1", (text,))
        ask("--print-eval", "net", "dimmed")
        ask("store", "status")
        verify()
