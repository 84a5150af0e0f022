"""Rows of families that a judge reads, with answers and prepared replies, for `published_by_judges`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

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
Reply = tuple[str, str | None]  # what VLMEvalKit's judge says, and testbed's, where that is not the same
Row = dict[str, Any]


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
