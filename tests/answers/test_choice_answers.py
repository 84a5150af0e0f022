"""Multiple choice: what both sets of rules read in an answer."""

from __future__ import annotations

import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS, drawn
from testbed.answers.verdict import Verdict
from testbed.errors import DataError, UnknownNameError

ANIMALS = ["cat", "dog", "bird", "fish"]
NUMBERS = ["1", "10", "100"]
YES_NO = ["Yes", "No"]
CITIES = "Paris London Rome Berlin Madrid Vienna Oslo Cairo Lima Tokyo".split()
POINTS = ["Point B", "Point A", "Point D", "Point C"]
COLOURS = ["red", "red and blue", "dark red"]
CHINESE = ["猫", "狗", "鸟", "鱼"]
LETTERS = ["b", "a", "c"]
ARTICLES = ["a dog", "the cat", "an owl"]
NO = None

# options, answer, the letter that `default` reads, the letter that `vlmevalkit` reads
PLAIN = [
    ("B", "B", "B"),
    ("(B)", "B", "B"),
    ("**B**", "B", "B"),
    ("B)", "B", "B"),
    ("B. dog", "B", "B"),
    ("Answer: B", "B", "B"),
    ("Final Answer: B", "B", "B"),
    ("\\boxed{B}", "B", "B"),
    ("$\\boxed{\\text{B}}$", "B", "B"),
    ("\\text{B}", "B", "B"),
    ("B-dog", "B", "B"),
    ("I think it is the dog", "B", "B"),
    ("I would choose option A", "A", "A"),
    ('"B"', "B", NO),
    ("'B'", "B", NO),
    ("`B`", "B", NO),
    ("B?", "B", NO),
    ("B/", "B", NO),
    ("b", "B", NO),
    ("b) dog", "B", "B"),
    ("option b", "B", NO),
    ("<answer>B</answer>", "B", NO),
    ("<answer>\nB. dog\n</answer>", "B", "B"),
    ('{"answer": "B"}', "B", NO),
    ('```json\n{"answer": "B"}\n```', "B", NO),
    ("{'answer': 'dog'}", "B", "B"),
    ('{"reasoning": "A is wrong", "answer": "B"}', "B", NO),
    ("答案：B", "B", NO),
    ("最终答案是Ｂ。", "B", NO),
    ("选项A不正确，选B", "B", NO),
    ("选项A不正确", NO, NO),
    ("（Ｂ）", "B", NO),
    ("【B】", "B", NO),
    ("‘B’", "B", NO),
    ("Ｂ．dog", "B", "B"),
    ("The answer is a dog", "B", "A"),
    ("The answer is about a bird", "C", "A"),
    ("Answer: A dog", "B", "A"),
    ("Answer: A small dog", "B", "A"),
    ("A dog is sitting on a sofa.", "B", "B"),
    ("The image shows A dog", "B", "A"),
    ("A cat", "A", "A"),
    ("a", "A", NO),
    ("Answer: a", "A", NO),
    ("the answer is a.", "A", "A"),
    ("catalog", NO, "A"),
    ("hotdog", NO, "B"),
    ("A or B", NO, NO),
    ("The answer is A or B", NO, "A"),
    ("The answer is B and D", NO, "B"),
    ("Answer: C D", NO, NO),
    ("B, D", NO, NO),
    ("BD", NO, NO),
    ("<answer>A or B</answer>", NO, NO),
    ("It could be A, B, C, or D.", NO, NO),
    ("A: cat\nB: dog\nC: bird\nD: fish", NO, NO),
    ("A: cat\nB: dog\nC: bird\nD: fish\n\nThe answer is C.", "C", "C"),
    ("Option D is correct, since the fish swims quickly", "D", NO),
    ("B is the correct answer, A is not.", "B", NO),
    ("The answer is A. No, the answer is B.", "B", "A"),
    ("Answer: B\nAnswer: C", "C", NO),
    ("The answer is B. Options A, C and D are wrong.", "B", "B"),
    ("The correct option is B because A is wrong", "B", NO),
    ("B\n\nExplanation: A is a cat, but the picture shows a dog.", "B", NO),
    ("A dog.\n\nB", "B", "B"),
    ("The cat.\n\nAnswer: dog", "B", NO),
    ("So the answer is\n\n- **B. dog**", "B", "B"),
    ("The answer to question 3 is (B) dog.", "B", "B"),
    ("B. A is wrong because it is small", "B", NO),
    ("(A) cat is wrong. (B) dog is right.", NO, NO),
    ("The answer is not C.", NO, "C"),
    ("I would not choose A", NO, "A"),
    ("Option A is wrong.", NO, "A"),
    ("The answer is not A but B", "B", NO),
    ("The animal isn't a cat, it's a dog", "B", NO),
    ("The dog, not the cat", "B", NO),
    ("neither the cat nor the dog", NO, NO),
    ("There is a cat next to a dog", NO, NO),
    ("It is C, because of the cat's tail.", NO, NO),
    ("<think>It is not a cat, so A is out.</think>\n\nThe answer is B.", "B", "B"),
    ("<think>Is it A?</think>B", "B", NO),
    ("<think>I think it's B. So the answer is B", NO, "B"),
    ("\\boxed{A}, no: \\boxed{B}", "B", NO),
    ("Answer: $B", "B", NO),
    ("Answer: $LETTER", NO, NO),
    ("E", NO, NO),
    ("The correct answer is E", NO, NO),
    ("U.S.A.", NO, "A"),
    ("D-day", NO, NO),
    ("I am not sure", NO, NO),
    ("", NO, NO),
    ("Z", NO, "Z"),
    ("Sorry, I can't help with images of people yet.", NO, "Z"),
    ("Failed to obtain answer via API.", NO, NO),
    ("Failed to obtain answer via API. dog", NO, NO),
]
CASES = [(ANIMALS, *case) for case in PLAIN] + [
    (NUMBERS, "10", "B", NO),
    (NUMBERS, "There are 10.", "B", NO),
    (NUMBERS, "10.5", NO, NO),
    (NUMBERS, "-1", NO, "A"),
    (NUMBERS, "1,000", NO, "A"),
    (NUMBERS, "1 or 10", NO, NO),
    (NUMBERS, "\\boxed{100}", "C", NO),
    (YES_NO, "No, there is no cat", "B", NO),
    (YES_NO, "Yes, there is no cat", "A", NO),
    (CITIES, "I think it is B", "B", NO),
    (CITIES, "I think so", NO, "I"),
    (CITIES, "I", "I", "I"),
    (CITIES, "The answer is I", "I", "I"),
    (CITIES, "Rome, I think", "C", "I"),
    (CITIES, "H or I", NO, NO),
    (POINTS, "Point A", "B", "A"),
    (POINTS, "Point A is closer.", "B", "A"),
    (POINTS, "A", "A", "A"),
    (COLOURS, "It is red and blue.", "B", NO),
    (COLOURS, "dark red, not red", "C", NO),
    (COLOURS, "the red one", "A", "A"),
    (CHINESE, "图中是狗", "B", "B"),
    (CHINESE, "不是猫，是狗", "B", NO),
    (CHINESE, "一只猫和一只狗", NO, NO),
    (LETTERS, "a", "B", "B"),
    (LETTERS, "A", "A", "A"),
    (ARTICLES, "dog", "A", NO),
    (["dog", "a dog", "cat"], "I see the dog", NO, "A"),
    (["dog", "a dog", "cat"], "the dog", NO, "A"),
    (["dog", "a dog", "cat"], "dog", "A", "A"),
    (ARTICLES, "The answer is the cat.", "B", "B"),
]


