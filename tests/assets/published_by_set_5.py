"""Rows of documents, charts, driving and long contexts, for `make_published_by_set`, and VLMEvalKit's own classes.

The scripts' environment also needs Levenshtein, nltk, rouge-score and Pillow. As elsewhere, words of Chinese are
characters, and METEOR has no synonyms.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import tempfile
import types
from functools import partial
from pathlib import Path
from typing import Any

import PIL.Image  # before it is emptied
import PIL.PngImagePlugin
from make_published_answers import Empty, Published, cut
from make_published_by_set import NUMBER, filled

PATH = Path(__file__).resolve().parent / "published_by_set_5.json.gz"
TABLES = """
    {t}|```csv\\n{t}\\n```|```\\n{t}```|{u}||The table:{t}|{T}|{t}{t}|{v}|{w}
"""
OPTION = """
    {t}|{t}.|[{t}]|'{t}'|The correct answer is: {t}|**{t}**|{t} and {u}|{u}|{T}|It is {t}|||{t}', '{u}|{t};|no {u}, {t}
"""
NUMBERED = """
    {t}|No.{t}|The light corresponds to No.{t}.|The number corresponding to it is {t}|{u}/{t}|{t}/{u}|none|{u} or {t}
    corresponds to nothing||-{t}|It is {t}
