"""`eval.py --profile`: where time goes is printed and stored, in this process and in others."""

from __future__ import annotations

import json
import re

import pytest

from testbed.db.store import Store

COMMAND = ("eval.py", "--models", "digits-cnn", "--eval-settings", "digits", "digits-c.contrast.3", "--limit", "60")


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        (("--executor", "inline"), {"load", "decode", "transform", "perturb", "forward", "other"}),
        pytest.param(
            ("--workers", "1"),
            {"load", "wait", "forward", "decode in data workers", "transform in data workers"},
            marks=pytest.mark.long,
        ),
    ],
)
def test_it_is_printed_and_stored(program, tmp_path, words, stages):
    done = program(*COMMAND, *words, "--profile", "--json", "--db-url", "p.db")
    (times,) = json.loads(done.stdout)["times"]
    assert times["workers"] == 1
    assert stages <= set(times["seconds"])
    with Store.open(str(tmp_path / "p.db")) as store:
        assert [each.environment["times"] for each in store.evaluations.find()] == [[times], [times]]
    assert "times" not in json.loads(program(*COMMAND, "--json", "--db-url", "p.db").stdout)["models"][0]


def test_people_see_a_table_and_what_limits_the_run_and_are_shown_it_again(program):
    out = program(*COMMAND, "--executor", "inline", "--profile", "--db-url", "r.db").stdout
    assert re.search(r"seconds +total +load", out)
    assert re.search(r"Mostly \w+ \(\d+%\)\.", out)
    told = out[out.index("seconds ") :].partition("\n\n")[0]
    ask = ("testbed", "show", "digits-cnn", "digits", "--profile", "--db-url", "r.db")
    assert told in program(*ask).stdout
    (found,) = json.loads(program(*ask, "--json").stdout)
    assert (found["model"], found["eval_setting"]) == ("digits-cnn", "digits")
    assert found["times"][0]["seconds"]["forward"] > 0
    assert "seconds" not in program(*COMMAND, "--override", "--executor", "inline", "--db-url", "r.db").stdout
    assert "No measurements" in program(*ask).stdout
