"""Multiple choice: an option is read where the whole phrase that names it says so; lists of options are not answers."""

from __future__ import annotations

import unicodedata
from itertools import permutations

import pytest
from tables import cases

from testbed.answers.scorings import SCORINGS

ANIMALS = ("cat", "dog", "bird", "fish")
FRACTIONS = ("1/2", "1/4", "3/4", "1")
LENGTHS = ("5 cm", "50 cm", "5 m", "0.5 cm")
NUMBERS = ("1", "2", "3", "4")
SHARES = ("14%", "28%", "0.5%", "50%")
BIG = ("3", "3 million", "30 million", "300")
ROOTS = ("\\sqrt{2}", "\\sqrt{3}", "2", "3")
PI = ("\\pi", "2\\pi", "2", "\\pi/2")
FORMULAS = ("x^2", "x^2 + 1", "2x", "x")
NONES = ("None", "Two", "One", "Three")
ABOVE = ("cat", "dog", "bird", "None of the above")
ALL = ("All", "Some", "Both", "Neither")
CITIES = ("Élan", "café", "naïve", "Zürich")
PRICES = ("$5", "$50", "$5,000", "$0.50")
SIGNED = ("5", "-5", "+50", "-50")
WORDS = ("forty", "forty-two", "two", "four")
TIMES = ("10:30", "11:30", "12:30", "1:30")
NO = None

