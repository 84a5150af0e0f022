"""Prompts: the user's turns for a row of a table. The texts are VLMEvalKit's, since published numbers depend on them.

A prompt takes a `Row` and gives the turns of the user: lists of texts and pictures, in order. A row without pictures
gives texts alone, so that a text-only model can also be asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from testbed.answers.columns import OPTIONS, as_list, list_options, listed, options, quoted_options
from testbed.data.rows import Picture, Row
from testbed.errors import SampleError

Turn = list[str | Picture]

SINGLE_WORD = "\nAnswer the question using a single word or phrase."
_SELECT = "Please select the correct answer from the options above. \n"
_DESCRIBE = (
    "Please describe this image in general. Directly provide the description, do not include prefix like"
    ' "This image depicts". '
)
_DIRECTLY = "Answer directly with the option letter from the given choices. "
_LAST_LINE = (
    "The last line of your response should be of the following format: 'Answer: $LETTER' (without quotes) where LETTER"
    " is one of the options. Think step by step before answering. "
)
_IN_THE_IMAGE = "Answer the following multiple-choice question in the image. "
_REAL_WORLD = (
    "Select the best answer to the above multiple-choice question based on the image. Respond with only the letter"
    " (A, B, C, D, or E) of the correct option. \nThe best answer is:"
)
_BEST_LETTER = (
    "Select the best answer to the above multiple-choice question based on the image. Respond with only the letter of"
    " the correct option (A, B, C, or D).\nThe best answer is: "
)
_STEP_BY_STEP = (
    "\nSolve the multiple-choice question and then answer with the option letter from the given choices. The last line"
    " of your response should be of the following format:'Answer: $LETTER' (without quotes) where LETTER is one of"
    " options. Think step by step before answering."
)
_EARTH = "You are tasked with answering a multiple-choice question about the given input image.\n\n"
_EARTH_ENDING = (
    "Based on the image, select the correct option (e.g., 'A', 'B', 'C', 'D') or directly state the correct option"
    " content, Do not give any explaination."
)
_IN_QUOTES = "Answer with the option's letter from the given choices directly. Enclose the option's letter within ``."
_OPTIONS_IN_IMAGE = "Options: Choose from (A) (B) (C) (D) in the image."
_OF_TYPE = {
    "yes_no": "Please answer Yes or No.",
    "multiple_choice": "Please output the letter corresponding to the correct option.",
}
_LISTED_BELOW, _LISTED_BELOW_CN = "The choices are listed below:", "选项如下所示:"
_REAL_WORLD_CN = "根据图像选择上述多项选择题的最佳答案。只需回答正确选项的字母（A, B, C, D 或 E）。\n最佳答案为："
OF_THE_VIDEO = (
    "Select the best answer to the following multiple-choice question based on the video. Respond with only the letter"
    " (A, B, C, or D) of the correct option."
)
_HERE = "<ImageHere>"
_HERE_IN_ORDER = "<image>"
_IN_A_BOX = (
    "\nSolve the complex visual logical reasoning problem through step-by-step reasoning.Think about the reasoning"
    " process first and answer the question following this format: Answer: \\boxed{$LETTER}"
)
_IN_BRACES = " \n\n\nLet's think step by step and give the final answer in curly braces,  like this: {final answer}"
_AS_JSON = (
    "\n## Answer Instruction Please provide an answer to the question outlined above. Your response should adhere to"
    " the following JSON format, which includes two keys: 'solution' and 'short answer'. The 'solution' key can contain"
    " detailed steps needed to solve the question, and the 'short answer' key should provide a concise response. %s\n\n"
    "Example of expected JSON response format:\n\n{\n"
    '    "solution": "[Detailed step-by-step explanation]",\n    "short answer": "[Concise Answer]"\n}'
)
_SHORT_ANSWERS = {
    "multiple choice": (
        "Provide the corresponing choice option in the 'short answer' key, such as 'A', 'B', 'C', or 'D'."
    ),
    "float": "Format the answer as a three-digit floating-point number and provide it in the 'short answer' key.",
}
_OTHER_SHORT_ANSWER = "Float numbers in the answer should be formatted as three-digit floating-point numbers."


def question(row: Row, ending: str = "") -> list[Turn]:
    """The pictures, then the question."""
    return [[*row.pictures, cell_text(row, "question") + ending]]


short_answer = partial(question, ending=SINGLE_WORD)
yes_or_no = partial(question, ending="\nPlease answer yes or no.")
in_its_language = partial(
    question, ending="\nAnswer the question using a word or phrase in the language of the question."
)
a_number = partial(
    question, ending=" Note that: answer with a number directly e.g. 3. Do not include any additional text."
)

directly = partial(question, ending="\nPlease directly provide a short answer to the question. ")
one_number = partial(question, ending="\nAnswer the question using a single number.")  # TallyQA
in_a_box = partial(question, ending=_IN_A_BOX)  # VisuLogic
in_braces = partial(question, ending=_IN_BRACES)  # ZeroBench


def description(row: Row) -> list[Turn]:
    """The pictures, then the question if there is one, else the request to describe them."""
    return [[*row.pictures, row.columns.get("question", _DESCRIBE)]]


def multiple_choice(row: Row, ending: str = _SELECT, hinted: bool = True) -> list[Turn]:
    """The pictures, then hint (unless not ``hinted``), question and options."""
    return [[*row.pictures, _choices(row, ending, hinted)]]


def multiple_choice_placed(row: Row, ending: str = _SELECT) -> list[Turn]:
    """`multiple_choice` with the pictures where the text has ``<image 1>``, ``<image 2>``, …, as in MMMU.

    Raises:
        SampleError: If the text names a picture that the row does not have.
    """
    return [placed(row, _choices(row, ending))]


bare_choice = partial(multiple_choice, ending="")  # We-Math
best_letter = partial(multiple_choice, ending=_BEST_LETTER, hinted=False)  # CVQA
letter_directly = partial(  # VMCBench
    multiple_choice, ending="Answer with the option's letter from the given choices directly. \n", hinted=False
)


def caption_choice(row: Row) -> list[Turn]:
    """The pictures, then hint, the question under "Caption:", and options, as in MSEarth."""
    hint = f"Hint: {row.columns['hint']}\n" if "hint" in row.columns else ""
    lines = _lines(options(row.columns))
    choices = f"Options:\n{lines}{_EARTH_ENDING}" if lines else ""
    return [[*row.pictures, f"{_EARTH}{hint}Caption:\n {cell_text(row, 'question')}\n{choices}"]]


def listed_choice(row: Row, read: Callable[[Mapping[str, str]], Mapping[str, str]] = list_options) -> list[Turn]:
    """The pictures, the question and the list in the column ``options``, as in PuzzleVQA.

    Args:
        row: The row. Without that column its options, (A) to (D), are in the picture.
        read: Reads the options.
    """
    lines = "\n".join(f"({letter}) {text}" for letter, text in read(row.columns).items())
    choices = f"Options:\n{lines}" if "options" in row.columns else _OPTIONS_IN_IMAGE
    return [[*row.pictures, f"{cell_text(row, 'question')}\n{choices}{_STEP_BY_STEP}"]]


quoted_choice = partial(listed_choice, read=quoted_options)  # VisualPuzzles


def letter_in_quotes(row: Row) -> list[Turn]:
    """The pictures, then hint, question and options in one line, as in MMSI-Bench."""
    hint = f"Hint: {row.columns['hint']}\n" if "hint" in row.columns else ""
    items = "".join(f"{letter}: {text}, " for letter, text in options(row.columns).items())
    choices = f"Options: {items}" if items else ""
    return [[*row.pictures, f"{hint}{cell_text(row, 'question')}\n{choices}\n{_IN_QUOTES}"]]


def letter_of_list(row: Row) -> list[Turn]:
    """The pictures, the question and the list in the column ``options``, as in EmbSpatial-Bench."""
    lines = "\n".join(f"{letter}: {text}" for letter, text in list_options(row.columns).items())
    ending = "Give me the answer letter directly. The best answer is:"
    return [[*row.pictures, f"Question: {cell_text(row, 'question')}\nOptions:\n{lines}\n{ending}"]]


def candidates(row: Row) -> list[Turn]:
    """The pictures, the question and the text in the column ``candidates``, as in ViewSpatial-Bench."""
    asked = f"Question: {cell_text(row, 'question')}\nChoices: {cell_text(row, 'candidates')}\n"
    return [[*row.pictures, f"{asked}Reply only to the corresponding option.\nAnswer:"]]


def column_with_pictures(row: Row, name: str) -> list[Turn]:
    """The text of a column, with the pictures in place of ``<image>``, as in MindCube and ERIQ."""
    return _in_order(row, cell_text(row, name))


def by_type(row: Row) -> list[Turn]:
    """The pictures and the question with the request that its ``type`` needs, as in NaturalBench.

    Raises:
        SampleError: If the type is neither ``yes_no`` nor ``multiple_choice``.
    """
    kind = cell_text(row, "type")
    if kind not in _OF_TYPE:
        raise SampleError(f"{row.index}: its type is {kind!r}; expected {' or '.join(_OF_TYPE)}")
    return [[*row.pictures, f"{cell_text(row, 'question')} {_OF_TYPE[kind]}"]]


def required_choice(row: Row) -> list[Turn]:
    """`bare_choice`, then the column ``requirement``, as in We-Math step by step."""
    return [[*row.pictures, _choices(row, "") + f"\n{cell_text(row, 'requirement')}"]]


def dyna_math(row: Row, form: str = _AS_JSON) -> list[Turn]:
    """The pictures, the question and the form of the answer, as in DynaMath."""
    kind = _SHORT_ANSWERS.get(row.columns.get("answer_type", ""), _OTHER_SHORT_ANSWER)
    return [[*row.pictures, f"## Question\n {cell_text(row, 'question')}{form and form % kind}"]]


dyna_math_bare = partial(dyna_math, form="")


def placed_by_index(row: Row) -> list[Turn]:
    """Puts each picture before the character at its ``visual_indices``, as in ERQA.

    Without a number for each picture, they are where the text has ``<image>``, or before the question.
    """
    text = cell_text(row, "question")
    places = [int(index) for index in as_list(row.columns.get("visual_indices", "")) if index.strip().isdecimal()]
    if len(places) != len(row.pictures):
        return _in_order(row, text) if _HERE_IN_ORDER in text else [[*row.pictures, text]]
    turn: Turn = []
    last = 0
    for place, picture in sorted(zip(places, row.pictures, strict=True), key=lambda pair: pair[0]):
        if last < place <= len(text):
            turn.append(text[last:place])
            last = place
        turn.append(picture)
    return [[*turn, text[last:]] if text[last:] else turn]


def _in_order(row: Row, text: str, blank: str | None = None) -> list[Turn]:
    """The text with the pictures in place of ``<image>``; these characters around its parts are left out."""
    turn: Turn = []
    for number, part in enumerate(text.split(_HERE_IN_ORDER)):
        if 0 < number <= len(row.pictures):
            turn.append(row.pictures[number - 1])
        if part.strip(blank):
            turn.append(part.strip(blank))
    return [turn]


mmmu_pro = partial(multiple_choice_placed, ending=_DIRECTLY)
mmmu_pro_cot = partial(multiple_choice_placed, ending=f"Answer the following multiple-choice question. {_LAST_LINE}")


def question_in_the_image(row: Row, ending: str = _DIRECTLY) -> list[Turn]:
    """The picture that holds question and options, as in MMMU-Pro's vision setting."""
    return [[*row.pictures, _IN_THE_IMAGE + ending]]


