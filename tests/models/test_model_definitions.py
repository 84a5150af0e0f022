"""Definitions of models: arguments, batch sizes, capabilities, classify, and how a loaded model runs."""

from __future__ import annotations

import socket

import pytest
import torch
from torch import nn
from torch.nn import functional

from testbed.errors import DefinitionError, RunError, WeightsError
from testbed.identity.describe import digest
from testbed.models.base.capability import EmbedsText
from testbed.models.base.runtime import ZeroShotClassifier
from testbed.models.model_base import (
    DualEncoder,
    ImageEncoder,
    LoadOptions,
    Model,
    StandardNormalization,
    StandardTransform,
)

TRANSFORM = StandardTransform(8, 8)
NORMALIZATION = StandardNormalization([0.5] * 3, [0.25] * 3)
CPU = LoadOptions("cpu")


def network(outputs=5, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, outputs), nn.BatchNorm1d(outputs), nn.Dropout(0.5))


def model(**options):
    arguments = {
        "name": "m",
        "transform": TRANSFORM,
        "classifier_loader": network,
        "eval_batch_size": 16,
        "normalization": NORMALIZATION,
        **options,
    }
    return Model(**arguments)


def images(count=4, seed=0):
    return torch.rand(count, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


class Towers(nn.Module):
    """Two encoders whose embeddings can be computed by hand."""

    def __init__(self):
        super().__init__()
        self.image = nn.Linear(192, 6)
        self.text = nn.Embedding(300, 6)
        self.batches = []

    def encode_image(self, images):
        return self.image(images.flatten(1))

    def encode_text(self, tokens):
        self.batches.append(len(tokens))
        return self.text(tokens).sum(dim=1)


def tokenize(texts):
    return torch.tensor([[min(ord(letter), 299) for letter in text.ljust(12)[:12]] for text in texts])


def towers(seed=0):
    torch.manual_seed(seed)
    return Towers(), tokenize


def dual(**options):
    arguments = {
        "name": "d",
        "transform": TRANSFORM,
        "encoder_loader": towers,
        "eval_batch_size": 16,
        "normalization": NORMALIZATION,
        **options,
    }
    return DualEncoder(**arguments)


# Arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transform": "resize"}, ["'m'", "transform", "'resize'"]),
        ({"eval_batch_size": 0}, ["eval_batch_size", "positive integer", "got 0"]),
        ({"eval_batch_size": 1.5}, ["eval_batch_size", "1.5"]),
        ({"adversarial_batch_size": 0}, ["adversarial_batch_size", "got 0"]),
        ({"classifier_loader": None}, ["'m'", "classifier_loader", "function without arguments"]),
        ({"classify": lambda images: images}, ["classify", "'images' and 'model'", "it takes images"]),
        ({"classify": lambda x, m: x}, ["classify", "it takes m, x"]),
    ],
)
def test_wrong_arguments_of_a_classifier_are_refused(options, words):
    with pytest.raises(DefinitionError) as caught:
        model(**options)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_wrong_arguments_of_encoders_are_refused():
    with pytest.raises(DefinitionError, match="encoder_loader"):
        ImageEncoder("e", TRANSFORM, None, 16)
    with pytest.raises(DefinitionError, match="'d': encoder_loader must be a function"):
        dual(encoder_loader=None)
    with pytest.raises(
        DefinitionError, match=r"'d': encoder_loader must return a pair \(network, tokenizer\), not Towers"
    ):
        dual(encoder_loader=lambda: Towers()).load(CPU)


def test_the_arguments_of_imagenet_testbed_are_taken_by_position():
    def classify(images, model):
        return images

    made = Model("m", TRANSFORM, network, 16, "resnet50", NORMALIZATION, classify, 3)
    assert (made.name, made.transform, made.classifier_loader, made.eval_batch_size) == ("m", TRANSFORM, network, 16)
    assert (made.arch, made.normalization, made.classify) == ("resnet50", NORMALIZATION, classify)
    assert made.adversarial_batch_size == 3


@pytest.mark.parametrize(
    ("options", "override", "plain", "under_attack"),
    [
        ({"eval_batch_size": 256}, None, 256, 32),
        ({"eval_batch_size": 20}, None, 20, 2),
        ({"eval_batch_size": 7}, None, 7, 1),
        ({"eval_batch_size": 256, "adversarial_batch_size": 5}, None, 256, 5),
        ({"eval_batch_size": 256, "adversarial_batch_size": 5}, 64, 64, 5),
        ({"eval_batch_size": 256}, 4, 4, 32),
    ],
)
def test_batches_are_an_eighth_under_attack_unless_it_is_said(options, override, plain, under_attack):
    assert model(**options).batch_size(False, override) == plain
    assert model(**options).batch_size(True, override) == under_attack


def test_capabilities():
    assert model().capabilities == {"logits", "gradients"}
    assert model(differentiable=False).capabilities == {"logits"}
    assert dual().capabilities == {"embed_image", "embed_text", "gradients"}
    encoder = ImageEncoder("e", TRANSFORM, network, 16)
    assert encoder.capabilities == {"embed_image", "gradients"}
    assert isinstance(dual().load(CPU), EmbedsText)
    assert not isinstance(encoder.load(CPU), EmbedsText)


