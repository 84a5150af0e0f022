"""Variants as models and settings of their own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torchvision import transforms

from testbed.errors import DefinitionError
from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.extensions.explain.axis import axes, in_order
from testbed.extensions.explain.images import change_activation
from testbed.extensions.explain.named import changed_model, changed_setting, command_for, slug
from testbed.extensions.explain.pixels import (
    LONGER,
    NO_RESIZE,
    SHORTER,
    SQUASH,
    Geometry,
    geometry_of,
    pixels_of,
    render,
)
from testbed.models.model_base import Model, StandardNormalization, StandardTransform
from testbed.models.open_clip_models import OpenClipTransform


def picture(width=50, height=30):
    return Image.fromarray(np.random.default_rng(0).integers(0, 255, (height, width, 3), dtype=np.uint8))


def model(**fields):
    normalization = StandardNormalization((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    network = lambda: nn.Sequential(nn.Flatten(), nn.GELU())  # noqa: E731
    return Model("net", StandardTransform(20, 16), network, 8, normalization=normalization, weights="1", **fields)


class Classes:
    class_names = ("red_apple", "blue sky")

    def spec(self):
        return {"classes": 2}

    def open(self):
        return self


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (StandardTransform(256, 224), Geometry((256, 256), (224, 224), interpolation="bilinear")),
        (OpenClipTransform(224), Geometry((224, 224), (224, 224), interpolation="bicubic")),
        (OpenClipTransform(224, resize_mode="squash"), Geometry((224, 224), (224, 224), SQUASH, "bicubic")),
        (OpenClipTransform(224, resize_mode="longest"), Geometry((224, 224), (224, 224), LONGER, "bicubic")),
        (transforms.Compose([transforms.Resize((8, 9)), transforms.ToTensor()]), Geometry((8, 9), (8, 9), SQUASH)),
        (transforms.Compose([transforms.Resize(8), transforms.ToTensor()]), None),  # images of different shapes
        (transforms.Compose([transforms.Resize(8), transforms.CenterCrop(8), transforms.Grayscale()]), None),
        (lambda image: image, None),
    ],
)
def test_what_a_transform_does_is_read_from_its_steps(transform, expected):
    assert geometry_of(transform) == expected


def test_images_are_rendered_as_torchvision_does():
    steps = [transforms.Resize(20), transforms.CenterCrop(16), transforms.ToTensor()]
    assert torch.equal(render(picture(), Geometry((20, 20), (16, 16))), transforms.Compose(steps)(picture()))
    tensor = transforms.functional.to_tensor(picture())
    plain = transforms.functional.resize(tensor, [20], antialias=False)
    found = render(picture(), Geometry((20, 20), (16, 16), antialias=False))
    assert torch.equal(found, transforms.functional.center_crop(plain, [16, 16]))
    longer = render(picture(), Geometry((20, 20), (20, 20), LONGER))
    assert longer[:, :3].eq(0).all()  # 20 × 12 in the middle of 20 × 20
    assert not longer[:, 4:16].eq(0).all()
    assert torch.equal(render(picture(), Geometry((9, 9), (16, 16), NO_RESIZE)), tensor[:, 7:23, 17:33])


def test_a_model_with_other_preprocessing():
    made = changed_model(model(), "x", ["interpolation=bicubic", "channel-order=blue-first"])
    bicubic = transforms.InterpolationMode.BICUBIC
    steps = [transforms.Resize(20, interpolation=bicubic), transforms.CenterCrop(16), transforms.ToTensor()]
    image = transforms.Compose(steps)(picture())
    assert torch.equal(made.transform(picture()), image)
    assert torch.allclose(
        made.normalization(image[None])[0],
        transforms.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))(image.flip(0)),
    )
    assert made.name == "x"
    assert made.spec() != model().spec()


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (("crop=0-9-of-the-resized-image", "resizing=squashed-to-the-input-s-shape"), ((17, 17), (16, 16), SQUASH)),
        (("image-size=12-pixels", "resizing=the-longer-side-the-rest-black"), ((12, 12), (12, 12), LONGER)),
        (("image-size=12-pixels", "crop=0-9-of-the-resized-image"), ((13, 13), (12, 12), SHORTER)),
    ],
)
def test_no_part_of_a_name_undoes_another(parts, expected):
    for order in (parts, parts[::-1]):
        assert changed_model(model(), "x", order).transform.make().keywords["geometry"] == Geometry(*expected)


def test_other_weights_bring_their_preprocessing_before_it_is_changed():
    given = {
        "net": model(arch="a"),
        "net.larger": model(arch="a").under_name("net.larger", transform=StandardTransform(40, 32)),
    }
    cell = SimpleNamespace(
        model=given["net"],
        catalog=SimpleNamespace(model_names=lambda: list(given), get_model=given.__getitem__),
        store=SimpleNamespace(names=SimpleNamespace(all=lambda kind: [])),
    )
    found = {str(each): each for axis in axes() if axis.name in ("weights", "image size") for each in axis.of(cell)}
    pixels = pixels_of(cell.model)
    for each in in_order([found["image size: 12 pixels"], found["weights: net.larger"]]):
        pixels = each.change(pixels)
    assert (pixels.weights, pixels.geometry) == ("net.larger", Geometry((30, 30), (24, 24)))


def test_inputs_up_to_255_are_part_of_the_identity():
    made = changed_model(model(), "x", ["range-of-inputs=0-to-255-in-place-of-0-to-1"])
    image = torch.rand(1, 3, 2, 2)
    normalize = transforms.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.4))
    assert torch.allclose(made.normalization(image), normalize(255 * image))
    assert made.normalization.spec()["scale"] == 255


def test_another_activation_is_put_in_place():
    made = changed_model(model(), "x", ["activation=quickgelu"])
    x = torch.linspace(-3, 3, 7)[None]
    assert torch.allclose(made.classifier_loader()(x), x * torch.sigmoid(1.702 * x))
    assert made.architecture == {"activation": "quick_gelu"}
    network = made.classifier_loader()
    assert change_activation(network, "gelu") == 1
    assert torch.allclose(network(x), nn.functional.gelu(x))


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("colour=red", "'colour' is not an axis; use one of activation, antialiasing, channel-order"),
        ("interpolation=bilinear", "interpolation is one of bicubic, lanczos, nearest; got 'bilinear'"),
        ("interpolation", "got ''"),
    ],
)
def test_a_name_that_means_nothing_is_refused(part, why):
    with pytest.raises(DefinitionError, match="x") as error:
        changed_model(model(), "x", [part])
    assert why in str(error.value)


def test_two_parts_of_one_axis_are_refused():
    with pytest.raises(DefinitionError, match="'x' has two variants of interpolation; give one"):
        changed_model(model(), "x", ["interpolation=nearest", "interpolation=bicubic"])


def test_a_setting_with_other_prompts():
    setting = EvalSetting("s", Classes(), None, templates=["a photo of {c}."])
    parts = [
        "templates=one-prompt-c",
        "class-names=spaces-for-underscores",
        "spelling-of-prompts=a-capital-first-letter",
    ]
    made = changed_setting(setting, "t", parts)
    assert made.prompts.texts(Classes.class_names) == [["Red apple"], ["Blue sky"]]
    assert setting.prompts.texts(Classes.class_names) == [["a photo of red_apple."], ["a photo of blue sky."]]
    with pytest.raises(DefinitionError, match="templates is one of"):
        changed_setting(setting, "t", ["templates=mine"]).prompts.texts(Classes.class_names)


def test_the_command_names_what_can_be_named():
    from testbed.extensions.explain.axis import Stage, Variant

    def variant(axis, name, stage):
        return Variant(axis, name, stage, lambda each: each)

    bicubic = variant("interpolation", "bicubic", Stage.IMAGES)
    bare = variant("templates", "one prompt, '{c}'", Stage.TEXTS)
    assert command_for("net", "s", [bare, bicubic]) == (
        "testbed run 'net~interpolation=bicubic' --on 's~templates=one-prompt-c'"
    )
    half = variant("precision", "bfloat16", Stage.IMAGES)
    assert command_for("net", "s", [half]) == "testbed run net --on s --dtype bfloat16"
    assert command_for("net", "s", [variant("weights", "net2", Stage.IMAGES)]) == "testbed run net2 --on s"
    assert command_for("net", "s", [bicubic, variant("metric", "top-5", Stage.SCORES)]) is None
    assert slug("CLIP's 80, for ImageNet!") == "clip-s-80-for-imagenet"
