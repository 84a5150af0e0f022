"""A store with samples of every kind of task, made with toys in a second, and a catalog that knows its settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toy import noisy, toy_catalog, toy_model, toy_setting
from toy_captions import captioner, hash_encoder, vary
from toy_towers import Targets, toy_encoder

from testbed.answers import prompts
from testbed.data.source import Source
from testbed.eval_settings.digit_questions import DigitQuestionsTable
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.registry import Catalog
from testbed.runner.run import run

COUNT, BROKEN = 60, 7
SMALL = 12


class Referenced(Targets):
    """Toy images with two reference captions each."""

    def open(self) -> Any:
        """The images."""
        source = super().open()
        source.targets = [[vary(number), "a picture"] for number in range(len(source.ids))]
        source.class_names = None
        return source


class Judge:
    """Takes every answer for option A."""

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
        """A letter for each message."""
        return [Generation("A")] * len(messages)


class FewQuestions(DigitQuestionsTable):
    """The first questions about digits."""

    def open(self) -> Source:
        """The questions."""
        source = super().open()
        for name in ("ids", "targets", "slices"):
            setattr(source, name, getattr(source, name)[:SMALL])
        return source


def sample_catalog() -> Catalog:
    """Two classifiers, a dual encoder and two models that answer in words; a setting of each task."""
    return toy_catalog(
        toy_model("one", 1),
        toy_model("two", 2),
        toy_encoder("tower"),
        captioner("varied", vary),
        captioner("lettered", lambda number: "The answer is B." if number % 2 else "I cannot tell."),
        toy_setting("plain", COUNT, broken=[BROKEN]),
        toy_setting("noisy", COUNT, broken=[BROKEN], perturbation_fn_gpu=noisy),
        EvalSetting("labels", Targets("labels", SMALL), SMALL, task="multilabel", num_classes=10),
        EvalSetting("captions", Targets("captions", SMALL), SMALL, task="retrieval"),
        EvalSetting("choices", Targets("choices", SMALL), SMALL, task="selection"),
        EvalSetting("pairs", Targets("captions", SMALL), SMALL, task="clip_score"),
        EvalSetting("described", Referenced("captions", SMALL), SMALL, task="captioning"),
        hash_encoder("hash"),
        Generator("judge", Judge, eval_batch_size=8, weights="1"),
        EvalSetting(
            "questions",
            FewQuestions("choice"),
            SMALL,
            task="question_answering",
            task_options={"prompt": prompts.multiple_choice, "data_set": "questions"},
        ),
    )


def fill(url: str, catalog: Catalog) -> None:
    """Evaluates all models on all settings; cells that do not go together are unsupported."""
    settings = [
        "plain",
        "noisy",
        "labels",
        "captions",
        "choices",
        "pairs",
        "described",
        "described@hash",
        "questions",
        "questions@judge",
    ]
    report = run(
        catalog, RunOptions(db_url=url, executor="inline"), ["one", "two", "tower", "varied", "lettered"], settings
    )
    assert not report.of("failed"), report.of("failed")


def sample_store(folder: Path) -> tuple[str, Catalog]:
    """The URL of such a store, and the catalog."""
    catalog = sample_catalog()
    fill(str(folder / "samples.db"), catalog)
    return str(folder / "samples.db"), catalog


__all__ = ["BROKEN", "COUNT", "SMALL", "fill", "sample_catalog", "sample_store"]
