"""Your own checkpoints for open_clip: built as open_clip builds them, with the sizes that their tensors show."""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from open_clip import factory

from testbed.errors import WeightsError
from testbed.models import open_clip_models
from testbed.models.model_base import DualEncoder, LoadOptions
from testbed.models.open_clip_models import OpenClipFamily

FAMILY = OpenClipFamily()
CPU = LoadOptions("cpu")
TEXTS = ["a photo of a cat", "a dog, barking", "three owls in a tree"]
TEXT = {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
VIT: dict[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": TEXT,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "tiny-vit": VIT,
    "tiny-vit-quickgelu": {**VIT, "quick_gelu": True},
    "tiny-custom": {**VIT, "custom_text": True},
    "tiny-resnet": {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "patch_size": None},
        "text_cfg": TEXT,
    },
    "tiny-timm": {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 160, "timm_model_name": "test_vit", "timm_pool": "token", "timm_proj": "linear"},
        "text_cfg": TEXT,
        "custom_text": True,
    },
}


@pytest.fixture(autouse=True)
def _architectures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(factory, "_MODEL_CONFIGS", dict(factory._MODEL_CONFIGS))
    monkeypatch.setattr(factory, "_MODEL_CONFIG_PATHS", list(factory._MODEL_CONFIG_PATHS))
    (tmp_path / "configs").mkdir()
    for name, config in CONFIGS.items():
        (tmp_path / "configs" / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "configs")


def trained(architecture: str, path: Path, wrap: Any = lambda state: state, **options: Any) -> None:
    """Saves what open_clip would train, far enough from the activation's linear part that it matters."""
    torch.manual_seed(4)
    network = open_clip.create_model(architecture, pretrained_text=False, **options)
    for name, parameter in network.named_parameters():
        if "mlp" in name or "positional" in name or "pos_embed" in name:
            parameter.data += 0.3 * torch.randn_like(parameter)
    torch.save(wrap(network.state_dict()), path)


def assert_like(made: DualEncoder, pictures: list[Any], **asked: Any) -> None:
    """The definition gives what open_clip gives, made by its own factory from the same file."""
    theirs, _, preset = open_clip.create_model_and_transforms(**asked)
    length = {"context_length": asked["force_context_length"]} if "force_context_length" in asked else {}
    tokenizer = open_clip.get_tokenizer(asked["model_name"], **length)
    theirs, ours = theirs.eval(), made.load(CPU)
    with torch.no_grad():
        images = torch.stack([preset(picture) for picture in pictures])
        own = torch.stack([made.transform(picture) for picture in pictures])
        torch.testing.assert_close(ours.embed_image(own), theirs.encode_image(images), rtol=1e-3, atol=1e-4)
        torch.testing.assert_close(ours.embed_text(TEXTS), theirs.encode_text(tokenizer(TEXTS)), rtol=1e-3, atol=1e-4)


# The activation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [False, True])
def test_a_file_gets_the_activation_that_open_clip_builds(tmp_path: Path, pictures: Any, quick: bool) -> None:
    path = tmp_path / "w.pt"
    name = "tiny-vit-quickgelu" if quick else "tiny-vit"
    trained("tiny-vit", path)
    made = FAMILY.build(f"{name},{path}")
    assert_like(made, pictures, model_name=name, pretrained=str(path))
    said = made.remarks[0]
    assert said.startswith(f"activation {'QuickGELU' if quick else 'GELU'}")
    other = FAMILY.build(f"{'tiny-vit' if quick else 'tiny-vit-quickgelu'},{path}")
    image = made.transform(pictures[0])[None]
    with torch.no_grad():
        assert (made.load(CPU).embed_image(image) - other.load(CPU).embed_image(image)).abs().max() > 1e-3


def test_any_architecture_takes_quickgelu(tmp_path: Path, pictures: Any) -> None:
    path = tmp_path / "w.pt"
    trained("tiny-custom", path)
    name = f"tiny-custom-quickgelu,{path}"
    assert FAMILY.canonical(name) == name
    made = FAMILY.build(name)
    assert_like(made, pictures, model_name="tiny-custom", pretrained=str(path), force_quick_gelu=True)
    assert "QuickGELU" in made.remarks[0]
    plain = FAMILY.build(f"tiny-custom,{path}")
    assert made.spec()["network"] != plain.spec()["network"]


