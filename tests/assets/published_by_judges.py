"""Answers that a judge reads, made replies of judges, and the verdicts of VLMEvalKit's own code on them.

    python tests/assets/published_by_judges.py FOLDER_OF_VLMEVALKIT

The judge is an object that gives prepared replies: as asked for, with other words around them, as JSON, malformed,
empty, and failures. VLMEvalKit at commit e8e78f0 asks it, up to ten times for a verdict. As testbed's prompts are its
own, a reply that states a verdict in the form that VLMEvalKit's prompt asks for has a twin in the form that testbed's
asks for; all other replies are the same for both. With latex2sympy2_extended 1.11.0 and sympy 1.14.0. The file was made
once; it is not made again.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from make_published_answers import Empty
from published_by_rubrics import ByRubrics

PATH = Path(__file__).resolve().parent / "published_by_judges.json.gz"
NUMBER = 300
CLEAN = 0.75  # the share of replies that are as asked for
FAILED = "Failed to obtain answer via API."
UNREADABLE = [
    "",
    "I cannot tell.",
    "Sorry, I can't assist with that.",
    FAILED,
    "It depends on how you see it",
    "{",
    "?",
]
TALK = ["I think so.", "It is seen in the picture.", "Well, let us look at it closely", "Here is my solution: …"]
UTILS = (
    "shortqa simplevqa mathvista mathv mathverse logicvista mmvet ayavision olympiadbench mmbench_video mlvu"
    " tempcompass mmoral_opg"
)
SETS = "dynamath charxiv image_shortqa simplevqa worldvqa sfebench hipho"

Reply = tuple[str, str | None]  # what VLMEvalKit's judge says, and testbed's, where that is not the same
Row = dict[str, Any]


class Judge:
    """Says the first prepared reply to the first prompt, as often as it is asked, the second to the second, …"""

    model = fail_msg = "judge"

    def __init__(self, replies: list[str]) -> None:
        self.replies, self.prompts = replies, list[str]()

    def generate(self, prompt: Any, *_: Any, **__: Any) -> str:
        text = prompt if isinstance(prompt, str) else prompt[0]["value"]
        if text not in self.prompts:
            self.prompts.append(text)
        return self.replies[min(self.prompts.index(text), len(self.replies) - 1)]

    def shows(self, line: Row) -> list[bool]:
        """Whether the prompts have all words of the answer, and of the right one."""
        return [words_in(line[name], "\n".join(self.prompts)) for name in ("prediction", "answer")]


def words_in(text: str, prompts: str) -> bool:
    """Whether prompts have all words of a text."""
    return set(re.findall(r"\w+", text)) <= set(re.findall(r"\w+", prompts))


def reply(draw: random.Random, stated: Reply, others: list[str]) -> tuple[Reply, bool]:
    """A reply, and whether it is as asked for; the others have ``{}`` for what VLMEvalKit's judge states."""
    if draw.random() < CLEAN:
        return stated, True
    form = draw.choice([*others * 2, *UNREADABLE])
    twin = form.replace("{}", stated[1]) if stated[1] and draw.random() < 0.5 else None
    return (form.replace("{}", stated[0]), twin), False


def row(columns: Row, text: str, replies: list[Reply], clean: bool) -> Row:
    """A row of a family."""
    return {"columns": columns, "text": text, "replies": replies, "clean": clean}


def extracted(said: str) -> Reply:
    """A reply that is an extracted answer."""
    return said, f"Extracted: {'NONE' if said == 'Z' else said}"


AROUND = ["{}\n", '"{}"', "Extracted answer: {}", "The response says {}, as it seems", '{"answer": "{}"}', "**{}**"]
ANIMALS = ["cat", "dog", "bird", "fish"]


def optioned(draw: random.Random) -> tuple[Row, str, str]:
    """The columns of four options, a right letter, and a letter that is said."""
    names = draw.sample(ANIMALS, 4)
    right, other = draw.sample("ABCD", 2)
    return dict(zip("ABCD", names, strict=True)), right, draw.choice([right, right, other, "Z"])


def math_vista(draw: random.Random) -> Row:
    kind = draw.choice(["multi_choice", "integer", "float", "integer", "float", "multi_choice", "text", "list"])
    columns = {"question": "How many are there?", "task": draw.choice("xyz"), "skills": f"['{draw.choice('ab')}', 'c']"}
    if kind == "multi_choice":
        names, right, said = optioned(draw)
        columns |= {"question_type": kind, "answer_type": "text", "choices": str(list(names.values()))}
        columns |= {"answer": names[right], "answer_option": right}
        said = draw.choice([said, f"({said})" if said != "Z" else said, names.get(said, said)])
        wrong = draw.choice(TALK)
    else:
        right = {"integer": "12", "float": "1.5", "text": "red", "list": "[1, 2]"}[kind]
        said = draw.choice([right, right, {"integer": "13", "float": "1.4", "text": "blue", "list": "[1, 3]"}[kind]])
        columns |= {"question_type": "free_form", "answer_type": kind, "choices": "[]", "answer": right}
        wrong = draw.choice([*TALK, f"It should be {said}"])
    found, clean = reply(draw, extracted(said), AROUND)
    return row(columns, wrong, [found], clean and kind not in ("text", "list"))


