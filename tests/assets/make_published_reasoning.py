r"""Made ``published_reasoning.json.gz``: VLMEvalKit's own prompts and verdicts for benchmarks of reasoning.

    python tests/assets/make_published_reasoning.py FOLDER_OF_VLMEVALKIT

As ``make_published_answers.py``, with latex2sympy2_extended 1.11.0 and sympy 1.14.0 besides; ``timeout_decorator`` is
replaced by one that does nothing. Where VLMEvalKit asks a judge, the file says that nothing was read. VLMEvalKit gives
answers to MATH-Vision to Python's ``eval``; no answer in the file needs that (``2^3`` is 1 there, and ``a`` the right
number). The file was made once; it is not made again.
"""

from __future__ import annotations

import random
import sys
import types
from pathlib import Path
from typing import Any

from make_published_answers import Published, choices, cut, write

NUMBER = 300
PATH = Path(__file__).resolve().parent / "published_reasoning.json.gz"
TEXTS = (
    "3|4|-2|0.5|1.25|1/2|\\frac{1}{2}|\\frac{3}{4}|2\\sqrt{3}|\\pi|2\\pi|3 \\cdot 4|12|0"
    "|(2, 3)|x+1|\\sqrt{2}|\\sqrt{4}|2|7.0|7"
)
SAID = """
    {t}|{t}| {t} |{T}|${t}$|The answer is {t}|{t}.|{u}|{t} cm|\\boxed{{{t}}}|Answer: {t}|{t}\\n|It is {u}, not {t}
    {t}0|-{t}|1{t}||Failed to obtain answer via API.
"""
BOXED = """
    Answer: \\boxed{{{L}}}|\\boxed{{{L}}}|\\boxed{{\\text{{{L}}}}}|\\boxed{{{L}}} or \\boxed{{{M}}}
    $\\boxed{{{L}}}$.|\\boxed{{$LETTER}}
    Answer: \\boxed{{{L}.}}|\\boxed{{{l}}}|{L}|{l}|{L}\\nbecause|({L})\\nso|It is {L}.|It is ({L}).|The answer is {L}.
    The answer is: {l}|The answer is {L} or {M}|answer: {L}\\nIt fits.|\\boxed{{}}|The final answer is {L}, I think
    The correct answer is option {l}. Yes.|\\boxed{{\\mathbf{{{L}}}}}|\\boxed{{{{{L}}}}}|We see {M} and {L}
    The answer should be {L}||Z
    \\boxed{{{L}}} and {{x}}|{L}<bar>endoftext<bar>
"""
ANSWERED = """
    Answer: {L}|Answer: {L}.|<Answer>: {L}|{L}|{l}|Answer: ({L})|Answer: <{L}>|The Answer is {L}|answer: {L}
    Answer: {t}|{t}
    Answer: {M} Answer: {L}||Answer:|Because of it.\\nAnswer : {L}. {t}|A {t}|I think {L}|Hence {L}
"""
BRACED = """
    {{{t}}}|so {{{t}}}|{{{T}}}|{t}|{{{u}}} {{{t}}}|{{{t}}} {{{u}}}|{{final answer: {t}}}|\\boxed{{{t}}}
    {{{{{t}}}}}|{{}}|{{ {t} }}
    {{{t}|{{x {t} y}}||{{1{t}}}
"""
JSONS = """
    {{"solution": "s", "short answer": "{t}"}}|{{"short answer": "{t}"}}
    ```json\\n{{"solution": "s", "short answer": "{t}"}}\\n```
    {{"short answer": {t}}}|{{"short answer": null}}|{{"answer": "{t}"}}|{t}|The answer is {t}
    {{"short answer": "{t} cm"}}|{t} cm
    {{"solution": "\\\\frac", "short answer": "{t}"}}|{{"short answer": "{u}"}}|{{"short answer": "{T}"|{T}
    {{"short answer": ""}}|{u} or {t}
    {{"short answer": "about {t}"}}
"""


def texts(seed: str, forms: str, known: list[str]) -> list[tuple[str, str]]:
    """Right answers, and what is said."""
    draw, shapes = random.Random(seed), cut(forms)
    rows = []
    for place in range(NUMBER):
        right, other = draw.sample(known, 2)
        said = draw.choice([right, right, right, draw.choice(known)])
        values = {"t": said, "T": said.upper(), "u": other}
        rows.append((right, shapes[place % len(shapes)].format(**values)))
    return rows


