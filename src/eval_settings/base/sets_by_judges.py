"""Sets whose open answers VLMEvalKit leaves to a judge, by the classes there or by name."""

from __future__ import annotations

from functools import partial

from testbed.answers import expert_prompts, prompts, science_prompts
from testbed.eval_settings.base.question_kind import Questions

_SCIENCE = {
    "ZH": "请在 '最终答案: ' 之后简洁地写出你给出的答案。",
    "EN": "Please write the final answer concisely after 'Final Answer: '.",
    "FR": "Veuillez écrire la réponse finale de manière concise après 'Réponse finale: '.",
    "ES": "Por favor, escribe tu respuesta de manera concisa después de 'Respuesta final: '.",
    "JA": "'最終答え: ' の後に、あなたが出した答えを簡潔に書いてください。",
}
_COMPETITIONS = [
    f"{name}_{year}" for name in ("IPhO", "EuPhO", "PanPhO", "NBPhO", "F_MA", "PanMechanics") for year in (2024, 2025)
]
_COMPETITIONS += ["APhO_2025", "HiPhO_ALL"]
_IN_THE_IMAGE = "请解答图像中给定的问题，并且在 '最终答案: ' 之后简洁地写出你的答案。"

# By the classes that make the prompts and score.
CLASSES_BY_JUDGES: dict[tuple[str, str], Questions] = {
    ("Physics_yale", "Physics_yale"): Questions(expert_prompts.physics, "open", "kinds", texts=True),
    ("SeePhys", "SeePhys"): Questions(expert_prompts.see_phys, "open", "kinds", required=("language",)),
    ("ChartMuseum", "ChartMuseum"): Questions(expert_prompts.chart_museum, "open", "kinds"),
    ("OCR_Reasoning", "OCR_Reasoning"): Questions(
        expert_prompts.ocr_reasoning, "open", "kinds", required=("question", "language", "format")
    ),
    ("MMVMBench", "MMVMBench"): Questions(prompts.question, "open", "kinds"),
    ("ImageVQADataset", "VLMBias"): Questions(prompts.short_answer, "open", "kinds"),
    ("SFE", "SFE"): Questions(expert_prompts.sfe, "graded", "graded_kinds", required=("question", "question_type")),
    ("MMOral_OPG_OPEN", "MMOral_OPG_OPEN"): Questions(expert_prompts.dental, "graded", "graded_kinds"),
    ("WorldVQA", "WorldVQA"): Questions(expert_prompts.world_vqa, "simple_vqa", "simple_vqa"),
}
# By the names of the sets, where the prompt depends on it.
SETS_BY_JUDGES: dict[str, Questions] = {
    "MMESCI_VisionOnly": Questions(
        partial(expert_prompts.pictures_alone, ending=_IN_THE_IMAGE), "short", "kinds", required=("type",)
    ),
    **{
        f"MMESCI_{language}": Questions(
            partial(expert_prompts.science, ending=ending), "short", "kinds", required=("question", "type")
        )
        for language, ending in _SCIENCE.items()
    },
    **{
        name: Questions(
            partial(science_prompts.competition, chinese=name.startswith("PanMechanics")),
            "points",
            "points",
            required=("question", "points"),
            texts=True,
        )
        for name in _COMPETITIONS
    },
    "EMMA": Questions(expert_prompts.emma, "short", "kinds"),
    "EMMA_COT": Questions(partial(expert_prompts.emma, in_steps=True), "short", "kinds", "EMMA"),
}
