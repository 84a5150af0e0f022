"""The edit distance of ordered trees (Zhang and Shasha, 1989), with costs of one's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tree:
    """A node with its branches in order."""

    label: str
    branches: Sequence[Tree] = field(default_factory=tuple)

    def __len__(self) -> int:
        return 1 + sum(map(len, self.branches))


@dataclass(frozen=True)
class _Nodes:
    """The labels of nodes, branches first; of each the first leaf below it; and the nodes where a path begins."""

    labels: Sequence[str]
    leaves: Sequence[int]
    roots: Sequence[int]

    @classmethod
    def of(cls, tree: Tree) -> _Nodes:
        labels: list[str] = []
        leaves: list[int] = []
        pending: list[tuple[Tree, int]] = [(tree, -1)]  # a node, and the first leaf below it once it is known
        while pending:
            node, leaf = pending.pop()
            if leaf < 0 and node.branches:
                pending.append((node, len(labels)))
                pending += [(branch, -1) for branch in reversed(node.branches)]
            else:
                leaves.append(len(labels) if leaf < 0 else leaf)
                labels.append(node.label)
        last = {leaf: place for place, leaf in enumerate(leaves)}
        return cls(labels, leaves, sorted(last.values()))


def tree_distance(
    first: Tree, second: Tree, alone: Callable[[str], float], instead: Callable[[str, str], float]
) -> float:
    """The lowest total cost of edits that make one tree of another.

    Args:
        first: A tree.
        second: The other one.
        alone: The cost of a label that is added or removed.
        instead: The cost of one label in place of another.
    """
    one, other = _Nodes.of(first), _Nodes.of(second)
    removed, added = ([alone(label) for label in nodes.labels] for nodes in (one, other))
    changed = {(a, b): instead(a, b) for a in set(one.labels) for b in set(other.labels)}
    found: Any = np.zeros((len(one.labels), len(other.labels)))
    for i in one.roots:
        for j in other.roots:
            _fill(one, other, i, j, removed, added, changed, found)
    return float(found[-1, -1])


def _fill(
    one: _Nodes,
    other: _Nodes,
    i: int,
    j: int,
    removed: Sequence[float],
    added: Sequence[float],
    changed: dict[tuple[str, str], float],
    found: Any,
) -> None:
    """Sets the distances of all trees below two nodes whose first leaves are theirs."""
    start, begin = one.leaves[i], other.leaves[j]
    costs = [[0.0] * (j - begin + 2) for _ in range(i - start + 2)]
    for x in range(1, len(costs)):
        costs[x][0] = costs[x - 1][0] + removed[start + x - 1]
    for y in range(1, len(costs[0])):
        costs[0][y] = costs[0][y - 1] + added[begin + y - 1]
    for x in range(1, len(costs)):
        a = start + x - 1
        for y in range(1, len(costs[0])):
            b = begin + y - 1
            cost = min(costs[x - 1][y] + removed[a], costs[x][y - 1] + added[b])
            if one.leaves[a] == start and other.leaves[b] == begin:
                cost = min(cost, costs[x - 1][y - 1] + changed[one.labels[a], other.labels[b]])
                found[a, b] = cost
            else:
                cost = min(cost, costs[one.leaves[a] - start][other.leaves[b] - begin] + found[a, b])
            costs[x][y] = cost
