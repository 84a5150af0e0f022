"""Answers as models, servers and tables write them: each is read as a person reads it, or not at all."""

from __future__ import annotations

from tables import cases

from testbed.answers.scorings import SCORINGS

ANIMALS, YES_NO = ("cat", "dog", "bird", "fish"), ("Yes", "No", "Cannot be determined", "Maybe")
NUMBERS, EQUATIONS = ("2", "3", "4", "5"), ("$x=3$", "$x=-3$", "$x=27$", "$x=9$")
PLACES, INTERVALS, CHINESE = (
    ("top left", "top right", "bottom left", "bottom right"),
    ("(0, 2)", "(0, 3)", "[0, 2]", "[0, 3]"),
    ("猫", "狗", "鸟", "鱼"),
)
NO = None

CHOICES: list[tuple[tuple[str, ...], list[tuple[str, str | None]]]] = [
    (ANIMALS, [
        # lists with a verdict on each option
        ("A. cat ❌\nB. dog ✅\nC. bird ❌\nD. fish ❌", "B"), ("A: No\nB: Yes\nC: No\nD: No", "B"),
        ("* **A) cat:** Incorrect. It has no claws.\n* **B) dog:** Correct. It barks.\n* **C) bird:** Incorrect.\n"
         "* **D) fish:** Incorrect.", "B"),
        ("A - no; B - yes; C - no; D - no", "B"), ("A. cat ✅\nB. dog ✅\nC. bird ❌\nD. fish ❌", NO),
        ("A: Yes\nB: No", "A"), ("A: 10%\nB: 80%\nC: 5%\nD: 5%", NO),
        # a token that ends a turn, an element of any name, letters of other styles
        ("B<end_of_turn>", "B"), ("B. dog</s>", "B"), ("<ans>B</ans>", "B"), ("<output>B. dog</output>", "B"),
        ("Ⓑ", "B"), ("𝐁", "B"), ("“B”", "B"), ("dog (B)", "B"), ("dog – option B", "B"),
        # what is struck out, supposed, joined or denied
        ("~~A~~ B", "B"), ("<del>A</del> B", "B"), ("If it meowed, it would be A, but it barks, so B.", "B"),
        ("If it were small, it would be A.", NO), ("B would be correct if it were bigger.", NO),
        ("B > A > C > D", NO), ("A or B is correct", NO), ("I don't think A is right, I think B is.", "B"),
        ("Weder A noch B", NO), ("Ni A ni B", NO), ("A o B es la respuesta", NO), ("A dog is not visible.", NO),
        ("The dog was eliminated.", NO), ("dog ❌", NO), ("At first I thought A, but it's B", "B"),
        # "B is right" in other languages
        ("B ist die richtige Antwort.", "B"), ("B est la bonne réponse.", "B"), ("B es la respuesta correcta", "B"),
        ("B è la risposta corretta.", "B"), ("B ist nicht die richtige Antwort", NO), ("B no es correcta", NO),
        ("B, weil es bellt und nicht miaut", "B"), ("B is not correct.", NO),
        # scripts without blanks
        ("应该是B", "B"), ("答案就是B", "B"),
        ("我认为是B", "B"), ("应选择B。", "B"), ("B项", "B"), ("B正确", "B"), ("A错误，B正确", "B"),
        ("不是B而是A", "A"), ("A、B都可以", NO), ("B是错误的", NO), ("不应该是B", NO), ("図のAの部分が赤い", NO),
        ("Bです。", "B"), ("Bだと思います", "B"), ("Bが正解です。", "B"), ("選択肢B", "B"), ("AではなくBです。", "B"),
        ("AかBです", NO), ("B입니다.", "B"), ("B번입니다", "B"), ("A가 아니라 B입니다.", "B"), ("A 또는 B입니다", NO),
    ]),
    (YES_NO, [("No idea", NO), ("There is no way to determine this.", NO), ("No, it is not.", "B"), ("No dog", "B"),
        ("No. That is not true.", "B"), ("Yes, but that is wrong.", NO)]),
    (NUMBERS, [("In all there are 3.", "B"), ("2 on the left and 1 on the right, so 3 in total.", "B")]),
    (EQUATIONS, [("x = 3 or x = -3", NO), ("x=3", "A"), ("x = 3^3 = 27", "C")]),
    (PLACES, [("Top-left", "A"), ("In the bottom-right corner", "D"), ("top", NO)]),
    (INTERVALS, [("(0,2)", "A"), ("[0,2]", "C"), ("\\boxed{[0,3]}", "D"), ("$(0,3)$", "B"), ("0, 2", NO)]),
    (CHINESE, [("没有狗", NO), ("这是一只狗", "B"), ("图中没有一只狗", NO)]),
]  # fmt: skip


@cases(("options", "text", "letter"), [(options, *row) for options, rows in CHOICES for row in rows])
def test_which_option_is_meant(options: tuple[str, ...], text: str, letter: str | None) -> None:
    columns = {**dict(zip("ABCD", options, strict=True)), "answer": letter or "A", "question": "?"}
    assert SCORINGS["multiple_choice"](columns, text).extracted == letter


