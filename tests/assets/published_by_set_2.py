"""Rows, prompts and VLMEvalKit's own verdicts for ``make_published_by_set.py FOLDER published_by_set_2``."""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import random
import re
import sys
import tempfile
import types
from functools import partial
from pathlib import Path
from typing import Any

from make_published_answers import Empty, Published, choices
from make_published_by_set import Rows, filled

PATH = Path(__file__).resolve().parent / "published_by_set_2.json.gz"

SAID = """
    {t}|{t}.|The answer is {t}.|**{t}**|\\boxed{{{t}}}|I see {u}, so {t}|{u} {t}|{t} or {u}|
    Answer: {t}|({t})|{t}, {t}
    answer: {t}\\n{u}|{T}|It is {t}, not {u}|{u}
"""
BOXES = """
    [{b}]|{{"bbox_2d": [{b}]}}|```json\\n{{"bbox_2d": [{b}]}}\\n```|{{"bbox_2d": null}}
    [{c}] and [{b}]|{b}|no box||({b})
    {{"bbox_2d": [{c}]}}\\n{{"bbox_2d": [{b}]}}|x1, y1 = {b}|{{"bbox_2d": [1, 2]}}|{{"bbox_2d": [{b}], "label": "a"}}
    [1,2,3]|The box is [{b}] in a picture of 1000 x 500|[0, 0, 0, 0]
"""
POINTS = """
    [{{"point_2d": [{x}, {y}], "label": "a"}}]|```json\\n[{{"point_2d": [{x}, {y}]}}]\\n```
    ({x}, {y})|{{"point": [{x}, {y}]}}
    [{{"point_2d": "a"}}]|It is at ({x}, {y}).|x={x}, y={y}|({x}, {y}, {z}, {z})|[({x}, {y})]|yes
    Yes, it is|no|No.||(1, 2) ({x}, {y})
    I say no|[{{"label": 1}}]|[{x}, {y}]
"""
DISTANCES = """
    \\scalar{{{t}}} \\distance_unit{{{u}}}|It is {t} {u}
    \\scalar{{{t}}} \\distance_unit{{{u}}} or \\scalar{{2}} \\distance_unit{{cm}}
    \\scalar{{{t}-{t}}} \\distance_unit{{{u}}}|\\scalar{{{t} {u}}}|
    \\scalar{{a}} \\distance_unit{{m}}|scalar{{{t}}} distance_unit{{{u}}}
    \\scalar{{{t}}} \\distance_unit{{miles}}|about {t}{u}
"""
CHINESE = """
    {t}|答案是{t}|答案是{t}。|因此，正确答案为{t}。\\n{u}|{u}|({t})|（{t}）|所以选择{t}，不是{u}
    x = {t}|A 或 B|||这个说法是{t}的|判断：{t}
    {t}。{u}|结果等于{t}|{u}\\n所以答案: {t}|我不知道|是否正确？{t}
"""
TABLES = ["2004", "Freeman", "Apple|Banana", "2,000", "1.5", "2010-05-03", "xx-05-03", "the United States", "31", "10%"]
FINANCE = ["$3,852 million", "October 31", "34.2%", "1.5 billion", "(12)", "7 shares", "$2 thousand"]


def oral(seed: str) -> Rows:
    """Rows of MMOral-OPG."""
    found = []
    for columns, text in choices(seed, 4):
        numbered = {f"option{place}": columns.get(letter, f"thing {place}") for place, letter in enumerate("ABCD", 1)}
        found.append(({"question": "q", "category": "Teeth", "answer": columns["answer"], **numbered}, text))
    return found


def chinese(draw: random.Random) -> Any:
    """A row of CMMMU."""
    kind = draw.choice(["选择", "判断", "填空"])
    columns = {"category": "科学", "question": "q", "type": kind}
    if kind == "选择":
        columns |= {f"option{place}": text for place, text in enumerate(("猫", "狗", "鸟", "鱼"), 1)}
        right, said = draw.choice(["A", "B", "AC"]), ["A", "B", "AC", "A, C", "狗", "猫"]
    elif kind == "判断":
        right, said = draw.choice("对错"), ["对", "错", "正确", "错误", "不对", "不正确"]
    else:
        right, said = (
            draw.choice(["12", "3.5", "光合作用", "1,000"]),
            ["12", "3.50", "光合作用", "1000", "3", "1e3", "水"],
        )
    said = [right, right, *said]
    return columns | {"answer": right}, {"t": draw.choice(said), "u": draw.choice(said)}