def row(options: list[str], answer: str = "B") -> dict[str, str]:
    return {**dict(zip("ABCDEFGHIJ", options, strict=False)), "answer": answer}


@cases(("options", "text", "default", "published"), CASES)
def test_what_is_read(options, text, default, published):
    read = SCORINGS["multiple_choice"]
    assert (read(row(options), text, "default").extracted, read(row(options), text, "vlmevalkit").extracted) == (
        default,
        published,
    )


LISTED = "A. cat\nB. dog\nC. bird\nD. fish"
CITED = "(A) cat (B) dog (C) bird (D) fish."
# What an answer decides; by `default` alone.
DECIDED = [
    (ANIMALS, f"{LISTED}\n\nB", "B"),
    (ANIMALS, f"{LISTED}\n\n**B**", "B"),
    (ANIMALS, f"{LISTED}\n\nSo it is B.", "B"),
    (ANIMALS, f"{LISTED}\nB. dog", "B"),
    (ANIMALS, f"{LISTED}\n\ndog", "B"),
    (ANIMALS, f"Options:\n{LISTED}\n\nI think it is B", "B"),
    (ANIMALS, LISTED.replace("\n", "\n- "), NO),
    (ANIMALS, f"{LISTED}\n\nNone of them", NO),
    (ANIMALS, f"{LISTED}\n\nA or B", NO),
    (ANIMALS, f"{CITED} I would say B.", "B"),
    (ANIMALS, f"{CITED.lower().replace('(a)', '(A)').replace('(b)', '(B)')} B", "B"),
    (ANIMALS, "A. Cat; B. Dog; C. Bird; D. Fish. It must be the dog.", "B"),
    (ANIMALS, "**A.** cat\n**B.** dog\n**C.** bird\n**D.** fish\n\n**B**", "B"),
    (ANIMALS, "N/A", NO),
    (ANIMALS, "N/A.", NO),
    (ANIMALS, "n / a", NO),
    (ANIMALS, "N / A", NO),
    (ANIMALS, "The answer is N/A", NO),
    (ANIMALS, "Answer: N/A", NO),
    (ANIMALS, "B (not N/A)", "B"),
    (["yes", "no", "N/A"], "N/A", "C"),
    (ANIMALS, "either A or B. I would say B", "B"),
    (ANIMALS, "It is either A or B. I'd say B.", "B"),
    (ANIMALS, "Between A and B, I lean towards B.", "B"),
    (ANIMALS, "A or B? B.", "B"),
    (ANIMALS, "either the cat or the dog. I would say the dog", "B"),
    (ANIMALS, "Could be A. But B fits better, so B.", "B"),
    (ANIMALS, "It is hard to say: A or B", NO),
    (ANIMALS, "I would not say B, and not A either", NO),
    (ANIMALS, "It is not A, not C, and not D.", "B"),
    (ANIMALS, "It's neither A nor C nor D", "B"),
    (ANIMALS, "We can rule out A, C, and D.", "B"),
    (ANIMALS, "Options A, C and D are wrong, so B.", "B"),
    (ANIMALS, "A, C and D can be eliminated. B", "B"),
    (ANIMALS, "Eliminating A, C and D leaves B.", "B"),
    (ANIMALS, "A and C are out, D is not visible. That leaves B.", "B"),
    (ANIMALS, "It can't be A, C or D, so it must be B", "B"),
    (ANIMALS, "We can rule out A and C.", NO),
    (ANIMALS, "It is not A, B, C or D.", NO),
    (ANIMALS, "So A dog it is", "B"),
    (NUMBERS, "10.0", "B"),
    (NUMBERS, "10.00", "B"),
    (NUMBERS, "There are 10.0 of them.", "B"),
    (NUMBERS, "ten", "B"),
    (NUMBERS, "10.01", NO),
    (["0.5", "10 cm", "1,000", "2.50"], "0.50", "A"),
    (["0.5", "10 cm", "1,000", "2.50"], "10.0 cm", "B"),
    (["0.5", "10 cm", "1,000", "2.50"], "It is 1000", "C"),
    (["0.5", "10 cm", "1,000", "2.50"], "2.5", "D"),
    (["10", "10.0"], "10.0", "B"),
    (["10", "10.0"], "10.00", NO),
]