YES_OR_NO: list[tuple[str, str | None]] = [
    ("No idea.", NO), ("No comment", NO), ("No image was provided.", NO), ("There's no way to tell.", NO),
    ("I have no information", NO), ("I cannot say yes.", NO), ("Not necessarily yes", NO), ("No doubt, yes.", "Yes"),
    ("There are no dogs.", "No"), ("No dog", "No"), ("Yes... actually, no.", "No"),
    ("Yes. Hmm, on closer look, no.", "No"), ("No, but yes in some sense", NO), ("Yes, and no cats", "Yes"),
    ("No, it's a cat. Yes, really.", NO), ("Yes. No.", NO), ("不是的", "No"), ("<response>No</response>", "No"),
    ("No</s>", "No"), ("~~Yes~~ No", "No"),
]  # fmt: skip


@cases(("text", "said"), YES_OR_NO)
def test_yes_or_no_is_meant(text: str, said: str | None) -> None:
    assert SCORINGS["yes_no"]({"answer": "Yes"}, text).extracted == said


VALUES: list[tuple[str, float | None]] = [
    ("There are 3 men and 4 women, so 7 in total.", 7), ("2 rows of 3, thus 6.", 6),
    ("There are 3 so far and 4 more.", NO),
    ("Not 7, but 8", 8), ("It is 8, not 7", 8), ("x=5, y=6", NO), ("x = 5 or x = 6", NO),
    ("a = 3, b = 4, so c = 5", 5), ("3 + 4 = 7", 7), ("the 2010s", NO), ("30s", 30), ("In 2015", 2015), ("√16", 4),
    ("\\sqrt{16}", 4), ("7\ufe0f\u20e3", 7), ("5个", 5), ("5人です", 5), ("5마리", 5), ("5万", 50000), ("1.5億", 1.5e8),
    ("大约5个", 5), ("至少5个", NO), ("5以上", NO), ("答えは5です。", 5), ("𝟓", 5), ("５", 5),
]  # fmt: skip


@cases(("text", "value"), VALUES)
def test_which_number_is_meant(text: str, value: float | None) -> None:
    said = SCORINGS["number"]({"answer": f"{value:g}" if value is not None else "99", "question": "?"}, text)
    assert said.extracted == (None if value is None else f"{value:.15g}")


SHORT: list[tuple[str, str, str, float]] = [
    ("exact", "Paris", "Response: Paris", 1), ("exact", "Paris", "ASSISTANT: Paris", 1),
    ("exact", "Paris", "# Paris", 1),
    ("exact", "Paris", "The capital in the picture is: Paris", 1), ("exact", "Paris", "Paris</s>", 1),
    ("vqa_accuracy", "Paris", "Final answer: **Paris**", 1), ("exact", "Paris", "«Paris»", 1),
    ("exact", "<div>", "<div>", 1), ("exact", "2.0", "2", 1), ("exact", "2", "2.0", 1), ("exact", "1000", "1,000", 1),
    ("exact", "2.5", "25", 0), ("exact", "5 cm", "5cm", 1), ("exact", "50%", "50 %", 1), ("exact", "5 cm", "5 m", 0),
    ("exact", "東京", "答えは東京です。", 1), ("exact", "서울", "서울입니다", 1), ("exact", "東京です", "東京です", 1),
    ("vqa_accuracy", "-5", "5", 0), ("vqa_accuracy", "5", "-5", 0), ("vqa_accuracy", ">5", "5", 0),
    ("vqa_accuracy", "t-shirt", "t shirt", 1), ("vqa_accuracy", "5", "five", 1),
]  # fmt: skip


@cases(("name", "right", "text", "score"), SHORT)
def test_short_answers_are_compared_by_what_they_say(name: str, right: str, text: str, score: float) -> None:
    assert SCORINGS[name]({"answer": right, "question": "?"}, text).score == score


WRITTEN = (
    "O’Brien",
    "−5 °C",
    "「北京」",
    "图中有“红色”的车，和３辆‘蓝色’的车：共５辆（约）。",
    "it’s “fine”",
    "L’élève « sage »",
)
READERS = ("exact", "anls", "relaxed", "vqa_accuracy", "contains", "ocrbench", "mmmu", "open", "page_text", "page_task")


@cases("text", WRITTEN)
def test_an_answer_that_is_the_right_one_is_right_in_any_characters(text: str) -> None:
    """Typographic quotes, full-width marks and the minus sign are the same on both sides."""
    scores = {name: SCORINGS[name]({"answer": text, "question": "?", "type": "x"}, text).score for name in READERS}
    assert scores == dict.fromkeys(READERS, 1)
    plain = text.replace("’", "'").replace("‘", "'").replace("−", "-")
    assert SCORINGS["exact"]({"answer": text, "question": "?"}, plain).score == 1
    assert SCORINGS["exact"]({"answer": str([text]), "question": "?"}, text).score == 1


def test_quotes_within_json_stay_what_they_are() -> None:
    fields = '{"名称": "“红”色，（大）", "n": "３"}'
    verdict = SCORINGS["key_information"]({"answer": fields, "question": "?"}, fields)
    assert verdict.score == 1