"""
BOXED = """
    [{b}]|[{c}]|The box is [{b}].|[{b}] or [{c}]|{b}|[a1, b2, c3, d4]|[0.1, 0.2, 0.3, 0.4]|[10,20,30]||no box|[{b}
"""
SPEEDS = "[{t}]|[{u}]|From [{t}].|[{t}] or [{u}]|{t}||[ {t} ]|[{t}, 3]|The limits: [{u}]|no limit"
SAID = """
    {t}|Answer: {t}|answer:{t}|The answer is {t}|The answer is ({t}).|{u}|Answer: {u}\\nAnswer: {t}|label: {t}
    {T}||Summary: {t}|Yes, {t}|No|yes, or no|I see [{t}, {u}]|[{t}]|[{t}, "x"]|{t} {u}|the {t}.|1|0
    Answer:\\n\\n{t}|A, or {t}
"""
POINTS = """
    [{{"point_2d": [{x}, {y}], "label": "a"}}]|```json\\n[{{"point_2d": [{x}, {y}]}}]\\n```|({x}, {y})
    ({x}, {y}, {p}, {q})
    [{{"point_2d": [{x}, {y}]}}, {{"point_2d": [{p}, {q}]}}]|{{"point": [{x}, {y}]}}|The point is ({x}, {y}).||[]|none
    [{{'point_2d': ({x}, {y})}}]|[{{"point_2d": ["a", 2]}}]|({x},{y}) and ({p},{q})|[{x}, {y}]|({p}, {q}, {x}, {y})
    ({x})
    [{{"point_2d": [{x}, {y}, 3]}}]|```\\n[{{"point_2d": [{p}, {q}]}}]```|(0.2, 0.3)|(0.1, 0.1, 0.6, 0.5)
"""
READ = """
    {t}|{u}|{t} {u}||The text: {t}|{T}|{s}|*{t}*|{t}\\n{u}|({s})|\\text{{{t}}}|{t}-{u}
"""
LETTERED = "{L}|({L})|{L}. cat| ({L}) cat|The answer is ({L})|{l}|({M}) or ({L})|||cat|{M}{L}|\\n({L})|[{L}]|Z|**{L}**"
WILD = """
    {t}|{T}|Answer: {t}|{t}.|{u}|{t} {u}|{t}%||true|False|{t}||{u}|The answer is {t}|{u}|{t} million|{v}
"""
CHART = [
    r"Year\tSales\tCost\n2019\t10%\t5\n2020\t12\t-3",
    r"Name \t Share \nA\t $3.50\nB\t4",
    r"x\ty\na\tb\nc\td",
    r"Only",
    r"k\tv\nNorth\t1e3\n\nSouth\t0",
]
PLACES = ["Vehicle_Recognition", "VRU_Recognition", "Obstruction_Recognition"]
OPTIONS = "Which? Choose from ['Sunny', 'Heavy rain', 'Rain']"
WORDS = "the red house|a dog|12|twelve|Paris, France|sub_em|北京大学|42|3|label".split("|")


def tables(draw: random.Random) -> Any:
    """A row of ChartX that asks for a table."""
    right = draw.choice(CHART)
    other = draw.choice(CHART)
    near = draw.choice([right, right.replace("5", "6", 1), right.replace("A", "a"), right.rpartition(r"\n")[0]])
    values = {"t": near, "u": other, "T": near.upper().replace("\\T", "\\t").replace("\\N", "\\n")}
    values |= {"v": right.replace("%", "").replace("$", ""), "w": right.replace("-3", "-7")}
    return {"question": "q", "category": "structure", "answer": right}, values


def driven(draw: random.Random) -> Any:
    """A row of VLADBench with options."""
    task = draw.choice(["Weather", "Traffic_Light", "Risk_Prediction", "Lane_Change_Relation", "VRU_Cutin", "Lateral"])
    right, other = draw.sample(["Sunny", "Heavy rain", "Rain"], 2)
    question = OPTIONS
    if task in ("Risk_Prediction", "VRU_Cutin") and draw.random() < 0.6:
        right, other, question = *draw.sample(["Yes", "No"], 2), "Is it? [Yes, No]"
    columns = {"category3": task, "dindex": "1", "question": question, "answer": right, "dimension": "[100, 50]"}
    return columns, {"t": draw.choice([right, right, other]), "u": other, "T": right.upper()}


def numbered(draw: random.Random) -> Any:
    """A row of VLADBench with numbers of lanes."""
    right = draw.choice(["1", "2/3", "-1", "4"])
    task = draw.choice(["Sign_Sign_Relation", "Sign_Lane_Relation", "Light_Lane_Relation"])
    columns = {"category3": task, "dindex": "1", "question": "Which?", "answer": right, "dimension": "[100, 50]"}
    return columns, {"t": draw.choice([right, right.split("/")[0], "2"]), "u": draw.choice("39")}


def placed(draw: random.Random) -> Any:
    """A row of VLADBench with a box."""
    box = [draw.randint(0, 40), draw.randint(0, 20), draw.randint(50, 99), draw.randint(25, 49)]
    scaled = [10 * box[0], 20 * box[1], 10 * box[2], 20 * box[3]]
    near = [side + draw.choice([0, 0, 5, -5, 60]) for side in scaled]
    near = near if draw.random() < 0.8 else [side / 1000 for side in near]
    columns = {"category3": draw.choice(PLACES), "dindex": "1", "question": "Where is it located in the image?"}
    columns |= {"answer": str(box), "dimension": "[100, 50]"}
    return columns, {"b": ", ".join(map(str, near)), "c": "0, 0, 10, 10"}


def speeds(draw: random.Random) -> Any:
    """A row of VLADBench with the limits of speed."""
    right = draw.choice(["60, 80", "-1, 100", "0, 40"])
    said = draw.choice([right, right, right.replace("0", "5", 1), "60, 100"])
    columns = {"category3": "Lane_Speed_Relation", "dindex": "1", "question": "Which?", "answer": f"[{right}]"}
    return columns | {"dimension": "[100, 50]"}, {"t": said, "u": "1, 2"}


def driving() -> list[Any]:
    """Rows of all kinds of VLADBench."""
    kinds = ((OPTION, driven, 3), (NUMBERED, numbered, 1), (BOXED, placed, 1), (SPEEDS, speeds, 1))
    rows = [row for forms, make, share in kinds for row in filled(make.__name__, forms, make)[: NUMBER * share // 6]]
    return rows[:NUMBER]


def contexts(draw: random.Random) -> Any:
    """A row of MMLongBench without a judge."""
    task, source, right = draw.choice(
        [
            ("vrag", "infoseek", ["Paris", "12"]),
            ("vrag", "viquae", [["the red house"], ["a dog"]]),
            ("NIAH", "vh_single", "yes"),
            ("NIAH", "vh_multi", "no"),
            ("NIAH", "mm_niah_counting-image", [1, 2]),
            ("NIAH", "mm_niah_counting-text", [42, 3]),
            ("NIAH", "mm_niah_retrieval-image", 0),
            ("NIAH", "mm_niah_reasoning-text", "a dog"),
            ("ICL", "cars196", 42),
            ("summ", "gov-report", "The houses are red.\nDogs were running quickly in Paris."),
        ]
    )
    said = draw.choice([*WORDS, *(str(item) for item in (right if isinstance(right, list) else [right]))])
    said = "B" if task == "NIAH" and "image" in source and draw.random() < 0.5 else said
    said = draw.choice(["A dog ran in Paris.\nHouse is red.", str(right)]) if task == "summ" else said
    extra = json.dumps({"answer": right})
    columns = {"task": task, "source_dataset": source, "extra_info": extra, "answer": str(right)}
    columns |= {"index": str(draw.randint(0, 7)), "question": "q"}
    return columns, {"t": said, "u": draw.choice(WORDS), "T": said.upper()}


def pointed(draw: random.Random) -> Any:
    """A row of RefSpatial-Bench, whose region is a box."""
    width, height = draw.choice([(40, 30), (64, 48)])
    left, top = draw.randint(0, 10), draw.randint(0, 8)
    box = [left, top, left + draw.randint(5, 20), top + draw.randint(4, 15)]
    row = "".join("1" if box[0] <= x < box[2] else "0" for x in range(width))
    flat = "".join(row if box[1] <= y < box[3] else "0" * width for y in range(height))
    runs, last = [0], "0"
    for pixel in flat:
        runs += [0] if pixel != last else []
        runs[-1] += 1
        last = pixel
    runs = runs[:-1] if last == "0" else runs
    x, y, p, q = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2, *draw.choice([(3, 2), (30, 25), (900, 700)]))
    scale = draw.choice([(1000 / width, 1000 / height), (1 / width, 1 / height), (1, 1), (30, 40)])
    x, y = round(x * scale[0], 3), round(y * scale[1], 3)
    columns = {"category": draw.choice(["location", "placement"]), "question": "q"}
    return columns | {"answer": f"{width}x{height} {' '.join(map(str, runs))}"}, {"x": x, "y": y, "p": p, "q": q}


def pages(draw: random.Random) -> Any:
    """A row of Ocean-OCR's benchmark."""
    kind = draw.choice(["document_en", "document_zh", "scene_text_rec", "handwritten_en", "handwritten_zh"])
    texts = ["The first line.\nA second one", "OPEN (24) hours, daily", "one two three four five"]
    texts = ["北京大学，1898年", "大学 mixed 文字"] if kind.endswith("zh") else texts
    right, other = draw.choice(texts), draw.choice(texts)
    near = draw.choice([right, right[2:], right.replace("e", "o", 2)])
    words = right.split()
    draw.shuffle(words)
    answer = json.dumps([{"from": "human", "value": "q"}, {"from": "gpt", "value": right}], ensure_ascii=False)
    values = {"t": near, "u": other, "T": near.upper(), "s": " ".join(words)}
    return {"id": kind, "answer": answer}, values


def lettered(draw: random.Random) -> Any:
    """A row of M4Bench."""
    right, other = draw.sample("ABCD", 2)
    columns = {"query": "Which?\n(A) cat\n(B) dog\n(C) red\n(D) two", "answer": right}
    said = draw.choice([right, right, other])
    return columns, {"L": said, "l": said.lower(), "M": other}


def wild(draw: random.Random) -> Any:
    """A row of WildDoc."""
    name = draw.choice(["DocVQA", "ChartQA", "fintabnetqa", "vtabfact", "vwtq", "vwtq_syn"])
    right = {
        "DocVQA": draw.choice(["['Main street 5', 'Main St. 5']", "12.5"]),
        "ChartQA": draw.choice(["12.5", "0", "Asia", "15%"]),
        "fintabnetqa": draw.choice(["$3,852 million", "October 31"]),
        "vtabfact": draw.choice("01"),
    }.get(name, draw.choice(["2004", "Freeman|Smith", "3 May 1999"]))
    index = f"{name}-1-2-3" if name in ("DocVQA", "ChartQA") else f"TableVQA-{name}-2-3"
    plain = right.strip("[]'").split("', '")[0]
    said = draw.choice([plain, plain, plain.replace("5", "6"), "Asia"])
    values = {"t": said, "T": said.upper(), "u": draw.choice(["13", "Main"]), "v": plain.replace("|", "||")}
    return {"index": index, "question": "q", "answer": right}, values


ROWS: dict[str, Any] = {
    "chart_tables": lambda: filled("chart_tables", TABLES, tables),
    "driving": driving,
    "long_contexts": lambda: filled("long_contexts", SAID, contexts),
    "page_reading": lambda: filled("page_reading", READ, pages),
    "pointing": lambda: filled("pointing", POINTS, pointed),
    "prefixed_letter": lambda: filled("prefixed_letter", LETTERED, lettered),
    "wild_documents": lambda: filled("wild_documents", WILD, wild),
}
ANSWERS = "['A long answer', 'short']"
PAIR = {"question": "Which?", "response": ANSWERS}
KNOWLEDGE = {"question": "What?", "images": "['a.png']", "outside_knowledge_images": "['b.png']", "choices": "[]"}
FOUR = {"system_prompt": "S", "task_prompt": "T <video>", "user_prompt": "U <image> u <video>", "format_prompt": "F"}
FILES = {"image_path": '[["a", "b", "c"], ["d", "e"]]', "ref_images": '["r"]', "video_fps": "2"}
# Set, module, class, columns and the number of pictures.
PROMPTS: list[tuple[str, str, str, dict[str, str], int]] = [
    ("VL-RewardBench", "vl_rewardbench", "VLRewardBench", PAIR, 1),
    ("VL-RewardBench", "vl_rewardbench", "VLRewardBench", {**PAIR, "response": "['one', 'four!']"}, 2),
    ("OceanOCRBench", "oceanocr", "OceanOCRBench", {}, 1),
    ("WildDoc", "image_vqa", "WildDocBenchmark", {"index": "DocVQA-1-2-3", "question": "What?"}, 1),
    ("WildDoc", "image_vqa", "WildDocBenchmark", {"index": "ChartQA-1-2-3", "question": "What?"}, 1),
    *(
        ("WildDoc", "image_vqa", "WildDocBenchmark", {"index": f"TableVQA-{split}-2-3", "question": "What?"}, 1)
        for split in ("fintabnetqa", "vtabfact", "vwtq", "vwtq_syn")
    ),
    ("VLADBench", "vladbench", "VLADBench", {"question": "What?"}, 2),
    ("State_Comparison", "m4bench", "M4Bench", {"query": "What?\n(A) cat"}, 2),
    ("Asclepius", "asclepius", "Asclepius", {"index": "7", "question": "What?"}, 2),
    ("Asclepius", "asclepius", "Asclepius", {"index": "2710", "question": "What?"}, 2),
    ("MOAT", "moat", "MOAT", KNOWLEDGE, 2),
    ("MOAT", "moat", "MOAT", {**KNOWLEDGE, "outside_knowledge_text": "Look."}, 2),
    ("RefSpatial", "refspatialbench", "RefSpatialBench", {"question": "Point at it."}, 1),
    ("MMLongBench_32K", "mmlongbench", "MMLongBench", {"question": "See <image> and <image>: what?"}, 3),
    ("MMLongBench_32K", "mmlongbench", "MMLongBench", {"question": "What?"}, 2),
    ("MemLens_32K", "memlens", "MemLens", {"question": "See <image> and <image token> what?"}, 2),
    ("SiteBenchVideo_32frame", "sitebench", "SiteBenchVideo", {"question": "What?", "candidates": "['a', 'b']"}, 2),
    ("MMSIVideoBench_300frame", "mmsibench", "MMSIVideoBench", {**FOUR, **FILES}, 6),
]
TOTALS = ([5], [17, 3], [400, 1], [1, 1, 1], [120])
CHOICES = ((3, 0), (8, 0), (64, 0), (300, 0), (0, 1.0), (0, 0.5), (0, 2.0))


class WithFiles(Published):
    """VLMEvalKit's classes of these sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        listed = sys.modules["vlmeval.smp"]
        listed.toliststr = lambda cell: __import__("ast").literal_eval(cell) if str(cell).startswith("[") else [cell]
        listed.misc = types.SimpleNamespace(toliststr=listed.toliststr)
        for name in ("decord", "torch"):
            sys.modules[name] = Empty(name)
        for name in ("image_base", "image_mcq", "image_vqa", "video_base"):
            sys.modules.setdefault(f"vlmeval.dataset.{name}", types.ModuleType(name))
        sys.modules["vlmeval.smp.status_report"] = Empty("vlmeval.smp.status_report")
        base = self.module("vlmeval.dataset.image_base", "dataset/image_base.py").ImageBaseDataset.build_prompt
        self.image_vqa.ImageBaseDataset.build_prompt = base
        sys.modules["tqdm"].tqdm = lambda items, **_: items
        for name in ("tablevqabench", "chartx_eval", "mmlongbench_judge_prompt", "mmlongbench_metrics"):
            self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")
        place = "dataset/utils/spatial_bench/tools/utils.py"
        self.points = self.module("vlmeval.dataset.utils.spatial_bench.tools.utils", place)
        self.own = {}
        for name in "chartx oceanocr vl_rewardbench vladbench m4bench asclepius moat refspatialbench".split():
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
        for name in "memlens_utils".split():
            self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py")
        for name in "mmlongbench memlens sitebench mmsibench".split():
            self.own[name] = self.module(f"vlmeval.dataset.{name}", f"dataset/{name}.py")
        self.own["image_vqa"] = self.image_vqa
        for module in self.own.values():
            module.toliststr = listed.toliststr
        PIL.Image.preinit = PIL.Image.init = lambda: None
        jieba = types.ModuleType("jieba")
        jieba.lcut = list  # words of Chinese are characters
        sys.modules["jieba"] = jieba
        meteor = importlib.import_module("nltk.translate.meteor_score")
        meteor.meteor_score = partial(meteor.meteor_score, wordnet=types.SimpleNamespace(synsets=lambda _: []))

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """The score of each row, which a rule reads: the file says that no judge is asked."""
        read = "rule" if kind in ("chart_tables", "long_contexts") else None
        return [(read, float(getattr(self, kind)(columns, text))) for columns, text in rows]

    def chart_tables(self, columns: dict[str, str], text: str) -> float:
        """By `get_eval_list`, with the tolerance that is called strict."""
        module = sys.modules["vlmeval.dataset.utils.chartx_eval"]
        (score,) = module.get_eval_list([text], [columns["answer"]], tol_word=0, tol_num=0)
        return score

    def driving(self, columns: dict[str, str], text: str) -> float:
        """By the function of the task; of statements either number."""
        module = self.own["vladbench"]
        sample = {"reference": [columns["answer"]], "prediction": [text], "questions": [columns["question"]]}
        sample["dimension"] = [[100, 50]]
        with_yes = {**sample, "reference": ["yes"], "prediction": ["-"]}
        judged = columns["category3"] in ("Risk_Prediction", "VRU_Cutin")
        function = module.func_mapping[columns["category3"]]
        _, right, _, other = function([sample, with_yes] if judged else [sample], None)
        if judged and columns["answer"].lower() in ("yes", "no"):
            return 2 * other
        return right

    def long_contexts(self, columns: dict[str, str], text: str) -> float:
        """By `_score_one`."""
        module = self.own["mmlongbench"].MMLongBench
        metric, _, scores = module._score_one({**columns, "prediction": text}, int(columns["index"]))
        return scores.get(module._score_key_for(metric), 0.0)

    def page_reading(self, columns: dict[str, str], text: str) -> float:
        """1 − the edit distance of `doc_text_eval`."""
        return 1 - self._page(columns, text)["edit_dist"]

    def _page(self, columns: dict[str, str], text: str) -> dict[str, float]:
        right = json.loads(columns["answer"])[1]["value"]
        return self.own["oceanocr"].doc_text_eval(columns["id"], [{"label": right, "answer": text}])

    def pointing(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`, with the mask in a file."""
        size, *runs = columns["answer"].split()
        width, height = map(int, size.split("x"))
        flat = bytearray()
        for number, run in enumerate(map(int, runs)):
            flat += (b"\xff" if number % 2 else b"\0") * run
        flat += b"\0" * (width * height - len(flat))
        module = self.own["refspatialbench"]
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/mask.png"
            PIL.Image.frombytes("L", (width, height), bytes(flat)).save(path)
            row = {"index": 0, **columns, "mask_path": path, "prediction": text}
            module.load = lambda _: self.frame([row])
            module.dump = lambda *_: None
            files = types.ModuleType("files")
            files.build_eval_paths = lambda *_, **__: (f"{folder}/a", f"{folder}/b.xlsx", f"{folder}/c.tsv")
            sys.modules["vlmeval.dataset.utils.spatial_bench.tools.files"] = files
            self.points.Point2DParser.logger = types.SimpleNamespace(info=lambda _: None)
            module.Point2DParser, module.Image = self.points.Point2DParser, PIL.Image
            made = module.RefSpatialBench.__new__(module.RefSpatialBench)
            return module.RefSpatialBench.evaluate(made, "file.tsv")["overall"]

    def prefixed_letter(self, columns: dict[str, str], text: str) -> float:
        """By `evaluate`, without a judge."""
        module = self.own["m4bench"]
        module.load = lambda _: self.frame([{**columns, "response": columns["answer"], "prediction": text}])
        module.dump, module.get_intermediate_file_path = (lambda *_: None), (lambda *_: "x")
        made = module.M4Bench.__new__(module.M4Bench)
        return made.evaluate("State_Invariance.tsv")["acc"] / 100

    def wild_documents(self, columns: dict[str, str], text: str) -> float:
        """By `process_line_WildDoc` and `hit_calculate`, or the functions of the split of a table."""
        name, split = columns["index"].split("-")[:2]
        if name != "TableVQA":
            method = {"DocVQA": "anls", "ChartQA": "relaxed_accuracy"}[name]
            line = self.vqa.process_line_WildDoc({**columns, "prediction": text}, method=method)
            return self.vqa.hit_calculate([line], name)[0]
        module = sys.modules["vlmeval.dataset.utils.tablevqabench"]
        kind = {"fintabnetqa": "evaluate_fintabnet", "vtabfact": "evaluate_tabfact"}.get(split, "evaluate_wtq")
        rows = [{"answer": columns["answer"], "prediction": text.removeprefix("Answer: ")}]
        getattr(module, kind)(rows, ["accuracy"])
        return rows[0]["scores"]["accuracy"] or 0

    def more(self) -> dict[str, Any]:
        """Prompts, texts of pages compared in other ways, and the frames that are chosen."""
        pages = [(columns, text) for columns, text in ROWS["page_reading"]() if text.strip()][:100]
        readings = [[columns, text, self._page(columns, text)] for columns, text in pages]
        found = {"prompts": self.prompts(), "readings": readings, "frames": self.frames()}
        return {**found, "driving": self.driving_report(), "documents": self.documents_report()}

    def driving_report(self) -> Any:
        """Rows of all tasks of VLADBench, eight a task and four a scene, and the scores of `get_scores`."""
        module, draw, rows = self.own["vladbench"], random.Random("report"), []
        for task, function in module.func_mapping.items():
            name = function.__name__.partition("_")[0]
            makes = {"Grounding": (BOXED, placed), "Relation": (NUMBERED, numbered), "RoadSpeed": (SPEEDS, speeds)}
            forms, make = makes.get(name, (OPTION, driven))
            for place in range(8):
                columns, values = make(draw)
                if name == "Judge" and place % 2:
                    columns |= {"question": "Is it? [Yes, No]", "answer": "Yes"}
                    values["t"] = draw.choice(["Yes", "No"])
                text = draw.choice(cut(forms)).format(**values)
                rows.append([{**columns, "category3": task, "dindex": str(place // 4)}, text])
        module.load = lambda _: self.frame([{**columns, "prediction": text} for columns, text in rows])
        made = module.VLADBench.__new__(module.VLADBench)
        table = made.get_scores("qwen_VLADBench.tsv")  # it fails for most other names
        return [rows, [[str(task), float(score)] for task, score in zip(table["Task"], table["qwen"], strict=True)]]

    def documents_report(self) -> Any:
        """Rows of WildDoc, each question of four photographs, and the numbers of `evaluate`."""
        module, draw, rows = self.image_vqa, random.Random("documents"), []
        names = [
            "DocVQA-1",
            "ChartQA-1",
            *(f"TableVQA-{split}" for split in ("fintabnetqa", "vtabfact", "vwtq", "vwtq_syn")),
        ]
        for name in names:
            for question in range(6):
                right = "1" if "vtabfact" in name else draw.choice(["12", "Main street", "3"])
                for photograph in range(4):
                    said = draw.choice([right] * 7 + ["Asia"])
                    said = {"1": "True", "Asia": "False"}.get(said, said) if "vtabfact" in name else said
                    rows.append([f"{name}-{photograph}-{question}", {"question": "q", "answer": right}, said])
        table = [{"index": index, **columns, "prediction": text} for index, columns, text in rows]
        module.load, module.dump = (lambda _: self.frame(table)), (lambda *_: None)
        module.get_intermediate_file_path = lambda *_: "x"
        module.pd = sys.modules["pandas"]
        pool = types.SimpleNamespace(map=lambda function, lines: [function(line) for line in lines])
        module.mp = types.SimpleNamespace(Pool=lambda _: pool)
        made = module.WildDocBenchmark.__new__(module.WildDocBenchmark)
        found = made.evaluate("file.tsv")
        return [rows, [[task, metric, float(score)] for task, metric, score in found.itertuples(index=False)]]

    def prompts(self) -> list[Any]:
        """Of each row the parts, with pictures as ``<0>``, ``<1>``, …"""
        found = []
        for name, module, kind, columns, size in PROMPTS:
            owner = getattr(self.own[module], kind)
            made = owner.__new__(owner)
            names = [f"<{place}>" for place in range(size)]
            made.meta_only, made.img_root, made.IMAGE_DIR, made.dataset_name = False, "", "", name
            made.dump_image = lambda _, names=names: names
            row: dict[str, Any] = {"index": "0", **columns}
            self._dress(kind, made, row, names)
            parts = [part["value"] for part in made.build_prompt(self.frame([row]).iloc[0], **row.pop("_options", {}))]
            found.append([name, {key: value for key, value in columns.items() if key not in FILES}, size, parts])
            if kind == "MMSIVideoBench":
                found[-1][1]["shown_frames"] = "[3, 2]"
        return found

    def _dress(self, kind: str, made: Any, row: dict[str, Any], names: list[str]) -> None:
        """Gives a class the pictures of a row as it wants them."""
        module = sys.modules[type(made).__module__]
        if kind == "VLADBench":
            row["image"] = str(names)
        elif kind == "M4Bench":
            row |= {"image1": "x", "image2": "x", "image1_path": names[0], "image2_path": names[1]}
            module.osp = types.SimpleNamespace(join=lambda _, name: name, exists=lambda _: True)
        elif kind == "Asclepius":
            row |= {"image": "x", "image_2": "x"}
            module.osp = types.SimpleNamespace(join=lambda *parts: f"<{int(parts[-1].rpartition('_')[2][0]) - 1}>")
            module.decode_base64_to_image_file, module.LMUDataRoot = (lambda *_: None), (lambda: "")
        elif kind == "MOAT":
            row |= {"images": str(names[:1]), "outside_knowledge_images": str(names[1:])}
            row.setdefault("outside_knowledge_text", float("nan"))
        elif kind in ("MMLongBench", "MemLens"):
            row["image_path"] = str(names)
        elif kind == "SiteBenchVideo":
            row["video"] = "v"
            made.save_video_frames = lambda *_: (names, [], {})
            row["_options"] = {"video_llm": False}
        elif kind == "MMSIVideoBench":
            row |= {"image_path": str([names[:3], names[3:5]]), "ref_images": str(names[5:]), "video_fps": 2.0}
            made.nframe, made.fps = 300, -1

    def frames(self) -> list[Any]:
        """The frames of lists that are chosen, by count or frames per second, of lists at 2 a second."""
        owner = self.own["mmsibench"].MMSIVideoBench
        found = []
        for lengths in TOTALS:
            lists = [[f"{video}-{frame}" for frame in range(length)] for video, length in enumerate(lengths)]
            for count, fps in CHOICES:
                made = owner.__new__(owner)
                made.nframe, made.fps = count, fps or -1
                found.append([count, fps, lengths, made.save_video_frames(lists, 2.0)])
        return found


PUBLISHED = WithFiles