@cases(("options", "text", "letter"), DECIDED)
def test_what_an_answer_decides(options, text, letter):
    assert SCORINGS["multiple_choice"](row(options), text, "default").extracted == letter


@pytest.mark.parametrize("rules", ["default", "vlmevalkit"])
def test_the_score_is_whether_the_right_letter_was_read(rules):
    read = SCORINGS["multiple_choice"]
    assert read(row(ANIMALS), "B", rules) == Verdict("B", 1.0, "letter")
    assert read(row(ANIMALS), "C", rules) == Verdict("C", 0.0, "letter")
    assert read(row(ANIMALS), "A horse and a cow", rules).score == 0


def test_why_nothing_was_read():
    read = SCORINGS["multiple_choice"]
    methods = {
        "<think>Is it B": "cut off",
        "Failed to obtain answer via API.": "failure",
        "Cannot determine the answer": "refusal",
        "A or B": "none",
    }
    assert {text: read(row(ANIMALS), text, "default").method for text in methods} == methods


def test_what_a_random_draw_would_score():
    read = SCORINGS["multiple_choice"]
    unread = read(row(ANIMALS), "a horse", "vlmevalkit")
    assert drawn(row(ANIMALS), unread) == pytest.approx(1 / 5)  # four options and none of them
    assert drawn(row(ANIMALS), read(row(ANIMALS), "B", "vlmevalkit")) == 1
    assert drawn(row(ANIMALS), read(row(ANIMALS), "C", "vlmevalkit")) == 0
    assert drawn(row(ANIMALS), read(row(ANIMALS), "Z", "vlmevalkit")) == 0  # a refusal is read, and not drawn for
    assert drawn(row(ANIMALS, "F"), read(row(ANIMALS, "F"), "a horse", "vlmevalkit")) == 0
    assert drawn({"answer": "12"}, Verdict(None, 0.0, "none")) == pytest.approx(1 / 3)  # 12, others, none of them
    assert [name for name, each in SCORINGS.items() if each.draws] == [
        "multiple_choice",
        "mmmu",
        "mmmu_pro",
        "mmmu_pro_cot",
        "lego",
    ]


