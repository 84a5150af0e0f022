"""Replies with solved grids of VGRP-Bench, and what VLMEvalKit's `parse_score` says of them.

Run as ``published_by_set_5`` is; json-repair and NumPy are needed. A reply has two grids: of a puzzle as it was seen,
and as it was solved. Each puzzle is made from a solution; others are made from this one by changing cells.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import random
import sys
import types
from pathlib import Path
from typing import Any

from make_published_answers import Published

PATH = Path(__file__).resolve().parent / "published_by_set_6.json.gz"
REPLIES = 24  # to each kind of puzzle
LATIN = [[1, 2, 3, 4], [3, 4, 1, 2], [2, 1, 4, 3], [4, 3, 2, 1]]
BOXES = [[2 * (row // 2) + column // 2 for column in range(4)] for row in range(4)]
STARS = ["esee", "eees", "seee", "eese"]
WHITE = ["wwbb", "bbww", "wbwb", "bwbw"]


def columns(grid: Any) -> list[Any]:
    return [list(column) for column in zip(*grid, strict=True)]


def visible(line: list[int]) -> int:
    return sum(height > max([0, *line[:place]]) for place, height in enumerate(line))


def runs(line: Any) -> list[int]:
    return [len(run) for run in "".join(line).replace("e", " ").replace("0", " ").split()] or [0]


def signs(grid: list[list[int]], less: str, more: str) -> list[list[str]]:
    return [[less if one < other else more for one, other in itertools.pairwise(row)] for row in grid]


def near(grid: list[list[int]]) -> list[list[str]]:
    return [[str(int(abs(one - other) == 1)) for one, other in itertools.pairwise(row)] for row in grid]


def hidden(draw: random.Random, solved: list[list[Any]], blank: Any = 0) -> list[list[Any]]:
    """A board of which most cells are blank."""
    return [[cell if draw.random() < 0.3 else blank for cell in row] for row in solved]


def puzzle(kind: str, draw: random.Random) -> tuple[dict[str, Any], Any, list[list[Any]]]:
    """A state, its board as it should be seen, and a solution."""
    marks = [list(row) for row in STARS]
    board = hidden(draw, LATIN)
    if kind in ("sudoku", "jigsawsudoku", "coloredsudoku"):
        return {"initialization": board, "colors": BOXES, "regions": BOXES}, board, LATIN
    if kind == "killersudoku":
        pairs = [(row, column) for row in range(4) for column in (0, 2)]
        cages = [{"cells": [(r, c), (r, c + 1)], "sum": LATIN[r][c] + LATIN[r][c + 1]} for r, c in pairs]
        return {"initialization": board, "cages": cages}, board, LATIN
    if kind == "oddevensudoku":
        types_of = [["w" if cell % 2 == 0 else "b" for cell in row] for row in LATIN]
        return {"initialization": board, "cell_types": types_of}, board, LATIN
    if kind == "binairo":
        solved = [list(row) for row in WHITE]
        board = hidden(draw, solved)
        return {"initialization": board}, board, solved
    if kind == "futoshiki":
        below = columns(signs(columns(LATIN), "^", "v"))
        beside = signs(LATIN, "<", ">")
        return {"initialization": board, "row_inequalities": beside, "col_inequalities": below}, board, LATIN
    if kind == "renzoku":
        hints = {"row": near(LATIN), "col": columns(near(columns(LATIN)))}
        return {"initialization": board, "hints": hints}, board, LATIN
    if kind == "kakuro":
        return {"initialization": board, "sums": {"row": [10] * 4, "col": [10] * 4}}, board, LATIN
    if kind == "skyscraper":
        down = columns(LATIN)
        clues = {"top": [visible(line) for line in down], "bottom": [visible(line[::-1]) for line in down]}
        clues |= {"left": [visible(line) for line in LATIN], "right": [visible(line[::-1]) for line in LATIN]}
        return {"initialization": {"board": board, "clues": clues}}, board, LATIN
    board = hidden(draw, marks)
    if kind in ("thermometers", "aquarium", "kakurasu"):
        solved = [list(row) for row in ("seee", "sses", "ssss", "esss")]
        board = [[0] * 4 for _ in range(4)]
        rows, across = [row.count("s") for row in solved], [column.count("s") for column in columns(solved)]
        clues: dict[str, Any] = {"row_counts": rows, "col_counts": across}
        clues["thermometers"] = [[(2, 0), (1, 0), (0, 0)], [(3, 1), (2, 1), (1, 1), (0, 1)], [(3, 2), (2, 2), (1, 2)]]
        clues["thermometers"].append([(3, 3), (2, 3), (1, 3)])
        clues["aquariums"] = [[(2, 2), (3, 2), (1, 2)], [(1, 3), (2, 3), (3, 3)], [(0, 0), (1, 0), (2, 0)]]
        clues["row_clues"] = [sum(place for place, cell in enumerate(row, 1) if cell == "s") for row in solved]
        clues["col_clues"] = [sum(place for place, cell in enumerate(row, 1) if cell == "s") for row in columns(solved)]
        return {"initialization": {"board": board, "clues": clues}}, board, solved
    if kind == "starbattle":
        regions = [list(range(4)) for _ in range(4)]
        return {"initialization": board, "regions": regions}, board, marks
    if kind == "hitori":
        solved = [list(row) for row in ("seee", "eese", "eeee", "esee")]
        numbers = [list(row) for row in LATIN]
        numbers[0][0], numbers[1][2], numbers[3][1] = 2, 2, 4
        return {"initialization": {"numbers": numbers, "board": hidden(draw, solved)}}, numbers, solved
    if kind == "nonogram":
        hints = {"row_hints": [runs(row) for row in marks], "col_hints": [runs(column) for column in columns(marks)]}
        return {"initialization": board, "hints": hints}, board, marks
    if kind == "battleships":
        solved = [list(row) for row in ("ssee", "eees", "seee", "eees")]
        rows, across = [row.count("s") for row in solved], [column.count("s") for column in columns(solved)]
        hints = {"row_hints": rows, "col_hints": across, "ships": {"1": 3, "2": 1}}
        board = hidden(draw, solved)
        seen = [[0 if cell == "e" else cell for cell in row] for row in board]
        return {"initialization": board, "hints": hints}, seen, solved
    if kind == "lightup":
        solved = [list(row) for row in ("seew", "ewes", "eese", "wsee")]
        walls = [[-1] * 4 for _ in range(4)]
        walls[3][0], walls[1][1] = 1, 0
        board = [[cell if cell == "w" else 0 for cell in row] for row in solved]
        board[3][0] = 1
        seen = [["w" if cell else 0 for cell in row] for row in board]
        return {"initialization": board, "wall_numbers": walls}, seen, solved
    if kind == "treesandtents":
        solved = [["tr", "tt", "e", "e"], ["e", "e", "e", "tt"], ["tt", "e", "e", "tr"], ["tr", "e", "e", "e"]]
        board = [[cell if cell == "tr" else 0 for cell in row] for row in solved]
        tents = {
            "row_clues": [row.count("tt") for row in solved],
            "col_clues": [c.count("tt") for c in columns(solved)],
        }
        return (
            {"initialization": board, "clues": tents},
            [["r" if cell else 0 for cell in row] for row in board],
            solved,
        )
    board = [["s", 2, 0, 0], [-1, 0, 1, 0], [0, 0, "s", 0], [1, 0, 0, 0]]
    solved = [["s", "2", "e", "e"], ["e", "e", "1", "e"], ["e", "e", "s", "e"], ["1", "e", "e", "e"]]
    return {"initialization": board}, [[0 if cell == -1 else cell for cell in row] for row in board], solved


KINDS = (
    "sudoku jigsawsudoku coloredsudoku killersudoku oddevensudoku binairo futoshiki renzoku kakuro skyscraper"
    " thermometers aquarium kakurasu starbattle hitori nonogram battleships lightup treesandtents fieldexplore"
).split()


def written(grid: Any) -> str:
    return "[" + ",".join("[" + ",".join(map(str, row)) + "]" for row in grid) + "]"


def reply(kind: str, seen: Any, solved: Any, draw: random.Random) -> str:
    """A reply of the asked form, perhaps with other cells."""
    short = {"tt": "t", "tr": "r"} if kind == "treesandtents" else {}
    both = [[[short.get(cell, cell) for cell in row] for row in grid] for grid in (seen, solved)]
    values = sorted({cell for row in both[1] for cell in row}, key=str)
    for grid, share in ((both[0], 0.15), (both[1], 0.5)):
        if draw.random() < share:
            for _ in range(draw.choice([1, 1, 2])):
                row, column = draw.randrange(len(grid)), draw.randrange(len(grid))
                grid[row][column] = draw.choice([*values, 0])
    if draw.random() < 0.1 and isinstance(both[1][0][0], str):
        both[1] = [[0 if cell == "e" else cell for cell in row] for row in both[1]]
    if draw.random() < 0.05:
        both[1] = both[1][:-1]
    heads = draw.choice([("Perception", "Answer"), ("Initial State", "Solution")])
    second = "Wrong" if draw.random() < 0.05 else written(both[1])
    return f"{heads[0]}\n{written(both[0])}\n{heads[1]}\n{second}"


class Grids(Published):
    """VLMEvalKit's functions."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        own = types.ModuleType("vgrp")
        own.__path__ = [str(folder / "vlmeval/dataset/utils/vgrpbench")]  # type: ignore[attr-defined]
        sys.modules["vgrp"] = own
        self.score = importlib.import_module("vgrp.score")

    def more(self) -> dict[str, Any]:
        """Kind, state, reply, and whether the puzzle was seen as it is and is solved."""
        found = []
        for kind in KINDS:
            draw = random.Random(kind)
            for _ in range(REPLIES):
                state, seen, solved = puzzle(kind, draw)
                text, shown = reply(kind, seen, solved, draw), repr(state)
                self.score.GRID_SIZE = None  # it is kept from the first puzzle on there
                said = self.score.evaluate_single_puzzle(text, ast.literal_eval(shown), kind)
                right = [bool(said[name]) for name in ("perception_correct", "answer_correct")]
                found.append([f"{kind}_4x4", shown, text, *right])
        return {"grids": found}


ROWS: dict[str, Any] = {}
PUBLISHED = Grids
