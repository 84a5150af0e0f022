"""Captions of a file against reference captions, with the programs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from caption_world import draw, write

REFERENCES = {
    "a.jpg": ["A dog runs on the beach.", "a brown dog running"],
    "b.jpg": ["Two cats sleep on a red sofa."],
    "c.jpg": ["A man rides a wave.", "a surfer"],
    "d.jpg": ["A bowl of soup."],
}
SAID = {"a.jpg": "a dog runs on the beach", "b.jpg": "Two cats, on a sofa!", "c.jpg": ""}  # d.jpg is missing
NAMES = ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr"]


@pytest.fixture
def described(program: Callable[..., Any], tmp_path: Path) -> tuple[str, str, Any]:
    """The captioner, the setting and what ``eval.py`` said."""
    for name in REFERENCES:
        draw(tmp_path / name, len(name))
    rows = [f'{name},"{text}"' for name, texts in REFERENCES.items() for text in texts]
    write(tmp_path / "x.csv", "\n".join(["image,caption", *rows]))
    write(tmp_path / "said.json", SAID)
    model, setting = f"replay:{tmp_path}/said.json", f"pairs:{tmp_path}/x.csv.captioning"
    words = ("--models", model, "--eval-settings", setting, "--executor", "inline")
    return model, setting, program("eval.py", *words)


def printed(program: Callable[..., Any], model: str, setting: str) -> dict[str, Any]:
    found = json.loads(program("db.py", "--print-eval", model, setting, "--json").stdout)
    return {each["metric"]: each for each in found}


def test_captions_of_a_file_are_compared_with_references(
    program: Callable[..., Any], described: tuple[str, str, Any], tmp_path: Path
) -> None:
    model, setting, done = described
    found = printed(program, model, setting)
    assert "(CIDEr)" in done.stdout
    assert f"{found['CIDEr']['value']:.4f}" in done.stdout
    assert {found[name]["n"] for name in NAMES} == {3}
    assert (found["coverage"]["value"], found["empty"]["value"], found["referenced"]["value"]) == (0.75, 0.25, 1)
    # of the 11 words all are right; the blank caption's references count in the penalty: 6 + 7 + 2 words
    assert found["Bleu_1"]["value"] == pytest.approx(2.718281828459045 ** (1 - 15 / 11))
    assert found["ROUGE_L"]["value"] == pytest.approx((1 + 2.44 * 5 / 7 / (5 / 7 + 1.44) + 0) / 3)
    assert 0 < found["CIDEr"]["value"] < 10
    out = tmp_path / "out"
    program("testbed", "export", "clip-benchmark", str(out))
    (record,) = [json.loads(path.read_text()) for path in out.glob("*.json")]
    assert record["task"] == "captioning"
    assert record["metrics"] == {name: found[name]["value"] for name in NAMES}


def test_an_older_store_gets_them_from_its_texts(
    program: Callable[..., Any], described: tuple[str, str, Any], tmp_path: Path
) -> None:
    model, setting, _ = described
    before = printed(program, model, setting)
    (path,) = tmp_path.glob("*.db")
    store = sqlite3.connect(path)  # as it was before there were such metrics
    for table in ("metrics", "scores"):
        store.execute(f"DELETE FROM {table} WHERE scorer LIKE 'overlap%'")
    store.execute("DELETE FROM evaluation_records")
    store.commit()
    store.close()
    assert not set(NAMES) & set(printed(program, model, setting))
    done = program("testbed", "rescore")
    assert done.stdout.endswith("1 evaluation: 1 added\n")
    after = printed(program, model, setting)
    assert {name: after[name]["value"] for name in before} == {name: before[name]["value"] for name in before}
