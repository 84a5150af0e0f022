"""``eval.py --scorers``: captions scored from the command line, also by processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testbed.db.store import Store

WORDS = str(Path(__file__).parent.parent / "plugins" / "words.py")
COUNT = 24


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """References, and the predictions of two captioners."""
    references = {
        f"v{number:02d}": f"A man walks by {number} trees. He sees dog {number % 5}. It is {number % 3} p.m. already."
        for number in range(COUNT)
    }
    (tmp_path / "references.json").write_text(json.dumps(references))
    (tmp_path / "said").mkdir()
    (tmp_path / "said" / "copy.json").write_text(json.dumps(references))
    noise = {name: f"Stocks fell by {number} points. Rain is near." for number, name in enumerate(references)}
    (tmp_path / "said" / "noise.json").write_text(json.dumps(noise))
    return tmp_path


ASKED = ("--models", "replay:said/*.json", "--eval-settings", "captions:references.json", "--plugin", WORDS)


def scored(path: Path) -> dict[tuple[str, str], np.ndarray]:
    found = {}
    with Store.open(str(path)) as store:
        assert list(store.maintenance.check()) == []
        for each in store.evaluations.find():
            for (_, name), values in store.scores.read(each.id).items():
                found[f"{Path(each.model).stem} on {each.eval_setting.partition('@')[2]}", name] = values
    return found


def test_scorers_make_a_setting_each(program: Any, captions: Path) -> None:
    done = program("eval.py", *ASKED, "--scorers", "own-scorers", "--executor", "inline", "--json")
    answer = json.loads(done.stdout)
    assert [Path(each["model"]).stem for each in answer["outcomes"]] == ["copy", "noise"]
    assert {each["status"] for each in answer["outcomes"]} == {"scored"}
    name = f"captions:{captions}/references.json@words"
    assert {each["setting"] for each in answer["outcomes"]} == {name}
    best = {Path(each["model"]).stem: each["value"] for each in answer["results"] if each["metric"] == "hm_cf"}
    assert best["copy"] == 1
    assert best["noise"] < 0.9
    again = program("eval.py", *ASKED[:2], "--eval-settings", name, "--plugin", WORDS)
    assert "All results were already stored" in again.stdout


def test_the_same_scores_from_two_processes_and_the_other_order(program: Any, captions: Path) -> None:
    program("eval.py", *ASKED, "--scorers", "words", "--executor", "inline", "--db-url", "one.db")
    turned = ["--models", "replay:said/noise.json", "replay:said/copy.json", *ASKED[2:]]
    program(
        "eval.py", *turned, "--scorers", "words", "--cpu-processes", "2", "--batch-size", "5", "--db-url", "two.db"
    )  # fmt: skip
    one, two = scored(captions / "one.db"), scored(captions / "two.db")
    assert set(one) == set(two)
    assert ("copy on words", "hm_cf") in one
    for key, values in one.items():
        np.testing.assert_array_equal(values, two[key])


def test_the_dry_run_says_what_is_scored(program: Any, captions: Path) -> None:
    done = program("eval.py", *ASKED, "--scorers", "words", "--dry-run")
    assert "2 scored by another model from stored outputs" in done.stdout
    passes = [line.strip() for line in done.stdout.splitlines() if line.strip().startswith("pass ")]
    assert [line.partition(":")[2].partition(",")[0].strip() for line in passes] == [
        "24 samples",
        "24 samples",
        "the texts of outputs that are not stored yet",
    ]
    assert not (captions / "testbed.db").exists()


def test_scorers_are_for_captions(program: Any, captions: Path) -> None:
    digits = ("--models", "replay:said/*.json", "--plugin", WORDS, "--scorers", "words")
    done = program("eval.py", *digits, "--eval-settings", "digits", code=1)
    assert "--scorers requires captioning settings; digits is for classification" in done.stderr
    done = program("eval.py", *digits, "--eval-settings", "digits-captions", code=1)
    assert "use digits-captions.captioning" in done.stderr
    done = program("eval.py", *ASKED, "--scorers", "wordz", code=1)
    assert "unknown model 'wordz'" in done.stderr
    assert "'words'" in done.stderr


def test_scored_settings_stay_as_they_are(program: Any, captions: Path) -> None:
    settings = ("captions:references.json.coarse@words", "captions:references.json")
    done = program(
        "eval.py", *ASKED[:2], "--eval-settings", *settings, "--plugin", WORDS, "--scorers", "words",
        "--executor", "inline", "--json",
    )  # fmt: skip
    names = {each["setting"].rpartition("/")[2] for each in json.loads(done.stdout)["outcomes"]}
    assert names == {"references.json.coarse@words", "references.json@words"}


def test_clip_score_wants_a_scorer_that_sees(program: Any, captions: Path) -> None:
    done = program(
        "eval.py", *ASKED, "--scorers", "words", "--scoring", "clip_score", "--dry-run", code=None
    )  # fmt: skip
    assert "needs embed_image and embed_text; words has embed_text" in done.stdout + done.stderr
