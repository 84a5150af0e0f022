"""Checkpoints with other names of tensors or another size of images give the logits of plain timm."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from timm.data import create_transform, resolve_data_config
from torch import nn
from torchvision import models

from testbed.errors import WeightsError
from testbed.models.checkpoint import checkpoint_model
from testbed.models.loading.checkpoint_network import load_checkpoint
from testbed.models.model_base import LoadOptions
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")
CPU = LoadOptions("cpu")
State = dict[str, torch.Tensor]


def network(name: str, **arguments: Any) -> nn.Module:
    torch.manual_seed(4)
    made = timm.create_model(name, num_classes=6, **arguments).eval()
    for each in made.parameters():
        nn.init.normal_(each, std=0.05)
    return made


def below(prefix: str, state: State) -> State:
    return {f"{prefix}{name}": value for name, value in state.items()}


def check(name: str, wanted: nn.Module, pictures: Any) -> Any:
    """The model of a checkpoint, whose logits are compared with those of the network by itself."""
    made = registry.get_model(name)
    image = made.transform(pictures[0])[None]
    with torch.no_grad():
        torch.testing.assert_close(
            made.load(CPU).logits(image), wanted(made.normalization(image)), rtol=1e-4, atol=1e-5
        )
    assert made.num_classes == 6
    return made


# Names of an architecture's authors --------------------------------------------------------------------------------


def convnext_of_facebook(state: State) -> State:
    renames = (
        (r"^head\.norm", "norm"),
        (r"^head\.fc", "head"),
        (r"^stem\.", "downsample_layers.0."),
        (r"^stages\.(\d+)\.downsample\.", r"downsample_layers.\1."),
        (r"^stages\.(\d+)\.blocks\.", r"stages.\1."),
        ("conv_dw", "dwconv"),
        (r"mlp\.fc", "pwconv"),
    )
    for pattern, theirs in renames:
        state = {re.sub(pattern, theirs, name): value for name, value in state.items()}
    return state


def of_mmpretrain(state: State, head: str) -> State:
    return {
        f"{head}{name[4:]}" if name.startswith("head.") else f"backbone.{name}": value for name, value in state.items()
    }


BY_AUTHORS = {
    "Facebook's script": lambda state: {"model": state, "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}}},
    "with an average": lambda state: {
        "model": {name: torch.zeros_like(value) for name, value in state.items()},
        "model_ema": state,
    },
    "Lightning": lambda state: {"state_dict": below("model.", state), "hyper_parameters": {"lr": 0.1}},
    "mmpretrain": lambda state: {"state_dict": of_mmpretrain(state, "head.fc"), "meta": {"epoch": 3}},
    "DDP": lambda state: below("module.", state),
}


@pytest.mark.parametrize("kind", BY_AUTHORS)
def test_names_of_the_authors_are_those_that_timm_renames(tmp_path: Path, pictures: Any, kind: str) -> None:
    wanted = network("test_convnext")
    torch.save(BY_AUTHORS[kind](convnext_of_facebook(wanted.state_dict())), tmp_path / "w.pth")
    made = check(f"timm/test_convnext,{tmp_path}/w.pth", wanted, pictures)
    assert "names of the architecture's authors, renamed by timm" in made.remarks


@pytest.mark.slow
def test_swin_of_microsoft(tmp_path: Path) -> None:
    wanted = network("swin_tiny_patch4_window7_224")
    theirs = {
        re.sub(r"layers\.(\d+)\.downsample", lambda found: f"layers.{int(found[1]) - 1}.downsample", name).replace(
            "head.fc.", "head."
        ): value
        for name, value in wanted.state_dict().items()
    }
    theirs["layers.0.blocks.0.attn.relative_position_index"] = torch.zeros(49, 49, dtype=torch.long)
    torch.save({"model": theirs}, tmp_path / "w.pth")
    loaded = load_checkpoint("timm/swin_tiny_patch4_window7_224", tmp_path / "w.pth")
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in wanted.state_dict().items())


def test_what_timm_would_resample_is_not_taken(tmp_path: Path) -> None:
    """A stem with larger patches, which timm's function for names also resizes."""
    state = dict(network("test_vit").state_dict())
    kernel = state["patch_embed.proj.weight"]
    state["patch_embed.proj.weight"] = torch.zeros(*kernel.shape[:2], 2 * kernel.shape[2], 2 * kernel.shape[3])
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"patch_embed\.proj\.weight is .*, not "):
        load_checkpoint("timm/test_vit", tmp_path / "w.pth")


