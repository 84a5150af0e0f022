"""Models and benchmarks as VLMEvalKit's guide has them written, in plug-in files: what is asked, said and reported."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from testbed.db.store import Store

PLUGINS = Path(__file__).parent.parent / "plugins"
MODELS, BENCHMARK = (str(PLUGINS / name) for name in ("vlmeval_models.py", "vlmeval_benchmark.py"))
RED, GREEN, BLUE = (200, 10, 10), (10, 200, 10), (10, 10, 200)


def picture(colour: tuple[int, int, int], kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (20, 10), colour).save(file, kind)
    return file.getvalue()


PICTURES = {1: [picture(RED, "JPEG")], 2: [picture(GREEN, "PNG"), picture(BLUE, "JPEG")], 4: [picture(BLUE, "PNG")]}


def encoded(pictures: list[bytes]) -> str:
    texts = [base64.b64encode(each).decode() for each in pictures]
    return texts[0] if len(texts) == 1 else repr(texts)


ROWS = [
    (1, encoded(PICTURES[1]), "What is <image>?", "red", "one", "dev", "NA"),
    (2, encoded(PICTURES[2]), "First <image> then <image>?", "green and blue", "two", "dev", "None"),
    (3, "1", "Again <image>?", "blue", "one", "test", ""),
    (4, encoded(PICTURES[4]), "A forbidden <image>!", "blue", "one", "test", ""),
    (5, encoded(PICTURES[4]), "What is <image>?", "blue", "two", "test", "=1+1"),
]
COLUMNS = ["index", "image", "question", "answer", "category", "split", "hint"]


@pytest.fixture
def lmu_data(tmp_path: Path) -> Path:
    """VLMEvalKit's folder with the table of the benchmark."""
    folder = tmp_path / "LMUData"
    folder.mkdir()
    pd.DataFrame(ROWS, columns=COLUMNS).to_csv(folder / "Colours.tsv", sep="\t", index=False)
    return folder


@pytest.fixture
def evaluate(program: Any, lmu_data: Path, tmp_path: Path) -> Callable[..., Any]:
    """Runs models on the benchmark; gives the outcomes, and notes what the models were asked."""

    def run(model: str, *words: str, code: int = 0, benchmark: str = BENCHMARK) -> Any:
        (tmp_path / "asked").write_text("")
        plugins = ("--plugin", MODELS, benchmark)
        what = (*plugins, "--models", model, "--eval-settings", "Colours", "--executor", "inline", "--json", *words)
        return json.loads(program("eval.py", *what, code=code, LMUData=str(lmu_data)).stdout)

    return run


def asked(tmp_path: Path) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]


def stored(tmp_path: Path, model: str) -> tuple[list[Any], dict[tuple[str, str], float | None]]:
    """The answers of a model, and the metrics of its last evaluation."""
    with Store.open(str(tmp_path / "testbed.db")) as store:
        last = max(store.evaluations.find([model], ["Colours"]), key=lambda each: each.id)
        answers = list(store.outputs.read(last.root, "text"))
        return answers, {(each.name, each.slice): each.value for each in store.results.metrics(last.id)}


def seen(number: int) -> list[list[str]]:
    """The pictures of a row as the models note them."""
    suffix = {b"\xff": ".jpg", b"\x89": ".png"}
    return [[suffix[each[:1]], hashlib.sha256(each).hexdigest()] for each in PICTURES[number]]


def test_a_model_and_a_benchmark_of_vlmevalkits_run_as_they_are(evaluate: Any, tmp_path: Path) -> None:
    (outcome,) = evaluate("seer")["outcomes"]
    assert outcome["status"] == "complete"
    end = "Say the colour."
    first, second = seen(2)
    assert asked(tmp_path) == [
        ["generate", "Colours", ["What is ", *seen(1), "?", end]],
        ["generate", "Colours", ["First ", first, " then ", second, "?", end]],
        ["generate", "Colours", ["Again ", *seen(1), "?", end]],
        ["generate", "Colours", ["A forbidden ", *seen(4), "!", end]],
        ["generate", "Colours", ["What is ", *seen(4), "?", end]],
    ]
    answers, metrics = stored(tmp_path, "seer")
    assert [each["text"] for each in answers] == ["Red", "Green and blue", "Red", None, "Blue"]
    assert answers[3]["finish_reason"] == "error: ValueError: I must not say"  # of this sample alone
    assert metrics == {
        ("score", "overall"): pytest.approx(100 / 3),  # that of the test split, not of the first one
        ("Overall", "split=dev"): 100.0,
        ("Overall", "split=test"): pytest.approx(100 / 3),  # the refused one is wrong
        ("one", "split=dev"): 100.0,
        ("one", "split=test"): 0.0,
        ("two", "split=dev"): 100.0,
        ("two", "split=test"): 100.0,
        ("coverage", "overall"): 1.0,
        ("empty", "overall"): 0.2,
        ("refused", "overall"): 0.2,
        ("refused", "reason/ValueError: I must not say"): 0.2,
    }
    assert evaluate("seer")["outcomes"][0]["status"] in ("skipped", "stored", "complete")
    assert asked(tmp_path) == []


