"""Prompts of benchmarks of olympiads and of space; see `testbed.answers.prompts`."""

from __future__ import annotations

from functools import partial

from testbed.answers.columns import list_options, listed
from testbed.answers.prompts import Turn, cell_text, column
from testbed.data.rows import Row
from testbed.errors import SampleError

CHOSEN = ("object_rel_direction", "object_rel_distance")  # SPBench's questions with options
VIEW_CHANGE = "view_change_infer"  # SPAR-Bench's task of moves and turns
_NUMBER, _LETTER = (
    "Please answer the question using a numerical value (e.g., 42 or 3.1) directly.",
    ("Please answer with the option's letter from the given choices (e.g., A, B, etc.) directly."),
)
_PONDER = (
    "Please think about this question as if you were a human pondering deeply. Engage in an internal dialogue using"
    " expressions such as 'let me think', 'wait', 'Hmm', 'oh, I see', 'let's break it down', etc, or other natural"
    " language thought expressions It's encouraged to include self-reflection or verification in the reasoning"
    " process. \n"
)
_DETAILED = (
    "Please provide your detailed reasoning between the <think> </think> tags, and then answer the question with"
)
_IN_STEPS = {
    True: (
        f"{_DETAILED} the option's letter from the given choices (e.g., A, B, etc.) within the <answer> </answer> tags."
    ),
    False: f"{_DETAILED} a numerical value (e.g., 42 or 3.1) within the <answer> </answer> tags.",
}
_SCALE = (
    "The values represent the bounding box coordinates normalized to a 0-1000 scale, with the top-left corner as the"
    " origin of the image."
)
_OMNI = (
    "\nI will ask you a question based on an image. Answer with either true/false, one word or number, place your"
    " answer between <ans></ans> tags. Only include your answer. Question:\n"
)
_CHATBOT = (
    "You are an intelligent chatbot designed to answer questions based on an image. Your task is to analyze the"
    " images, "
)
_THEN = "and then determine the answer to the question.\n"
_LEVELS = {
    "L1_single": "identify attributes of the objects, ",
    "L2_objects": "identify attributes of multiple objects, ",
    "L3_2d_spatial": (
        "identify attributes of multiple objects and their spatial relationship from 2D projected camera view, "
    ),
    "L4_occ": "identify attributes of multiple objects and their occlusion relationships, ",
    "L4_pose": (
        "identify attributes of multiple objects and their facing direction in 3D space from the camera view, "
    ),
    "L5_6d_spatial": (
        "identify attributes of multiple objects and their spatial relationship from objects’ perspective in 3D space, "
    ),
    "L5_collision": (
        "identify attributes of multiple objects and their potential collision given the assumption of moving direction"
        " in 3D space, "
    ),
}
_ALL_ANSWERS = (
    "Small, Large, Airliner, Dirtbike, Road bike, Tandem bike, Suv, Wagon, Scooter, Mountain bike, Minivan, Sedan,"
    " School bus, Fighter, Chopper, Double bus, Truck, Articulated bus, Cruiser, Jet, Utility bike, Regular bus,"
    " Biplane, Gray, Blue, Purple, Brown, Green, Cyan, Red, Yellow, Left, Right, Front, Back"
)
_OBJECTS = (
    "First, you should identify the related objects refered in the questions, including their shape, color, size; then"
    " add a brief reasoning process about the questions. Each object in the image has a shape (e.g., 'airliner'), a"
    " size (only can be 'small' or 'large'), a color (e.g. 'blue'). The size of the object is either 'small' or"
    " 'large'. The color of the object is one of the following: 'gray', 'blue', 'purple', 'brown', 'green', 'cyan',"
    " 'red', 'yellow'. The direction of the object is one of the following: 'left', 'right', 'front', 'back'.\n\n"
    "Second, give the answer based on the reasoning process. The answer should only be (1) a phrase chosen from the"
    f" following options: {_ALL_ANSWERS}, or (2) an integer [0-10] when asked for 'How many' or 'What is the number"
    " of', or (3) 'Yes' or 'No' when asked for 'Is there'. If you think there are no possible answers or the question"
    " is not clear, choose the best answer that fits the question.\n\n"
    "Write your response into this json template: {'Reasoning': '<your reasons>', 'Answer': '<Your answer>'}"
)
_IN_IMAGES = (
    "You are an expert at solving mathematical problems from visual information. The images contain a complete math"
    " problem. Please carefully read and understand the problem from the images, When providing your final answer:\n"
    "- If the answer can be expressed as a whole number (integer), provide it as an integer\n"
    "Please think step by step. After your reasoning, output your final answer on a new line starting with"
    ' "FINAL ANSWER: " followed by the number only.'
)