question_in_the_image_cot = partial(question_in_the_image, ending=_LAST_LINE)


def several_pictures(row: Row) -> list[Turn]:
    """Question and options with the pictures where the text has ``<image>``, in their order, as in MUIRBench."""
    choices = "\n".join(f"{letter}. {text}" for letter, text in options(row.columns).items())
    text = f"{cell_text(row, 'question')}\n"
    if choices:
        text += f"{choices}\nAnswer with the option's letter from the given choices directly."
    return _in_order(row, text, blank="")


def real_world(row: Row, heading: str = _LISTED_BELOW, ending: str = _REAL_WORLD) -> list[Turn]:
    """The pictures, the question and the column ``multi-choice options``, as in MME-RealWorld.

    Args:
        row: The row. Its options are a text with a heading, or, in the table of MME-RealWorld-Lite, a list.
        heading: The text before options that are a list.
        ending: The text after the options.
    """
    cell = cell_text(row, OPTIONS)
    items = listed(cell)
    choices = cell if items is None else "\n".join([heading, *items])
    return [[*row.pictures, f"{cell_text(row, 'question')} {choices}\n{ending}"]]


real_world_chinese = partial(real_world, heading=_LISTED_BELOW_CN, ending=_REAL_WORLD_CN)


def column(row: Row, name: str = "prompt") -> list[Turn]:
    """The pictures, then the text of a column, as in CV-Bench."""
    return [[*row.pictures, cell_text(row, name)]]


