"""Made ``published_answers.json.gz``: what VLMEvalKit's own functions say of made-up answers.

    python tests/assets/make_published_answers.py FOLDER_OF_VLMEVALKIT

The file was made with VLMEvalKit at commit e8e78f0 (18 August 2026), VERBOSE unset, with pandas 3.1.1, numpy 2.4.6 and
Python 3.11.7. Its functions ran as they are; the modules that they import but do not need (judges, images, downloads)
were empty. Where VLMEvalKit would ask a judge and then draw an option at random, the file says that nothing was read.
The answers are drawn from the forms below by seeded generators, 500 of each kind. The file was made once; it is not
made again.
"""

from __future__ import annotations

import gzip
import importlib.machinery
import importlib.util
import json
import os
import random
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

NUMBER = 500
PATH = Path(__file__).resolve().parent / "published_answers.json.gz"

OPTIONS = [
    ["cat", "dog", "bird", "fish"],
    ["1", "10", "100"],
    ["Yes", "No"],
    ["red", "red and blue", "dark red", "Blue", "green"],
    ["A dog", "A cat", "Neither", "Both of them", "None of the above", "It is unclear"],
    ["Point A", "Point B", "Point C", "Point D"],
    ["1.5 kg", "15 kg", "0.15 kg", "150 kg"],
    ["猫", "狗", "鸟", "鱼"],
    ["the United States", "Canada", "Mexico", "Brazil", "Peru", "Chile", "Cuba", "Haiti", "Belize", "Panama"],
    ["$x^2$", "$2x$", "\\frac{x}{2}", "x"],
]
CHOICES = """
    {L}|({L})|{L}.|{L})|{L}:|**{L}**|"{L}"|'{L}'|`{L}`|{L}?|{L}/|{l}|({l})|{l}.|{L}. {t}|{L}: {t}|({L}) {t}
    {L} {t}|{L}-{t}|{t}|{t}.
    Answer: {L}|answer: {l}|Answer:{L}|Final Answer: {L}|**Answer: {L}**|**Answer:** {L}|Answer: {L}. {t}
    Answer: {t}|Option {L}
    The answer is {L}|The answer is {L}.|The answer is ({L}).|The answer is **{L}**.|the correct answer is {l}
    The answer is {t}.
    The answer is a {t}|The correct answer is **{L}**. Here is why: it is the only one that fits what the picture shows.
    The answer is {L}. No, the answer is {M}.|The answer is not {L}.|The answer is {L} or {M}|{L} or {M}
    {L} and {M}|{L}, {M}
    I think it is {L}|I think it is the {t}|I would choose option {L}|I believe {L} is right
    It is {L}, because of the {u} in it.
    Option {L} is correct, since the {t} can be seen quite clearly in it|{L} is the correct answer, {M} is not.
    Vitamin {L}|{t} {u}
    \\boxed{{{L}}}|$\\boxed{{{L}}}$|\\text{{{L}}}|\\boxed{{{t}}}|{{"answer": "{L}"}}|<answer>{L}</answer>
    <answer> {t} </answer>|答案：{L}
    答案是{L}|正确答案是 {L} 。|选{L}|（{L}）|<think>Is it {M}?</think>{L}|<think>Could it be {M}, or {L}
    Cannot determine the answer|Z|Z.
    Sorry, I can't help with images of people yet. {L}|I can't process this file.
    Failed to obtain answer via API.|E|nan||...
    Failed to obtain answer via API. {t}|{L}. {t} {M}. {u}|Looking at the picture, we see the {t}, not the {u}.
    A {t}|catalog of dogs
    Best option: {L}|Best answer: {L}|The best answer is: {L}|The best option is {L}|The correct option is {L}
    Option: {L}|because, {l}
    Definitely {L}|Because it rains, {L}|#{L}|[{L}]|*{L}*|{L}!|{L};|!{L}|I see A dog and a man who walks it. {L}
    {t} ({L})|{u} {t} {u}
    Let me think about it step by step and look at all of the options again. Answer: {L}|Answer: ${L}
    Answer: $LETTER|Answer: {L} {M}
"""
YES_NO = """
    Yes|No|yes|no|YES|NO.|Yes.|yes!|No, there is not|Yes, there is|Yes, there is no {t}|No, yes|**Yes**|*No*
    Answer:Yes|Answer: No|"Yes"
    True|False|Y|n|Yes/No|yes-no|(yes)|[No]|{{Yes}}|`no`|<answer>Yes</answer>|There is no {t} in it
    There is a {t}.|It is not|Unknown|Not sure
    yes, 1,000 of them|no 1,000|1,000,no|no.|yes . no|noyes|yes_|_no_|no\\yes|yes\t|\\nno\\n|The answer is yes
    The answer is "no".|answer=yes
    Yes it is|No one|No-one is here|know|yesterday|eyes|nobody|I say yes; it is|I say yes ;it is|I say (yes)
    I say yes?no|yes@home
    Yes: it is|No: it is|no's|yes.no|yes.2|2.yes|Yes…|是|否|Oui|Sí, yes|Failed to obtain answer via API.
    <think>No</think>Yes||nan
"""
WORDS = """
    {t}|{T}|the {t}|a {t}|{t}.|"{t}"|{t}, {u}|{u}|{t} {u}| {t} |{t}\\n|{t}?|It is {t}|Answer: {t}|{t}s|**{t}**
    {t}-{u}|{t}/{u}|{x}{t}
    <answer>{t}</answer>|The {T}!|an {u}|{t}\t{u}|nan||({t})|{t} ;|1,000 {t}?|{t}'s|"{T}" and {u}|{t}.{t}
    {t}. {u}. {t}.
"""
ANSWERS = """
    stop|coca cola|3|three|none|10|ten|0|1,000|12.5|12|15%|dont|don't|cant stop|i'd've|wouldnt've|o'clock
    yall'll|It's 5 o'clock
    main st.|U.S.A.|new york|the beatles|a|an apple|2/5|2-5|abc|abd|abcdefgh|abcdefxy|straße|ÅNGSTRÖM|狗|东京 大学
    hello world|hello  World
    $4.50|4.5|http://a.b|don't walk|yes|no|somebody'd|somebodyd've|1 2 3|E = mc^2|\\frac{{1}}{{2}}|x ^ 2 + 1|a+b
    (a, b)|;|!|.|'twas|hes
"""
NUMBERS = """
    5|5.0|5%|0.05|0|0.0|-3|-3.1|1,000|1000|1040|1051|2010|2015|10%|0.1|10|1e3|$5|5.|5 %|.5|50%|nan|inf|-inf
    1_000|٣|five|3.14|3.1416
    Yes|yes|Blue|blue|blue.|0.95|1.05|1.0501|100|105|106|12 cm|1/2|%|-|95%|104.9%
"""


