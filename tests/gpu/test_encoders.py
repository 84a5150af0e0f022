"""Networks on a device against the CPU: classifiers, dual encoders, text embedders, CLIPScore."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch
from device_under_test import DEVICE, sized
from torch import nn

from testbed.devices import seeded
from testbed.eval_settings.digits import TEMPLATES
from testbed.metrics import CLIPScore, clip_score
from testbed.metrics.scorers.retrieval import score_retrieval
from testbed.models.base.runtime import ZeroShotClassifier
from testbed.models.base.text_encoder import TextEncoder
from testbed.models.digits import untrained
from testbed.models.model_base import DualEncoder, LoadOptions, Model, StandardNormalization, StandardTransform
from testbed.registry import registry
from testbed.tasks.parts.zero_shot import make_head

pytestmark = pytest.mark.gpu

ATOL = 1e-4
DIGITS = ["digits-logreg", "digits-knn", "digits-mlp", "digits-cnn"]
PUBLISHED = sized(["resnet18", "mobilenet_v3_small", "vit_b_32", "vit_tiny_patch16_224"], ["resnet18"])
LOWER = {"bfloat16": 0.05, "float16": 0.01}  # how far logits may lie from float32's, as a share of their range
WORDS = "zero one two three four five six seven eight nine a the of photo number handwritten image".split()


def images(count=12, side=32, seed=0):
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(seed))


def sentences(count):
    generator = np.random.default_rng(0)
    return [" ".join(generator.choice(WORDS, int(generator.integers(1, 9)))) + f" {row}" for row in range(count)]


def options(device, **given):
    return LoadOptions(device, **{"random_seed": 0, **given})


def model(name):
    """One of the digits' models, or a published architecture by the name that torchvision or timm gives it."""
    if name in DIGITS:
        return registry.get_model(name)
    return Model(name, StandardTransform(224, 224), dict, 16, arch=name)


def logits_of(name, device, batch, **given):
    with torch.no_grad():
        found = model(name).load(options(device, **given)).logits(batch.to(device))
    assert found.device.type == device
    return found


def spread(values):
    return float((values.max() - values.min()).abs())


# Classifiers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DIGITS)
def test_the_logits_of_the_digits_models(name, compare):
    compare(logits_of(name, DEVICE, images()), logits_of(name, "cpu", images()), ATOL)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_logits_of_published_networks(name, compare):
    batch = images(3, 224)
    expected = logits_of(name, "cpu", batch)
    compare(logits_of(name, DEVICE, batch), expected, ATOL * max(1.0, spread(expected)))


@pytest.mark.parametrize("name", ["digits-cnn", "digits-mlp", "resnet18"])
def test_logits_hardly_depend_on_the_batch(name, compare):
    batch = images(9, 64 if name == "resnet18" else 32).to(DEVICE)
    loaded = model(name).load(options(DEVICE))
    with torch.no_grad():
        whole = loaded.logits(batch)
        for size in (1, 4):
            parts = torch.cat([loaded.logits(part) for part in batch.split(size)])
            compare(parts, whole, ATOL * max(1.0, spread(whole)))


@pytest.mark.parametrize("dtype", LOWER)
@pytest.mark.parametrize("name", ["digits-mlp", "digits-cnn", "resnet18"])
def test_lower_precision_is_near_float32(name, dtype, compare):
    batch = images(6, 64 if name == "resnet18" else 32)
    expected = logits_of(name, "cpu", batch)
    found = logits_of(name, DEVICE, batch, dtype=dtype)
    assert found.dtype == getattr(torch, dtype)
    compare(found, expected, LOWER[dtype] * spread(expected))


@pytest.mark.parametrize("name", ["digits-cnn", "resnet18"])
def test_channels_last_is_the_same(name, compare):
    batch = images(5, 64 if name == "resnet18" else 32)
    expected = logits_of(name, "cpu", batch)
    compare(logits_of(name, DEVICE, batch, channels_last=True), expected, ATOL * max(1.0, spread(expected)))


def test_some_classes_in_an_order_of_their_own(compare):
    found = []
    for device in (DEVICE, "cpu"):
        loaded = registry.get_model("digits-mlp").load(options(device)).in_order([9, 8, 7, 6, 5, 4, 3, 2, 1, 0])
        with torch.no_grad():
            found.append(loaded.classifier([0, 3, 1])(images().to(device)))
    assert found[0].shape == (12, 3)
    compare(*found, ATOL)


