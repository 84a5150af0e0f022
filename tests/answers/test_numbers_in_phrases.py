"""A number is read with all that changes it, or not at all: no part of a phrase counts for the whole."""

from __future__ import annotations

import math
import re

import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS

NO = None
# Kind → what an answer says, and the number that it means; None if it means none, or none that rules can be sure of.
PHRASES: dict[str, list[tuple[str, float | None]]] = {
    "number words": [
        ("forty-two", 42),
        ("Twenty five", 25),
        ("seventeen", 17),
        ("ninety-nine cats", 99),
        ("one hundred and five", 105),
        ("two hundred thirty-one", 231),
        ("twelve hundred", 1200),
        ("three thousand four hundred", 3400),
        ("one million two hundred thousand", 1_200_000),
        ("There are sixty-four squares.", 64),
        ("zero", 0),
        ("a hundred and two", 102),
        ("a thousand", 1000),
        ("two million, three thousand, four hundred and five", 2_003_405),
        ("There are two thousand, one hundred and six of them.", 2106),
        ("five point two", 5.2),
        ("zero point zero five", 0.05),
        ("Eleven people are visible", 11),
        ("one two three", NO),
        ("thirty fifty", NO),
        ("umpteen 5", NO),
    ],
    "factors": [
        ("3 million", 3e6),
        ("2.5 billion people", 2.5e9),
        ("1.2 thousand", 1200),
        ("five hundred thousand", 5e5),
        ("7 dozen eggs", 84),
        ("a dozen", 12),
        ("half a million", 5e5),
        ("$4 million", 4e6),
        ("$2.5M", 2.5e6),
        ("3k", 3000),
        ("12K", 12000),
        ("€3bn", 3e9),
        ("4 hundred", 400),
        ("It sold 3 million copies.", 3e6),
        ("about 2 lakh", 2e5),
        ("5 Millionen", NO),
        ("5 millions d'euros", 5e6),
        ("5 тысяч", NO),
        ("5 mil", NO),
        ("5 milhões", NO),
        ("5 miljoen", NO),
        ("5 bin", NO),
        ("5 लाख", NO),
    ],
    "signs": [
        ("minus 5", -5),
        ("negative five", -5),
        ("-5", -5),
        ("−5", -5),
        ("– 5", NO),
        ("minus forty-two", -42),
        ("The temperature is minus 12 degrees", -12),
        ("It is -3 °C", -3),
        ("+7", 7),
        ("plus 7", 7),
        ("The slope equals negative 2", -2),
        ("-$5", -5),
    ],
    "parts of a whole": [
        ("1/4", 0.25),
        ("a quarter", 0.25),
        ("one half", 0.5),
        ("half", 0.5),
        ("two thirds", 2 / 3),
        ("three-quarters", 0.75),
        ("two and a half", 2.5),
        ("5 and a half", 5.5),
        ("2 1/2", 2.5),
        ("2½", 2.5),
        ("¾", 0.75),
        ("seven tenths", 0.7),
        ("3 out of 4", NO),
        ("2 of 3", NO),
        ("half of 10", NO),
        ("one in 5", NO),
        ("two in three", NO),
    ],
    "percentages": [
        ("28%", 28),
        ("28 %", 28),
        ("28 percent", 28),
        ("28 per cent", 28),
        ("28\\%", 28),
        ("$28\\%$", 28),
        ("twenty-eight percent", 28),
        ("The share is 12.5 % of it", 12.5),
        ("28 Prozent", NO),
        ("28 процентов", NO),
    ],
    "units": [
        ("50 cm", 50),
        ("50cm", 50),
        ("$50\\,\\text{cm}$", 50),
        ("12 sq ft", 12),
        ("60 km/h", 60),
        ("9.8 m/s^2", 9.8),
        ("90°", 90),
        ("$90^\\circ$", 90),
        ("45 degrees", 45),
        ("5 kilometres per hour", 5),
        ("3 minutes", 3),
        ("US$ 20", 20),
        ("20 dollars", 20),
        ("It is 12 cm long.", 12),
        ("10 years old", 10),
        ("5 ft 3 in", NO),
        ("3 minutes 20 seconds", NO),
        ("10:30", NO),
        ("2 pm", NO),
        ("at 5 a.m.", NO),
        ("7 o'clock", NO),
    ],
    "digits": [
        ("1,000", 1000),
        ("1 000 000", 1e6),
        ("1{,}000", 1000),
        ("12,345.67", 12345.67),
        ("007", 7),
        (".5", 0.5),
        ("5.", 5),
        ("1e5", 1e5),
        ("1.2 × 10^5", 120000),
        ("1.2 \\times 10^{5}", 120000),
        ("3 x 10^8", 3e8),
        ("٤٢", 42),
        ("４２", 42),
        ("1,5", NO),
        ("1.2.3", NO),
        ("2020-01-05", NO),
        ("5 100", NO),
        ("3:4", NO),
        ("192.168.0.1", NO),
    ],
    "formulas": [
        ("\\sqrt{2}", math.sqrt(2)),
        ("2\\pi", 2 * math.pi),
        ("$\\frac{3}{4}$", 0.75),
        ("\\frac34", 0.75),
        ("2+2", 4),
        ("2 + 2", 4),
        ("3 × 4", 12),
        ("2^3", 8),
        ("2³", 8),
        ("3!", 6),
        ("5/5", 1),
        ("x^2", NO),
        ("x²", NO),
        ("2x", NO),
        ("2x + 3", NO),
        ("x + 5", NO),
        ("\\frac{x}{2}", NO),
        ("\\sqrt{x}+2", NO),
        ("\\log 2", NO),
        ("log(2)", NO),
        ("sin 30", NO),
        ("f(2)", NO),
        ("9^{9^{9}}", NO),
        ("5 mod 3", NO),
        ("5 squared", NO),
        ("2 to the power of 5", NO),
        ("the square root of 4", NO),
        ("5 plus 3", NO),
        ("5 times 3", NO),
        ("10 divided by 2", NO),
        ("the cube of 3", NO),
        ("twice 5", NO),
        ("double 5", NO),
        ("1/0", NO),
    ],
    "comparisons": [
        ("less than 5", NO),
        ("more than 5 cats", NO),
        ("fewer than five", NO),
        ("greater than 5", NO),
        ("at least 5", NO),
        ("at most five", NO),
        ("no more than 5", NO),
        ("no less than 5", NO),
        ("up to 5", NO),
        ("over 5", NO),
        ("under 5", NO),
        ("above 5", NO),
        ("below five", NO),
        ("5 or more", NO),
        ("5 or fewer cats", NO),
        ("5 and above", NO),
        ("five at most", NO),
        ("> 5", NO),
        ("<5", NO),
        ("≥ 5", NO),
        ("\\geq 5", NO),
        ("\\neq 5", NO),
        ("x > 5", NO),
        ("5+", NO),
        ("almost 5", NO),
        ("nearly 5", NO),
        ("not quite 5", NO),
        ("It exceeds 5", NO),
        ("The number is greater than 5.", NO),
        ("There are more than 5 people", NO),
        ("a minimum of 5", NO),
        ("other than 5", NO),
        ("menos de 5", NO),
        ("moins de 5", NO),
        ("weniger als 5", NO),
        ("mindestens 5", NO),
        ("5 oder mehr", NO),
        ("5 ou plus", NO),
        ("minder dan 5", NO),
        ("меньше 5", NO),
        ("小于5", NO),
        ("5以上", NO),
        ("5より大きい", NO),
    ],
    "ranges and alternatives": [
        ("between 5 and 6", NO),
        ("5-6", NO),
        ("5–6", NO),
        ("5 to 6", NO),
        ("from 5 to 6", NO),
        ("5 or 6", NO),
        ("5, 6 or 7", NO),
        ("5 ± 1", NO),
        ("5 and 6", NO),
        ("5/6/7", NO),
        ("either 5 or six", NO),
        ("5 cats and 6 dogs", NO),
    ],
    "denials": [
        ("not 5", NO),
        ("It is not 5", NO),
        ("There aren't 5 cats", NO),
        ("It can't be 5.", NO),
        ("I doubt it is 5", NO),
        ("never 5", NO),
        ("anything but 5", NO),
        ("without 5", NO),
        ("5 is wrong", NO),
        ("5 is not right", NO),
        ("neither 5 nor six", NO),
        ("I do not think there are 5", NO),
    ],
    "names with digits": [
        ("the 5th one", NO),
        ("3D", NO),
        ("H2O", NO),
        ("mp3", NO),
        ("R2D2", NO),
        ("the red one", NO),
        ("that one", NO),
        ("COVID-19", NO),
        ("A 3D image with 4 cubes", 4),
        ("The one on the left has 5 legs", 5),
    ],
    "sentences": [
        ("There are 10.", 10),
        ("There are 10 of them.", 10),
        ("It is 12", 12),
        ("I count 7 birds in the picture", 7),
        ("I can see exactly 7 birds", 7),
        ("The total is 30.", 30),
        ("x = 42", 42),
        ("x=42", 42),
        ("$x = 42$", 42),
        ("≈ 42", 42),
        ("~42", 42),
        ("about 42", 42),
        ("approximately 42 people", 42),
        ("3 cats + 2 dogs = 5 animals", 5),
        ("10 - 5 = 5", 5),
        ("The numbers add up to 50", 50),
        ("So the answer is 42.", 42),
        ("**42**", 42),
        ("#### 42", 42),
        ("\\boxed{42}", 42),
        ("\\[ 42 \\]", 42),
        ("There are 5!", 5),
        ("12 red balloons", 12),
        ("There is one cat.", 1),
        ("There are 5 cats, so 5", 5),
        ("5 bags, 5 in total", 5),
        ("I see 4, no, 5. The answer is 3.", 3),
        ("3 more cats", 3),
        ("5 times", 5),
        ("Die Antwort ist 42.", 42),
        ("La respuesta es 42", 42),
        ("答案是42", 42),
        ("Ответ: 42", 42),
        ("正解は42", 42),
        ("many", NO),
        ("a third of 3", NO),
        ("10% of 40", NO),
        ("5 isn't right", NO),
        ("5 doesn't fit", NO),
        ("5? No.", NO),
        ("How many? 5", 5),
        ("2 to the 4th", NO),
        ("In 2010 there were 5", NO),
    ],
}
CASES = [(kind, text, value) for kind, rows in PHRASES.items() for text, value in rows]
_SMALL = {"one": 1, "two": 2, "three": 3, "five": 5, "six": 6, "two hundred": 200, "forty": 40, "hundred": 100}
_PART = re.compile(r"\d+(?:\.\d+)?")


