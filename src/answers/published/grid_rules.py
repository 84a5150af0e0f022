"""The constraints of VGRP-Bench's puzzles (arXiv 2503.23064), as VLMEvalKit checks solved grids.

It does not look at the regions of a jigsaw sudoku, nor at gaps that a thermometer has as 0. Grids and states in another
form raise ValueError, TypeError, KeyError or IndexError.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Grid = list[list[str]]

_SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))
_AROUND = [(down, across) for down in (-1, 0, 1) for across in (-1, 0, 1) if down or across]


def _columns(grid: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [list(column) for column in zip(*grid, strict=True)]


def _distinct(lines: Iterable[Sequence[Any]]) -> bool:
    return all(len(set(line)) == len(line) for line in lines)


def _latin(grid: Grid, state: Mapping[str, Any]) -> bool:
    return _distinct(grid) and _distinct(_columns(grid))


def _by_label(grid: Sequence[Sequence[Any]], labels: Sequence[Sequence[Any]]) -> list[list[Any]]:
    parts: dict[Any, list[Any]] = {}
    for row, names in zip(grid, labels, strict=True):
        for cell, name in zip(row, names, strict=True):
            parts.setdefault(name, []).append(cell)
    return list(parts.values())


def _boxes(grid: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The square parts of a grid with 4 or 9 rows; none of others."""
    side = {4: 2, 9: 3}.get(len(grid), 0)
    if not side:
        raise ValueError
    return _by_label(grid, [[(r // side, c // side) for c in range(len(grid))] for r in range(len(grid))])


def _sudoku(grid: Grid, state: Mapping[str, Any]) -> bool:
    return _latin(grid, state) and _distinct(_boxes(grid))


def _colored(grid: Grid, state: Mapping[str, Any]) -> bool:
    return _latin(grid, state) and (state.get("colors") is None or _distinct(_by_label(grid, state["colors"])))


def _killer(grid: Grid, state: Mapping[str, Any]) -> bool:
    numbers = [[int(cell) for cell in row] for row in grid]
    nonzero = [[cell or (row, place) for place, cell in enumerate(line)] for row, line in enumerate(numbers)]
    if not (_distinct(nonzero) and _distinct(_columns(nonzero)) and _distinct(_boxes(nonzero))):
        return False
    for cage in state.get("cages") or ():
        cells = [numbers[row][column] for row, column in cage["cells"]]
        if sum(cells) > cage["sum"] or (all(cells) and sum(cells) != cage["sum"]):
            return False
    return True


def _odd_even(grid: Grid, state: Mapping[str, Any]) -> bool:
    numbers = [[int(cell) for cell in row] for row in grid]
    nonzero = [[cell or (row, place) for place, cell in enumerate(line)] for row, line in enumerate(numbers)]
    side = int(len(grid) ** 0.5)
    boxes = _by_label(nonzero, [[(r // side, c // side) for c in range(len(grid))] for r in range(len(grid))])
    if not (_distinct(nonzero) and _distinct(_columns(nonzero)) and _distinct(boxes)):
        return False
    types = state.get("cell_types")
    if types is None:
        return True
    pairs = ((numbers[r][c], types[r][c]) for r in range(len(grid)) for c in range(len(grid)))
    return not any(cell and {"w": cell % 2, "b": cell % 2 == 0}.get(kind) for cell, kind in pairs)


def _binairo(grid: Grid, state: Mapping[str, Any]) -> bool:
    lines, half = [*grid, *_columns(grid)], len(grid) // 2
    balanced = all(line.count("w") == line.count("b") == half or "*" in line for line in lines)
    return balanced and not any(
        line[at] == line[at + 1] == line[at + 2] for line in lines for at in range(len(line) - 2)
    )


def _futoshiki(grid: Grid, state: Mapping[str, Any]) -> bool:
    signs = {"<": lambda one, other: one < other, ">": lambda one, other: one > other}
    signs |= {"^": signs["<"], "v": signs[">"]}
    pairs = _neighbours(grid, state.get("row_inequalities"), state.get("col_inequalities"))
    return _latin(grid, state) and all(sign not in signs or signs[sign](one, other) for sign, one, other in pairs)


def _renzoku(grid: Grid, state: Mapping[str, Any]) -> bool:
    hints = state.get("hints") or {}
    pairs = list(_neighbours(grid, hints.get("row"), hints.get("col")))
    [int(cell) for row in grid for cell in row]
    return _latin(grid, state) and all(sign != "1" or abs(int(one) - int(other)) == 1 for sign, one, other in pairs)


def _neighbours(grid: Grid, beside: Any, below: Any) -> Iterable[tuple[Any, str, str]]:
    """The signs between cells, with the cell before and the one after."""
    size = len(grid)
    for row in range(size):
        yield from ((beside[row][c], grid[row][c], grid[row][c + 1]) for c in range(size - 1) if beside)
    for row in range(size - 1):
        yield from ((below[row][c], grid[row][c], grid[row + 1][c]) for c in range(size) if below)


def _kakuro(grid: Grid, state: Mapping[str, Any]) -> bool:
    numbers = [[int(cell) for cell in row] for row in grid]
    sums = state.get("sums") or {"row": [], "col": []}
    for lines, targets in ((numbers, sums["row"]), (_columns(numbers), sums["col"])):
        for line, target in zip(lines, targets, strict=False):
            if sum(line) > target or (all(line) and sum(line) != target):
                return False
    pairs = _neighbours(grid, [[1] * len(grid)] * len(grid), [[1] * len(grid)] * len(grid))
    return not any(int(one) == int(other) != 0 for _, one, other in pairs)


def _skyscraper(grid: Grid, state: Mapping[str, Any]) -> bool:
    clues, across = state["initialization"]["clues"], _columns(grid)
    views = {"top": across, "bottom": [line[::-1] for line in across], "left": grid}
    views["right"] = [line[::-1] for line in grid]
    seen = ((clue, line) for side, lines in views.items() for clue, line in zip(clues[side], lines, strict=False))
    return _latin(grid, state) and all(clue == 0 or _visible(line) == clue for clue, line in seen)


def _visible(line: Sequence[str]) -> int:
    heights = [int(cell) for cell in line]
    return sum(height > max([0, *heights[:place]]) for place, height in enumerate(heights))


def _counted(grid: Grid, rows: Sequence[int], columns: Sequence[int], mark: str = "s") -> bool:
    """Each row and column has as many marks as its clue says."""
    lines = [*zip(grid, rows, strict=False), *zip(_columns(grid), columns, strict=False)]
    return all(line.count(mark) == clue for line, clue in lines)


def _thermometers(grid: Grid, state: Mapping[str, Any]) -> bool:
    clues = state["initialization"]["clues"]
    scales = clues.get("thermometers") or []
    within = {(row, column) for scale in scales for row, column in scale}
    if any(cell == "s" and (r, c) not in within for r, row in enumerate(grid) for c, cell in enumerate(row)):
        return False
    cells = [[grid[row][column] for row, column in scale] for scale in scales]
    filled = all("s" not in scale[scale.index("e") :] for scale in cells if "e" in scale)
    return filled and _counted(grid, clues["row_counts"], clues["col_counts"])


def _aquarium(grid: Grid, state: Mapping[str, Any]) -> bool:
    clues = state["initialization"].get("clues") or {}
    for aquarium in clues.get("aquariums", []):
        level = min((row for row, column in aquarium if grid[row][column] == "s"), default=len(grid))
        if any(grid[row][column] == "e" for row, column in aquarium if row >= level):
            return False
    return not clues or _counted(grid, clues["row_counts"], clues["col_counts"])


def _kakurasu(grid: Grid, state: Mapping[str, Any]) -> bool:
    clues = state["initialization"]["clues"]
    lines = [*zip(grid, clues["row_clues"], strict=False), *zip(_columns(grid), clues["col_clues"], strict=False)]
    return all(sum(place for place, cell in enumerate(line, 1) if cell == "s") == clue for line, clue in lines)


def _star_battle(grid: Grid, state: Mapping[str, Any]) -> bool:
    lines = [*grid, *_columns(grid), *_by_label(grid, state["regions"])]
    return all(line.count("s") == 1 for line in lines) and not _touching(grid, "s", _AROUND)


def _touching(grid: Grid, mark: str, steps: Iterable[tuple[int, int]]) -> bool:
    places = {(r, c) for r, row in enumerate(grid) for c, cell in enumerate(row) if cell == mark}
    return any((row + down, column + across) in places for row, column in places for down, across in steps)


def _hitori(grid: Grid, state: Mapping[str, Any]) -> bool:
    numbers = state["initialization"]["numbers"]
    size = range(len(grid))
    rows = [[numbers[r][c] for c in size if grid[r][c] == "e"] for r in size]
    columns = [[numbers[r][c] for r in size if grid[r][c] == "e"] for c in size]
    white = {(r, c) for r in size for c in size if grid[r][c] == "e"}
    if not (_distinct(rows) and _distinct(columns)) or _touching(grid, "s", _SIDES) or not white:
        return False
    reached, left = set[tuple[int, int]](), [min(white)]
    while left:
        row, column = left.pop()
        if (row, column) in white and (row, column) not in reached:
            reached.add((row, column))
            left += [(row + down, column + across) for down, across in _SIDES]
    return reached == white


def _nonogram(grid: Grid, state: Mapping[str, Any]) -> bool:
    hints = state["hints"]
    lines = [*zip(grid, hints["row_hints"], strict=False), *zip(_columns(grid), hints["col_hints"], strict=False)]
    for line, clue in lines:
        runs = [len(run) for run in re.findall("s+", "".join(cell if cell in ("s", "e") else "?" for cell in line))]
        if line.count("s") if clue == [0] else runs != clue:
            return False
    return True


def _light_up(grid: Grid, state: Mapping[str, Any]) -> bool:
    walls = state.get("wall_numbers")
    for r, row in enumerate(grid):
        for c, cell in enumerate(row):
            seen = [_beam(grid, r, c, step) for step in _SIDES]
            if (cell == "s" and any(seen)) or (cell == "e" and not any(seen)):
                return False
            number = walls[r][c] if walls else -1
            near = sum(_at(grid, r + down, c + across) == "s" for down, across in _SIDES)
            if cell == "w" and number != -1 and near != number:
                return False
    return True


def _at(grid: Grid, row: int, column: int) -> str:
    return grid[row][column] if 0 <= row < len(grid) and 0 <= column < len(grid) else "w"


def _beam(grid: Grid, row: int, column: int, step: tuple[int, int]) -> bool:
    """Checks whether a lamp shines on a cell from one side."""
    while (cell := _at(grid, row := row + step[0], column := column + step[1])) != "w":
        if cell == "s":
            return True
    return False


def _trees_and_tents(grid: Grid, state: Mapping[str, Any]) -> bool:
    clues = state.get("clues")
    if clues and not _counted(grid, clues["row_clues"], clues["col_clues"], "tt"):
        return False
    cells = [(r, c, cell) for r, row in enumerate(grid) for c, cell in enumerate(row)]
    for mark, other in (("tt", "tr"), ("tr", "tt")):
        for r, c, cell in cells:
            if cell == mark and sum(_at(grid, r + down, c + across) == other for down, across in _SIDES) != 1:
                return False
    counts = Counter(cell for _, _, cell in cells)
    return not _touching(grid, "tt", _AROUND) and counts["tt"] == counts["tr"]


def _battleships(grid: Grid, state: Mapping[str, Any]) -> bool:
    hints = state["hints"]
    ships = {int(length): int(count) for length, count in hints["ships"].items()}
    diagonal = [step for step in _AROUND if all(step)]
    total = sum(row.count("s") for row in grid)
    if _touching(grid, "s", diagonal) or total != sum(length * count for length, count in ships.items()):
        return False
    if not _counted(grid, hints["row_hints"], hints["col_hints"]):
        return False
    lengths = Counter(_ship_lengths(grid))
    return all(lengths[length] == count for length, count in ships.items())


def _ship_lengths(grid: Grid) -> list[int]:
    """The lengths of ships, each to the right, else down, from its first cell."""
    left = {(r, c) for r, row in enumerate(grid) for c, cell in enumerate(row) if cell == "s"}
    found = []
    for row, column in sorted(left):
        if (row, column) in left:
            across = (row, column + 1) in left or _at(grid, row, column + 1) == "s"
            step = (0, 1) if across else (1, 0)
            length = 1
            while _at(grid, row + length * step[0], column + length * step[1]) == "s":
                length += 1
            left -= {(row + place * step[0], column + place * step[1]) for place in range(length)}
            found.append(length)
    return found


RULES: Mapping[str, Callable[[Grid, Mapping[str, Any]], bool]] = {
    "sudoku": _sudoku,
    "coloredsudoku": _colored,
    "jigsawsudoku": _latin,
    "killersudoku": _killer,
    "oddevensudoku": _odd_even,
    "binairo": _binairo,
    "futoshiki": _futoshiki,
    "renzoku": _renzoku,
    "kakuro": _kakuro,
    "skyscraper": _skyscraper,
    "thermometers": _thermometers,
    "aquarium": _aquarium,
    "kakurasu": _kakurasu,
    "starbattle": _star_battle,
    "hitori": _hitori,
    "nonogram": _nonogram,
    "lightup": _light_up,
    "treesandtents": _trees_and_tents,
    "battleships": _battleships,
}
