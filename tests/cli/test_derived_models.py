"""Derived models by name, in the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_world import in_process
from stored_cells import put, samples_of

from testbed.db.store import Store

PAIR = "ensemble:digits-knn+digits-logreg"
SCALED = "digits-logreg@temperature=digits"


@pytest.fixture
def testbed(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    with in_process(monkeypatch, capsys) as program:
        yield program


def test_every_command_takes_their_names(testbed, tmp_path):
    done = testbed("run", "ensemble:digits-logreg+digits-knn", SCALED, "--on", "digits", "--executor", "inline")
    assert done.returncode == 0
    assert PAIR in done.stdout
    shown = json.loads(testbed("show", "ensemble:digits-logreg+digits-knn", "digits", "--json").stdout)
    assert f'"{PAIR}"' in json.dumps(shown)
    assert f'"{PAIR}"' in testbed("compare", PAIR, "digits-knn", "--on", "digits", "--json").stdout
    for words in (
        ("rank", "digits", "--models", "ensemble:*", "digits-knn"),
        ("grid", "digits", "--models", "ensemble:*"),
        ("groups", "digits", "--models", PAIR),
        ("selective", PAIR, SCALED, "--on", "digits"),
        ("list", "results"),
        ("export", "logits", "digits", "logits", "--models", PAIR),
        ("rescore", "--models", PAIR),
        ("site", "--out", "site"),
    ):
        done = testbed(*words)
        assert done.returncode == 0, done.stderr
        assert PAIR in done.stdout or words[0] in ("export", "rescore", "site")
    assert "the same" in testbed("why", PAIR, "digits").stdout
    (tmp_path / "policy.yaml").write_text("margin: 5\nrules: [digits]\n")
    gate = testbed("gate", "policy.yaml", "--candidate", PAIR, "--baseline", "digits-knn")
    assert gate.stdout.startswith(f"{PAIR} against digits-knn passes")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ensemble:digits-knn", "ensemble:A+B takes two models or more; got 1"),
        ("ensemble:digits-knn+digits-kn", "there is no model 'digits-kn'; ensemble:A+B has names"),
        ("digits-knn@temperature=digit", "there is no eval setting 'digit' to fit a temperature on"),
        ("digits-knn@prior=even", "the prior is em, estimated without labels, oracle, from the labels, or an eval"),
        ("digits-knn@temprature=digits", "after @ comes temperature=SETTING, prior=em, prior=oracle, prior=SETTING"),
        ("soup:digits-knn+digits-cnn@greedy=digits", "greedy= is about the whole soup: write @@greedy=SETTING after"),
    ],
)
def test_a_wrong_name_is_told_in_a_line(testbed, name, said):
    done = testbed("run", name, "--on", "digits")
    assert done.returncode
    assert f"model '{name}': {said}" in " ".join(done.stderr.split())


def test_files_of_a_model_of_many_members_have_names_that_fit(testbed):
    name = "ensemble:" + "+".join(f"some-model-{number}@prior=em" for number in range(20))
    with Store.create("testbed.db") as store:
        put(store, name, "val", samples_of([0, 1, 2, 3] * 5), np.eye(4)[[0, 1, 2, 3] * 5])
    for words in (
        ("figures", "--kinds", "confusion", "--out", "out/figures", "--on", "val"),
        ("export", "logits", "val", "out/logits"),
        ("export", "every-eval-ever", "out/records"),
    ):
        done = testbed(*words)
        assert done.returncode == 0, done.stderr
    parts = [part for path in Path("out").rglob("*") for part in path.parts]
    assert max(map(len, parts)) < 255
    assert sum("some-model-0" in part for part in parts) >= 3
