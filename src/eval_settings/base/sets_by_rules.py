"""Sets that VLMEvalKit scores by rules of their own, by the classes there or by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from testbed.answers import chart_prompts, choice_prompts, prompts, science_prompts
from testbed.eval_settings.base.question_kind import Questions


def _chart_qa_pro(prompt: Callable[..., Any]) -> Questions:
    required = ("question", "question_type", "year")
    return Questions(prompt, "chart_qa_pro", "graded_kinds", "ChartQAPro", required=required)


def _clicks(scoring: str) -> Questions:
    required = ("question", "bbox")
    return Questions(choice_prompts.click, scoring, "kinds", required=required, answers="bbox", sized=True)


_PAGES = [
    f"{kind}{form}{language}" for kind in ("Doc", "Table") for form in ("Photo", "Scan") for language in ("Chn", "Eng")
]
_WRITTEN = ("FormulaHandwriting", "MolecularHandwriting")
_VISFACTOR = ("question", "category_id", "eval_index")

# By the classes that make the prompts and score.
CLASSES_BY_RULES: dict[tuple[str, str], Questions] = {
    ("MedqbenchMCQDataset", "MedqbenchMCQDataset"): Questions(choice_prompts.medical, "medq", "kinds"),
    ("MedQDEGBenchDataset", "MedQDEGBenchDataset"): Questions(choice_prompts.degraded, "medq_deg", "kinds"),
    ("M3oralBenchDataset", "M3oralBenchDataset"): Questions(choice_prompts.one_letter, "last_letter", "kinds"),
    ("SIUOMCQDataset", "SIUOMCQDataset"): Questions(choice_prompts.one_letter_only, "last_letter", "kinds"),
    ("AffordanceDataset", "AffordanceDataset"): Questions(choice_prompts.affordance, "letter_list", "kinds"),
    ("TreeBench", "TreeBench"): Questions(choice_prompts.letter_directly, "mme_realworld", "kinds"),
    ("XLRSBench", "XLRSBench"): Questions(choice_prompts.with_options, "letter_set", "tasks"),
    ("OmniEarthMCQBench", "OmniEarthMCQBench"): Questions(choice_prompts.with_options, "letter_set_to_g", "tasks"),
    ("CRPE", "CRPE"): Questions(prompts.question, "crpe", "crpe"),
    ("ImageMCQDataset", "VLMBlind"): Questions(
        prompts.multiple_choice, "vlm_blind", "kinds", required=("question", "task")
    ),
    ("TDBenchGrounding", "TDBenchGrounding"): Questions(choice_prompts.box, "unit_box", "kinds"),
    ("ImageBaseDataset", "VizWiz"): Questions(prompts.question, "vqa_accuracy", "vqa"),
    ("ScreenSpot", "ScreenSpot"): _clicks("click"),
    ("ScreenSpot_Pro", "ScreenSpot_Pro"): _clicks("click_between"),
    ("VBGD", "VBGD"): _clicks("click_between"),
    ("VenusBench_GD", "VenusBench_GD"): _clicks("click_between"),
    ("OSWorld_G", "OSWorld_G"): _clicks("click_per_mille"),
    ("SiteBenchImage", "SiteBenchBase"): Questions(science_prompts.site_bench, "spatial", "kinds"),
    ("SparBench", "SparBench"): Questions(
        science_prompts.spar_bench, "spar_bench", "spar_bench", required=("question", "task")
    ),
    ("GSM8KVDataset", "GSM8KVDataset"): Questions(science_prompts.gsm8k, "gsm8k", "kinds", required=()),
    ("Spatial457", "Spatial457"): Questions(science_prompts.spatial_457, "spatial_457", "kinds"),
    ("Omni3DBench", "Omni3DBench"): Questions(
        science_prompts.omni_3d, "omni_3d", "graded_kinds", required=("question", "answer_type")
    ),
    ("ReasonMap_Plus", "ReasonMap_Plus"): Questions(prompts.question, "reason_map", "kinds"),
    ("ImageBaseDataset", "VLMsAreBiased"): Questions(prompts.question, "biased", "kinds", answers="ground_truth"),
    ("CoreCognition", "CoreCognition"): Questions(
        prompts.question, "core_cognition", "kinds", required=("question", "question_type")
    ),
    ("ImageBaseDataset", "LENS"): Questions(prompts.question, "math_vision", "kinds"),
    ("OlympiadBench", "OlympiadBench"): Questions(
        science_prompts.olympiad, "open", "olympiad", required=("question", "source"), answers="final_answer"
    ),
    ("PlotQA", "PlotQA"): Questions(prompts.question, "relaxed", "vqa"),
}
# By the names of the sets, where prompt, scoring or report depends on it.
SETS_BY_RULES: dict[str, Questions] = {
    **{
        f"VisFactor{subset}{form}": Questions(
            partial(choice_prompts.visfactor, in_steps=bool(form)),
            "visfactor",
            "visfactor",
            f"VisFactor{subset}",
            required=_VISFACTOR,
        )
        for subset in ("", "_GE", "_GH", "_GN")
        for form in ("", "_CoT")
    },
    **{
        f"PhyX_{size}{kind}": Questions(prompts.question, scoring, "kinds")
        for size in ("", "mini_")
        for kind, scoring in (("OE", "phyx"), ("MC", "phyx_choice"))
    },
    **{
        f"CCOCR_Kie_{source}": Questions(prompts.question, "key_information", "graded_kinds")
        for source in ("Sroie2019Word", "Cord", "EphoieScut", "Poie", "ColdSibr", "ColdCell")
    },
    **{
        f"CCOCR_DocParsing_{kind}": Questions(
            prompts.question, "page_text", "graded_kinds", required=("question", "l2-category")
        )
        for kind in (*_PAGES, *_WRITTEN)
    },
    **{
        f"SPBench-{views}{form}": Questions(
            prompt, "sp_bench", "question_types", f"SPBench-{views}", required=("question", "question_type")
        )
        for views in ("MV", "SI")
        for form, prompt in (("", science_prompts.sp_bench), ("_CoT", science_prompts.sp_bench_in_steps))
    },
    **{
        f"VCR_EN_{level}_{size}": Questions(prompts.question, "hidden_words", "hidden_words")
        for level in ("EASY", "HARD")
        for size in ("100", "500", "ALL")
    },
    "CCOCR": Questions(prompts.question, "cc_ocr", "cc_ocr", required=("question", "category", "l2-category", "split")),
    "ChartQAPro": _chart_qa_pro(chart_prompts.chart_qa_pro),
    "ChartQAPro_CoT": _chart_qa_pro(partial(chart_prompts.chart_qa_pro, in_steps=True)),
    "LEGO": Questions(choice_prompts.lego, "lego", required=("question", "question_type")),
    "LEGO_circular": Questions(choice_prompts.lego, "lego", "circular", required=("question", "question_type")),
}