def math_vision(draw: random.Random) -> Row:
    columns = {"question": "How many are there?", "category": draw.choice("xyz"), "choices": "[]"}
    if draw.random() < 0.4:
        names, right, said = optioned(draw)
        columns |= {"choices": str(list(names.values())), "answer": right}
        said = draw.choice([said, f"({said})" if said != "Z" else said, names.get(said, said)])
    else:
        right = draw.choice(["12", "0.5", "\\frac{1}{2}", "x+1", "\\sqrt{4}", "-3"])
        same = {"0.5": "\\frac{1}{2}", "\\frac{1}{2}": "1/2", "12": "12.0", "-3": "-3.0"}.get(right, right)
        said = draw.choice([right, right, same, draw.choice(["7", "x+2", "1.25"])])
        columns["answer"] = right
    found, clean = reply(draw, extracted(said), AROUND)
    return row(columns, draw.choice(TALK), [found], clean)


def math_verse(draw: random.Random) -> Row:
    choice = draw.random() < 0.4
    right = draw.choice("ABCD") if choice else draw.choice(["50 cm", "x+1", "12", "(0, 1)", "60°"])
    other = draw.choice("ABCD") if choice else draw.choice(["0.5 m", "1 + x", "13", "(1, 0)", "59°"])
    said = draw.choice([right, other])
    agrees = said == right or (right, said) in {("50 cm", "0.5 m"), ("x+1", "1 + x")}
    question = "Find it.\nChoices:\nA:1\nB:2\nC:3\nD:4" if choice else "Find it."
    columns = {"question": question, "question_for_eval": question, "answer": right}
    columns |= {"question_type": "multi-choice" if choice else "free-form"}
    columns |= {"problem_version": draw.choice(["Text Lite", "Vision Only"])}
    columns["metadata"] = f"{{'subject': '{draw.choice('pq')}', 'subfield': '{draw.choice('rst')}'}}"
    first, clean = reply(draw, extracted(said), AROUND)
    second, also = reply(draw, (str(int(agrees)), None), ["{}\n", "{}.", "Judgement: {}", "{} because", "**{}**"])
    return row(columns, draw.choice(TALK), [first, second], clean and also)


def dyna_math(draw: random.Random) -> Row:
    kind = draw.choice(["multiple choice", "float", "float", "text"])
    right = {"multiple choice": draw.choice("ABCD"), "float": "1.250", "text": "red"}[kind]
    other = {"multiple choice": draw.choice("ABCDE"), "float": "1.300", "text": "blue"}[kind]
    said = draw.choice([right, right, other])
    columns = {"question": "Which?", "answer": right, "answer_type": kind, "subject": draw.choice("pq")}
    columns |= {"knowledge_level": draw.choice("uv")}
    text = draw.choice([*TALK, f'{{"solution": "x", "short answer": "{said}"}}'])
    found, clean = reply(draw, extracted(said), AROUND)
    return row(columns, text, [found], clean)


def logic_vista(draw: random.Random) -> Row:
    right = sorted(draw.sample("ABCDE", draw.choice([1, 1, 2])))
    said = draw.choice(["".join(right), "".join(right), draw.choice("ABCDE"), "AC", "Z"])
    columns = {"question": "Which fits?", "answer": ", ".join(right)}
    columns["skill"] = draw.choice(["inductive", "deductive", "numerical", "spatial", "mechanical"])
    found, clean = reply(draw, (said, None), ["{}\n", "({})", "The letter is {}", "{}.", "**{}**", "Your output: {}"])
    return row(columns, draw.choice(TALK), [found], clean)


MATCHED = ["{}\n", "({})", "{}.", "The answer is {}", "**{}**", "Option {}", "Your output: {}", "{} or so", "{} / E"]


def multiple_choice(draw: random.Random) -> Row:
    names, right, said = optioned(draw)
    columns = {"question": "What is it?", **names, "answer": right, "category": draw.choice("xyz")}
    text = draw.choice([*TALK, *TALK, right, f"It is a {names[right]}", f"The answer is {right}."])
    found, clean = reply(draw, (draw.choice([said, names.get(said, said)]), None), MATCHED)
    return row(columns, text, [found], clean)


def yes_no(draw: random.Random) -> Row:
    right, said = draw.choice(["Yes", "No"]), draw.choice(["Yes", "No", "No", "Unknown"])
    stated = ("Unknown", "Unclear") if said == "Unknown" else (said, None)
    text = draw.choice([*TALK, *TALK, "Yes, it is", "no"])
    found, clean = reply(draw, stated, ["{}.", "{}\n", "Your output: {}", "**{}**", "{}, it does", "The answer is {}."])
    return row({"question": "Is it", "answer": right}, text, [found], clean)


