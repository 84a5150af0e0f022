"""The rules `vlmevalkit` against what VLMEvalKit's own functions say (tests/assets/make_published_answers.py)."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from testbed.answers.scorings import SCORINGS

FILE = Path(__file__).resolve().parent.parent / "assets" / "published_answers.json.gz"
TELLS = ("multiple_choice", "mmmu", "mmmu_pro", "mmmu_pro_cot", "yes_no", "vqa_accuracy", "anls", "relaxed")
KINDS = [kind for kind in SCORINGS if kind != "caption"]  # which is scored by the metrics of captions


@pytest.fixture(scope="module")
def answers():
    return json.loads(gzip.decompress(FILE.read_bytes()))["answers"]


def test_there_are_500_answers_of_each_kind(answers):
    assert Counter(kind for kind, *_ in answers) == dict.fromkeys(KINDS, 500)


@pytest.mark.parametrize("kind", KINDS)
def test_every_score_is_the_published_one(answers, kind):
    for name, columns, text, read, score in answers:
        if name != kind:
            continue
        verdict = SCORINGS[kind](columns, text, "vlmevalkit")
        assert verdict.score == pytest.approx(score, abs=1e-12), (columns, text)
        if kind in TELLS:
            assert verdict.extracted == read, (columns, text)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_differ_in_some_answers_of_each_kind(answers, kind):
    """And `default` gives a verdict for each of them."""
    both = [
        [SCORINGS[kind](columns, text, rules) for rules in ("default", "vlmevalkit")]
        for name, columns, text, _, _ in answers
        if name == kind
    ]
    assert all(0 <= each.score <= 1 and (each.score == 0 or each.extracted is not None) for each, _ in both)
    assert any(default.score != published.score for default, published in both)