def parts_of(text: str) -> set[float]:
    """Numbers that stand in a text, whatever is around them."""
    found = {float(each) for each in _PART.findall(text)}
    return found | {float(value) for word, value in _SMALL.items() if re.search(rf"\b{word}\b", text.lower())}


@cases(("kind", "text", "value"), CASES)
def test_a_phrase_is_read_as_a_whole_or_not_at_all(kind: str, text: str, value: float | None) -> None:
    read = SCORINGS["number"]
    if value is not None:
        assert read({"answer": repr(value)}, text).score == 1
    for part in parts_of(text):
        if value is None or not math.isclose(part, value):
            assert read({"answer": repr(part)}, text).score == 0, part


@pytest.mark.parametrize("name", ["mmmu", "math_vision", "relaxed"])
def test_other_rules_read_the_same_phrases(name: str) -> None:
    wrong = []
    for kind, text, value in CASES:
        for part in parts_of(text) - ({value} if value is not None else set()):
            if value is None or not math.isclose(part, value, rel_tol=0.06):
                verdict = SCORINGS[name]({"answer": f"{part:g}", "question": "?"}, text)
                wrong += [(kind, text, part)] if verdict.score == 1 and f"{part:g}" != text else []
    assert wrong == []


@pytest.mark.parametrize("name", ["mmmu", "math_vision"])
def test_other_rules_read_the_right_number(name: str) -> None:
    """MATH-Vision's compare no percentage with another number."""
    columns = {"question": "?"}
    rows = [each for each in CASES if each[2] is not None and not (name == "math_vision" and each[0] == "percentages")]
    unread = [each for each in rows if SCORINGS[name]({**columns, "answer": repr(each[2])}, each[1]).score != 1]
    assert unread == []