def needles(draw: random.Random) -> Any:
    """A row of MM-NIAH."""
    kind = draw.choice(["visual-reasoning", "find-image", "find-text", "infer-choose", "count-text"])
    if kind in ("visual-reasoning", "find-image"):
        right, said = draw.choice("012"), ["A", "B", "C", "b", "1", "none", "the camera is moving left"]
        said.append("ABC"[int(right)])
    else:
        right = draw.choice(["red car", "3", "[2, 1]", "twenty", "Mr. Lee"])
        said = [right, right.upper(), "the red car", "three", "[2, 1]", "30", "mr lee", "twenty-one", "2, 1"]
    columns = {"question": "['a', 'b']", "category": kind, "answer": right}
    said_one = draw.choice(said)
    return columns, {"t": said_one, "u": draw.choice(said), "T": said_one.upper()}


def cells(draw: random.Random) -> Any:
    """A row of TableVQA-Bench."""
    split = draw.choice(["vtabfact", "fintabnetqa", "vwtq", "vwtq_syn"])
    if split == "vtabfact":
        right, said = draw.choice("01"), ["True", "false", "yes", "TRUE", "0"]
    elif split == "fintabnetqa":
        right, said = draw.choice(FINANCE), [*FINANCE, "3852000000", "3,852", "34.2", "0.342", "October 31."]
    else:
        right, said = (
            draw.choice(TABLES),
            [*TABLES, "Banana||Apple", "2000", "May 3", "united states", '"Freeman"[1]', "31.0"],
        )
    one = draw.choice([*said, right, right, right])
    return {"question": "q", "split": split, "answer": right}, {"t": one, "u": draw.choice(said), "T": one.upper()}


def linked(draw: random.Random) -> Any:
    """A row of VLM2-Bench."""
    kind = draw.choice(["gc-mat", "pc-cpr", "oc-cnt", "pc-cnt", "oc-grp"])
    columns = {"question": "q", "category": kind}
    if kind in ("gc-mat", "pc-cpr"):
        right, said = draw.choice("TF"), ["T", "F", "True", "false", "yes", "t"]
    elif kind in ("oc-cnt", "pc-cnt"):
        right, said = draw.choice("1234"), ["1", "2", "3", "four", "twenty one", "7", "two hundred", "zero"]
        columns |= draw.choice([{}, {"image_seq_len": "4"}, {"image_path": "['a', 'b', 'c']"}])
    else:
        right, said = draw.choice(["A", "B", "(A)", "C) cat"]), ["A", "(A)", "B", "A) dog", "C", "(A) (B)"]
    one = draw.choice([right, right, *said])
    return columns | {"answer": right}, {"t": one, "u": draw.choice(said), "T": one.upper()}


def distances(draw: random.Random) -> Any:
    """A row of Q-Spatial."""
    right = draw.choice(["(1.5, 'meter')", "(60, 'cm')", "(10, 'inch')", "(3, 'feet')"])
    values = {
        "t": draw.choice(["1.5", "60", "10", "3", "1", "100"]),
        "u": draw.choice(["m", "cm", "inches", "ft", "meters"]),
    }
    return {"question": "q", "question_type": "height", "answer": right}, values


def nearer(draw: random.Random) -> Any:
    """A row of DA-2K."""
    said = draw.choice(["point1", "point2", "Point 1", "point 2", "A", "the first"])
    values = {"t": said, "u": draw.choice(["point1", "Point 2", "left"]), "T": said.upper()}
    return {"question": "q", "answer": draw.choice(["point1", "point2"])}, values


def briefs(draw: random.Random) -> Any:
    """A row of MAT-Bench."""
    right = draw.choice(["the red car", "Paris", "上海 市", "12 May 1999", "an apple"])
    one = draw.choice([right, right, "red car", "car", "Paris, France", "上海", "12 may", "a"])
    columns = {"question": "q", "category": "code", "split": "simple", "answer": right}
    return columns, {"t": one, "u": draw.choice(["blue", "北京"]), "T": one.upper()}


def objects(draw: random.Random) -> Any:
    """A row of GroundingME."""
    right = draw.choice(["[100, 50, 300, 150]", "[200, 100, 600, 400]", "[100, 50, 300, 150]"])
    said = ["100, 50, 300, 150", "120, 60, 310, 160", "0.1, 0.1, 0.3, 0.3", "200,200,600,800", "100, 100, 300, 300"]
    columns = {"question": "q", "width": "1000", "height": "500", "answer": right}
    columns["subtask_l1"] = draw.choice(["Spatial", "Spatial", "Rejection"])
    return columns, {"b": draw.choice(said), "c": "1, 2, 3, 4"}