def cut(text: str) -> list[str]:
    """The forms in a text."""
    return [form.replace("\\n", "\n") for line in text.strip("\n").split("\n") for form in line.lstrip().split("|")]


def choices(seed: str, letters: int = 10) -> list[tuple[dict[str, str], str]]:
    """Rows of multiple choice, and answers."""
    draw = random.Random(seed)
    forms = cut(CHOICES)
    rows = []
    for place in range(NUMBER):
        texts = draw.choice([each for each in OPTIONS if len(each) <= letters])
        names = "ABCDEFGHIJ"[: len(texts)]
        first, second = draw.sample(range(len(texts)), 2)
        columns = dict(zip(names, texts, strict=True), answer=draw.choice([names[first]] * 3 + list(names)))
        values = {
            "L": names[first],
            "l": names[first].lower(),
            "M": names[second],
            "t": texts[first],
            "u": texts[second],
        }
        form = forms[place % len(forms)]
        if draw.random() < 0.2:
            form = (
                draw.choice(["Let us look at the picture. ", "So: ", "A man, I think.\n", "Hm\n\n", "Answer: "]) + form
            )
        if draw.random() < 0.2:
            form += draw.choice(
                ["\n", " I am sure.", "\n\nThat is what I see in the picture.", "\nAnswer: {M}", " and so on and so on"]
            )
        rows.append((columns, form.format(**values)))
    return rows


