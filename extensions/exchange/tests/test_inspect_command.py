"""``testbed export inspect`` and ``testbed import inspect``."""

from __future__ import annotations

import json

import pytest
from exchange_world import QUESTION, made_store


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_store(tmp_path / "testbed.db").close()


def test_there_and_back(made, ask, tmp_path):
    assert ask("export", "inspect", "talker", QUESTION, "-o", "in/x.json").stdout == "6 samples written to in/x.json\n"
    done = ask("import", "inspect", "in/x.json", "--samples", "out")
    assert done.stdout.startswith("6 samples written to 2 files in out\n  testbed run replay:out/talker_digits-vqa")
    assert "note: 1 answers were cut off; recorded answers do not mark this" in done.stderr
    assert len(json.loads((tmp_path / "out" / f"talker_{QUESTION}.json").read_text())) == 4


def test_pictures_that_are_not_there_are_told(made, ask, tmp_path):
    done = ask("export", "inspect", "talker", "own-captions", "-o", "x.json", "--pictures")
    assert "note: 4 pictures cannot be shown" in done.stderr
    assert json.loads((tmp_path / "x.json").read_text())["samples"][0]["input"][0]["content"][0]["image"] == "000.png"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "inspect", "talker", "val", "-o", "x.json"], "none of these results was measured here"),
        (["export", "inspect", "lab/net", "val", "-o", "x.json"], "lab/net on val has no answers in text"),
        (["export", "inspect", "talker", "*", "-o", "x.json"], "a log has one cell, but talker on * matches 2"),
        (["export", "inspect", "talker", QUESTION, "-o", "x.eval"], "has to end in .json; got x.eval"),
        (["import", "inspect", "testbed.db"], "use --samples DIR to write them"),
        (["import", "inspect", "testbed.db", "--samples", "out"], "testbed.db cannot be read as JSON"),
    ],
)
def test_mistakes(made, refusal, words, said):
    assert said in refusal(*words)
