"""``testbed rank``: from the store alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sqlalchemy as sa
from stored_cells import put, samples_of

from testbed.db.store import Store
from testbed.entities import Score
from testbed.extensions.analyses.commands.rank import tied_ranks
from testbed.metric_specs import rate
from testbed.metrics.inference.paired import compare, holm
from testbed.metrics.inference.ranks import rank_models
from testbed.stored_results.ranking import ranking

N = 200
ACCURACIES = {"best": 0.95, "good": 0.93, "poor": 0.4}


def right_or_wrong(seed):
    rng = np.random.default_rng(seed)
    return {model: (rng.uniform(size=N) < chance).astype(float) for model, chance in ACCURACIES.items()}


VAL, SHIFT = right_or_wrong(0), right_or_wrong(1)


def put_scores(store, model, setting, values, ids=None, name="top1"):
    scores = [Score(name, np.asarray(values, dtype=np.float32), "test@1")]
    return put(store, model, setting, samples_of([0] * len(values), ids), None, scores=scores)


@pytest.fixture
def store(tmp_path):
    with Store.create(str(tmp_path / "testbed.db")) as opened:
        for model in ACCURACIES:
            put_scores(opened, model, "val", VAL[model])
            put_scores(opened, model, "shift.1", SHIFT[model])
        yield opened


def test_a_ranking_of_one_setting(store, program):
    rows = json.loads(program("testbed", "rank", "val", "--json").stdout)
    columns = np.column_stack([VAL[model] for model in sorted(VAL)])
    places = dict(zip(sorted(VAL), rank_models([columns]), strict=True))
    assert [each["model"] for each in rows] == sorted(VAL, key=lambda model: -VAL[model].mean())
    for row in rows:
        place = places[row["model"]]
        assert (row["value"], row["low"], row["high"]) == (place.value, place.low, place.high)
        assert (row["rank"], row["rank_low"], row["rank_high"]) == (place.rank, place.rank_low, place.rank_high)
        assert row["mean_rank"] == row["rank"]
        assert row["eval_settings"] == [
            {"eval_setting": "val", "n": N, "value": pytest.approx(VAL[row["model"]].mean()), "rank": row["rank"]}
        ]
    ties = {row["model"]: row["tied_with"] for row in rows}
    pairs = [("best", "good"), ("best", "poor"), ("good", "poor")]
    adjusted = holm([compare(VAL[one], VAL[other]).p for one, other in pairs])
    assert [p >= 0.05 for p in adjusted] == [True, False, False]
    assert ties == {"best": ["good"], "good": ["best"], "poor": []}


def test_the_table_has_ranks_intervals_and_ties(store, program):
    done = program("testbed", "rank", "val")
    answer, _, *lines = done.stdout.splitlines()
    means = {model: 100 * VAL[model].mean() for model in VAL}
    gap = means["good"] - means["poor"]
    assert answer == f"good {means['good']:.2f} % leads; tied with best (Holm); +{gap:.2f} points over poor"
    assert lines[0].split() == ["rank", "95", "%", "model", "top1", "95", "%", "interval", "tied", "with"]
    assert lines[-1].split()[:3] == ["3", "3", "poor"]
    assert "200 samples that all 3 models have" in done.stderr


def test_the_order_of_models_and_settings_does_not_matter(store, ask):
    one = json.loads(ask("rank", "val", "shift.1", "--models", "poor", "best", "good", "--json").stdout)
    other = json.loads(ask("rank", "shift.1", "val", "--models", "*", "--json").stdout)
    for row in other:
        row["eval_settings"].reverse()
    assert one == other


def test_several_settings_weigh_the_same_and_samples_that_they_share_are_drawn_together(store, ask):
    rows = {each["model"]: each for each in json.loads(ask("rank", "val", "s*", "--json").stdout)}
    both = np.column_stack([(VAL[model] + SHIFT[model]) / 2 for model in sorted(VAL)])
    for model, place in zip(sorted(VAL), rank_models([both], spec=rate("top1", zero_one=True)), strict=True):
        assert rows[model]["value"] == pytest.approx((VAL[model].mean() + SHIFT[model].mean()) / 2)
        assert (rows[model]["low"], rows[model]["high"]) == (pytest.approx(place.low), pytest.approx(place.high))
        ranks = [each["rank"] for each in rows[model]["eval_settings"]]
        assert rows[model]["mean_rank"] == np.mean(ranks)
    assert "mean rank" in ask("rank", "val", "shift.1").stdout


def test_settings_of_other_samples_are_drawn_by_themselves(store, ask):
    few = [f"few/{place}.png" for place in range(20)]
    for model in ACCURACIES:
        put_scores(store, model, "few", VAL[model][:20], few)
    done = ask("rank", "val", "few")
    assert "20 to 200 samples" in done.stderr
    rows = {each["model"]: each for each in json.loads(ask("rank", "val", "few", "--json").stdout)}
    value, low = rows["poor"]["value"], rows["poor"]["low"]
    assert value == pytest.approx((VAL["poor"].mean() + VAL["poor"][:20].mean()) / 2)
    spread = np.sqrt(VAL["poor"].var() / N + VAL["poor"][:20].var() / 20) / 2
    assert value - low == pytest.approx(1.96 * spread, rel=0.1)


def test_only_samples_that_all_models_have_count(store, ask):
    part = [f"{place:03d}.png" for place in range(50, 250)]
    put_scores(store, "part", "val", [1.0] * 100 + [np.nan] * 100, part)
    done = ask("rank", "val", "--json")
    assert "only the 100 samples of val that all models have count; one model has 200" in done.stderr
    rows = {each["model"]: each for each in json.loads(done.stdout)}
    assert {each["eval_settings"][0]["n"] for each in rows.values()} == {100}
    assert rows["good"]["value"] == pytest.approx(VAL["good"][50:150].mean())


def test_models_without_a_setting_are_left_out_and_named(store, ask):
    put_scores(store, "late", "val", VAL["best"])
    done = ask("rank", "val", "shift.1", "--json")
    assert {each["model"] for each in json.loads(done.stdout)} == set(ACCURACIES)
    assert done.stderr == "note: left out: late (no outputs on shift.1)\n"
    put_scores(store, "other", "val", VAL["best"], name="width")
    assert "other (no per-sample score 'top1' on val)" in ask("rank", "val").stderr


def test_the_smaller_loss_is_first(store, ask):
    for model, loss in (("a", 0.3), ("b", 0.2), ("c", 0.25)):
        put_scores(store, model, "pets", [loss, loss + 1] * 30, name="nll")
        put_scores(store, model, "toys", [loss, loss + 1] * 30, name="width")
    rows = json.loads(ask("rank", "pets", "--score", "nll", "--json").stdout)
    assert [(each["model"], each["rank"]) for each in rows] == [("b", 1), ("c", 2), ("a", 3)]
    assert "%" not in ask("rank", "pets", "--score", "nll").stdout.replace("95 %", "")
    done = ask("rank", "toys", "--score", "width", "--better", "higher")
    assert "larger is better" in done.stderr
    assert [line.split()[2] for line in done.stdout.splitlines()[4:]] == ["a", "c", "b"]


@pytest.mark.parametrize("command", ["rank", "grid"])
def test_a_declared_direction_is_not_turned_round(store, program, command):
    done = program("testbed", command, "val", "--better", "lower", code=1)
    assert "declares that higher is better, but lower was given: leave it out" in done.stderr


def test_the_answer_says_who_leads_by_how_much_and_whether_it_is_significant(store, ask):
    def answer(setting, *words):
        return ask("rank", setting, *words).stdout.splitlines()[0]

    right = np.arange(N)
    for model, share in (("half", 100), ("third", 66), ("twin", 100)):
        put_scores(store, model, "coins", (right < share).astype(float))
    assert (
        answer("coins", "--models", "half", "third")
        == "half 50.00 % leads; +17.00 points over third, significant (Holm)"
    )
    assert (
        answer("coins", "--models", "*")
        == "half, twin lead, each with 50.00 %; +17.00 points over third, significant (Holm)"
    )
    assert answer("val", "--models", "best", "good").endswith("leads; tied with best (Holm)")
    for model, loss in (("half", 0.5), ("third", 0.25)):
        put_scores(store, model, "losses", np.full(30, loss), name="nll")
    assert (
        answer("losses", "--score", "nll", "--better", "lower")
        == "third 0.2500 leads; −0.2500 against half, significant (Holm)"
    )


def test_ranges_of_tied_ranks():
    assert tied_ranks([2, 3, 5], {1, 2, 3, 4, 5}) == "2–3, 5"
    assert tied_ranks([1, 3], {1, 3, 4}) == "1–3"  # nobody has rank 2: two models share rank 1
    assert tied_ranks([], {1}) == ""
    assert tied_ranks([1, 1], {1}) == "1"


def test_mistakes_are_told_in_one_line(store, refusal):
    store.names.add("eval setting", "empty")
    put_scores(store, "lonely", "alone", [1, 0])
    put_scores(store, "best", "apart", [1, 0], ["x", "y"])
    put_scores(store, "good", "apart", [1, 0], ["z", "w"])
    assert "unknown eval setting 'vall'" in refusal("rank", "vall")
    assert "'val'" in refusal("rank", "vall")
    assert "the store has no outputs on empty; run: testbed run" in refusal("rank", "empty")
    assert "no outputs of eval setting 'x*'" in refusal("rank", "x*")
    assert "two or more models are needed on alone; available: 1, lonely" in refusal("rank", "alone")
    assert "unknown model 'bst'" in refusal("rank", "val", "--models", "bst", "good")
    assert "no outputs of model 'x*'" in refusal("rank", "val", "--models", "x*")
    assert "no outputs of lonely on val" in refusal("rank", "val", "--models", "lonely", "good")
    assert "no per-sample score 'speed'; it has top1" in refusal("rank", "val", "--models", "best", "--score", "speed")
    assert "no per-sample score 'speed'; it has top1" in refusal("rank", "val", "--score", "speed")
    put_scores(store, "deep", "wells", [np.inf, 0])
    put_scores(store, "flat", "wells", [1, 0])
    assert "deep on wells has an infinite top1" in refusal("rank", "wells")
    assert "the 2 models have no samples with top1 of apart in common" in refusal("rank", "apart")


def test_a_long_ranking_says_how_far_it_is(store, ask, monkeypatch):
    monkeypatch.setattr("testbed.console.output.SECONDS", 0)
    for place, model in enumerate(ACCURACIES):
        put_scores(store, model, "graded", np.roll(np.linspace(0, 1, 50), place), name="quality")
    told = ask("rank", "graded", "--score", "quality", "--better", "higher").stderr.splitlines()
    assert "reading scores: 0 %" in told
    assert [line for line in told if line.startswith("comparing pairs: ")][10] == "comparing pairs: 50 %"


def test_more_models_take_no_more_queries(store):
    asked = []
    sa.event.listen(store.database.engine, "before_cursor_execute", lambda *given: asked.append(given[2]))
    counts = []
    for models in ([], [f"further-{number}" for number in range(9)]):
        for model in models:
            put_scores(store, model, "val", VAL["good"])
        asked.clear()
        assert len(ranking(store, ["val"], [], "top1").rows) == len(ACCURACIES) + len(models)
        counts.append(len(asked))
    assert counts[1] <= counts[0]