@pytest.mark.parametrize(
    "change",
    [
        {"transform": StandardTransform(9, 8)},
        {"normalization": StandardNormalization([0.4] * 3, [0.25] * 3)},
        {"normalization": None},
        {"arch": "other"},
        {"classify": lambda images, model: model(images) * 2},
        {"architecture": {"library": "own"}},
        {"classifier_loader": lambda: network(6)},
    ],
)
def test_what_decides_the_logits_is_in_the_spec(change):
    assert digest(model(**change).spec()) != digest(model().spec())


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"eval_batch_size": 3}, {"model_type": "x"}, {"adversarial_batch_size": 2}]
)
def test_what_does_not_decide_the_logits_is_not_in_the_spec(change):
    assert digest(model(**change).spec()) == digest(model().spec())


# A loaded classifier ----------------------------------------------------------------------------------------------


def test_logits_are_those_of_the_network_on_normalized_images():
    expected = network().eval()((images() - 0.5) / 0.25)
    torch.testing.assert_close(model().load(CPU).logits(images()), expected)
    without = model(normalization=None).load(CPU).logits(images())
    torch.testing.assert_close(without, network().eval()(images()))


def test_a_loaded_network_is_frozen_and_in_evaluation_mode_but_differentiable():
    loaded = model().load(CPU)
    assert not loaded.network.training
    assert not any(parameter.requires_grad for parameter in loaded.network.parameters())
    batch = images().requires_grad_(True)
    loaded.logits(batch).sum().backward()
    assert batch.grad.abs().sum() > 0


def test_lower_precision_runs_by_autocast():
    exact = model().load(CPU).logits(images())
    rounded = model().load(LoadOptions("cpu", "bfloat16")).logits(images())
    assert rounded.dtype != torch.float32 or not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded.float(), exact, rtol=0.05, atol=0.05)
    assert not torch.equal(rounded.float(), exact)


def test_class_sublist_restricts_the_logits_in_its_order():
    loaded = model().load(CPU)
    full = loaded.logits(images())
    torch.testing.assert_close(loaded.classifier([3, 0])(images()), full[:, [3, 0]])
    torch.testing.assert_close(loaded.classifier()(images()), full)


def test_classify_gets_normalized_images_what_the_loader_returned_and_what_it_asks_for():
    calls = []

    def note(**given):
        calls.append(given)
        return given["model"](given["images"])

    plain = model(classify=lambda images, model: note(images=images, model=model))
    assert not plain.handles_class_sublist
    assert not plain.handles_attack
    loaded = plain.load(CPU)
    torch.testing.assert_close(loaded.logits(images()), network().eval()((images() - 0.5) / 0.25))
    (call,) = calls
    torch.testing.assert_close(call["images"], (images() - 0.5) / 0.25)
    assert call["model"] is loaded.network
    assert loaded.classifier([3, 0])(images()).shape == (4, 2)  # restricted afterwards

    calls.clear()
    told = model(classify=lambda images, model, class_sublist: note(images=images, model=model, classes=class_sublist))
    assert told.handles_class_sublist
    assert not told.handles_attack
    loaded = told.load(CPU)
    # It was told, and returned all five: they are not cut a second time.
    assert loaded.classifier([3, 0])(images()).shape == (4, 5)
    assert loaded.classifier()(images()).shape == (4, 5)
    assert [call["classes"] for call in calls] == [[3, 0], None]

    calls.clear()
    attacked = model(
        classify=lambda adversarial_attack, model, images: note(images=images, model=model, attack=adversarial_attack)
    )
    assert attacked.handles_attack
    loaded = attacked.load(CPU)
    loaded.classifier(None, {"eps": 0.5})(images())
    loaded.classifier()(images())
    assert [call["attack"] for call in calls] == [{"eps": 0.5}, None]


def test_classify_may_have_other_parameters_with_defaults():
    made = model(classify=lambda images, model, temperature=2.0: model(images) / temperature)
    torch.testing.assert_close(made.load(CPU).logits(images()), model().load(CPU).logits(images()) / 2)


def test_a_loader_may_return_any_object_for_classify():
    made = model(
        classifier_loader=lambda: {"scale": 3.0}, classify=lambda images, model: images.flatten(1) * model["scale"]
    )
    torch.testing.assert_close(made.load(CPU).logits(images()), (images() - 0.5).flatten(1) / 0.25 * 3)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (lambda images, model: images, "(4, 3, 8, 8)"),
        (lambda images, model: model(images)[:2], "(2, 5)"),
        (lambda images, model: model(images)[:, 0], "(4,)"),
        (lambda images, model: model(images).detach().numpy(), "ndarray"),
        (lambda images, model: None, "NoneType"),
    ],
)
def test_logits_of_another_shape_are_refused(result, found):
    with pytest.raises(RunError) as caught:
        model(classify=result).load(CPU).logits(images())
    assert "m: logits of shape (4, classes) were expected" in str(caught.value)
    assert found in str(caught.value)