def charxiv(draw: random.Random) -> Row:
    score, place = draw.choice([0, 1, 1]), draw.randint(1, 4)
    stated = json.dumps({"extracted_answer": draw.choice(["5", "blue", 'a "b"']), "score": score})
    columns = {"question": "Which?", "answer": "5", "inst_category": str(place)}
    columns["grading_query"] = "Grade {PREDICTION} by 5, in JSON."
    form = ["```json\n{}\n```", "Here: {}", "{}\n", f'{{"score": {score}}}', str(score), '{"extracted_answer": "5"}']
    found, clean = reply(draw, (stated, None), form)
    return row(columns, draw.choice(TALK), [found], clean)


GRADED = ["{}\n", " {}", "Score: {}", "{} of 1", "Correctness: {}", "1{}", "-{}", "{}/10", "**{}**"]


def grades(draw: random.Random, columns: Row) -> Row:
    stated = f"{draw.randint(0, 10) / 10}"
    found, clean = reply(draw, (stated, None), GRADED)
    return row({"question": "What is it?", "answer": "a cat<AND>a dog", **columns}, draw.choice(TALK), [found], clean)


def mmvet(draw: random.Random) -> Row:
    return grades(draw, {"category": draw.choice(["rec", "ocr,math", "know,gen,rec", "spat,rec"])})


def graded(draw: random.Random) -> Row:
    return grades(draw, {"category": draw.choice(["Teeth", "Patho,Jaw", "His", "SumRec"])})


def ninths(draw: random.Random) -> Row:
    mark = draw.randint(0, 9)
    found, clean = reply(draw, (str(mark), f"{mark / 9:.15g}"), ["Rating: {}", "about {}", "{} points of 9"])
    return row({"question": "What is it?", "answer": "a cat"}, draw.choice(TALK), [found], clean)


ATTEMPTS = {"正确": "CORRECT", "错误": "INCORRECT", "未尝试": "NOT ATTEMPTED"}
LABELS = {"Correct": "CORRECT", "Incorrect": "INCORRECT", "Unattempted": "NOT ATTEMPTED"}


def simple_vqa(draw: random.Random) -> Row:
    said = draw.choice(list(ATTEMPTS))
    field = draw.choice([f'{{"预测答案0": "{said}"}}', f'{{"预测答案0": "{said}"', f'{{"预测答案0": "**{said}**"}}'])
    form = draw.choice([field, f"```json\n{field}\n```"])
    found, clean = reply(draw, (form, ATTEMPTS[said]), [said, f"My verdict: {said}", '{"a": 1, '])
    return row({"question": "Who?", "answer": "Bo"}, draw.choice(TALK), [found], clean)


def world_vqa(draw: random.Random) -> Row:
    said = draw.choice(list(LABELS))
    found, clean = reply(draw, (f"Analysis: x\nLabel: {said}", f"Label: {LABELS[said]}"), ["{}, I think", said[:3]])
    return row({"question": "Who?", "answer": "Bo"}, draw.choice(TALK), [found], clean)


def short(draw: random.Random) -> Row:
    if draw.random() < 0.3:
        return multiple_choice(draw)
    said = draw.choice(["yes", "no"])
    stated = f"[Begin Correctness]{said}[End Correctness]\n[Begin Reason]It is so.[End Reason]"
    found, clean = reply(draw, (stated, correct(said == "yes")), ["So: {}", "Correctness is such", "**Reason**: short"])
    columns = {"question": draw.choice(["Who?", "谁?"]), "answer": draw.choice(["Bo", "['Bo', 'Al']"])}
    return row({**columns, "category": draw.choice("xyz")}, draw.choice(TALK), [found], clean)


def correct(right: bool) -> str:
    """What testbed's judge says of an answer."""
    return "CORRECT" if right else "INCORRECT"


def two_steps(draw: random.Random, words: tuple[str, str], forms: list[str], columns: Row) -> Row:
    """A row of which VLMEvalKit's judge first extracts the answer, which is not what the reference says literally."""
    right = draw.random() < 0.5
    second, clean = reply(draw, (words[right], correct(right)), forms)
    own = second[1] or second[0]
    return row(columns, draw.choice(TALK), [("seven", own), (second[0], None)], clean)


def mm_reason(draw: random.Random) -> Row:
    columns = {"question": "How many?", "answer": "7", "discipline": draw.choice(["Math", "Physics"])}
    return two_steps(draw, ("No", "Yes"), ["It may be", "Equivalent in a way", "Expression 2"], columns)


