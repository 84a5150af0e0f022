"""The benchmarks that need a judge: their questions, what rules make of answers, what judges add, their reports.

Each table has the columns of the published one; every number is worked out by hand.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from reasoning_world import UNREADABLE, World

NAN = float("nan")
ALL = "overall"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_math_vista(world: World, caplog: pytest.LogCaptureFixture) -> None:
    free = {"question_type": "free_form", "task": "figure question answering", "skills": "['arithmetic reasoning']"}
    choice = {"question_type": "multi_choice", "answer_type": "text", "choices": "['3/11', '8/11']", "answer": "8/11"}
    choice |= {"answer_option": "B", "task": "textbook question answering", "skills": "['geometry reasoning', 'logic']"}
    rows = [
        {"question": "Hint: … Question: How many?", "answer": "14", "answer_type": "integer", **free},
        {"question": "How much?", "answer": "0.6", "answer_type": "float", **free},
        {"question": "Which years?", "answer": "[2007, 2008]", "answer_type": "list", **free},
        {"question": "Is it?", "answer": "Yes", "answer_type": "text", **free},
        {"question": "What fraction?", **choice},
        {"question": "What fraction, then?", **choice},
    ]
    said = ["There are 14.", "6 of 10, or 7 of 10", "From 2007 to 2008", "It is indeed so", "(B) 8/11", "who knows"]
    world.table("MathVista_MINI", rows, said)
    judge = world.judge(
        {
            "6 of 10, or 7 of 10": "Extracted: 0.7",
            "From 2007 to 2008": "Extracted: [2007, 2008]",
            "It is indeed so": "Extracted: yes",
            "who knows": UNREADABLE,
        }
    )
    caplog.set_level(logging.WARNING, "testbed")
    found = world.run("MathVista_MINI", "MathVista_MINI@judge")
    alone, judged = found.values()
    assert "MathVista_MINI: 4 of 6 answers are not scored" in caplog.text
    assert "MathVista_MINI@JUDGE has a judge read them" in caplog.text
    assert alone["accuracy", ALL] == 1  # of the two that rules can read
    assert (alone["unread", ALL], alone["unparsed", ALL]) == (pytest.approx(4 / 6), pytest.approx(4 / 6))
    assert (alone["bound_wrong", ALL], alone["bound_right", ALL]) == (pytest.approx(2 / 6), 1)
    assert world.scores("MathVista_MINI") == pytest.approx([1, NAN, NAN, NAN, 1, NAN], nan_ok=True)
    assert world.scores("MathVista_MINI@judge") == pytest.approx([1, 0, 1, 1, 1, NAN], nan_ok=True)
    assert judged["accuracy", ALL] == 0.8
    assert judged["prefetch", ALL] == 0.4  # an answer without a verdict counts in neither
    assert judged["accuracy", "task/figure question answering"] == 0.75
    assert judged["accuracy", "skill/geometry reasoning"] == judged["accuracy", "skill/logic"] == 1
    assert (judged["judged", ALL], judged["unread", ALL]) == (pytest.approx(4 / 6), 0.25)
    assert (judged["rules_alone", ALL], judged["bound_wrong", ALL]) == (1, pytest.approx(4 / 6))
    assert judged["bound_right", ALL] == pytest.approx(5 / 6)
    assert len(judge.seen) == 4
    assert all("14" not in message.parts[0] for message in judge.seen)
    assert not any("8/11\n\nReply" in message.parts[0] for message in judge.seen)  # it is not told the right answer


def test_math_vista_by_published_rules_settles_only_what_is_right_or_an_option(world: World) -> None:
    row = {"question": "?", "answer_type": "integer", "question_type": "free_form", "task": "t", "skills": "s"}
    rows = [{**row, "answer": each} for each in ("3", "3", "0")]
    world.table("MathVista_MINI", rows, ["3", "It is 3", "0"])
    world.judge({"It is 3": "Extracted: 3", "0": "NONE"})
    found = world.run("MathVista_MINI.vlmevalkit", "MathVista_MINI.vlmevalkit@judge")
    assert world.scores("MathVista_MINI.vlmevalkit") == pytest.approx([1, NAN, NAN], nan_ok=True)
    assert found["MathVista_MINI.vlmevalkit@judge"]["accuracy", ALL] == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", ["MathVision", "MathVision_MINI"])
def test_math_vision(world: World, name: str) -> None:
    free = {"choices": "[]", "category": "algebra", "level": "2"}
    rows = [
        {"question": "How long?", "answer": "\\frac{3}{4}", **free},
        {"question": "How wide?", "answer": "12", **free},
        {"question": "Where?", "answer": "(2,3)", **free},
        {"question": "Which?", "answer": "B", "choices": "['A', 'B', 'C']", "category": "topology", "level": "5"},
        {"question": "Which one?", "answer": "B", "choices": "['A', 'B', 'C']", "category": "topology", "level": "5"},
    ]
    world.table(name, rows, ["so \\boxed{0.75}", "It is 13.", "At two, three", "B", "neither"])
    world.judge({"At two, three": "Extracted: (2, 3)", "neither": "Extracted: NONE"})
    alone, judged = world.run(name, f"{name}@judge").values()
    assert (alone["accuracy", ALL], alone["unread", ALL]) == (pytest.approx(2 / 3), 0.4)
    assert world.scores(f"{name}@judge") == [1, 0, 1, 1, 0]
    assert judged["accuracy", ALL] == judged["prefetch", ALL] == 0.6
    assert judged["accuracy", "subject/algebra"] == pytest.approx(2 / 3)
    assert (judged["accuracy", "subject/topology"], judged["accuracy", "level/5"]) == (0.5, 0.5)


def test_math_verse(world: World) -> None:
    plane = "{'split': 'testmini', 'source': 'x', 'subject': 'Plane Geometry', 'subfield': 'Area'}"
    solid = plane.replace("Plane", "Solid").replace("Area", "Volume")
    rows = [
        {"question": "BC? Choices:\nA:2\nB:3", "answer": "B", "question_type": "multi-choice", "metadata": plane},
        {"question": "Area?", "answer": "22.3", "question_type": "free-form", "metadata": plane},
        {"question": "Range?", "answer": "(-2,1]", "question_type": "free-form", "metadata": solid},
        {"question": "Width?", "answer": "50 cm", "question_type": "free-form", "metadata": solid},
        {"question": "Height?", "answer": "h = 2x", "question_type": "free-form", "metadata": solid},
    ]
    versions = ["Text Lite", "Text Lite", "Text Lite", "Vision Only", "Vision Only"]
    rows = [
        {
            **row,
            "problem_version": version,
            "question_for_eval": row["question"],
            "query_cot": f"{row['question']} Think.",
        }
        for row, version in zip(rows, versions, strict=True)
    ]
    said = ["B:3", "about 22.3", "(-2, 1), I think", "0.51 m", "x, twice"]
    judge = world.judge(
        {
            "(-2, 1), I think": "Extracted: (-2, 1)",
            "(-2, 1)": "0",
            "0.51 m": "Extracted: 0.51 meters",
            "0.51 meters": "It agrees: 1",
            "x, twice": "Extracted: 2x",
            "2x": UNREADABLE,
        }
    )
    world.table("MathVerse_MINI", rows, said)
    alone, judged = world.run("MathVerse_MINI", "MathVerse_MINI@judge").values()
    assert (alone["accuracy", ALL], alone["unread", ALL]) == (1, 0.6)
    assert world.scores("MathVerse_MINI@judge") == pytest.approx([1, 1, 0, 1, NAN], nan_ok=True)
    assert judged["accuracy", ALL] == 0.75
    assert judged["accuracy", "problem_version/Text Lite"] == pytest.approx(2 / 3)
    assert judged["accuracy", "problem_version/Vision Only"] == 1
    assert judged["accuracy", "subject/Plane Geometry"] == judged["accuracy", "subfield/Area"] == 1
    assert judged["accuracy", "problem_version/Text Lite/subject/Solid Geometry"] == 0
    asked = [message.parts[0] for message in judge.seen]
    assert ["Reference answer: " in each for each in asked] == [False] * 3 + [True] * 3  # extraction is blind
    world.run("MathVerse_MINI@judge")
    assert len(judge.seen) == 6
    world.model.seen.clear()
    world.table("MathVerse_MINI_Vision_Only", rows[3:], said[3:])
    world.run("MathVerse_MINI_Vision_Only", "MathVerse_MINI_Vision_Only_cot")
    texts = [message.parts[-1] for message in world.model.seen]
    assert texts == ["Width?", "Height?", "Width? Think.", "Height? Think."]


@pytest.mark.parametrize(
    "name",
    [f"MathVerse_MINI_{each}" for each in ("Text_Lite", "Text_Dominant", "Vision_Intensive", "Vision_Dominant")],
)
def test_the_versions_of_math_verse_are_sets(world: World, name: str) -> None:
    world.table(name, [{"question": "Area?", "answer": "4", "question_for_eval": "Area?"}], ["4"])
    assert world.run(name)[name]["accuracy", ALL] == 1


def test_we_math(world: World) -> None:
    keys = [f"2steps_{each}" for each in ("1", "2", "multi")]
    rows = [
        {"question": f"{key} of {problem}?", "A": "1", "B": "2", "answer": "A", "key": key, "ID": problem}
        for problem in ("p", "q", "r")
        for key in keys
    ]
    rows = [{**row, "requirement": "End with Answer: LETTER."} for row in rows]
    #        p: all right          q: steps right, whole wrong   r: a step unread, the whole right
    said = ["A", "A", "Answer: A", "A", "A", "B", "A", "hm", "A"]
    world.table("WeMath", rows, said)
    world.judge({"hm": "B"})
    found = world.run("WeMath", "WeMath@judge", "WeMath_COT")
    for name in ("WeMath", "WeMath@judge"):
        assert found[name]["score_strict", ALL] == pytest.approx((3 - 0.5 - 1) / 3)
        assert found[name]["score_loose", ALL] == pytest.approx((3 - 0.5) / 3)
        assert found[name]["complete_mastery_strict", ALL] == pytest.approx(1 / 3)
        assert found[name]["inadequate_generalization", ALL] == pytest.approx(1 / 3)
        assert found[name]["rote_memorization_strict", ALL] == 0.5
    first, last = world.model.seen[0].parts[-1], world.model.seen[-1].parts[-1]
    assert first == "Question: 2steps_1 of p?\nOptions:\nA. 1\nB. 2\n"
    assert last == "Question: 2steps_multi of r?\nOptions:\nA. 1\nB. 2\n\nEnd with Answer: LETTER."


def test_logic_vista(world: World) -> None:
    rows = [
        {"question": "Next?", "answer": "A", "skill": "inductive", "capability": "['patterns', 'diagram']"},
        {"question": "Which two?", "answer": "A, C", "skill": "inductive", "capability": "['patterns']"},
        {"question": "Which three?", "answer": "A, C", "skill": "spatial"},
        {"question": "Which way?", "answer": "D", "skill": "mechanical"},
        {"question": "Which gear?", "answer": "D", "skill": "mechanical"},
    ]
    world.table("LogicVista", rows, ["The answer is A.", "A and C", "the outer ones", "the last one", "the other one"])
    world.judge({"the outer ones": "CA", "the last one": "Z", "the other one": "Option D, surely"})
    alone, judged = world.run("LogicVista", "LogicVista@judge").values()
    assert (alone["accuracy", ALL], alone["unread", ALL]) == (1, 0.6)
    assert world.scores("LogicVista@judge") == pytest.approx([1, 1, 1, 0, NAN], nan_ok=True)
    assert judged["accuracy", ALL] == 0.75
    assert judged["accuracy", "skill/inductive"] == judged["accuracy", "skill/spatial"] == 1
    assert (judged["accuracy", "skill/mechanical"], judged["accuracy", "capability/diagram"]) == (0, 1)


def test_charxiv(world: World) -> None:
    graded = "Grade by the rubric.\nAnswer: {PREDICTION}\nAs JSON."
    rows = [
        {"question": "What is it?", "answer": "0.5", "inst_category": "1", "grading_query": graded},
        {"question": "How many?", "answer": "7", "inst_category": "3", "grading_query": graded},
        {"question": "How much?", "answer": "8", "inst_category": "3"},
        {"question": "When?", "answer": "9", "inst_category": "3"},
    ]
    world.table("CharXiv_reasoning_val", rows, ["a half", "seven", "nine", "late"])
    judge = world.judge(
        {
            "a half": 'Here:\n```json\n{"extracted_answer": "0.5", "score": 1}\n```',
            "seven": '{"extracted_answer": "seven", "score": 1.0}',
            "nine": '{"extracted_answer": 9, "score": 0}',
            "late": '{"score": 1}',
        }
    )
    alone, judged = world.run("CharXiv_reasoning_val", "CharXiv_reasoning_val@judge").values()
    assert (alone["accuracy", ALL], alone["unread", ALL]) == (None, 1)
    assert (alone["bound_wrong", ALL], alone["bound_right", ALL]) == (0, 1)
    assert world.scores("CharXiv_reasoning_val@judge") == pytest.approx([1, 1, 0, NAN], nan_ok=True)
    assert judged["accuracy", ALL] == pytest.approx(2 / 3)
    assert (judged["accuracy", "kind/Text-in-Chart"], judged["accuracy", "kind/Number-in-Chart"]) == (1, 0.5)
    asked = {message.parts[0] for message in judge.seen}
    assert "Grade by the rubric.\nAnswer: a half\nAs JSON." in asked  # the table's own prompt


def test_the_descriptive_questions_of_charxiv(world: World) -> None:
    rows = [{"question": f"Question {each}?", "answer": "x", "qid": each} for each in ("1", "7", "10", "17")]
    world.table("CharXiv_descriptive_val", rows, ["one", "two", "three", "four"])
    world.judge(
        {
            text: json.dumps({"extracted_answer": text, "score": score})
            for text, score in {"one": 1, "two": 0, "three": 1, "four": 0}.items()
        }
    )
    (found,) = world.run("CharXiv_descriptive_val@judge").values()
    kinds = {part.removeprefix("kind/"): value for (_, part), value in found.items() if part.startswith("kind/")}
    assert kinds == {"Information Extraction": 0.5, "Counting": 1, "Compositionality": 0}
    assert found["accuracy", "qid/7"] == 0


@pytest.mark.parametrize("name", ["MMVet", "MMVet_Hard"])
def test_mm_vet_is_graded_and_a_panel_by_its_mean(world: World, name: str) -> None:
    rows = [
        {"question": "What is x?", "answer": "-1<AND>-5", "category": "ocr,math"},
        {"question": "Why?", "answer": "a joke<OR>irony", "category": "rec,know,gen"},
        {"question": "Where?", "answer": "left", "category": "rec"},
    ]
    world.table(name, rows, ["x = -1", "irony", "right"])
    world.judge({"x = -1": "0.5", "irony": "1.0", "right": "Correctness: 0.0"})
    world.judge({"x = -1": "0.6", "irony": "0.9", "right": UNREADABLE}, "other")
    alone, judged, panel = world.run(name, f"{name}@judge", f"{name}@judge&other").values()
    assert (alone["score", ALL], alone["unread", ALL]) == (None, 1)
    assert judged["score", ALL] == 0.5
    assert (judged["score", "capability/rec"], judged["score", "capability/math"]) == (0.5, 0.5)
    assert judged["score", "capability/gen"] == 1
    assert judged["score", "combination/ocr_math"] == 0.5
    assert world.scores(f"{name}@judge&other") == pytest.approx([0.55, 0.95, NAN], nan_ok=True)
    assert panel["score", ALL] == pytest.approx(0.75)


def test_simple_vqa(world: World) -> None:
    rows = [{"question": f"Who is {each}?", "answer": "Ada", "language": "EN"} for each in range(5)]
    world.table("SimpleVQA", rows, ["Ada L.", "Eve", "I do not know", "Ada, maybe", "?!"])
    replies = {"Ada L.": "CORRECT", "Eve": "INCORRECT", "I do not know": "NOT ATTEMPTED", "Ada, maybe": "Correct."}
    world.judge({**replies, "?!": UNREADABLE})
    alone, judged = world.run("SimpleVQA", "SimpleVQA@judge").values()
    assert (alone["accuracy", ALL], alone["not_attempted", ALL]) == (None, None)
    assert judged["accuracy", ALL] == judged["accuracy", "language/EN"] == 0.5
    assert (judged["incorrect", ALL], judged["not_attempted", ALL]) == (0.25, 0.25)
    assert judged["accuracy_given_attempted", ALL] == pytest.approx(2 / 3)
    assert judged["f1", ALL] == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))
    assert judged["unread", ALL] == 0.2


def test_dyna_math(world: World) -> None:
    float_, letter = {"answer_type": "float"}, {"answer_type": "multiple choice"}
    kinds = {"subject": "algebra", "knowledge_level": "high school"}
    others = {"subject": "geometry", "knowledge_level": "elementary school"}
    rows = [
        {"question": "1?", "answer": "2.718", "qid": "1", "varid": "1", **float_, **kinds},
        {"question": "2?", "answer": "2.718", "qid": "1", "varid": "2", **float_, **kinds},
        {"question": "3?", "answer": "B", "qid": "2", "varid": "1", **letter, **others},
        {"question": "4?", "answer": "B", "qid": "2", "varid": "2", **letter, **others},
        {"question": "5?", "answer": "even", "qid": "3", "varid": "1", "answer_type": "text", **others},
    ]
    said = [
        '{"solution": "1 + 1", "short answer": "2.7185"}',
        "2.72 or so",
        '{"short answer": "B"}',
        "what?",
        "even so",
    ]
    world.table("DynaMath", rows, said)
    world.judge({"what?": "Extracted: B", "even so": "Extracted: Even"})
    alone, judged = world.run("DynaMath", "DynaMath@judge").values()
    assert (alone["accuracy", ALL], alone["unread", ALL]) == (pytest.approx(2 / 3), 0.4)
    assert alone["worst_case", ALL] == 0  # of the one question whose variants are all read
    assert judged["accuracy", ALL] == 0.8
    assert judged["worst_case", ALL] == pytest.approx(2 / 3)
    assert (judged["accuracy", "subject/algebra"], judged["worst_case", "subject/algebra"]) == (0.5, 0)
    assert judged["worst_case", "knowledge_level/elementary school"] == 1
    world.model.seen.clear()
    world.run("DynaMath_noprompt")
    assert world.model.seen[0].parts[-1] == "## Question\n 1?"


def test_visu_logic(world: World) -> None:
    rows = [{"question": "Which?", "answer": "C", "category": each} for each in ("Spatial", "Spatial", "Other")]
    world.table("VisuLogic", rows, ["Answer: \\boxed{C}", "Answer: \\boxed{D}", "the third one"])
    world.judge({"the third one": "C"})
    alone, judged = world.run("VisuLogic", "VisuLogic@judge").values()
    assert (alone["accuracy", ALL], alone["unparsed", ALL]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert alone["accuracy", "category/Spatial"] == 0.5
    assert judged["accuracy", ALL] == pytest.approx(2 / 3)
    assert world.model.seen[0].parts[-1].endswith("Answer: \\boxed{$LETTER}")


def test_erqa(world: World) -> None:
    rows = [
        {"question": "If so <image>, which?", "answer": "B", "question_type": "Pointing"},
        {"question": "Which?", "answer": "B", "question_type": "Other", "visual_indices": "[0]"},
        {"question": "Which one?", "answer": "B", "question_type": "Other", "visual_indices": "[5]"},
    ]
    world.table("ERQA", rows, ["B", "Answer: (B)", "A"])
    alone, published = world.run("ERQA", "ERQA.vlmevalkit").values()
    assert (alone["accuracy", ALL], alone["accuracy", "kind/Other"]) == (pytest.approx(2 / 3), 0.5)
    assert published["accuracy", ALL] == pytest.approx(1 / 3)  # the whole text must be the letter
    texts = [[each if isinstance(each, str) else 0 for each in message.parts] for message in world.model.seen]
    assert texts == [["If so", 0, ", which?"], [0, "Which?"], ["Which", 0, " one?"]]


@pytest.mark.parametrize("name", ["ZEROBench", "ZEROBench_sub"])
def test_zero_bench(world: World, name: str) -> None:
    column = "answers" if name == "ZEROBench" else "answer"
    rows = [{"question": f"What is {each}?", column: each} for each in ("11.90", "Paris", "3", "12")]
    world.table(name, rows, ["so {11.9}", "{Rome}, no, {final answer: paris}", "3", "{112}"])
    world.judge({"{Rome}, no, {final answer: paris}": "CORRECT", "3": "CORRECT", "{112}": "INCORRECT"})
    alone, published, judged = world.run(name, f"{name}.vlmevalkit", f"{name}@judge").values()
    assert world.scores(name) == [1, 1, 0, 0]
    assert world.scores(f"{name}.vlmevalkit") == [0, 1, 0, 1]
    assert (alone["accuracy", ALL], published["accuracy", ALL], judged["accuracy", ALL]) == (0.5, 0.5, 0.75)


def test_a_panel_reads_what_most_of_it_extract(world: World) -> None:
    row = {"question": "How many?", "answer": "5", "answer_type": "integer", "question_type": "free_form"}
    world.table("MathVista_MINI", [row, row], ["a few", "four or five"])
    world.judge({"a few": "Extracted: 5", "four or five": "Extracted: 4"}, "first")
    world.judge({"a few": "Extracted: 5.0", "four or five": "5"}, "second")
    (found,) = world.run("MathVista_MINI@first&second").values()
    assert world.scores("MathVista_MINI@first&second") == pytest.approx([1, NAN], nan_ok=True)
    assert (found["accuracy", ALL], found["unread", ALL]) == (1, 0.5)


def test_two_steps_of_a_panel_are_those_of_each_judge(world: World) -> None:
    """What a judge extracts alone decides what it is asked next; equal texts are not asked about."""
    row = {"question": "h?", "answer": "h = 2x", "question_type": "free-form", "question_for_eval": "h?"}
    world.table("MathVerse_MINI", [row, row], ["x, twice", "nothing"])
    first = world.judge({"x, twice": "Extracted: h=2x", "nothing": "Extracted: NONE"}, "first")
    second = world.judge({"x, twice": "Extracted: 2x", "2x": "1", "nothing": "Extracted: none."}, "second")
    world.run("MathVerse_MINI@first&second")
    assert world.scores("MathVerse_MINI@first&second") == [1, 0]
    assert (len(first.seen), len(second.seen)) == (2, 3)
    world.run("MathVerse_MINI@second")
    assert len(second.seen) == 3


def test_thoughts_are_not_shown_to_the_judge(world: World) -> None:
    row = {"question": "How many?", "answer": "5", "answer_type": "integer", "question_type": "free_form"}
    world.table("MathVista_MINI", [row], ["<think>4? No, 6.</think>As many as fingers"])
    judge = world.judge({"As many as fingers": "<think>That is 5.</think>Extracted: 5"})
    assert world.run("MathVista_MINI@judge")["MathVista_MINI@judge"]["accuracy", ALL] == 1
    assert "4? No" not in judge.seen[0].parts[0]


def test_a_blank_answer_is_wrong_and_needs_no_judge(world: World) -> None:
    world.table("MMVet", [{"question": "Why?", "answer": "so", "category": "rec"}] * 2, [" ", "so"])
    judge = world.judge({"so": "1.0"})
    assert world.run("MMVet@judge")["MMVet@judge"]["score", ALL] == 0.5
    assert len(judge.seen) == 1
    assert np.isnan(world.run("MMVet") and world.scores("MMVet")[1])