def conversation(row: Row) -> list[Turn]:
    """Several turns: the column ``question`` is a list; each ``<ImageHere>`` stands for the next picture.

    Raises:
        SampleError: If the questions name more pictures than the row has.
    """
    questions = as_list(cell_text(row, "question"))
    pictures = iter(row.pictures)
    turns: list[Turn] = []
    for text in questions:
        turn: Turn = []
        first, *others = text.split(_HERE)
        if first:
            turn.append(first)
        for part in others:
            picture = next(pictures, None)
            if picture is not None:
                turn.append(picture)
            elif row.pictures:
                raise SampleError(f"{row.index}: its questions name more pictures than the {len(row.pictures)} it has")
            if part:
                turn.append(part)
        turns.append(turn)
    if row.pictures and _HERE not in "".join(questions):
        turns[0] = [*row.pictures, *turns[0]]
    return turns


def _choices(row: Row, ending: str, hinted: bool = True) -> str:
    choices = options(row.columns)
    hint = f"Hint: {row.columns['hint']}\n" if hinted and "hint" in row.columns else ""
    text = f"{hint}Question: {cell_text(row, 'question')}\n"
    return f"{text}Options:\n{_lines(choices)}{ending}" if choices else text


def _lines(choices: Mapping[str, str]) -> str:
    return "".join(f"{letter}. {option}\n" for letter, option in choices.items())


