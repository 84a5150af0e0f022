"""Training runs and steps of checkpoints, from their paths."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from testbed.entities import TrainingCheckpoint
from testbed.errors import DataError

GROUPS = ("epoch", "step")
# Tried in this order, on the file's name without its suffix, then on its folder's; the first that is found counts.
PATTERNS = tuple(
    re.compile(each, re.IGNORECASE)
    for each in (
        r"epoch[ =_-]*(?P<epoch>\d+).*?(?<![a-z])(?:step|iter)[a-z]*[ =_-]*(?P<step>\d+)",
        r"(?<![a-z])(?:step|iter)[a-z]*[ =_-]*(?P<step>\d+)",
        r"(?<![a-z])epoch[ =_-]*(?P<epoch>\d+)",
        r"(?P<step>\d+)(?=\D*$)",
    )
)
DEFAULT = "the numbers after epoch and step, else the last number; of the file's name, else of its folder's"


@dataclass(frozen=True)
class CheckpointFile:
    """A file, and what its path says."""

    path: str
    checkpoint: TrainingCheckpoint


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the user's; raises DataError if it is not a regular expression, or has neither of the groups."""
    try:
        found = re.compile(pattern)
    except re.error as error:
        raise DataError(f"--pattern {pattern!r} is not a regular expression: {error}") from None
    if not set(GROUPS) & set(found.groupindex):
        raise DataError(
            f"--pattern {pattern!r} has no group named epoch or step; write for example 'epoch_(?P<epoch>\\d+)'"
        )
    return found


def checkpoint_of(path: str, pattern: re.Pattern[str] | None = None) -> TrainingCheckpoint | None:
    """Returns the checkpoint that a path describes.

    The run is the folder above the first part of the path that has one of the numbers.

    Args:
        path: Of the file, absolute.
        pattern: Searched in the whole path; None: `PATTERNS`.

    Returns:
        None if it says no step and no epoch.
    """
    parts = PurePath(path)
    if pattern is not None:
        match = pattern.search(parts.as_posix())
        if match is None or not _numbers(match):
            return None
        above = PurePath(parts.as_posix()[: min(map(match.start, _numbers(match)))] + "_")
        return _made(match, str(above.parent))
    for name, run in ((parts.stem, parts.parent), (parts.parent.name, parts.parent.parent)):
        for each in PATTERNS:
            if (match := each.search(name)) is not None:
                return _made(match, str(run))
    return None


def _numbers(match: re.Match[str]) -> list[str]:
    """The groups that have a number."""
    return [name for name in GROUPS if (match.groupdict().get(name) or "").isdecimal()]


def _made(match: re.Match[str], run: str) -> TrainingCheckpoint:
    numbers = {name: int(match[name]) for name in _numbers(match)}
    unit = "step" if "step" in numbers else "epoch"
    return TrainingCheckpoint(run, numbers[unit], unit, numbers.get("epoch"))


def clash(found: Iterable[CheckpointFile], one: CheckpointFile) -> str:
    """Explains why a file cannot be a checkpoint beside others of its run; empty if it can."""
    own = one.checkpoint
    for each in found:
        other = each.checkpoint
        if each.path == one.path or other.run != own.run:
            continue
        if other.unit != own.unit:
            return f"{each.path} has its {other.unit} in its name, and {one.path} only its {own.unit}"
        if other.step == own.step:
            return f"{each.path} and {one.path} both have {own.unit} {own.step}"
    return ""


def label_of(run: str) -> str:
    """A run's folder for people: as seen from the working folder, if it is below that."""
    here = os.path.relpath(run)
    return run if here.startswith(os.pardir) else here


def sort_key(found: CheckpointFile) -> tuple[int, str]:
    """By step; runs side by side."""
    return found.checkpoint.step, found.checkpoint.run
