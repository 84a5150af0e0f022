"""Sets of open texts with marks of a judge, and of solutions that rules grade, by the classes there or by name."""

from __future__ import annotations

from testbed.answers import prompts, rubric_prompts
from testbed.eval_settings.base.question_kind import Questions

_LLAVA = ("question", "caption", "gpt4_ans", "category")

# By the classes that make the prompts and score.
CLASSES_BY_RUBRICS: dict[tuple[str, str], Questions] = {
    ("ImageBaseDataset", "LLaVABench"): Questions(
        prompts.question, "llava_bench", "llava_bench", required=_LLAVA, answers="gpt4_ans"
    ),
    ("ImageBaseDataset", "LLaVABench_KO"): Questions(
        prompts.question, "llava_bench_ko", "llava_bench", required=_LLAVA, answers="gpt4_ans"
    ),
    ("ImageBaseDataset", "MIABench"): Questions(
        prompts.question,
        "mia_bench",
        "mia_bench",
        required=("question", "components", "component_weight", "component_type"),
        answers="components",
    ),
    ("ImageBaseDataset", "MMReason"): Questions(prompts.question, "open", "disciplines"),
    ("FoxBench", "FoxBench"): Questions(prompts.question, "page_task", "page_tasks"),
    ("ImageBaseDataset", "NPMM"): Questions(
        prompts.question, "graph", "graphs", required=("question", "data_source", "graph"), answers="ground_truth"
    ),
    ("MedqbenchCaptionDataset", "MedqbenchCaptionDataset"): Questions(
        rubric_prompts.medical_quality,
        "medical_quality",
        "medical_quality",
        required=("description",),
        answers="description",
    ),
    ("MedqbenchPairedDescriptionDataset", "MedqbenchPairedDescriptionDataset"): Questions(
        rubric_prompts.medical_comparison,
        "medical_comparison",
        "medical_quality",
        required=("description", "image_path"),
        answers="description",
    ),
    ("GOBenchDataset", "GOBenchDataset"): Questions(rubric_prompts.rated, "ratings", "ratings"),
    ("ChartBench", "ChartBench"): Questions(
        prompts.question, "chart_bench", "chart_bench", required=("question", "QA_type")
    ),
    ("MMAlignBench", "MMAlignBench"): Questions(
        rubric_prompts.text_first, "preference", "preferences", answers="claude3_sonnet"
    ),
    ("WildVision", "WildVision"): Questions(
        rubric_prompts.text_first, "preference", "preferences", answers="claude3_sonnet"
    ),
    ("ImageBaseDataset", "CreationMMBenchDataset"): Questions(
        prompts.question,
        "preference_in_both_orders",
        "preferences",
        required=("question", "criteria"),
        answers="reference_answer_by_gpt4o",
    ),
    ("ImageBaseDataset", "ChartCapDataset"): Questions(prompts.question, "caption", "captions"),
    ("ImageBaseDataset", "MMSci_Captioning"): Questions(prompts.question, "caption", "captions", answers="caption"),
    ("MMSafetyBenchDataset", "MMSafetyBenchDataset"): Questions(
        rubric_prompts.safety, "safety", "safety", required=("question", "category"), answers="category"
    ),
    ("MSSBenchDataset", "MSSBenchDataset"): Questions(prompts.question, "behavior", "both_sides"),
    ("XSTestDataset", "XSTestDataset"): Questions(prompts.question, "compliance", "both_sides"),
    ("SIUOGenDataset", "SIUOGenDataset"): Questions(prompts.question, "effect", "effect"),
    ("FlamesDataset", "FlamesDataset"): Questions(
        prompts.question, "harmless", "harmless", required=("question", "category"), answers="category"
    ),
}
# By the names of the sets, where prompt, scoring or report depends on it.
SETS_BY_RUBRICS: dict[str, Questions] = {
    "OmniMat_QA": Questions(
        rubric_prompts.materials, "materials", "materials", required=("question", "key_points"), texts=True
    ),
    "OmniMat_CAL": Questions(rubric_prompts.calculation, "slots", "places", answers="final_answer_list", texts=True),
}