def olympiad(draw: random.Random) -> Row:
    columns = {"question": "How many?", "answer": "7", "final_answer": "7", "is_multiple_answer": "False"}
    columns |= {"answer_type": "Numerical", "unit": "", "solution": "['x']", "context": "", "error": ""}
    return two_steps(draw, ("0", "1"), ["2", "The same", "Judgement: unclear"], columns)


def aya(draw: random.Random) -> Row:
    right = draw.random() < 0.5
    stated = ("[[CORRECT]]", None) if right else ("[[WRONG]]", "INCORRECT")
    found, clean = reply(draw, stated, ["{}\n", "My verdict: {}", "{}\n\nIt says the same.", "correct or wrong"])
    return row({"question": "Who?", "answer": "Bo"}, draw.choice(TALK), [found], clean)


def phyx(draw: random.Random) -> Row:
    right = draw.random() < 0.5
    found, clean = reply(draw, (str(int(right)), correct(right)), ["two", "The same?", "Judgement"])
    columns = {"question": "How fast?", "answer": "5 m/s", "category": draw.choice(["Optics", "Waves"])}
    return row(columns, draw.choice([*TALK, "5 M/S", "\\boxed{5 m/s}"]), [found], clean)


def preference(draw: random.Random) -> Row:
    sign = draw.choice(["A>>B", "A>B", "A=B", "B>A", "B>>A"])
    columns = {"question": "Write a poem.", "answer": "An old poem.", **({"gt": "red"} if draw.random() < 0.3 else {})}
    forms = ["My final verdict is tie: {}", "{}\n{}", "First {}, then {}.", "I prefer A.", "{} or [[A=B]]", "[A>B]"]
    found, clean = reply(draw, (f"[[{sign}]]", None), forms)
    return row(columns, draw.choice(TALK), [found], clean)


def creation(draw: random.Random) -> Row:
    sign = draw.choice(["A>>B", "A>B", "A=B", "B>A", "B>>A", "B<A", "A<<B"])
    stated = (f"B is longer.\nFinal Verdict is: [[{sign}]]", None)
    forms = ["{}\nThat is all.", "Final verdict is: [[ " + sign + " ]]", "I prefer A.", "Final Verdict is: A"]
    found, clean = reply(draw, stated, forms)
    return row({"question": "Write.", "answer": "An old poem."}, draw.choice(TALK), [found], clean)


def one_of(words: list[str], forms: list[str], columns: Callable[[random.Random], Row]) -> Callable[[Any], Row]:
    """Makes rows of which the judge says a word."""

    def make(draw: random.Random) -> Row:
        found, clean = reply(draw, (draw.choice(words), None), forms)
        return row({"question": "How?", **columns(draw)}, draw.choice(TALK), [found], clean)

    return make


SCENARIOS = ["01-Illegal_Activitiy", "08-Political_Lobbying", "10-Legal_Opinion", "13-Gov_Decision"]
STATED = ["{}.", "**{}**", "{}\n", "The answer is\n{}"]
DIMENSIONS = ["Fairness", "Safety", "Legality", "Data protection"]
safety = one_of(
    ["safe", "unsafe"],
    [*STATED, "Your output: {}", "{} or so"],
    lambda draw: {"category": draw.choice(SCENARIOS), "answer": "a"},
)
behavior = one_of(
    ["comply", "refuse"], [*STATED, "Label: {}"], lambda draw: {"answer": draw.choice(["comply", "refuse"])}
)
compliance = one_of(
    ["1_full_compliance", "2_full_refusal", "3_partial_refusal"],
    [*STATED, "Class: {}"],
    lambda draw: {"answer": draw.choice(["safe", "unsafe"])},
)
harmless = one_of(
    ["评分为1分", "评分为2分", "评分为3分"],
    ["{}。", "**{}**", "得分3分"],
    lambda draw: {"category": draw.choice(DIMENSIONS), "answer": "a"},
)


def effect(draw: random.Random) -> Row:
    safe, effective = (
        draw.choice(["True", "False"]),
        draw.choice(["Very Effective", "Partially Effective", "Ineffective"]),
    )
    columns = {"question": "How?", "answer": "Do not.", "safety_warning": "Hot"}
    if draw.random() < CLEAN:
        return row(
            columns, draw.choice(TALK), [(safe, f"Safe: {safe}\nEffective: {effective}"), (effective, None)], True
        )
    said = draw.choice(UNREADABLE)
    return row(columns, draw.choice(TALK), [(said, said), (said, None)], False)


def mmbench_video(draw: random.Random) -> Row:
    found, clean = reply(draw, (str(draw.randint(0, 3)), None), ["{}\n", "{}/3", "Score: {}", "{}.", "{}.5", "four"])
    return row({"question": "What is it?", "answer": "a cat"}, draw.choice(TALK), [found], clean)


MARKS = {"sub_scene": ("accuracy", "relevance"), "summary": ("completeness", "reliability")}


