"""Verdicts of judges in the forms in which judges give them; what is no verdict, or one on another scale, is unread."""

from __future__ import annotations

import pytest

from testbed.answers.judges.questions import JUDGINGS

ROW = {"question": "Which?", "answer": "B", "A": "cat", "B": "dog", "C": "bird"}
NO = None

SCORES: list[tuple[str, float | None]] = [
    ("0.7", 0.7),
    ("[[0.7]]", 0.7),
    ("Rating: [[0.7]]", 0.7),
    ("**Rating**: [[0.7]]", 0.7),
    ("The answer names half of it.\n\nRating: [[0.5]]", 0.5),
    ("Score: 0.7/1", 0.7),
    ("The score is 0.8.", 0.8),
    ("The final score is **0.8**", 0.8),
    ("My rating is 0.3", 0.3),
    ("Final grade: 0.3", 0.3),
    ("Correctness: 1.0", 1.0),
    ("$\\boxed{0.4}$", 0.4),
    ("<score>0.4</score>", 0.4),
    ('{"score": 0.5}', 0.5),
    ('{"score": "0.5"}', 0.5),
    ('{"reason": "half", "score": 0.5}', 0.5),
    ('{"score": 0.5, "reason": "it says {half}"}', 0.5),
    ('```json\n{\n"score": 0.5,\n"reason": "half"\n}\n```', 0.5),
    ('Here is my grade:\n{"explanation": "1 of 2 parts", "rating": 0.5}', 0.5),
    ('{"rating": 0.5, "final_score": 0.5}', 0.5),
    ("得分：0.7", 0.7),
    ("分数：0.7", 0.7),
    ("スコア：0.7", 0.7),
    ("점수: 0.7", 0.7),
    ("Bewertung: 0,7", 0.7),
    ("Puntuación: 0.7", 0.7),
    ("Оценка: 0,7", 0.7),
    ("0.7 (out of 1)", 0.7),
    ("0.7 (on a scale of 0 to 1)", 0.7),
    ("0.5 (half of it is there)", 0.5),
    ("Score:\u200b1", 1.0),
    ("<think>0.3? Or 8/10?</think>0.6", 0.6),
    ("1 (out of 5)", NO),
    ("Score: 1 (on a scale of 1 to 10)", NO),
    ("On a scale of 1 to 5:\n1", NO),
    ("0.5 (out of 10)", NO),
    ("1 (lowest)", NO),
    ("1 (very poor)", NO),
    ("0 (perfect)", NO),
    ("1 star", NO),
    ("1/5", NO),
    ("1 out of 10", NO),
    ("1 of 4", NO),
    ("8/10", NO),
    ("Rating: [[7]]", NO),
    ("Rating (1-5): 1", NO),
    ("50%", NO),
    ("1%", NO),
    ("-0.5", NO),
    ("0.5 to 0.7", NO),
    ("about half", NO),
    ('{"score": 7}', NO),
    ('{"score": 0.5, "rating": 0.7}', NO),
    ('{"reason": "0.5"}', NO),
    ('{"score": null}', NO),
    ('{"score": true}', NO),
    ("The score is not 0.8.", NO),
    ("The score is between 0.5 and 0.8", NO),
    ("It has 1 of the points", NO),
    ("Question 1", NO),
]

CORRECT, INCORRECT = 1.0, 0.0
WORDS: list[tuple[str, float | None]] = [
    ("CORRECT", CORRECT),
    ("Verdict: INCORRECT", INCORRECT),
    ("**Verdict**: **INCORRECT**\n\nReason: it says Lyon", INCORRECT),
    ("The answer is INCORRECT.", INCORRECT),
    ("The answer is correct.", CORRECT),
    ("The given answer is **incorrect**.", INCORRECT),
    ("This answer is correct", CORRECT),
    ("The response is incorrect.", INCORRECT),
    ("My verdict is CORRECT.", CORRECT),
    ("Therefore, the answer is incorrect.", INCORRECT),
    ("It is correct.", CORRECT),
    ("It says Lyon, and the reference says Paris.\n\nThe answer is INCORRECT.", INCORRECT),
    ("[[CORRECT]]", CORRECT),
    ("Verdict: [[INCORRECT]]", INCORRECT),
    ("[INCORRECT]", INCORRECT),
    ("(correct)", CORRECT),
    ('{"verdict": "INCORRECT", "reason": "Paris"}', INCORRECT),
    ('{"reason": "the reference says it is CORRECT", "verdict": "INCORRECT"}', INCORRECT),
    ('```json\n{\n"verdict": "INCORRECT",\n"reason": "Paris"\n}\n```', INCORRECT),
    ('```\n{"judgment": "correct"}\n```', CORRECT),
    ('{"correctness": "CORRECT", "confidence": 0.9}', CORRECT),
    ('Some words.\n{"final_verdict": "INCORRECT"}', INCORRECT),
    ('{"is_correct": false, "reason": "it says Lyon"}', INCORRECT),
    ('{"correct": true}', CORRECT),
    ("<verdict>CORRECT</verdict>", CORRECT),
    ("\\boxed{INCORRECT}", INCORRECT),
    ("错误", INCORRECT),
    ("正确", CORRECT),
    ("判断：错误", INCORRECT),
    ("不正确。", INCORRECT),
    ("正解", CORRECT),
    ("오답", INCORRECT),
    ("Richtig", CORRECT),
    ("Falsch.", INCORRECT),
    ("Incorrecto", INCORRECT),
    ("верно", CORRECT),
    ("\u200bCORRECT", CORRECT),
    ("not correct", NO),
    ("The answer is not correct.", NO),
    ("The answer isn't correct", NO),
    ("The answer is not incorrect.", NO),
    ("The answer is partially correct.", NO),
    ("The answer is mostly correct", NO),
    ("The answer is neither correct nor incorrect.", NO),
    ("The answer is correct or incorrect?", NO),
    ("The answer would be correct if it said Lyon.", NO),
    ("INCORRECT. The correct answer is Paris.", NO),
    ('{"verdict": "PARTIALLY CORRECT"}', NO),
    ('{"verdict": "CORRECT", "final_verdict": "INCORRECT"}', NO),
    ('{"reason": "CORRECT"}', NO),
    ("The correct answer is Paris.", NO),
    ("Is it correct?", NO),
    ("", NO),
]

