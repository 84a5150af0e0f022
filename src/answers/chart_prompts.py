"""Prompts of ChartQAPro (arXiv 2504.05506) by the form of the answer and the kind of question."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.answers.columns import as_list
from testbed.answers.prompts import Turn
from testbed.data.rows import Row
from testbed.errors import SampleError

# By whether steps come before the answer and the kind of question: the lines before the question.
_LINES: Mapping[tuple[bool, str], tuple[str, ...]] = {
    (False, "Factoid"): (
        "You are given a factoid question that you need to answer based on the provided image.",
        "Your answer should be a single word, number, or phrase. If the question is unanswerable based on",
        "the information in the provided image, your answer should be unanswerable. Do not generate units.",
        "But if numerical units such as million, m, billion, B, or K are required, use the exact notation",
        "shown in the chart.",
        "If there are multiple answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        "Remember to generate the final answer only without any additional text!",
    ),
    (False, "Multi Choice"): (
        "You are given a question along with different possible answers. You need to select the correct answer",
        "from them based on the provided image.",
        "Your answer should be one of the options letters only: a, b, c or d (just the letter itself without any",
        "additional text). If the question is unanswerable based on the information in the provided image, your",
        "answer should be unanswerable.",
        "If there are multiple answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        "Remember to generate the final answer only without any additional text!",
    ),
    (False, "Conversational"): (
        "You are given a multi-turn conversation, and your job is to answer the final question based on the",
        "conversation history and the information in the provided image.",
        "Your answer should be a single word, number, or phrase. If the question is unanswerable based on",
        "the information in the provided image, your answer should be unanswerable. Do not generate units.",
        "But if numerical units such as million, m, billion, B, or K are required, use the exact notation",
        "shown in the chart.",
        "If there are multiple answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        "Remember to generate the final answer only without any additional text!",
    ),
    (False, "Fact Checking"): (
        "You are given a fact statement that you need to assess based on the provided image.",
        "Your answer should be either true or false (without any additional text). If the question is",
        "unanswerable based on the information in the provided image, your answer should be unanswerable.",
        "If there are multiple answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        "Remember to generate the final answer only without any additional text!",
    ),
    (False, "Hypothetical"): (
        "You are given a hypothetical question that you need to answer based on the provided image.",
        "Your answer should be a single word, number, or phrase. If the question is unanswerable based on",
        "the information in the provided image, your answer should be unanswerable. Do not generate units.",
        "But if numerical units such as million, m, billion, B, or K are required, use the exact notation",
        "shown in the chart.",
        "If there are multiple answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        "Remember to generate the final answer only without any additional text!",
    ),
    (True, "Factoid"): (
        "You are given a factoid question that you need to answer based on the provided image.",
        "You need to think step-by-step, but your final answer should be a single word, number, or phrase. If",
        "the question is unanswerable based on the information in the provided image, your answer should be",
        "unanswerable. Do not generate units. But if numerical units such as million, m, billion, B, or K are",
        "required, use the exact notation shown in the chart.",
        "If there are multiple final answers, put them in brackets using this format [’Answer1’, ’Answer2’]. .",
        'Remember to think step-by-step and format the final answer in a separate sentence like "The answer is',
        'X"',
    ),
    (True, "Multi Choice"): (
        "You are given a question along with different possible answers. You need to select the correct answer",
        "from them based on the provided image.",
        "You need to think step-by-step, but your final answer should be one of the options letters only: a, b, c",
        "or d (just the letter itself without any additional text). If the question is unanswerable based on the",
        "information in the provided image, your answer should be unanswerable.",
        "If there are multiple final answers, put them in brackets using this format [’Answer1’, ’Answer2’]. .",
        'Remember to think step-by-step and format the final answer in a separate sentence like "The answer is',
        'X"',
    ),
    (True, "Conversational"): (
        "You are given a multi-turn conversation, and your job is to answer the final question based on the",
        "conversation history and the information in the provided image.",
        "You need to think step-by-step, but your final answer should be a single word, number, or phrase. If",
        "the question is unanswerable based on the information in the provided image, your answer should be",
        "unanswerable. Do not generate units. But if numerical units such as million, m, billion, B, or K are",
        "required, use the exact notation shown in the chart.",
        "If there are multiple final answers, put them in brackets using this format [’Answer1’, ’Answer2’]. .",
        'Remember to think step-by-step and format the final answer in a separate sentence like "The answer is',
        'X"',
    ),
    (True, "Fact Checking"): (
        "You are given a fact statement that you need to assess based on the information in the provided image.",
        "You need to think step-by-step, but your final answer should be either true or false (without any",
        "additional text). If the question is unanswerable based on the information in the provided image, your",
        "answer should be unanswerable.",
        "If there are multiple final answers, put them in brackets using this format [’Answer1’, ’Answer2’]. .",
        'Remember to think step-by-step and format the final answer in a separate sentence like "The answer is',
        'X"',
    ),
    (True, "Hypothetical"): (
        "You are given a hypothetical question that you need to answer based on the provided image.",
        "You need to think step-by-step, but your final answer should be a single word, number, or phrase. If",
        "the question is unanswerable based on the information in the provided image, your answer should be",
        "unanswerable. Do not generate units. But if numerical units such as million, m, billion, B, or K are",
        "required, use the exact notation shown in the chart.",
        "If there are multiple final answers, put them in brackets using this format [’Answer1’, ’Answer2’].",
        'Remember to think step-by-step and format the final answer in a separate sentence like "The answer is',
        'X"',
    ),
}
_CONVERSATION, _INDENT = "Conversational", " " * 12  # as VLMEvalKit writes it


def chart_qa_pro(row: Row, in_steps: bool = False) -> list[Turn]:
    """The first picture, the column ``paragraph``, and the question with the form of its answer.

    Args:
        row: The row. Its ``question`` and ``answer`` are lists: of a conversation, all questions and answers so far.
        in_steps: True to ask for steps before the answer.

    Raises:
        SampleError: If its ``question_type`` is not known.
    """
    kind = row.columns["question_type"]
    if (in_steps, kind) not in _LINES:
        raise SampleError(f"{row.index}: its question_type is {kind!r}, which ChartQAPro does not have")
    questions, answers = (as_list(row.columns[name]) for name in ("question", "answer"))
    asked = f"Question: {questions[0]}"
    if kind == _CONVERSATION:
        before = [part for pair in zip(questions[:-1], answers[:-1], strict=False) for part in pair]
        asked = f"Conversation: {before} Question: {questions[-1]}"
    text = "\n".join(["", *(f"{_INDENT}{line}" for line in (*_LINES[in_steps, kind], asked)), _INDENT])
    paragraph = row.columns.get("paragraph", "")
    return [[*row.pictures[:1], *([paragraph] if paragraph else []), text]]
