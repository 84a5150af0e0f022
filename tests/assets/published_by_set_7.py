"""Replies of VLMEvalKit's judges about charts, documents, memories and comparisons, and the scores that it reads.

Run as ``published_by_set_5`` is, whose packages are needed. A reply in the form that VLMEvalKit asks for stands beside
one of the same meaning in the form that is asked for here, since the questions to judges are our own.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import types
from pathlib import Path
from typing import Any

from make_published_answers import Empty, Published

PATH = Path(__file__).resolve().parent / "published_by_set_7.json.gz"
REPLIES = 240  # of each judge
WORDS = ("Answer: {0}", "The two numbers differ by 3 %.\nAnswer: {0}", "{0}", "**Answer: {0}**", "answer: {0}")
MARKS = ("Score: {}", "{}", "Most is right.\n\nScore: {}", "**Score: {}**", "score: {}")
POINTS = (
    '[Scoring Rationale]: It matches.\n[Score]: {0} points\n[JSON]:\n{{\n  "answer_score": {0}\n}}',
    'In summary, the answer deserves {0} points.\n[JSON]:\n```json\n{{"answer_score": {0}}}\n```',
    '{{"answer_score": {0}}}',
)
COUNTS = (
    '[Rationale]: Two are there.\n[JSON]:\n{{\n    "student_answer_count": {0},\n    "covered_count": {1}\n}}',
    '{{"student_answer_count": {0}, "covered_count": {1}}}',
)
NUMBERS = ("Answer {}", "Answer {}.", "answer {}", "**Answer {}**", "Overall Judgment: Answer {} is better.")
OWN_WORDS = ("{}", "{}.", "**{}**", "Verdict: {}", "The two differ by 3 %.\n\n{}", "Answer: {}")
OWN_MARKS = ("{}", "{}/5", "**{}**", "Score: {}", "Most is right.\n\nScore: {}", "{} out of 5")
OWN_COUNTS = ('{{"student_answer_count": {0}, "covered_count": {1}}}',)
OWN_COUNTS += ('```json\n{{\n  "student_answer_count": {0},\n  "covered_count": {1}\n}}\n```',)
OWN_NUMBERS = ("Answer {}", "Answer {}.", "**Answer {}**", "{}", "Verdict: Answer {}")
KINDS = ("information_extraction", "multi_session_reasoning", "temporal_reasoning", "knowledge_update")
KINDS += ("answer_refusal",)


class Judges(Published):
    """VLMEvalKit's functions, with a judge that gives one reply."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        sys.modules["torch"] = Empty("torch")
        self.own = {
            name: self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")
            for name in ("chartx_eval", "mmlongbench_judge_prompt", "mmlongbench_metrics", "memlens_utils")
        }
        importlib.import_module("vlmeval.dataset")
        self.own["vl_rewardbench"] = self.module("vlmeval.dataset.vl_rewardbench", "dataset/vl_rewardbench.py")
        self.own["vl_rewardbench"].toliststr = lambda cell: json.loads(cell)
        self.reply = ""
        self.judge = types.SimpleNamespace(generate=lambda *_: self.reply)

    def more(self) -> dict[str, Any]:
        """Rules, columns, a reply there, one here, and the score there; of marks from 0 to 5 the fifth."""
        found = []
        for kind in ("chart_tables", "long_contexts", "memories", "comparison"):
            draw = random.Random(kind)
            for _ in range(REPLIES):
                columns, there, here = getattr(self, f"_{kind}")(draw)
                self.reply = there
                found.append([kind, columns, there, here, float(getattr(self, kind)(columns))])
        return {"judged": found}

    def _verdict(self, draw: random.Random, forms: tuple[str, ...], *said: str) -> tuple[str, str]:
        place = draw.randrange(2)
        return draw.choice(forms).format(said[place]), draw.choice(OWN_WORDS).format(("INCORRECT", "CORRECT")[place])

    def _chart_tables(self, draw: random.Random) -> tuple[dict[str, str], str, str]:
        category = draw.choice(("QA", "QA", "description", "summary", "redrawing"))
        data = json.dumps({"title": "Sales", "chart_type": "bar", "csv": "a \\t b \\n 1 \\t 2"})
        columns = {"question": "How many?", "category": category, "answer": "12", "metadata": data}
        if category == "QA":
            return columns, *self._verdict(draw, WORDS, "False", "True")
        mark = draw.randrange(6)
        return columns, draw.choice(MARKS).format(mark), draw.choice(OWN_MARKS).format(mark)

    def chart_tables(self, columns: dict[str, str]) -> float:
        """By `ChartX_auxeval`."""
        score = self.own["chartx_eval"].ChartX_auxeval(self.judge, {**columns, "prediction": "12"})["score"]
        return score if columns["category"] == "QA" else score / 5

    def _long_contexts(self, draw: random.Random) -> tuple[dict[str, str], str, str]:
        columns = {"question": "Which?", "task": "documentQA", "source_dataset": "mmlongdoc"}
        if draw.random() < 0.5:
            right = json.dumps([f"item {number}" for number in range(draw.randint(1, 5))])
            given = draw.randint(1, 6)
            counts = given, draw.randint(0, min(given, 5))
            extra = {"answer": right, "answer_format": "List", "question": "Which?"}
            replies = draw.choice(COUNTS).format(*counts), draw.choice(OWN_COUNTS).format(*counts)
        else:
            right, replies = "12", self._verdict(draw, POINTS, "0", "1")
            extra = {"answer": right, "answer_format": "Int", "question": "Which?"}
        return {**columns, "answer": right, "extra_info": json.dumps(extra)}, *replies

    def long_contexts(self, columns: dict[str, str]) -> float:
        """By `calculate_metrics`."""
        extra = {**json.loads(columns["extra_info"]), "llm_judge_client": self.judge}
        right = extra["answer"]
        return self.own["mmlongbench_metrics"].calculate_metrics("12", right, "doc_qa_llm", extra)["doc_qa_llm"][
            "final_score"
        ]

    def _memories(self, draw: random.Random) -> tuple[dict[str, str], str, str]:
        columns = {"question": "Which?", "question_type": draw.choice(KINDS), "answer": "12", "old_answer": "11"}
        return columns, *self._verdict(draw, POINTS, "0", "1")

    def memories(self, columns: dict[str, str]) -> float:
        """By `_judge_one`."""
        module = self.own["memlens_utils"]
        shown = module.normalize_for_judge("12")
        kind = columns["question_type"]
        options = {"old_answer": columns["old_answer"], "judge_model": self.judge}
        return module._judge_one(columns["question"], columns["answer"], shown, kind, **options)[0]

    def _comparison(self, draw: random.Random) -> tuple[dict[str, str], str, str]:
        responses = json.dumps(["a" * draw.randint(1, 9), "b" * draw.randint(1, 9)])
        columns = {"question": "What is there?", "response": responses, "answer": draw.choice(("[0, 1]", "[1, 0]"))}
        number = draw.choice("12")
        return columns, draw.choice(NUMBERS).format(number), draw.choice(OWN_NUMBERS).format(number)

    def comparison(self, columns: dict[str, str]) -> float:
        """By `VLRewardBench_eval_answer`."""
        row = {**columns, "human_ranking": json.loads(columns["answer"]), "prediction": "One is better."}
        return self.own["vl_rewardbench"].VLRewardBench_eval_answer(self.judge, row)


ROWS: dict[str, Any] = {}
PUBLISHED = Judges
