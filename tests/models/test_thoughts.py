"""What a model says finally: the forms of thoughts, whole and cut off."""

from __future__ import annotations

import time

from answered_world import FORMS
from tables import cases

from testbed.models.base.capability import GenerationConfig
from testbed.models.base.thoughts import decoded, final_part, opens_thoughts

THOUGHTS = "Is it A? It is not C."


@cases("form", FORMS)
def test_thoughts_are_left_out(form: str) -> None:
    whole = FORMS[form]
    assert final_part(whole.format(THOUGHTS, "So B.\n\nIt barks.")) == "So B.\n\nIt barks."
    assert final_part(whole.format(THOUGHTS, "")) is None
    assert final_part(whole.format("", "B")) == "B"
    twice = whole.format(THOUGHTS, "A?") + whole.format(THOUGHTS, "B")
    assert final_part(twice) == "B"


@cases("form", [form for form in FORMS if not FORMS[form].startswith("{")])
def test_thoughts_that_do_not_end_are_no_answer(form: str) -> None:
    beginning = FORMS[form].partition("{}")[0]
    assert final_part(f"{beginning}{THOUGHTS}") is None
    if form != "joined channels":  # without control tokens these begin a text
        assert final_part(FORMS[form].format(THOUGHTS, "A?") + f"{beginning}{THOUGHTS}") is None


@cases(
    ("text", "final"),
    [
        ("B", "B"),
        ("<|im_start|>think\nIs it A?<|im_end|>\n<|im_start|>answer\nB<|im_end|>", "B"),
        ("<|im_start|>think\nIs it A?", None),
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


# A name says that a tag holds thoughts, in whatever form it does.
NAMES = """
    think Thinking THOUGHTS seed:think longcat_think scratchpad antThinking thinking_process analysis reason reasoning
    reflection self-reflection inner.thoughts model_reasoning chain_of_thought internalThoughts deep_think Reflections
    reasoning_steps my-scratchpad scratch_pad scratch-pad image_analysis step1_reasoning inner_monologue cot rationale
    seed:cot_budget_reflect
""".split()


@cases("name", NAMES)
def test_tags_whose_name_says_so_hold_thoughts(name: str) -> None:
    assert final_part(f"<{name}>{THOUGHTS}</{name}>B") == "B"
    assert final_part(f"\n<{name} effort='high'>\n{THOUGHTS}\n</{name}>\n\nB") == "B"
    assert final_part(f"B\n<{name}>{THOUGHTS}</{name}>") == "B"
    assert final_part(f"{THOUGHTS}</{name}>B") == "B"  # the prompt has opened it
    assert final_part(f"<{name}>{THOUGHTS}") is None
    assert final_part(f"The <{name}> tag is not needed. The answer is B.") is not None


@cases(
    ("text", "final"),
    [
        ('<details type="reasoning" done="true"><summary>Thought</summary>Is it A?</details>B', "B"),
        ("<details>\n<summary>Thought for 3 seconds</summary>\nIs it A?</details>B", "B"),
        ("<section class='thoughts'>Is it A?</section>B", "B"),
        ("<details><summary>Note</summary>a</details>B", "<details><summary>Note</summary>a</details>B"),
        ("[REASONING]Is it A?[/REASONING]B", "B"),
        ("[reasoning]Is it A?[/reasoning]B", "B"),
        ("```thinking\nIs it A?\n```\nB", "B"),
        ("~~~ reasoning\nIs it A?\n~~~\n\nB", "B"),
        ("```thinking\nIs it A?", None),
        ("```python\nprint('A')\n```\nB", "```python\nprint('A')\n```\nB"),
        ("&lt;think&gt;Is it A?&lt;/think&gt;B", "B"),
        ("a &lt;b&gt; c", "a &lt;b&gt; c"),
        ("Thinking...\nIs it A?\n...done thinking.\n\nB", "B"),
        ("<think/>B", "B"),
        ("<|thought_start|>A?<|thought_end|>B", "B"),
        ("<|inner_prefix|>A?<|inner_suffix|>B", "B"),
        ("<|START_REASONING|>A?<|END_REASONING|>B", "B"),
        # names that say nothing of thoughts
        ("<answer>B</answer>", "<answer>B</answer>"),
        ("<b>B</b>", "<b>B</b>"),
        ("<winner>B</winner>", "<winner>B</winner>"),
        ("<summary>A</summary>B", "<summary>A</summary>B"),
        # a mere mention, or a heading
        ("I wrote `<think>` and no more. B", "I wrote `<think>` and no more. B"),
        ('The tag "<think>" is missing. B', 'The tag "<think>" is missing. B'),
        ("I do not use <reasoning> or <scratchpad> tags. B", "I do not use <reasoning> or <scratchpad> tags. B"),
        ("The </think> tag closes it. B", "The </think> tag closes it. B"),
        ("Use <think> and </think> tags. B", "Use <think> and </think> tags. B"),
        ("<think>I need the <think> tag and the </think> tag. A</think>B", "B"),
        ("不需要<think>标签。答案是B", "不需要<think>标签。答案是B"),
        ("[ANALYSIS] It barks. [ANSWER] B", "[ANALYSIS] It barks. [ANSWER] B"),
        ("The <think> tag is not needed.\n<think>Is it A?</think>B", "B"),
        # and a use that looks a little like one
        ("It barks, no wait. </think> dog", "dog"),
        ("So A. <think>Is it? No.</think>B", "B"),
        ("I will think. <think>\nIs it A?", None),
    ],
)
def test_tags_are_told_from_mentions(text: str, final: str | None) -> None:
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
        "```think\n" * 20_000,
        "&lt;" * 50_000,
    ):
        final_part(text)
    assert time.process_time() - began < 20  # seconds, where an exponential pattern would take hours
