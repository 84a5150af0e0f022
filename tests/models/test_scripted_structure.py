"""What a TorchScript program computes by, besides its weights: a file of the same weights may be another program."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from testbed.models.base.structure import structure_of

SOURCE = """
from typing import Dict

import torch


def helper(x):
    return x - 1.0


class Program(torch.nn.Module):
    factors: Dict[str, float]

    def __init__(self):
        super().__init__()
        self.factors = {"all": 0.5}

    def forward(self, x):
        return helper(self.other(x)) * self.factors["all"]

    def other(self, x):
        return x + 1.0
"""


def program(folder: Path, text: str) -> Any:
    """A program as it is loaded from its file."""
    file = folder / f"source{len(list(folder.iterdir()))}.py"  # a new one, since Python keeps the byte code of another
    file.write_text(text)
    spec = importlib.util.spec_from_file_location("source", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    torch.jit.script(module.Program()).save(folder / "program.pt")
    return torch.jit.load(folder / "program.pt")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_a_scripted_network_computes_by_is_in_its_structure(tmp_path: Path) -> None:
    descriptions = [structure_of(program(tmp_path, SOURCE)) for _ in range(2)]
    assert descriptions[0] == descriptions[1]
    for old, new in (("0.5", "0.8"), ("x + 1.0", "x + 2.0"), ("x - 1.0", "x - 2.0")):
        assert old in SOURCE
        assert structure_of(program(tmp_path, SOURCE.replace(old, new))) not in descriptions, new
