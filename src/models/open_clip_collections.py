"""CLIP benchmark's collections of open_clip models, by the names that it gave them."""

from __future__ import annotations

from testbed.models.open_clip_models import OpenClipFamily
from testbed.registry import registry

OPENAI = ("ViT-B-32,openai", "ViT-B-16,openai", "ViT-L-14,openai", "ViT-L-14-336,openai")
OPENCLIP_BASE = (
    "ViT-B-32-quickgelu,laion400m_e32",
    "ViT-B-32,laion2b_e16",
    "ViT-B-32,laion2b_s34b_b79k",
    "ViT-B-16,laion400m_e32",
    "ViT-B-16-plus-240,laion400m_e32",
    "ViT-L-14,laion400m_e32",
    "ViT-L-14,laion2b_s32b_b82k",
    "ViT-H-14,laion2b_s32b_b79k",
    "ViT-g-14,laion2b_s12b_b42k",
)
OPENCLIP_MULTILINGUAL = (
    "xlm-roberta-base-ViT-B-32,laion5b_s13b_b90k",
    "xlm-roberta-large-ViT-H-14,frozen_laion5b_s13b_b90k",
)


def every_pair() -> list[str]:
    """Returns every architecture and tag that the installed open_clip publishes."""
    return list(OpenClipFamily().names())


registry.add_model_collection("openai", OPENAI)
registry.add_model_collection("openclip_base", OPENCLIP_BASE)
registry.add_model_collection("openclip_multilingual", OPENCLIP_MULTILINGUAL)
registry.add_model_collection("openclip_all", every_pair)
registry.add_model_collection("openclip_full", every_pair)  # as CLIP benchmark's README calls it
