"""What a model says finally: the forms of thoughts, whole and cut off."""

from __future__ import annotations

import time

import pytest
from answered_world import FORMS

from testbed.models.base.capability import GenerationConfig
from testbed.models.base.thoughts import decoded, final_part, opens_thoughts

THOUGHTS = "Is it A? It is not C."


@pytest.mark.parametrize("form", FORMS)
def test_thoughts_are_left_out(form: str) -> None:
    whole = FORMS[form]
    assert final_part(whole.format(THOUGHTS, "So B.\n\nIt barks.")) == "So B.\n\nIt barks."
    assert final_part(whole.format(THOUGHTS, "")) is None
    assert final_part(whole.format("", "B")) == "B"
    twice = whole.format(THOUGHTS, "A?") + whole.format(THOUGHTS, "B")
    assert final_part(twice) == "B"


@pytest.mark.parametrize("form", [form for form in FORMS if not FORMS[form].startswith("{")])
def test_thoughts_that_do_not_end_are_no_answer(form: str) -> None:
    beginning = FORMS[form].partition("{}")[0]
    assert final_part(f"{beginning}{THOUGHTS}") is None
    if form != "joined channels":  # without control tokens these begin a text
        assert final_part(FORMS[form].format(THOUGHTS, "A?") + f"{beginning}{THOUGHTS}") is None


@pytest.mark.parametrize(
    ("text", "final"),
    [
        ("B", "B"),
        ("  B<|im_end|>\n", "B"),
        ("", ""),
        ("B <think>since it barks</think>", "B"),
        ("<think>a <think> b</think>B", "B"),
        ("analysis of the picture: a dog", "analysis of the picture: a dog"),
        ("I think it is B", "I think it is B"),
        ("[think] B", "[think] B"),
        ("a < b", "a < b"),
        ("<|channel|>final<|message|>B<|return|>", "B"),
        ("<|begin_of_box|>B<|end_of_box|>", "B"),
        ("<|channel|>analysis", None),
    ],
)
def test_other_texts(text: str, final: str | None) -> None:
    assert final_part(text) == final


def test_thoughts_that_the_prompt_has_opened() -> None:
    assert final_part(f"{THOUGHTS}</think>B", begun=True) == "B"
    assert final_part(THOUGHTS, begun=True) is None
    assert opens_thoughts("user: what?\nassistant: <think>\n")
    assert opens_thoughts("<|start|>assistant<|channel|>analysis<|message|>")
    assert not opens_thoughts("assistant: <think>\n\n</think>\n\n")
    assert not opens_thoughts("assistant: <think> I")
    assert not opens_thoughts("assistant:")


class Tokenizer:
    """Tokens are words; some are special."""

    WORDS = ("[THINK]", "[/THINK]", "</s>", "B", "A")

    def __init__(self, special: int) -> None:
        token = type("Token", (str,), {"special": True})
        self.added_tokens_decoder = {place: token(self.WORDS[place]) for place in range(3 - special, 3)}

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        hidden = self.added_tokens_decoder if skip_special_tokens else ()
        return "".join(self.WORDS[each] for each in tokens if each not in hidden)


def test_marks_that_are_special_tokens_are_kept_and_no_others() -> None:
    assert decoded(Tokenizer(3), [0, 4, 1, 3, 2]) == "[THINK]A[/THINK]B"
    assert decoded(Tokenizer(1), [0, 4, 1, 3, 2]) == "[THINK]A[/THINK]B"


def test_a_model_of_transformers_says_whether_its_prompt_opened_the_thoughts() -> None:
    from testbed.models.networks.vlm import Chat

    class Words(Tokenizer):
        WORDS = ("<think>", "</think>", "</s>", "B", "A")

    chat = object.__new__(Chat)
    chat.tokenizer, chat.ends = Words(1), [2]
    begun, plain = (chat._answer([4, 1, 3, 2], prompt, GenerationConfig()) for prompt in ([3, 0], [3, 0, 4, 1]))
    assert (begun.text, begun.finish_reason, begun.extra["thinking_begun"]) == ("A</think>B", "stop", True)
    assert "thinking_begun" not in plain.extra
    assert begun.extra["prompt_tokens"] == 2


def test_odd_texts_take_no_time() -> None:
    began = time.process_time()
    for text in (
        "<think>" * 20_000,
        "analysis" + "a " * 100_000,
        "< " * 50_000,
        "<|channel|>" * 20_000,
        "<think" + " " * 50_000,
    ):
        final_part(text)
    assert time.process_time() - began < 20  # seconds, where an exponential pattern would take hours