@pytest.mark.parametrize(
    "architecture", ["RN50", "RN101", "RN50x4", "RN50x16", "RN50x64", "ViT-L-14-336", "ViT-H-14-378", "ViT-B-32"]
)
def test_the_trap_is_said_both_ways(architecture: str) -> None:
    said = FAMILY.build(f"{architecture},/own.pt").remarks[0]
    assert said.startswith(f"activation GELU, as open_clip builds {architecture}")
    assert f"write {architecture}-quickgelu,FILE" in said
    assert open_clip.get_model_config(architecture).get("quick_gelu") is None
    quick = FAMILY.build(f"{architecture}-quickgelu,/own.pt").remarks[0]
    assert quick.startswith(f"activation QuickGELU, as {architecture}-quickgelu has")
    assert "trained with GELU" in quick


def test_a_published_tag_keeps_its_own_activation() -> None:
    for tag, activation in (("openai", "activation QuickGELU"), ("laion2b_s34b_b79k", "activation GELU")):
        assert FAMILY.build(f"ViT-B-32,{tag}").remarks == (activation,)


def test_a_network_is_built_again_only_where_a_file_does_not_give_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.pt"
    trained("tiny-custom", path)
    loaded: list[Any] = []
    load_into = open_clip_models.load_into
    monkeypatch.setattr(open_clip_models, "load_into", lambda *given: loaded.append(given[0]) or load_into(*given))
    FAMILY.build(f"tiny-custom,{path}").load(CPU)
    assert len(loaded) == 1
    monkeypatch.setattr(open_clip_models, "load_into", lambda *given: loaded.append(given[0]))  # gives nothing
    FAMILY.build(f"tiny-custom,{path}").load(CPU)
    assert len(loaded) == 3
    norm = loaded[-1].visual.ln_pre
    assert torch.equal(norm.weight, torch.ones_like(norm.weight))
    assert torch.equal(norm.bias, torch.zeros_like(norm.bias))


# Sizes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "size"), [("tiny-vit", 48), ("tiny-vit", 24), ("tiny-custom", 64), ("tiny-resnet", 96)]
)
def test_the_positional_embedding_shows_the_size_of_the_images(
    tmp_path: Path, pictures: Any, architecture: str, size: int
) -> None:
    path = tmp_path / "w.pt"
    trained(architecture, path, force_image_size=size)
    made = FAMILY.build(f"{architecture},{path}")
    assert made.transform.size == size
    assert_like(made, pictures, model_name=architecture, pretrained=str(path), force_image_size=size)
    assert any(f"images of {size} pixels, not " in each for each in made.remarks)