# Dual encoders ----------------------------------------------------------------------------------------------------


def clip():
    return registry.get_model("digits-clip")


def embedded(device, **given):
    """Embeddings of images and texts by the digits' CLIP with random weights."""
    loaded = clip().load(options(device, **given))
    with torch.no_grad():
        return loaded.embed_image(images(40).to(device)), loaded.embed_text([*sentences(30), "one", "one"])


def test_the_embeddings_of_a_dual_encoder(compare):
    (found_images, found_texts), (expected_images, expected_texts) = embedded(DEVICE), embedded("cpu")
    assert found_texts.device.type == DEVICE
    compare(found_images, expected_images, ATOL)
    compare(found_texts, expected_texts, ATOL)
    assert torch.equal(found_texts[-1], found_texts[-2])


@pytest.mark.parametrize("dtype", LOWER)
def test_embeddings_of_lower_precision_point_the_same_way(dtype):
    for found, expected in zip(embedded(DEVICE, dtype=dtype), embedded("cpu"), strict=True):
        assert torch.cosine_similarity(found.float().cpu(), expected, dim=1).min() > 0.99


def test_channels_last_embeds_alike(compare):
    compare(embedded(DEVICE, channels_last=True)[0], embedded("cpu")[0], ATOL)


def zero_shot(device, batch_size=40, class_sublist=None):
    loaded = clip().load(options(device))
    prompts = [[template.replace("{c}", word) for template in TEMPLATES] for word in WORDS[:10]]
    head = make_head(loaded, prompts)
    assert head.device.type == "cpu"
    classifier = ZeroShotClassifier(loaded, head.to(device), class_sublist)
    with torch.no_grad():
        return head, torch.cat([classifier(part) for part in images(40).to(device).split(batch_size)])


def test_zero_shot_heads_and_logits(compare):
    (head, logits), (expected_head, expected) = zero_shot(DEVICE), zero_shot("cpu")
    assert logits.dtype == torch.float32
    compare(head, expected_head, 1e-5)
    compare(logits, expected, 5e-4)  # 100 times a cosine


@pytest.mark.parametrize("size", [1, 7])
def test_zero_shot_logits_hardly_depend_on_the_batch(size, compare):
    compare(zero_shot(DEVICE, size)[1], zero_shot(DEVICE)[1], 5e-4)


def test_zero_shot_logits_of_some_classes(compare):
    compare(zero_shot(DEVICE, 40, [4, 1])[1], zero_shot("cpu")[1][:, [4, 1]], 5e-4)


def test_recall_of_100_images_and_500_captions():
    """The ranking itself is computed on the CPU; embeddings that are rounded differently may move a rank."""
    texts, owners = sentences(500), np.repeat(np.arange(100), 5)
    found = []
    for device in (DEVICE, "cpu"):
        loaded = clip().load(options(device))
        with torch.no_grad():
            pictures, captions = loaded.embed_image(images(100).to(device)), loaded.embed_text(texts)
        _, metrics = score_retrieval(pictures.cpu().numpy(), captions.cpu().numpy(), owners)
        found.append({metric.name: metric.value for metric in metrics})
    assert found[0].keys() == found[1].keys()
    for name, value in found[1].items():
        assert found[0][name] == pytest.approx(value, abs=3 if name.endswith("rank") else 0.02), name


# Text embedders ---------------------------------------------------------------------------------------------------


class Letters(nn.Module):
    """Embeds texts by attention over their letters."""

    def __init__(self):
        super().__init__()
        with seeded(0):
            self.table = nn.Embedding(128, 32)
            self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
            self.last = nn.Linear(32, 24)

    def lengths(self, texts):
        return [len(text) for text in texts]

    def encode(self, texts):
        longest = max(map(len, texts))
        rows = [[ord(letter) % 127 + 1 for letter in text] + [0] * (longest - len(text)) for text in texts]
        tokens = torch.tensor(rows, device=self.table.weight.device)
        states = self.layer(self.table(tokens), src_key_padding_mask=tokens == 0)
        return self.last(states.masked_fill((tokens == 0)[..., None], 0).sum(dim=1) / len(WORDS))


