r"""Made ``published_by_set.json.gz``: what VLMEvalKit's own classes say of answers to sets with forms of their own.

    python tests/assets/make_published_by_set.py FOLDER_OF_VLMEVALKIT [MODULE]

As ``make_published_answers.py``, whose forms of answers these are. Where VLMEvalKit asks a judge the file says that
nothing was read. CC-OCR's evaluators import zss, apted, nltk and json_repair. The file was made once; it is not made
again. A module beside this one, such as ``published_by_rubrics`` or ``published_by_set_2``, makes a file of its own.
"""

from __future__ import annotations

import ast
import importlib
import random
import sys
import types
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from make_published_answers import Empty, Published, choices, cut, write

PATH = Path(__file__).resolve().parent / "published_by_set.json.gz"
NUMBER = 300
Rows = list[tuple[dict[str, str], str]]
BLIND = """
    {{{t}}}|{t}|The answer is {{{t}}}.|{{{u}}}, no {{{t}}}|{{{t}|**{t}**|I count {t}||yes|No.|Yes, they touch|{{ {t} }}
    rows={{{r}}} columns={{{c}}}|Rows: {{{r}}}, Columns: {{{c}}}|({r}, {c})|({r},{c})|{r} x {c}
    columns={{{c}}} rows={{{r}}}
    There are {r} rows and {c} columns|row {{{r}}} and column {{{c}}}|({c}, {r})|\\boxed{{{t}}}|not {t}
"""
JSON = """
    {{"answer": {t}}}|{{"answer": "{t}"}}|{{ "answer" : '{t}' }}|{t}|```json\\n{{"answer": {t}}}\\n```
    {{"answer": {u}}} {{"answer": {t}}}
    The answer is {t}.|{{"answer": "{u}"}}|{{"answer": }}||{{"Answer": {t}}}|So {t}, or {u}
    {{"answer": "{t} "}}|{{"result": {t}}}
"""
BOXES = """
    [{b}]|{b}|The box: [{b}].|[{c}]|[{b}]\\n[{c}]|[{b}, 0.5]|[0, 0, 1, 1]|[.1, .2, .3, .4]|[1.5, 2, 3, 4]|no box
    [10, 20, 30, 40]|x1={b}||[{b}|({b})|[0.1,0.2,0.3]|[100, 200, 300, 400]|[{c}]\n[{b}]|[0.2 0.3 0.5 0.6]
"""
PHYX = """
    {t}|\\boxed{{{t}}}|\\boxed{{{t}}} or \\boxed{{{u}}}|The final answer: {t}|Final answer is: {t}\\n\\n\\nBye
    correct answer：{t}
    {T}| {t} |It is {t}.|{{'content': '{t}'}}|{{'content': ''}}|\\boxed{{\\frac{{1}}{{2}}
    \\boxed{{\\dfrac{{1}}{{2}}}}|{u}||{{'a': 1}}
    Failed to obtain answer via API.
"""
CLICKS = """
    pyautogui.click(x={x}, y={y})|x={x}, y={y}|pyautogui.click(x=1, y=2)\\npyautogui.click(x={x}, y={y})|({x}, {y})
    pyautogui.click(x={x},y={y})|pyautogui.moveTo(x={x}, y={y})||x=1.2.3, y=4|[{x}, {y}]|click({x}, {y})|x: {x}, y: {y}
"""
FIELDS = [
    '{"total": "3.50", "date": "2019-01-02"}',
    '{"menu": [{"name": "cake", "count": "2"}, {"name": "juice 100ml", "count": 1}], "total": "3"}',
    '{"name": "张 三", "items": ["a", " b ", ""], "nested": {"a": {"b": "c ,d"}}}',
    '{"menu": [], "total": null, "n": 3}',
    '[{"a": "1"}, {"a": "2"}]',
]
PAGES = ["\\frac{a}{b} + c", "Title\nThe first line.  The second.", "C1=CC=CC=C1", "标题 正文"]
PAGES += ["<smiles>CCO</smiles>"]
TABLES = [
    "<table>\n<thead><tr><td>Item</td><td>Total</td></tr></thead>"
    "<tbody><tr><td>a b</td><td>3，5</td></tr></tbody>\n</table>",
    '<table><tr><td colspan="2">Total</td></tr><tr><td>x</td><td>1</td></tr></table>',
    "<table><tr><th>A</th><th>B</th></tr><tr><td><b>1</b> kg<br>net</td><td></td></tr>"
    "<tr><td>2</td><td>3</td></tr></table>",
    "<table><tr><td>1<td>2<tr><td>3<td>4</table>",
]
PAGE = """
    {t}|```latex\\n{t}\\n```|```\\n{t}```|\\documentclass{{a}}\\begin{{document}}{t}\\end{{document}}
    It is:\\n{t}||<smiles>{t}</smiles>
    {t}\\t{t}|Here:\\n```latex\\n{t}\\n```\\nDone.|```html\\n{t}\\n```|<html><body>{t}</body></html>|<div>{t}</div>
    The table:{t}and so on|{t}{t}
"""
OBJECT = """
    {t}|```json\\n{t}\\n```|Here:\\n```json\\n{t}\\n```\\nDone.|```\\n{t}\\n```|It is {t}|```json\\n{t}||null|3
    "text"|{{}}|[]|{{"a": {t}}}
"""
SAID = """
    {t}|<ans>{t}</ans>|<answer>{t}</answer>|The answer is {t}.|<think>{u}</think>{t}
    {{'Reasoning': 'x', 'Answer': '{t}'}}
    {{"Reasoning": "x", "Answer": "{t}"}}|{{'Answer': {t}}}|\\boxed{{{t}}}|boxed{{\\text{{{t}}}}}
    Final answer: {t}|I see {u}, so {t}|{t} {u}
    ||[{t}]|Answer: {t}, I think|FINAL ANSWER: {t}|#### {t}|{t}\\n\\nThat is all.|So {u} + {u} = {t}
    The total is {t} dollars
    {{{t}}}|**{t}**\\n\\n{u}|{t} is the correct answer|Therefore {t}|option is {t}|{u}\\n{t}
"""
HIDDEN = [
    "the first of these",
    "was born in 1985",
    "don't know it's",
    "Dr. Smith's well-known book",
    "10% of $5 million",
    "on 3 May, 1999,",
    "U.S. and Canada",
    "(also called X)",
    "a 5km walk",
    "rock'n'roll",
    'his "own" house',
]
RESTORED = """
    {t}|{u}|The covered texts are: {t}|The texts: "{t}".|I cannot read it.|Sorry, {t}||Assistant: {t}|{u}. {t}
    1. {t}\\n2. {u}
"""
VALUES = r"5 N|0.5|\frac{1}{2}|3.14 rad|\pi|12 m/s|a man|1,000|A".split("|")
CRPE = "A|B|A. cat|B. dog|(A) cat|The answer is B|It is a cat|cat|The dog|C|D. fish||b|A cat".split("|")
LISTS = """
    ['{L}']|['{L}', '{M}']|['{M}', '{L}']|["{L}"]|[]|['{L}','{L}']|['X']
"""
SORTS = """
    {o}|The order is {o}.|{l}|{o} {p}|First {M}, second {L}|first A, second B, third C, fourth D
    step 1: D step 2: C step 3: B step 4: A
    AABB|A, B, C, D|A-B-C-D|{p}|I do not know||首先 A 其次 C 再次 B 最后 D|第 1 步 B 第 2 步 A 第 3 步 C 第 4 步 D
"""


