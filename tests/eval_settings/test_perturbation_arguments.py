"""What a perturbation is called with: by name where it uses our names, else by place as in ImageNet-testbed."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from tables import cases

from testbed.corruptions import Corruption
from testbed.corruptions.adversarial import PGD
from testbed.corruptions.photometric import rotate
from testbed.data.perturbation import gpu_call
from testbed.errors import DefinitionError

OFFERED = {"images": "IMAGES", "model": "MODEL", "seeds": "SEEDS", "targets": "TARGETS"}


def call(function):
    """Calls a perturbation with tokens, as the runner calls it with tensors."""
    how = gpu_call(function)
    chosen = {name: OFFERED[name] for name in how.arguments}
    return function(**chosen) if how.by_name else function(*chosen.values())


def by_names(model, seeds, images):
    return model, seeds, images


def with_default(images, strength=3, seeds=None):
    return images, strength, seeds


def keyword_only(images, *, targets):
    return images, targets


def first_then_anything(images, *args, **options):
    return images, args, options


def positional_only(images, model, /):
    return images, model


class Invert(torch.nn.Module):
    def forward(self, images):
        return images


class Callable:
    def __call__(self, images, model):
        return images, model


@cases(
    ("function", "arguments", "result"),
    [
        (lambda images: images, ["images"], "IMAGES"),
        (lambda images, model: (images, model), ["images", "model"], ("IMAGES", "MODEL")),
        (lambda model, images: (model, images), ["model", "images"], ("MODEL", "IMAGES")),
        (by_names, ["model", "seeds", "images"], ("MODEL", "SEEDS", "IMAGES")),
        (lambda targets, images: (targets, images), ["targets", "images"], ("TARGETS", "IMAGES")),
        (with_default, ["images", "seeds"], ("IMAGES", 3, "SEEDS")),
        (keyword_only, ["images", "targets"], ("IMAGES", "TARGETS")),
        (first_then_anything, ["images"], ("IMAGES", (), {})),
        (Callable(), ["images", "model"], ("IMAGES", "MODEL")),
        (Callable().__call__, ["images", "model"], ("IMAGES", "MODEL")),
        (Invert(), ["images"], "IMAGES"),
    ],
)
def test_known_names_are_passed_by_name_in_any_order(function, arguments, result):
    assert list(gpu_call(function).arguments) == arguments
    assert gpu_call(function).by_name
    assert call(function) == result


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (lambda x: x, ["images"], "IMAGES"),
        (lambda x, m: (x, m), ["images", "model"], ("IMAGES", "MODEL")),
        (lambda x, m=7: (x, m), ["images"], ("IMAGES", 7)),
        (lambda images, m: (images, m), ["images", "model"], ("IMAGES", "MODEL")),
        (lambda batch, model: (batch, model), ["images", "model"], ("IMAGES", "MODEL")),
        (positional_only, ["images", "model"], ("IMAGES", "MODEL")),
        (torch.sqrt, ["images"], None),  # written in C
    ],
)
def test_own_names_are_filled_by_place_with_images_and_model(function, arguments, result):
    assert list(gpu_call(function).arguments) == arguments
    assert not gpu_call(function).by_name
    assert result is None or call(function) == result


def test_partials_are_asked_for_what_is_left():
    assert list(gpu_call(partial(rotate, degrees=30)).arguments) == ["images"]
    assert gpu_call(partial(rotate, degrees=30)).by_name
    assert call(partial(lambda strength, images: (strength, images), 5)) == (5, "IMAGES")
    assert call(partial(lambda x, m, strength: (x, m, strength), strength=2)) == ("IMAGES", "MODEL", 2)
    # A known name that is bound already still counts as one that can be filled; the offered value wins.
    assert "images" in list(gpu_call(partial(by_names, model="mine")).arguments)


def test_corruptions_want_seeds_and_attacks_want_the_model():
    assert list(gpu_call(Corruption("gaussian_noise", 1)).arguments) == ["images", "seeds"]
    assert list(gpu_call(PGD("linf", 0.1, 0.1, 1)).arguments) == ["images", "model", "seeds"]


def anything(*args):
    return args


def test_a_function_of_any_arguments_gets_the_images():
    assert list(gpu_call(anything).arguments)[:1] == ["images"]
    assert call(anything)[0] == "IMAGES"


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda batch, seeds: batch,  # by place it would get the model as its seeds
        lambda model, batch: batch,
        lambda x, m, extra: x,
        lambda x, *, strength: x,
    ],
)
def test_parameters_that_nobody_can_fill_are_refused(function):
    with pytest.raises(DefinitionError, match="perturbation_fn_gpu takes"):
        gpu_call(function)
