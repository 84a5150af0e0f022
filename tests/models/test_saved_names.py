"""Class names anywhere in a checkpoint."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch

from testbed.errors import DataError
from testbed.models.base.class_order import LISTED
from testbed.models.loading.saved import saved_class_order

NAMES = ("plane", "car", "bird", "cat")
BY_NAME = {name: number for number, name in enumerate(NAMES)}
STATE = {"fc.weight": torch.zeros(4, 3), "fc.bias": torch.zeros(4)}

ENTRIES: dict[str, dict[str, Any]] = {
    "names": {"names": list(NAMES)},
    "names by number": {"names": dict(enumerate(NAMES))},
    "hyper_parameters.data.class_to_idx": {"hyper_parameters": {"data": {"class_to_idx": BY_NAME}}},
    "class_to_idx in hyper_parameters": {"hyper_parameters": {"class_to_idx": BY_NAME}},
    "meta.dataset_meta.CLASSES": {"meta": {"dataset_meta": {"CLASSES": NAMES}}},
    "config.label2id": {"config": {"label2id": BY_NAME}},
    "train_args.labels": {"train_args": argparse.Namespace(labels=list(NAMES), epochs=4)},
    "numbers as text": {"vocabulary": {str(number): name for number, name in enumerate(NAMES)}},
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_as_many_names_as_outputs_are_those_of_the_outputs(entry: str, tmp_path: Path) -> None:
    torch.save({"state_dict": STATE, **ENTRIES[entry]}, tmp_path / "w.pth")
    found = saved_class_order(tmp_path / "w.pth", "resnet18", 4)
    assert found is not None
    assert (found.rule, found.names) == (LISTED, NAMES)
    assert "w.pth" in found.where


@pytest.mark.parametrize(
    "entries",
    [
        {"names": list(NAMES[:3])},  # of something else
        {"layers": ["conv", "bn", "relu", "fc"]},
        {"param_groups": [{"params": [0, 1, 2, 3]}]},
        {"names": ["a", "a", "b", "c"]},
        {"best": {"epoch": 3, "step": 1, "loss": 2, "lr": 7}},
    ],
)
def test_other_lists_are_not_class_names(entries: dict[str, Any], tmp_path: Path) -> None:
    torch.save({"state_dict": STATE, **entries}, tmp_path / "w.pth")
    assert saved_class_order(tmp_path / "w.pth", "resnet18", 4) is None


def test_lists_that_differ_are_not_decided(tmp_path: Path) -> None:
    torch.save(
        {"state_dict": STATE, "names": list(NAMES), "meta": {"labels": ["a", "b", "c", "d"]}}, tmp_path / "w.pth"
    )
    with pytest.raises(DataError, match=r"names, meta\.labels; give the names of the outputs: --class-order FILE"):
        saved_class_order(tmp_path / "w.pth", "resnet18", 4)
