"""Captions of perturbed images, and captions whose words are drawn: neither depends on batches or processes."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from testbed.corruptions import Corruption
from testbed.db.store import Store
from testbed.eval_settings.eval_setting_base import EvalSetting, Scoring
from testbed.graph.options import RunOptions
from testbed.models.base.capability import Generation, GenerationConfig, Message
from testbed.models.base.generator import Generator
from testbed.registry import registry
from testbed.runner.run import run
from testbed.workers.kernels.perturb import perturbed

CLEAN = "digits-captions.captioning"
BATCHES: list[int] = []


class Describer:
    """Says of an image what its bytes are, in short."""

    def generate(self, messages: list[Message], config: GenerationConfig) -> list[Generation]:
        BATCHES.append(len(messages))
        return [Generation(hashlib.sha256(message.parts[0].tobytes()).hexdigest()[:12]) for message in messages]


class Gambler:
    """Draws its words."""

    def generate(self, messages: list[Message], config: GenerationConfig) -> list[Generation]:
        BATCHES.append(len(messages))
        drawn = (torch.rand(1).item(), np.random.rand(), random.random())
        return [Generation(" ".join(f"{each:.6f}" for each in drawn)) for _ in messages]


@pytest.fixture
def world(own_registry: Any) -> Any:
    """A registry with two captioners."""
    registry.add_model(Generator("describer", Describer, eval_batch_size=4, weights="by-heart"))
    registry.add_model(Generator("gambler", Gambler, eval_batch_size=4, weights="by-luck"))
    BATCHES.clear()
    return registry


def add(name: str, **fields: Any) -> str:
    clean = registry.get_eval_setting(CLEAN)
    given = {"dataset": clean.dataset, "size": clean.size, "task": "captioning", **fields}
    registry.add_eval_setting(EvalSetting(name, **given))
    return name


def said(folder: Path, model: str, setting: str, **options: Any) -> list[str]:
    """What a model says on a setting, in a store of its own."""
    url = str(folder / f"{len(list(folder.iterdir()))}.db")
    report = run(
        registry, RunOptions(db_url=url, **{"executor": "inline", "data_workers": 0, **options}), [model], [setting]
    )
    assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
    with Store.open(url) as store:
        (evaluation,) = store.evaluations.find([model], [setting])
        return [value["text"] for value in store.outputs.read(evaluation.id, "text")]


def reasons(folder: Path, model: str, settings: list[str]) -> dict[str, str]:
    options = RunOptions(db_url=str(folder / "reasons.db"), executor="inline", data_workers=0)
    return {
        each.setting: f"{each.status}: {each.reason}" for each in run(registry, options, [model], settings).outcomes
    }


def draw_cpu(image: torch.Tensor) -> torch.Tensor:
    return image * random.random() * float(np.random.rand()) * torch.rand(1)


def draw_gpu(images: torch.Tensor) -> torch.Tensor:
    return images * torch.rand(1, device=images.device)


@pytest.mark.parametrize(
    ("on_cpu", "on_gpu"),
    [(draw_cpu, Corruption("shot_noise", 1)), pytest.param(None, draw_gpu, marks=pytest.mark.long)],
)
def test_what_a_captioner_sees_depends_on_sample_and_seed_alone(world, tmp_path, on_cpu, on_gpu):
    setting = add("noisy-captions", perturbation_fn_cpu=on_cpu, perturbation_fn_gpu=on_gpu)
    first = said(tmp_path, "describer", setting)
    assert len(set(first)) == len(first) == 10
    assert not set(first) & set(said(tmp_path, "describer", CLEAN))
    assert said(tmp_path, "describer", setting, batch_size=3) == first
    assert said(tmp_path, "describer", setting, limit=5) == first[::2]
    assert set(BATCHES) == {4, 2, 3, 1}
    other = said(tmp_path, "describer", setting, seed=1)
    assert not set(other) & set(first)


def test_the_image_is_that_of_the_perturbation_to_8_bits():
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, 3), dtype=np.uint8)
    dataset = registry.load().get_eval_setting(CLEAN).dataset
    setting = EvalSetting("x", dataset, 10, perturbation_fn_gpu=lambda images: 1 - images)
    shown = perturbed(Image.fromarray(pixels), setting, "a", "cpu", 0)
    assert (shown.mode, shown.size) == ("RGB", (7, 5))
    assert np.array_equal(np.asarray(shown), 255 - pixels)
    setting = EvalSetting("x", dataset, 10, perturbation_fn_gpu=lambda images: images * 3 - 1)  # out of [0, 1]
    expected = np.clip(pixels.astype(float) * 3 - 255, 0, 255)
    assert np.array_equal(np.asarray(perturbed(Image.fromarray(pixels), setting, "a", "cpu", 0)), expected)


def test_what_cannot_be_shown_is_said(world, tmp_path):
    (tmp_path / "x.json").write_text('{"a": "A cat."}')
    unseen = world.get_eval_setting(f"captions:{tmp_path / 'x.json'}").dataset
    settings = [
        add("attacked", perturbation_fn_gpu=lambda images, model: images),
        add("attacking", adversarial_attack={"eps": 1}),
        add("targeted", perturbation_fn_gpu=lambda images, targets: images),
        add("cropped", perturbation_fn_gpu=lambda images: images[..., 1:]),
        add("infinite", perturbation_fn_cpu=lambda image: image / 0),
        add("broken", perturbation_fn_gpu=lambda images: images.nothing),
        add("nothing", perturbation_fn_gpu=lambda images: None),
        add("bytes", perturbation_fn_gpu=lambda images: (images * 255).to(torch.uint8)),
        add("blind", dataset=unseen, size=1, perturbation_fn_gpu=lambda images: images),
        add("tensor", transform=lambda image: torch.zeros(3, 8, 8), perturbation_fn_gpu=lambda images: images),
    ]
    said = reasons(tmp_path, "describer", settings)
    assert "attacks a classifier; models that generate text are not supported" in said["attacked"]
    assert "attacks a classifier; models that generate text are not supported" in said["attacking"]
    assert "needs targets; captioning has none" in said["targeted"]
    assert [said[name].partition(":")[0] for name in settings] == ["unsupported"] * 3 + ["failed"] * 7
    assert "returned shape (1, 3, 8, 7) for images (1, 3, 8, 8)" in said["cropped"]
    assert "perturbation_fn_cpu returned values that are not finite" in said["infinite"]
    assert "nothing" in said["broken"]
    assert "perturbation_fn_gpu returned None" in said["nothing"]
    assert "perturbation_fn_gpu returned torch.uint8" in said["bytes"]
    assert "blind perturbs images, but its data set has none" in said["blind"]
    assert "the transform of tensor must return a PIL image" in said["tensor"]


# Scores -----------------------------------------------------------------------------------------------------------


def overall(url: str, metric: str) -> dict[tuple[str, str], float]:
    with Store.open(url) as store:
        return {(each.model, each.eval_setting): each.value for each in store.results.find() if each.metric == metric}


@pytest.mark.slow
def test_clip_score_compares_with_the_images_as_they_were(world, tmp_path):
    dark = {"perturbation_fn_gpu": lambda images: images * 0}
    add("dark", **dark)
    add("dark-named", **dark, parent_eval_setting="dark", image_set=CLEAN)
    add("dark-elsewhere", **dark, parent_eval_setting="dark", image_set="digits.train")  # which has other images
    add("dark-nowhere", **dark, parent_eval_setting="dark", image_set="nothing")
    add("dark-part", **dark, parent_eval_setting="dark", idx_subsample_list=[8, 1, 3, 4], size=4, image_set=CLEAN)
    names = ["dark", "dark-named", "dark-elsewhere", "dark-nowhere", "dark-part"]
    by_clip = [f"{name}.clip_score@digits-clip" for name in names]
    for settings, limit in ((by_clip, None), (by_clip[4:], 3)):
        options = RunOptions(db_url=str(tmp_path / f"{limit}.db"), executor="inline", data_workers=0, limit=limit)
        report = run(registry, options, ["describer"], [f"{CLEAN}.clip_score@digits-clip", *settings])
        assert report.ok, [(each.setting, each.reason) for each in report.outcomes]
        with Store.open(options.db_url) as store:
            cells = {each.eval_setting: each for each in store.evaluations.find(["describer"])}
            embedded = [each for each in store.evaluations.find(["digits-clip"]) if each.origin == "run"]
            for name in settings:
                ((_, cosines),) = store.scores.read(cells[name].id, "cosine").items()
                assert len({round(float(each), 4) for each in cosines}) > 1  # black to the captioner alone
            said = {value["text"] for value in store.outputs.read(cells[settings[-1]].root, "text")}
            assert len(said) == 1
        assert len(embedded) == 1 or limit is not None  # whatever shows them
    values = overall(str(tmp_path / "None.db"), "clip_score")
    assert len({values["describer", name] for name in by_clip[:-1]}) == 1


@pytest.mark.slow
def test_settings_of_ones_own_score_what_was_said_on_the_setting_that_they_name(world, tmp_path):
    """Their fingerprint follows the captions, whatever they say of images and words themselves."""
    noise = {"perturbation_fn_gpu": Corruption("gaussian_noise", 3)}
    add("noisy", **noise)
    add("drawn", task_options={"generation": {"temperature": 0.7}})
    options = {"task": "caption_similarity", "task_options": {"similarity": {"fine": False}}}
    add("own-noisy", **options, scoring=Scoring("noisy", "digits-clip"))
    add("own-drawn", **options, scoring=Scoring("drawn", "digits-clip"))
    url = str(tmp_path / "x.db")

    def scores(model: str, name: str, seed: int) -> dict[str, float]:
        again = RunOptions(db_url=url, executor="inline", data_workers=0, seed=seed)
        assert run(registry, again, [model], [name, f"own-{name}", f"{name}.coarse@digits-clip"]).ok
        return {key[1]: value for key, value in overall(url, "coarse_similarity").items() if key[0] == model}

    for model, name in (("describer", "noisy"), ("gambler", "drawn")):
        first, other = scores(model, name, 0), scores(model, name, 1)
        assert first[f"own-{name}"] == first[f"{name}.coarse@digits-clip"]
        assert other[f"own-{name}"] == other[f"{name}.coarse@digits-clip"] != first[f"own-{name}"]


# Words that are drawn ---------------------------------------------------------------------------------------------


def test_words_that_are_drawn_depend_on_sample_and_seed_alone(world, tmp_path):
    setting = add("drawn", task_options={"generation": {"temperature": 0.7}})
    first = said(tmp_path, "gambler", setting)
    assert set(BATCHES) == {1}
    assert len(set(first)) == 10
    assert said(tmp_path, "gambler", setting, batch_size=2) == first
    assert said(tmp_path, "gambler", setting, limit=5) == first[::2]
    assert not set(said(tmp_path, "gambler", setting, seed=1)) & set(first)
    BATCHES.clear()
    said(tmp_path, "gambler", CLEAN)
    assert set(BATCHES) == {4, 2}  # where nothing is drawn all is as before