def medq(seed: str, letters: int) -> Rows:
    """Rows of MedQ-Bench; some right answers are numbers from 0."""
    rows = choices(seed, letters)
    numbered = {letter: str(place) for place, letter in enumerate("ABCD")}
    if letters == 4:
        return [
            ({**columns, "answer": numbered[columns["answer"]]} if place % 4 == 0 else columns, text)
            for place, (columns, text) in enumerate(rows)
        ]
    return rows


def sets_of_letters(seed: str, letters: int) -> Rows:
    """Rows of which several options may be right."""
    draw = random.Random(seed)
    more = ["(A) and (C)", "(a), (b)", "AB", "B, D", "the cat", "c", "(C)(A)", "Best answer:Best option: A"]
    return [
        (
            {"question": "q", "answer": draw.choice([columns["answer"], "AC", "BD"])},
            text if draw.random() < 0.6 else draw.choice(more),
        )
        for columns, text in choices(seed, letters)
    ]


def filled(seed: str, forms: str, make: Any) -> Rows:
    """Rows and answers, by a function that draws columns and what the forms are filled with."""
    draw, shapes = random.Random(seed), cut(forms)
    rows = []
    for place in range(NUMBER):
        columns, values = make(draw)
        rows.append((columns, shapes[place % len(shapes)].format(**values)))
    return rows


def blind(draw: random.Random) -> Any:
    """A row of VLMs are blind."""
    task = draw.choice(
        [
            *("Subway Connections", "Nested Squares", "Line Plot Intersections", "Touching Circles", "Circled Letter"),
            *("Counting Grid - Word Grids", "Counting Grid - Blank Grids", "Olympic Counting - Circles"),
        ]
    )
    r, c, t, u = (str(draw.randint(0, 4)) for _ in range(4))
    right = f"{r},{c}" if "Grid" in task else draw.choice(["Yes", "No"]) if "Touching" in task else t
    if task == "Circled Letter":
        right, t, u = "g", draw.choice("ggh"), "k"
    elif "Grid" not in task and "Touching" not in task and draw.random() < 0.3:
        right = u
    if "Grid" in task and draw.random() < 0.2:
        right = f"{c}, {r}"
    return {"task": task, "question": "q", "answers": right}, {"t": t, "u": u, "r": r, "c": c}


def factor(draw: random.Random) -> Any:
    """A row of VisFactor."""
    test = draw.choice("CF1 P3 VZ2 CS1 CS2 CF3 I3 MA1 SS3 VZ3 VZ3".split())
    more = {"additional": draw.choice(["3", "a;b"])} if test == "VZ3" else {}
    if test in ("CF1", "P3", "VZ2") or more.get("additional") == "a;b":
        right, said = draw.choice("TF"), ["true", "T", "no", "False", "1", "maybe"]
    elif test in ("CS1", "CS2"):
        right, said = "piano,Grand piano", ["piano", "Grand Piano", "violin"]
    elif test == "CF3":
        right, said = "(2, 3)", ["(2, 3)", "[2,3]", "(3, 2)", "2"]
    elif test == "VZ3":
        right, said = draw.choice("AB"), ["A", "B", "side B", "a"]
    else:
        right, said = draw.choice("34"), ["3", "4", "34", "picture 4", "three"]
    columns = {"category_id": test, "eval_index": str(draw.randint(0, 9)), "question": "q", "answer": right, **more}
    return columns, {"t": draw.choice(said), "u": draw.choice(said)}


def boxed(draw: random.Random) -> Any:
    """A row of TDBench."""
    near = "0.2, 0.3, 0.5, 0.6"
    said = draw.choice([near, near, "0.25,0.35,0.45,0.55", "0.6, 0.6, 0.9, 0.9"])
    return {"question": "car", "answer": f"[{near}]"}, {"b": said, "c": "0, 0, 0.1, 0.1"}


def valued(draw: random.Random) -> Any:
    """A row of PhyX with an open answer."""
    right, other = draw.sample(VALUES, 2)
    said = draw.choice([right, right, other])
    return {"question": "q", "answer": right}, {"t": said, "T": said.upper(), "u": other}