def test_a_text_embedder(compare):
    texts = sentences(60)
    found, expected = (
        TextEncoder("letters", Letters, 16).load(LoadOptions(device)).embed_text(texts) for device in (DEVICE, "cpu")
    )
    assert found.device.type == DEVICE
    assert found.dtype == torch.float32
    compare(found, expected, ATOL)


def test_a_text_embedder_hardly_feels_other_texts(compare):
    texts, loaded = sentences(60), TextEncoder("letters", Letters, 16).load(LoadOptions(DEVICE))
    compare(torch.cat([loaded.embed_text([text]) for text in texts]), loaded.embed_text(texts), ATOL)


@pytest.mark.parametrize("dtype", LOWER)
def test_a_text_embedder_of_lower_precision(dtype):
    texts = sentences(20)
    found = TextEncoder("letters", Letters).load(LoadOptions(DEVICE, dtype)).embed_text(texts)
    expected = TextEncoder("letters", Letters).load(LoadOptions("cpu")).embed_text(texts)
    assert torch.cosine_similarity(found.cpu(), expected, dim=1).min() > 0.99


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("kind", ["nvembed", "gte", "nemotron", "qwen3"])
def test_language_models_that_embed_texts(kind, tmp_path, compare):
    from decoder_world import make

    from testbed.models.loading.folder_encoder import decoder

    texts = ["a cat sat on the mat", "two dogs", "owl", "a cat sat on the mat and two dogs in the park flew"]
    folder = make(tmp_path / kind, kind)
    found, expected = (
        decoder("tiny", kind, str(folder), task="judge text").load(LoadOptions(device)).embed_text(texts)
        for device in (DEVICE, "cpu")
    )
    compare(found, expected, ATOL)


# CLIPScore --------------------------------------------------------------------------------------------------------


def tiny_clip():
    with seeded(3):
        return untrained("digits-clip")


def definition():
    return DualEncoder(
        "tiny-clip", StandardTransform(32, 32), tiny_clip, 16, normalization=StandardNormalization([0.5] * 3, [0.5] * 3)
    )


def pictures(count=10):
    return (images(count, 40) * 255).to(torch.uint8)


def test_clip_score_of_images_on_the_device_is_computed_there():
    texts = sentences(10)
    metric = CLIPScore(definition(), keep_cosines=True)
    metric.update(pictures().to(DEVICE), texts)
    assert next(metric.model.parameters()).device.type == DEVICE
    expected = CLIPScore(definition(), keep_cosines=True)
    expected.update(pictures(), texts)
    torch.testing.assert_close(metric.cosines, expected.cosines, atol=1e-5, rtol=0)
    assert metric.compute().item() == pytest.approx(expected.compute().item(), abs=1e-3)


def test_clip_score_on_a_device_that_is_named():
    texts = sentences(10)
    metric = CLIPScore(definition(), device=DEVICE)
    score = metric(pictures(), texts)
    assert next(metric.model.parameters()).device.type == DEVICE
    assert score.item() == pytest.approx(clip_score(pictures(), texts, definition(), device="cpu").item(), abs=1e-3)


def test_the_sums_of_clip_score_may_lie_on_the_device():
    texts = sentences(10)
    metric = CLIPScore(definition()).to(DEVICE)
    metric.update(pictures()[:5], texts[:5])
    metric.update(pictures()[5:].to(DEVICE), texts[5:])
    assert metric.compute().device.type == DEVICE
    assert metric.compute().item() == pytest.approx(clip_score(pictures(), texts, definition()).item(), abs=1e-3)


def test_clip_score_as_a_function():
    score = clip_score(pictures().to(DEVICE), sentences(10), definition())
    assert score.device.type == DEVICE
    assert score.item() == pytest.approx(clip_score(pictures(), sentences(10), definition()).item(), abs=1e-3)


def test_clip_score_of_a_loaded_model_stays_where_it_is():
    texts = sentences(10)
    found, expected = (
        clip_score(texts, texts[::-1], clip().load(options(device))).item() for device in (DEVICE, "cpu")
    )
    assert found == pytest.approx(expected, abs=1e-3)


def test_clip_score_is_float32_although_torch_allows_tf32():
    """As in a user's own program, where torch lets cuDNN use TF32."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = True
    try:
        found = clip_score(pictures().to(DEVICE), sentences(10), definition()).item()
    finally:
        torch.backends.cudnn.allow_tf32 = before
    assert found == pytest.approx(clip_score(pictures(), sentences(10), definition()).item(), abs=1e-3)
