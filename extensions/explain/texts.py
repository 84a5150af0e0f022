"""Zero-shot heads under other protocols: prompts, class names, spelling, and averaging of prompts."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.extensions.explain.axis import NotApplicableError
from testbed.graph.ops import TextEmbeddings
from testbed.identity.fingerprints import model_identity

if TYPE_CHECKING:
    from testbed.extensions.explain.cell import EvaluatedCell

Network = tuple[str, str, str]  # weights, activation and precision; see `Pixels`
SCALE = 100.0  # as `testbed.models.base.runtime.ZeroShotClassifier`
NORMALIZED = "normalized"  # each prompt normalized, then their mean, as in CLIP
RAW = "raw"  # the mean of raw prompts, then normalized
LOGITS = "logits"  # each prompt normalized, their mean not: the mean of the prompts' logits
MAXIMUM = "maximum"  # the best prompt of each class
PROMPT_FILE = "prompts of a file"  # the axis whose file other commands also require


@dataclass(frozen=True)
class Texts:
    """The prompts of a zero-shot head, and their processing.

    Attributes:
        class_names: A name for each class.
        templates: Prompts with ``{c}``; or for each class its own prompts.
        spelling: Applied to each prompt, in order.
        average: `NORMALIZED`, `RAW`, `LOGITS` or `MAXIMUM`.
        length: The number of tokens after which texts are cut; None for the model's own.
    """

    class_names: tuple[str, ...]
    templates: tuple[str, ...] | tuple[tuple[str, ...], ...]
    spelling: tuple[Callable[[str], str], ...] = ()
    average: str = NORMALIZED
    length: int | None = None

    def with_spelling(self, function: Callable[[str], str]) -> Texts:
        """Returns these texts with a further change of spelling."""
        return replace(self, spelling=(*self.spelling, function))

    @property
    def by_class(self) -> bool:
        """True if each class has its own prompts."""
        return bool(self.templates) and not isinstance(self.templates[0], str)

    def prompts(self) -> list[list[str]]:
        """Returns the prompts of each class."""
        if self.by_class:
            made = [list(template) for template in self.templates]
        else:
            made = [[str(template).replace("{c}", name) for template in self.templates] for name in self.class_names]
        for function in self.spelling:
            made = [[function(text) for text in of_class] for of_class in made]
        return made


def stored_texts(cell: EvaluatedCell) -> Texts:
    """Returns the texts of the stored logits.

    Raises:
        NotApplicableError: If there are none, or they are not recorded.
    """
    prompts: dict[str, Any] = cell.identity.get("forward", {}).get("prompts") or {}
    names, templates = prompts.get("class_names"), prompts.get("templates")
    if not names or not templates:
        raise NotApplicableError("the zero-shot head came from a file" if prompts else "no class prompts are involved")
    return texts_of(prompts)


def texts_of(prompts: Mapping[str, Any]) -> Texts:
    """Builds texts from the result of `testbed.eval_settings.base.parts.Prompts.spec`."""
    names, templates = prompts["class_names"], prompts["templates"]
    if isinstance(templates, Mapping):
        return Texts(tuple(names), tuple(tuple(templates[name]) for name in names))
    return Texts(tuple(names), tuple(templates))


class Heads:
    """Logits from image embeddings and texts. Texts that become the same tokens are embedded once.

    Args:
        cell: The cell.
        load: Returns the loaded dual encoder with a network, such as one of another precision; None is its own.

    Attributes:
        texts: Number of embedded texts.
        reused: Number of embeddings taken from the store.
    """

    def __init__(self, cell: EvaluatedCell, load: Callable[[Network | None], Any]) -> None:
        self._cell = cell
        self._load = load
        self._embedded: dict[tuple[str, int | None, Network | None], Array] = {}
        self._of_tokens: dict[tuple[bytes, Network | None], Array] = {}
        self._heads: dict[tuple[Texts, Network | None], tuple[Array, int]] = {}
        self.texts = self.reused = 0

    def logits(self, embeddings: Array, texts: Texts, network: Network | None = None) -> Array:
        """Float array [m, C] from image embeddings [m, D]."""
        head, prompts = self._head(texts, network)
        scaled = np.asarray(embeddings, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        logits: Array = (SCALE * scaled @ head).astype(np.float32)
        if prompts > 1:
            logits = logits.reshape(len(logits), -1, prompts).max(axis=2)
        return logits

    def same(self, texts: Texts, other: Texts) -> bool:
        """Returns whether two heads are equal, number by number."""
        (one, prompts), (two, more) = self._head(texts, None), self._head(other, None)
        return prompts == more and np.array_equal(one, two)

    def lacking(self, texts: Texts) -> int:
        """The maximum number of texts to embed for a head."""
        if (texts, None) in self._heads:
            return 0
        prompts = {text for of_class in texts.prompts() for text in of_class}
        return sum((text, texts.length, None) not in self._embedded for text in prompts)

    def _head(self, texts: Texts, network: Network | None) -> tuple[Array, int]:
        """Float array [D, C · prompts], and the number of columns of a class."""
        if (texts, network) not in self._heads:
            self._heads[texts, network] = self._made(texts, network)
        return self._heads[texts, network]

    def _made(self, texts: Texts, network: Network | None) -> tuple[Array, int]:
        prompts = texts.prompts()
        self._embed([text for of_class in prompts for text in of_class], texts.length, network)
        of_classes = [np.stack([self._embedded[text, texts.length, network] for text in prompt]) for prompt in prompts]
        if texts.average == MAXIMUM:
            most = max(map(len, of_classes))
            return np.concatenate(
                [_unit(class_name)[np.arange(most) % len(class_name)] for class_name in of_classes]
            ).T, most
        return np.stack([_class_embedding(class_name, texts.average) for class_name in of_classes], 1), 1

    def _embed(self, texts: Sequence[str], length: int | None, network: Network | None) -> None:
        new = [text for text in dict.fromkeys(texts) if (text, length, network) not in self._embedded]
        if length is None and network is None:
            new = self._read(new)
        if not new:
            return
        import torch

        from testbed.graph.texts import embed_texts

        language = self._cell.setting.language
        encoder = self._load(network)
        encoder = encoder if length is None else _cut(encoder, length)
        keys = dict(zip(new, _token_keys(encoder, new, language), strict=True))
        first = {key: text for text, key in reversed(keys.items()) if (key, network) not in self._of_tokens}
        if first:
            with torch.no_grad():
                made = embed_texts(encoder, list(first.values()), language).double().cpu().numpy()
            self._of_tokens.update({(key, network): each for key, each in zip(first, made, strict=True)})
            self.texts += len(first)
        self._embedded.update({(text, length, network): self._of_tokens[key, network] for text, key in keys.items()})

    def _read(self, texts: Sequence[str]) -> list[str]:
        """Reads embeddings that the store has from other settings; returns the missing texts."""
        node = self._node
        lacking = self._cell.store.items.lacking(node, texts) if texts else []
        left = set(lacking)
        there = [text for text in texts if text not in left]
        if there:
            stored = self._cell.store.items.read(node, there).astype(np.float64)
            self._embedded.update({(text, None, None): stored[place] for place, text in enumerate(there)})
            self.reused += len(there)
        return lacking

    @cached_property
    def _node(self) -> str:
        """The node of the store with the stored network's embeddings of texts."""
        op = TextEmbeddings(self._cell.setting.language)
        return op.node(model_identity(self._cell.identity), self._cell.model, 0)


