"""An answer in another Unicode form, in its usual dress, or in another language is the same answer."""

from __future__ import annotations

import unicodedata

import pytest
from tables import cases

from testbed.answers.judges.questions import JUDGINGS
from testbed.answers.languages import NO, YES
from testbed.answers.scorings import SCORINGS
from testbed.metrics.captions.overlap import caption_overlap

TEXTS = ("exact", "anls", "relaxed", "contains", "vqa_accuracy", "ocrbench", "mmmu", "caption", "exact_mean")
WORDS = ("café", "naïve résumé", "Łódź", "Đà Nẵng", "Ångström", "한국어", "ガラス", "हिन्दी", "ñandú", "Übergröße")
UNSEEN = "\u200b\u200c\u200d\ufeff\u200e\u200f\u2060\u00ad\u202a\u202c\u2066\u2069\ufe0f\u034f\u061c"


def score(name: str, right: str, text: str, **columns: str) -> float:
    return SCORINGS[name]({"question": "?", "answer": right, **columns}, text).score


@pytest.mark.parametrize("name", TEXTS)
def test_unicode_forms_are_one(name: str) -> None:
    for word in WORDS:
        forms = [unicodedata.normalize(form, word) for form in ("NFC", "NFD")]
        assert [score(name, one, other) for one in forms for other in forms] == [pytest.approx(1)] * 4, word
        assert score(name, word, "".join(f"{each}\u200b" for each in word)) == pytest.approx(1), word
        assert score(name, unicodedata.normalize("NFD", word), f"\ufeff{word}\u200e") == pytest.approx(1), word
    assert score(name, "café", "cafe") < 1  # another word
    assert score(name, "resume", "résumé") < 1


@cases("mark", UNSEEN)
def test_marks_that_nobody_sees_change_nothing(mark: str) -> None:
    choices = {"A": "cat", "B": "dog"}
    for text in (f"{mark}B", f"B{mark}", f"{mark}(B){mark} dog", f"d{mark}og", f"The answer is{mark} B"):
        assert score("multiple_choice", "B", text, **choices) == 1, text
    assert score("multiple_choice", "B", "dog", A="cat", B=f"do{mark}g") == 1
    for text in (f"{mark}Yes", f"Ye{mark}s", f"Yes{mark}."):
        assert score("yes_no", "Yes", text) == 1
    for name in ("exact", "relaxed", "number", "anls", "vqa_accuracy"):
        assert score(name, "42", f"4{mark}2") == score(name, "42", f"42{mark}") == score(name, f"{mark}42", "42") == 1
    for kind, reply, right in (
        ("grade", f"Score:{mark}1", "x"),
        ("correctness", f"COR{mark}RECT", "x"),
        ("match", f"{mark}B", "B"),
    ):
        verdict = JUDGINGS[kind].verdict({"question": "?", "answer": right, **choices}, reply)
        assert verdict is not None
        assert verdict.score == 1


def test_captions_are_compared_likewise() -> None:
    found = caption_overlap([unicodedata.normalize("NFD", "un café"), "a \u200bdog"], [["un café"], ["a dog"]])
    assert found.scores["ROUGE_L"].tolist() == pytest.approx([1, 1])


def test_published_rules_compare_characters_as_they_are() -> None:
    for name in ("exact", "anls", "relaxed", "contains"):
        columns = {"question": "?", "answer": "café"}
        assert SCORINGS[name](columns, unicodedata.normalize("NFD", "café"), "vlmevalkit").score < 1
        assert SCORINGS[name]({**columns, "answer": "dog"}, "d\u200bog", "vlmevalkit").score < 1


# The right answer, and dresses of it
DRESSES: list[tuple[str, tuple[str, ...]]] = [
    ("42", (
        "42", "42.", "**42**", "`42`", '"42"', "(42)", "$42$", "\\(42\\)", "\\[ 42 \\]", "\\boxed{42}",
        "$\\boxed{42}$", "\\boxed{\\text{42}}", "#### 42", "x = 42", "$x = 42$", "n=42",
        "≈ 42", "\\approx 42", "~42", "= 42", "→ 42", "• 42", "A: 42", "Answer: 42", "**Answer:** 42", "Answer - 42",
        "The answer is 42.", "The final answer is $\\boxed{42}$.", "Result: 42", "The result is 42",
        "<answer>42</answer>", '{"answer": 42}', '{"answer": "42"}', "```\n42\n```", "```text\n42\n```",
        "### Answer\n42", "**Final Answer**\n\n42", "It is 6 times 7.\n\n#### 42", "<final_answer>42</final_answer>",
        "Die Antwort ist 42.", "La réponse est 42.", "答案：42", "答えは42", "Ответ: 42", "The answer is:\n\n42",
        "<|begin_of_box|>42<|end_of_box|>",
    )),
    ("28%", ("28%", "28\\%", "\\boxed{28\\%}", "$28\\%$", "The answer is 28%.", "**28%**", "≈ 28%", "x = 28\\%")),
    ("red car", ("red car", "Red car.", "the red car", '"red car"', "**Red car**", "Answer: red car",
    "The answer is a red car.", "\\boxed{\\text{red car}}", "<answer>red car</answer>", "• red car",
    "- red car", "* red car", "It is a red car.", "It's a red car.", "This is a red car!", "That's the red car.",
    "### Answer\n\nRed car", "(red car)")),
    ("it is red", ("It is red.", "it is red")),
    ("Stop!", ("Stop!", "STOP")),
    ("$5", ("$5", "\\$5", "**$5**", "Answer: $5", "\\boxed{\\$5}")),
    ("x = 42", ("x = 42", "$x = 42$", "Answer: x = 42", "\\boxed{x = 42}")),
    ("\\frac{1}{\\sqrt{2}}", ("\\boxed{\\frac{1}{\\sqrt{2}}}", "$\\frac{1}{\\sqrt{2}}$",
    "The answer is $\\frac{1}{\\sqrt{2}}$.")),
]  # fmt: skip
OTHER_ANSWERS: list[tuple[str, tuple[str, ...]]] = [
    ("42", ("43", "x = 43", "#### 43", "≈ 43", "\\boxed{421}", "4 2", "> 42", "< 42", "42 or 43", "not 42", "-42",
    "#### Step 42\nNo", "x = 42y", "42 million", "y > 42", "f(42)", "x_42")),
    ("28%", ("2.8%", "28 cm", "28", "\\boxed{27\\%}")),
    ("red car", ("red", "car", "not a red car", "red cars", "a red car and a bus", "x = red", "It is not a red car.")),
    ("3", ("It is 4.", "There are 4!")),
    ("x = 42", ("y = 42 + 1", "x = 43", "x ≠ 42")),
]  # fmt: skip