# Loaded encoders --------------------------------------------------------------------------------------------------


def test_an_image_encoder_embeds_normalized_images():
    encoder = ImageEncoder("e", TRANSFORM, network, 16, NORMALIZATION)
    torch.testing.assert_close(encoder.load(CPU).embed_image(images()), network().eval()((images() - 0.5) / 0.25))
    assert not encoder.load(CPU).network.training


def test_a_dual_encoder_embeds_both_without_normalizing_the_embeddings():
    loaded, reference = dual().load(CPU), towers()[0]
    torch.testing.assert_close(loaded.embed_image(images()), reference.encode_image((images() - 0.5) / 0.25))
    torch.testing.assert_close(loaded.embed_text(["cat", "dog"]), reference.encode_text(tokenize(["cat", "dog"])))
    assert not any(parameter.requires_grad for parameter in loaded.network.parameters())


def test_texts_are_embedded_in_batches():
    loaded = dual(text_batch_size=3).load(CPU)
    texts = [f"text {index}" for index in range(8)]
    together = loaded.embed_text(texts)
    assert loaded.network.batches == [3, 3, 2]
    torch.testing.assert_close(together, torch.cat([loaded.embed_text([text]) for text in texts]))


def test_zero_shot_logits_are_100_times_the_cosine():
    loaded = dual().load(CPU)
    head = functional.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), dim=0)
    embeddings = loaded.embed_image(images())
    expected = 100 * functional.cosine_similarity(embeddings[:, :, None], head[None], dim=1)
    torch.testing.assert_close(ZeroShotClassifier(loaded, head)(images()), expected, rtol=1e-6, atol=1e-5)
    restricted = ZeroShotClassifier(loaded, head, [2, 0])(images())
    torch.testing.assert_close(restricted, expected[:, [2, 0]], rtol=1e-5, atol=1e-4)


def test_zero_shot_logits_are_float32_at_any_precision():
    loaded = dual().load(LoadOptions("cpu", "bfloat16"))
    head = functional.normalize(torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), dim=0)
    embeddings = loaded.embed_image(images())
    assert embeddings.dtype == torch.bfloat16
    logits = ZeroShotClassifier(loaded, head).from_embeddings(embeddings)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, 100 * functional.normalize(embeddings.float(), dim=-1) @ head)


# Random weights ---------------------------------------------------------------------------------------------------


def random_logits(made, seed):
    return made.load(LoadOptions("cpu", random_seed=seed)).logits(images(2))


def test_random_weights_are_the_same_for_the_same_seed():
    made = model(random_loader=lambda: nn.Sequential(nn.Flatten(), nn.Linear(192, 5)))
    torch.testing.assert_close(random_logits(made, 3), random_logits(made, 3), rtol=0, atol=0)
    assert not torch.equal(random_logits(made, 3), random_logits(made, 4))
    assert not torch.equal(random_logits(made, 3), made.load(CPU).logits(images(2)))


def test_random_weights_of_a_dual_encoder_are_the_same_for_the_same_seed():
    def pair():
        return Towers(), tokenize

    one, same, other = (dual(random_loader=pair).load(LoadOptions("cpu", random_seed=seed)) for seed in (0, 0, 1))
    torch.testing.assert_close(one.embed_text(["a"]), same.embed_text(["a"]), rtol=0, atol=0)
    torch.testing.assert_close(one.embed_image(images()), same.embed_image(images()), rtol=0, atol=0)
    assert not torch.equal(one.embed_text(["a"]), other.embed_text(["a"]))


@pytest.mark.parametrize("arch", ["squeezenet1_1", "timm/test_resnet.r160_in1k", "test_resnet"])
def test_random_weights_follow_from_the_architecture(arch):
    made = model(arch=arch, transform=StandardTransform(64, 64))
    first, again = made.make_random_network(2), made.make_random_network(2)
    for one, other in zip(first.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    different = made.make_random_network(3).state_dict()
    assert any(not torch.equal(value, different[key]) for key, value in first.state_dict().items())


@pytest.mark.parametrize("arch", [None, "an_architecture_of_my_own"])
def test_random_weights_of_what_nobody_can_build_are_refused(arch):
    with pytest.raises(WeightsError, match=r"m: --random-weights needs random_loader=.*arch="):
        model(arch=arch).make_random_network(0)


# Weights that may not be fetched ----------------------------------------------------------------------------------


def test_a_loader_tells_its_weights_when_nothing_may_be_fetched():
    model = Model("own", StandardTransform(8, 8), lambda: torch.nn.Linear(2, 2), 4)
    torch.manual_seed(0)
    told = model.weights(fetch=False)
    torch.manual_seed(0)
    assert told == model.weights()


def test_a_loader_that_wants_to_download_is_refused_when_nothing_may_be_fetched(capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/weights.pt"

        def load():
            print("Downloading:", url)
            return torch.hub.load_state_dict_from_url(url)

        assert Model("own", StandardTransform(8, 8), load, 4).weights(fetch=False) is None
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    assert capsys.readouterr().out == ""
    assert "connect" not in vars(socket.socket)