OTHERS: list[tuple[str, str, str | None]] = [
    ("match", "答案：B", "B"),
    ("match", "The answer chooses B.", "B"),
    ("match", "The answer is (B).", "B"),
    ("match", "Option B", "B"),
    ("match", "[[B]]", "B"),
    ("match", '{"option": "B", "reason": "it barks"}', "B"),
    ("match", '```json\n{"answer": "B"}\n```', "B"),
    ("match", "Letter: B", "B"),
    ("match", "\u200bB", "B"),
    ("match", "La respuesta es B", "B"),
    ("match", "The answer does not choose B.", NO),
    ("match", "The answer chooses B or C.", NO),
    ("match", "not B", NO),
    ("yes_no", "The answer says No.", "No"),
    ("yes_no", "The answer is yes.", "Yes"),
    ("yes_no", "It says no", "No"),
    ("yes_no", '{"answer": "Yes", "reason": "it says so"}', "Yes"),
    ("yes_no", "Ja", "Yes"),
    ("yes_no", "いいえ", "No"),
    ("yes_no", "नहीं", "No"),
    ("yes_no", "The answer does not say no.", NO),
    ("yes_no", "It says neither yes nor no.", NO),
    ("pairs", "The better answer is 2", "loss"),
    ("pairs", "Answer 1 is better.", "win"),
    ("pairs", "Better answer: 1", "win"),
    ("pairs", "[[2]]", "loss"),
    ("pairs", "Winner: Answer 1", "win"),
    ("pairs", '{"better": "tie", "reason": "both are right"}', "tie"),
    ("pairs", '{"winner": 2}', "loss"),
    ("pairs", "Verdict: tie", "tie"),
    ("pairs", "The better answer is not 2", NO),
    ("pairs", "Neither is better", NO),
    ("pairs", "Answer 1 is longer", NO),
    ("charxiv", '{"extracted_answer": "\\alpha", "score": 1}', "\\alpha"),
    ("charxiv", '{"extracted_answer": "\\frac{1}{2}", "score": 1}', "\\frac{1}{2}"),
    ("charxiv", '```json\n{"extracted_answer": "7", "score": 0}\n```', "7"),
    ("charxiv", 'The score is 1.\n{"extracted_answer": "7", "score": 1}', "7"),
    ("charxiv", '{"score": 1}', NO),
    ("letters", "Letters: A, B", "AB"),
    ("letters", "The answer chooses A and B.", "AB"),
    ("letters", '{"letters": "AB"}', "AB"),
    ("attempt", "The answer is NOT ATTEMPTED", "not attempted"),
    ("attempt", '{"grade": "NOT_ATTEMPTED", "reason": "no idea"}', "not attempted"),
]


@pytest.mark.parametrize(("reply", "score"), SCORES)
def test_scores(reply: str, score: float | None) -> None:
    verdict = JUDGINGS["grade"].verdict(ROW, reply)
    assert (verdict and verdict.score) == score


@pytest.mark.parametrize(("reply", "score"), WORDS)
@pytest.mark.parametrize("kind", ["correctness", "attempt"])
def test_words(kind: str, reply: str, score: float | None) -> None:
    verdict = JUDGINGS[kind].verdict(ROW, reply)
    assert (verdict and verdict.score) == score


@pytest.mark.parametrize(("kind", "reply", "read"), OTHERS)
def test_other_verdicts(kind: str, reply: str, read: str | None) -> None:
    verdict = JUDGINGS[kind].verdict(ROW, reply)
    assert (verdict and verdict.extracted) == read