def placed(row: Row, text: str) -> Turn:
    """A text with a row's pictures where it has ``<image 1>``, ``<image 2>``, …; before it, if it names none."""
    parts = re.split(r"<image (\d+)>", text)
    if len(parts) == 1:
        return [*row.pictures, text]
    turn: Turn = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            if part:
                turn.append(part)
        elif row.pictures:
            turn.append(_picture(row, int(part)))
    return turn


def _picture(row: Row, number: int) -> Picture:
    if not 1 <= number <= len(row.pictures):
        raise SampleError(f"{row.index}: its text names <image {number}>, but it has {len(row.pictures)} pictures")
    return row.pictures[number - 1]


def cell_text(row: Row, name: str) -> str:
    """Returns the text of a row in a column.

    Raises:
        SampleError: If it has none.
    """
    if name not in row.columns:
        raise SampleError(f"{row.index}: its column {name!r} is empty")
    return row.columns[name]


def texts_of(turns: Sequence[Sequence[str | Picture]]) -> list[str]:
    """The texts of turns, a picture as ``<image>``, for people to read."""
    return ["".join(part if isinstance(part, str) else "<image>" for part in turn) for turn in turns]


def video_mme(row: Row, subtitles: bool = False) -> list[Turn]:
    """Video-MME (arXiv 2405.21075): the frames, their subtitles if shown, the question, its options.

    Args:
        row: The row, with its options in ``candidates``.
        subtitles: Shows the column ``subtitles``, which may be empty.
    """
    said = f"This video's subtitles are listed below:\n{row.columns.get('subtitles', '')}\n" if subtitles else ""
    given = f"\nThese are the frames of a video. {said}{OF_THE_VIDEO}\n"
    lines = [cell_text(row, "question"), *as_list(row.columns.get("candidates", ""))]
    return [[*row.pictures, given, "Question: {}\nAnswer: ".format("\n".join(lines))]]
