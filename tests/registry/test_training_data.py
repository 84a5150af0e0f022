"""What a model's tag says of its training data."""

from __future__ import annotations

from tables import cases

from testbed.registry.library_names import library_names
from testbed.registry.training_data import training_data


@cases(
    ("model", "expected"),
    [
        ("ViT-B-32,laion2b_s34b_b79k", ["LAION-2B"]),
        ("open_clip/ViT-B-32,openai", ["OpenAI's 400M"]),
        ("ViT-L-14,laion_aesthetic_s13b_b82k", ["LAION-Aesthetic"]),
        ("coca_ViT-B-32,mscoco_finetuned_laion2b_s13b_b90k", ["COCO", "LAION-2B"]),
        ("timm/vit_base_patch32_clip_384.laion2b_ft_in12k_in1k", ["LAION-2B", "ImageNet-12k", "ImageNet-1k"]),
        ("timm/convnext_tiny.fb_in22k_ft_in1k@288", ["ImageNet-22k", "ImageNet-1k"]),
        ("timm/eva_giant_patch14_224.clip_ft_in1k@224", ["image-text pairs (CLIP)", "ImageNet-1k"]),
        ("timm/convnext_xxlarge.clip_laion2b_soup_ft_in1k", ["LAION-2B", "ImageNet-1k"]),
        ("timm/vit_large_patch14_dinov2.lvd142m", ["LVD-142M"]),
        ("resnet50", ["ImageNet-1k"]),
        ("torchvision/vit_h_14.imagenet1k_swag_e2e_v1", ["ImageNet-1k", "Instagram 3.6B"]),
        ("ViT-B-32,/models/laion2b.pt", []),
        ("ViT-B-32,laion2b.pt", []),
        ("digits-cnn", []),
        ("my_in1k_net", []),
        ("", []),
    ],
)
def test_data_sets_are_those_that_the_tag_names(model, expected):
    assert list(training_data(model)) == expected


def test_most_tags_of_the_libraries_name_some():
    tags = [f"timm/{name}.{tag}" for name, tags in library_names("timm").items() for tag in tags]
    tags += [f"{name},{tag}" for name, tags in library_names("open_clip_torch").items() for tag in tags]
    assert sum(bool(training_data(tag)) for tag in tags) > 0.85 * len(tags)
