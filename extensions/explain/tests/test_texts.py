"""Texts under other protocols: what is embedded, and what is not."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
import torch
from lab import lab, new_lab, work  # noqa: F401
from torch.nn.functional import normalize
from toy import CLASSES, toy_catalog
from toy_towers import WORDS, Targets, ToyTower, tokenize, toy_encoder, zero_shot

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.explain.axis import Stage, axes
from testbed.extensions.explain.bench import Bench
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.extensions.explain.named import changed_setting, command_for
from testbed.extensions.explain.search import explain
from testbed.inputs import Inputs, using

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
        cell = EvaluatedCell.open(store, catalog, "tower", "shown")
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
        bench = Bench(EvaluatedCell.open(store, catalog, "tower", "shown"), ["top1"])
        raw, *_ = variants(bench.cell, "averaging of prompts")
        (found,) = bench.exact((raw,))
    assert found.value == lab.metrics("tower", "shown")["top1"].value
    assert (bench.heads.texts, bench.heads.reused, work["texts embedded"]) == (0, CLASSES, 0)


def test_a_tokenizer_with_a_length_of_its_own_cuts_texts(lab):  # noqa: F811
    mapped = toy_encoder(encoder_loader=lambda: (ToyTower(), Mapped()))
    catalog = toy_catalog(mapped, zero_shot(prompt="{c} photo"))
    assert lab.run(catalog).ok
    with lab.open() as store:
        bench = Bench(EvaluatedCell.open(store, catalog, "tower", "shown"), ["top1"])
        cut = {each.name: each for each in variants(bench.cell, "context length")}
        (found,) = bench.exact((cut["texts cut after 8 tokens"],))
        targets = np.asarray(bench.cell.dataset.targets)
    assert found.value == np.mean(guesses(lab, [[f"{word} photo"[:8]] for word in WORDS]) == targets)


def guesses(lab, prompts):  # noqa: F811
    """The classes that the tower finds with some prompts for each class."""
    images = torch.from_numpy(lab.outputs("tower", "shown.image_embeddings", "image_embeddings")).double()
    with torch.no_grad():
        embedded = [normalize(ToyTower().encode_text(tokenize(each)).double(), dim=1).mean(dim=0) for each in prompts]
    return (normalize(images, dim=1) @ normalize(torch.stack(embedded), dim=1).T).argmax(dim=1).numpy()


def sentences(file, names=WORDS):
    """A file in CuPL's form, as one that is given."""
    written = {name: [f"{name} is {10 * place}", f"such is {name}, {place}"] for place, name in enumerate(names)}
    file.write_text(json.dumps(written))
    return Inputs(templates=str(file)), list(written.values())


def test_sentences_for_each_class_come_from_a_file(lab, tmp_path):  # noqa: F811
    catalog = toy_catalog(toy_encoder(), zero_shot())
    assert lab.run(catalog).ok
    inputs, prompts = sentences(tmp_path / "cupl.json")
    with lab.open() as store, using(inputs):
        bench = Bench(EvaluatedCell.open(store, catalog, "tower", "shown"), ["top1"])
        (of_file,) = variants(bench.cell, "prompts of a file")
        (others,) = [each for each in variants(bench.cell, "class names") if each.name == "underscores for spaces"]
        (found,) = bench.exact((of_file,))
        assert bench.exact((of_file, others)) == (found,)  # the class names are not in the sentences
        made = changed_setting(bench.cell.setting, "x", ["prompts-of-a-file=cupl-json"])
        assert made.prompts.texts(None) == prompts
        command = command_for("tower", "shown", [of_file])
        targets = np.asarray(bench.cell.dataset.targets)
    assert found.value == np.mean(guesses(lab, prompts) == targets)
    words = ["testbed", "run", "tower", "--on", "shown~prompts-of-a-file=cupl-json", "--templates-file"]
    assert shlex.split(command) == [*words, str(tmp_path / "cupl.json")]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (WORDS[:-2], "cupl.json has no prompts for 2 classes, such as 'class 8'"),
        (["cat", "dog"], "cupl.json has no prompts for any class, such as 'class 0'"),
    ],
)
def test_a_file_that_lacks_classes_is_no_variant(lab, tmp_path, names, why):  # noqa: F811
    catalog = toy_catalog(toy_encoder(), zero_shot())
    assert lab.run(catalog).ok
    inputs, _ = sentences(tmp_path / "cupl.json", names)
    with lab.open() as store, using(inputs):
        told = explain(store, catalog, "tower", "shown", {"top1": (0.5, 5e-5)}, stages=[Stage.TEXTS])
    assert told.not_tried["prompts of a file"] == why