OPEN = [
    # the right answer, the answer, the score by `default`, the score by `vlmevalkit`
    ("12", "12", 1, 1),
    ("12", "It is 12 cm.", 1, 1),
    ("12", "12.0", 1, 1),
    ("12", "3 × 4 = 12", 1, 1),
    ("12", "3 × 4 = 12, as I have counted them", 1, 0),  # too long for the published rule
    ("12", "112", 0, 1),
    ("12.5", "12.50", 1, 1),
    ("12.50", "12.5", 1, 0),
    ("3.14", "3.14159", 1, 1),
    ("1,200", "1200", 1, 0),
    ("12", "A", 0, 1),  # the name of the option that VLMEvalKit makes of the right answer
    ("dog", "a dog", 1, 1),
    ("dog", "dogma", 0, 1),
    ("dog", "not a dog", 0, 1),
    ("B", "B", 1, 1),
    ("D", "D", 1, 0),  # the published rule takes an answer that is a letter for the name of an option
    ("D", "A", 0, 0),
    ("['24/7', '3.429']", "24/7", 1, 0),
    ("['24/7', '3.429']", "x = 3.429", 1, 0),
    ("12", "The answer is 12. It is 4 more than 8.", 1, 0),
    ("12", "<answer>12</answer>", 1, 1),
    ("12", "<think>12", 0, 1),
]


@cases(("right", "text", "default", "published"), OPEN)
def test_open_questions_of_mmmu(right, text, default, published):
    read = SCORINGS["mmmu"]
    scores = [read({"answer": right}, text, rules).score for rules in ("default", "vlmevalkit")]
    assert scores == [default, published]


def test_questions_of_mmmu_with_options_are_multiple_choice():
    for name in ("mmmu", "mmmu_pro"):
        assert SCORINGS[name](row(ANIMALS), '"B"', "default").extracted == "B"
        assert SCORINGS[name](row(ANIMALS), '"B"', "vlmevalkit").extracted is None


IN_QUESTION = {"question": "What is it?\nA. cat\nB. dog\nC. bird\nD. fish", "answer": "B"}
# the scoring, the answer, the letter that `default` reads, the letter that `vlmevalkit` reads
OF_OTHERS = [
    ("mmmu_pro_cot", "It is small.\nAnswer: B", "B", "B"),
    ("mmmu_pro_cot", "It is A.\n  Answer: (B) ", "B", "B"),
    ("mmmu_pro_cot", "Answer: A\nNo.\nAnswer: B", "B", "B"),
    ("mmmu_pro_cot", "Answer: $B", "B", "B"),
    ("mmmu_pro_cot", "The cat is out.\nAnswer: dog", "B", "B"),
    ("mmmu_pro_cot", "Answer: A or B", NO, NO),
    ("mmmu_pro_cot", "**Answer:** b", "B", NO),
    ("mmmu_pro_cot", "B", "B", "B"),
    ("mme_realworld", "B", "B", "B"),
    ("mme_realworld", "The best answer is: B", "B", "B"),
    ("mme_realworld", "<answer>b</answer>", "B", "B"),
    ("mme_realworld", "Definitely B", "B", "D"),
    ("mme_realworld", "", NO, "A"),
    ("mme_realworld", "b", "B", "B"),
    ("mme_realworld", "the dog", "B", NO),
    ("mme_realworld", "It is none of these, as far as one can see in it", NO, NO),
    ("video_mme", "B", "B", "B"),
    ("video_mme", "Definitely B", "B", "D"),
    ("video_mme", "Because it rains, C", "C", "B"),
    ("video_mme", "Best option: C", "C", "B"),
    ("video_mme", "the dog", "B", "B"),
    ("video_mme", "b", "B", NO),
]


@cases(("name", "text", "default", "published"), OF_OTHERS)
def test_the_rules_of_other_benchmarks(name, text, default, published):
    for columns in [row(ANIMALS), *([IN_QUESTION] if name == "video_mme" else [])]:
        read = [SCORINGS[name](columns, text, rules).extracted for rules in ("default", "vlmevalkit")]
        assert read == [default, published]


def test_options_of_video_mme_in_a_list():
    columns = {"question": "What?", "candidates": "['A. cat.', 'B. dog.', 'C. bird.', 'D. fish.']", "answer": "B"}
    assert SCORINGS["video_mme"](columns, "the dog", "default").extracted == "B"
    assert SCORINGS["video_mme"]({"question": "What?", "answer": "B"}, "(b)", "default").extracted == "B"


@cases("name", SCORINGS)
@cases("rules", ["default", "vlmevalkit"])
def test_a_row_without_an_answer_cannot_be_scored(name, rules):
    with pytest.raises(DataError, match="a row has no answer in its column 'answer'"):
        SCORINGS[name]({"A": "cat", "B": "dog"}, "B", rules)


def test_unknown_rules():
    with pytest.raises(UnknownNameError, match=r"unknown rules 'vlmeval' .* did you mean 'vlmevalkit'"):
        SCORINGS["exact"]({"answer": "a"}, "a", "vlmeval")
