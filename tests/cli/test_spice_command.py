"""A setting that asks for SPICE: without its program it is named as left out, and with it stored captions get it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import spice_world

pytestmark = pytest.mark.usefixtures("shared_cache")
PLUGIN = Path(__file__).parent.parent / "plugins" / "spice_digits.py"
WORDS = ("--plugin", str(PLUGIN), "--models", "digits-reader", "--eval-settings", "digits-with-spice")


def test_spice_comes_when_its_program_does(program: Any, tmp_path: Path) -> None:
    words = (*WORDS, "--limit", "20", "--executor", "inline", "--json")
    without = program("eval.py", *words, PATH="/usr/bin:/bin")
    told = [line for line in without.stderr.splitlines() if "SPICE" in line]
    assert len(told) == 1
    assert told[0].startswith("SPICE is left out: SPICE needs the package pycocoevalcap: pip install -e '.[captions]'")
    first = json.loads(without.stdout)
    assert first["outcomes"][0]["status"] == "complete"
    assert "SPICE" not in {each["metric"] for each in first["results"]}

    spice_world.make(tmp_path / "java")
    again = program("eval.py", *words, PATH=f"{tmp_path}/java/bin{os.pathsep}{os.environ['PATH']}")
    answer = json.loads(again.stdout)
    assert answer["outcomes"][0]["status"] == "derived"  # no model ran
    assert "left out" not in again.stderr
    values = {each["metric"]: each["value"] for each in answer["results"]}
    assert 0 < values["SPICE"] < 1
    assert values["CIDEr"] == {each["metric"]: each["value"] for each in first["results"]}["CIDEr"]
