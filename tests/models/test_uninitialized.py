"""Networks whose weights come from a file draw no random weights first, and are otherwise those of their library."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from testbed.models.loading.checkpoint_network import build, load_checkpoint
from testbed.models.loading.uninitialized import Uninitialized

# With parameters of their own, buffers that files do not hold, and positions that are computed.
NETWORKS = ["timm/vit_tiny_patch16_224", "timm/swin_s3_tiny_224", "timm/eva02_tiny_patch14_224", "swin_t"]
NETWORKS += ["timm/levit_128s", "timm/mobilevit_xxs"]


def saved(folder: Path, name: str) -> tuple[torch.nn.Module, Path]:
    """A network of random weights, and the file that it was saved to."""
    torch.manual_seed(5)
    network = build(name, 4).eval()
    torch.save(network.state_dict(), folder / "file.pth")
    return network, folder / "file.pth"


@pytest.mark.parametrize("name", NETWORKS)
def test_a_loaded_network_is_the_one_that_was_saved(tmp_path: Path, name: str) -> None:
    network, path = saved(tmp_path, name)
    loaded = load_checkpoint(name, path).eval()
    buffers = dict(network.named_buffers())
    for key, value in loaded.named_buffers():
        assert torch.equal(value, buffers[key]), key
    images = torch.rand(1, 3, 224, 224)
    with torch.inference_mode():
        assert torch.equal(loaded(images), network(images))


@pytest.mark.parametrize("name", ["timm/vit_tiny_patch16_224", "mobilenet_v3_small"])
def test_no_random_weights_are_drawn_for_those_in_a_file(tmp_path: Path, name: str) -> None:
    _, path = saved(tmp_path, name)
    before = torch.get_rng_state()
    load_checkpoint(name, path)
    assert torch.equal(torch.get_rng_state(), before)


def test_what_was_not_loaded_is_known() -> None:
    with Uninitialized() as mode:
        network = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    assert mode.has_left(network)
    network[0].load_state_dict({"weight": torch.ones(2, 3), "bias": torch.ones(2)})
    assert mode.has_left(network)
    network.load_state_dict({**network.state_dict(), "1.weight": torch.ones(2), "1.bias": torch.ones(2)})
    assert not mode.has_left(network)


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_networks_are_loaded_within_any_mode(tmp_path: Path, mode: type) -> None:
    network, path = saved(tmp_path, "mobilenet_v3_small")
    with mode():
        loaded = load_checkpoint("mobilenet_v3_small", path)
    assert all(torch.equal(value, loaded.state_dict()[key]) for key, value in network.state_dict().items())
