"""A toy world with captioners and a text embedder that count their work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from toy import WORK
from toy_towers import Targets

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.graph.build import Graph
from testbed.graph.nodes import Built
from testbed.identity.describe import digest_bytes
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.models.base.text_encoder import TextEncoder
from testbed.registry import Catalog
from testbed.tasks.captioning import Captioning
from testbed.tasks.parts.generation import texts_and_status
from testbed.tasks.task_base import add_task


class Captioner:
    """Says what it is told to say, by the number of the sample; counts its answers and the images that it is shown."""

    def __init__(self, say: Callable[[int], str | Generation]) -> None:
        self.say = say

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation]:
        WORK["answers"] += len(messages)
        WORK["images shown"] += sum(len(message.parts) > 0 for message in messages)
        said = [self.say(int(message.sample[-4:])) for message in messages]
        return [each if isinstance(each, Generation) else Generation(each) for each in said]


def captioner(name: str, say: Callable[[int], str | Generation], **options: Any) -> Generator:
    return Generator(name, lambda: Captioner(say), **{"eval_batch_size": 8, "weights": name, **options})


def vary(number: int) -> str:
    return f"A picture of {number % 5}. It has {number % 7} corners. Nothing else is there."


def repeat(number: int) -> str:
    return "A picture of 3. Nothing else is there."


def hashed(texts: Sequence[str]) -> torch.Tensor:
    WORK["texts hashed"] += len(texts)
    rows = torch.zeros(len(texts), 64)
    for row, text in zip(rows, texts, strict=True):
        for word in text.lower().split():
            row[int(digest_bytes(word.encode()), 16) % 64] += 1
    return rows


class Hash:
    def encode(self, texts: list[str]) -> torch.Tensor:
        return hashed(texts)


def hash_encoder(name: str = "hash", loader: Callable[[], Any] = Hash, **options: Any) -> TextEncoder:
    return TextEncoder(name, loader, **{"weights": "1", "architecture": {"hash": 1}, **options})


def catalog(*definitions: Any) -> Catalog:
    made = Catalog(packages=(), entry_points=False)
    for each in definitions:
        (made.add_eval_setting if isinstance(each, EvalSetting) else made.add_model)(each)
    return made


class Judged(Captioning):
    """Captions with a judge that is asked about each."""

    name = "judged_captions"

    def build(self, graph: Graph) -> Built:
        return Built(super().build(graph).outputs, {"verdicts": graph.answers(self.questions, by=graph.judge)})

    def questions(self, setting: EvalSetting, values: Any) -> list[Message]:
        texts, _ = texts_and_status(values.outputs)
        return [Message([str(text)], sample=sample.id) for text, sample in zip(texts, values.samples, strict=True)]


add_task(Judged())


def captions(name: str = "captions", **options: Any) -> EvalSetting:
    """90 images to be captioned."""
    return EvalSetting(name=name, dataset=Targets("captions"), size=90, **{"task": "captioning", **options})
