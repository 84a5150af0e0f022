"""The end token of each text, where a tokenizer's files require it and transformers does not add it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError
from testbed.models.loading.hub_folder import adds_end

CONFIG = "tokenizer_config.json"
TEMPLATE = "TemplateProcessing"


def end_texts(tokenizer: Any, folder: Path, name: str) -> None:
    """Makes a tokenizer end each text with the end token, if its files require it and it does not.

    transformers 5 ignores ``add_eos_token`` in tokenizer_config.json, which 4 obeys for some kinds of tokenizer. A
    model that pools the last token was trained on that one.

    Args:
        tokenizer: transformers'; it is changed.
        folder: The folder of its files.
        name: The model, for messages.

    Raises:
        WeightsError: If the end token cannot be added.
    """
    end, token = getattr(tokenizer, "eos_token_id", None), getattr(tokenizer, "eos_token", None)
    if not callable(tokenizer) or end is None or _ends(tokenizer, end) or not _should_end(tokenizer, folder, token):
        return
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        content = json.loads(backend.to_str())
        content["post_processor"] = _ended(content["post_processor"], str(token), int(end))
        backend.post_processor = type(backend).from_str(json.dumps(content)).post_processor
    if not _ends(tokenizer, end):
        raise WeightsError(
            f"{name}: its tokenizer should end each text with {token!r}, as {folder / CONFIG} says, but this version of"
            " transformers does not add it; save the folder with a tokenizer.json whose post-processor does"
        )


def _ended(given: Any, token: str, number: int) -> dict[str, Any]:
    """A post-processor as tokenizer.json has it, with a token at the end of each text.

    It uses one template, since several in a row do not allow for each other's tokens when a text is cut.
    """
    plain = [{"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*plain, {"Sequence": {"id": "B", "type_id": 1}}]
    template = {"type": TEMPLATE, "single": plain, "pair": pair, "special_tokens": {}}
    steps = given["processors"] if given and given["type"] == "Sequence" else [given] if given else []
    if not any(step["type"] == TEMPLATE for step in steps):
        steps = [*steps, template]
    end = {"SpecialToken": {"id": token, "type_id": 0}}
    special = {token: {"id": token, "ids": [number], "tokens": [token]}}
    made = [
        {
            **step,
            "single": [*step["single"], end],
            "pair": [*step["pair"], end],
            "special_tokens": {**step["special_tokens"], **special},
        }
        if step["type"] == TEMPLATE
        else step
        for step in steps
    ]
    return made[0] if len(made) == 1 else {"type": "Sequence", "processors": made}


def _ends(tokenizer: Any, end: int) -> bool:
    return list(tokenizer("a")["input_ids"])[-1:] == [end]


def _should_end(tokenizer: Any, folder: Path, token: Any) -> bool:
    """Checks whether the files of a tokenizer require that each text ends with a token."""
    file, backend = folder / "tokenizer.json", getattr(tokenizer, "backend_tokenizer", None)
    if adds_end(folder) or backend is None or not file.is_file():
        return adds_end(folder)
    return bool(type(backend).from_file(str(file)).encode("a").tokens[-1:] == [str(token)])