def sp_bench(row: Row, in_steps: bool = False) -> list[Turn]:
    """SPBench: the pictures, the question with the list ``candidates``, and the form of the answer.

    Args:
        in_steps: True to ask for thoughts before the answer.
    """
    cell = row.columns.get("candidates", "")
    items = listed(cell)
    lines = ([cell] if cell.strip() else []) if items is None else items
    text = cell_text(row, "question") + ("\nOptions:\n" + "\n".join(lines) if lines else "")
    chosen = row.columns.get("question_type") in CHOSEN
    ending = _IN_STEPS[chosen] if in_steps else _LETTER if chosen else _NUMBER
    return [[*row.pictures, f"Question: {text}\n{_PONDER if in_steps else ''}\n{ending}"]]


def spar_bench(row: Row) -> list[Turn]:
    """SPAR-Bench: the pictures, and the question with the form of its answer, by ``task``."""
    task = row.columns["task"]
    if task == VIEW_CHANGE:
        ending = "\n"
    elif "_prediction_" in task:
        ending = "Please answer the question using a single word or phrase."
    else:
        scale = _SCALE if task in ("position_matching", "camera_motion_infer") else ""
        ending = f"{scale}\nAnswer with the option's letter from the given choices directly."
    return [[*row.pictures, f"\n{cell_text(row, 'question')}\n{ending}"]]


def site_bench(row: Row) -> list[Turn]:
    """SITE-Bench: the question and the list ``options``, with pictures in place of ``<image>``, else before them."""
    (turn,) = column(row, "question")
    lines = "\n".join(f"{letter}: {text}" for letter, text in list_options(row.columns).items())
    here = "<image>" * len(row.pictures) + "\n" if "<image>" not in f"{turn[-1]}{lines}" else ""
    text = f"{here}Question: {turn[-1]}\nOptions:\n{lines}\nGive me the answer letter directly. The best answer is:"
    said: Turn = []
    parts = text.split("<image>")
    for place, part in enumerate(parts):
        said += [part.strip()] if part.strip() else []
        said += row.pictures[place : place + 1] if place + 1 < len(parts) else []
    return [said]


def omni_3d(row: Row) -> list[Turn]:
    """Omni3D-Bench: the pictures, and the question twice, with the kind of its answer."""
    (turn,) = column(row, "question")
    kind = row.columns["answer_type"]
    return [[*turn[:-1], f"{turn[-1]}{_OMNI}{turn[-1]} (Answer type: {kind})"]]


def spatial_457(row: Row) -> list[Turn]:
    """Spatial457: the task of the level, the pictures, the question, and all possible answers."""
    (turn,) = column(row, "question")
    level = row.columns.get("category", "")
    task = f"{_CHATBOT}{_LEVELS[level]}{_THEN}" if level in _LEVELS else ""
    return [[task, *turn, _OBJECTS]]


def gsm8k(row: Row) -> list[Turn]:
    """GSM8K-V: the pictures, which hold the question, and the form of the answer (VLMEvalKit's implicit mode)."""
    return [[*row.pictures, _IN_IMAGES]]


_COMPETITION = (
    "You are participating in a high school physics competition.\nPlease read the following question carefully and"
    " provide a clear, step-by-step solution with full reasoning.\n\n"
    "Context (if applicable):\n%s\n\nProblem:\n%s\n\n"
    "Useful information (formulas, constants, units, if applicable):\n%s\n\n"
    "Instructions:\n"
    "1. Use LaTeX to format all variables, equations, and calculations.\n"
    "2. Enclose your full reasoning process within <think> </think> tags.\n"
    "3. Provide the final answer within <answer> </answer> tags, using the format\n"
    "   of [\\boxed{{answer}}]. Do not include units inside the box.\n"
    "4. For multiple sub-questions, list the answers in order using the format:\n"
    "   [\\boxed{{answer1}}, \\boxed{{answer2}}, ...].\n"
    "5. For multiple-choice questions, provide the final selected option(s) in the\n"
    "   boxed answer instead of the calculation result (e.g., [\\boxed{{A}}]).\n\n"
    "Example of Output:\n<think>\nStep 1: Analyze the problem... Step 2: Apply the relevant equations...\n</think>\n"
    "<answer>\n[\\boxed{{A}}, \\boxed{{3.2}}]\n</answer>\n"
)
_COMPETITION_CN = (
    "你正在参加高中物理竞赛。\n请仔细阅读下列题目，结合上下文信息，详细推导并给出清晰、有条理的解题步骤与完整的逻辑推理过程。"
    "\n\n背景信息（如有）：\n%s\n\n题目内容：\n%s\n\n可用信息（如物理公式、常数、单位等）：\n%s\n\n"
    "作答要求：\n1. 所有物理量、公式和计算过程须使用 LaTeX 格式书写。\n"
    "2. 将完整的推理过程用 <think> 和 </think> 标签括起来。\n"
    "3. 将最终答案置于 <answer> 和 </answer> 标签中，答案格式为 [\\boxed{{答案}}]，方框内不包含单位。\n"
    "4. 对于包含多个小问的题目，按顺序列出所有答案，格式为：[\\boxed{{答案1}}, \\boxed{{答案2}}, ...]。\n"
    "5. 对于选择题，请在答案的方框中给出最终选择的选项，而不是计算结果（例如：[\\boxed{{A}}]）。\n\n"
    "输出示例:\n<think>\n第一步: 分析问题... 第二步: 运用相关公式...\n</think>\n"
    "<answer>\n[\\boxed{{A}}, \\boxed{3.2}]\n</answer>\n"
)