# A head under another name -----------------------------------------------------------------------------------------


def parted(state: State, body: str, head: str) -> State:
    return {
        f"{head}{name.removeprefix('fc')}" if name.startswith("fc.") else f"{body}{name}": value
        for name, value in state.items()
    }


@pytest.mark.parametrize(
    ("body", "head"),
    [("backbone.", "head.fc"), ("", "last_linear"), ("encoder.", "classifier"), ("module.net.", "module.linear.1")],
)
def test_the_one_layer_that_is_left_over_is_the_head(tmp_path: Path, pictures: Any, body: str, head: str) -> None:
    wanted = network("test_resnet")
    torch.save({"state_dict": parted(wanted.state_dict(), body, head)}, tmp_path / "w.pth")
    made = check(f"timm/test_resnet,{tmp_path}/w.pth", wanted, pictures)
    assert f"head fc from {head}" in made.remarks


def test_of_two_layers_none_is_the_head(tmp_path: Path) -> None:
    state = network("test_resnet").state_dict()
    heads = {
        **parted(state, "backbone.", "head.a"),
        **below("head.b.", {"weight": state["fc.weight"], "bias": state["fc.bias"]}),
    }
    torch.save(heads, tmp_path / "w.pth")
    with pytest.raises(
        WeightsError, match=r"it has no head, missing fc\.weight, missing fc\.bias; left over: head\.a"
    ) as caught:
        load_checkpoint("timm/test_resnet", tmp_path / "w.pth")
    assert "and 3 more" in str(caught.value)


# Names without a rule ----------------------------------------------------------------------------------------------


def of_efficientnet_pytorch(state: State) -> State:
    """EfficientNet-PyTorch's names, in its order, which is timm's."""
    blocks: dict[str, int] = {}
    made = OrderedDict()
    for name, value in state.items():
        layer, _, leaf = name.rpartition(".")
        if found := re.match(r"blocks\.(\d+\.\d+)\.(\w+)", layer):
            block = blocks.setdefault(found[1], len(blocks))
            made[f"_blocks.{block}._{found[2].replace('conv_dw', 'depthwise_conv').replace('bn', 'bn_')}.{leaf}"] = (
                value
            )
        else:
            made[f"_{layer.replace('classifier', 'fc')}.{leaf}"] = value
    return made


def test_where_everything_agrees_one_by_one_the_order_decides(tmp_path: Path, pictures: Any) -> None:
    wanted = network("tf_efficientnet_lite0")
    torch.save(of_efficientnet_pytorch(wanted.state_dict()), tmp_path / "w.pth")
    made = check(f"timm/tf_efficientnet_lite0,{tmp_path}/w.pth", wanted, pictures)
    assert any("matched by order, _conv_stem.weight is conv_stem.weight" in each for each in made.remarks)
    other = registry.get_model(f"timm/efficientnet_lite0,{tmp_path}/w.pth")
    assert any("probably timm/tf_efficientnet_lite0 is meant" in each for each in other.remarks)


def test_the_file_of_another_padding_is_recognised_by_its_name(tmp_path: Path) -> None:
    state = network("tf_efficientnet_lite0").state_dict()
    for file, doubtful in (("tf_efficientnet_lite0-0aa007d2.pth", True), ("mine.pth", False)):
        torch.save(state, tmp_path / file)
        remarks = registry.get_model(f"timm/efficientnet_lite0,{tmp_path}/{file}").remarks
        assert any("pads as TensorFlow does" in each for each in remarks) is doubtful


