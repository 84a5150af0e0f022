"""A plug-in with a network and the digits, dimmed by something that lies beside it."""

from __future__ import annotations

NET = """
import json
from pathlib import Path

import torch

from testbed.eval_settings.eval_setting_base import EvalSetting
from testbed.models.model_base import Model, StandardTransform
from testbed.registry import registry

BESIDE = Path(__file__).parent


class Net(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = torch.nn.Parameter(torch.randn(192, 10, generator=generator))

    def forward(self, images):
        return torch.tanh(images.flatten(1) - 0.5) @ self.weight


def add_dimmed(dimmed):
    digits = registry.get_eval_setting("digits")
    registry.add_model(Model("net", StandardTransform(8, 8), Net, 64))
    registry.add_eval_setting(
        EvalSetting("dimmed", digits.dataset, digits.size, perturbation_fn_gpu=dimmed, num_classes=10)
    )
"""