# Options → answers and the letter that they mean; None where rules are not to read any.
CASES: list[tuple[tuple[str, ...], str, list[tuple[str, str | None]]]] = [
    (ANIMALS, "dress", [
        ("B", "B"), ("(B)", "B"), ("[B]", "B"), ("**B**", "B"), ("B.", "B"), ("b)", "B"), ("$\\boxed{B}$", "B"),
        ("\\boxed{\\text{B}}", "B"), ("\\boxed{\\mathrm{B}}", "B"), ("\\boxed{(B)}", "B"), ("\\boxed{B. dog}", "B"),
        ("<answer>(B)</answer>", "B"),
        ('{"answer": "B"}', "B"), ('```json\n{"answer": "B", "reason": "it barks"}\n```', "B"),
        ("Answer: (B) dog", "B"), ("Answer - B", "B"),
        ("#### B", "B"), ("**Final Answer**\n\nB", "B"), ("### Answer\n\n**B. dog**", "B"), ("Option B", "B"),
        ("The answer is option (B).", "B"),
        ("It barks.\n\n#### B", "B"), ("B\n", "B"), ("「B」", "B"), ("Ｂ", "B"), ("B：dog", "B"),
        ("The correct option is B: dog.", "B"),
        ("<final_answer>B</final_answer>", "B"), ("B) dog", "B"), ("B – dog", "B"), ("choice B", "B"),
    ]),
    (ANIMALS, "denials", [
        ("Anything but B", NO), ("Everything but B", NO), ("All but B", NO), ("any option other than B", NO),
        ("anything except B", NO),
        ("Not B", NO), ("It is not B", NO), ("It isn't B.", NO), ("Definitely not (B)", NO), ("It's never B", NO),
        ("far from B", NO),
        ("B is wrong", NO), ("B is not right.", NO), ("B is incorrect", NO), ("I doubt it's B", NO),
        ("It is unlikely to be B", NO),
        ("The answer is anything but B", NO), ("The answer is not B", NO), ("not the dog", NO),
        ("anything but the dog", NO),
        ("everything besides a dog", NO), ("There is no dog", NO), ("without a dog", NO), ("The answer isn't B", NO),
        ("No es B", NO), ("La respuesta no es B", NO), ("Ce n'est pas B", NO), ("Die Antwort ist nicht B", NO),
        ("Не B", NO), ("B ist falsch", NO),
        ("B n'est pas correcte", NO), ("B değil", NO), ("不是B", NO), ("Bではない", NO), ("La risposta non è B", NO),
        ("Het is niet B", NO),
        ("not A but B", "B"), ("It is not a cat but a dog", "B"), ("nothing but B", "B"),
    ]),
    (ANIMALS, "more denials", [
        ("Every option but B", NO), ("All options except (B)", NO), ("B can be ruled out", NO), ("I'd avoid B", NO),
        ("We can exclude B", NO), ("B is the wrong answer", NO), ("The wrong answer is B", NO), ("B? No.", NO),
        ("The incorrect option is B.", NO), ("B - no", NO), ("B (wrong)", NO), ("Least likely: B", NO), ("B: no", NO),
        ("The least likely answer is B", NO), ("Instead of B", NO), ("B looks incorrect", NO), ("B isn't it", NO),
        ("B was my first thought, but it is C", "C"), ("I first thought B. It's C.", NO), ("B, not A", "B"),
        ("It is none other than B", "B"), ("without doubt B", "B"), ("no doubt: B", "B"), ("B, no question", "B"),
        ("B. That is my answer.", "B"), ("This is not easy, but B", "B"), ("There is no cat. B", "B"),
        ("It's B, isn't it?", "B"), ("not sure; B", "B"), ("I don't see a cat, so B", "B"),
    ]),
    (ANIMALS, "denials of a kind", [
        ("I don't think it's B", NO), ("I do not believe that it is B", NO), ("B? I doubt it.", NO),
        ("B is unlikely", NO), ("B seems very unlikely", NO), ("Todas menos B", NO), ("Alle außer B", NO),
        ("Tous sauf B", NO), ("кроме B", NO), ("B ではありません", NO), ("답은 B가 아닙니다", NO), ("B以外", NO),
        ("I don't see a cat so it is B", "B"), ("It is not easy but B", "B"), ("not only B", "B"),
    ]),
    (ANIMALS, "taken back in other words", [
        ("A. Sorry, I meant B.", "B"), ("A\nEdit: B", "B"), ("A. Nein, B", "B"), ("A. Non, B.", "B"),
        ("A。不对，应该是B", "B"), ("A. Нет, B.", "B"),
        # what no rule understands, but which ends with another letter
        ("A. Ups, quería decir B", NO), ("A. Ik bedoel B", NO), ("A\n\nMinua kaduttaa, siis B", NO),
        ("B. A is a cat, and it is not A", "B"), ("B. The others, A and C, do not bark", "B"),
    ]),
    (ANIMALS, "called wrong", [
        ("The answer is B, but that is wrong.", NO), ("The answer is B. No, that's wrong.", NO),
        ("I would say B, but it is not.", NO), ("B, but that isn't right.", NO), ("dog, but I think that is wrong", NO),
        ("The answer is B. Option A says it purrs, but that is wrong.", "B"),
        ("The answer is B. A is tempting, but that is not correct.", "B"),
        ("Many would say A, but that is wrong. The answer is B", "B"), ("A? No, that is wrong. B", "B"),
    ]),
    (ANIMALS, "elements", [
        ("<cot>It may be A.</cot>B", "B"), ("<思考>答案是A</思考>B", NO), ("<notes>So the answer is A.</notes>\nB", NO),
        ("<notes>So the answer is B.</notes>\nB", "B"), ("<choice>B</choice> as it barks", NO),
        ("<notes>A</notes><answer>B</answer>", "B"),
    ]),
    (ANIMALS, "taken back", [
        ("B\n\nWait, that's not right. A", "A"), ("B\n\nActually it is A.", "A"), ("B. Actually, A.", "A"),
        ("B. No, A.", "A"), ("B... wait, no. A", "A"),
        ("The answer is B. Wait, let me reconsider. The answer is A.", "A"), ("B\n\nCorrection: A", "A"),
        ("B\n\nOn second thought, it's C.", "C"),
        ("B\n\nHold on. That is wrong.", NO), ("B\n\nOops, I was wrong.", NO), ("B. Scratch that, it is D", "D"),
        ("(B)\n\nSorry, (A)", "A"),
        ("B\n\nI take that back.", NO), ("B. Hmm, no: A", "A"), ("It's the dog. Actually, it's the cat.", "A"),
        ("B\nI changed my mind: C", "C"),
        ("B. Wait, A or C?", NO), ("\\boxed{B}\n\nWait, that's wrong. \\boxed{A}", "A"),
        ("B. Let me correct that: A", "A"),
        ("B\n\nActually, the picture shows an animal that barks.", "B"), ("No, it is B", "B"), ("Wait, it is B", "B"),
        ("Actually, B.", "B"),
        ("A? No, B.", "B"), ("Is it A? Wait, it barks. So B.", "B"),
        ("B. Wait, let me check. Yes, that is right.", "B"), ("B. There are actually two of them.", "B"),
    ]),
    (ANIMALS, "several", [
        ("The answer is (A) cat and (C) bird.", NO), ("Answer: A. cat or B. dog", NO),
        ("The answer is B. dog and A is wrong", "B"),
        ("A or B", NO), ("A and B", NO), ("A/B", NO), ("Both A and B", NO), ("B, C", NO), ("AB", NO),
        ("either the cat or the dog", NO),
        ("It could be A, B or C", NO), ("B. cat", NO), ("(A) dog", NO),
        ("The answer is B. cat", NO), ("cat, dog", NO), ("The answer is A or B.", NO), ("\\boxed{A, B}", NO),
    ]),
    (ANIMALS, "truncated looks at each option", [
        ("Let me consider the options one by one.\nA. cat: the animal has whiskers", NO),
        ("Let's analyze each option:\n\n**A. cat**\n- It has whiskers.\n- A cat", NO),
        ("To find the answer, evaluate every choice:\n- A) cat – the picture", NO),
        ("We look at all options:\nA. cat: no\nB. dog: it barks\nSo B.", "B"),
        ("Let's analyze the options.\n\n**Answer:**\nB. dog", "B"), ("Best option:\nA. cat", "A"),
        ("I checked each option. A. cat", "A"),
    ]),
    (("Yes", "No", "Unclear", "Both"), "turns", [
        ("Yes... actually no.", "B"), ("Yes. Actually, there are two.", "A"),
    ]),
    (ANIMALS, "other words", [
        ("catalog", NO), ("hotdog", NO), ("A^2 + B^2", NO), ("vitamin B12", NO), ("B = 5", NO), ("Plan B-2", NO),
        ("A*B", NO), ("\\sqrt{B}", NO),
        ("H_B", NO), ("f(B) = 3 and g", NO), ("None of the options", NO), ("None of these", NO),
        ("No option is right", NO), ("I cannot tell", NO),
        ("E", NO), ("The answer is E", NO), ("N/A", NO), ("?", NO), ("", NO),
    ]),
    (ANIMALS, "languages", [
        ("Die Antwort ist B", "B"), ("Die richtige Antwort lautet (B).", "B"), ("La réponse est B", "B"),
        ("Réponse : B", "B"), ("La respuesta correcta es B.", "B"),
        ("A resposta é B", "B"), ("A resposta correta é a B.", "B"), ("La risposta corretta è B", "B"),
        ("Het antwoord is B", "B"), ("Svaret är B", "B"), ("Svaret er B", "B"),
        ("Vastaus on B", "B"), ("Odpowiedź to B", "B"), ("Poprawna odpowiedź: B", "B"), ("Odpověď je B", "B"),
        ("Odpoveď je B", "B"), ("A válasz B", "B"), ("A helyes válasz: B", "B"),
        ("Răspunsul este B", "B"), ("Răspunsul corect este B", "B"), ("Отговорът е B", "B"),
        ("Η απάντηση είναι B", "B"), ("Η σωστή απάντηση είναι η B", "B"), ("Ответ: B", "B"),
        ("Правильный ответ — B", "B"), ("Правильный ответ B", "B"), ("Відповідь: B", "B"), ("Cevap B", "B"),
        ("Doğru cevap B'dir.", "B"), ("Yanıt: B", "B"),
        ("الإجابة هي B", "B"), ("الإجابة الصحيحة هي (B)", "B"), ("الجواب: B", "B"), ("پاسخ B است", "B"),
        ("התשובה היא B", "B"), ("תשובה: B", "B"), ("उत्तर B है", "B"), ("सही उत्तर B है।", "B"),
        ("उत्तर: B", "B"), ("উত্তর: B", "B"), ("সঠিক উত্তর হল B", "B"), ("คำตอบคือ B", "B"),
        ("คำตอบที่ถูกต้องคือ B", "B"), ("Câu trả lời là B", "B"), ("Đáp án đúng là B", "B"), ("Đáp án: B", "B"),
        ("Jawabannya adalah B", "B"), ("Jawaban: B", "B"), ("Jawapannya ialah B", "B"), ("Ang sagot ay B", "B"),
        ("Jibu ni B", "B"), ("答案是B", "B"), ("答案：B", "B"), ("正确答案为B。", "B"),
        ("答えはBです", "B"), ("正解はBです。", "B"), ("回答：B", "B"), ("정답은 B입니다.", "B"), ("답: B", "B"),
        ("Odgovor je B", "B"),
        ("Atsakymas: B", "B"), ("Vastus on B", "B"), ("Atbilde ir B", "B"),
    ]),
    (FRACTIONS, "fractions", [
        ("1/4", "B"), ("$1/4$", "B"), ("\\frac{1}{4}", "B"), ("$\\frac{1}{4}$", "B"), ("\\dfrac{1}{4}", "B"),
        ("\\frac14", "B"), ("\\boxed{\\frac{1}{4}}", "B"), ("0.25", "B"), ("25%", "B"),
        ("The answer is $\\frac{1}{4}$.", "B"), ("a quarter", "B"), ("one quarter", "B"), ("B. \\frac{1}{4}", "B"),
        ("The probability is 1/4.", "B"), ("¼", "B"), (".25", "B"), ("\\(\\frac{1}{4}\\)", "B"),
        ("one", "D"), ("1.0", "D"), ("\\frac{1}{3}", NO), ("1/5", NO), ("\\frac{1}{x}", NO), ("1/4 or 1/2", NO),
        ("1\u20444", "B"),
        ("less than 1", NO), ("not 1/4", NO), ("1 out of 4", NO), ("0.2", NO),
    ]),
    (LENGTHS, "units", [
        ("50 cm", "B"), ("50cm", "B"), ("$50\\,\\text{cm}$", "B"), ("50 \\text{ cm}", "B"),
        ("fifty centimetres", "B"), ("500 mm", "B"), ("half a metre", "B"), ("half a mm", NO),
        ("It is 50 cm long.", "B"), ("50.0 cm", "B"),
        ("about 50 cm", "B"),
        ("\\boxed{50\\text{ cm}}", "B"), ("5 metres", "C"), ("500 cm", "C"), ("5 mm", "D"), ("5 kg", NO),
        ("more than 50 cm", NO), ("50 cm or 5 m", NO), ("5 cm to 50 cm", NO), ("150 cm", NO), ("-50 cm", NO),
    ]),
    (NUMBERS, "numbers", [
        ("2", "B"), ("two", "B"), ("2.0", "B"), ("There are 2.", "B"), ("x = 2", "B"), ("\\boxed{2}", "B"),
        ("$2$", "B"), ("4/2", "B"), ("The answer is two", "B"), ("2 cats", "B"), ("There are two cats", "B"),
        ("\\sqrt{2}", NO), ("$2\\pi$", NO), ("x^2", NO), ("2x", NO), ("22", NO), ("2 million", NO), ("2.5", NO),
        ("-2", NO), ("minus 2", NO), ("less than 2", NO), ("at least 2", NO), ("2 or 3", NO), ("2-3", NO),
        ("1.2", NO), ("twenty-two", NO),
        ("not 2", NO), ("2%", "B"), ("2nd", NO), ("between 2 and 3", NO), ("2 dozen", NO), ("x_2", NO), ("2!", "B"),
        ("2^5", NO), ("\\log 2", NO), ("2:1", NO), ("2/3", NO), ("One of the options", NO),
        ("two of the choices", NO),
    ]),
    (SHARES, "percentages", [
        ("28%", "B"), ("28 %", "B"), ("28\\%", "B"), ("\\boxed{28\\%}", "B"), ("28 percent", "B"),
        ("twenty-eight per cent", "B"), ("28", "B"), ("0.28", "B"), ("The share is 28%.", "B"), ("half", NO),
        ("0.5%", "C"), ("2.8%", NO), ("128%", NO),
    ]),
    (BIG, "factors", [("3 million", "B"), ("3,000,000", "B"), ("three million", "B"), ("3 000 000", "B"), ("3", "A"),
    ("three", "A"), ("3e6", "B"), ("3M", NO), ("3 thousand", NO), ("three hundred", "D"), ("30 million people", "C"),
    ("3 billion", NO)]),
    (ROOTS, "roots", [("\\sqrt{2}", "A"), ("$\\sqrt2$", "A"), ("√2", "A"), ("2", "C"), ("\\sqrt{3}", "B"),
    ("\\boxed{\\sqrt{3}}", "B"), ("2\\sqrt{3}", NO), ("\\sqrt{5}", NO), ("\\sqrt{4}", "C"), ("x = \\sqrt{2}", "A")]),
    (PI, "pi", [("2\\pi", "B"), ("2π", "B"), ("$2 \\pi$", "B"), ("π", "A"), ("\\frac{\\pi}{2}", "D"), ("2", "C"),
    ("3\\pi", NO), ("\\pi^2", NO)]),
    (FORMULAS, "formulas", [("x^2", "A"), ("$x^2$", "A"), ("x^2 + 1", "B"), ("$x^2+1$", "B"), ("x²", "A"), ("2x",
    "C"), ("x^3", NO), ("x^2 - 1", NO), ("2x + 1", NO), ("The answer is x^2", "A")]),
    (NONES, "none", [
        ("None", "A"), ("none", "A"), ("The answer is None.", "A"), ("None of the options is right", NO),
        ("None of these options", NO), ("None of the above is correct", NO), ("None of the above", NO),
        ("none of the given choices", NO),
        ("No option fits", NO), ("None of these.", NO), ("None is correct", NO),
        ("None of them is correct", NO), ("None of them are dogs", "A"), ("Two", "B"), ("2", "B"),
        ("Two of the options", NO), ("One of these answers", NO), ("There are two", "B"),
    ]),
    (("cat", "dog", "bird", "fish"), "called wrong", [(text, NO) for text in (
        "B would be wrong", "B won't be correct", "B fails", "B makes no sense", "B? Nope", "Wrong: B", "Ignore B",
        "The incorrect one is B", "The false statement is B", "Cross out B", "Skip B", "~B", "¬B", "不选B", "不应选B",
    )] + [("选B", "B"), ("应选B", "B"), ("Correct: B", "B"), ("The right one is B", "B"), ("No, wait, B", "B"),
        ("B because it doesn't fly", "B"), ("**B**, since it cannot purr", "B")]),
    (("cat", "dog", "bird", "fish"), "conclusions", [
        ("<reasoning>Is it A?</reasoning>\n<conclusion>B</conclusion>", "B"),
        ("<CAPTION>A cat</CAPTION><REASONING>Is it A?</REASONING><CONCLUSION>B</CONCLUSION>", "B"),
        ("<solution>B</solution>", "B"), ("<final>B</final>", "B"),
    ]),
    (ABOVE, "none of the above",
    [("None of the above", "D"), ("none of the above.", "D"), ("None of the above is correct", "D"),
    ("The answer is none of the above", "D"), ("D", "D"), ("The dog", "B")]),
    (ALL, "quantifiers", [("All", "A"), ("All of the options", NO), ("Both of the answers", NO), ("Some of the above",
    NO), ("Both", "C"), ("neither of these options", NO)]),
    (CITIES, "accents", [
        (unicodedata.normalize("NFD", "Élan"), "A"), (unicodedata.normalize("NFD", "The answer is naïve."), "C"),
        (unicodedata.normalize("NFD", "café"), "B"), ("Zu\u0308rich", "D"), ("\u200bÉlan\ufeff", "A"),
        ("caf\u00ade\u0301", "B"), ("Elan", NO),
    ]),
    (PRICES, "prices", [("$50", "B"), ("50 dollars", "B"), ("$50.00", "B"), ("\\$50", "B"), ("USD 50", "B"),
    ("$5,000", "C"), ("5 thousand dollars", "C"), ("50 cents", "D"), ("It costs $50.", "B"), ("€50", NO),
    ("$500", NO)]),
    (SIGNED, "signs", [("-5", "B"), ("minus 5", "B"), ("negative five", "B"), ("−5", "B"), ("5", "A"), ("+5", "A"),
    ("minus fifty", "D"), ("The value is -5.", "B"), ("x = -5", "B"), ("50", "C"), ("±5", NO)]),
    (WORDS, "number words", [("forty-two", "B"), ("forty two", "B"), ("42", "B"), ("Forty", "A"), ("two", "C"), ("4",
    "D"), ("forty-four", NO), ("twenty-two", NO)]),
    (TIMES, "times", [("10:30", "A"), ("It is 10:30.", "A"), ("The time is 1:30", "D"), ("10:31", NO), ("11:3", NO),
    ("21:30", NO)]),
]  # fmt: skip
ROWS = [(options, kind, text, letter) for options, kind, rows in CASES for text, letter in rows]


