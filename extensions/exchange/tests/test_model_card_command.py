"""``testbed export model-card``: printed, put into a README, refused."""

from __future__ import annotations

import pytest
import yaml
from exchange_world import QUESTION, made_store


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_store(tmp_path / "testbed.db").close()
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n# Talker\n")


def test_a_card_is_printed_and_written_on_demand(made, ask, tmp_path):
    printed = ask("export", "model-card", "talker", "--readme", "README.md").stdout
    assert (tmp_path / "README.md").read_text() == "---\nlicense: mit\n---\n# Talker\n"
    alone = yaml.safe_load(ask("export", "model-card", "talker").stdout)
    assert yaml.safe_load(printed.split("---")[1]) == {"license": "mit", **alone}
    assert [each["dataset"]["name"] for each in alone["model-index"][0]["results"]] == [QUESTION, "own-captions"]
    done = ask("export", "model-card", "talker", "--readme", "README.md", "--write")
    assert done.stdout == "results written to README.md\n"
    assert (tmp_path / "README.md").read_text() == printed


def test_a_leaderboard_gets_the_main_result(made, ask, tmp_path):
    hub = ["--hub", f"{QUESTION}=id=lab/digits,task=choice"]
    done = ask("export", "model-card", "talker", "--all", *hub, "--eval-results", "deep/in/x.yaml")
    (entry,) = yaml.safe_load((tmp_path / "deep/in/x.yaml").read_text())
    assert entry["dataset"] == {"id": "lab/digits", "task_id": "choice"}
    assert "1 of 2 settings have no task" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "has no outputs of model 'nobody'"),
        (["*"], "a card has one model; * matches lab/net, talker"),
        (["talker", "--on", "val"], "none of these results was measured here"),
        (["talker", "--hub", "val"], "--hub val is invalid"),
        (["talker", "--eval-results", "x.yaml"], "no result has a task on the hub"),
        (["talker", "--readme", "testbed.db"], "testbed.db cannot be read"),
    ],
)
def test_mistakes(made, refusal, words, said):
    assert said in refusal("export", "model-card", *words)