def referred(draw: random.Random) -> Any:
    """A row of RefCOCO."""
    columns, values = objects(draw)
    corners = re.findall(r"\d+", columns["answer"])
    named = zip(("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2"), corners, strict=True)
    values["b"] = draw.choice([values["b"], "1100, 50, 1300, 150", "300, 150, 100, 50", "100 100 300 300"])
    del columns["subtask_l1"]
    return {**columns, "category": "RefCOCO val", **dict(named)}, values


def pointed(draw: random.Random) -> Any:
    """A row of RoboSpatial-Home, whose picture has 1000 by 500 pixels."""
    right = draw.choice(
        ["yes", "No", "[(0.1, 0.1), (0.3, 0.1), (0.3, 0.4), (0.1, 0.4)]", "[(0.5, 0.5), (0.9, 0.5), (0.7, 0.9)]"]
    )
    x, y = draw.choice(
        [(0.2, 0.2), (200, 100), (200, 200), (0.7, 0.6), (700, 600), (1200, 300), (0.1, 0.1), (0.99, 0.5)]
    )
    columns = {"question": "q", "category": "context", "answer": right, "picture_size": "1000x500"}
    return columns, {"x": x, "y": y, "z": draw.choice([0.4, 400])}


HTML = [
    "<table><tr><td>a</td><td>1</td></tr><tr><td>b</td><td>2</td></tr></table>",
    "<table><tr><td>x</td></tr></table>",
]
MARKDOWN = ["| a | b |\n| --- | --- |\n| 1 | 2 |", "| week | date |\n|---|---|\n| 1 | May 5 |\n| 2 |  |"]
DICTIONARY = ["{'a': 1, 'b': 'two'}", "{'Total': {'x': 3}, 'y': 4}"]
FIELDS = ['{"company": "Old Town", "total": "30"}', '{"date": "2024", "total": "3 0"}', "total: 30\ndate: 2024"]
PAPERS = ["# One\nA line.\n## Two\nMore _text_.\n\nEnd", "No heading\n# One\nA line.", "# One\n# One\nA line"]
WORDS = ["the quick brown foxes jump", "the quick brown fox jumped over", "a dog sleeps", "x", "你好，世界", "你好世界"]
SPOTS = ["[[10, 10, 60, 40, 'Stop!'], [100, 100, 200, 150, 'go']]", "(12, 11, 60, 41, stop) (1, 1, 5, 5, no)"]
SPOTS += ["[[10, 10, 60, 40, 'STOP']]", "none"]
ON_MAT = "the cat that sat on the mat"
PLACED = ['{"answer": "stop", "bbox": "[10, 10, 60, 40]"}', '{"answer": "go", "bbox": [10, 12, 60, 40]}']
PLACED += ["{'answer': 'Stop'}", "Stop"]
PLACES = ["[10, 10, 60, 40]", "(12, 10, 60, 44) or (1,2,3,4)", "[1500, 1, 2, 3]", "none"]
CHARTS = [*DICTIONARY, f"```python\ndata = {DICTIONARY[0]}\n```", "none"]
MARKED = [*MARKDOWN, f"```markdown\n{MARKDOWN[1]}\n```", "none"]
BOXED = """
    \\boxed{{{t}}}|{t}|Answer### \\boxed{{{t}}}|\\boxed{{{u}}} Answer### \\boxed{{{t}}}|\\boxed{{\\text{{{t}}}}}|So {t}.
    \\boxed{{{t}
    \\boxed{{{t}}}, not \\boxed{{{u}}}|\\boxed{{the {t}}}|\\boxed{{{u}}} \\boxed{{{t}}}|I do not know
"""
KINDS: dict[str, tuple[list[Any], list[str], dict[str, str]]] = {
    # kind of question: right answers, answers, other columns; what follows a slash is no part of the kind
    "cognition VQA en": ([["red car", 12]], ["The red car.", "a Red\ncar", "12", "blue"], {}),
    "reasoning VQA en": ([[ON_MAT]], ["The cat that sat on a mat", "no cat", ON_MAT.upper()], {}),
    "science QA en": ([["B"]], ["B", "B.", "(B)", "b", "The answer is B"], {"eval": "multiple choice"}),
    "text recognition en": ([["Stop Sign"]], ["Stop Sign", "STOP SIGN", "Stop Sign."], {"eval": "case sensitive"}),
    "cognition VQA cn": ([["红 车"]], ["是红车", "红 车。", "车"], {}),
    "reasoning VQA cn": ([["甲,乙,丙,丁,戊"]], ["甲,乙,丙,丁,戊", "甲，乙，丙，丁", "甲,乙,丙,丁"], {}),
    "reasoning VQA cn/": ([["A"]], ["A", "A。", "答案A"], {"eval": "multiple choice"}),
    "handwritten answer extraction cn": ([["AC"], ["B"]], ["AC", "A, C", "A和C", "A.C", "选B"], {"question": "题"}),
    "handwritten answer extraction cn/": ([["你好世界"]], WORDS, {"question": "简答题"}),
    "formula recognition en": ([["\\frac{a}{b}"]], ["$\\frac{a} {b}$", "a/b", "\\frac{a}\n{b}"], {}),
    "formula recognition cn": ([["\\text{速度} = v"]], ["速度=v", "\\text{速度}=v", "v"], {}),
    "text counting en": ([["12"], [5]], ["12 words", "10", "6", "11 or 12", "0", "no", "25"], {"eval": "regression"}),
    "text counting en/": ([["12"]], ["12", "It is 12.", "1 2"], {"eval": "exact match"}),
    "table parsing en": ([[each] for each in HTML], [*HTML, f"<body>{HTML[0]}</body>", "none"], {"question": "HTML"}),
    "table parsing en/": ([[each] for each in MARKDOWN], MARKED, {"question": "Markdown"}),
    "table parsing cn": ([[each] for each in HTML], [*HTML, HTML[0].upper(), "```html\n" + HTML[1]], {}),
    "chart parsing en": ([[{"a": 1, "b": "two"}], [{"Total": {"x": 3}}]], CHARTS, {}),
    "document parsing en": ([[each] for each in PAPERS], [*PAPERS, "nothing"], {}),
    "document parsing cn": ([[each] for each in PAPERS], [*PAPERS, "无"], {}),
    "key information extraction en": ([[{"company": ["Old Town", "OLD"], "total": ["30"]}]], FIELDS, {}),
    "key information mapping en": ([[{"date": ["2024"], "total": ["30", "3"]}]], [*FIELDS, "none"], {}),
    "key information extraction cn": (
        [["{'总计': ['30', '三十'], '日期': '2024'}"]],
        ['{"总计": "30"}', "```json\n{'日期': 2024, '总计': '三十'}\n```", "无"],
        {},
    ),
    "VQA with position en": ([["Stop"]], PLACED, {"bbox": "[10, 10, 60, 40]"}),
    "text translation cn": ([[each] for each in WORDS[:4]], WORDS, {}),
    "fine-grained text recognition en": ([[each] for each in WORDS[:4]], WORDS, {}),
    "full-page OCR en": ([[each] for each in WORDS[:3]], WORDS, {}),
    "full-page OCR cn": ([[each] for each in WORDS[3:]], WORDS, {}),
    "text grounding en": ([[10, 10, 60, 40], ["10", "10", "60", "40"]], PLACES, {}),
    "text spotting en": (
        [[""]],
        SPOTS,
        {"bbox": "[[10, 10, 60, 10, 60, 40, 10, 40], [100, 100, 200, 150]]", "content": "['Stop!', 'Go']"},
    ),
}


