"""The digits models, trained for real: how good they are, and that they are trained once."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from testbed.data.sets.digits import Digits
from testbed.models import digits
from testbed.models.base.capability import GenerationConfig, Message
from testbed.models.base.runtime import ZeroShotClassifier
from testbed.models.base.weights import of_files
from testbed.models.model_base import LoadOptions
from testbed.registry import registry
from testbed.tasks.parts.zero_shot import make_head

CPU = LoadOptions("cpu")


def split(name):
    source = Digits(name)
    transform = registry.get_model("digits-cnn").transform
    return torch.stack([transform(source.image(position)) for position in range(len(source))]), source


def accuracy(logits, source):
    return (logits.argmax(dim=1).numpy() == np.array(source.targets)).mean()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_digits_models_learn_and_are_trained_once(monkeypatch):
    images, source = split("test")
    names = ("digits-logreg", "digits-knn", "digits-cnn", "digits-clip")
    weights = {name: registry.get_model(name).weights() for name in names}
    files = {name: digits.DigitsWeights(name).path() for name in names}
    assert weights == {name: of_files([path]) for name, path in files.items()}
    assert len({each.id for each in weights.values()}) == 4

    # From here on nothing may be trained.
    def never(name):
        raise AssertionError(f"{name} was trained again")

    monkeypatch.setattr(digits, "train", never)
    assert {name: registry.get_model(name).weights(fetch=False) for name in names} == weights
    loaded = {name: registry.get_model(name).load(CPU) for name in names}

    assert accuracy(loaded["digits-cnn"].logits(images), source) >= 0.97
    clip = loaded["digits-clip"]
    head = make_head(clip, registry.get_eval_setting("digits").prompts.texts(None))
    embeddings = torch.nn.functional.normalize(clip.embed_image(images), dim=1)
    assert accuracy(embeddings @ head, source) >= 0.90

    # Its logits are equal to 1e-5 whatever the batch size, though they are large.
    classifier = ZeroShotClassifier(clip, head)
    by_seven = torch.cat([classifier(part) for part in images.split(7)])
    assert by_seven.abs().max() > 64
    torch.testing.assert_close(by_seven, classifier(images), rtol=0, atol=1e-5)

    # The two that scikit-learn knows too, on the means of 4 × 4 pixels: what is left of 32 × 32 at 8 × 8.
    train_images, train_source = split("train")
    train, test = (each[:, 0].reshape(-1, 8, 4, 8, 4).mean(dim=(2, 4)).flatten(1) for each in (train_images, images))
    for name, theirs in (
        ("digits-logreg", LogisticRegression(C=1.0, max_iter=2000)),
        ("digits-knn", KNeighborsClassifier(5, weights="distance")),
    ):
        expected = theirs.fit(train.numpy(), train_source.targets).predict(test.numpy())
        assert (loaded[name].logits(images).argmax(dim=1).numpy() == expected).mean() > 0.995


def test_weights_that_are_not_trained_yet_are_not_here(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    for name in digits.RECIPES:
        assert registry.get_model(name).weights(fetch=False) is None


def test_another_recipe_seed_or_model_has_another_place(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path))
    places = {digits.DigitsWeights(name).path().parent for name in digits.RECIPES}
    assert len(places) == len(digits.RECIPES)
    before = digits.DigitsWeights("digits-cnn").path()
    with monkeypatch.context() as patch:
        patch.setattr(digits, "SEED", 1)
        assert digits.DigitsWeights("digits-cnn").path() != before
    with monkeypatch.context() as patch:
        patch.setitem(digits.RECIPES, "digits-cnn", {"network": "ConvNet", "epochs": 13})
        assert digits.DigitsWeights("digits-cnn").path() != before
    assert digits.DigitsWeights("digits-cnn").path() == before


def test_an_untrained_captioner_says_something():
    loaded = registry.get_model("digits-coca").load(LoadOptions("cpu", random_seed=0))
    said = loaded.generate([Message([Digits("test").image(0)])] * 2, GenerationConfig())
    assert said[0] == said[1]
    assert said[0].text


@pytest.mark.parametrize("name", [name for name in digits.RECIPES if name != "digits-coca"])
def test_untrained_networks_have_the_shapes_of_their_task(name):
    made = registry.get_model(name)
    loaded = made.load(LoadOptions("cpu", random_seed=0))
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    if name == "digits-clip":
        assert loaded.embed_image(images).shape == (2, 64)
        assert loaded.embed_text(["a three", "a four", "a five"]).shape == (3, 64)
    else:
        assert loaded.logits(images).shape == (2, made.num_classes) == (2, 10)
    assert ("gradients" in made.capabilities) == (name != "digits-knn")
