"""Texts that a model cuts are counted and told, in runs as in calls."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from toy_captions import captioner, catalog, hash_encoder, hashed
from toy_towers import Targets

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.execution.progress import SilentProgress
from testbed.graph.options import RunOptions
from testbed.metrics.caption_similarity_call import caption_similarity
from testbed.metrics.scorers.cut_texts import cut_texts
from testbed.models.model_base import LoadOptions
from testbed.runner.run import run

LIMIT = 6


class Short:
    """An embedder that takes six tokens: words, and one at each end."""

    max_seq_length = LIMIT

    def tokenizer(self, text: str, **options: Any) -> dict[str, Any]:
        return {"input_ids": [1, *text.split(), 2]}

    def encode(self, texts: list[str]) -> torch.Tensor:
        return hashed([" ".join(text.split()[: LIMIT - 2]) for text in texts])


class Telling(Short):
    """One that counts by itself, the instruction and a last token among them."""

    def uncut_lengths(self, texts: list[str], instruction: str) -> list[int]:
        return [len((instruction + text).split()) + 3 for text in texts]


def short(loader: Any = Short, **options: Any) -> Any:
    return hash_encoder("short", loader, architecture={"short": loader.__name__}, **options)


TEXTS = [
    "one",
    "one two three four",
    "one two three four five",
    "one two three four five",
    "a much longer text, by far",
]


@pytest.mark.parametrize(
    ("model", "cut"),
    [
        (short(), 2),
        (short(instruction="look: "), 3),
        (short(Telling), 3),
        (short(max_length=7), 1),
        (hash_encoder(), 0),
    ],
)
def test_different_texts_with_more_tokens_than_the_limit_are_counted(model: Any, cut: int) -> None:
    found = cut_texts(model.load(LoadOptions()), TEXTS)
    assert (found.cut, found.texts) == (cut, 4)


def test_the_call_counts_and_warns() -> None:
    with pytest.warns(UserWarning, match="short cuts 2 of 4 texts at its limit of 6 tokens"):
        found = caption_similarity(TEXTS[:2], TEXTS[2::2], scorer=short(), fine=False)
    assert found["truncated"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert caption_similarity(TEXTS[:1], TEXTS[1:2], scorer=short(), fine=False)["truncated"] == 0
        assert caption_similarity(TEXTS[:1], TEXTS[2:3], scorer=hashed, fine=False)["truncated"] is None


def test_a_run_tells_what_a_judge_cuts(tmp_path: Path) -> None:
    dataset = Targets("captions", count=12)
    setting = EvalSetting(name="shown", dataset=dataset, size=12, task="captioning")
    world = catalog(setting, captioner("long", lambda number: f"This is far too long a text of {number}."), short())
    progress = SilentProgress()
    options = RunOptions(db_url=str(tmp_path / "testbed.db"), executor="inline")
    assert run(world, options, ["long"], ["shown@short"], progress).ok
    (line,) = [note for note in progress.notes if " cuts " in note]
    references = {text for target in dataset.open().targets for text in target}
    captions = {f"This is far too long a text of {number}." for number in range(12)}
    longer = [text for text in references | captions if len(text.split()) + 2 > LIMIT]
    assert line == f"short cuts {len(longer)} of {len(references | captions)} texts at its limit of 6 tokens"
