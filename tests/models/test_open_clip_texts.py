"""Text towers run no further than their texts go: the same embeddings, for less work."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from testbed.models.networks.open_clip_texts import shorten

CONTEXT, EOT = 24, 99
KINDS = [{}, {"pool_type": "eos", "eos_id": EOT}, {"proj_bias": True}, {"proj_type": "none"}]


def tower(**text: Any) -> Any:
    """A small CLIP with random weights."""
    import open_clip

    torch.manual_seed(0)
    given = {"context_length": CONTEXT, "vocab_size": 100, "width": 32, "heads": 2, "layers": 2, **text}
    network = open_clip.model.CLIP(
        embed_dim=16,
        vision_cfg=open_clip.model.CLIPVisionCfg(layers=1, width=32, patch_size=8, image_size=16, head_width=16),
        text_cfg=open_clip.model.CLIPTextCfg(**given),
    )
    return network.eval()


def texts(ends: list[int]) -> torch.Tensor:
    """Token rows that end at these places, zeros after that."""
    rows = torch.randint(1, EOT, (len(ends), CONTEXT), generator=torch.Generator().manual_seed(1))
    for row, end in zip(rows, ends, strict=True):
        row[end], row[end + 1 :] = EOT, 0
    return rows


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens went through a transformer, call by call."""
    import open_clip

    seen: list[int] = []
    forward = open_clip.transformer.Transformer.forward

    def count(self: Any, states: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        seen.append(states.shape[1])
        return forward(self, states, *arguments, **named)

    monkeypatch.setattr(open_clip.transformer.Transformer, "forward", count)
    return seen


@pytest.mark.parametrize("options", KINDS)
@pytest.mark.parametrize(("ends", "length"), [([3, 5, 1], 8), ([7], 8), ([8], 16), ([3, CONTEXT - 1], CONTEXT)])
def test_short_texts_get_the_same_embeddings(
    options: dict[str, Any], ends: list[int], length: int, lengths: list[int]
) -> None:
    network, tokens = tower(**options), texts(ends)
    with torch.no_grad():
        expected = network.encode_text(tokens)
        found = shorten(network).encode_text(tokens)
    assert lengths == [CONTEXT, length]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("options", [{"pool_type": "last"}, {"pool_type": "first"}, {"no_causal_mask": True}])
def test_other_towers_are_left_alone(options: dict[str, Any], lengths: list[int]) -> None:
    network = shorten(tower(**options))
    with torch.no_grad():
        network.encode_text(texts([3]))
    assert lengths == [CONTEXT]
    assert "encode_text" not in vars(network)


def test_what_is_no_clip_of_open_clips_is_left_alone() -> None:
    network = torch.nn.Linear(2, 2)
    assert shorten(network) is network
    assert "encode_text" not in vars(network)