def all_kinds() -> Rows:
    """Rows of OCRBench v2, of each kind in turn."""
    draw, kinds = random.Random("ocrbench_v2"), list(KINDS)
    nothing = {"eval": "without eval", "bbox": "without bbox", "content": "without content", "question": "q"}
    found = []
    for place in range(300):
        kind = kinds[place % len(kinds)]
        right, said, more = KINDS[kind]
        columns = {"category": kind.rstrip("/"), "answer": repr(draw.choice(right)), **nothing, **more}
        found.append((columns, said[place // len(kinds) % len(said)]))
    return found


def lettered(draw: random.Random) -> Any:
    """A row of BMMR with options."""
    right, said = draw.choice(["['A']", "['B', 'D']", "C"]), ["A", "B, D", "DB", "C", "BB", "a", "A. Cat"]
    one = draw.choice([*said, "A", "B and D", "C"])
    return {"question": "q", "task_type": "mc", "answer": right}, {"t": one, "u": draw.choice(said)}


def hidden(draw: random.Random) -> Any:
    """A row of VTCBench that needs no judge."""
    right = draw.choice([["91", "12"], ["Mr. Lee"], [" red car "]])
    one = draw.choice([right[0].strip(), right[-1].strip(), " and ".join(right), "910", "mr. lee", "car", "red cars"])
    columns = {"question": "q", "category": draw.choice(["Retrieval", "Reasoning"]), "answer": json.dumps(right)}
    return columns, {"t": one, "u": draw.choice(["5", "12"]), "T": one.upper()}


def foreseen(draw: random.Random) -> Any:
    """A row of VLRMBench's foresight."""
    one = draw.choice(["Yes", "no", "True", "FALSE", "Yes, there is no doubt", "nothing", "not so"])
    columns = {"question": "q", "category": "foresight", "answer": draw.choice(["True", "False"])}
    return columns, {"t": one, "u": draw.choice(["no", "true"]), "T": one.upper()}


def ranked(draw: random.Random) -> Any:
    """A row of SSI-Bench."""
    size = draw.choice([3, 4])
    right, other = (draw.sample(range(1, size + 1), size) for _ in range(2))
    said = [str(right), str(right), str(other), str(right[:2]), str([*right, 9]), str([str(each) for each in right])]
    one = draw.choice([*said, ", ".join(map(str, right)), f"[{right}]", str([right[0]] * size)])
    return {"question": "q", "task": "t", "answer": str(right)}, {"t": one, "u": draw.choice(said), "T": f"so {one}"}


ROWS: dict[str, Any] = {
    "ssi": lambda: filled("ssi", SAID, ranked),
    "foresight": lambda: filled("foresight", SAID, foreseen),
    "vtc": lambda: filled("vtc", SAID, hidden),
    "bmmr": lambda: filled("bmmr", BOXED, lettered),
    "ocrbench_v2": all_kinds,
    "mm_oral": lambda: oral("mm_oral"),
    "cmmmu": lambda: filled("cmmmu", CHINESE, chinese),
    "mm_niah": lambda: filled("mm_niah", SAID, needles),
    "table_vqa": lambda: filled("table_vqa", SAID, cells),
    "vlm2": lambda: filled("vlm2", SAID, linked),
    "q_spatial": lambda: filled("q_spatial", DISTANCES, distances),
    "da_2k": lambda: filled("da_2k", SAID, nearer),
    "mat": lambda: filled("mat", SAID, briefs),
    "grounding_me": lambda: filled("grounding_me", BOXES, objects),
    "ref_coco": lambda: filled("ref_coco", BOXES, referred),
    "robo_spatial": lambda: filled("robo_spatial", POINTS, pointed),
}
NUMBERED = {f"option{place}": text for place, text in enumerate(("cat", "dog", "bird", "fish"), 1)}
CHEMICAL = {"question": "See {image} here", "relative_tolerance": ""}
# Set, module, class and columns.
PROMPTS: list[tuple[str, str, str, dict[str, str]]] = [
    ("MMOral_OPG_CLOSED", "mmoral_opg_closed", "MMOral_OPG_CLOSED", NUMBERED),
    ("CMMMU_VAL", "cmmmu", "CMMMU", {**NUMBERED, "type": "选择"}),
    ("CMMMU_VAL", "cmmmu", "CMMMU", {"type": "判断"}),
    ("CMMMU_VAL", "cmmmu", "CMMMU", {"type": "填空"}),
    *(
        ("TableVQABench", "image_vqa", "TableVQABench", {"split": split})
        for split in ("fintabnetqa", "vtabfact", "vwtq")
    ),
    ("TableVQABench", "image_vqa", "TableVQABench", {"split": "vwtq_syn"}),
    ("VLM2Bench", "vlm2bench", "VLM2Bench", {"category": "gc-mat", "pictures": "2"}),
    ("MATBench", "matbench", "MATBench", {}),
    ("GroundingME", "groundingme", "GroundingME", {}),
    ("RoboSpatialHome", "robospatialbench", "RoboSpatialBench", {"category": "compatibility"}),
    (
        "RoboSpatialHome",
        "robospatialbench",
        "RoboSpatialBench",
        {"category": "context", "question": "Where? Your answer should be x."},
    ),
    ("AyaVisionBench", "image_vqa", "AyaVisionBench", {}),
    *((name, "image_vqa", "VTCBench", {"category": name}) for name in ("Retrieval", "Reasoning", "Memory")),
    ("SSI_Bench", "ssi_bench", "SSIBenchDataset", {"question": "CYCLE_LENGTH_PROMPT_TEMPLATE"}),
    ("SSI_Bench", "ssi_bench", "SSIBenchDataset", {"question": "AREA_PROMPT_TEMPLATE", "annotation_color": "red"}),
    ("BMMR_mini", "image_vqa", "BMMR", {"pictures": "2"}),
    ("MME-Reasoning", "image_vqa", "MMEReasoning", {"pictures": "2"}),
    ("MaCBench", "macbench", "MaCBench", {**CHEMICAL, "A": "cat", "B": "dog"}),
    ("MaCBench", "macbench", "MaCBench", CHEMICAL),
    ("MathCanvas-Bench", "image_vqa", "MathCanvas", {"question": "See <image>: what? And <image>", "pictures": "2"}),
    ("DA-2K", "da2k", "DA2K", {}),
    *(
        (
            "MM_NIAH_VAL",
            "image_vqa",
            "MMNIAH",
            {"question": str(texts), "multi-choice options": str(given), "pictures": size},
        )
        for texts, given, size in (
            (["A page <image> with text.<image>", "What?"], [["cat", "dog"], None], "2"),
            (["A page <image> with text.", "Which?"], [None, ["a", "b", "c", "d"]], "5"),
            (["<image>", "How many?"], [None, None], "1"),
        )
    ),
]


class OneRow:
    """A table of a row whose cells keep their kinds: pandas' are no ``True``."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.iloc = [row]

    def __len__(self) -> int:
        return 1


class Rectangle:
    """An upright rectangle in place of a polygon."""

    def __init__(self, points: Any) -> None:
        self.sides = (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())

    def __and__(self, other: Rectangle) -> Rectangle:
        made = Rectangle.__new__(Rectangle)
        (a, b, c, d), (e, f, g, h) = self.sides, other.sides
        made.sides = (max(a, e), max(b, f), min(c, g), min(d, h))
        return made

    def __len__(self) -> int:
        return int(self.sides[0] < self.sides[2] and self.sides[1] < self.sides[3])

    def area(self) -> float:
        """Its area."""
        return (self.sides[2] - self.sides[0]) * (self.sides[3] - self.sides[1])


class BySet(Published):
    """VLMEvalKit's classes of these sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        sys.modules["tqdm"].tqdm = lambda items, **_: items
        for name in ("status_report", "log", "file"):
            sys.modules[f"vlmeval.smp.{name}"] = Empty(f"vlmeval.smp.{name}")
        sys.modules["vlmeval.smp.log"].get_logger = lambda _: None
        base = self.module("vlmeval.dataset.image_base", "dataset/image_base.py")
        base.toliststr = lambda paths: [paths]
        self.image_vqa.ImageBaseDataset.build_prompt = base.ImageBaseDataset.build_prompt
        self.image_vqa.toliststr = lambda paths: [paths]
        self.image_vqa.LMUDataRoot = lambda: ""
        sys.modules["vlmeval.dataset.image_vqa"] = self.image_vqa
        self.own: dict[str, Any] = {"image_vqa": self.image_vqa}
        sys.modules["rouge_score"] = Empty("rouge_score")
        for name in (
            "bmmr",
            "vtcbench",
            "mmniah",
            "tablevqabench",
            "vlm2bench",
            "mmoral_opg",
            "spatial_bench.tools.utils",
        ):
            place = f"dataset/utils/{name.replace('.', '/')}.py"
            self.own[f"utils.{name}"] = self.module(f"vlmeval.dataset.utils.{name}", place)
        for name in (
            "cmmmu",
            "vlm2bench",
            "da2k",
            "matbench",
            "groundingme",
            "refcoco",
            "robospatialbench",
            "macbench",
            "vlrmbench",
            "ssi_bench",
        ):
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
            self.own[name].toliststr = lambda paths: [paths]
        texts = self.module("vlmeval.dataset.utils.ssi_bench.prompts", "dataset/utils/ssi_bench/prompts.py")
        sys.modules["vlmeval.dataset.utils.ssi_bench"] = types.ModuleType("vlmeval.dataset.utils.ssi_bench")
        sys.modules["vlmeval.dataset.utils.ssi_bench"].prompts = texts
        self.own["mmoral_opg_closed"] = self.module("vlmeval.dataset.mmoral_opg_closed", "dataset/mmoral_opg_closed.py")
        for name in ("FINTABNETQA_PROMPT", "VTABFACT_PROMPT", "VWTQ_PROMPT"):
            setattr(self.image_vqa.TableVQABench, name, getattr(self.own["utils.tablevqabench"], name))
        self._ocrbench_v2()
        nothing = types.SimpleNamespace(choice=lambda _: "")
        self.own["cmmmu"].random = self.own["utils.mmoral_opg"].random = nothing

    def _ocrbench_v2(self) -> None:
        """Loads its metrics, which import apted, distance, editdistance, jieba, Levenshtein, lxml and zss."""
        for name in ("ipdb", "Polygon"):
            sys.modules[name] = Empty(name)
        sys.modules["Polygon"].Polygon = Rectangle
        importlib.import_module("jieba").lcut = list  # words of Chinese are characters
        meteor = importlib.import_module("nltk.translate.meteor_score")
        meteor.meteor_score = partial(meteor.meteor_score, wordnet=types.SimpleNamespace(synsets=lambda _: []))
        for name in ("parallel", "vqa_metric", "page_ocr_metric", "IoUscore_metric", "TEDS_metric"):
            self.module(f"vlmeval.dataset.utils.Ocrbench_v2.{name}", f"dataset/utils/Ocrbench_v2/{name}.py")
        for name in ("spotting_eval.rrc_evaluation_funcs_1_1", "spotting_eval.script", "spotting_metric"):
            place = f"dataset/utils/Ocrbench_v2/{name.replace('.', '/')}.py"
            whole = f"vlmeval.dataset.utils.Ocrbench_v2.{name}"
            loaded, (before, _, last) = self.module(whole, place), whole.rpartition(".")
            setattr(importlib.import_module(before), last, loaded)
            folder = importlib.import_module("vlmeval.dataset.utils.Ocrbench_v2")
            folder.spotting_eval = importlib.import_module("vlmeval.dataset.utils.Ocrbench_v2.spotting_eval")
        self.own["v2"] = self.module("vlmeval.dataset.utils.ocrbrnch_v2_eval", "dataset/utils/ocrbrnch_v2_eval.py")

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read, where that is told, and the score of each row."""
        read = "letters" if kind in ("bmmr", "vtc") else None  # the file says that no judge is asked
        return [(read, float(getattr(self, kind)(columns, text))) for columns, text in rows]

    def mm_oral(self, columns: dict[str, str], text: str) -> bool:
        """As `evaluate` compares."""
        texts = {letter: columns[f"option{place}"] for place, letter in enumerate("ABCD", 1)}
        return self.own["utils.mmoral_opg"].get_single_choice_prediction(text, list("ABCD"), texts) == columns["answer"]

    def ocrbench_v2(self, columns: dict[str, str], text: str) -> float:
        """By `process_predictions`, in a folder of its own: it writes files."""
        item: dict[str, Any] = {"type": columns["category"], "question": columns["question"], "predict": text}
        item["answers"] = ast.literal_eval(columns["answer"])
        item |= {} if columns["eval"] == "without eval" else {"eval": columns["eval"]}
        for name in ("bbox", "content"):
            given = columns[name]
            item[name] = given if given == f"without {name}" else ast.literal_eval(given)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            return self.own["v2"].process_predictions([item])[0]["score"]

    def vtc(self, columns: dict[str, str], text: str) -> float:
        """By `process_vtc_line`."""
        module = self.own["utils.vtcbench"]
        module.istype = lambda cell, _: cell.startswith("[")
        return module.process_vtc_line({**columns, "prediction": text})["score"]

    def foresight(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate_foresight`."""
        rows = OneRow({"task_gt": columns["answer"] == "True", "prediction": text})
        return self.own["vlrmbench"].VLRMBench.evaluate_foresight(rows)["foresight_accuracy"]

    def ssi(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`, with as many options as the right order has."""
        module, kept = self.own["ssi_bench"], []
        size = len(ast.literal_eval(columns["answer"]))
        module._load_taxonomy = lambda: {"tasks": [{"slug": "t", "optionCount": size}]}
        data = self.frame([{**columns, "prediction": text}])
        data.to_excel = lambda *_, **__: None
        module.load, module.dump = lambda _: data, lambda found, _: kept.append(found)
        module.SSIBenchDataset.evaluate("file.xlsx")
        return kept[0]["overall"].iloc[0] / 100

    def bmmr(self, columns: dict[str, str], text: str) -> float:
        """By `multichoice_verify`."""
        return self.own["utils.bmmr"].multichoice_verify([columns["answer"]], text)["acc"]

    def cmmmu(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`, with a wrong row of each other category; a blank that is right twice counts once."""
        module, kept = self.own["cmmmu"], {}
        others = ["技术与工程", "健康与医学", "商业", "艺术与设计", "人文社会科学"]
        rows = [{**columns, "prediction": text}]
        rows += [{"category": each, "type": "判断", "answer": "对", "prediction": "?"} for each in others]
        module.load = lambda _: self.frame(rows)
        module.get_intermediate_file_path = lambda *_: "/nonexistent/x"
        module.d2df = lambda found: (kept.update(found), self.frame([found]))[1]
        module.dump = lambda *_: None
        module.pd = types.SimpleNamespace(read_csv=lambda _: None)
        module.CMMMU.evaluate("file.xlsx")
        return min(1.0, kept["科学"])

    def mm_niah(self, columns: dict[str, str], text: str) -> float:
        """As `evaluate` compares."""
        right: Any = columns["answer"]
        if columns["category"] in ("visual-reasoning", "find-image"):
            right = int(right)
        return self.own["utils.mmniah"].is_correct(right, text)

    def table_vqa(self, columns: dict[str, str], text: str) -> float:
        """By the function of the split."""
        module, split = self.own["utils.tablevqabench"], columns["split"]
        kind = {"fintabnetqa": "evaluate_fintabnet", "vtabfact": "evaluate_tabfact"}.get(split, "evaluate_wtq")
        rows = [{"answer": columns["answer"], "prediction": re.sub("^Answer: ", "", text)}]
        getattr(module, kind)(rows, ["accuracy"])
        return rows[0]["scores"]["accuracy"] or 0

    def vlm2(self, columns: dict[str, str], text: str) -> float:
        """By the function of the category, of one row."""
        module, row = self.own["utils.vlm2bench"], {**columns, "prediction": text}
        if columns["category"] in ("gc-mat", "pc-cpr"):
            return module.parse_tf_answer(text.strip().upper())[0] == columns["answer"].strip().upper()
        if columns["category"] == "oc-grp":
            return module.grp_aggregate_accuracy([row]) / 100
        if "image_path" in row:
            row["image_path"] = ["a", "b", "c"]
        row["image_seq_len"] = self.own["vlm2bench"]._infer_image_seq_len(row)
        return module.cnt_aggregate_metric([row]) / 100

    def q_spatial(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`."""
        kept: list[Any] = []
        self.image_vqa.load = lambda _: self.frame([{**columns, "prediction": text}])
        self.image_vqa.dump = lambda found, *_: kept.append(found)
        self.image_vqa.get_intermediate_file_path = lambda *_: "/nonexistent/x"
        self.image_vqa.QSpatial.evaluate("file.xlsx")
        return kept[-1]["delta_2"]

    def da_2k(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`."""
        module, kept = self.own["da2k"], [self.frame([{"index": 0, **columns, "prediction": text}])]
        module.load, module.dump = lambda _: kept[0].copy(), lambda data, *_: kept.insert(0, data)
        smp = sys.modules["vlmeval.smp"]
        smp.get_file_extension, smp.get_intermediate_file_path = lambda _: "tsv", lambda *_: "/nonexistent/x"
        return module.DA2K.evaluate("file.tsv")["overall"]

    def mat(self, columns: dict[str, str], text: str) -> float:
        """As `mat_evaluate` compares."""
        module, right = self.own["matbench"], columns["answer"]
        return 1.0 if module.exact_match_score(text, right) else module.compute_f1(text, right)

    def grounding_me(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`."""
        module, kept = self.own["groundingme"], []
        data = self.frame([{"index": 0, **columns, "prediction": text}])
        module.GroundingME.__init__, module.GroundingME.data = lambda *_: None, data
        module.load, module.dump = lambda _: data, lambda found, *_: kept.append(found)
        module.get_intermediate_file_path = lambda *_: "x"
        module.GroundingME.evaluate("file.xlsx")
        return kept[0]["acc_50"].iloc[0]

    def ref_coco(self, columns: dict[str, str], text: str) -> float:
        """As `evaluate` compares."""
        made, row = self.own["refcoco"].RefCOCODataset, self.frame([columns]).iloc[0]
        box = made._parse_prediction(text)
        if box is None:
            return 0
        return made._compute_iou(made._to_absolute(box, 1000.0, 500.0), made._extract_gt_bbox(row)) >= 0.5

    def robo_spatial(self, columns: dict[str, str], text: str) -> float:
        """As `evaluate_answer` says."""
        return self.own["robospatialbench"].RoboSpatialBench.evaluate_answer(columns["answer"], text, 1000, 500)[0]

    def prompts(self) -> list[Any]:
        """Set, columns, number of pictures, and the parts of VLMEvalKit's prompt."""
        found = []
        for name, module, kind, columns in PROMPTS:
            row = {"question": "What is it?", "answer": "A", **columns}
            size = int(row.pop("pictures", "1"))
            made = getattr(self.own[module], kind).__new__(getattr(self.own[module], kind))
            made.meta_only, made.dataset_name, made.interleave = False, name, True
            pictures = [f"<{place}>" for place in range(size)]
            made.dump_image = lambda _, pictures=pictures: pictures
            line: Any = self.frame([{"image_path": "<0>", "image": "<0>", **row}]).iloc[0]
            if name == "MATBench":  # which takes the third cell
                line = {2: row["question"]}
            found.append(
                [
                    name,
                    row,
                    size,
                    [
                        re.split("[/,]", part["value"])[-1] if part["type"] == "image" else part["value"]
                        for part in made.build_prompt(line)
                    ],
                ]
            )
        return found

    def more(self) -> dict[str, Any]:
        """The prompts."""
        return {"prompts": self.prompts()}


PUBLISHED = BySet
