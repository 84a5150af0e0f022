"""The edit distance of texts."""

from __future__ import annotations


def edit_distance(first: str, second: str) -> int:
    """The Levenshtein distance: the fewest insertions, deletions and substitutions of characters."""
    if first == second:
        return 0
    if len(first) > len(second):
        first, second = second, first
    row = list(range(len(first) + 1))
    for index, character in enumerate(second, start=1):
        before, row[0] = row[0], index
        for column, other in enumerate(first, start=1):
            kept = before if character == other else before + 1
            before = row[column]
            row[column] = min(kept, before + 1, row[column - 1] + 1)
    return row[-1]