def clicked(draw: random.Random, corners: bool = False) -> Any:
    """A row of a benchmark of clicks, whose picture has 1000 by 500 pixels."""
    box = [100, 50, 300, 150] if corners else [100, 50, 200, 100]
    if draw.random() < 0.2:
        box[0] = -1
    x, y = draw.choice([(150, 75), (150, 75), (0.2, 0.2), (299, 149), (300, 150), (10, 20), (0.3, 0.5), (120, 110)])
    return {"question": "q", "bbox": repr(box), "data_type": "icon", "category": "c"}, {"x": x, "y": y}


def clicks(seed: str, corners: bool = False) -> Rows:
    """Rows whose right answers are boxes."""
    rows = filled(seed, CLICKS, partial(clicked, corners=corners))
    return [({**columns, "answer": columns["bbox"], "picture_size": "1000x500"}, text) for columns, text in rows]


def documented(draw: random.Random) -> Any:
    """A row of CC-OCR with fields."""
    right = draw.choice(FIELDS)
    said = draw.choice([right, right, draw.choice(FIELDS)])
    if draw.random() < 0.4:
        said = said.replace("3", "8", 1).replace("total", "sum")
    columns = {"category": "kie", "l2-category": "poie", "split": "s", "question": "q", "answer": right}
    return columns, {"t": said}


def pages(draw: random.Random) -> Any:
    """A row of CC-OCR with a page, a formula or a molecule."""
    kind = draw.choice(["doc", "formula", "molecular", "table", "table"])
    texts = TABLES if kind == "table" else PAGES
    right = draw.choice(texts)
    said = draw.choice([right, right.upper(), right[2:], draw.choice(texts), right.replace("</td>", "", 1)])
    said = draw.choice([said, said.replace("thead", "tbody"), said.replace("Total", "Sum"), said.replace("<b>", "")])
    columns = {"category": "doc_parsing", "l2-category": kind, "split": "s", "question": "q", "answer": right}
    return columns, {"t": said}


def spatial_numbers(draw: random.Random) -> Any:
    """A row of SPBench."""
    if draw.random() < 0.4:
        right, said = draw.choice("AB"), draw.choice(["A", "B", "(A)", "B. left", "answer is A"])
        columns = {"question_type": "object_rel_distance", "candidates": "['A. left', 'B. right']", "answer": right}
        return {"question": "q", **columns}, {"t": said, "u": "C"}
    right = draw.choice(["4", "2.5", "0", "120"])
    said = draw.choice([right, right, "three", "2.2", "5", "twelve", "100", "1e2", "-4", "4.4"])
    return {"question": "q", "question_type": "object_counting", "answer": right}, {"t": said, "u": "7"}


def spar(draw: random.Random) -> Any:
    """A row of SPAR-Bench."""
    task = draw.choice(["depth_prediction_oc", "position_matching", "view_change_infer"])
    right = {"depth_prediction_oc": "2.5", "position_matching": "B"}.get(task, "move_right:0.5,rotate_up:20")
    moved = ["move_right:0.5,rotate_up:20", "move_left:-0.5, rotate_up:18", "move_up:1", "move_right:x"]
    said = draw.choice([right, right, "2.2", "A", "B. dog", *moved])
    return {"question": "q", "task": task, "answer": right}, {"t": said, "u": "C"}


def charts(draw: random.Random) -> Any:
    """A row of ChartQAPro."""
    right, year = draw.choice(
        [
            ("2010", "YES"), ("12.5%", "NO"), ("[Asia, Europe]", "NO"), ("0", "NO"), ("North America", "NO"),
            ("['2001', '5']", "YES', 'NO"), ("true", "NO"), ("[2001, 2002]", "YES"),
        ]
    )  # fmt: skip
    said = draw.choice(
        [right, right, "2011", "12.9", "['Asia', 'Europe']", "[Asia]", "0.0", "north  america", "NorthAm"]
    )
    kind = draw.choice(["Factoid", "Conversational", "Fact Checking"])
    before = ["x"] if kind == "Conversational" else []
    columns = {"question_type": kind, "question": "['q']", "year": f"['{year}']", "answer": repr([*before, right])}
    return columns, {"t": said, "u": "['2001', '5.1']"}


def omni(draw: random.Random) -> Any:
    """A row of Omni3D-Bench."""
    kind, right = draw.choice([("int", "3"), ("float", "2.5"), ("str", "yes"), ("str", "no"), ("str", "red chair")])
    said = draw.choice([right, right, "2", "3.0", "2.2", "true", "No", "Red chair", "False", "2.5 m"])
    return {"question": "q", "answer_type": kind, "answer": right}, {"t": said, "u": "blue"}


def super_clevr(draw: random.Random) -> Any:
    """A row of Spatial457."""
    right = draw.choice(["Yes", "No", "3", "0", "Jet", "School bus", "red", "left"])
    said = draw.choice([right, right, right.lower(), "3", "three", "0", "None", "fighter", "double bus", "left", "2"])
    return {"question": "q", "category": "L1_single", "answer": right}, {"t": said, "u": "green"}


def stations(draw: random.Random) -> Any:
    """A row of ReasonMap-Plus."""
    kind = draw.choice(["TorF1", "Counting1", "Counting2", "counting3", "planning"])
    right = {"TorF1": "01", "planning": ["Line 2"]}.get(kind, "0123")
    right = draw.choice(right)
    said = draw.choice(["yes", "No", "true", "0", "1", "2", "A", "b", "(C)", "Line 2", "3 stops", "-1"])
    columns = {"type": kind, "difficulty_city": "easy", "question": "q", "answer": right}
    return columns, {"t": said, "u": draw.choice("AB12")}


def biases(draw: random.Random) -> Any:
    """A row of VLMs are biased."""
    right, bias = draw.choice([("5", "4"), ("Yes", "No"), ("13", "12")])
    said = draw.choice([right, right, bias, "4", f"{right} legs", f"{bias} legs", "no", "1 3"])
    columns = {"expected_bias": bias, "topic": "Animals", "question": "q", "ground_truth": right, "answer": right}
    return columns, {"t": said, "u": "9"}


