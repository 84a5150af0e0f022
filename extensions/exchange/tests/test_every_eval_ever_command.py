"""``testbed export every-eval-ever`` and back: recorded answers have the scores that they had."""

from __future__ import annotations

import json

import pytest

from testbed.db.store import Store

pytestmark = pytest.mark.usefixtures("shared_cache")
SETTINGS = ("digits-vqa.choice", "digits-captioning")


def test_answers_are_scored_as_they_were(ask, tmp_path):
    ask("run", "digits-talker", "--on", *SETTINGS, "--limit", "12", "--executor", "inline")
    done = ask("export", "every-eval-ever", tmp_path / "data", "--organization", "Lab")
    assert done.stdout == f"2 records with 24 samples written to {tmp_path / 'data'}\n"
    assert "note: 12 samples are scored in degrees" in done.stderr
    back = json.loads(
        ask("import", "every-eval-ever", tmp_path / "data", "--samples", tmp_path / "back", "--json").stdout
    )
    assert (back["cells"], back["samples"]["samples"]) == (2, 24)
    for path, setting in back["samples"]["answers"].items():
        ask("run", f"replay:{path}", "--on", setting, "--limit", "12", "--executor", "inline")
    with Store.open(str(tmp_path / "testbed.db")) as store:
        measured = [each for each in store.results.find() if each.origin != "published"]
    values = {}
    for each in measured:
        values.setdefault((each.eval_setting, each.metric, each.slice), []).append((each.value, each.stderr, each.n))
    assert len(values) > 15
    assert all(first == second for first, second in values.values())


def test_wrong_words(ask, refusal, tmp_path):
    Store.create(str(tmp_path / "testbed.db")).close()
    assert "none of these results was measured here" in refusal("export", "every-eval-ever", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert "has no records of Every Eval Ever" in refusal("import", "every-eval-ever", tmp_path / "empty")
    assert ask("import", "helm", tmp_path / "empty", code=2).stderr.endswith(
        f"expected one FILE, or every-eval-ever DIR, or inspect FILE; got helm {tmp_path / 'empty'}\n"
    )
    assert "no such file" in refusal("import", "every-eval-ever", tmp_path / "nowhere")
