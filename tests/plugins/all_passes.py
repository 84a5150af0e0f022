"""A plug-in with one small cell for each kind of pass, and a file system whose writes fail as a test says.

The writes at ``failing://`` fail with the error that the variable FAILING names, for files of the kind FAILING_KIND.
"""

import os
from typing import ClassVar

import fsspec
import numpy as np
import torch
from fsspec.implementations.memory import MemoryFileSystem
from PIL import Image

from testbed.data.source import ImageSource
from testbed.entities import Metric, Score
from testbed.eval_settings.eval_setting_base import EvalSetting, Scoring
from testbed.graph.nodes import Built
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import DualEncoder, Generation, Generator, Message, Model, StandardTransform
from testbed.registry import registry
from testbed.tasks.parts.generation import GenerationTask, texts_and_status
from testbed.tasks.task_base import add_task

COUNT, CLASSES = 40, 4


class Dropped(Exception):
    """An error such as clients of object stores raise: no OSError, and of nobody's own module."""


ERRORS = {"refused": PermissionError("no credentials"), "dropped": Dropped("the answer ended early")}


class Failing(MemoryFileSystem):
    protocol = "failing"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def _open(self, path, mode="rb", **options):
        if mode == "wb" and os.environ.get("FAILING_KIND", "-") in path:
            raise ERRORS[os.environ["FAILING"]]
        return super()._open(path, mode, **options)


fsspec.register_implementation("failing", Failing, clobber=True)


class Images(ImageSource):
    name = "passes"

    def __init__(self, captions):
        self.pixels = np.random.default_rng(7).integers(0, 256, (COUNT, 8, 8, 3), dtype=np.uint8)
        self.ids = [f"{index:05d}" for index in range(COUNT)]
        self.targets = [[f"picture {index}"] if captions else index % CLASSES for index in range(COUNT)]
        self.class_names = None if captions else [f"class {index}" for index in range(CLASSES)]

    def image(self, position):
        return Image.fromarray(self.pixels[position])

    def digests(self, positions):
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class Pictures:
    def __init__(self, captions=False):
        self.captions = captions

    def spec(self):
        return {"passes": self.captions}

    def open(self):
        return Images(self.captions)


class Network(torch.nn.Module):
    def forward(self, images):
        return images.flatten(1)[:, :CLASSES]


class Tower(torch.nn.Module):
    def encode_image(self, images):
        return images.flatten(1)[:, :8]

    forward = encode_image

    def encode_text(self, tokens):
        return tokens[:, :8].float()


def tokenize(texts):
    return torch.tensor([[ord(each) for each in text[:8].ljust(8)] for text in texts])


class Speaker:
    def generate(self, messages, config):
        return [Generation("yes") for _ in messages]


class Judged(GenerationTask):
    name, scorer = "judged_pictures", "judged_pictures@1"

    def message(self, setting, sample, image):
        return Message([image, "What is this?"], sample=sample)

    def build(self, graph):
        return Built(super().build(graph).outputs, {"verdicts": graph.answers(self.questions, by=graph.judge)})

    def questions(self, setting, values):
        texts, _ = texts_and_status(values.outputs)
        return [Message([f"{number}: is {text!r} right?"]) for number, text in enumerate(texts)]

    def score(self, values, setting, model):
        right = np.array([each is not None for each in values.answers("verdicts", self.questions(setting, values))])
        return [Score("right", right, self.scorer)], [Metric("accuracy", right.mean(), COUNT, None, scorer=self.scorer)]


add_task(Judged())
taken = {"transform": StandardTransform(8, 8), "eval_batch_size": 16, "weights": "1"}
registry.add_model(Model(name="network", classifier_loader=Network, num_classes=CLASSES, **taken))
registry.add_model(DualEncoder(name="towers", encoder_loader=lambda: (Tower(), tokenize), **taken))
registry.add_model(Generator("speaker", Speaker, architecture={"speaker": 1}))
registry.add_model(Generator("judge", Speaker, architecture={"judge": 1}))
for setting in (
    EvalSetting("images", Pictures(), COUNT, num_classes=CLASSES),
    EvalSetting("rows", Pictures(), COUNT, num_classes=CLASSES, templates=["a {c}"], keep_embeddings=True),
    EvalSetting("texts", Pictures(captions=True), COUNT, task="retrieval"),
    EvalSetting("messages", Pictures(captions=True), COUNT, task="captioning"),
    EvalSetting("questions", Pictures(), COUNT, task="judged_pictures", scoring=Scoring(by="judge")),
):
    registry.add_eval_setting(setting)