@pytest.mark.parametrize("name", ["exact", "anls", "relaxed", "vqa_accuracy"])
def test_an_answer_in_its_usual_dress_is_right(name: str) -> None:
    unread = [(right, text) for right, texts in DRESSES for text in texts if score(name, right, text) != 1]
    if name == "anls":  # articles are a part of its distance
        unread = [each for each in unread if " car" not in each[1]]
    assert unread == []


@pytest.mark.parametrize("right", ["42", "28%", "red"])
def test_a_contained_answer_may_be_marked(right: str) -> None:
    written = right.replace("%", "\\%")
    tags = f"<answer>{right}</answer>"
    for text in (f"**{right}**", f"It is `{right}`.", tags, f"\\boxed{{{written}}}", f"*{right}*"):
        assert score("contains", right, text) == 1, text
    assert score("contains", "3", "2**3**2") == 0


def test_another_answer_is_not() -> None:
    assert [(right, text) for right, texts in OTHER_ANSWERS for text in texts if score("exact", right, text)] == []


# Language: yes, no, and a sentence that says either
SENTENCES = {
    "en": ("Yes", "No", "The answer is {}."), "de": ("Ja", "Nein", "Die Antwort ist {}."),
    "fr": ("Oui", "Non", "La réponse est {}."),
    "es": ("Sí", "No", "La respuesta es {}."), "pt": ("Sim", "Não", "A resposta é {}."),
    "it": ("Sì", "No", "La risposta è {}."), "nl": ("Ja", "Nee", "Het antwoord is {}."),
    "sv": ("Ja", "Nej", "Svaret är {}."), "da": ("Ja", "Nej", "Svaret er {}."), "no": ("Ja", "Nei", "Svaret er {}."),
    "fi": ("Kyllä", "Ei", "Vastaus on {}."), "pl": ("Tak", "Nie", "Odpowiedź to {}."),
    "cs": ("Ano", "Ne", "Odpověď je {}."), "sk": ("Áno", "Nie", "Odpoveď je {}."),
    "hu": ("Igen", "Nem", "A válasz: {}."), "ro": ("Da", "Nu", "Răspunsul este {}."),
    "bg": ("Да", "Не", "Отговорът е {}."),
    "hr": ("Da", "Ne", "Odgovor je {}."), "el": ("Ναι", "Όχι", "Η απάντηση είναι {}."),
    "ru": ("Да", "Нет", "Ответ: {}."), "uk": ("Так", "Ні", "Відповідь: {}."), "tr": ("Evet", "Hayır", "Cevap: {}."),
    "ar": ("نعم", "لا", "الإجابة هي {}."), "fa": ("بله", "خیر", "پاسخ: {}."), "he": ("כן", "לא", "התשובה היא {}."),
    "hi": ("हाँ", "नहीं", "उत्तर है: {}।"), "bn": ("হ্যাঁ", "না", "উত্তর: {}।"),
    "th": ("ใช่", "ไม่ใช่", "คำตอบคือ {}"), "vi": ("Có", "Không", "Câu trả lời là {}."),
    "id": ("Ya", "Tidak", "Jawabannya adalah {}."), "fil": ("Oo", "Hindi", "Ang sagot ay {}."),
    "sw": ("Ndiyo", "Hapana", "Jibu ni {}."),
    "ja": ("はい", "いいえ", "答えは{}です。"), "ko": ("네", "아니요", "정답은 {}입니다."),
    "zh": ("是", "否", "答案是{}。"),
    "lt": ("Taip", "Ne", "Atsakymas: {}."), "et": ("Jah", "Ei", "Vastus on {}."),
    "lv": ("Jā", "Nē", "Atbilde ir {}."),
}  # fmt: skip


@cases("language", SENTENCES)
def test_yes_and_no_in_many_languages(language: str) -> None:
    read = SCORINGS["yes_no"]
    *words, sentence = SENTENCES[language]
    for word, meant in zip(words, ("Yes", "No"), strict=True):
        forms = [word, word.lower(), word.upper(), f"{word}.", f"**{word}**", f"{word}, x", f"\\boxed{{{word}}}"]
        forms += [unicodedata.normalize("NFD", word), f'{{"answer": "{word}"}}', f"x y z.\n\n{word}"]
        forms += [sentence.format(each) for each in (word, word.lower(), f"**{word}**", f'"{word}"')]
        assert {form: read({"answer": "Yes"}, form).extracted for form in forms} == dict.fromkeys(forms, meant)
    both = f"{words[0]} / {words[1]}"
    assert read({"answer": "Yes"}, both).extracted is None


def test_no_word_means_yes_and_no() -> None:
    assert not YES & NO
    assert all(unicodedata.is_normalized("NFC", word) and word == word.lower() for word in YES | NO)
