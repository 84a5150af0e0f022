"""Hints for the options of VLMEvalKit's ``run.py`` that have another name here or are not needed."""

from __future__ import annotations

_NAMES = (
    "write the models first and the sets after --on, by VLMEvalKit's names: testbed run NAME --on MMStar MME (in"
    " eval.py --models and --eval-settings); open_clip's models are ARCHITECTURE,PRETRAINED (ViT-B-32,laion400m_e32)"
)
_STORED = "leave it out: stored answers are reused, and a changed prompt is asked again"
_FAILED = "leave it out: a failed question is not stored, and the next run asks it again"
_SERVED = "give the model this in a small file for --plugin, as ApiModel(…, {}); docs/served-models.md"
_GENERATION = (
    "write {} into the generation options of a model or a setting, in a small file for --plugin; docs/served-models.md"
)
_JUDGE = "a judge is a model with its own options, like any other; docs/reading-answers.md"
_PROMPT = "leave it out: prompts are those of the sets; a class with build_prompt has its own (docs/vlmevalkit.md)"
_DATA_CONFIG = "write the sets into a configuration file: testbed run --vlmevalkit FILE.json"

HINTS = {
    "--data": _NAMES,
    "--model": _NAMES,
    "--config": "use --vlmevalkit FILE.json",
    "--data-config": _DATA_CONFIG,
    "--work-dir": "answers and scores are in the store (--db-url names it); testbed export vlmevalkit DIR writes files",
    "--mode": "testbed run asks and scores; testbed rescore scores the stored answers without the model (--mode eval)",
    "--api-nproc": "use --batch-size: the number of concurrent requests",
    "--api-mode": "leave it out: a served model is named api:NAME@URL, and its requests are sent concurrently",
    "--retry": _SERVED.format("retries=6"),
    "--keep-failed": _FAILED,
    "--ignore": _FAILED,
    "--reuse": _STORED,
    "--reuse-aux": _STORED,
    "--use-vllm": "name the model vllm/<hub id or folder>; docs/served-models.md",
    "--use-verifier": "a model judges the answers: --on SET@NAME, or afterwards: testbed rescore --judge NAME --on SET",
    "--judge": "write it into the name of the set, --on SET@NAME; or afterwards: testbed rescore --judge NAME --on SET",
    "--judge-args": _JUDGE,
    "--judge-base-url": "write it into the judge's name: --on SET@api:NAME@URL",
    "--judge-key": "set the variable OPENAI_API_KEY, or another one by key_variable; docs/served-models.md",
    "--judge-api-nproc": "use --batch-size: the number of concurrent requests",
    "--judge-retry": _SERVED.format("retries=6"),
    "--judge-timeout": _SERVED.format("timeout=600"),
    "--base-url": "write it into the model's name: api:NAME@URL",
    "--key": "set the variable OPENAI_API_KEY, or another one by key_variable; docs/served-models.md",
    "--timeout": _SERVED.format("timeout=600"),
    "--extra-body": _SERVED.format("extra_body={…}"),
    "--stream": "leave it out: only the whole answer counts",
    "--max-tokens": _GENERATION.format("max_new_tokens"),
    "--temperature": _GENERATION.format("temperature"),
    "--top-k": _GENERATION.format("top_k"),
    "--top-p": _GENERATION.format("top_p"),
    "--repetition-penalty": _GENERATION.format("repetition_penalty"),
    "--custom-prompt": _PROMPT,
    "--thinker": "leave it out: the default rules read what comes after the last </think>",
    "--video-llm": "leave it out: a model gets the frames of a video; docs/tables.md has the sets",
    "--local-media": "leave it out: pictures are sent with the question",
    "--monitor-interval": "leave it out: the run reports its progress",
    "--debug": "use --verbose, and --executor inline to stay in one process",
}
