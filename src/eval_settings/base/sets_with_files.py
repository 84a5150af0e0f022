"""Sets of documents, charts and long contexts, some with pictures in files, by the classes there or by name."""

from __future__ import annotations

from functools import partial

from testbed.answers import file_prompts, prompts
from testbed.eval_settings.base.question_kind import Questions

_HUB = "https://huggingface.co/datasets"
_LENGTHS = ("32K", "64K", "128K", "256K", "512K")

# By the classes that make the prompts and score.
CLASSES_WITH_FILES: dict[tuple[str, str], Questions] = {
    ("ChartX", "ChartX"): Questions(prompts.question, "chart_tables", "charts", required=("question", "category")),
    ("OceanOCRBench", "OceanOCRBench"): Questions(
        file_prompts.read_all, "page_reading", "page_reading", required=("id", "answer")
    ),
    ("WildDocBenchmark", "WildDocBenchmark"): Questions(
        file_prompts.wild_document, "wild_documents", "wild_documents", indexed=True
    ),
    ("VLRewardBench", "VLRewardBench"): Questions(
        file_prompts.which_answer, "comparison", "categories", required=("question", "response")
    ),
    ("ImageBaseDataset", "VGRPBench"): Questions(
        prompts.question, "grids", "grids", required=("question", "category", "states"), answers="states"
    ),
    ("VLADBench", "VLADBench"): Questions(
        prompts.question,
        "driving",
        "driving",
        required=("question", "category3", "dindex"),
        archive=f"{_HUB}/depth2world/VLADBench",
    ),
    ("M4Bench", "M4Bench"): Questions(
        partial(prompts.column, name="query"), "prefixed_letter", required=("query",), answers="response"
    ),
    ("Asclepius", "Asclepius"): Questions(file_prompts.medical, "open", "kinds"),
    ("MOAT", "MOAT"): Questions(
        file_prompts.with_knowledge,
        "open",
        "kinds",
        required=("question", "choices", "images"),
        files=("images", "outside_knowledge_images"),
        places=("images/MOAT", "MOAT_images"),
        archive=f"{_HUB}/waltsun/MOAT (MOAT_images.zip)",
    ),
    ("RefSpatialBench", "RefSpatialBench"): Questions(
        file_prompts.points,
        "pointing",
        "graded_kinds",
        required=("question", "category", "mask_path"),
        places=("images/RefSpatial",),
        archive=f"{_HUB}/BAAI/RefSpatial-Bench",
        masks="mask_path",
    ),
}
# By name, as the folders of the pictures are.
SETS_WITH_FILES: dict[str, Questions] = {
    **{
        f"MMLongBench_{length}": Questions(
            file_prompts.long_context,
            "long_contexts",
            "graded_kinds",
            required=("question", "task", "source_dataset", "extra_info"),
            places=(f"images/mmlb_image/{length}", "images/mmlb_image"),
            archive=f"{_HUB}/ZhaoweiWang/MMLongBench (vlmevalkit/MMLongBench_{length}_images.tar.gz)",
            indexed=True,
        )
        for length in _LENGTHS
        if length != "64K"
    },
    **{
        f"MemLens_{length}": Questions(
            partial(file_prompts.long_context, strict=True),
            "memories",
            "kinds",
            required=("question", "question_type"),
            places=("images/memlens_images/release_images", "images/memlens_images"),
            archive=f"{_HUB}/xiyuRenBill/MEMLENS (release_images.tar.gz)",
        )
        for length in _LENGTHS[:-1]
    },
}
