"""Asking of questions: the system prompt, the prompt's form, hints, format of options, the temperature."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from testbed.answers import prompts
from testbed.data.rows import Picture, Row
from testbed.extensions.explain.asking.asked import QuestionProtocol, asked_of
from testbed.extensions.explain.axis import Axis, NotApplicableError, Stage, add_axis
from testbed.extensions.explain.cell import EvaluatedCell
from testbed.graph.message_ops import Prompt, Turn

SYSTEMS = {"none": "", "“You are a helpful assistant.”": "You are a helpful assistant."}
FORMS: dict[str, Prompt] = {
    "hint, question and options, then VLMEvalKit's request for an option": prompts.multiple_choice,
    "hint, question and options alone": prompts.bare_choice,
    "hint, question and options, then “Answer directly with the option letter”": prompts.mmmu_pro,
    "the question alone": prompts.question,
    "the question, then “using a single word or phrase”": prompts.short_answer,
    "the question, then “yes or no”": prompts.yes_or_no,
}
OPTION = re.compile(r"^([A-Z])\. ", re.MULTILINE)
WRITTEN = {
    "letters in brackets, (A)": r"(\1) ",
    "letters before a bracket, A)": r"\1) ",
    "letters before a colon": r"\1: ",
}

Found = Iterator[tuple[str, Callable[[QuestionProtocol], QuestionProtocol]]]


def without_hint(row: Row, prompt: Prompt) -> Sequence[Turn]:
    """The turns for a row without its hint."""
    return prompt(replace(row, columns={name: value for name, value in row.columns.items() if name != "hint"}))


def options_written(row: Row, prompt: Prompt, form: str) -> Sequence[Turn]:
    """The turns for a row, with options in another form than ``A. cat``."""
    return [[OPTION.sub(form, part) if isinstance(part, str) else part for part in turn] for turn in prompt(row)]


def pictures_last(row: Row, prompt: Prompt) -> Sequence[Turn]:
    """The turns for a row, the pictures of each after its texts."""
    return [sorted(turn, key=lambda part: isinstance(part, Picture)) for turn in prompt(row)]


def in_one_message(row: Row, prompt: Prompt) -> Sequence[Turn]:
    """One turn with the texts of all turns, each on its own lines."""
    first, *others = prompt(row)
    return [[*first, *(part for turn in others for part in ("\n", *turn))]]


def last_alone(row: Row, prompt: Prompt) -> Sequence[Turn]:
    """The last turn, without those before."""
    return prompt(row)[-1:]


def in_turns(cell: EvaluatedCell) -> bool:
    """Returns whether the questions of a cell, or of a setting that is not evaluated yet, have several turns."""
    asked = asked_of(cell.setting)
    return asked.prompt is prompts.conversation or max(getattr(cell, "turns", []), default=1) > 1


def _means_nothing(asked: QuestionProtocol) -> QuestionProtocol:
    raise NotApplicableError("the questions have several turns, and this prompt makes a single one")


def _generated(asked: QuestionProtocol, **fields: object) -> QuestionProtocol:
    return replace(asked, generation={**asked.generation, **fields})


def _prompted(change: Callable[..., Sequence[Turn]], asked: QuestionProtocol, **options: str) -> QuestionProtocol:
    return replace(asked, prompt=partial(change, prompt=asked.prompt, **options))


def _system(cell: EvaluatedCell) -> Found:
    asked_of(cell.setting)
    for name, text in SYSTEMS.items():
        yield name, partial(_generated, system=text)


def _temperature(cell: EvaluatedCell) -> Found:
    asked_of(cell.setting)
    yield "0", partial(_generated, temperature=0.0)


def _form(cell: EvaluatedCell) -> Found:
    several = in_turns(cell)
    for name, prompt in FORMS.items():
        yield name, _means_nothing if several else partial(replace, prompt=prompt)
    yield "the data set's in place of the model's own", partial(replace, forced=True)


def _hint(cell: EvaluatedCell) -> Found:
    asked_of(cell.setting)
    yield "left out", partial(_prompted, without_hint)


def _options(cell: EvaluatedCell) -> Found:
    asked_of(cell.setting)
    for name, form in WRITTEN.items():
        yield name, partial(_prompted, options_written, form=form)


def _pictures(cell: EvaluatedCell) -> Found:
    asked_of(cell.setting)
    yield "after the text", partial(_prompted, pictures_last)


def _turns(cell: EvaluatedCell) -> Found:
    if not in_turns(cell):
        raise NotApplicableError("each question is a single turn")
    yield "all in one message", partial(_prompted, in_one_message)
    yield "the last one alone", partial(_prompted, last_alone)


add_axis(Axis("form of the prompt", Stage.ANSWERS, _form))
add_axis(Axis("hint", Stage.ANSWERS, _hint))
add_axis(Axis("form of options", Stage.ANSWERS, _options))
add_axis(Axis("pictures", Stage.ANSWERS, _pictures))
add_axis(Axis("turns", Stage.ANSWERS, _turns))
add_axis(Axis("system prompt", Stage.ANSWERS, _system))
add_axis(Axis("temperature", Stage.ANSWERS, _temperature))