def prices(draw: random.Random) -> Any:
    """A row of GSM8K-V."""
    right = draw.choice(["5", "1200", "0.5", "18", "2.0"])
    said = draw.choice([right, right, "1,200", "1/2", "$18", "5", "7", "2", "eighteen"])
    return {"question": "q", "answer": right}, {"t": said, "u": "3"}


def cores(draw: random.Random) -> Any:
    """A row of CoreCognition."""
    kind = draw.choice(["MCQ", "YORN"])
    right = draw.choice("ABC") if kind == "MCQ" else draw.choice(["YES", "NO", "yes"])
    said = draw.choice(["A", "B", "C", "Z", "a"] if kind == "MCQ" else ["Yes", "no", "NO", "maybe"])
    return {"question_type": kind, "question": "q", "answer": right}, {"t": said, "u": "B"}


def covered(draw: random.Random) -> Any:
    """A row of VCR."""
    right = draw.sample(HIDDEN, draw.choice([1, 1, 2]))
    said = [draw.choice([part, part, part.upper(), part[:-2], draw.choice(HIDDEN)]) for part in right]
    return {"question": "q", "answer": repr(right)}, {"t": ", ".join(said), "u": " and then ".join(reversed(said))}


def mixed(seed: str) -> Rows:
    """Rows of CC-OCR as one table."""
    texts = [
        (
            {
                "category": "multi_lan_ocr",
                "l2-category": "ocr",
                "split": "French",
                "question": "q",
                "answer": "le café",
            },
            said,
        )
        for said in ("le café", "le", "Le cafe", "x")
    ]
    return texts * 25 + filled(seed, OBJECT, documented)[:100] + filled(seed, PAGE, pages)[:100]


def related(draw: random.Random) -> Any:
    """A row of CRPE."""
    return {"question": "q", "category": "exist", "answer": draw.choice(["A. cat", "B. dog", "A", "(A) cat"])}, {}


def listed(draw: random.Random) -> Any:
    """A row of A4Bench."""
    first, second = draw.sample("ABCD", 2)
    right = draw.choice([[first], sorted([first, second]), [second]])
    columns = {"question": "q", **dict.fromkeys("ABCD", "x"), "answer": repr(right)}
    return columns, {"L": first, "M": second}


def sorted_steps(draw: random.Random) -> Any:
    """A row of LEGO-Puzzles whose options are put in order."""
    right, other = ("".join(draw.sample("ABCD", 4)) for _ in range(2))
    right = draw.choice([right, "ABCD", "DCBA", "ACBD", "BACD"])
    said = draw.choice([right, right, other])
    columns = {**dict(zip("ABCD", ("x1", "x2", "x3", "x4"), strict=True)), "question": "q"}
    columns |= {"question_type": "sort", "answer": right}
    return columns, {"o": said, "l": said.lower(), "p": other, "L": said[0], "M": said[1]}


def lego(seed: str) -> Rows:
    """Rows of LEGO-Puzzles of both kinds."""
    sort = filled(f"{seed} sort", SORTS, sorted_steps)[:150]
    return sort + [({**columns, "question_type": "multiple-choice"}, text) for columns, text in choices(seed, 4)[:150]]


ROWS: dict[str, Any] = {
    "medq": lambda: medq("medq", 4),
    "medq_deg": lambda: medq("medq_deg", 5),
    "last_letter": lambda: choices("last_letter", 6),
    "letter_list": lambda: filled("letter_list", LISTS, listed),
    "letter_set": lambda: sets_of_letters("letter_set", 5),
    "letter_set_to_g": lambda: sets_of_letters("letter_set_to_g", 6),
    "lego": lambda: lego("lego"),
    "crpe": lambda: filled("crpe", "|".join(CRPE), related),
    "phyx": lambda: filled("phyx", PHYX, valued),
    "phyx_choice": lambda: choices("phyx_choice", 4),
    "vlm_blind": lambda: filled("vlm_blind", BLIND, blind),
    "visfactor": lambda: filled("visfactor", JSON, factor),
    "cc_ocr": lambda: mixed("cc_ocr"),
    "key_information": lambda: filled("key_information", OBJECT, documented),
    "page_text": lambda: filled("page_text", PAGE, pages),
    "sp_bench": lambda: filled("sp_bench", SAID, spatial_numbers),
    "spar_bench": lambda: filled("spar_bench", SAID, spar),
    "chart_qa_pro": lambda: filled("chart_qa_pro", SAID, charts),
    "omni_3d": lambda: filled("omni_3d", SAID, omni),
    "spatial_457": lambda: filled("spatial_457", SAID, super_clevr),
    "reason_map": lambda: filled("reason_map", SAID, stations),
    "biased": lambda: filled("biased", SAID, biases),
    "gsm8k": lambda: filled("gsm8k", SAID, prices),
    "core_cognition": lambda: filled("core_cognition", SAID, cores),
    "hidden_words": lambda: filled("hidden_words", RESTORED, covered),
    "click": lambda: clicks("click"),
    "click_between": lambda: clicks("click_between", corners=True),
    "click_per_mille": lambda: clicks("click_per_mille"),
    "unit_box": lambda: filled("unit_box", BOXES, boxed),
}

