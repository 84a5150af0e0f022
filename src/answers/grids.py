"""VGRP-Bench (arXiv 2503.23064): puzzles on grids; an answer has the grid as it was seen, and the solved one.

The constraints of each kind of puzzle are in `testbed.answers.published.grid_rules`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.answers.columns import truth
from testbed.answers.judges.replies import object_in
from testbed.answers.published.grid_rules import RULES, Grid
from testbed.answers.texts import final_text
from testbed.answers.verdict import Columns, Verdict

_GRID = re.compile(r"\[\s*\[[^\[\]]*\](?:\s*,\s*\[[^\[\]]*\])*\s*\]")
_SEEN, _SOLVED = ("initial state", "perception"), ("solution", "answer")
_BLANK = dict.fromkeys("*_-#", "0")
_AS_EMPTY = ("treesandtents", "starbattle", "hitori", "aquarium", "kakurasu", "lightup", "nonogram")
_ITSELF = ("skyscraper", "thermometers", "aquarium", "kakurasu", "hitori")  # the board is a part of the first state


def grids(columns: Columns, text: str) -> Verdict:
    """The verdict on two grids in JSON, or after "Initial State" or "Perception" and "Solution" or "Answer"."""
    final, why = final_text(text)
    found = grids_in(final or "")
    return Verdict(None, 0.0, why or "none") if found is None else verdict(columns, *found, method="grids")


def grids_in(text: str) -> tuple[Grid, Grid] | None:
    """The grid as it was seen, and the solved one; None without both."""
    fields = {str(name).strip().lower(): value for name, value in (object_in(text) or {}).items()}
    seen, solved = (next((fields[name] for name in names if name in fields), None) for names in (_SEEN, _SOLVED))
    if isinstance(seen, list) and isinstance(solved, list):
        both = [_cells(each) for each in (seen, solved)]
    else:
        found = {match.start(): match[0] for match in _GRID.finditer(text)}
        lower = text.lower()
        start = next((place for name in _SEEN if (place := lower.find(name)) >= 0), -1)
        middle = next((place for name in _SOLVED if (place := lower.rfind(name)) > start), -1)
        first = next((grid for place, grid in found.items() if start < place < middle), "")
        second = next((grid for place, grid in found.items() if place > middle >= 0), "")
        both = [_cells([row.split(",") for row in re.findall(r"\[([^\[\]]*)\]", grid)]) for grid in (first, second)]
    return (both[0], both[1]) if both[0] and both[1] else None


def _cells(rows: Sequence[Any]) -> Grid:
    if not all(isinstance(row, list) for row in rows):
        return []
    plain = [[str(cell).strip().strip("\"'") for cell in row] for row in rows]
    return [[_BLANK.get(cell, cell) for cell in row] for row in plain]


def verdict(columns: Columns, seen: Grid, solved: Grid, method: str) -> Verdict:
    """Checks both grids: 1 if the puzzle was seen as it is, and is solved. What is extracted is both, as 0 or 1."""
    kind = columns.get("category", "").split("_")[0]
    try:
        state = ast.literal_eval(columns.get("states", truth(columns)))
        first = state["initialization"]
        board = (first["numbers"] if kind == "hitori" else first["board"]) if kind in _ITSELF else first
        right = _is_seen(kind, board, seen)
        hit = right and _is_solved(kind, state, board, solved)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, SyntaxError, RecursionError, MemoryError):
        right = hit = False
    return Verdict(f"{right:d} {hit:d}", float(hit), method)


def _is_seen(kind: str, board: Sequence[Sequence[Any]], seen: Grid) -> bool:
    shown = [[_shown(kind, cell) for cell in row] for row in board]
    said = [[_alias(kind, cell) for cell in row] for row in seen]
    if kind == "battleships":
        said = [["0" if cell == "e" else cell for cell in row] for row in said]
    return said == shown


def _shown(kind: str, cell: Any) -> str:
    """A cell of the puzzle as it should be seen."""
    if kind == "battleships" and cell == "e":
        return "0"
    if kind == "fieldexplore" and cell == -1:
        return "0"
    wall = cell != 0 if isinstance(cell, int | float) else not str(cell).isalpha()
    return "w" if kind == "lightup" and wall else str(cell)


def _alias(kind: str, cell: str) -> str:
    return {"t": "tt", "r": "tr"}.get(cell, cell) if kind == "treesandtents" else cell


def _is_solved(kind: str, state: Mapping[str, Any], board: Sequence[Sequence[Any]], solved: Grid) -> bool:
    size = len(board)
    grid = [[_alias(kind, cell) for cell in row] for row in solved]
    if len(grid) != size or any(len(row) != size for row in grid):
        return False
    if kind in _AS_EMPTY:
        grid = [["e" if cell == "0" else cell for cell in row] for row in grid]
    places = [(row, column) for row in range(size) for column in range(size)]
    if kind == "fieldexplore":
        return all(_field_kept(board[row][column], grid[row][column]) for row, column in places)
    given = state["initialization"]["board"] if kind == "hitori" else board
    free = ("0",) if kind in ("hitori", "nonogram") else ("0", "e")
    kept = ((_shown("lightup", given[r][c]) if kind == "lightup" else str(given[r][c]), grid[r][c]) for r, c in places)
    if any(cell not in free and cell != own for cell, own in kept):
        return False
    rule = RULES.get(kind)
    return rule is not None and rule(grid, state)


def _field_kept(given: Any, cell: str) -> bool:
    number = int(given) if str(given).isdecimal() else 0
    return (given != "s" or cell == "s") and not (number > 0 and cell == "s")
