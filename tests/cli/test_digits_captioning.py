"""`digits-coca`, trained for real, describes digits that it never saw; with the programs, as in the docs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.db.store import Store

pytestmark = [pytest.mark.usefixtures("shared_cache"), pytest.mark.long, pytest.mark.timeout(300)]
SETTING = "digits-captioning"


def test_digits_are_described_whatever_the_batch_size(program: Any, tmp_path: Any) -> None:
    recipe = "from testbed.models import digits\ndigits.RECIPES['digits-coca']['steps'] = 250\n"
    (tmp_path / "recipe.py").write_text(recipe)
    words = ("--plugin", "recipe.py", "--models", "digits-coca", "--eval-settings", SETTING)
    words = (*words, "--executor", "inline", "--json")
    said = {}
    for size, limit in ((7, ("--limit", "20")), (64, ("--limit", "80"))):
        store = tmp_path / f"{size}.db"
        done = program("eval.py", *words, "--batch-size", str(size), *limit, "--db-url", f"sqlite:///{store}")
        assert ("training digits-coca" in done.stderr) <= (size == 7)
        answer = json.loads(done.stdout)
        (evaluation,) = {each["evaluation_id"] for each in answer["outcomes"]}
        with Store.open(f"sqlite:///{store}") as opened:
            ids = [each.id for each in opened.datasets.get(opened.evaluations.get(evaluation).dataset_id).samples]
            texts = [each["text"] for each in opened.outputs.read(evaluation, "text")]
            said[size] = dict(zip(ids, texts, strict=True))
    assert said[7].items() <= said[64].items()
    assert len(said[7]) == 20
    assert len(said[64]) == 80
    values = {each["metric"]: each["value"] for each in answer["results"]}
    assert values["exact"] >= 0.9
    assert values["exact"] <= values["ROUGE_L"] <= 1
    assert {"Bleu_1", "Bleu_4", "CIDEr", "coverage"} <= set(values)
    assert len({text.split()[2] for text in said[64].values()}) == 10
    assert "a handwritten eight with two loops." in said[64].values()

    printed = program("db.py", "--print-eval", "digits-coca", SETTING, "--db-url", f"sqlite:///{tmp_path}/64.db").stdout
    assert "exact" in printed
    assert "CIDEr" in printed
