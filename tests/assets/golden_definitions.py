"""Tiny definitions of every kind, whose identities stay as they are: `test_golden_identities` runs them.

Nothing here may be edited: an identity holds the source of what it describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image

from testbed.corruptions import Corruption
from testbed.data.source import ImageSource
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.identity.describe import digest_bytes
from testbed.models.model_base import (
    DualEncoder,
    Generation,
    GenerationConfig,
    Generator,
    Message,
    Model,
    StandardNormalization,
    StandardTransform,
    TextEncoder,
)

SIZE, CLASSES, WIDTH, COUNT = 8, 4, 6, 8
WORDS = [f"thing {index}" for index in range(CLASSES)]


class GoldenImages(ImageSource):
    def __init__(self, kind: str, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.name = "golden"
        self.pixels = generator.integers(0, 256, (COUNT, SIZE, SIZE, 3), dtype=np.uint8)
        self.ids = [f"golden/{index}" for index in range(COUNT)]
        labels = [index % (2 if kind == "two" else CLASSES) for index in range(COUNT)]
        self.targets: list[Any] = list(labels)
        self.class_names = [f"class {index}" for index in range(CLASSES)]
        if kind == "captions":
            self.targets = [[f"picture {place}", f"a picture of {label}"] for place, label in enumerate(labels)]
        elif kind == "choices":
            self.groups = list(self.ids)
            self.targets = [{"captions": [f"a {label}", f"a {label + 1}"], "answer": 0} for label in labels]
        elif kind == "labels":
            self.targets = [sorted({label, (label + 1) % CLASSES}) for label in labels]

    def image(self, position: int) -> Image.Image:
        return Image.fromarray(self.pixels[position])

    def digests(self, positions: Sequence[int]) -> list[str]:
        return [digest_bytes(self.pixels[position].tobytes()) for position in positions]


class Golden:
    def __init__(self, kind: str = "classes", seed: int = 0) -> None:
        self.kind, self.seed = kind, seed

    def spec(self) -> dict[str, Any]:
        return {"golden": self.kind, "seed": self.seed}

    def open(self) -> GoldenImages:
        return GoldenImages(self.kind, self.seed)


# Models -----------------------------------------------------------------------------------------------------------


class Linear(torch.nn.Module):
    def __init__(self, width: int = CLASSES) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(3 * SIZE * SIZE, width, generator=generator))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.tanh(images.flatten(1)) @ self.weight


class Towers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.image = Linear(WIDTH)

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        return self.image(images)

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.sin(tokens.float())


def tokenize(texts: Sequence[str]) -> torch.Tensor:
    return torch.tensor([[ord(character) for character in text.ljust(WIDTH)[-WIDTH:]] for text in texts])


def towers() -> Any:
    return Towers(), tokenize


def classify(
    images: torch.Tensor, model: Any, class_sublist: Any = None, adversarial_attack: Any = None
) -> torch.Tensor:
    logits = model(images)
    return logits if class_sublist is None else logits[:, class_sublist]


class Says:
    def generate(self, messages: list[Message], config: GenerationConfig) -> list[Generation]:
        return [Generation(f"a picture of {message.sample[-1]}") for message in messages]


class Letters:
    def encode(self, texts: list[str]) -> torch.Tensor:
        return torch.sin(tokenize(texts).float())


def models() -> list[Any]:
    transform = StandardTransform(SIZE, SIZE)
    return [
        Model("net", transform, Linear, 4, weights="net", num_classes=CLASSES, random_loader=Linear),
        Model(
            "normal", transform, Linear, 4, normalization=StandardNormalization([0.5] * 3, [0.25] * 3), weights="normal"
        ),
        Model("digested", transform, Linear, 4),
        Model("own", transform, Linear, 4, classify=classify, weights="own"),
        DualEncoder("towers", transform, towers, 4, weights="towers"),
        TextEncoder("letters", Letters, weights="letters", architecture={"letters": 1}),
        Generator("says", Says, eval_batch_size=4, weights="says"),
    ]


# Settings ---------------------------------------------------------------------------------------------------------


def darker(images: torch.Tensor) -> torch.Tensor:
    return images * 0.5


def noisy(images: torch.Tensor, seeds: Sequence[int]) -> torch.Tensor:
    return images * torch.tensor([0.5 + seed % 7 / 14 for seed in seeds]).reshape(-1, 1, 1, 1)


def against(images: torch.Tensor, model: Any, targets: Any) -> torch.Tensor:
    return images + 0.01 * torch.sign(model(images)[:, :1, None, None])


def smaller(image: Any) -> Any:
    return image.resize((SIZE // 2, SIZE // 2))


def share(logits: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
    return {"share": float((logits.argmax(1) == targets).float().mean())}


def setting(name: str, kind: str = "classes", **options: Any) -> EvalSetting:
    return EvalSetting(name=name, dataset=Golden(kind), **{"size": COUNT, **options})


def settings() -> list[EvalSetting]:
    words = {"class_names": WORDS, "templates": ["a {c}", "look, {c}"]}
    probe = {"train": "train", "probe": {"epochs": 1}}
    return [
        setting("plain"),
        setting("child", parent_eval_setting="plain", idx_subsample_list=[1, 3, 5], size=3),
        setting("sublist", "two", class_sublist=[0, 2]),
        setting("groups", "two", class_groups=[[0, 1], [2, 3]]),
        setting("metric", metrics_fn=share),
        setting("smaller", transform=smaller),
        setting("darker", perturbation_fn_cpu=darker),
        setting("noisy", perturbation_fn_gpu=noisy),
        setting("noisy-child", perturbation_fn_gpu=noisy, parent_eval_setting="noisy"),
        setting("fog", perturbation_fn_gpu=Corruption("fog", 3)),
        setting("against", perturbation_fn_gpu=against),
        setting("attacked", perturbation_fn_gpu=against, adversarial_attack={"eps": 0.1}),
        setting("shown", **words),
        setting("shown-noisy", perturbation_fn_gpu=noisy, **words),
        setting("kept", keep_embeddings=True, **words),
        setting("labels", "labels", task="multilabel", **words),
        setting("captions", "captions", task="retrieval"),
        setting("captions.k3", "captions", task="retrieval", task_options={"recall_k": [3]}),
        setting("choices", "choices", task="selection"),
        setting("pairs", "captions", task="clip_score"),
        EvalSetting(name="train", dataset=Golden("classes", 1), size=COUNT),
        setting("probe", task="linear_probe", task_options=probe),
        setting("probe-val", task="linear_probe", task_options={**probe, "validation": "plain"}),
        setting("described", "captions", task="captioning"),
        setting("prompted", "captions", task="captioning", task_options={"prompt": "What is it?"}),
        setting(
            "described-noisy",
            "captions",
            task="captioning",
            perturbation_fn_gpu=noisy,
            task_options={"generation": {"temperature": 0.5}},
        ),
    ]