def mmmu(seed: str) -> list[tuple[dict[str, str], str]]:
    """As above; of some questions the options are gone."""
    draw = random.Random(seed)
    rows = []
    for columns, text in choices(seed):
        if draw.random() < 0.3:
            answer = draw.choice(["12", "dog", "['24/7', '3.429']", "B", "other answers", "0.5 m"])
            text = draw.choice(
                [answer, f"It is {answer}.", "A", "B", "Other Answers", f"Answer: {answer}", "cat", text]
            )
            columns = {"answer": answer}
        rows.append((columns, text))
    return rows


def words(
    seed: str, references: tuple[int, ...], forms: str = WORDS, answers: str = ANSWERS
) -> list[tuple[dict[str, str], str]]:
    """Rows with so many references, and answers."""
    draw = random.Random(seed)
    shapes, known = cut(forms), cut(answers)
    rows = []
    for place in range(NUMBER):
        right, other = (draw.choice(known).replace("{{", "{").replace("}}", "}") for _ in range(2))
        number = draw.choice(references)
        given = [draw.choice([right, right, right.upper(), f"the {right}", other]) for _ in range(number)]
        said = draw.choice([right, right, right, other])
        values = {"t": said, "T": said.upper(), "u": other, "x": " " if draw.random() < 0.5 else "x. " * 40}
        text = shapes[place % len(shapes)].format(**values)
        rows.append(({"answer": str(given) if number else right}, text))
    return rows


