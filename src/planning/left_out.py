"""What the data sets of cells left out when they were opened, for the report and the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from testbed.data.class_lists import differences
from testbed.data.left_out import merged
from testbed.graph.cells import Cell, LeftOuts, OpenedSetting
from testbed.registry.references import SettingReference

KEY = "left_out"  # of the environment of an evaluation


def left_out_of(own: OpenedSetting, others: Iterable[OpenedSetting]) -> LeftOuts:
    """What is left out of the samples of a cell, and of those that it is fitted on, by the setting that has them."""
    found = {_named(own): (*own.source.left_out, *own.remarks)}
    for other in others:
        differing = differences(own.dataset, other.dataset)
        found[_named(other)] = merged((*other.source.left_out, *other.remarks, *differing))
    return {name: each for name, each in found.items() if each}


def left_out_of_all(cells: Iterable[Cell]) -> LeftOuts:
    """What is left out of the samples of cells, each data set once."""
    return {name: each for cell in cells for name, each in cell.left_out.items()}


def lines_of(found: LeftOuts) -> list[str]:
    """A line for each data set and reason, for people."""
    return [f"Data of {name}: {each}" for name, parts in found.items() for each in parts]


def as_object(found: LeftOuts) -> dict[str, list[dict[str, Any]]]:
    """For JSON: setting → what is left out."""
    return {name: [each.as_object() for each in parts] for name, parts in found.items()}


def _named(opened: OpenedSetting) -> str:
    return str(SettingReference.parse(opened.setting.image_set).setting)