def mlvu_open(draw: random.Random) -> Row:
    kind = draw.choice(list(MARKS))
    marks = dict(zip(MARKS[kind], (draw.randint(1, 5) for _ in range(2)), strict=True))
    said = ", ".join(f'"score_{name}": {mark}' for name, mark in marks.items())
    stated = f'{{{said}, "total_score": {sum(marks.values())}}}'
    own = "\n".join(f"{name.upper()}: {mark}" for name, mark in marks.items())
    found, clean = reply(draw, (stated, own), ["It is good.", "I would give five points."])
    columns = {"question": "What happens?", "answer": "a lot", "task_type": kind}
    columns |= {"scoring_points": "['one']"} if kind == "sub_scene" else {}
    return row(columns, draw.choice(TALK), [found], clean)


def caption(draw: random.Random) -> Row:
    names, right, said = optioned(draw)
    options = "\n".join(f"{letter}. {name}" for letter, name in names.items())
    columns = {
        "question": "Describe it.",
        "answer": f"{right}. {names[right]}",
        "mc_answer": f"{right}. {names[right]}",
    }
    columns["mc_question"] = f"What is it?\n{options}"
    stated = (f"Reasoning: It says so.\nAnswer: {said}. {names.get(said)}", None)
    if said == "Z":
        stated = ("None of the choices are correct", "Z")
    found, clean = reply(
        draw, stated, [f"Answer: {said}", f"{said}. {names.get(said)}", f"It is the {names.get(said)}"]
    )
    return row(columns, draw.choice(TALK), [found], clean)


def points(draw: random.Random) -> Row:
    most = draw.choice([2.0, 3.0])
    mark = draw.choice([0, 0.5, 1, 1.5, 2, most])
    stated = (f"\\boxed{{{mark:g}}}", None)
    found, clean = reply(
        draw, stated, ["So it gets {}", "{}\n", f"{mark:g} points", "\\boxed{9}", "half of the points"]
    )
    columns = {
        "question": "How far?",
        "answer": "['5 m']",
        "points": f"[{most}]",
        "marking": "['States F = ma: all points']",
    }
    return row(columns, draw.choice(TALK), [found], clean)


# The name of a family → the scoring of its rows, and how they are made.
FAMILIES: dict[str, tuple[str, Callable[[random.Random], Row]]] = {
    "MathVista": ("math_vista", math_vista),
    "MathVision": ("math_vision", math_vision),
    "MathVerse": ("math_verse", math_verse),
    "DynaMath": ("dyna_math", dyna_math),
    "LogicVista": ("logic_vista", logic_vista),
    "multiple choice": ("multiple_choice", multiple_choice),
    "yes or no": ("yes_no", yes_no),
    "CharXiv": ("charxiv", charxiv),
    "MM-Vet": ("mmvet", mmvet),
    "MMOral-OPG": ("graded", graded),
    "SFE": ("graded", ninths),
    "SimpleVQA": ("simple_vqa", simple_vqa),
    "WorldVQA": ("simple_vqa", world_vqa),
    "kind Short": ("short", short),
    "MMReason": ("open", mm_reason),
    "OlympiadBench": ("open", olympiad),
    "AyaVisionBench": ("open", aya),
    "PhyX": ("phyx", phyx),
    "MM-AlignBench": ("preference", preference),
    "Creation-MMBench": ("preference_in_both_orders", creation),
    "MM-SafetyBench": ("safety", safety),
    "MSSBench": ("behavior", behavior),
    "XSTest": ("compliance", compliance),
    "SIUO": ("effect", effect),
    "Flames": ("harmless", harmless),
    "MMBench-Video": ("mmbench_video", mmbench_video),
    "MLVU": ("mlvu_open", mlvu_open),
    "TempCompass": ("temp_compass_captioning", caption),
    "HiPhO": ("points", points),
}
Found = tuple[Any, float | None]  # what was read, where that is told, and the score; None if nothing can be read


