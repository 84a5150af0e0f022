"""Captions with and without reference captions: what a captioning setting stores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.entities import SampleInfo
from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.models.base.thoughts import REVISION
from testbed.planning.identify import view_of
from testbed.tasks import caption_clip_score, caption_similarity, captioning, question_answering
from testbed.tasks.captioning import task
from testbed.tasks.parts.generation import READING

PLAIN = {"status", "words"}


def setting(**options: Any) -> EvalSetting:
    return EvalSetting("said", StandardDataset("x"), 3, task="captioning", task_options=options)


def scored(
    targets: list[Any], texts: list[str | None], groups: list[str] | None = None, **options: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    outputs = [
        {"text": text, "finish_reason": "stop"} if text is not None else {"text": "", "finish_reason": "missing"}
        for text in texts
    ]
    together = groups or [None] * len(targets)
    samples = [SampleInfo(str(place), "", *each) for place, each in enumerate(zip(targets, together, strict=True))]
    values: Any = SimpleNamespace(outputs=outputs, samples=samples)
    scores, metrics = task.score(values, setting(**options), None)
    return {each.name: each.values for each in scores}, {each.name: each for each in metrics}


@pytest.mark.parametrize("targets", [[3, 4], [[], []], [[1, 2], [3]], [{"answer": "A"}, None]])
def test_without_references_nothing_is_added(targets: list[Any]) -> None:
    scores, metrics = scored(targets, ["a dog", "a cat"])
    assert set(scores) == PLAIN
    assert set(metrics) == {"coverage", "empty", "words"}


def test_samples_without_references_or_captions_are_left_out_and_counted() -> None:
    targets = [["a dog runs"], [], ["a cat"], ["a bird sings", "a bird"]]
    scores, metrics = scored(targets, ["a dog runs", "a cow", None, "a bird"])
    assert np.isnan(scores["CIDEr"]).tolist() == [False, True, True, False]
    assert {metrics[name].n for name in ("Bleu_1", "Bleu_4", "ROUGE_L", "CIDEr")} == {2}
    assert metrics["referenced"].value == 0.75
    assert (metrics["CIDEr"].unit, metrics["Bleu_4"].unit) == ("", "fraction")


def test_the_standard_error_of_lengths_is_that_of_groups() -> None:
    texts = ["a", None, "a b c", "a b c", "a b", "a b"]
    alone = scored([0] * 6, list(texts))[1]["words"]
    groups = scored([0] * 6, list(texts), ["x", "x", "y", "y", "z", "z"])[1]["words"]
    assert (groups.value, groups.n) == (alone.value, alone.n) == (2.2, 5)
    without = np.array([10 / 4, 5 / 3, 7 / 3])  # the mean without each group
    assert groups.stderr == pytest.approx(np.sqrt(2 / 3 * ((without - 2.2) ** 2).sum()))


def test_a_setting_says_how_words_are_cut() -> None:
    targets, texts = [["A dog runs."], ["a cat"]], ["a dog runs", "a cat"]
    assert scored(targets, list(texts))[1]["ROUGE_L"].value == 1
    assert scored(targets, list(texts), overlap={"tokenizer": "none"})[1]["ROUGE_L"].value < 1
    views = [view_of(setting(**given)) for given in ({}, {"overlap": {}}, {"overlap": {"tokenizer": "none"}})]
    assert views[0] == views[1] == {"scorer": "captioning@2", "final_part": REVISION}
    assert views[2] != views[0]


def test_an_unknown_way_is_told_before_a_run() -> None:
    with pytest.raises(DefinitionError, match="tokenizer of captions is 'ptb' or 'none'"):
        view_of(setting(overlap={"tokenizer": "moses"}))
    with pytest.raises(DefinitionError, match="'overlap' has no 'beta'"):
        view_of(setting(overlap={"beta": 1}))


def test_other_final_parts_make_other_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever reads final parts is scored anew once they are found otherwise; the view of a score says how."""
    quiz = EvalSetting("quiz", StandardDataset("x"), 3, task="question_answering", task_options={"prompt": str})
    tasks = (captioning, caption_similarity, caption_clip_score)
    cells: list[tuple[Any, EvalSetting]] = [(module, setting()) for module in tasks]
    cells.append((question_answering, quiz))
    before = [module.task.view_spec(each) for module, each in cells]
    monkeypatch.setitem(READING, "final_part", REVISION + 1)
    after = [module.task.view_spec(each) for module, each in cells]
    assert all(one != other for one, other in zip(before, after, strict=True))
