"""Texts under other protocols: what is embedded, and what is not."""

from __future__ import annotations

import numpy as np
import torch
from lab import lab, new_lab, work  # noqa: F401
from torch.nn.functional import normalize
from toy import CLASSES, toy_catalog
from toy_towers import WORDS, Targets, ToyTower, tokenize, toy_encoder, zero_shot

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.explain.axis import Stage, axes
from testbed.explain.bench import Bench
from testbed.explain.cell import StoredCell

NAMES = [f"Class_{number}" for number in range(CLASSES)]


class Mapped:
    """A tokenizer as `testbed.models.networks.transformers.Texts`: it has a length, and gives a mapping."""

    length = 40

    def __call__(self, texts):
        return Tokens(input_ids=tokenize([text[: self.length] for text in texts]))


class Tokens(dict):
    def to(self, device):
        return self["input_ids"]


def lower(texts):
    return tokenize([text.lower() for text in texts])


def encoder():
    return toy_encoder(encoder_loader=lambda: (ToyTower(), lower))


def variants(cell, *names):
    return [each for axis in axes() if axis.stage == Stage.TEXTS and axis.name in names for each in axis.of(cell)]


def test_texts_that_become_the_same_tokens_are_embedded_once(lab, work):  # noqa: F811
    catalog = toy_catalog(encoder(), zero_shot(class_names=NAMES, prompt="a photo of a {c}."))
    assert lab.run(catalog).ok
    work.clear()
    with lab.open() as store:
        cell = StoredCell.open(store, catalog, "tower", "shown")
        bench = Bench(cell, ["top1"])
        tried = variants(cell, "class names", "spelling of prompts")
        for each in tried:
            bench.exact((each,))
    assert "spelling of prompts: lower case" in map(str, tried)
    different = [f"a photo of a class{rest}" for each in range(CLASSES) for rest in (f"_{each}.", f"_{each}", each)]
    different += [f"a photo of a class {each}." for each in range(CLASSES)]
    assert bench.heads.texts == work["texts embedded"] == len(different)


def test_embeddings_in_the_store_are_taken(lab, work):  # noqa: F811
    shown = zero_shot(prompt="en a picture of {c}", class_names=[str(number) for number in range(CLASSES)])
    captions = EvalSetting("captions", Targets("captions"), 90, task="retrieval")
    catalog = toy_catalog(toy_encoder(), shown, captions)
    assert lab.run(catalog).ok
    work.clear()
    with lab.open() as store:
        bench = Bench(StoredCell.open(store, catalog, "tower", "shown"), ["top1"])
        raw, *_ = variants(bench.cell, "averaging of prompts")
        (found,) = bench.exact((raw,))
    assert found.value == lab.metrics("tower", "shown")["top1"].value
    assert (bench.heads.texts, bench.heads.reused, work["texts embedded"]) == (0, CLASSES, 0)


def test_a_tokenizer_with_a_length_of_its_own_cuts_texts(lab):  # noqa: F811
    tower = ToyTower()
    mapped = toy_encoder(encoder_loader=lambda: (tower, Mapped()))
    catalog = toy_catalog(mapped, zero_shot(prompt="{c} photo"))
    assert lab.run(catalog).ok
    with lab.open() as store:
        bench = Bench(StoredCell.open(store, catalog, "tower", "shown"), ["top1"])
        cut = {each.name: each for each in variants(bench.cell, "context length")}
        (found,) = bench.exact((cut["texts cut after 8 tokens"],))
        targets = np.asarray(bench.cell.dataset.targets)
    heads = tower.encode_text(tokenize([f"{word} photo"[:8] for word in WORDS])).double()
    images = torch.from_numpy(lab.outputs("tower", "shown.image_embeddings", "image_embeddings")).double()
    logits = normalize(images, dim=1) @ normalize(heads, dim=1).T
    assert found.value == np.mean(logits.argmax(dim=1).numpy() == targets)
