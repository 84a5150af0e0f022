"""Names of every family through the registry itself: each builds a definition that can be told by its content."""

from __future__ import annotations

import json

import pytest

from testbed.errors import DuplicateNameError, UnknownNameError
from testbed.identity.describe import describe
from testbed.models.checkpoint import Checkpoint, CheckpointFamily
from testbed.models.model_base import DualEncoder, ImageEncoder, Model
from testbed.models.open_clip_models import OpenClipFamily
from testbed.models.timm_models import TimmFamily
from testbed.models.torchvision_models import TorchvisionFamily
from testbed.registry import registry

pytestmark = pytest.mark.usefixtures("library_lists")

NAMES = {
    "resnet50": (Model, TorchvisionFamily()),
    "resnet50.imagenet1k_v2": (Model, TorchvisionFamily()),
    "densenet121": (Model, TorchvisionFamily()),
    "vit_b_16.imagenet1k_swag_e2e_v1": (Model, TorchvisionFamily()),
    # of which open_clip has architectures, too
    **{f"convnext_{size}": (Model, TorchvisionFamily()) for size in ("tiny", "small", "base", "large")},
    "timm/resnet18.a1_in1k": (Model, TimmFamily()),
    "timm/convnext_base.fb_in22k_ft_in1k_384": (Model, TimmFamily()),
    "timm/vit_small_patch16_224.dino": (ImageEncoder, TimmFamily()),
    "ViT-B-32,laion2b_s34b_b79k": (DualEncoder, OpenClipFamily()),
    "ViT-B-16-SigLIP,webli": (DualEncoder, OpenClipFamily()),
    "ViT-B-32,": (DualEncoder, OpenClipFamily()),
    "ViT-B-32,/data/epoch.pt": (DualEncoder, OpenClipFamily()),
    "resnet18,/data/w.pth": (Checkpoint, CheckpointFamily()),
    "timm/resnet18,/data/w.safetensors": (Checkpoint, CheckpointFamily()),
    "digits-cnn": (Model, None),
    "digits-knn": (Model, None),
    "digits-clip": (DualEncoder, None),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_builds_a_definition_that_is_told_by_its_content(name):
    kind, family = NAMES[name]
    assert registry.models.canonical(name) == name
    made = registry.get_model(name)
    assert type(made) is kind
    assert made.name == name
    description = describe(made.spec())
    assert json.loads(json.dumps(description, allow_nan=False)) == description
    if family is not None:
        again = family.build(name)
        assert again is not made
        assert describe(again.spec()) == description


def test_different_names_of_a_kind_have_different_descriptions():
    names = [name for name in NAMES if not name.startswith(("ViT-B-32", "resnet50"))]
    descriptions = {json.dumps(describe(registry.get_model(name).spec()), sort_keys=True) for name in names}
    assert len(descriptions) == len(names)


def test_a_definition_is_built_once():
    assert registry.get_model("resnet50") is registry.get_model("resnet50.IMAGENET1K_V1")
    assert registry.get_model("timm/resnet18") is registry.get_model("timm/resnet18.a1_in1k")


def test_every_listed_name_is_known_under_itself():
    unclear = []
    for name in registry.model_names():
        try:
            if registry.models.canonical(name) != name:
                unclear.append(name)
        except Exception:
            unclear.append(name)
    assert unclear == []


@pytest.mark.parametrize(("library", "kind"), [("torchvision", Model), ("open_clip", DualEncoder)])
def test_a_checkpoint_of_an_architecture_that_two_libraries_have_is_told_by_the_library(library, kind):
    with pytest.raises(DuplicateNameError, match=f"{library}/convnext_base"):
        registry.models.canonical("convnext_base,/data/w.pth")
    assert isinstance(registry.get_model(f"{library}/convnext_base,/data/w.pth"), kind)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("resnet51", "resnet50"), ("timm/resnet18.a1_in1", "timm/resnet18.a1_in1k"), ("digits-cn", "digits-cnn")],
)
def test_an_unknown_name_is_told_with_near_ones(wrong, right):
    with pytest.raises(UnknownNameError, match=rf"unknown model '{wrong}'.*did you mean .*") as caught:
        registry.get_model(wrong)
    assert right in str(caught.value)


def test_the_digits_models_are_in_the_collection_demo():
    registry.load()
    members = set(registry.model_collections.members("demo"))
    assert {"digits-logreg", "digits-knn", "digits-mlp", "digits-cnn", "digits-cnn-noise", "digits-clip"} <= members