def test_so_does_that_of_a_tower_of_timm(tmp_path: Path, pictures: Any) -> None:
    path = tmp_path / "w.pt"
    torch.manual_seed(4)
    network = open_clip.create_model("tiny-timm", pretrained_text=False, force_image_size=96)
    torch.save(network.state_dict(), path)
    made = FAMILY.build(f"tiny-timm,{path}")
    assert made.transform.size == 96
    image = made.transform(pictures[0])[None]
    with torch.no_grad():
        expected = network.eval().encode_image(made.normalization(image))
        torch.testing.assert_close(made.load(CPU).embed_image(image), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("architecture", ["tiny-vit", "tiny-custom"])
@pytest.mark.parametrize("length", [8, 24])
def test_the_positional_embedding_shows_the_length_of_the_texts(
    tmp_path: Path, pictures: Any, architecture: str, length: int
) -> None:
    path = tmp_path / "w.pt"
    trained(architecture, path, force_context_length=length)
    made = FAMILY.build(f"{architecture},{path}")
    assert_like(made, pictures, model_name=architecture, pretrained=str(path), force_context_length=length)
    assert any(f"texts of {length} tokens, not 16" in each for each in made.remarks)


def test_a_folder_is_looked_at_too(tmp_path: Path, pictures: Any) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": VIT, "preprocess_cfg": {}}))
    trained("tiny-vit", folder / "open_clip_pytorch_model.bin", force_image_size=48)
    made = FAMILY.build(f"local-dir:{folder}")
    assert_like(made, pictures, model_name=f"local-dir:{folder}", force_image_size=48)


def test_the_size_is_part_of_the_identity(tmp_path: Path) -> None:
    specs = []
    for size in (32, 48):
        trained("tiny-vit", tmp_path / f"{size}.pt", force_image_size=size)
        specs.append(FAMILY.build(f"tiny-vit,{tmp_path / f'{size}.pt'}").spec()["network"])
    assert specs[0] != specs[1]
    assert specs[0]["config"] == VIT


def test_an_embedding_of_no_square_is_refused(tmp_path: Path) -> None:
    def cut(state: dict[str, Any]) -> dict[str, Any]:
        state["visual.positional_embedding"] = state["visual.positional_embedding"][:12]
        return state

    trained("tiny-vit", tmp_path / "w.pt", cut)
    with pytest.raises(
        WeightsError, match=r"w\.pt: the positional embedding .* has 12 places, which do not form a square"
    ):
        FAMILY.build(f"tiny-vit,{tmp_path}/w.pt")


# SigLIP's bias ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["tiny-vit", "tiny-custom", "tiny-resnet"])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_checkpoint_trained_with_siglips_loss_is_loaded(
    tmp_path: Path, pictures: Any, architecture: str, shape: tuple[int, ...]
) -> None:
    def shaped(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "logit_bias": torch.full(shape, -7.0)}

    trained(architecture, tmp_path / "w.pt", shaped, init_logit_scale=np.log(10), init_logit_bias=-10)
    made = FAMILY.build(f"{architecture},{tmp_path}/w.pt")
    assert_like(made, pictures, model_name=architecture, pretrained=str(tmp_path / "w.pt"), init_logit_bias=-10)
    assert made.load(CPU).network.logit_bias.item() == -7
    assert "with SigLIP's bias" in made.remarks


# Files as open_clip's training writes them --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"epoch": 3, "name": "run", "state_dict": state, "optimizer": {}},
        lambda state: {"state_dict": {f"module.{name}": value for name, value in state.items()}},
        lambda state: {"state_dict": state, "best": np.float64(0.5), "args": argparse.Namespace(lr=0.1)},
    ],
)
def test_what_surrounds_the_weights_does_not_matter(tmp_path: Path, pictures: Any, wrap: Any) -> None:
    trained("tiny-vit", tmp_path / "w.pt", wrap, force_image_size=48)
    trained("tiny-vit", tmp_path / "plain.pt", force_image_size=48)
    made = FAMILY.build(f"tiny-vit,{tmp_path}/w.pt")
    assert_like(made, pictures, model_name="tiny-vit", pretrained=str(tmp_path / "plain.pt"), force_image_size=48)


def test_what_does_not_fit_or_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    trained("tiny-vit", tmp_path / "w.pt", lambda state: {k: v for k, v in state.items() if k != "visual.proj"})
    with pytest.raises(WeightsError, match=r"w\.pt cannot be loaded.*visual\.proj"):
        FAMILY.build(f"tiny-vit,{tmp_path}/w.pt").load(CPU)
    (tmp_path / "page.pt").write_text("<!DOCTYPE html>")
    with pytest.raises(WeightsError, match=r"page\.pt cannot be read as weights: it is an HTML page"):
        FAMILY.build(f"tiny-vit,{tmp_path}/page.pt").load(CPU)
    torch.save({"state_dict": copy.deepcopy(torch.nn.Linear(2, 2))}, tmp_path / "object.pt")
    with pytest.raises(WeightsError, match=r"object\.pt .*it holds the object torch\.nn\.modules\.linear\.Linear"):
        FAMILY.build(f"tiny-vit,{tmp_path}/object.pt").load(CPU)
