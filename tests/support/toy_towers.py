"""A toy world with captions: images with other targets, and encoders of images and texts that count their work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from toy import CLASSES, SIZE, WORK, ToyDataset, ToyImages

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.model_base import DualEncoder, StandardTransform

WIDTH = 12


class ToyTower(torch.nn.Module):
    """Embeds images by a linear map of the pixels, and texts by a table of their characters."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        WORK["networks made"] += 1
        generator = torch.Generator().manual_seed(seed)
        self.image = torch.nn.Parameter(0.05 * torch.randn(3 * SIZE * SIZE, WIDTH, generator=generator))
        self.text = torch.nn.Parameter(torch.randn(128, WIDTH, generator=generator))

    def encode_image(self, images: torch.Tensor) -> torch.Tensor:
        WORK["images embedded"] += len(images)
        return torch.tanh(images.flatten(1) - 0.5) @ self.image

    forward = encode_image

    def encode_text(self, tokens: torch.Tensor) -> torch.Tensor:
        WORK["texts embedded"] += len(tokens)
        place = torch.arange(1, tokens.shape[1] + 1)[None, :, None]
        return (torch.sin(self.text[tokens] * place) * (tokens > 0)[..., None]).sum(dim=1)


def tokenize(texts: Sequence[str]) -> torch.Tensor:
    rows = [[ord(character) % 128 for character in text[:40].ljust(40, "\0")] for text in texts]
    return torch.tensor(rows)


def toy_encoder(name: str = "tower", seed: int = 0, **options: Any) -> DualEncoder:
    arguments: dict[str, Any] = {
        "transform": StandardTransform(SIZE, SIZE),
        "encoder_loader": lambda: (ToyTower(seed), tokenize),
        "eval_batch_size": 64,
    }
    return DualEncoder(name=name, **{**arguments, **options})


class Targets:
    """The images of a toy data set, with other targets; ``twice`` repeats the first images under other names."""

    def __init__(self, kind: str, count: int = 90, language: str = "en", twice: int = 0, broken: Sequence[int] = ()):
        self.kind, self.count, self.language, self.twice, self.broken = kind, count, language, twice, list(broken)

    def spec(self) -> dict[str, Any]:
        return {"targets": vars(self)}

    def open(self) -> ToyImages:
        source = ToyImages(self.count, 0, self.broken)
        if self.twice:
            source.pixels = np.concatenate([source.pixels, source.pixels[: self.twice]])
            source.ids += [f"again/{index}" for index in range(self.twice)]
            source.targets += source.targets[: self.twice]
        if self.kind == "captions":
            source.targets = [
                [f"{self.language} {place} of {label}", f"{self.language} a picture of {label}"]
                for place, label in enumerate(source.targets)
            ]
            source.class_names = None
        elif self.kind == "choices":
            source.groups = list(source.ids)
            source.targets = [
                {"captions": [f"a {label}", f"a {(label + 1) % CLASSES}"], "answer": 0} for label in source.targets
            ]
        elif self.kind == "labels":
            source.targets = [sorted({label, (label * 3) % CLASSES}) for label in source.targets]
        return source


WORDS = [f"class {index}" for index in range(CLASSES)]


def zero_shot(name: str = "shown", prompt: str = "a {c}", **options: Any) -> EvalSetting:
    arguments: dict[str, Any] = {
        "dataset": Targets("classes"), "size": 90, "class_names": WORDS, "templates": [prompt], "keep_embeddings": True,
    }  # fmt: skip
    return EvalSetting(name=name, **{**arguments, **options})


def everything(language: str = "en") -> list[EvalSetting]:
    """Three tasks and a probe on the same 90 images, and the other 60 that the probe is fitted on."""
    end = "" if language == "en" else f".{language}"
    train = EvalSetting(name="train", dataset=ToyDataset(60, seed=5), size=60)
    return [
        zero_shot(f"shown{end}", f"{language} {{c}}", language=language, image_set="shown"),
        EvalSetting(
            name=f"captions{end}", dataset=Targets("captions", language=language), size=90, task="retrieval",
            language=language, image_set="shown",
        ),
        EvalSetting(name=f"choices{end}", dataset=Targets("choices"), size=90, task="selection", language=language),
        *(
            [
                EvalSetting(
                    name="probe", dataset=Targets("classes"), size=90, task="linear_probe", image_set="shown",
                    task_options={"train": "train", "probe": {"epochs": 2}},
                ),
                train,
            ]
            if language == "en"
            else []
        ),
    ]  # fmt: skip


ASKED = ["shown", "captions", "choices", "probe"]
