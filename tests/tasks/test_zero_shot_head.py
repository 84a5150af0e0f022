"""Zero-shot heads: CLIP benchmark's formula, and that a head is made once for a model and its prompts."""

from __future__ import annotations

import copy

import open_clip
import pytest
import torch

from testbed.data.sets.digits import CLASS_NAMES
from testbed.eval_settings.eval_setting_base import EvalSetting, StandardDataset
from testbed.graph.nodes import Given
from testbed.models.digits import TEMPLATES
from testbed.models.model_base import DualEncoder, LoadOptions, StandardTransform
from testbed.tasks.parts.zero_shot import ZeroShotHead, head_fingerprint, make_head

PROMPTS = [
    ["a photo of a cat", "a cat"],
    ["a photo of a dog", "a dog", "a dog barks", "man's best friend"],
    ["an owl"],
    ["a cat", "a dog"],
]


class Encoder:
    """Embeds a text as random numbers that are its own."""

    definition = DualEncoder("random", StandardTransform(8, 8), lambda: None, 1)

    def __init__(self, dtype=torch.float32):
        self.dtype = dtype
        self.calls = []

    def embed_text(self, texts):
        self.calls.append(list(texts))
        seeds = [int.from_bytes(text.encode()[:40], "little") % 2**31 for text in texts]
        rows = [3 + 5 * torch.randn(12, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
        return torch.stack(rows).to(self.dtype)


def head_of_clip_benchmark(embed_one, prompts):
    """CLIP benchmark's zero_shot_classifier, one prompt at a time."""
    columns = []
    for prompts_of_class in prompts:
        normalized = []
        for prompt in prompts_of_class:
            embedding = embed_one(prompt).double()
            normalized.append(embedding / embedding.norm())
        mean = sum(normalized) / len(normalized)
        columns.append(mean / mean.norm())
    return torch.stack(columns, dim=1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_head_follows_clip_benchmarks_formula(dtype):
    encoder = Encoder(dtype)
    expected = head_of_clip_benchmark(lambda prompt: encoder.embed_text([prompt])[0], PROMPTS)
    head = make_head(Encoder(dtype), PROMPTS)
    assert head.dtype == torch.float32
    assert head.device.type == "cpu"
    assert head.shape == (12, 4)
    torch.testing.assert_close(head.double(), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(head.norm(dim=0), torch.ones(4), rtol=0, atol=1e-6)


def test_a_head_of_a_real_network_follows_clip_benchmarks_formula():
    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
    }
    torch.manual_seed(0)
    network = open_clip.model.CLIP(**copy.deepcopy(config)).eval()
    tokenizer = open_clip.tokenizer.SimpleTokenizer(context_length=16)
    prompts = [[template.replace("{c}", name) for template in TEMPLATES] for name in CLASS_NAMES]
    with torch.no_grad():
        expected = head_of_clip_benchmark(lambda prompt: network.encode_text(tokenizer([prompt]))[0], prompts)
    # Batches of 7 cut through the classes.
    definition = DualEncoder("d", StandardTransform(32, 32), lambda: (network, tokenizer), 1, text_batch_size=7)
    head = make_head(definition.load(LoadOptions("cpu")), prompts)
    torch.testing.assert_close(head.double(), expected, rtol=0, atol=1e-5)


def test_each_different_text_is_embedded_once():
    encoder = Encoder()
    make_head(encoder, PROMPTS)
    (texts,) = encoder.calls
    assert sorted(texts) == sorted({prompt for of_class in PROMPTS for prompt in of_class})


def test_repeating_a_prompt_gives_it_more_weight():
    encoder = Encoder()
    twice = make_head(encoder, [["a cat", "a cat", "a dog"]])
    expected = head_of_clip_benchmark(lambda prompt: Encoder().embed_text([prompt])[0], [["a cat", "a cat", "a dog"]])
    torch.testing.assert_close(twice.double(), expected, rtol=0, atol=1e-6)
    assert not torch.allclose(twice, make_head(encoder, [["a cat", "a dog"]]))


# Identity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("identity", "prompts"),
    [
        ("other model", PROMPTS),
        ("model", PROMPTS[::-1]),
        ("model", PROMPTS[:3]),
        ("model", [*PROMPTS[:3], ["a cat", "a dog "]]),
        ("model", [PROMPTS[0][::-1], *PROMPTS[1:]]),
    ],
)
def test_another_model_or_another_prompt_makes_another_head(identity, prompts):
    assert head_fingerprint(identity, prompts) != head_fingerprint("model", PROMPTS)


def test_the_boundaries_between_classes_count():
    assert head_fingerprint("m", [["a", "b"], ["c"]]) != head_fingerprint("m", [["a"], ["b", "c"]])
    assert head_fingerprint("m", [["a", "b"]]) != head_fingerprint("m", [["ab"]])
    assert head_fingerprint("m", (("a",), ("b",))) == head_fingerprint("m", [["a"], ["b"]])


def test_some_classes_of_a_stored_head_are_embedded_again_for_a_check():
    encoder = Encoder()
    setting = EvalSetting("set", StandardDataset(name="x"), 1, class_names=["cat", "dog", "owl"], templates=["a {c}"])
    given = Given("model", setting, None, lambda role: [], lambda role: pytest.fail("no embeddings are read"))
    head, about = ZeroShotHead().make(encoder, given)
    assert about == {"classes": 3, "prompts": 1}
    stored = torch.zeros_like(head)
    again = ZeroShotHead().remake(stored, encoder, given, 2)
    assert (again != 0).any(dim=0).tolist() == [True, True, True]  # every class, since there are few
    again = ZeroShotHead().remake(stored, encoder, given, 1)
    torch.testing.assert_close(again[:, 0], head[:, 0])
    assert (again[:, 1:] == 0).all()
    assert (stored == 0).all()
