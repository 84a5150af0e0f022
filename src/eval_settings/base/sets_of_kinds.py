"""Sets of grounding, tables and questions of several kinds, by the classes there or by name."""

from __future__ import annotations

from testbed.answers import prompts, prompts_by_set
from testbed.eval_settings.base.question_kind import Questions

_BOXES = ("question", "width", "height")

# By the classes that make the prompts and score.
CLASSES_OF_KINDS: dict[tuple[str, str], Questions] = {
    ("CMMMU", "CMMMU"): Questions(prompts_by_set.cmmmu, "cmmmu", "kinds", required=("question", "type")),
    ("MMNIAH", "MMNIAH"): Questions(
        prompts_by_set.needle, "mm_niah", "graded_kinds", required=("question", "category", "multi-choice options")
    ),
    ("TableVQABench", "TableVQABench"): Questions(
        prompts_by_set.table_vqa, "table_vqa", "kinds", required=("question", "split")
    ),
    ("VLM2Bench", "VLM2Bench"): Questions(prompts_by_set.questioned, "vlm2", "vlm2", required=("question", "category")),
    ("QSpatial", "QSpatial"): Questions(prompts_by_set.distance, "q_spatial", "kinds"),
    ("DA2K", "DA2K"): Questions(prompts_by_set.which_point, "da_2k", "kinds"),
    ("MATBench", "MATBench"): Questions(prompts_by_set.briefly, "mat", "graded_kinds"),
    ("MMOral_OPG_CLOSED", "MMOral_OPG_CLOSED"): Questions(prompts_by_set.dental_choice, "mm_oral", "kinds"),
    ("GroundingME", "GroundingME"): Questions(
        prompts_by_set.described_object, "grounding_me", "kinds", required=(*_BOXES, "subtask_l1")
    ),
    ("ImageBaseDataset", "RefCOCODataset"): Questions(prompts.question, "ref_coco", "ref_coco", required=_BOXES),
    ("RoboSpatialBench", "RoboSpatialBench"): Questions(
        prompts_by_set.robo_spatial, "robo_spatial", "kinds", required=("question", "category"), sized=True
    ),
    ("ImageBaseDataset", "OCRBench_v2"): Questions(
        prompts.question, "ocrbench_v2", "ocrbench_v2", required=("question", "category", "eval")
    ),
    ("BMMR", "BMMR"): Questions(prompts.question, "bmmr", "kinds", required=("question", "task_type")),
    ("VTCBench", "VTCBench"): Questions(
        prompts_by_set.snippet, "vtc", "graded_kinds", required=("question", "category")
    ),
    ("SSIBenchDataset", "SSIBenchDataset"): Questions(prompts_by_set.ranking, "ssi", "kinds"),
    ("AyaVisionBench", "AyaVisionBench"): Questions(prompts_by_set.twice_short_answer, "open", "kinds"),
    ("MaCBench", "MaCBench"): Questions(prompts_by_set.mac_bench, "mac_bench", "kinds"),
    ("MMEReasoning", "MMEReasoning"): Questions(prompts.question, "open", "kinds"),
    ("ImageBaseDataset", "SlideVQA"): Questions(prompts.question, "open", "kinds"),
    ("ImageBaseDataset", "MMMath"): Questions(prompts.question, "open", "kinds"),
    ("MathCanvas", "MathCanvas"): Questions(prompts_by_set.sub_questions, "open", "kinds", texts=True),
}
# By name: each set of this class is of another kind.
SETS_OF_KINDS: dict[str, Questions] = {
    "VLRMBench": Questions(prompts.question, "steps", "steps"),
    "VLRMBench_MultiSolution": Questions(
        prompts.question, "marks", "solutions", required=("question", "order"), answers="order"
    ),
    "VLRMBench_Foresight": Questions(prompts.question, "foresight", "kinds", answers="task_gt"),
}