COUNTS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty"
).split()
OPTIONS = {"A": "cat", "B": "dog ", "C": "red"}
IN_PLACE = {"question": "<IMAGE_0> and <IMAGE_1><br><ADDITIONAL_0>, <ADDITIONAL_7>\nOutput: Respond", "pictures": "2"}
NOTHING = dict.fromkeys(("additional", "context", "hint", "paragraph", "sig_figs", "unit", *"DEFGHIJ"), float("nan"))
CHART = {"question": "['How many?', 'And \"now\"?']", "answer": "['3', '4']", "paragraph": "It is a chart."}
OLYMPIAD = {"source": "OE_MM_maths_en_COMP", "answer_type": "Numerical", "is_multiple_answer": ""}
OLYMPIADS = (
    {"unit": "m"},
    {"source": "OE_TO_physics_zh_CEE", "context": "Given.", "answer_type": "Expression,Numerical"},
    {"source": "OE_TO_physics_en_COMP", "context": "Given.", "is_multiple_answer": "True", "answer_type": "Interval"},
    {"source": "OE_MM_maths_zh_COMP", "is_multiple_answer": "True", "answer_type": "Expression,Numerical", "unit": "m"},
    {"is_multiple_answer": "True", "answer_type": "Expression,Numerical"},
    {"source": "TP_MM_maths_en_COMP", "context": "Given."},
    {"source": "TP_TO_physics_zh_CEE", "context": "Given."},
    {"answer_type": "Tuple"},
)
# Set, module, class and columns.
PROMPTS: list[tuple[str, str, str, dict[str, str]]] = [
    ("MedqbenchMCQ_dev", "medqbench_mcq", "MedqbenchMCQDataset", {**OPTIONS, "pictures": "2"}),
    ("MedQDEGBench_good_dev", "medq_deg_bench", "MedQDEGBenchDataset", {**OPTIONS, "E": "five", "pictures": "2"}),
    ("M3oralBench", "m3oralbench", "M3oralBenchDataset", OPTIONS),
    ("SIUO_MCQ", "siuo_mcq", "SIUOMCQDataset", OPTIONS),
    ("A4Bench", "image_mcq", "AffordanceDataset", {**OPTIONS, "hint": "Look."}),
    ("A4Bench", "image_mcq", "AffordanceDataset", OPTIONS),
    ("TreeBench", "image_mcq", "TreeBench", {**OPTIONS, "hint": "Look."}),
    ("XLRS-Bench-lite", "image_mcq", "XLRSBench", {"multi-choice options": "\n(A) cat\n(B) dog"}),
    ("OmniEarth-Bench", "image_mcq", "OmniEarthMCQBench", {"multi-choice options": "\n(A) cat\n(B) dog"}),
    ("LEGO", "image_mcq", "LEGO", {**OPTIONS, "question_type": "sort", "question": "Look: <image 1> How?"}),
    ("VisFactor", "visfactor", "VisFactor", {**IN_PLACE, "additional": "a<br>b;c"}),
    ("VisFactor_GE_CoT", "visfactor", "VisFactor", IN_PLACE),
    ("tdbench_grounding_rot90", "image_vqa", "TDBenchGrounding", {"question": "car", "pictures": "2"}),
    ("ScreenSpot_v2_Web", "screenspot", "ScreenSpot", {"pictures": "2"}),
    ("SPBench-MV", "spbench", "SPBench", {"question_type": "object_counting", "candidates": ""}),
    ("SPBench-SI", "spbench", "SPBench", {"question_type": "object_rel_distance", "candidates": "['A. a', 'B. b']"}),
    ("SPBench-SI_CoT", "spbench", "SPBench", {"question_type": "object_rel_distance", "candidates": "['A. a']"}),
    ("SPBench-MV_CoT", "spbench", "SPBench", {"question_type": "object_counting", "candidates": "[]"}),
    *(
        (f"ChartQAPro{form}", "chartqapro", "ChartQAPro", {**CHART, "question_type": kind})
        for form in ("", "_CoT")
        for kind in ("Factoid", "Multi Choice", "Conversational", "Fact Checking", "Hypothetical")
    ),
    ("SparBench", "sparbench", "SparBench", {"task": "depth_prediction_oc"}),
    ("SparBench", "sparbench", "SparBench", {"task": "position_matching"}),
    ("SparBench_tiny", "sparbench", "SparBench", {"task": "distance_infer_center_oo"}),
    ("SparBench_tiny", "sparbench", "SparBench", {"task": "view_change_infer"}),
    ("IPhO_2025", "hipho", "HiPhODataset", {"context": "Given.", "information": "g = 9.8"}),
    ("HiPhO_ALL", "hipho", "HiPhODataset", {}),
    ("PanMechanics_2024", "hipho", "HiPhODataset", {"context": "Given."}),
    ("MMOral_OPG_OPEN", "mmoral_opg_open", "MMOral_OPG_OPEN", {}),
    ("SiteBenchImage", "sitebench", "SiteBenchImage", {"options": '["cat", "dog"]'}),
    ("SiteBenchImage", "sitebench", "SiteBenchImage", {"options": '["cat", "dog"]', "question": "See <image> here"}),
    ("GSM8K-V", "gsm8k_v", "GSM8KVDataset", {}),
    ("Spatial457", "spatial457", "Spatial457", {"category": "L1_single"}),
    ("Spatial457", "spatial457", "Spatial457", {"category": "L5_collision"}),
    ("Omni3DBench", "image_vqa", "Omni3DBench", {"answer_type": "int"}),
    ("CoreCognition", "image_vqa", "CoreCognition", {"question_type": "MCQ"}),
    *(("OlympiadBench", "image_vqa", "OlympiadBench", {**OLYMPIAD, **more}) for more in OLYMPIADS),
    ("VizWiz", "image_vqa", "VizWiz", {}),
    ("PlotQA", "plotqa", "PlotQA", {}),
    ("PhyX_mini_OE", "image_vqa", "PhyX", {}),
    ("MMVMBench", "image_vqa", "MMVMBench", {"pictures": "2"}),
    ("Physics", "image_vqa", "Physics_yale", {"pictures": "2"}),
    ("SeePhys", "image_vqa", "SeePhys", {"language": "English", "sig_figs": "3"}),
    ("SeePhys_vo", "image_vqa", "SeePhys", {"language": "Chinese", "sig_figs": "2"}),
    ("SeePhys_vo", "image_vqa", "SeePhys", {"language": "Chinese"}),
    ("OCR_Reasoning", "image_vqa", "OCR_Reasoning", {"language": "English", "format": "a number"}),
    ("OCR_Reasoning", "image_vqa", "OCR_Reasoning", {"language": "Chinese", "format": "a number"}),
    ("ChartMuseum_dev", "chartmuseum", "ChartMuseum", {"pictures": "2"}),
    ("WorldVQA", "worldvqa", "WorldVQA", {"language": "en"}),
    ("WorldVQA", "worldvqa", "WorldVQA", {"language": "zh"}),
    ("SFE", "sfebench", "SFE", {"question_type": "mcq", "category": "c", "question": "<image> What? ", **OPTIONS}),
    ("SFE-zh", "sfebench", "SFE", {"question_type": "exact_match", "category": "c", "question": "What?<image>"}),
    ("SFE-zh", "sfebench", "SFE", {"question_type": "open_ended", "category": "c", "question": "<image>What?"}),
    ("MMESCI_VisionOnly", "mmesci", "MMESCIDataset", {"type": "MCQ"}),
    ("MMESCI_EN", "mmesci", "MMESCIDataset", {"type": "MCQ", "options": "A. cat", "question": "See <image_1>: what?"}),
    ("MMESCI_ZH", "mmesci", "MMESCIDataset", {"type": "Open"}),
    ("MMESCI_FR", "mmesci", "MMESCIDataset", {"type": "Open OnlyTxt", "question": "<image_1> what?"}),
    ("MMESCI_JA", "mmesci", "MMESCIDataset", {"type": "Open"}),
    ("MMESCI_ES", "mmesci", "MMESCIDataset", {"type": "Open"}),
    ("EMMA", "emma", "EMMADataset", {**OPTIONS, "type": "MCQ", "context": "See <image 1>."}),
    ("EMMA_COT", "emma", "EMMADataset", {"type": "Open-ended"}),
]


