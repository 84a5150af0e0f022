"""A tiny CoCa of open_clip with weights drawn at random."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from open_clip import coca_model
from safetensors.torch import save_file

TEXT = {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
CONFIG = {
    "embed_dim": 32,
    "vision_cfg": {
        **{"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 16},
        **{"attentional_pool": True, "attn_pooler_heads": 2, "output_tokens": True},
    },
    "text_cfg": {**TEXT, "embed_cls": True, "output_tokens": True},
    "multimodal_cfg": {**TEXT, "attn_pooler_heads": 2},
}
PREPROCESS = {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4], "interpolation": "bilinear", "resize_mode": "squash"}
END = 49407  # the token at which a text ends


def tiny_coca(brief: bool = False) -> Any:
    """A CoCa that tells pictures apart; a brief one ends its captions as soon as it may."""
    torch.manual_seed(0)
    network = coca_model.CoCa(**copy.deepcopy(CONFIG))
    with torch.no_grad():
        for block in network.text_decoder.cross_attn:
            block.attn.out_proj.weight.normal_(std=2)
        network.text_decoder.text_projection.normal_(std=0.5)
        if brief:
            network.text_decoder.ln_final.bias.fill_(1)
            network.text_decoder.text_projection[:, END] = 1
    return network.eval()


def save_coca(network: Any, folder: Path) -> Path:
    """A new folder with the network, as open_clip's ``local-dir:`` takes it."""
    folder.mkdir()
    description = {"model_cfg": {**CONFIG, "custom_text": True}, "preprocess_cfg": PREPROCESS}
    (folder / "open_clip_config.json").write_text(json.dumps(description))
    state = {key: value.contiguous() for key, value in network.state_dict().items()}
    save_file(state, folder / "open_clip_model.safetensors")
    return folder
