"""sentence-transformers' models with the method that testbed calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from testbed.errors import RunError, WeightsError


class Sentences(nn.Module):
    """A model of sentence-transformers.

    Args:
        network: A `SentenceTransformer`.
        prompt: The text in front of each text; None for the model's own default, if it has one.
    """

    def __init__(self, network: Any, prompt: str | None) -> None:
        super().__init__()
        self.network = network
        self.prompt = prompt

    @property
    def max_seq_length(self) -> int | None:
        """The most tokens of a text."""
        length: int | None = self.network.max_seq_length
        return length

    @max_seq_length.setter
    def max_seq_length(self, length: int) -> None:
        self.network.max_seq_length = length

    def encode(self, texts: list[str], instruction: str) -> torch.Tensor:
        """Maps one batch of texts to embeddings [B, D]; the instruction is the prompt, which is known already.

        Raises:
            RunError: If the prompt leaves no room for a text.
        """
        self._require_room()
        embeddings: torch.Tensor = self.network.encode(
            texts, prompt=self.prompt, batch_size=len(texts), show_progress_bar=False, convert_to_tensor=True
        )
        return embeddings

    def lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text, including the prompt; 0 where the tokenizer does not report them."""
        tokenizer, most = getattr(self.network, "tokenizer", None), self.max_seq_length
        if not callable(tokenizer):
            return [0] * len(texts)
        prompted = [self._prompt() + text for text in texts]
        ids = tokenizer(prompted, truncation=bool(most), max_length=most, return_attention_mask=False)["input_ids"]
        return [len(each) for each in ids]

    def uncut_lengths(self, texts: list[str], instruction: str) -> list[int]:
        """Counts the tokens of each text before it is cut, including the prompt; 0 where the tokenizer has no count."""
        tokenizer = getattr(self.network, "tokenizer", None)
        if not callable(tokenizer):
            return [0] * len(texts)
        return [len(tokenizer(self._prompt() + text, truncation=False, verbose=False)["input_ids"]) for text in texts]

    def _prompt(self) -> str:
        """Returns the prompt in front of each text."""
        own: str = self.network.prompts.get(self.network.default_prompt_name) or ""
        return own if self.prompt is None else self.prompt

    def _require_room(self) -> None:
        tokenizer, most = getattr(self.network, "tokenizer", None), self.max_seq_length
        if not most or not callable(tokenizer):  # one that is not transformers'
            return
        taken = len(tokenizer(self._prompt())["input_ids"])
        if taken >= most:
            raise RunError(
                f"the instruction and the tokens that begin and end each text are {taken}, of at most {most}, which"
                " leaves none for a text; raise max_length or shorten the instruction"
            )


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


CONFIG = "tokenizer_config.json"
TEMPLATE = "TemplateProcessing"


def _ended(given: Any, token: str, number: int) -> dict[str, Any]:
    """A post-processor as tokenizer.json has it, with a token at the end of each text.

    It uses one template, since several in a row do not allow for each other's tokens when a text is cut.
    """
    plain = [{"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*plain, {"Sequence": {"id": "B", "type_id": 1}}]
    template = {"type": TEMPLATE, "single": plain, "pair": pair, "special_tokens": {}}
    steps = given["processors"] if given and given["type"] == "Sequence" else [given] if given else []
    if not any(each["type"] == TEMPLATE for each in steps):
        steps = [*steps, template]
    end = {"SpecialToken": {"id": token, "type_id": 0}}
    special = {token: {"id": token, "ids": [number], "tokens": [token]}}
    made = [
        {
            **each,
            "single": [*each["single"], end],
            "pair": [*each["pair"], end],
            "special_tokens": {**each["special_tokens"], **special},
        }
        if each["type"] == TEMPLATE
        else each
        for each in steps
    ]
    return made[0] if len(made) == 1 else {"type": "Sequence", "processors": made}


def _ends(tokenizer: Any, end: int) -> bool:
    return list(tokenizer("a")["input_ids"])[-1:] == [end]


def _should_end(tokenizer: Any, folder: Path, token: Any) -> bool:
    """Checks whether the files of a tokenizer require that each text ends with a token."""
    from testbed.models.loading.hub_folder import adds_end

    file, backend = folder / "tokenizer.json", getattr(tokenizer, "backend_tokenizer", None)
    if adds_end(folder) or backend is None or not file.is_file():
        return adds_end(folder)
    return bool(type(backend).from_file(str(file)).encode("a").tokens[-1:] == [str(token)])