def competition(row: Row, chinese: bool = False) -> list[Turn]:
    """HiPhO: the pictures, and context, problem and information with the form of the answer.

    Args:
        chinese: True for the sets in Chinese.
    """
    given = (row.columns.get("context", ""), cell_text(row, "question"), row.columns.get("information", ""))
    return [[*row.pictures, (_COMPETITION_CN if chinese else _COMPETITION) % given]]


_SUBJECTS = {True: ("数学", "物理"), False: ("Math", "Physics")}
_TYPES = {
    "Numerical": ("数值", "a numerical value"),
    "Expression": ("表达式", "an expression"),
    "Equation": ("方程", "an equation"),
    "Interval": ("区间", "an interval"),
}


def olympiad(row: Row) -> list[Turn]:
    """OlympiadBench: the form of the answer in the language of the row, its question, and then the pictures.

    Raises:
        SampleError: If the kind of its answer is not known.
    """
    source = row.columns["source"]
    chinese, mathematics = "zh" in source, "maths" in source
    subject = _SUBJECTS[chinese][0 if mathematics else 1]
    asked = _proof(chinese, subject) if "TP" in source else _open_ended(row, chinese, subject)
    context = f"{row.columns['context']}\n" if not mathematics and "context" in row.columns else ""
    return [[f"{asked}\n{context}{cell_text(row, 'question')}", *row.pictures]]


def _proof(chinese: bool, subject: str) -> str:
    if chinese:
        return (
            f"以下是中国{subject}竞赛中的证明题。请根据题目的要求，运用逻辑推理及常用定理证明题目中的命题。"
            "证明过程中使用的变量和公式请使用LaTeX格式表示。"
        )
    return (
        f"The following is a theorem proving problem from an International {subject} competition. Please use logical"
        " reasoning and common theorems to prove the proposition in the problem according to the given requirements."
        " Please use LaTeX format to represent the variables and formulas used in the proof."
    )


def _open_ended(row: Row, chinese: bool, subject: str) -> str:
    """The request for an answer in a box. VLMEvalKit names the unit also where there is none."""
    several = row.columns.get("is_multiple_answer", "").lower() in ("true", "1", "1.0")
    kind = _kinds(row, chinese, several)
    if chinese:
        box = "\\boxed{用英文逗号连接的多个答案}" if several else "\\boxed{答案}"
        return (
            f"以下是中国{subject}竞赛中的解答题{kind}。请根据题目的要求和所提供的信息计算得出答案。解答过程和结果中"
            f'使用的变量和公式请使用LaTeX格式表示。请在最后以"所以最终答案是{box}(单位)。"'
            "显式给出结果，注意答案的单位不要放在\\boxed{}中。"
        )
    box = "\\boxed{multiple answers connected with commas}" if several else "\\boxed{answer}"
    return (
        f"The following is an open-ended problem from an International {subject} competition. {kind}Please calculate"
        " the answer according to the given requirements and the information provided. Please use LaTeX format to"
        " represent the variables and formulas used in the solution process and results. Please end your solution with"
        f' "So the final answer is {box}(unit)." and give the result explicitly, note that the unit of the'
        " answer should not be included in \\boxed{}."
    )


def _kinds(row: Row, chinese: bool, several: bool) -> str:
    """Names the kinds of the answers; nothing where they are tuples or for people to judge."""
    given = row.columns.get("answer_type", "")
    if "Need_human_evaluate" in given or "Tuple" in given:
        return ""
    names = list(dict.fromkeys(_kind(row, part, chinese) for part in (given.split(",") if several else [given])))
    if not several:
        return f"，答案类型为{names[0]}" if chinese else f"The answer of The problem should be {names[0]}. "
    if len(names) == 1:
        together = f"，题目有多个答案，答案类型均为{names[0]}"
        return together if chinese else f"The problem has multiple answers, each of them should be {names[0]}. "
    each = [_kind(row, part, chinese) for part in given.split(",")]
    if chinese:
        return f"，题目有多个答案，答案类型分别为{'、'.join(each)}"
    return f"The problem has multiple answers, with the answers in order being {', '.join(each)}. "


def _kind(row: Row, given: str, chinese: bool) -> str:
    for kind, names in _TYPES.items():
        if kind in given.partition("-")[0]:
            return names[0 if chinese else 1]
    raise SampleError(f"{row.index}: its answer_type is {given!r}; expected {', '.join(_TYPES)} or Tuple")


sp_bench_in_steps = partial(sp_bench, in_steps=True)