def test_a_model_with_a_prompt_of_its_own_is_asked_by_that(evaluate: Any, tmp_path: Path) -> None:
    assert evaluate("own-prompt")["outcomes"][0]["status"] == "complete"
    assert asked(tmp_path)[0] == ["generate", "Colours", ["1001: What is <image>? (NA)", *seen(1)]]
    assert asked(tmp_path)[1:3] == [
        ["generate", "Colours", ["1002: First <image> then <image>? (None)", *seen(2)]],
        ["generate", "Colours", ["1003: Again <image>? (None)", *seen(1)]],
    ]


def test_an_edited_evaluate_scores_the_stored_answers_and_an_edited_prompt_asks_again(
    evaluate: Any, tmp_path: Path
) -> None:
    evaluate("seer")
    edited = tmp_path / "vlmeval_benchmark.py"
    code = Path(BENCHMARK).read_text()

    def checked(folder: Path) -> bool:
        """Whether only the check of an edited file has asked: a few samples, by the prompt of before."""
        found = asked(folder)
        return len(found) <= 5 and {parts[-1] for _, _, parts in found} <= {"Say the colour."}

    def again(old: str, new: str, status: int = 0) -> Any:
        assert old in code
        edited.write_text(code.replace(old, new))
        return evaluate("seer", benchmark=str(edited), code=status)["outcomes"][0]

    again('data["hit"] = [', 'data["hit"] = [True or ')
    assert checked(tmp_path)
    assert stored(tmp_path, "seer")[1]["Overall", "split=test"] == 100.0
    failed = again("data = load(eval_file)", 'data = load(eval_file)["nothing"]', status=1)
    assert failed["status"] == "failed"
    assert "scoring failed: KeyError: 'nothing'" in failed["reason"]
    assert checked(tmp_path)
    assert again("data = load(eval_file)", "data = load(eval_file)\n        data = data")["status"] == "derived"
    assert checked(tmp_path)
    again('ENDING = "Say the colour."', 'ENDING = "Which colour?"')
    assert [parts[-1] for _, _, parts in asked(tmp_path)] == ["Which colour?"] * 5


def test_stored_answers_are_scored_again_without_the_model(evaluate: Any, program: Any, lmu_data: Path) -> None:
    evaluate("seer")
    done = program("testbed", "rescore", "--plugin", BENCHMARK, LMUData=str(lmu_data))
    assert "1 evaluation" in done.stdout
    assert "Evaluating" not in done.stdout  # what the class prints is not the program's


def test_a_table_that_is_missing_is_told_and_not_downloaded(evaluate: Any, lmu_data: Path) -> None:
    (lmu_data / "Colours.tsv").unlink()
    (outcome,) = evaluate("seer", code=1)["outcomes"]
    assert outcome["reason"] == (
        f"Colours: the table {lmu_data}/Colours.tsv is missing; download https://example.com/Colours.tsv,"
        " or set LMUData"
    )


READING = """
import json
import os

from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import dump, load

from testbed.eval_settings.eval_setting_base import VLMEvalBenchmark
from testbed.registry import registry
from testbed.tracing import access_log


class Colours(ImageBaseDataset):
    TYPE = "VQA"
    DATASET_URL = {"Colours": "https://x/Colours.tsv"}
    DATASET_MD5 = {"Colours": None}

    def evaluate(self, eval_file, **judge_kwargs):
        data = load(eval_file)
        again = eval_file.replace(".xlsx", "_again.xlsx")
        dump(data, again)
        load(again)
        os.listdir(os.path.dirname(eval_file))
        os.path.exists(eval_file + ".json")
        if not (child := os.fork()):
            open(eval_file, "rb").close()
            os._exit(0)
        os.waitpid(child, 0)
        open(os.environ["POINTS"]).close()
        with open(os.environ["POINTS"] + ".seen", "w") as file:
            json.dump([os.path.dirname(eval_file), sorted(read[2] for read in access_log.noted())], file)
        return {"Overall": 50.0}


registry.add_eval_setting(VLMEvalBenchmark("Colours", Colours))
"""


def test_the_files_of_answers_that_testbed_makes_are_no_input_of_any_result(
    evaluate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads them: else another cell, stored meanwhile, would depend on a file that is gone at once."""
    (tmp_path / "reading.py").write_text(READING)
    (tmp_path / "points").write_text("1")
    monkeypatch.setenv("POINTS", str(tmp_path / "points"))
    told = evaluate("plain", benchmark=str(tmp_path / "reading.py"))
    assert [each["status"] for each in told["outcomes"]] == ["complete"]
    folder, read = json.loads((tmp_path / "points.seen").read_text())
    assert not [each for each in read if each.startswith(folder)]
    assert str(tmp_path / "points") in read
