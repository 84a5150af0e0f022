"""Names of the same weights."""

from __future__ import annotations

import pytest

from testbed.claims.names import is_model, names_of, reviewed, weights
from testbed.extensions.published.sources import files_of, known_files


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "ViT-B-32,laion2b_s34b_b79k"),
        ("openai/clip-vit-base-patch32", "ViT-B-32,openai"),
        ("transformers/openai/clip-vit-base-patch32", "ViT-B-32-quickgelu,openai"),
        ("hf-hub:timm/ViT-B-16-SigLIP", "ViT-B-16-SigLIP,webli"),
        ("google/siglip-base-patch16-224", "timm/ViT-B-16-SigLIP"),
        ("timm/resnet50.a1_in1k@288", "timm/resnet50.a1_in1k"),
        ("timm/resnet50_clip.openai", "RN50,openai"),
        ("timm/resnet50.tv_in1k@224", "resnet50"),
        ("timm/resnet50.tv2_in1k", "resnet50.imagenet1k_v2"),
    ],
)
def test_same_weights(one, other):
    assert weights(one) == weights(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ViT-B-16-plus-240,laion400m_e31", "ViT-B-16-plus-240,laion400m_e32"),
        ("ViT-B-32,laion400m_e31", "ViT-B-32,laion400m_e32"),
        ("resnet50", "resnet50.imagenet1k_v2"),
        ("my@net", "my"),
        ("a", "b"),
    ],
)
def test_other_weights(one, other):
    assert weights(one) != weights(other)


def test_all_names_of_weights():
    assert names_of("openai/clip-vit-base-patch32") == [
        *("ViT-B-32,openai", "ViT-B-32-quickgelu,openai", "openai/clip-vit-base-patch32"),
        *("timm/vit_base_patch32_clip_224.openai", "timm/vit_base_patch32_clip_quickgelu_224.openai"),
    ]
    assert names_of("mine") == ["mine"]


def test_reviewed_names_are_of_models_that_open_clip_has():
    assert [(name, other) for name, other in reviewed() if not is_model(other)] == []


def test_what_is_a_model():
    assert is_model("timm/resnet50.a1_in1k@288")
    assert is_model("ViT-B-32,openai")
    assert not is_model("ViT-B-32,openai.pt")
    assert not is_model("ViT-B-32,/a/b.pt")
    assert not is_model("no+net")


def test_the_manifest_is_whole():
    files = known_files()
    assert len({(each.repository, each.path) for each in files}) == len(files) == len({each.file for each in files})
    assert len({each.repository for each in files}) == len({each.source for each in files}) == 6
    for each in files:
        assert len(each.sha256) == 64
        assert len(each.commit) == 40
        assert each.bytes > 0
        assert each.licence in ("MIT", "Apache-2.0", "CC0-1.0")
        assert ".." not in f"{each.path}{each.file}".split("/")
    assert {each.source for each in files_of(["timm"])} == {"timm"}
