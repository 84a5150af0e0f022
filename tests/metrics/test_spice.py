"""SPICE, by a stand-in for its program; and what is said where something is missing. Nothing is ever downloaded."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
import spice_world

from testbed.errors import TestbedError
from testbed.metrics.captions import spice
from testbed.metrics.captions.overlap import caption_overlap
from testbed.metrics.captions.rows import OverlapOptions

CAPTIONS = ["a dog runs", None, "nothing", "a cat"]
REFERENCES = [["A dog is running.", "A brown dog runs!"], ["a"], ["x"], []]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the stand-in."""
    folder = spice_world.make(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    return folder


def test_each_caption_has_its_score(program: Path, tmp_path: Path) -> None:
    found = caption_overlap(CAPTIONS, REFERENCES, with_spice=True)
    np.testing.assert_array_equal(found.scores["SPICE"], [0.3, math.nan, math.nan, math.nan])
    assert found.metrics["SPICE"] == 0.3  # of the captions with propositions
    assert list((tmp_path / "cache" / "spice").iterdir()) == []  # what was written is gone
    assert "SPICE" not in caption_overlap(CAPTIONS, REFERENCES).metrics


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("fails", r"failed \(exit status 1\): Error: out of memory"),
        ("breaks off", "wrote no scores that can be read"),
        ("hangs", "took longer than 0 seconds, and was ended"),
    ],
)
def test_a_program_that_fails_is_one_line(
    program: Path, monkeypatch: pytest.MonkeyPatch, mode: str, message: str
) -> None:
    (program / "mode").write_text(mode)
    monkeypatch.setattr(spice, "TIMEOUT", 0.3 if mode == "hangs" else 60)
    with pytest.raises(TestbedError, match=message) as caught:
        caption_overlap(CAPTIONS, REFERENCES, with_spice=True)
    assert "\n" not in str(caught.value)


def test_what_is_missing_is_told_with_what_to_do(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert spice.lacking() == ""
    assert OverlapOptions(spice=True).spec()["spice"] == "SPICE 1.0"
    (program / "lib" / spice_world.PARSERS[1]).unlink()
    assert "stanford-corenlp-3.6.0-models.jar" in spice.lacking()
    assert f"cd {program} && python get_stanford_models.py" in spice.lacking()
    assert OverlapOptions(spice=True).spec()["spice"] == "left out"
    with pytest.raises(TestbedError, match="it is not downloaded unasked"):
        caption_overlap(CAPTIONS, REFERENCES, with_spice=True)
    monkeypatch.setenv("PATH", "/nowhere")
    assert "there is no program java" in spice.lacking()
    monkeypatch.setattr(spice, "PACKAGE", "no_such_package")
    assert "pip install -e '.[captions]'" in spice.lacking()