@pytest.mark.parametrize("text", ["三万", "3 Millionen", "5 squared", "XIV", "3M", "四十二"])
def test_an_open_question_about_a_number_leaves_other_phrases_unread(text: str) -> None:
    """They are no wrong answers: they may be the right number."""
    for name in ("mmmu", "number"):
        assert SCORINGS[name]({"answer": "42", "question": "?"}, text).extracted is None
    assert SCORINGS["mmmu"]({"answer": "42", "question": "?"}, "2x").extracted == "2x"


@cases(
    ("right", "text", "contained"),
    [
        ("3", "There are 3 of them", 1),
        ("42", "so \\boxed{42}", 1),
        ("5", "There are 5!", 1),
        ("90", "$90^\\circ$", 1),
        ("3", "3 cats and 2 dogs", 1),
        ("3", "3 million", 0),
        ("5", "less than 5", 0),
        ("5", "not 5", 0),
        ("5", "minus 5", 0),
        ("2", "x^2", 0),
        ("2", "\\sqrt{2}", 0),
        ("2", "2+2", 0),
        ("2", "2\\pi", 0),
        ("5", "5 or more", 0),
    ],
)
def test_a_contained_number_is_not_a_part_of_another(right: str, text: str, contained: int) -> None:
    assert SCORINGS["contains"]({"answer": right}, text).score == contained
    in_picture = {"answer": right, "category": "Regular Text Recognition"}
    assert SCORINGS["ocrbench"](in_picture, text).score == 1  # it stands there
