"""``testbed run --until``: on as many samples in random order as it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from sqlalchemy import text

from testbed.db.store import Store

PLUGIN = Path(__file__).parent.parent / "plugins" / "drawn_world.py"
LIKE = ("--plugin", PLUGIN, "--executor", "inline", "--workers", "0")


@pytest.fixture
def run(ask, tmp_path):
    """A function that runs models on settings, and gives what is printed as JSON, and the number of decoded images."""

    def run(models, settings, *options, code=0):
        words = ("run", *models.split(), "--on", *settings.split(), *LIKE, *options)
        done = ask(*words, "--json", code=code)
        # A line may come twice: when a pass is complete, and ten seconds later.
        passes = set(re.findall(r"^(.*): ([\d,]+) of \2 images", done.stderr, flags=re.MULTILINE))
        return json.loads(done.stdout), sum(int(count.replace(",", "")) for _, count in passes)

    return run


def truth_of(run, model, setting):
    found, _ = run(model, setting)
    return next(each["value"] for each in found["results"] if each["metric"] == "top1")


def test_it_stops_when_the_metric_is_known_closely_enough(run):
    found, decoded = run("says-best says-bad", "drawn", "--until", "3")
    best, bad = found["cells"]
    for each in (best, bad):
        assert each["decided"]
        assert each["estimate"]["metric"] == "top1"
        value, low, high = (each["estimate"][name] for name in ("value", "low", "high"))
        assert max(value - low, high - value) <= 0.03
        assert low <= truth_of(run, each["model"], "drawn") <= high
    assert best["estimate"]["n"] < bad["estimate"]["n"] <= 1500
    assert decoded == best["estimate"]["n"] + bad["estimate"]["n"]  # each image once for each model


def test_the_same_command_says_the_same_and_computes_nothing(run):
    first, decoded = run("says-best", "drawn", "--until", "3")
    again, computed = run("says-best", "drawn", "--until", "3")
    assert decoded == first["cells"][0]["estimate"]["n"]
    assert computed == 0
    assert again["cells"][0]["estimate"] == first["cells"][0]["estimate"]
    narrower, computed = run("says-best", "drawn", "--until", "2")
    assert computed == narrower["cells"][0]["estimate"]["n"] - decoded  # only the new ones


def test_all_samples_reuse_the_first_ones_and_the_first_ones_reuse_all(run):
    found, decoded = run("says-good", "drawn.random-400")
    assert (found["outcomes"][0]["status"], decoded) == ("complete", 400)
    found, decoded = run("says-good", "drawn")
    assert decoded == 1100
    found, decoded = run("says-good", "drawn.random-700")
    assert (found["outcomes"][0]["status"], decoded) == ("derived", 0)
    found, decoded = run("says-good", "drawn", "--until", "1")
    assert (found["cells"][0]["estimate"]["n"], decoded) == (1500, 0)  # it is known already
    found, decoded = run("says-good says-bad", "drawn", "--until", "5")
    assert [each["estimate"]["n"] for each in found["cells"]] == [1500, decoded]


def test_it_stops_when_it_is_decided_which_model_is_better(run, ask):
    found, decoded = run("says-bad says-good", "drawn", "--until", "better:says-good")
    (bad,) = found["cells"]
    assert bad["estimate"]["high"] < 0
    assert decoded == 2 * bad["estimate"]["n"] < 600
    shown = ask("run", "says-bad", "--on", "drawn", *LIKE, "--until", "better:says-good").stdout
    assert re.search(r"says-bad +drawn +top1 +−\d\d\.\d\d worse +\[−\d", shown)


@pytest.mark.long
def test_what_is_too_close_to_call_takes_all_samples(run):
    found, _ = run("says-best", "drawn", "--until", "better:says-good")
    assert found["cells"][0]["estimate"]["n"] == 1500
    assert found["cells"][0]["estimate"]["value"] == pytest.approx(0.01)


def test_a_goal_that_takes_nearly_all_samples_says_so_once(ask):
    told = "says-best on drawn: ± 0.3 takes nearly all of the 1,500 samples; a run without --until"
    words = ("run", "says-best", "--on", "drawn", *LIKE, "--until")
    assert " ".join(ask(*words, "0.3").stderr.split()).count(told) == 1
    assert "nearly all" not in ask(*words, "3").stderr


@pytest.mark.long
def test_whole_groups_are_drawn_and_count_as_wholes(run):
    found, _ = run("says-bad", "drawn-groups drawn", "--until", "8")
    groups, alone = (each["estimate"] for each in found["cells"])
    assert groups["n"] == 5 * groups["units"]
    assert alone["units"] is None
    assert groups["n"] > 2 * alone["n"]
    assert groups["low"] <= 0.6 <= groups["high"]


def outputs_of(tmp_path):
    """The name of each setting → the evaluation that it is derived from, the bytes that it has itself, its logits."""
    with Store.open(str(tmp_path / "testbed.db")) as store, store.database.reading() as session:
        sizes = text("SELECT evaluation_id, SUM(size_bytes) FROM output_chunks GROUP BY 1")
        stored = dict(session.execute(sizes).all())
        return {
            each.eval_setting: (each.derived_from, stored.get(each.id, 0), store.outputs.read(each.id, "logits"))
            for each in store.evaluations.find(["says-best"])
        }


def test_outputs_of_several_looks_are_stored_once(run, ask, tmp_path, monkeypatch):
    monkeypatch.setenv("TESTBED_PAYLOADS", (tmp_path / "outputs").as_uri())
    run("says-best", "drawn.random-100")
    (alone,) = outputs_of(tmp_path).values()
    found, _ = run("says-best", "drawn", "--until", "3")
    assert found["cells"][0]["looks"] > 1
    looks = outputs_of(tmp_path)
    last = looks.pop(f"drawn.random-{found['cells'][0]['estimate']['n']}")
    assert last[:2] == (None, len(last[2]) * alone[1] / 100)
    for derived_from, size, _ in looks.values():
        assert (derived_from, size) == (found["cells"][0]["evaluation_id"], 0)
    assert (looks["drawn.random-100"][2] == alone[2]).all()
    assert len({path.parent for path in tmp_path.glob("outputs/*/*.bin")}) == 1
    assert ask("store", "check").returncode == 0
    _, decoded = run("says-best", "drawn.random-100")
    assert decoded == 0


def test_what_depends_on_the_batch_is_computed_anew_at_each_look(run):
    found, decoded = run("says-best", "drawn-shaken", "--until", "3")
    assert found["cells"][0]["computed"] == decoded > found["cells"][0]["estimate"]["n"]


def test_a_part_is_a_setting_of_its_own(run, ask, tmp_path):
    run("says-best", "drawn", "--until", "5")
    with Store.open(str(tmp_path / "testbed.db")) as store:
        names = {each.eval_setting for each in store.evaluations.find()}
    assert names
    assert all(name.startswith("drawn.random-") for name in names)
    assert "drawn.random-" in ask("grid", "drawn.random-*").stdout
    assert "the store has no outputs of eval setting 'drawn*'" in ask("rank", "drawn*", code=1).stderr


def test_answers_to_questions_are_counted_by_image(run):
    found, _ = run("digits-talker", "digits-vqa.choice", "--until", "10")
    (cell,) = found["cells"]
    assert (cell["decided"], cell["estimate"]["metric"]) == (True, "accuracy")
    assert cell["estimate"]["n"] < cell["population"]["size"]


def test_another_metric_is_chosen_by_name(run):
    found, _ = run("says-bad", "drawn", "--until", "top5:5")
    assert (found["cells"][0]["decided"], found["cells"][0]["estimate"]["metric"]) == (True, "top5")


@pytest.mark.parametrize(
    ("setting", "until", "said"),
    [
        (
            "drawn-whole",
            "1",
            "the main metric of drawn-whole.random-100, spread, is not a mean of scores of the samples",
        ),
        (
            "drawn",
            "nll:1",
            "the metric of drawn.random-100, nll, is not a mean of scores of the samples, each by itself",
        ),
        ("drawn", "top9:1", "drawn.random-100 has no metric top9; these work: top1, top5, as in"),
        ("drawn.random-200", "1", "drawn.random-200 is a part of a setting; --until chooses the part itself"),
    ],
)
def test_what_has_no_interval_is_given_up_with_a_reason(run, ask, setting, until, said):
    found, _ = run("says-best", setting, "--until", until, code=1)
    assert said in found["cells"][0]["why"]
    done = ask("run", "says-best", "--on", setting, *LIKE, "--until", until, code=1)
    assert f"Given up: says-best on {setting}: " in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--until", "half"), 2, "--until 'half': expected how close the metric must be known, in points"),
        (("--until", "0"), 2, "--until '0': expected"),
        (("--until", "nan"), 2, "--until 'nan': expected"),
        (("--until", "better:"), 2, "--until 'better:': expected"),
        (("--until", "better:says-best"), 2, "--until better:says-best: name another model to compare with it"),
        (("--until", "1", "--limit", "5"), 2, "--until runs on more and more samples; it cannot be used with --limit"),
        (("--until", "1", "--dry-run"), 2, "it cannot be used with --dry-run"),
    ],
)
def test_what_makes_no_sense_is_refused(ask, options, code, said):
    done = ask("run", "says-best", "--on", "drawn", *LIKE, *options, code=code)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_only_the_images_of_a_part_are_embedded(ask):
    done = ask("run", "digits-clip", "--on", "digits.linear_probe.random-50", "--dry-run", "--json")
    passes = {tuple(each["eval_settings"]): each["samples"] for each in json.loads(done.stdout)["passes"]}
    assert passes["digits.linear_probe.random-50.image_embeddings",] == 50


def test_more_samples_than_there_are(ask):
    done = ask("run", "says-best", "--on", "drawn.random-1500", *LIKE, code=1)
    assert "drawn.random-1500: the setting has 1,500 samples; for all of them, leave out .random-1500" in done.stdout


def test_scores_that_depend_on_the_other_samples_have_no_interval(run):
    found, _ = run("digits-talker", "digits-captions.captioning", "--until", "1", code=1)
    assert "CIDEr, is not a mean of scores of the samples, each by itself" in found["cells"][0]["why"]
