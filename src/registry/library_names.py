"""The model names of torchvision, timm and open_clip, without importing these here.

Listing the names requires importing the libraries, which takes seconds and imports torch. This is done once per version
in a separate process, and the result is cached in a file.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from testbed.errors import PluginError
from testbed.paths import cache_dir, write_atomically

# Each sets `answer`: architecture → names of weights; and `hub`: repository of the Hugging Face hub, or URL → names of
# the models whose weights are there.
_QUESTIONS = {
    "torchvision": """
from torchvision import models
answer = {}
for name in models.list_models(module=models):
    known = [weights for weights in models.get_model_weights(name) if weights.meta.get("categories")]
    answer[name] = [weights.name for weights in known]
    for weights in known:
        hub[weights.url] = [name if weights is known[0] else f"{name}.{weights.name.lower()}"]
""",
    "timm": """
import timm
answer = {name: [] for name in timm.list_models()}
for name in timm.list_pretrained():
    architecture, _, tag = name.partition(".")
    answer[architecture].append(tag)
    config = timm.get_pretrained_cfg(name)
    for place in filter(None, ((config.hf_hub_id or "").partition("@")[0], config.url)):
        hub.setdefault(place, []).append(f"timm/{name}")
for architecture, tags in answer.items():
    default = timm.get_pretrained_cfg(architecture).tag if tags else ""
    tags.sort(key=lambda tag: tag != default)
""",
    "open_clip_torch": """
import open_clip
answer = {name: open_clip.list_pretrained_tags_by_model(name) for name in open_clip.list_models()}
for architecture, tag in open_clip.list_pretrained():
    if place := open_clip.get_pretrained_cfg(architecture, tag).get("hf_hub"):
        hub.setdefault(place.rpartition("/")[0], []).append(f"{architecture},{tag}")
""",
}
_FORMAT = 4  # changes with the questions
_SENTINEL = "testbed-answer:"  # libraries may print during import
_PATIENCE_SECONDS = 300

Names = dict[str, list[str]]


def library_names(distribution: str) -> Names:
    """The architectures of a library with the names of their pretrained weights, the default ones first.

    Args:
        distribution: ``"torchvision"``, ``"timm"`` or ``"open_clip_torch"``.

    Returns:
        Architecture → names of weights; empty if the library is not installed.

    Raises:
        PluginError: If the library is installed but cannot be imported.
    """
    return _answers(distribution)[0]


def places_of_weights(distribution: str) -> Names:
    """The repositories of the Hugging Face hub, and the URLs, that a library takes weights from.

    Args:
        distribution: As for `library_names`.

    Returns:
        Repository or URL → testbed's names of the models; empty if the library is not installed.

    Raises:
        PluginError: If the library is installed but cannot be imported.
    """
    return _answers(distribution)[1]


@cache
def _answers(distribution: str) -> tuple[Names, Names]:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return {}, {}
    path = cache_dir("names") / f"{distribution}-{version}-{_FORMAT}.json"
    known = _remembered(path)
    if known is None:
        known = _ask(distribution)
        try:
            write_atomically(path, json.dumps(known).encode())
        except OSError:
            pass  # not cached
    return known


def _remembered(path: Path) -> tuple[Names, Names] | None:
    """The cached answers; None if there are none or the file is invalid."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return (known[0], known[1]) if _is_answer(known) else None


def _is_answer(known: Any) -> bool:
    return isinstance(known, list) and len(known) == 2 and all(map(_are_names, known))


def _are_names(known: Any) -> bool:
    return isinstance(known, dict) and all(
        isinstance(several, list) and all(isinstance(name, str) for name in several) for several in known.values()
    )


def _ask(distribution: str) -> tuple[Names, Names]:
    question = _QUESTIONS[distribution]
    script = f"hub = {{}}\n{question}\nimport json\nprint({_SENTINEL!r} + json.dumps([answer, hub]))"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    # -P: import the installed library, not a module with its name in the working folder.
    command = [sys.executable, "-P", "-c", script]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, env=environment, check=False, timeout=_PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise PluginError(f"{distribution} did not list its models within {_PATIENCE_SECONDS} s") from None
    if asked.returncode != 0:
        last = asked.stderr.strip().splitlines()[-1:] or ["no error message"]
        raise PluginError(f"{distribution} is installed but cannot list its models: {last[0]}")
    answer = json.loads(asked.stdout.rpartition(_SENTINEL)[2])
    if not _is_answer(answer):
        raise PluginError(f"{distribution} lists its models in an unknown format: {str(answer)[:80]}")
    return answer[0], answer[1]