def _token_keys(encoder: Any, texts: Sequence[str], language: str) -> list[bytes]:
    """A digest of the tokens of each text."""
    tokens = encoder.tokens(texts, language)
    parts = [token.cpu().numpy() for token in (tokens.values() if isinstance(tokens, Mapping) else [tokens])]
    return [hashlib.sha256(b"".join(part[row].tobytes() for part in parts)).digest() for row in range(len(texts))]


def _class_embedding(prompts: Array, average: str) -> Array:
    mean: Array = (prompts if average == RAW else _unit(prompts)).mean(axis=0)
    return mean if average == LOGITS else _unit(mean[None])[0]


def _unit(rows: Array) -> Array:
    scaled: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def _cut(loaded: Any, length: int) -> Any:
    """Makes a loaded dual encoder truncate texts after some tokens, keeping the end token."""
    other = copy.copy(loaded)
    tokenizer = other.tokenizer = copy.copy(loaded.tokenizer)
    if hasattr(tokenizer, "length"):  # transformers' cut by themselves
        tokenizer.length = min(tokenizer.length, length)
        return other

    def cut(texts: Sequence[str]) -> Any:
        tokens = tokenizer(texts)
        if tokens.shape[1] <= length:
            return tokens
        shorter = tokens.clone()
        shorter[:, length:] = 0
        longer = (tokens[:, length:] != 0).any(dim=1)
        shorter[longer, length - 1] = tokens[longer].max(dim=1).values
        return shorter

    other.tokenizer = cut
    return other
