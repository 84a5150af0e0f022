r"""Made ``published_letters.json.gz``: what VLMEvalKit's own modules say of answers to sets with rules of their own.

    python tests/assets/make_published_letters.py FOLDER_OF_VLMEVALKIT

As ``make_published_answers.py``, whose forms of answers these are. ``sets`` has whole sets with the numbers that their
classes report. The file was made once; it is not made again.
"""

from __future__ import annotations

import random
import sys
import types
from functools import partial
from pathlib import Path
from typing import Any

from make_published_answers import YES_NO, Published, choices, cut, write

PATH = Path(__file__).resolve().parent / "published_letters.json.gz"
NUMBER = 300
ANSWERED = """
    Answer: {L}|answer: {l}|Answer : {L}.|**Answer: {L}**|Answer: ${L}$|Answer: ({L})|The answer is {L}.|{L}|{t}
    Answer: {M}\\nNo. Answer: {L}|Answer: {L}{M}|Final answer:{L}|answers: {L}|It is {t}.\\nAnswer: {L}|Answer: {t}
    So the answer: {L}, I think||Answer:|Answer:\\n{L}|answer: a dog
"""
COUNTED = """
    {t}|{t}.|There are {t} of them|{u}|1{t}|{t} or {u}|{T}|twenty-one|None|I count {t}|21|3.5|two dogs and {t} cats
    a few|twenty|seventeen|{t}th|-{t}||x{t}
"""
LETTERS = "A|B|A.|(B)|The answer is B|Option A|a man, so B|B. cat|A or B||C"
SPLITS = [
    ("multi_lan_ocr", "French"),
    ("multi_lan_ocr", "Arabic"),
    ("multi_lan_ocr", "Japanese"),
    ("multi_scene_ocr", "IC15"),
    ("multi_scene_ocr", "zh_scene"),
]
TEXTS = [
    "Total: 3,50 EUR",
    "EXIT\nno entry",
    "le café est fermé",
    "مرحبا بالعالم",
    "東京 タワー",
    "A-1 B/2 (c)",
    "stop",
    "o o o p",
]
GROUPS = {
    "General": ["SEEDBench", "MMStar", "A-OKVQA", "VizWiz", "MMVet", "VQAv2", "OKVQA"],
    "Reasoning": ["MMMU", "MathVista", "ScienceQA", "RealWorldQA", "GQA", "MathVision"],
    "OCR": ["TextVQA", "OCRVQA"],
    "Doc & Chart": ["AI2D", "ChartQA", "DocVQA", "InfoVQA", "TableVQABench"],
}


def puzzles(seed: str, forms: str, quoted: bool) -> list[tuple[dict[str, str], str]]:
    """Rows with a list of options, and answers."""
    draw, shapes = random.Random(seed), cut(forms)
    rows = []
    for place in range(NUMBER):
        texts = draw.choice([["red", "blue", "green", "black"], ["1", "2", "3", "4"], ["cat", "dog", "red", "7"]])
        first, second = draw.sample(range(4), 2)
        values = {"L": "ABCD"[first], "l": "abcd"[first], "M": "ABCD"[second], "t": texts[first]}
        right = draw.choice([first, first, second])
        listed = "[" + " ".join(map(repr, texts)) + "]" if quoted else repr(texts)
        columns = {"options": listed, "answer": "ABCD"[right] if quoted else texts[right]}
        if quoted and place % 5 == 0:
            del columns["options"]
        rows.append((columns, shapes[place % len(shapes)].format(**values)))
    return rows


