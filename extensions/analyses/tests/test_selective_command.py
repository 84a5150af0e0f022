"""``testbed selective``: from stored logits, what models are worth if they may abstain."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_world import in_process
from stored_cells import put, samples_of

from testbed.db.store import Store

COUNT = 400
TARGETS = [0, 1] * (COUNT // 2)
WRONG = set(range(0, COUNT, 10))


def logits(sure_when_wrong):
    """Right but on every tenth sample; how sure the model is there, is given, and elsewhere it is 1 to 3."""
    given = np.zeros((COUNT, 4))
    for place, target in enumerate(TARGETS):
        said = (target + 1) % 2 if place in WRONG else target
        given[place, said] = sure_when_wrong if place in WRONG else 1 + 2 * place / COUNT
    return given


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        put(opened, "knows", "val", samples_of(TARGETS), logits(0.5))
        put(opened, "does-not", "val", samples_of(TARGETS), logits(4))
        unread = logits(0.5)
        unread[:3] = np.nan
        put(opened, "unread", "val", samples_of(TARGETS), unread)
        put(opened, "knows", "groups", samples_of(TARGETS, group=[f"{i // 4}" for i in range(COUNT)]), logits(0.5))
        yield opened


@pytest.fixture
def selective(store, monkeypatch, capsys):
    with in_process(monkeypatch, capsys) as program:
        yield lambda *words: program("selective", *words)


def found(done):
    return {each["model"]: each for each in json.loads(done.stdout)}


@pytest.mark.parametrize("by", ["probability", "margin", "entropy", "logit"])
def test_a_model_that_knows_when_it_errs_answers_more(selective, by):
    both = found(selective("knows", "does-not", "--on", "val", "--by", by, "--json"))
    knows, other = both["knows"], both["does-not"]
    assert knows["error"] == other["error"] == len(WRONG) / COUNT
    assert knows["aurc"]["excess"] == pytest.approx(0, abs=1e-12)
    assert other["aurc"]["value"] > 0.1
    assert knows["at_risk"]["coverage"] == pytest.approx((COUNT - len(WRONG)) / COUNT)  # the wrong ones tie
    assert 0.8 < knows["at_risk"]["guaranteed"] <= 0.9
    assert (other["at_risk"]["coverage"], other["at_risk"]["threshold"]) == (0, None)
    assert knows["curve"][-1] == {"coverage": 1, "risk": 0.1, "threshold": knows["curve"][-1]["threshold"]}


def test_probabilities_that_a_float_rounds_to_one_are_told_apart(store, selective):
    put(store, "sure", "val", samples_of(TARGETS), 50 + 10 * logits(0.5) + 100 * (logits(0.5) > 0))
    (row,) = json.loads(selective("sure", "--on", "val", "--json").stdout)
    assert row["at_risk"]["coverage"] == pytest.approx((COUNT - len(WRONG)) / COUNT)


def test_a_threshold_that_rounds_to_one_is_given_as_log_odds_or_as_a_margin_that_can_be_applied(store, selective):
    put(store, "sure", "val", samples_of(TARGETS), 50 + 10 * logits(0.5) + 100 * (logits(0.5) > 0))
    for by, what in (("probability", "log odds "), ("margin", "−log(1 − margin) ")):
        (row,) = json.loads(selective("sure", "--on", "val", "--by", by, "--json").stdout)
        fine = row["at_risk"]["fine_threshold"]
        assert row["at_risk"]["threshold"] == 1
        assert 100 < fine < 200
        assert f"{what}{fine:.4g}" in selective("sure", "--on", "val", "--by", by).stdout


def test_a_threshold_below_zero_has_a_minus_sign(store, selective):
    put(store, "sure", "val", samples_of(TARGETS), logits(0.5))
    *_, row = selective("sure", "--on", "val", "--by", "entropy", "--risk", "50").stdout.split("\n\n")[0].splitlines()
    assert row.split()[-1].startswith("−")


def test_margins_that_a_float_rounds_to_one_are_told_apart(store, selective):
    put(store, "sure", "val", samples_of(TARGETS), 50 + 10 * logits(0.5) + 100 * (logits(0.5) > 0))
    (row,) = json.loads(selective("sure", "--on", "val", "--by", "margin", "--json").stdout)
    assert row["at_risk"]["coverage"] == pytest.approx((COUNT - len(WRONG)) / COUNT)


def test_models_are_names_or_patterns(selective):
    assert set(found(selective("k*", "does-*", "--on", "val", "--json"))) == {"knows", "does-not"}


def test_a_threshold_is_a_probability(selective):
    (row,) = json.loads(selective("knows", "--on", "val", "--json").stdout)
    threshold = row["at_risk"]["threshold"]
    largest = np.exp(logits(0.5)).max(axis=1) / np.exp(logits(0.5)).sum(axis=1)
    assert np.mean(largest >= threshold - 1e-12) == pytest.approx(row["at_risk"]["guaranteed"])


def test_the_table_says_what_cannot_be_guaranteed(selective):
    done = selective("knows", "does-not", "--on", "val")
    rows = done.stdout.splitlines()[2:]
    assert [row.split()[1] for row in rows] == ["knows", "does-not"]
    assert "nothing" in rows[1]
    assert "at most 5 %, wrong with the probability 0.05 (SGR)" in " ".join(done.stderr.split())


def test_what_could_not_be_read_is_never_answered(selective):
    done = selective("unread", "--on", "val")
    said = "3 of 400 samples of val have no logits of unread: they count as wrong, and are never answered"
    assert said in " ".join(done.stderr.split())


def test_groups_are_drawn_as_wholes_and_nothing_is_guaranteed(selective):
    done = selective("knows", "--on", "groups", "--json")
    (row,) = json.loads(done.stdout)
    assert (row["clusters"], row["at_risk"]["threshold"]) == (COUNT // 4, None)
    said = " ".join(selective("knows", "--on", "groups").stderr.split())
    assert "no threshold is guaranteed for groups" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody", "--on", "val"], "unknown model 'nobody' in the store; there are: does-not, knows, unread"),
        (["knows", "--on", "nowhere"], "unknown eval setting 'nowhere' in the store"),
        (["does-not", "--on", "groups"], "the store has no outputs of does-not on groups; run: testbed run"),
        (["knows", "--on", "val", "--risk", "0"], "--risk is a number above 0 and below 100, not 0.0"),
        (["knows", "--on", "val", "--risk", "100"], "--risk is a number above 0 and below 100, not 100.0"),
        (["knows", "--on", "val", "--delta", "1"], "--delta is a number above 0 and below 1, not 1.0"),
        (["knows", "--on", "val", "--by", "hope"], "'hope' is not one of"),
        (["knows"], "--on is missing; write: testbed selective knows --on SETTING"),
    ],
)
def test_wrong_words_are_told_in_a_line(selective, words, said):
    done = selective(*words)
    assert done.returncode
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_captions_have_no_logits(store, selective):
    put(store, "talker", "val", samples_of(TARGETS), None)
    assert "talker on val has no stored logits" in " ".join(selective("talker", "--on", "val").stderr.split())
