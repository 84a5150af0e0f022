"""``testbed gate``: what a policy asks, what it answers, and its exit status."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_world import in_process
from stored_cells import put, samples_of, saying

from testbed.db.store import Store
from testbed.entities import Score

COUNT = 400
TARGETS = [0, 1] * (COUNT // 2)


def answers(wrong):
    """What a model says that is wrong on these of 400 samples of two classes."""
    return [2 if place in wrong else target for place, target in enumerate(TARGETS)]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model, wrong in {"old": range(20), "same": range(2, 22), "worse": range(80), "close": range(26)}.items():
            put(opened, model, "val", samples_of(TARGETS), saying(answers(wrong)))
            opened.names.set_parameters(model, 100 if model == "old" else 250)
        yield opened


@pytest.fixture
def gate(store, tmp_path, monkeypatch, capsys):
    with in_process(monkeypatch, capsys) as program:

        def run(policy, candidate, *options):
            (tmp_path / "policy.yaml").write_text(policy)
            return program("gate", "policy.yaml", "--candidate", candidate, "--baseline", "old", *options)

        yield run


VAL = "margin: 2\nrules:\n  - val\n"


@pytest.mark.parametrize(
    ("candidate", "status", "said"),
    [
        ("same", 0, "same against old passes: it holds the margin."),
        ("worse", 1, "worse against old fails: it loses more than accepted on val (−15.00)."),
        ("close", 2, "close against old is not decided: open on val."),
    ],
)
def test_the_verdict_is_the_exit_status(gate, candidate, status, said):
    done = gate(VAL, candidate)
    assert (done.returncode, done.stdout.splitlines()[0]) == (status, said)
    assert gate(VAL, candidate, "--markdown").stdout.startswith(f"**{said}**\n\n| tier | setting |")
    found = json.loads(gate(VAL, candidate, "--json").stdout)
    assert found["verdict"] == {0: "passes", 1: "fails", 2: "open"}[status]
    assert found["rules"][0]["change"]["n"] == COUNT


def test_what_should_hold_does_not_decide(gate):
    policy = "margin: 2\nrules:\n  - setting: val\n    tier: should\n  - setting: val\n    margin: 30\n"
    done = gate(policy, "worse")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[4:]] == ["should", "must"]
    done = gate("margin: 1\nrules:\n  - {setting: val, tier: should}\n", "worse")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "worse against old passes: no rule must hold.")


def test_each_class_is_judged_and_losses_are_corrected_over_all(gate):
    found = json.loads(gate("margin: 10\nrules:\n  - {setting: val, by: class}\n", "worse", "--json").stdout)
    assert [row["group"] for row in found["rules"]] == ["ant", "bee"]
    assert {row["change"]["gain"] for row in found["rules"]} == {-0.15}
    raw = [row["change"]["p_loses"] for row in found["rules"]]
    assert [row["p_loses_holm"] for row in found["rules"]] == [min(1.0, 2 * each) for each in raw]


def test_groups_of_the_data_set_are_compared_as_wholes(store, gate):
    groups = [f"video {place // 20}" for place in range(COUNT)]  # the 60 more errors are three videos
    for model, wrong in (("old", range(20)), ("worse", range(80))):
        samples = samples_of(TARGETS, group=groups)
        put(store, model, "frames", samples, saying(answers(wrong)))
    found = json.loads(gate("margin: 2\nrules: [frames]\n", "worse", "--json").stdout)
    (row,) = found["rules"]
    assert (row["change"]["clusters"], row["verdict"]) == (20, "open")
    by_group = json.loads(gate("margin: 99\nrules: [{setting: frames, by: group}]\n", "worse", "--json").stdout)
    assert {row["change"]["clusters"] for row in by_group["rules"]} == {None}
    assert "400 in 20" in gate("margin: 2\nrules: [frames]\n", "worse").stdout


def test_a_rule_that_cannot_fail_is_named(store, gate):
    for model in ("old", "same"):
        put(store, model, "few", samples_of([0, 1]), saying([0, 1]))
    done = gate("margin: 60\nrules: [few]\n", "same")
    assert "these cannot fail, since no loss would be shown with so few samples: few" in done.stderr
    done = gate("margin: 2\nrules:\n  - {setting: val, tier: should}\n", "same")
    assert "no rule of the policy must hold, so this gate cannot fail" in done.stderr


def test_parameters_count(gate):
    assert gate(f"parameters: 3\n{VAL}", "same").returncode == 0
    done = gate(f"parameters: 2\n{VAL}", "same")
    assert done.returncode == 1
    assert "fails: it loses more than accepted on its number of parameters" in done.stdout
    assert "parameters of the candidate and of the baseline: 250 and 100" in done.stderr


def test_a_missing_result_decides_nothing(store, gate):
    put(store, "old", "other", samples_of([0, 1]), saying([0, 1]))
    done = gate("margin: 2\nrules: [val, other]\n", "same")
    assert done.returncode == 2
    assert "not decided: open on other" in done.stdout
    assert "the store has no outputs of same on other; run: testbed run 'same' --on 'other'" in done.stderr


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("rules: [val]\n", "rule 1: expected a margin, the loss on val that is accepted, here or for the whole file"),
        ("margin: 2\n", "expected rules, a list of settings with margins"),
        ("margin: 2\nrules: [{setting: val, level: must}]\n", "rule 1: unknown key 'level'; expected: setting, margin"),
        ("margin: 2\nrules: [{setting: val, tier: may}]\n", "rule 1: tier: expected must or should, got 'may'"),
        ("margin: -1\nrules: [val]\n", "rule 1: margin: expected a number of 0 or more, got -1"),
        ("alpha: 0.7\nmargin: 1\nrules: [val]\n", "alpha: expected a number above 0 and below 0.5, got 0.7"),
        ("parameters: no\nmargin: 1\nrules: [val]\n", "parameters: expected a number above 0, got False"),
        ("margin: 2\nrules: [{setting: 3}]\n", "rule 1: expected a setting or a pattern, got 3"),
        ("margin: 2\nrules: [{on: val}]\n", "rule 1: unknown key True"),  # what YAML takes "on" for
        ("margin: 1%\nrules: [val]\n", "got '1%'; write it without %: margins are in points, alpha is a fraction"),
        ("margin: 1:30\nrules: [val]\n", "margin: expected a number of 0 or more, got '1:30'"),  # 90 in YAML 1.1
        ("margin: 1_0\nrules: [val]\n", "margin: expected a number of 0 or more, got '1_0'"),
        ("[1, 2", "cannot be read as YAML"),
        ("- 1", "expected alpha, margin, parameters, rules, got [1]"),
        ("margin: 2\nrules: [nothing*]\n", "nothing*"),
    ],
)
def test_a_wrong_policy_is_refused_in_a_line(gate, policy, said):
    done = gate(policy, "same")
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("candidate", "said"), [("old", "are the same model, old"), ("nobody", "nobody")])
def test_wrong_models_are_refused(gate, candidate, said):
    done = gate(VAL, candidate)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("policy", "key"),
    [
        ("margin: 1\nmargin: 50\nrules: [val]\n", "margin"),
        ('margin: 1\n"margin": 50\nrules: [val]\n', "margin"),
        ("rules:\n  - {setting: val, margin: 1, margin: 50}\n", "margin"),
        ("margin: 1\nrules: [val]\nrules: [other]\n", "rules"),
    ],
)
def test_a_key_that_is_given_twice_is_refused_wherever_it_is(gate, policy, key):
    done = gate(policy, "same")
    assert done.returncode == 2
    assert f"{key} is given twice (line " in done.stderr


def test_a_margin_is_the_number_that_people_read(gate):
    for written, margin in (("010", 10), ("1e1", 10), ("08", 8), ("+2", 2), (".5", 0.5)):
        judged = json.loads(gate(f"margin: {written}\nrules: [val]\n", "same", "--json").stdout)
        assert judged["rules"][0]["margin"] == margin, written


def test_a_margin_that_may_be_a_fraction_is_asked_about(gate):
    assert "margin 0.02: points? It accepts a loss of 0.02 % of the samples; for 2 % write 2" in (
        gate("margin: 0.02\nrules: [val]\n", "same").stderr
    )
    assert "margin 0.05: points?" in gate("margin: 0.05\nrules: [val]\n", "same").stderr
    for sound in ("0.06", "0", "2"):
        assert "points?" not in gate(f"margin: {sound}\nrules: [val]\n", "same").stderr


def test_rules_that_judge_the_same_are_named(gate):
    several = "several rules judge val: none of them replaces another, each has to hold"
    assert several in gate("margin: 1\nrules: [v*, {setting: val, margin: 9}]\n", "same").stderr
    assert several in gate("margin: 1\nrules: [val, {setting: val, score: top1}]\n", "same").stderr
    assert "several rules" not in gate("margin: 1\nrules: [val, {setting: val, tier: should}]\n", "same").stderr


def test_a_rule_about_another_score_names_it(gate):
    done = gate("margin: 2\nrules: [val, {setting: val, score: top1}]\n", "worse")
    assert "on val (−15.00); val, top1 (−15.00)." in done.stdout.splitlines()[0]


def test_a_rule_does_not_turn_round_a_score_that_says_what_is_better(gate):
    done = gate("margin: 2\nrules: [{setting: val, better: lower}]\n", "worse")
    assert done.returncode == 2
    assert "val: top1 declares that higher is better, but lower was given: leave it out" in done.stderr
    assert gate("margin: 2\nrules: [{setting: val, better: higher}]\n", "same").returncode == 0


def test_advice_names_the_keys_of_a_rule(store, gate):
    for model in ("old", "same"):
        length = Score("length", np.arange(2.0), "own@1")
        put(store, model, "texts", samples_of([0, 1]), saying([0, 1]), scores=[length])
    rules = "[{setting: val, by: nothing}, {setting: val, score: nothing}, {setting: texts, score: length}]"
    said = gate(f"margin: 1\nrules: {rules}\n", "same").stderr
    assert "by: takes: class" in said
    assert "old on val has no per-sample score 'nothing'; it has" in said
    assert "give better: higher or better: lower (in the rule of the policy)" in said
    assert "--" not in said