class Asked(Exception):
    """A judge is asked."""


class NoJudge:
    """A judge that is not there."""

    def generate(self, *_: Any, **__: Any) -> str:
        raise Asked


class BySet(Published):
    """VLMEvalKit's classes of these sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        sys.modules["tqdm"].tqdm = lambda items, **_: items
        self.image_mcq.load = self.image_vqa.load = lambda path: self.table.copy()
        self.choice.load = lambda _: {}
        for name in ("image_base", "image_mcq", "image_vqa"):
            sys.modules.setdefault(f"vlmeval.dataset.{name}", types.ModuleType(name))
        self.own = {}
        for name in ("medqbench_mcq", "medq_deg_bench", "m3oralbench", "siuo_mcq", "visfactor"):
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
            self.own[name].toliststr = lambda paths: [paths]
        sys.modules["vlmeval.smp.status_report"] = Empty("vlmeval.smp.status_report")
        base = self.module("vlmeval.dataset.image_base", "dataset/image_base.py").ImageBaseDataset.build_prompt
        for module in (self.image_vqa, self.image_mcq):
            module.ImageBaseDataset.build_prompt = base
            module.toliststr = lambda paths: [paths]
        sys.modules["vlmeval.dataset.image_base"].toliststr = lambda paths: [paths]
        for name in ("sfebench", "chartmuseum", "mmesci", "emma", "worldvqa", "plotqa"):
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
            self.own[name].toliststr = lambda paths: [paths]
        sys.modules["decord"] = Empty("decord")
        limits = sys.modules.setdefault("timeout_decorator", types.ModuleType("timeout_decorator"))
        limits.timeout = lambda *_, **__: lambda function: function
        self.module("vlmeval.dataset.utils.olympiadbench", "dataset/utils/olympiadbench.py")
        words = sys.modules.setdefault("num2words", types.ModuleType("num2words"))
        words.num2words = lambda number, lang: COUNTS[number] if number < len(COUNTS) else f"n{number}"
        for name in ("matching_func", "cal_scores"):
            place = f"dataset/utils/spatial_bench/{name}.py"
            if name == "cal_scores":
                for other in ("tools", "tools.files", "llm_extract"):
                    module = f"vlmeval.dataset.utils.spatial_bench.{other}"
                    sys.modules[module] = Empty(module)
            self.own[name] = self.module(f"vlmeval.dataset.utils.spatial_bench.{name}", place)
        for name in ("chartqapro", "omni3dbench", "spatial457", "vlmsarebiased", "gsm8k_v", "corecognition"):
            self.own[f"utils.{name}"] = self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")
        self.module("vlmeval.dataset.utils.hipho_prompt_inference", "dataset/utils/hipho_prompt_inference.py")
        for name in (
            "chartqapro",
            "spbench",
            "sparbench",
            "hipho",
            "mmoral_opg_open",
            "sitebench",
            "spatial457",
            "reasonmap_plus",
            "gsm8k_v",
            "vcr",
        ):
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
            self.own[name].toliststr = lambda paths: [paths]
            self.own[name].misc = types.SimpleNamespace(toliststr=lambda _: ["<0>"])
            if name == "spatial457":
                self.own[name].ImageBaseDataset.build_prompt = base
        tokenizer = __import__("spacy").blank("en")
        self.own["vcr"].nlp = {"en": tokenizer}
        for name in ("common", "kie_evaluator", "doc_parsing_evaluator", "ocr_evaluator"):
            place = f"dataset/utils/ccocr_evaluator/{name}.py"
            self.own[name] = self.module(f"vlmeval.dataset.utils.ccocr_evaluator.{name}", place)
        for name in ("screenspot", "screenspot_pro", "osworld_g"):
            self.own[name] = self.module(f"vlmeval.dataset.GUI.{name}", f"dataset/GUI/{name}.py")
            self.own[name].Image.open = lambda _: types.SimpleNamespace(size=(1000, 500))
            self.own[name].np = __import__("numpy")
        for name in ("phyx", "crpe", "tdbench"):
            self.own[name] = self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read, where that is told, and the score of each row."""
        return [getattr(self, kind)(columns, text) for columns, text in rows]

    def dumps(self, module: Any, made: Any, columns: dict[str, str], text: str) -> Any:
        """The table that an `evaluate` writes."""
        kept = []
        module.load = lambda _: self.frame([{"index": 0, **columns, "prediction": text}])
        module.dump = lambda data, *_: kept.append(data.copy() if hasattr(data, "copy") else data)
        module.get_intermediate_file_path = lambda *_: "/nonexistent/x"
        made.evaluate("file.xlsx", model="exact_matching")
        return kept

    def instance(self, module: Any, name: str) -> Any:
        """An object without data."""
        return getattr(module, name).__new__(getattr(module, name))

    def medq(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """As `evaluate` compares."""
        made = self.instance(self.own["medqbench_mcq"], "MedqbenchMCQDataset")
        right = made._convert_answer_to_letter(columns["answer"])
        return None, float(str(right).upper() == str(made._extract_option_letter(text)).upper())

    def medq_deg(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """As `evaluate` compares."""
        made = self.instance(self.own["medq_deg_bench"], "MedQDEGBenchDataset")
        return None, float(columns["answer"] == str(made._extract_option_letter(text)).upper())

    def last_letter(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `evaluate` of both compares."""
        read, other = (self.own[name]._extract_option(text) for name in ("m3oralbench", "siuo_mcq"))
        assert read == other
        return read or None, float(read == columns["answer"].strip().upper())

    def letter_list(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """As `is_match`."""
        made = self.instance(self.image_mcq, "AffordanceDataset")
        return None, float(made.is_match({"answer": columns["answer"], "prediction": text}))

    def letter_set(self, columns: dict[str, str], text: str, name: str = "XLRSBench") -> tuple[str | None, float]:
        """As `evaluate` compares."""
        read = getattr(self.image_mcq, name).extract_characters_regex(text)
        return "".join(sorted(read)) or None, float(set(read) == set(columns["answer"]))

    def letter_set_to_g(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `evaluate` compares."""
        return self.letter_set(columns, text, "OmniEarthMCQBench")

    def lego(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `prefetch_answer` reads."""
        letters = {letter: columns[letter] for letter in "ABCDEFGHIJ" if letter in columns}
        infer = sys.modules["vlmeval.utils"].can_infer_lego
        read = infer(text, columns["question_type"], letters) or None
        return read, float(read == columns["answer"])

    def crpe(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """As `CRPE.evaluate` compares."""
        return None, float(self.own["crpe"].is_correct(columns["answer"], text)) if text else 0.0

    def phyx(self, columns: dict[str, str], text: str, choice: bool = False) -> tuple[str | None, float]:
        """As `PhyX_auxeval`; nothing is read if it asks its judge."""
        module = self.own["phyx"]
        judged = module.PhyX_auxeval_MC if choice else module.PhyX_auxeval
        try:
            found = judged(NoJudge(), {"index": 0, **columns, "prediction": text})
        except Asked:
            return None, 0.0
        return found["extracted"], float(found["res"])

    def phyx_choice(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `PhyX_auxeval_MC`."""
        return self.phyx(columns, text, choice=True)

    def vlm_blind(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate`."""
        kept = self.dumps(self.image_mcq, self.instance(self.image_mcq, "VLMBlind"), columns, text)
        return None, float(kept[-1].iloc[0, 0])

    def visfactor(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate`."""
        row = {"additional": "nan", **columns}
        kept = self.dumps(self.own["visfactor"], self.instance(self.own["visfactor"], "VisFactor"), row, text)
        return None, float(kept[0]["correct"].iloc[0])

    def sp_bench(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By the rules that VSI-Bench shares with it."""
        module, table = self.own["cal_scores"], self.frame([{**columns, "prediction": text}])
        if columns["question_type"] == "object_rel_distance":
            return None, float(module.compute_mcq_score(table)["hit"].iloc[0])
        return None, float(module.compute_na_score(table)["MRA:.5:.95:.05"].iloc[0])

    def spar_bench(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By the rules of each task."""
        module, table = self.own["cal_scores"], self.frame([{**columns, "prediction": text}])
        kind = self.own["sparbench"].SparBench.get_task_type(columns["task"])
        if kind == "MCQ":
            return None, float(module.compute_mcq_score(table)["hit"].iloc[0])
        if kind == "NA":
            return None, float(module.compute_na_score(table)["MRA:.5:.95:.05"].iloc[0])
        made = self.instance(self.own["sparbench"], "SparBench")
        return None, float(made.compute_special_score(table)["vci_metric"].iloc[0])

    def chart_qa_pro(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate_predictions_chartqapro`."""
        answer, year = (ast.literal_eval(columns[name]) for name in ("answer", "year"))
        row = {"Answer": answer, "Question Type": columns["question_type"], "Year": year, "prediction": text}
        return None, float(self.own["utils.chartqapro"].evaluate_predictions_chartqapro([row])["Overall"])

    def omni_3d(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `Omni3DBench_acc`: the only number that is there."""
        found = self.own["utils.omni3dbench"].Omni3DBench_acc(self.frame([{**columns, "prediction": text}]))
        return None, next(float(value) for value in found.iloc[0] if value is not None and value == value)

    def spatial_457(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate`."""
        module = self.own["spatial457"]
        made = self.instance(module, "Spatial457")
        made.dataset_utils, module.tqdm = self.own["utils.spatial457"].Spatial457_utils(), lambda items: items
        return None, self.dumps(module, made, columns, text)[-1]["score"]

    def reason_map(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate`."""
        module = self.own["reasonmap_plus"]
        module.load = lambda _: self.frame([{**columns, "prediction": text}])
        module.np = types.SimpleNamespace(sum=sum, mean=lambda values: values.mean())  # NumPy 2 sums no generators
        found = self.instance(module, "ReasonMap_Plus").evaluate(None)  # nothing is written
        return None, float(found["value"].iloc[0])

    def biased(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `vlms_are_biased_process_results`."""
        module = self.own["utils.vlmsarebiased"]
        module.load, module.tqdm = lambda _: [{**columns, "prediction": text}], lambda items, desc: items
        return None, float(module.vlms_are_biased_process_results("file")[0]["is_correct"])

    def gsm8k(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `evaluate_gsm8k_v` compares."""
        module = self.own["utils.gsm8k_v"]
        read = module.extract_numerical_answer(text)
        return (None if read is None else f"{read:.15g}"), float(module.is_correct(read, float(columns["answer"])))

    def core_cognition(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `hybrid_match`, without its judge."""
        module = self.own["utils.corecognition"]
        read = module.template_match(module.rm_model_special(text), columns["question_type"])
        return (None if read == "Fail" else read), float(read == columns["answer"].strip().upper())

    def hidden_words(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `process_match_single_new`; words by spaCy's rules for English."""
        module = self.own["vcr"]
        rouge = types.SimpleNamespace(compute=lambda **_: {"rouge1": 0})
        module.rouge = rouge
        progress = types.SimpleNamespace(put=lambda _: None)
        scored = module.process_match_single_new("0", text, columns["answer"], "en", progress)[1]["0"]
        return None, sum(each["exact_match"] for each in scored.values()) / len(scored)

    def key_information(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `KieEvaluator` of one picture, which adds a little to the number of pictures."""
        found = self.own["kie_evaluator"].KieEvaluator("kie")({"0": text}, {"0": columns["answer"]})[1]
        return None, found["summary"]["acc"] * (1 + 1e-6)

    def cc_ocr(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By the evaluator of the category."""
        if columns["category"] == "kie":
            return self.key_information(columns, text)
        if columns["category"] == "doc_parsing":
            return self.page_text(columns, text)
        made = self.instance(self.own["ocr_evaluator"], "OcrEvaluator")
        made.group_name = columns["category"]
        found = made.evaluate({"0": text}, {"0": columns["answer"]}, dataset=columns["split"])
        return None, found["summary"]["macro_f1_score"] * (1 + 1e-9)  # of one picture

    def page_text(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `ParsingEvaluator` of one picture."""
        made = self.own["doc_parsing_evaluator"].ParsingEvaluator("doc_parsing")
        return None, made({"0": text}, {"0": columns["answer"]}, op=columns["l2-category"])[1]["summary"]["score"]

    def click(self, columns: dict[str, str], text: str, name: str = "screenspot") -> tuple[None, float]:
        """By `evaluate`."""
        module = self.own[name]
        made = self.instance(module, {"screenspot": "ScreenSpot", "osworld_g": "OSWorld_G"}.get(name, "ScreenSpot_Pro"))
        made.img_root, made.parse_response_func = "", module.parse_bbox_aguvis
        row = {"ui_type": "icon", "data_source": "s", "application": "a", "image_path": "x", **columns}
        kept = self.dumps(module, made, row, text)
        return None, float(kept[-1]["Overall_Accuracy"] / 100)

    def click_between(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate` of ScreenSpot-Pro."""
        return self.click(columns, text, "screenspot_pro")

    def click_per_mille(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """By `evaluate` of OSWorld-G."""
        return self.click(columns, text, "osworld_g")

    def unit_box(self, columns: dict[str, str], text: str) -> tuple[None, float]:
        """As `TDBenchGrounding.evaluate` compares."""
        module = self.own["tdbench"]
        try:
            said, right = (module.extract_bbox_from_string(part) for part in (text, columns["answer"]))
            return None, float(module.evaluate_bbox(said, right, "centroid"))
        except (RuntimeError, ValueError):
            return None, 0.0

    def prompts(self, asked: Sequence[tuple[str, str, str, dict[str, str]]] = tuple(PROMPTS)) -> list[Any]:
        """Set, columns, number of pictures, and the parts of VLMEvalKit's prompt."""
        found = []
        for name, module, kind, columns in asked:
            row = {"question": "What is it?", "answer": "A", **columns}
            size = int(row.pop("pictures", "1"))
            home = self.own[module] if module in self.own else getattr(self, module)
            made = self.instance(home, kind)
            made.meta_only, made.dataset_name = size == 1, name
            pictures = [f"<{place}>" for place in range(size)]
            made.language = "zh" if name.startswith("PanMechanics") else "en"
            made.mode, made.use_cot = "visual_implicit", name.endswith("_CoT")
            if "spatial457" in module:
                made.dataset_utils = self.own["utils.spatial457"].Spatial457_utils()
            made.dump_image = lambda _, pictures=pictures: pictures
            path = "" if kind == "WorldVQA" else "<0>"  # it reads the file
            line = self.frame([{"image_path": path, "image": "x", **NOTHING, **row}]).iloc[0]
            found.append([name, row, size, [part["value"] or "<0>" for part in made.build_prompt(line)]])
        return found

    def more(self) -> dict[str, Any]:
        """The prompts."""
        return {"prompts": self.prompts()}


PUBLISHED = BySet


def main() -> None:
    """Writes the file."""
    of = importlib.import_module(sys.argv[2]) if len(sys.argv) > 2 else sys.modules[__name__]
    path = of.PATH
    if path.exists():
        raise SystemExit(f"{path} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    made = of.PUBLISHED(Path(sys.argv[1]))
    rows = {kind: partial(lambda make: make()[:NUMBER], make) for kind, make in of.ROWS.items()}
    write(path, made, rows, made.more(), of.__doc__ or "")


if __name__ == "__main__":
    main()
