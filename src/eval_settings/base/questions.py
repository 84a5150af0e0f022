"""Benchmarks that are tables of questions: their prompts, scoring and reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from testbed.answers import prompts
from testbed.data.video_frames import Frames
from testbed.eval_settings.base.question_kind import Questions
from testbed.eval_settings.base.sets_by_judges import CLASSES_BY_JUDGES, SETS_BY_JUDGES
from testbed.eval_settings.base.sets_by_rubrics import CLASSES_BY_RUBRICS, SETS_BY_RUBRICS
from testbed.eval_settings.base.sets_by_rules import CLASSES_BY_RULES, SETS_BY_RULES
from testbed.eval_settings.base.sets_of_kinds import CLASSES_OF_KINDS, SETS_OF_KINDS
from testbed.eval_settings.base.sets_with_files import CLASSES_WITH_FILES, SETS_WITH_FILES
from testbed.eval_settings.base.videos import listed_names, split_name, video_fields

CIRCULAR = ("mmbench", "ccbench", "circular", "mmcr")  # in the names of sets whose rows are asked in rotations


CHOICE = Questions(prompts.multiple_choice)
ROTATED = Questions(prompts.multiple_choice, report="circular")
MMT = Questions(prompts.multiple_choice, report="mmt")
YES_NO = Questions(prompts.question, "yes_no", "accuracy")
CAPTIONS = Questions(prompts.description, "caption", "captions", required=())
OCRBENCH = Questions(prompts.question, "ocrbench", "ocrbench")
MMMU = Questions(prompts.multiple_choice_placed, "mmmu", "mmmu")


def _short(scoring: str, report: str = "vqa") -> Questions:
    return Questions(prompts.short_answer, scoring, report)


def _pro(prompt: Callable[..., Any], table: str, cot: bool = False) -> Questions:
    return Questions(prompt, "mmmu_pro_cot" if cot else "mmmu_pro", "accuracy", table, required=())


def _real_world(prompt: Callable[..., Any]) -> Questions:
    return Questions(prompt, "mme_realworld", "mme_realworld")


def _reasoning(
    kind: str, prompt: Callable[..., Any] = prompts.question, table: str = "", column: str = ""
) -> Questions:
    return Questions(prompt, kind, kind, table, required=("question", *filter(None, [column])))


def _spatial(prompt: Callable[..., Any], column: str = "question") -> Questions:
    return Questions(prompt, "spatial", "spatial", required=(column,))


_SHORT = Questions(prompts.directly, "short")
_TRANSCRIPTION = Questions(
    prompts.question, "transcription", "transcription", required=("question", "category", "split")
)
_MATH_VERSE = _reasoning("math_verse")
_CHARXIV = _reasoning("charxiv")
_MMVET = _reasoning("mmvet")
_ZERO_BENCH = Questions(prompts.in_braces, "zero_bench")


_LANGUAGES = "Arabic French German Italian Japanese Korean Portuguese Russian Spanish Vietnamese".split()
_SCENES = ["Cord", "Funsd", "Hieragent", "Iam", "Ic15", "Inversetext", "Totaltext", "UgcLaion"]
_SCENES += ["ZhDense", "ZhDoc", "ZhHandwriting", "ZhScene", "ZhVertical"]

# By the names that VLMEvalKit gives them.
BENCHMARKS: dict[str, Questions] = {
    "MMMU_DEV_VAL": MMMU,
    "MMMU_TEST": MMMU,
    "MMMU_Pro_10c": _pro(prompts.mmmu_pro, ""),
    "MMMU_Pro_10c_COT": _pro(prompts.mmmu_pro_cot, "MMMU_Pro_10c", cot=True),
    "MMMU_Pro_V": _pro(prompts.question_in_the_image, ""),
    "MMMU_Pro_V_COT": _pro(prompts.question_in_the_image_cot, "MMMU_Pro_V", cot=True),
    "MMStar": CHOICE,
    "AI2D_TEST": CHOICE,
    "AI2D_TEST_NO_MASK": CHOICE,
    "RealWorldQA": CHOICE,
    "BLINK": CHOICE,
    "MUIRBench": Questions(prompts.several_pictures),
    "SEEDBench_IMG": CHOICE,
    "SEEDBench2": CHOICE,
    "SEEDBench2_Plus": CHOICE,
    "ScienceQA_TEST": CHOICE,
    "ScienceQA_VAL": CHOICE,
    "VStarBench": CHOICE,
    "HRBench4K": Questions(prompts.multiple_choice, report="hr_bench"),
    "HRBench8K": Questions(prompts.multiple_choice, report="hr_bench"),
    "MMSci_DEV_MCQ": Questions(prompts.multiple_choice, report="mm_sci", required=("question", "setting")),
    "MMT-Bench_ALL": MMT,
    "MMT-Bench_ALL_MI": MMT,
    "MMT-Bench_VAL": MMT,
    "MMT-Bench_VAL_MI": MMT,
    "MMVP": Questions(prompts.multiple_choice, report="mmvp"),
    "CV-Bench-2D": Questions(prompts.column, report="cv_bench_2d", required=("prompt",)),
    "CV-Bench-3D": Questions(prompts.column, required=("prompt",)),
    "MME": Questions(prompts.question, "yes_no", "mme"),
    "POPE": Questions(prompts.question, "yes_no", "pope"),
    "HallusionBench": Questions(prompts.question, "yes_no", "hallusion"),
    "AMBER": Questions(prompts.yes_or_no, "yes_no_in_any_case", "amber"),
    "VSR-zeroshot": Questions(prompts.question, "yes_no", "vsr"),
    "TextVQA_VAL": _short("vqa_accuracy"),
    "ChartQA_TEST": _short("relaxed"),
    "DocVQA_VAL": _short("anls", "anls"),
    "InfoVQA_VAL": _short("anls", "anls"),
    "DocVQA_TEST": _short("anls", "anls"),
    "InfoVQA_TEST": _short("anls", "anls"),
    "OCRVQA_TEST": _short("exact"),
    "OCRVQA_TESTCORE": _short("exact"),
    "GQA_TestDev_Balanced": _short("exact_mean"),
    "OCRBench": OCRBENCH,
    **{f"CCOCR_MultiLanOcr_{language}": _TRANSCRIPTION for language in _LANGUAGES},
    **{f"CCOCR_MultiSceneOcr_{scene}": _TRANSCRIPTION for scene in _SCENES},
    "CountBenchQA": Questions(prompts.a_number, "number"),
    "MTVQA_TEST": Questions(prompts.in_its_language, "contains", "mtvqa"),
    "COCO_VAL": CAPTIONS,
    "MME-RealWorld": _real_world(prompts.real_world),
    "MME-RealWorld-Lite": _real_world(prompts.real_world),
    "MME-RealWorld-CN": _real_world(prompts.real_world_chinese),
    "MathVista_MINI": _reasoning("math_vista"),
    "MathVision": _reasoning("math_vision"),
    "MathVision_MINI": _reasoning("math_vision"),
    "MathVerse_MINI": _MATH_VERSE,
    "MathVerse_MINI_Vision_Only": _MATH_VERSE,
    "MathVerse_MINI_Vision_Only_cot": _reasoning(
        "math_verse", partial(prompts.column, name="query_cot"), "MathVerse_MINI_Vision_Only", "query_cot"
    ),
    "MathVerse_MINI_Vision_Dominant": _MATH_VERSE,
    "MathVerse_MINI_Vision_Intensive": _MATH_VERSE,
    "MathVerse_MINI_Text_Lite": _MATH_VERSE,
    "MathVerse_MINI_Text_Dominant": _MATH_VERSE,
    "WeMath": _reasoning("we_math", prompts.bare_choice),
    "WeMath_COT": _reasoning("we_math", prompts.required_choice, "WeMath", "requirement"),
    "DynaMath": _reasoning("dyna_math", prompts.dyna_math),
    "DynaMath_noprompt": _reasoning("dyna_math", prompts.dyna_math_bare, "DynaMath"),
    "LogicVista": _reasoning("logic_vista"),
    "VisuLogic": Questions(prompts.in_a_box, "visu_logic"),
    "CharXiv_reasoning_val": _CHARXIV,
    "CharXiv_descriptive_val": _CHARXIV,
    "MMVet": _MMVET,
    "MMVet_Hard": _MMVET,
    "SimpleVQA": _reasoning("simple_vqa"),
    "ERQA": _reasoning("erqa", prompts.placed_by_index),
    "ZEROBench": _ZERO_BENCH,
    "ZEROBench_sub": _ZERO_BENCH,
    **{name: Questions(**fields) for name in listed_names() if (fields := video_fields(name))},
    **SETS_BY_JUDGES,
    **SETS_BY_RULES,
    **SETS_OF_KINDS,
    **SETS_BY_RUBRICS,
    **SETS_WITH_FILES,
}
# VLMEvalKit's TYPE and the class that scores → the kind of above that does the same.
_KINDS = {("MCQ", "ImageMCQDataset"): CHOICE, ("Y/N", "ImageYORNDataset"): YES_NO}
# The classes there that make the prompts and score → the same, for all sets of these classes.
_CLASSES = {
    ("ImageMCQDataset", "GMAIMMBenchDataset"): Questions(prompts.multiple_choice, report="gmai"),
    ("ImageMCQDataset", "TDBench"): CHOICE,
    ("ImageMCQDataset", "TopViewRS"): Questions(prompts.multiple_choice, report="top_view_rs"),
    ("ImageMCQDataset", "_3DSRBench"): Questions(
        prompts.multiple_choice, report="three_d_sr", required=("question", "qid")
    ),
    ("CVQA", "ImageMCQDataset"): Questions(prompts.best_letter),
    ("MSEarthMCQ", "ImageMCQDataset"): Questions(prompts.caption_choice),
    ("VMCBenchDataset", "VMCBenchDataset"): Questions(prompts.letter_directly, "vmc_bench", "vmc_bench"),
    ("VisualPuzzles", "VisualPuzzles"): Questions(prompts.quoted_choice, "visual_puzzles", "visual_puzzles"),
    ("PuzzleVQA", "PuzzleVQA"): Questions(prompts.listed_choice, "puzzle_vqa", required=("question", "options")),
    ("NaturalBenchDataset", "NaturalBenchDataset"): Questions(
        prompts.by_type, "natural_bench", "natural_bench", required=("question", "type")
    ),
    ("EmbSpatialBench", "EmbSpatialBench"): _spatial(prompts.letter_of_list, "options"),
    ("ViewSpatialBench", "ViewSpatialBench"): _spatial(prompts.candidates, "candidates"),
    ("MMSIBench", "MMSIBench"): _spatial(prompts.letter_in_quotes),
    ("MindCubeBench", "MindCubeBench"): _spatial(
        partial(prompts.column_with_pictures, name="input_prompt"), "input_prompt"
    ),
    ("ERIQBench", "ERIQBench"): _spatial(partial(prompts.column_with_pictures, name="question_raw"), "question_raw"),
    ("ImageShortQADataset", "ImageShortQADataset"): _SHORT,
    ("HLEDataset", "ImageShortQADataset"): _SHORT,
    ("ImageBaseDataset", "OCRBench"): OCRBENCH,
    ("TallyQA", "TallyQA"): Questions(prompts.one_number, "tally_qa"),
    **CLASSES_BY_JUDGES,
    **CLASSES_BY_RULES,
    **CLASSES_OF_KINDS,
    **CLASSES_BY_RUBRICS,
    **CLASSES_WITH_FILES,
}


def questions_of(name: str, kind: str = "", prompt: str = "", score: str = "") -> Questions | None:
    """Returns the prompt, scoring and report of a set; None if it needs more than rules.

    Args:
        name: VLMEvalKit's name of the set.
        kind: Its ``TYPE`` there.
        prompt: The class that makes its prompts there.
        score: The class that scores it there.
    """
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    if (prompt, score) in _CLASSES:
        return _CLASSES[prompt, score]
    questions = _KINDS.get((kind, score)) if prompt == score else None
    if questions is CHOICE and any(word in name.lower() for word in CIRCULAR):
        return ROTATED
    return MMMU if questions is CHOICE and "MMMU" in name else questions


def questions_of_videos(name: str) -> Questions | None:
    """Returns the entry of `BENCHMARKS`, also for other numbers of frames than those of VLMEvalKit's names."""
    fields = video_fields(name)
    return None if fields is None else Questions(**fields)


def with_frames(name: str) -> tuple[str, Frames] | None:
    """The table and the frames in the name of one's own table with frames, such as ``mine_16frame``."""
    parts = split_name(name)
    return None if parts is None or parts[2] else (parts[0], parts[1])


def questions_by_columns(columns: list[str]) -> Questions:
    """Derives a table's questions from its columns: multiple choice with options A and B, else a short answer.

    A table with a column ``video`` but without pictures is asked with eight frames of each video.
    """
    questions = CHOICE if {"A", "B"} <= set(columns) else _short("exact")
    return (
        replace(questions, frames=Frames(8))
        if "video" in columns and not {"image", "image_path"} & set(columns)
        else questions
    )
