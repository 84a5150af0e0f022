"""What the tests of models' families compare: networks, what they are fed, and a pickle that runs code."""

from __future__ import annotations

from typing import Any

import torch


def same(first: Any, second: Any) -> bool:
    """Whether two networks have the same parameters and buffers under the same names."""
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def difference(made: Any, preset: Any, pictures: list[Any]) -> float:
    """How far a definition's transform with normalization is from a published one."""
    distances = []
    for picture in pictures:
        ours, theirs = made.normalization(made.transform(picture)[None])[0], preset(picture)
        assert ours.shape == theirs.shape
        distances.append((ours - theirs).abs().max().item())
    return max(distances)


class Malicious:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path: Any) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (str(self.path), "w")