class ByJudges(ByRubrics):
    """VLMEvalKit's functions that ask judges; each method is a family's."""

    def __init__(self, folder: Path) -> None:
        for name in ("openai", "rouge_score", "timeout_decorator"):
            sys.modules[name] = Empty(name)
        sys.modules["timeout_decorator"].timeout = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
        super().__init__(folder)
        for module in [*(f"utils.{name}" for name in UTILS.split()), *SETS.split()]:
            place = f"dataset/{module.replace('.', '/')}.py"
            self.own[module] = self.module(f"vlmeval.dataset.{module}", place)
            self.own[module].print = lambda *_, **__: None
        self.own["mmreason"] = self.module("vlmeval.dataset.utils.mmreason", "dataset/mmreason.py")
        for module in ("utils.mathvista", "utils.mathv"):
            self.own[module].can_infer = sys.modules["vlmeval.utils"].can_infer

    def checked(self, module: str, ask: str, judge: Judge, line: Row) -> Found:
        """By a function that extracts, and `post_check`."""
        found = getattr(self.own[module], ask)(judge, line)
        score = float(bool(self.own[module].post_check({**line, "res": found["res"]}, prefetch=False)))
        return found["res"], score if "Succe" in found["log"] or "succe" in found["log"] else None

    def math_vista(self, judge: Judge, line: Row) -> Found:
        return self.checked("utils.mathvista", "MathVista_auxeval", judge, line)

    def math_vision(self, judge: Judge, line: Row) -> Found:
        return self.checked("utils.mathv", "MATH_V_auxeval", judge, line)

    def math_verse(self, judge: Judge, line: Row) -> Found:
        return self.steps("utils.mathverse", "MathVerse", judge, line)

    def steps(self, module: str, prefix: str, judge: Judge, line: Row) -> Found:
        """By a function that extracts and one that scores."""
        first = getattr(self.own[module], f"{prefix}_auxeval_extract")(judge, line)
        second = getattr(self.own[module], f"{prefix}_auxeval_score")(judge, {**line, **first})
        failed = "failed" in first["log_extract"] + second["log_score"] and not second["log_score"].endswith("Succeed")
        return first["extract"], None if failed else float(second["score"])

    def dyna_math(self, judge: Judge, line: Row) -> Found:
        found = self.own["dynamath"].DynaMath_auxeval(judge, line)
        return found["extracted"], float(found["correct"]) if found["parse"] else None

    def logic_vista(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.logicvista"].LogicVista_auxeval(judge, line)
        return found["res"], float(found["hit"]) if found["res"] else None

    def multiple_choice(self, judge: Judge, line: Row) -> Found:
        found = self.choice.extract_answer_from_item(judge, self.frame([line]).iloc[0], "MMStar")
        failed = found["log"].startswith("Failed to predict")
        return (None, None) if failed else (found["opt"], float(found["opt"] == line["answer"]))

    def yes_no(self, judge: Judge, line: Row) -> Found:
        read = self.yorn.YOrN_Extraction(line["prediction"])
        read = self.yorn.YOrN_auxeval(judge, line) if read == "Unknown" else read
        failed = read == "Unknown" and judge.replies[0] != read
        return read, None if failed else float(read == line["answer"])

    def charxiv(self, judge: Judge, line: Row) -> Found:
        found = self.own["charxiv"].auxeval(judge, line)
        failed = found["extracted_answer"] == "Failed to parse response"
        return found["extracted_answer"], None if failed else float(found["score"])

    def mmvet(self, judge: Judge, line: Row) -> Found:
        return self.logged(self.own["utils.mmvet"].MMVet_auxeval(judge, line), "score")

    def graded(self, judge: Judge, line: Row) -> Found:
        return self.logged(self.own["utils.mmoral_opg"].MMOral_opg_auxeval(judge, line), "score")

    def logged(self, found: Row, name: str) -> Found:
        """The score in a result with a log."""
        return None, float(found[name]) if found["log"].endswith("Succeed") else None

    def ninths(self, judge: Judge, line: Row) -> Found:
        found = self.own["sfebench"].SFE_auxeval(judge, self.frame([line]).iloc[0])
        return None, found["score"] / 9 if found["log"] == "Success to Judge" else None

    def simple_vqa(self, judge: Judge, line: Row) -> Found:
        module = self.own["simplevqa"]

        def create(messages: Any, **_: Any) -> Any:
            message = types.SimpleNamespace(content=judge.generate(messages[0]["content"]))
            return types.SimpleNamespace(choices=[types.SimpleNamespace(message=message)])

        chat = types.SimpleNamespace(completions=types.SimpleNamespace(create=create))
        module.OpenAI = lambda **_: types.SimpleNamespace(chat=chat)
        module.tqdm = lambda items, **_: items
        module.SimpleVQAEval = self.own["utils.simplevqa"].SimpleVQAEval
        module.file = types.SimpleNamespace(load=lambda _: self.frame([line]))
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = dict(self.instance(module, "SimpleVQA").get_scores(f"{folder}/m.tsv").to_numpy().tolist())
            except KeyError:  # the reply is an empty object, and there is no other row
                return None, None
        names = ("is_correct", "is_incorrect", "is_not_attempted")
        said = next((name for name in names if found[name]), None)
        return said, None if said is None else float(found["is_correct"])

    def world_vqa(self, judge: Judge, line: Row) -> Found:
        label = self.own["worldvqa"].auxeval(judge, dict(line))["extract_answer"]
        return label, None if label.startswith("Failed") else float(label == "Correct")

    def short(self, judge: Judge, line: Row) -> Found:
        module = self.own["image_shortqa"]
        module.eval_vanilla, module.pd = self.choice.eval_vanilla, __import__("pandas")
        module.ShortQA_prompt = self.own["utils.shortqa"].ShortQA_prompt
        found = module.Comprehensive_auxeval(judge, self.frame([line]).iloc[0])
        failed = "Failed to predict" in str(found["log"]) or found["log"] == "Fail to Judge"
        return None, None if failed else float(found["hit"])

    def mm_reason(self, judge: Judge, line: Row) -> Found:
        return self.steps("mmreason", "MMReason", judge, line)

    def olympiad(self, judge: Judge, line: Row) -> Found:
        return self.steps("utils.olympiadbench", "Olympiad", judge, line)

    def aya(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.ayavision"].AyaVision_auxeval(judge, line)
        return None, float(found["hit"]) if found["res"] else None

    def phyx(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        found = self.own["phyx"].PhyX_auxeval(judge, {"index": 0, **line})
        return None, None if found["log"].endswith("failed.\n") else float(found["res"])

    def preference(self, judge: Judge, line: Row) -> Found:
        module = self.own["mmalignbench"]
        module.print = lambda *_: None
        asked = {**line, "A": line["answer"], "B": line["prediction"], "image": ""}
        found = module.MMAlignBench_auxeval(judge, asked)
        return (None, None) if found == "Unknown" else (found[0], (module.MMAlignBench.score_map[found[0]] + 2) / 4)

    def creation(self, judge: Judge, line: Row) -> Found:
        sign = self.own["creation"].extract_subjective(judge.generate("?"), "Creation_MMBench")
        worth = {"A>>B": -2, "A>B": -1, "A=B": 0, "B>A": 1, "B>>A": 2, "B<A": -1, "B<<A": -2, "A<B": 1, "A<<B": 2}
        return sign, None if sign is None else (worth[sign] + 2) / 4

    def safety(self, judge: Judge, line: Row) -> Found:
        label = self.own["mmsafetybench"]._judge_single_prediction(judge, line["prediction"], line["category"])["label"]
        return label, None if label == "unknown" else float(label == "safe")

    def behavior(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        label = self.own["mssbench"]._mss_behavior_judge(judge, line["prediction"])
        return label, float(label == line["answer"]) if label in judge.replies[0].lower() else None

    def compliance(self, judge: Judge, line: Row) -> Found:  # type: ignore[override]
        label, _ = self.own["xstest"]._xstest_judge_llm(judge, line["question"], line["prediction"])
        return label, self.passed(line["answer"], label)[1] if label in judge.replies[0].lower() else None

    def effect(self, judge: Judge, line: Row) -> Found:
        module, asked = self.own["siuo_gen"], [line[name] for name in ("question", "safety_warning", "answer")]
        safe, _ = module._siuo_safe_judge(judge, *asked, line["prediction"])
        effective, _ = module._siuo_eff_judge(judge, line["question"], line["prediction"])
        return f"{safe} {effective}", None if min(safe, effective) < 0 else float(safe * effective)

    def harmless(self, judge: Judge, line: Row) -> Found:
        mark, _ = self.own["flames"]._flames_judge(judge, line["category"], line["question"], line["prediction"])
        return mark, None if mark < 0 else float(mark == 3)

    def mmbench_video(self, judge: Judge, line: Row) -> Found:
        said = judge.generate(self.own["utils.mmbench_video"].build_prompt(line))
        return None, int(said) / 3 if sys.modules["vlmeval.smp"].istype(said, int) else None

    def mlvu_open(self, judge: Judge, line: Row) -> Found:
        module = self.own["utils.mlvu"]
        module.np = __import__("numpy")
        table = module.MLVU_OpenEnded_extract({0: module.MLVU_OpenEnded_generate(judge, line)}, self.frame([line]))
        total = float(table["score"].iloc[0])
        return total, total / 10 if total else None

    def caption(self, judge: Judge, line: Row) -> Found:
        found = self.own["utils.tempcompass"].evaluate_tempcompass_captioning(judge, line)
        return found["chatgpt-answer"], None if found["rating"] < 0 else float(found["rating"])

    def points(self, judge: Judge, line: Row) -> Found:
        made = self.instance(self.own["hipho"], "HiPhODataset")
        marking, most = ([part] for part in ("States F = ma: all points", float(line["points"].strip("[]"))))
        try:
            score, told = made._evaluate_fine_grained(line["prediction"], marking, most, judge, line["question"])
        except TypeError:  # it rounds the mark of a request that failed
            return None, None
        return score, None if told[0]["score"] is None else score / most[0]

    # Reports ------------------------------------------------------------------------------------------------------

    def reported(self, family: str, rows: list[Row]) -> list[list[Any]]:
        """Testbed's metric and slice, and VLMEvalKit's number, of a family's rows that have all been read."""
        self.table = table = self.frame([{"index": place, **each} for place, each in enumerate(rows)])
        for module in self.own.values():
            module.load = lambda _: table.copy()
        if family == "MathVista":
            found = self.own["utils.mathvista"].MathVista_acc("file").to_dict("records")
            tasks = set(table["task"])
            return [
                ["accuracy", _part(each["Task&Skill"], tasks, "task", "skill"), each["acc"] / 100] for each in found
            ]
        if family == "MathVision":
            found = self.own["utils.mathv"].MATH_V_acc("file").to_dict("records")
            return [["accuracy", _part(each["Subject"], None, "subject"), each["acc"] / 100] for each in found]
        if family == "MM-Vet":
            capabilities, combinations = self.own["utils.mmvet"].MMVet_acc("file")
            found = [[each, "capability"] for each in capabilities.to_dict("records")]
            found += [
                [each, "combination"] for each in combinations.to_dict("records") if each["Category"] != "Overall"
            ]
            return [["score", _part(each["Category"], None, what), each["acc"] / 100] for each, what in found]
        if family == "LogicVista":
            found = self.own["utils.logicvista"].evaluate_logicvista("file").to_dict("records")
            return [["accuracy", _part(each["Task&Skill"], None, "skill"), each["acc"] / 100] for each in found]
        if family == "CharXiv":
            module = self.own["charxiv"]
            module.file = types.SimpleNamespace(
                load=lambda _: table.assign(inst_category=table["inst_category"].astype(int))
            )
            made = self.instance(module, "CharXiv")
            made.dataset_name = "CharXiv_reasoning_val"
            return [
                ["accuracy", _part(name, None, "kind"), value]
                for name, value in made.get_scores("file").iloc[0].items()
            ]
        if family in ("multiple choice", "kind Short"):
            found = self.choice.report_acc(table.copy()).iloc[0].to_dict()
            return [
                ["accuracy", _part(name, None, "category"), value] for name, value in found.items() if name != "split"
            ]
        if family == "SimpleVQA":
            said = {
                f"is_{name}": word
                for name, word in zip(("correct", "incorrect", "not_attempted"), ATTEMPTS, strict=True)
            }
            found = self.own["utils.simplevqa"].SimpleVQAEval(
                [{"judge_res": {"model_response": said[each["res"]]}} for each in rows]
            )
            names = {"accuracy": "is_correct", "incorrect": "is_incorrect", "not_attempted": "is_not_attempted"}
            names |= {"f1": "f1", "accuracy_given_attempted": "accuracy_given_attempted"}
            return [[name, "overall", found[theirs]] for name, theirs in names.items()]
        if family == "MMReason":
            found = self.own["mmreason"].MMReason_acc("file").to_dict("records")
            whole, *parts = found  # in percent, and fractions
            shares = [["accuracy", f"discipline/{each['discipline']}", each["accuracy"]] for each in parts]
            return [["accuracy", "overall", whole["accuracy"] / 100], *shares]
        if family == "MathVerse":
            found = self.own["utils.mathverse"].MathVerse_acc("file").to_dict("records")
            return [["accuracy", f"problem_version/{each['split']}", each["Overall"] / 100] for each in found]
        if family == "PhyX":
            found = self.own["phyx"].PhyX_acc("file").iloc[0].to_dict()
            return [
                ["accuracy", _part(name.removesuffix(" Acc"), None, "category"), value] for name, value in found.items()
            ]
        return []


def _part(label: str, first: set[str] | None, what: str, other: str = "") -> str:
    """Testbed's slice of a label."""
    if label == "Overall":
        return "overall"
    return f"{what if first is None or label in first else other}/{label}"


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    published = ByJudges(Path(sys.argv[1]))
    answers, reports = [], {}
    for family, (scoring, make) in FAMILIES.items():
        draw, kept = random.Random(family), []
        ask = getattr(published, make.__name__ if make.__name__ != "make" else scoring)
        for _ in range(NUMBER):
            made = make(draw)
            judge = Judge([said for said, _ in made["replies"]])
            line = {**made["columns"], "prediction": made["text"]}
            read, score = ask(judge, dict(line))
            shown = judge.shows(line)
            replies = [each if each[1] is None else list(each) for each in made["replies"]]
            answers.append(
                [family, made["columns"], made["text"], replies, made["clean"], score, bool(judge.prompts), shown]
            )
            if made["clean"] and score is not None:
                kept.append(
                    {
                        **line,
                        "res": score if read is None else read,
                        "hit": score,
                        "score": score,
                        "log": "",
                        "place": len(answers) - 1,
                    }
                )
        reports[family] = [[each.pop("place") for each in kept], published.reported(family, kept)]
    fields = ["family", "columns", "text", "replies", "clean", "score", "asked", "shown"]
    scorings = {family: scoring for family, (scoring, _) in FAMILIES.items()}
    whole = {"note": " ".join(str(__doc__).split()), "scorings": scorings, "fields": fields}
    whole |= {"answers": answers, "reports": reports}
    PATH.write_bytes(gzip.compress(json.dumps(whole, ensure_ascii=False).encode(), mtime=0))
    print(len(answers), PATH.stat().st_size)


if __name__ == "__main__":
    main()