def either(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of NaturalBench, and answers."""
    draw = random.Random(seed)
    shapes = {
        "yes_no": cut(YES_NO),
        "multiple_choice": cut(LETTERS),
    }
    rows = []
    for place in range(NUMBER):
        kind = draw.choice(list(shapes))
        text = shapes[kind][place % len(shapes[kind])].format(t="dog")
        rows.append(({"type": kind, "answer": draw.choice(["Yes", "No"] if kind == "yes_no" else ["A", "B"])}, text))
    return rows


def counts(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of TallyQA, and answers."""
    known = {"0": "0", "3": "three", "5": "Five", "10": "10", "2": "two", "17": "seventeen", "20": "20"}
    draw, shapes = random.Random(seed), cut(COUNTED)
    rows = []
    for place in range(NUMBER):
        right, other = draw.sample(list(known), 2)
        said = known[draw.choice([right, right, other])]
        text = shapes[place % len(shapes)].format(t=said, T=said.upper(), u=known[other])
        rows.append(({"answer": right}, text))
    return rows


def spatial(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of benchmarks of spatial understanding, and answers, some of which are long or have thoughts."""
    draw = random.Random(seed)
    rows = []
    for columns, text in choices(seed, 6):
        said = draw.choice(
            [
                "{}",
                "{}",
                "<think>A or B?</think>{}",
                "<think>So {}</think>",
                "Option A: x\n{}",
                "{}\n\nI am sure.",
                "So <answer>{}</answer>",
            ]
        )
        rows.append((columns, said.format(text) + draw.choice(["", "", "\u200b", "\n所以选 C。"])))
    return rows


def transcriptions(seed: str) -> list[tuple[dict[str, str], str]]:
    """Rows of CC-OCR, and answers."""
    draw = random.Random(seed)
    rows = []
    for place in range(NUMBER):
        category, split = draw.choice(SPLITS)
        right = draw.choice(TEXTS)
        words = right.split(" ")
        draw.shuffle(words)
        said = [
            right,
            right.upper(),
            " ".join(words),
            " ".join(words[: draw.randint(0, len(words))]),
            draw.choice(TEXTS),
        ]
        text = draw.choice(["{}", "{}\n", "The text: {}", "```\n{}\n```", "### {}", "***{}***", "{} {}", " {} . "])
        chosen = said[place % len(said)]
        rows.append(({"category": category, "split": split, "answer": right}, text.format(chosen, chosen)))
    return rows


ROWS = {
    "transcription": lambda: transcriptions("transcription"),
    "spatial": lambda: spatial("spatial"),
    "vmc_bench": lambda: choices("vmc_bench", 9),
    "visual_puzzles": lambda: puzzles("visual_puzzles", ANSWERED, quoted=True),
    "puzzle_vqa": lambda: puzzles("puzzle_vqa", ANSWERED, quoted=False),
    "natural_bench": lambda: either("natural_bench"),
    "tally_qa": lambda: counts("tally_qa"),
}


class Letters(Published):
    """VLMEvalKit's functions for these sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        names = ("vmcbench", "visualpuzzles", "puzzlevqa", "naturalbench", "tallyqa")
        sys.modules["tqdm"].tqdm = lambda items, **_: items
        self.image_mcq.load = lambda path: (self.dumped if "_result" in path else self.table).copy()
        self.choice.load = lambda _: {}  # there are no earlier results
        words = sys.modules.setdefault("num2words", types.ModuleType("num2words"))
        words.num2words = lambda number, lang: f"number {number}"  # type: ignore[attr-defined]
        self.spatially = self.module(
            "vlmeval.dataset.utils.spatial_bench.matching_func", "dataset/utils/spatial_bench/matching_func.py"
        )
        self.ocr = self.module(
            "vlmeval.dataset.utils.ccocr_evaluator.ocr_evaluator", "dataset/utils/ccocr_evaluator/ocr_evaluator.py"
        )
        self.own = {name: self.module(f"vlmeval.dataset.utils.{name}", f"dataset/utils/{name}.py") for name in names}

    def frozen(self, kind: str, rows: list[Any]) -> list[tuple[str | None, float]]:
        """What is read and the score of each row."""
        return [getattr(self, kind)(columns, text) for columns, text in rows]

    def vmc_bench(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """Draws nothing: what it would draw from is empty."""
        module = self.own["vmcbench"]
        module.random.choice = lambda _: None
        letters = [letter for letter in "ABCDEFGHI" if letter in columns]
        read = module.parse_multi_choice_response(text, letters, {letter: columns[letter] for letter in letters})
        return read, float(read == columns["answer"])

    def visual_puzzles(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `VisulPuzzles_acc` compares."""
        read = self.own["visualpuzzles"].extract_answer(text)
        return (None if read == "Z" else read.upper()), float(read.lower() == columns["answer"].lower())

    def puzzle_vqa(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `PuzzleVQA_acc` compares."""
        module = self.own["puzzlevqa"]
        items = columns["options"].strip("[]").replace("'", "").split(", ")
        read = module.extract_answer(text)
        right = module.to_choice_letter(items, columns["answer"])
        return (None if read == "Z" else read.upper()), float(read.lower() == right.lower())

    def natural_bench(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """1 is yes, or A; 0 is no, or B."""
        number = self.own["naturalbench"].extract_answer(text, columns["type"])
        read = {1: "Yes", 0: "No"} if columns["type"] == "yes_no" else {1: "A", 0: "B"}
        return read.get(number), float(read.get(number) == columns["answer"])

    def transcription(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `OcrEvaluator` compares one picture."""
        made = self.ocr.OcrEvaluator.__new__(self.ocr.OcrEvaluator)
        made.group_name = columns["category"]
        found = made.evaluate({"0": text}, {"0": columns["answer"]}, dataset=columns["split"])
        return None, found["summary"]["macro_f1_score"] * (1 + 1e-9)  # of one picture

    def spatial(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `compute_mcq_score` compares."""
        read, right = (self.spatially.can_match_option(part) for part in (text, columns["answer"].strip()))
        return read or None, float(str(read).strip().lower() == str(right).strip().lower())

    def tally_qa(self, columns: dict[str, str], text: str) -> tuple[str | None, float]:
        """As `TallyQA.evaluate` compares."""
        read = self.own["tallyqa"].extract_count_from_prediction(text)
        return (None if read is None else str(read)), float(read == int(columns["answer"]))

    def prompts(self) -> list[Any]:
        """Set, columns, number of pictures, and the parts of VLMEvalKit's prompt."""
        choice = {"A": "cat", "B": "dog", "C": "red"}
        listed, quoted = {"options": "['cat', 'dog']"}, {"options": "['cat' 'dog']"}
        asked = [
            ("CVQA_EN", "CVQA", choice),
            ("CVQA_LOC", "CVQA", {**choice, "hint": "Look."}),
            ("MSEarthMCQ", "MSEarthMCQ", choice),
            ("MSEarthMCQ", "MSEarthMCQ", {**choice, "hint": "Look."}),
            ("MSEarthMCQ", "MSEarthMCQ", {}),
            ("VMCBench_DEV", "VMCBenchDataset", {**choice, "hint": "Look."}),
            ("VMCBench_TEST", "VMCBenchDataset", {}),
            ("VisualPuzzles", "VisualPuzzles", quoted),
            ("VisualPuzzles", "VisualPuzzles", listed),
            ("VisualPuzzles", "VisualPuzzles", {}),
            ("PuzzleVQA", "PuzzleVQA", listed),
            ("NaturalBenchDataset", "NaturalBenchDataset", {"type": "yes_no"}),
            ("NaturalBenchDataset", "NaturalBenchDataset", {"type": "multiple_choice"}),
        ]
        spatially = [
            ("EmbSpatialBench", "embspatialbench", "EmbSpatialBench", {"options": '["on", "in"]'}),
            ("ViewSpatialBench", "viewspatialbench", "ViewSpatialBench", {"candidates": "A. left\nB. right"}),
            ("MMSIBench_wo_circular", "mmsibench", "MMSIBench", choice),
            ("MMSIBench_wo_circular", "mmsibench", "MMSIBench", {"hint": "Look."}),
            ("MindCubeBench_raw_qa", "mindcubebench", "MindCubeBench", {"input_prompt": "See <image> here.\nA. x"}),
            ("ERIQ", "eriq", "ERIQBench", {"question_raw": "<image> What next?\nA. x B. y"}),
        ]
        found = []
        for name, file, kind, columns in spatially:
            module = self.module(f"vlmeval.dataset.{file}", f"dataset/{file}.py")
            setattr(self.image_mcq, kind, getattr(module, kind))
            module.toliststr = lambda paths: [paths]
            asked.append((name, kind, columns))
        for name, kind, columns in asked:
            row = {"question": "What is it?", "answer": "A", **columns}
            made = getattr(self.image_mcq, kind).__new__(getattr(self.image_mcq, kind))
            made.meta_only = True
            self.image_mcq.toliststr = lambda paths: [paths]
            line = self.frame([{"image_path": "<0>", "options": None, **row}]).iloc[0]
            found.append([name, row, 1, [part["value"] for part in made.build_prompt(line)]])
        return found

    # Whole sets ---------------------------------------------------------------------------------------------------

    def sets(self) -> dict[str, Any]:
        """Rows of sets, and the numbers that are reported."""
        return {
            name: getattr(self, f"set_{name}")(random.Random(name))
            for name in ("3dsr", "natural", "vmc", "visual", "gmai")
        }

    def whole(self, rows: list[dict[str, str]], evaluate: Any) -> Any:
        """What an `evaluate` makes of rows."""
        self.table = self.frame(rows)
        return evaluate("file.tsv", model="exact_matching")

    def set_3dsr(self, draw: random.Random) -> dict[str, Any]:
        """3DSRBench: eight variants of each of 12 questions; of some there are fewer."""
        rows = []
        for question in range(12):
            name = f"{'ABCDEFGHIJKL'[question]}2345678"
            for flip in ("", "-flip"):
                for rotation in ("", "-1", "-2", "-3"):
                    if question == 11 and rotation == "-3":
                        continue
                    right = draw.random() < 0.9
                    rows.append(
                        {
                            "index": len(rows),
                            "qid": f"{name}{flip}{rotation}",
                            "question": f"q{question}",
                            "A": "cat",
                            "B": "dog",
                            "answer": "A",
                            "category": f"c{question % 3}",
                            "prediction": "A" if right else "B",
                        }
                    )
        data = self.frame(rows)
        made = self.image_mcq._3DSRBench.__new__(self.image_mcq._3DSRBench)
        made.data, made.dataset_name = data, "3DSRBench"
        found = self.whole(rows, made.evaluate)
        return {"set": "3DSRBench", "rows": rows, "reports": found.to_dict("records")}

    def set_natural(self, draw: random.Random) -> dict[str, Any]:
        """NaturalBench: 30 groups of four."""
        rows, read = [], {}
        module = self.own["naturalbench"]
        for group in range(30):
            kind = draw.choice(["yes_no", "multiple_choice"])
            names = ("Yes", "No") if kind == "yes_no" else ("A", "B")
            said = []
            for place in range(4):
                right = names[0] if place in (0, 3) else names[1]
                text = right if draw.random() < 0.8 else draw.choice([*names, "?"])
                rows.append(
                    {"index": 4 * group + place, "type": kind, "question": "q", "answer": right, "prediction": text}
                )
                said.append(module.extract_answer(text, kind))
            read[group] = dict(zip(("q0_i0", "q0_i1", "q1_i0", "q1_i1"), said, strict=True))
        return {"set": "NaturalBenchDataset", "rows": rows, "reports": [module.get_scores(read)]}

    def set_vmc(self, draw: random.Random) -> dict[str, Any]:
        """VMCBench: each source has its rows."""
        rows = []
        for source in [source for sources in GROUPS.values() for source in sources]:
            for _ in range(draw.randint(2, 6)):
                said = "A" if draw.random() < 0.6 else "B"
                rows.append(
                    {
                        "index": len(rows),
                        "A": "cat",
                        "B": "dog",
                        "answer": "A",
                        "category": source,
                        "question": "q",
                        "prediction": said,
                    }
                )
        data = self.frame(rows)
        data["hit"] = data.apply(self.own["vmcbench"].get_mc_score, axis=1)
        return {
            "set": "VMCBench_DEV",
            "rows": rows,
            "reports": self.own["vmcbench"].report_vmc_acc(data).to_dict("records"),
        }

    def set_visual(self, draw: random.Random) -> dict[str, Any]:
        """VisualPuzzles."""
        rows = []
        for category in ("spatial", "algorithmic", "analogical", "inductive", "deductive"):
            for level in ("easy", "medium", "hard"):
                for _ in range(draw.randint(2, 5)):
                    rows.append(
                        {
                            "index": len(rows),
                            "category": category,
                            "difficulty": level,
                            "answer": "C",
                            "question": "q",
                            "prediction": f"Answer: {draw.choice('CCD')}",
                        }
                    )
        self.table = self.frame(rows)
        module = self.own["visualpuzzles"]
        module.load = lambda _: self.table
        by_category, by_level = module.VisulPuzzles_acc("file")
        first = dict(zip(by_category["category"], by_category["acc"], strict=True))
        second = dict(zip(by_level["level"], by_level["acc"], strict=True))
        return {"set": "VisualPuzzles", "rows": rows, "reports": [{**second, **first}]}

    def set_gmai(self, draw: random.Random) -> dict[str, Any]:
        """GMAI-MMBench: accuracy by its three columns, of one split."""
        rows = []
        for place in range(60):
            rows.append(
                {
                    "index": place,
                    "A": "cat",
                    "B": "dog",
                    "answer": "A",
                    "question": "q",
                    "split": "VAL",
                    "category": f"c{place % 4}",
                    "clinical vqa task": f"t{place % 5}",
                    "department": f"d{place % 3}",
                    "perceptual granularity": f"g{place % 2}",
                    "prediction": draw.choice("AAB"),
                }
            )
        made = self.image_mcq.GMAIMMBenchDataset.__new__(self.image_mcq.GMAIMMBenchDataset)
        made.data, made.dataset_name = self.frame(rows), "GMAI-MMBench_VAL"
        found = self.whole(rows, made.evaluate).to_dict("records")[0]
        hit = self.frame(rows).assign(hit=[float(row["prediction"] == "A") for row in rows])
        for column in ("clinical vqa task", "department", "perceptual granularity"):
            found |= made.report_acc_by_groups(hit.copy(), column).to_dict("records")[0]
        return {"set": "GMAI-MMBench_VAL", "rows": rows, "reports": [found]}


def main() -> None:
    """Writes the file."""
    if PATH.exists():
        raise SystemExit(f"{PATH} exists; a file is made once")
    import numpy  # noqa: F401
    import pandas  # noqa: F401

    published = Letters(Path(sys.argv[1]))
    rows = {kind: partial(lambda make: make()[:NUMBER], make) for kind, make in ROWS.items()}
    write(PATH, published, rows, {"sets": published.sets(), "prompts": published.prompts()}, __doc__ or "")


if __name__ == "__main__":
    main()