@cases(("options", "kind", "text", "letter"), ROWS)
def test_which_option_is_read(options: tuple[str, ...], kind: str, text: str, letter: str | None) -> None:
    columns = {**dict(zip("ABCD", options, strict=True)), "answer": letter or "A", "question": "?"}
    assert SCORINGS["multiple_choice"](columns, text).extracted == letter


FORMS = {
    "lines": ("{}. {}\n", ""),
    "small letters": ("{l}) {}\n", ""),
    "small letters in brackets": ("({l}) {}\n", ""),
    "bullets": ("- **{}**: {}\n", ""),
    "a table": ("| {} | {} |\n", "| Option | Animal |\n|---|---|\n"),
    "a table without a head": ("| {} | {} |\n", ""),
    "a sentence": ("({}) {}, ", ""),
    "quoted": ('{}: "{}"\n', ""),
    "equal signs": ("{} = {}, ", ""),
    "numbers of options": ("Option {}: {}\n", ""),
}
ENDS = {
    "\n\nB": "B",
    "\n\n**B**": "B",
    "\n\nThe answer is B.": "B",
    "\n\ndog": "B",
    "\n\nI cannot tell": None,
    "": None,
    "\n\nA or B": None,
}


@cases("form", FORMS)
@cases("end", ENDS)
def test_a_list_of_the_options_is_no_answer(form: str, end: str) -> None:
    """In whatever dress and order an answer repeats the options, what follows counts."""
    pattern, head = FORMS[form]
    columns = {**dict(zip("ABCD", ANIMALS, strict=True)), "answer": "B", "question": "?"}
    for order in [*permutations("ABCD")][::5]:
        listed = "".join(pattern.format(each, columns[each], l=each.lower()) for each in order)
        if "{l}" in pattern:
            listed = "".join(pattern.replace("{l}", each.lower()).replace("{}", columns[each]) for each in order)
        assert SCORINGS["multiple_choice"](columns, f"{head}{listed}{end}").extracted == ENDS[end]