def numbers(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of ChartQA's kind."""
    return words(seed, (0, 0, 1, 2), "{t}|{t}|{t}|{T}| {t} |{t}.|{u}", NUMBERS)


def yes_no(seed: str) -> list[tuple[dict[str, str], str]]:
    """Questions to be answered by yes or no."""
    draw = random.Random(seed)
    forms = cut(YES_NO)
    rows = []
    for place in range(NUMBER):
        text = forms[place % len(forms)].format(t=draw.choice(["dog", "man in it", "1,000 dogs"]))
        if draw.random() < 0.4:
            text += draw.choice([" ", ", I think", " - as I see it", " It runs." * 40, "\nyes", " (no)", " 3,5"])
        if draw.random() < 0.1:
            text = "It runs. " * draw.choice([30, 31, 32, 40]) + text + "."
        rows.append(({"answer": draw.choice(["Yes", "No"])}, text))
    return rows


def ocrbench(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of OCRBench, some with formulas."""
    draw = random.Random(seed)
    kinds = ["Handwritten Mathematical Expression Recognition", "Regular Text Recognition", "Doc-oriented VQA"]
    return [({**columns, "category": draw.choice(kinds)}, text) for columns, text in words(seed, (1, 2))]


ROWS = {
    "multiple_choice": lambda: choices("multiple_choice"),
    "mmmu": lambda: mmmu("mmmu"),
    "mmmu_pro": lambda: mmmu("mmmu_pro"),
    "mmmu_pro_cot": lambda: mmmu("mmmu_pro_cot"),
    "mme_realworld": lambda: choices("mme_realworld", 5),
    "video_mme": lambda: choices("video_mme", 4),
    "yes_no": lambda: yes_no("yes_no"),
    "vqa_accuracy": lambda: words("vqa_accuracy", (0, 1, 2, 3, 5, 10, 10, 10)),
    "anls": lambda: words("anls", (0, 1, 2, 4)),
    "relaxed": lambda: numbers("relaxed"),
    "exact": lambda: words("exact", (0, 1, 2)),
    "contains": lambda: words("contains", (0,)),
    "ocrbench": lambda: ocrbench("ocrbench"),
    "number": lambda: words("number", (0,), "{t}|{t}.|There are {t}|{u}|1{t}|{t} or {u}|{T}", NUMBERS),
}


class Empty(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **kwargs: None})


EMPTIED = ("vlmeval", "tqdm", "tabulate", "sty", "huggingface_hub", "portalocker", "PIL")


class Emptied:
    """Finds an empty module for whatever of VLMEvalKit is not loaded by `Published`, and for what it imports."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        emptied = name.partition(".")[0] in EMPTIED
        return importlib.machinery.ModuleSpec(name, cls, is_package=True) if emptied else None  # type: ignore[arg-type]

    @classmethod
    def create_module(cls, spec: Any) -> Any:
        return Empty(spec.name)

    @classmethod
    def exec_module(cls, module: Any) -> None:
        return None


class Published:
    """VLMEvalKit's functions."""

    def __init__(self, folder: Path) -> None:
        import pandas

        assert "VERBOSE" not in os.environ
        self.frame = pandas.DataFrame
        self.folder, self.table, self.dumped = folder, None, None
        sys.meta_path.insert(0, Emptied)  # type: ignore[arg-type]
        misc = self.module("vlmeval.smp.misc", "smp/misc.py")
        smp = Empty("vlmeval.smp")
        for name in ("process_punctuation", "istype", "listinstr", "cn_string", "d2df"):
            setattr(smp, name, getattr(misc, name, None))
        smp.load = lambda path: {} if self.table is None else self.table.copy()
        smp.dump = self._dump
        smp.get_intermediate_file_path = lambda path, suffix, form=None: f"/nonexistent/{path}{suffix}"
        smp.get_file_extension = lambda path: "tsv"
        smp.get_logger = __import__("logging").getLogger
        sys.modules["vlmeval.smp"] = smp
        files = Empty("vlmeval.smp.file")
        files.load = smp.load
        sys.modules["vlmeval.smp.file"] = files
        log = Empty("vlmeval.smp.log")
        log.get_logger = smp.get_logger
        sys.modules["vlmeval.smp.log"] = log
        vlm = Empty("vlmeval.smp.vlm")
        vlm.build_option_str = lambda options: ""
        sys.modules["vlmeval.smp.vlm"] = vlm
        matching = self.module("vlmeval.utils.matching_util", "utils/matching_util.py")
        utils = Empty("vlmeval.utils")
        utils.can_infer, utils.can_infer_lego = matching.can_infer, matching.can_infer_lego
        utils.track_progress_rich = lambda function, tasks, **_: [function(**task) for task in tasks]
        sys.modules["vlmeval.utils"] = utils
        self.choice = self.module("vlmeval.dataset.utils.multiple_choice", "dataset/utils/multiple_choice.py")
        self.choice.get_dimension_rating = lambda path: None
        self.yorn = self.module("vlmeval.dataset.utils.yorn", "dataset/utils/yorn.py")
        self.vqa = self.module("vlmeval.dataset.utils.vqa_eval", "dataset/utils/vqa_eval.py")
        self.videos = self.module("vlmeval.dataset.utils.videomme", "dataset/utils/videomme.py")
        self.videos.get_dimension_rating = lambda path: None
        self.image_vqa = self.module("vlmeval.dataset.image_vqa", "dataset/image_vqa.py")
        self.image_mcq = self.module("vlmeval.dataset.image_mcq", "dataset/image_mcq.py")
        self.image_vqa.tqdm = lambda items, **_: items
        self.videomme = self.module("vlmeval.dataset.videomme", "dataset/videomme.py")

    def _dump(self, data: Any, path: str) -> None:
        self.dumped = self.dumped if data is None else data

    def module(self, name: str, path: str) -> Any:
        """A module from its file."""
        spec = importlib.util.spec_from_file_location(name, self.folder / "vlmeval" / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def choices(self, rows: list[Any], name: str) -> list[tuple[str | None, float]]:
        """By `mcq_vanilla_eval` without a judge, and `prefetch_answer`, which is what it reads first."""
        letters = "ABCDEFGHIJ"
        items = [
            {**dict.fromkeys(letters), **columns, "index": place, "question": "", "prediction": text}
            for place, (columns, text) in enumerate(rows)
        ]
        self.table = None
        data = self.frame(items)
        scored = self.choice.mcq_vanilla_eval(None, data.copy(), data.copy(), 1, "/nonexistent/result.pkl", name)
        if "MMMU" in name:
            data = self.choice.MMMU_preproc(data)
        read = [self.choice.prefetch_answer(data.iloc[place]) or None for place in range(len(data))]
        return list(zip(read, map(float, scored["hit"]), strict=True))

    def pro_cot(self, rows: list[Any]) -> list[tuple[str | None, float]]:
        """MMMU-Pro, step by step."""
        shorten = self.image_mcq.MMMUProDataset.cot_postproc
        return self.choices([(columns, shorten(None, text)) for columns, text in rows], "MMMU_Pro_10c_COT")

    def evaluated(self, rows: list[Any], evaluate: Any, score: Any) -> list[tuple[str | None, float]]:
        """By a data set's `evaluate` of a table with one row, which does not tell what it read."""
        found = []
        for columns, text in rows:
            row = {"index": 0, "question": "", "category": "c", "candidates": "[]", **columns, "prediction": text}
            self.table = self.frame([row])
            result = evaluate("file.tsv", model="exact_matching")
            found.append((None, float(score(result))))
        return found

    def lines(self, rows: list[Any], method: str, name: str) -> list[tuple[str | None, float]]:
        """By `process_line` and `hit_calculate`."""
        results = [self.vqa.process_line({**columns, "prediction": text}, method=method) for columns, text in rows]
        hits = self.vqa.hit_calculate(results, name)
        return [(each["pred"], float(hit)) for each, hit in zip(results, hits, strict=True)]

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read and the score of each row."""
        if kind == "multiple_choice":
            return self.choices(rows, "MMStar")
        if kind in ("mmmu", "mmmu_pro"):
            return self.choices(rows, "MMMU_DEV_VAL" if kind == "mmmu" else "MMMU_Pro_10c")
        if kind == "mmmu_pro_cot":
            return self.pro_cot(rows)
        if kind in ("mme_realworld", "video_mme"):
            evaluate = {"mme_realworld": self.image_mcq.MMERealWorld, "video_mme": self.videomme.VideoMME}[
                kind
            ].evaluate
            return self.evaluated(rows, evaluate, lambda _: self.dumped["score"][0])
        if kind == "yes_no":
            read = [self.yorn.YOrN_Extraction(text) for _, text in rows]
            return [
                (None if said == "Unknown" else said, float(said == columns["answer"]))
                for said, (columns, _) in zip(read, rows, strict=True)
            ]
        if kind in ("vqa_accuracy", "anls", "relaxed", "exact"):
            methods = {"vqa_accuracy": ("vqa_score", "TextVQA_VAL"), "anls": ("anls", "DocVQA_VAL")}
            methods |= {"relaxed": ("relaxed_accuracy", "ChartQA_TEST"), "exact": ("accuracy", "OCRVQA_TESTCORE")}
            return self.lines(rows, *methods[kind])
        if kind == "contains":
            return self.evaluated(rows, self.image_vqa.MTVQADataset.evaluate, lambda found: found["Average"] / 100)
        if kind == "ocrbench":
            return self.evaluated(rows, self.image_vqa.OCRBench.evaluate, lambda found: found["Final Score"])
        evaluate = partial(self.image_vqa.CountBenchQA.evaluate, None)
        return self.evaluated(rows, evaluate, lambda _: self.dumped["accuracy"][0] / 100)


def write(path: Path, published: Published, rows: Any, more: dict[str, Any], note: str) -> None:
    """Writes what is read of each row and its score, and more.

    Args:
        path: The file, which is not there yet.
        published: VLMEvalKit's functions.
        rows: Makers of rows by their kinds.
        more: What else the file has.
        note: What it says of itself.
    """
    found = []
    for kind, make in rows.items():
        made = make()
        for (columns, text), (read, score) in zip(made, published.frozen(kind, made), strict=True):
            found.append([kind, columns, text, read, score])
    fields = ["kind", "columns", "text", "read", "score"]
    whole = {"note": " ".join(note.split()), "fields": fields, "answers": found, **more}
    path.write_bytes(gzip.compress(json.dumps(whole, ensure_ascii=False).encode(), mtime=0))
    print(len(found), path.stat().st_size)


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    write(PATH, Published(Path(sys.argv[1])), ROWS, {}, __doc__ or "")


if __name__ == "__main__":
    main()