def without_names(state: State) -> State:
    return {f"p{place:03}": value for place, value in enumerate(state.values())}


def test_shapes_alone_decide_only_if_asked(tmp_path: Path) -> None:
    wanted = network("test_vit")
    path = tmp_path / "w.pth"
    torch.save(without_names(wanted.state_dict()), path)
    count = len(wanted.state_dict())
    with pytest.raises(WeightsError) as caught:
        checkpoint_model("m", "timm/test_vit", path).load(CPU)
    for words in (
        f"missing cls_token and {count - 1} more",
        f"unexpected p000 and {count - 1} more",
        "--match-by-order",
    ):
        assert words in str(caught.value)
    made = checkpoint_model("m", "timm/test_vit", path, match_by_order=True)
    state = made.load(CPU).network.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in wanted.state_dict().items())
    assert made.spec()["network"]["matched"] == "by order"
    torch.save(wanted.state_dict(), path)
    assert "matched" not in made.spec()["network"]  # its names suffice


class Towers(nn.Module):
    """Layers of one shape after each other, which only names tell apart."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        for name in names:
            self.add_module(name, nn.Linear(3, 3))


@pytest.mark.parametrize(
    ("theirs", "certain"),
    [
        (("x.q", "x.k", "x.v"), True),
        (("key", "query", "value"), False),
        (("a", "b", "c"), False),
        (("f0", "f1", "f2"), False),
    ],
)
def test_layers_of_one_shape_are_not_matched_by_order_alone(theirs: tuple[str, ...], certain: bool) -> None:
    from testbed.models.checkpoints.names import ExpectedState, matched

    own = Towers(("q", "k", "v")).state_dict()
    state = dict(zip([f"{name}.{leaf}" for name in theirs for leaf in ("weight", "bias")], own.values(), strict=True))
    wanted = ExpectedState(own, ())
    assert wanted.fits(matched(wanted, state, "w").state) is certain
    assert wanted.fits(matched(wanted, state, "w", by_order=True).state)


def test_fewer_tensors_or_other_shapes_are_never_matched_by_order(tmp_path: Path) -> None:
    state = without_names(network("test_vit").state_dict())
    torch.save(dict(list(state.items())[:-1]), tmp_path / "w.pth")
    with pytest.raises(WeightsError) as caught:
        load_checkpoint("timm/test_vit", tmp_path / "w.pth", by_order=True)
    assert "--match-by-order" not in str(caught.value)


# The size of the images ----------------------------------------------------------------------------------------------


SIZES = {
    "a vision transformer": ("vit_tiny_patch16_224", 64),
    "of distillation, two tokens before the patches": ("deit_tiny_distilled_patch16_224", 96),
    "registers, published without a head": ("vit_small_patch14_reg4_dinov2", 98),
}


@pytest.mark.parametrize(("kind", "averaged"), [*((kind, False) for kind in SIZES), (next(iter(SIZES)), True)])
def test_the_positional_embedding_shows_the_size(tmp_path: Path, pictures: Any, kind: str, averaged: bool) -> None:
    name, side = SIZES[kind]
    wanted = network(name, img_size=side)
    state = wanted.state_dict()
    torch.save({"model": state, "ema": {"module": state}} if averaged else state, tmp_path / "w.pth")
    made = check(f"timm/{name},{tmp_path}/w.pth", wanted, pictures)
    assert any(f"built for images of {side} pixels" in each for each in made.remarks)
    assert made.transform(pictures[0]).shape == (3, side, side)
    assert "the shapes of the tensors in w.pth" in made.preprocessing_from
    assert not made.size_is_assumed


def test_the_size_of_a_transformer_of_torchvision(tmp_path: Path, pictures: Any) -> None:
    torch.manual_seed(1)
    wanted = models.vit_b_32(image_size=64, num_classes=6).eval()
    torch.save(wanted.state_dict(), tmp_path / "w.pth")
    made = check(f"vit_b_32,{tmp_path}/w.pth", wanted, pictures)
    assert made.transform(pictures[0]).shape == (3, 64, 64)


def test_arguments_that_say_the_size_give_timms_own_preprocessing(tmp_path: Path, pictures: Any) -> None:
    wanted = network("vit_tiny_patch16_224", img_size=64)
    torch.save({"state_dict": wanted.state_dict(), "args": Namespace(img_size=64, crop_pct=None)}, tmp_path / "w.pth")
    made = check(f"timm/vit_tiny_patch16_224,{tmp_path}/w.pth", wanted, pictures)
    theirs = create_transform(**resolve_data_config({"img_size": 64}, model=wanted))
    torch.testing.assert_close(
        made.normalization(made.transform(pictures[0])), theirs(pictures[0]), rtol=1e-5, atol=1e-6
    )


@pytest.mark.slow
def test_windows_whose_tables_show_no_size_are_built_by_the_arguments(tmp_path: Path) -> None:
    wanted = network("swin_tiny_patch4_window7_224", img_size=64)
    torch.save({"state_dict": wanted.state_dict(), "args": Namespace(img_size=64)}, tmp_path / "w.pth")
    made = registry.get_model(f"timm/swin_tiny_patch4_window7_224,{tmp_path}/w.pth")
    with torch.no_grad():
        images = torch.rand(1, 3, 64, 64)
        torch.testing.assert_close(made.load(CPU).network(images), wanted(images), rtol=1e-4, atol=1e-5)


def test_another_size_than_the_networks_is_refused_before_the_run(tmp_path: Path) -> None:
    torch.save(network("vit_tiny_patch16_224", img_size=64).state_dict(), tmp_path / "w.pth")
    with pytest.raises(WeightsError, match=r"images of 64 pixels.* cannot be evaluated on images of 96 pixels"):
        load_checkpoint("timm/vit_tiny_patch16_224", tmp_path / "w.pth", side=96)


def test_a_number_of_tokens_of_no_square_does_not_fit(tmp_path: Path) -> None:
    state = dict(network("vit_tiny_patch16_224", img_size=(32, 96)).state_dict())
    save_file(state, tmp_path / "w.safetensors")
    with pytest.raises(WeightsError, match=r"pos_embed is \(1, 13, 192\), not \(1, 197, 192\)"):
        load_checkpoint("timm/vit_tiny_patch16_224", tmp_path / "w.safetensors")


def test_a_network_that_averages_its_tokens_is_built_so(tmp_path: Path, pictures: Any) -> None:
    """MAE's fine-tuned networks: the file has fc_norm and no norm."""
    wanted = network("test_vit", global_pool="avg")
    assert "fc_norm.weight" in wanted.state_dict()
    torch.save({"model": wanted.state_dict()}, tmp_path / "w.pth")
    check(f"timm/test_vit,{tmp_path}/w.pth", wanted, pictures)


def test_the_size_of_tests_is_said_not_to_be_used(tmp_path: Path) -> None:
    config = {"input_size": (3, 160, 160), "crop_pct": 0.95, "test_input_size": (3, 192, 192), "test_crop_pct": 1.0}
    path = tmp_path / "w.pth"
    torch.save({"state_dict": network("test_resnet").state_dict(), "pretrained_cfg": config}, path)
    made = registry.get_model(f"timm/test_resnet,{path}")
    said = "test_input_size and test_crop_pct of pretrained_cfg in w.pth not used: --image-size 192 192 evaluates"
    assert any(said in each for each in made.remarks), made.remarks


def test_tensors_count_more_than_the_size_of_the_weights_before_fine_tuning(tmp_path: Path, pictures: Any) -> None:
    wanted = network("vit_tiny_patch16_224", img_size=64)
    config = {"input_size": (3, 224, 224), "crop_pct": 0.9}
    torch.save({"state_dict": wanted.state_dict(), "pretrained_cfg": config}, tmp_path / "w.pth")
    made = check(f"timm/vit_tiny_patch16_224,{tmp_path}/w.pth", wanted, pictures)
    assert made.transform(pictures[0]).shape == (3, 64, 64)