def of_letters(seed: str, forms: str) -> list[tuple[dict[str, str], str]]:
    """Letters A to D as right answers, and what is said."""
    draw, shapes = random.Random(seed), [each.replace("<bar>", "|") for each in cut(forms.replace("<bar>", "\0"))]
    rows = []
    for place in range(NUMBER):
        first, second = draw.sample("ABCD", 2)
        values = {"L": first, "l": first.lower(), "M": second, "t": "cat", "u": "dog"}
        text = shapes[place % len(shapes)].replace("\0", "|").format(**values)
        rows.append(({"answer": draw.choice([first, first, second]), "A": "cat", "B": "dog", "C": "1", "D": "2"}, text))
    return rows


def listed(seed: str, of: str) -> list[tuple[dict[str, str], str]]:
    """Questions whose options are a list."""
    draw = random.Random(seed)
    rows = []
    for columns, text in choices(seed, 4)[: NUMBER // 2]:
        letters = [each for each in "ABCD" if each in columns]
        own = {"choices": str([columns[each] for each in letters]), "answer": columns["answer"]}
        if of == "math_vista":
            own |= {"question_type": "multi_choice", "answer_type": "text", "answer_option": columns["answer"]}
        rows.append((own, text))
    draw.shuffle(rows)
    return rows


def math_vista() -> list[tuple[dict[str, str], str]]:
    """Rows of MathVista."""
    draw, rows = random.Random("math_vista"), listed("math_vista", "math_vista")
    for right, text in texts("math_vista free", SAID, "3|4|-2|0.5|1.25|12|0|0.0|7.0|7|[1, 2]|yes".split("|")):
        kind = draw.choice(["integer", "float", "text", "list"])
        rows.append(({"question_type": "free_form", "answer_type": kind, "answer": right, "choices": ""}, text))
    return rows


def math_vision() -> list[tuple[dict[str, str], str]]:
    """Rows of MATH-Vision."""
    free = texts("math_vision", SAID, TEXTS.split("|"))
    return listed("math_vision", "math_vision") + [({"choices": "[]", "answer": right}, text) for right, text in free]


def dyna_math() -> list[tuple[dict[str, str], str]]:
    """Rows of DynaMath."""
    numbers = [
        ({"answer_type": "float", "answer": right}, text)
        for right, text in texts("float", JSONS, "3|4.0|0.125|-2.5|12.0|0".split("|"))
    ]
    letters = [
        ({"answer_type": "multiple choice", "answer": right}, text)
        for right, text in texts("letter", JSONS, list("ABCD"))
    ]
    words = [
        ({"answer_type": "text", "answer": right}, text)
        for right, text in texts("words", JSONS, ["even", "odd", "neither", "a circle", "a line"])
    ]
    return [*numbers, *letters, *words]


ROWS = {
    "math_vista": math_vista,
    "math_vision": math_vision,
    "dyna_math": dyna_math,
    "visu_logic": lambda: of_letters("visu_logic", BOXED),
    "we_math": lambda: of_letters("we_math", ANSWERED),
    "zero_bench": lambda: [
        ({"answers": right}, text) for right, text in texts("zero_bench", BRACED, "3|11.90|Paris|a, b|-2".split("|"))
    ],
    "erqa": lambda: of_letters("erqa", ANSWERED),
}
QUESTION = {"question": "What is it?\nLook.", "A": "cat", "B": "dog", "hint": "look", "requirement": "Step by step."}
PROMPTS = [
    ("DynaMath", {"question": "What?", "answer_type": "float"}, 1),
    ("DynaMath", {"question": "What?", "answer_type": "multiple choice"}, 1),
    ("DynaMath", {"question": "What?", "answer_type": "text"}, 2),
    ("DynaMath_noprompt", {"question": "What?", "answer_type": "text"}, 1),
    ("VisuLogic", QUESTION, 1),
    ("WeMath", QUESTION, 1),
    ("WeMath_COT", QUESTION, 2),
    ("ZEROBench", QUESTION, 2),
    ("MathVerse_MINI", {"question": "What?", "query_cot": "What? Think."}, 1),
    ("MathVerse_MINI_Vision_Only_cot", {"question": "What?", "query_cot": "What? Think."}, 1),
    ("ERQA", {"question": "First this, then that.", "visual_indices": "[12, 0]"}, 2),
    ("ERQA", {"question": "First this, then that.", "visual_indices": "[0, 0]"}, 2),
    ("ERQA", {"question": "First this, then that.", "visual_indices": "[6, 6, 999]"}, 3),
    ("ERQA", {"question": "First this, then that.", "visual_indices": "[22]"}, 1),
    ("ERQA", {"question": "First this, then that.", "visual_indices": "[1, 2, 3]"}, 2),
]


class Silent:
    """A judge that is never heard."""

    def generate(self, *_: Any, **__: Any) -> str:
        raise LookupError


class Reasoning(Published):
    """VLMEvalKit's functions for these benchmarks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        decorator = types.ModuleType("timeout_decorator")
        decorator.timeout = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
        sys.modules["timeout_decorator"] = decorator
        utils, sets = "vlmeval.dataset.utils", "vlmeval.dataset"
        self.vista = self.module(f"{utils}.mathvista", "dataset/utils/mathvista.py")
        self.vision = self.module(f"{utils}.mathv", "dataset/utils/mathv.py")
        self.visulogic = self.module(f"{utils}.visulogic", "dataset/utils/visulogic.py")
        self.wemath = self.module(f"{utils}.wemath", "dataset/utils/wemath.py")
        self.dynamath = self.module(f"{sets}.dynamath", "dataset/dynamath.py")
        self.erqa = self.module(f"{sets}.erqa", "dataset/erqa.py")
        self.erqabench = self.module(f"{sets}.erqabench", "dataset/erqabench.py")

    def prefetched(self, rows: list[Any], module: Any, judged: Any) -> list[tuple[str | None, float]]:
        """By its auxiliary function without a judge, and `post_check`."""
        found: list[tuple[str | None, float]] = []
        for columns, text in rows:
            line = {"question": "", **columns, "prediction": text}
            try:
                read = judged(Silent(), line)["res"]
            except LookupError:
                found.append((None, 0.0))
                continue
            found.append((str(read), float(module.post_check({**line, "res": read}, prefetch=False))))
        return found

    def dynamic(self, rows: list[Any]) -> list[tuple[str | None, float]]:
        """By `DynaMath_auxeval` without a judge."""
        found: list[tuple[str | None, float]] = []
        for columns, text in rows:
            try:
                result = self.dynamath.DynaMath_auxeval(Silent(), {**columns, "prediction": text})
            except LookupError:
                found.append((None, 0.0))
                continue
            found.append((str(result["extracted"]), float(result["correct"])))
        return found

    def answered(self, rows: list[Any]) -> list[tuple[str | None, float]]:
        """By `load_and_process_data` of We-Math."""
        self.table = self.frame([{**columns, "prediction": text} for columns, text in rows])
        data = self.wemath.load_and_process_data("file")
        read = [each if isinstance(each, str) else None for each in data["processed_answer"]]
        return list(zip(read, map(float, data["joker"]), strict=True))

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read and the score of each row."""
        if kind == "math_vista":
            return self.prefetched(rows, self.vista, self.vista.MathVista_auxeval)
        if kind == "math_vision":
            return self.prefetched(rows, self.vision, self.vision.MATH_V_auxeval)
        if kind == "dyna_math":
            return self.dynamic(rows)
        if kind == "visu_logic":
            read = [self.visulogic.extract_answer(text)[0] for _, text in rows]
            pairs = zip(read, rows, strict=True)
            return [(None if said == "Z" else said, float(said == columns["answer"])) for said, (columns, _) in pairs]
        if kind == "we_math":
            return self.answered(rows)
        if kind == "zero_bench":
            evaluate = self.image_vqa.ZEROBench.evaluate
            return self.evaluated(rows, lambda path, **_: evaluate(None, path), lambda found: found["accuracy"])
        evaluate = self.erqa.ERQADataset.evaluate
        return self.evaluated(rows, lambda path, **_: evaluate(None, path), lambda found: found.iloc[0, 1] / 100)

    def prompt(self, name: str, columns: dict[str, str], pictures: int) -> list[str]:
        """What is said for a row; pictures as their numbers between < and >."""
        classes = {"DynaMath": self.dynamath.Dynamath, "VisuLogic": self.image_mcq.VisuLogic}
        classes |= {"WeMath": self.image_mcq.WeMath, "ZEROBench": self.image_vqa.ZEROBench}
        classes |= {"MathVerse": self.image_vqa.MathVerse, "ERQA": self.erqabench.ERQABench}
        paths = [f"<{number}>" for number in range(pictures)]
        cls = classes[name.partition("_")[0]]
        one = cls.__new__(cls)
        vars(one).update(meta_only=False, dataset_name=name, dump_image=lambda line: paths)
        return [part["value"] for part in one.build_prompt(dict(columns))]


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    published = Reasoning(Path(sys.argv[1]))
    asked = [[name, columns, size, published.prompt(name, columns, size)] for name, columns, size in PROMPTS]
    write(PATH, published, ROWS, {"prompts": asked}, __doc__ or "")


if __name__ == "__main__":
    main()