@pytest.mark.parametrize("end", ENDS)
def test_other_lists(end: str) -> None:
    """A table with the letters in a row, and numbers in place of letters."""
    columns = {**dict(zip("ABCD", ANIMALS, strict=True)), "answer": "B", "question": "?"}
    table = "| A | C | B | D |\n|---|---|---|---|\n| cat | bird | dog | fish |"
    for listed in (table, "1. cat\n2. dog\n3. bird\n4. fish"):
        assert SCORINGS["multiple_choice"](columns, f"{listed}{end}").extracted == ENDS[end]


def test_what_is_nearly_a_list_or_a_formula_is_read_at_once() -> None:
    """A pattern that tried every way to cut these would take years."""
    columns = {letter: f"option text {letter.lower()}x" for letter in "ABCDEFGHIJ"}
    nearly = "".join(f"\n\n    - **{letter}**: {text}" for letter, text in [*columns.items()][:-1])
    texts = [f"{nearly}\n\n    - **J**: another text", "|" + "-" * 60 + " x", "9" + "^9" * 60 + " x", "x" + " - " * 60]
    texts += ["B" + " wait, no," * 60, "answer" + "*" * 200, "one hundred " * 60, "1, " * 200, "$" * 200, "{" * 200]
    for text in texts:
        for name in ("multiple_choice", "number", "math_vision", "exact", "yes_no"):
            assert SCORINGS[name]({**columns, "answer": "B", "question": "?", "choices": "[]"}, text).score != 1
