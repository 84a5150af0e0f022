"""Rows of VLRMBench, for `make_published_by_set`, and VLMEvalKit's own functions."""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

from make_published_answers import Published
from make_published_by_set import filled

PATH = Path(__file__).resolve().parent / "published_by_set_4.json.gz"
FLAGS = """
    [{t}]|{t}|The answer is [{t}].|Steps 1 and 2 are wrong: [{t}]|<think>[{u}]</think>[{t}]|[{u}] or rather [{t}]
    ```json\\n[{t}]\\n```|\\boxed{{[{t}]}}||No step is wrong.|[{u}]|({t})|[{t}
"""
MARKS = """
    [{t}, {u}]|Score 1: {t}, Score 2: {u}|{t}/10 and {u}/10|{t}|{t}.5 and {u}.5|Solution 1 is better.|
    I give {t} and {u}|<think>{u} {t}</think>[{t}, {u}]|**{t}**, **{u}**
    Solution 1 gets {t} points, solution 2 gets {u}.|[{t}, {u}] of 10
"""


def flagged(draw: random.Random) -> Any:
    """A row with a flag for each step."""
    right, other = ([draw.randint(0, 1) for _ in range(draw.randint(2, 5))] for _ in range(2))
    near = draw.choice([right, right, right[:-1], [*right, 1], [2 * flag for flag in right]])
    columns = {"question": "q", "category": draw.choice(["step_correctness", "redundant_det"]), "answer": str(right)}
    return columns, {"t": ", ".join(map(str, near)), "u": ", ".join(map(str, other))}


def two_marked(draw: random.Random) -> Any:
    """A row with two solutions."""
    order = draw.choice(["front", "back"])
    return {"question": "q", "category": "multi_solution", "order": order, "answer": order}, {
        "t": draw.randint(0, 10),
        "u": draw.randint(0, 10),
    }


ROWS: dict[str, Any] = {
    "steps": lambda: filled("steps", FLAGS, flagged),
    "marks": lambda: filled("marks", MARKS, two_marked),
}


class Steps(Published):
    """VLMEvalKit's class of this set."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.own = self.module("vlmeval.dataset.vlrmbench", "dataset/vlrmbench.py")

    def more(self) -> dict[str, Any]:
        """Nothing else."""
        return {}

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read of each row, and its score."""
        return [(text, float(getattr(self, kind)(columns, text))) for columns, text in rows]

    def steps(self, columns: dict[str, str], text: str) -> float:
        """The share of right flags, as `format_model_answer_tolist` reads them."""
        right = ast.literal_eval(columns["answer"])
        said = self.own.format_model_answer_tolist(text, right)
        return sum(map(int.__eq__, right, said)) / len(right)

    def marks(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate_multi_solution`, with a row in the other order that prefers neither."""
        row = {"index": 0, "order": columns["order"], "prediction": text}
        other = {"index": 1, "order": "back", "prediction": "5, 5"}
        if columns["order"] == "back":
            row["index"], other["index"], other["order"] = 1, 0, "front"
        return self.own.VLRMBench.evaluate_multi_solution(self.frame([row, other]))["multi_solution_accuracy"]


PUBLISHED = Steps
