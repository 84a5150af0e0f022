"""Answered questions with drawn verdicts, in the columns of the benchmarks' tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from testbed.answers.verdict import AnsweredQuestions, Verdict

YES_NO = ("Yes", "No", None)


def answered(
    columns: Sequence[Mapping[str, str]],
    scores: Sequence[float | None],
    ids: Sequence[str] | None = None,
    extracted: Sequence[str | None] | None = None,
    groups: Sequence[str | None] | None = None,
    method: str = "letter",
) -> AnsweredQuestions:
    """Rows with a score each; None is a row without an answer."""
    said = extracted if extracted is not None else ["A"] * len(scores)
    verdicts = [
        None if score is None else Verdict(own, float(score), method if own is not None else "none")
        for score, own in zip(scores, said, strict=True)
    ]
    texts = [None if score is None else "…" for score in scores]
    names = ids if ids is not None else [str(place) for place in range(len(scores))]
    return AnsweredQuestions(list(names), list(columns), verdicts, texts, groups)


def accuracy() -> AnsweredQuestions:
    rng = np.random.default_rng(1)
    columns = [
        {
            "split": ("dev", "test")[int(rng.integers(2))],
            "l2-category": ("logic_reasoning", "attribute_reasoning")[int(rng.integers(2))],
            "category": ("a", "b", "c")[int(rng.integers(3))],
        }
        for _ in range(80)
    ]
    return answered(columns, rng.integers(2, size=80).tolist())


def circular() -> AnsweredQuestions:
    rng = np.random.default_rng(2)
    columns, ids = [], []
    options = rng.integers(2, 5, size=30)
    kinds = rng.integers(3, size=30)
    for turn in range(4):
        for place in range(30):
            if turn < options[place]:
                ids.append(str(place + 1 + turn * 1_000_000))
                columns.append({"category": "abc"[kinds[place]], "l2-category": "xy"[kinds[place] % 2]})
    return answered(columns, (rng.random(len(ids)) < 0.8).astype(int).tolist(), ids)


def mme() -> AnsweredQuestions:
    rng = np.random.default_rng(3)
    categories = "OCR artwork celebrity color count existence landmark position posters scene code_reasoning".split()
    categories += "commonsense_reasoning numerical_calculation text_translation".split()
    columns = [
        {"category": category, "image_path": f"{category}/{picture}.png", "answer": answer}
        for category in categories
        for picture in range(4)
        for answer in ("Yes", "No")
    ]
    return answered(columns, (rng.random(len(columns)) < 0.7).astype(int).tolist())


def yes_no(rng: np.random.Generator, columns: list[dict[str, str]], ids: list[str] | None = None) -> AnsweredQuestions:
    said = [YES_NO[int(each)] for each in rng.choice(3, size=len(columns), p=[0.5, 0.4, 0.1])]
    scores = [float(own == row["answer"]) for own, row in zip(said, columns, strict=True)]
    return answered(columns, scores, ids, said)


def pope() -> AnsweredQuestions:
    rng = np.random.default_rng(4)
    kinds = ("random", "popular,random", "adversarial", "adversarial,popular,random")
    columns = [{"answer": YES_NO[int(rng.integers(2))], "category": kinds[int(rng.integers(4))]} for _ in range(90)]
    return yes_no(rng, columns)


def hallusion() -> AnsweredQuestions:
    rng = np.random.default_rng(5)
    columns, ids = [], []
    for kind in ("VD", "VS"):
        for topic in ("chart", "map"):
            for number in range(3):
                for figure in range(3):
                    for question in range(2):
                        ids.append(f"{kind}_{topic}_{len(ids)}_{number}_{figure}_{question}")
                        columns.append({"category": kind, "l2-category": topic, "answer": YES_NO[int(rng.integers(2))]})
    scores = (rng.random(len(ids)) < 0.75).astype(int).tolist()
    return answered(columns, scores, ids)


def mmvp() -> AnsweredQuestions:
    rng = np.random.default_rng(6)
    columns = [{"question": f"question {place // 2}"} for place in range(40)]
    return answered(columns, rng.integers(2, size=40).tolist(), [str(place + 1) for place in range(40)])


def cv_bench_2d() -> AnsweredQuestions:
    rng = np.random.default_rng(7)
    columns = [
        {
            "split": "2D",
            "source": ("COCO", "ADE20K")[int(rng.random() < 0.3)],
            "category": ("Count", "Relation")[int(rng.integers(2))],
        }
        for _ in range(60)
    ]
    return answered(columns, rng.integers(2, size=60).tolist())


def hr_bench() -> AnsweredQuestions:
    rng = np.random.default_rng(8)
    columns = [
        {"cycle_category": str(place % 4), "category": ("single", "cross")[place // 4 % 2], "question": str(place // 4)}
        for place in range(80)
    ]
    return answered(columns, rng.integers(2, size=80).tolist())


def ocrbench() -> AnsweredQuestions:
    from testbed.answers.reports.free_text import OCR_GROUPS

    rng = np.random.default_rng(9)
    columns = [{"category": category} for category in OCR_GROUPS for _ in range(6)]
    return answered(columns, rng.integers(2, size=60).tolist())


def vqa() -> AnsweredQuestions:
    rng = np.random.default_rng(10)
    columns = [{"split": ("human", "augmented")[int(rng.integers(2))]} for _ in range(50)]
    return answered(columns, rng.choice([0, 0.3, 0.6, 0.9, 1], size=50).tolist())


def mme_realworld() -> AnsweredQuestions:
    rng = np.random.default_rng(11)
    kinds = (
        ("Perception/OCR with Complex Context", "Scene/OCR"),
        ("Perception/Monitoring", "Vehicle/attribute/color"),
        ("Perception/Monitoring", "Vehicle/Attribute/orientation"),
        ("Reasoning/Diagram and Table", "Calculate"),
    )
    chosen = rng.integers(4, size=70)
    columns = [{"category": kinds[each][0], "l2-category": kinds[each][1]} for each in chosen]
    return answered(columns, rng.integers(2, size=70).tolist())


def we_math() -> AnsweredQuestions:
    rng = np.random.default_rng(12)
    columns = []
    for steps, size in ((2, 30), (3, 20)):
        for problem in range(size):
            for step in (*range(1, steps + 1), "multi"):
                columns.append({"key": f"{steps}steps_{step}", "ID": str(problem)})
    return answered(columns, (rng.random(len(columns)) < 0.6).astype(int).tolist())


def video_mme() -> AnsweredQuestions:
    rng = np.random.default_rng(13)
    columns = []
    for video in range(40):
        shared = {
            "video": str(video),
            "duration": ("short", "medium", "long")[video % 3],
            "domain": ("Knowledge", "Life Record")[video % 2],
            "sub_category": ("Geography", "Food")[video % 2],
        }
        columns += [
            {**shared, "task_type": ("Counting Problem", "Action Reasoning")[int(rng.integers(2))]} for _ in range(3)
        ]
    scores = [None if each == 2 else int(each) for each in rng.choice(3, size=120, p=[0.3, 0.6, 0.1])]
    return answered(columns, scores)


def math_vista() -> AnsweredQuestions:
    rng = np.random.default_rng(14)
    lists = ("['geometry reasoning', 'algebraic reasoning']", "['statistical reasoning']", "arithmetic reasoning")
    columns = [
        {"task": ("textbook question answering", "math word problem")[int(rng.integers(2))], "skills": lists[each]}
        for each in rng.integers(3, size=60)
    ]
    own = answered(columns, rng.integers(2, size=60).tolist())
    verdicts = [
        Verdict(each.extracted, each.score, "judge") if rng.random() < 0.4 else each for each in own.verdicts if each
    ]
    return AnsweredQuestions(own.ids, own.columns, verdicts, own.texts)


def kinds() -> AnsweredQuestions:
    rng = np.random.default_rng(15)
    columns = [
        {"subject": "abc"[int(rng.integers(3))], "match_type": ("[1, 5]", "[2]")[int(rng.integers(2))]}
        for _ in range(40)
    ]
    return answered(columns, rng.integers(2, size=40).tolist())


def graded_kinds() -> AnsweredQuestions:
    return kinds()


def tasks() -> AnsweredQuestions:
    rng = np.random.default_rng(16)
    columns = [{"category": "ab"[int(rng.integers(2))], "l2-category": "xy"[int(rng.integers(2))]} for _ in range(60)]
    return answered(columns, rng.integers(2, size=60).tolist())


def crpe() -> AnsweredQuestions:
    rng = np.random.default_rng(17)
    columns = [{"category": ("exist", "object")[place // 4 % 2]} for place in range(80)]
    return answered(columns, (rng.random(80) < 0.8).astype(int).tolist())


def visfactor() -> AnsweredQuestions:
    rng = np.random.default_rng(18)
    columns = [{"category_id": ("CF1", "S2")[place % 2], "eval_index": str(place // 6)} for place in range(90)]
    return answered(columns, (rng.random(90) < 0.8).astype(int).tolist())


def question_types() -> AnsweredQuestions:
    rng = np.random.default_rng(19)
    columns = [{"question_type": "abc"[int(rng.integers(3))]} for _ in range(60)]
    return answered(columns, rng.integers(2, size=60).tolist())


def olympiad() -> AnsweredQuestions:
    rng = np.random.default_rng(20)
    sources = ("OE_MM_maths_en_COMP", "OE_TO_physics_zh_CEE", "OE_MM_maths_zh_CEE")
    columns = [{"source": sources[int(rng.integers(3))]} for _ in range(60)]
    return answered(columns, rng.integers(2, size=60).tolist())


def hidden_words() -> AnsweredQuestions:
    rng = np.random.default_rng(21)
    columns = [{"answer": ("['a b']", "['a b', 'c']")[int(rng.integers(2))]} for _ in range(60)]
    return answered(columns, rng.integers(2, size=60).tolist())


def spar_bench() -> AnsweredQuestions:
    rng = np.random.default_rng(22)
    names = ("depth_prediction_oc", "position_matching", "view_change_infer", "spatial_imagination_oc")
    columns = [{"task": names[int(rng.integers(4))]} for _ in range(80)]
    return answered(columns, rng.integers(2, size=80).tolist())


def cc_ocr() -> AnsweredQuestions:
    rng = np.random.default_rng(23)
    columns = [
        {
            "category": ("kie", "doc_parsing")[int(rng.integers(2))],
            "l2-category": "a",
            "split": "xy"[int(rng.integers(2))],
        }
        for _ in range(80)
    ]
    return answered(columns, rng.integers(2, size=80).tolist())


def points() -> AnsweredQuestions:
    rng = np.random.default_rng(24)
    columns = [{"points": ("[1, 2]", "[0.5]")[place % 2], "SUB_DATASET": "IPhO_2025"} for place in range(40)]
    return answered(columns, rng.integers(2, size=40).tolist())


_NEWER = (
    spar_bench,
    cc_ocr,
    points,
    question_types,
    olympiad,
    hidden_words,
    kinds,
    graded_kinds,
    tasks,
    crpe,
    visfactor,
)
_ALL = (accuracy, circular, mme, pope, hallusion, mmvp, cv_bench_2d, hr_bench, ocrbench, vqa, mme_realworld, we_math)
WORLDS: Mapping[str, Callable[[], AnsweredQuestions]] = {
    each.__name__: each for each in (*_ALL, video_mme, math_vista, *_NEWER)
}

# How servers and chat templates write thoughts and an answer.
FORMS: Mapping[str, str] = {
    "think": "<think>{}</think>{}",
    "lines": "<think>\n{}\n</think>\n\n{}",
    "thinking": "<thinking>{}</thinking>\n{}",
    "capitals": "<THINK>{}</THINK>{}",
    "thought": "<thought>{}</thought>{}",
    "reasoning": "<reasoning>{}</reasoning>{}",
    "brackets": "[THINK]{}[/THINK]{}",
    "triangles": "◁think▷{}◁/think▷{}",
    "seed": "<seed:think>{}</seed:think>{}",
    "tokens": "<|begin_of_thought|>{}<|end_of_thought|>{}",
    "cohere": "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "channels": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "gemma": "<|channel>thought\n{}<channel|>{}",
    "joined channels": "analysisWe ask: {}assistantfinal{}",
    "opened in the prompt": "{}</think>{}",
}
