"""Zero-shot heads under other protocols: prompts, class names, their spelling, and how prompts are averaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.explain.axis import NotApplicableError
from testbed.explain.table import Array

if TYPE_CHECKING:
    from testbed.explain.cell import StoredCell

SCALE = 100.0  # as `testbed.models.base.runtime.ZeroShotClassifier`
NORMALIZED = "normalized"  # each prompt, then their mean: CLIP's way
RAW = "raw"  # the mean of prompts as they come, then normalized
LOGITS = "logits"  # each prompt normalized, their mean not: the mean of the prompts' logits
MAXIMUM = "maximum"  # the best prompt of each class


@dataclass(frozen=True)
class Texts:
    """The prompts of a zero-shot head, and what is done with them.

    Attributes:
        class_names: A name for each class.
        templates: Prompts with ``{c}``; or class name → its prompts, as a tuple of pairs.
        spelling: Applied to each prompt, in order.
        average: `NORMALIZED`, `RAW`, `LOGITS` or `MAXIMUM`.
        length: The number of tokens after which texts are cut; None for the model's own.
    """

    class_names: tuple[str, ...]
    templates: tuple[str, ...] | tuple[tuple[str, tuple[str, ...]], ...]
    spelling: tuple[Callable[[str], str], ...] = ()
    average: str = NORMALIZED
    length: int | None = None

    def with_spelling(self, function: Callable[[str], str]) -> Texts:
        """These texts, each of them changed."""
        return replace(self, spelling=(*self.spelling, function))

    @property
    def by_class(self) -> bool:
        """Whether each class has prompts of its own."""
        return bool(self.templates) and not isinstance(self.templates[0], str)

    def prompts(self) -> list[list[str]]:
        """For each class its prompts."""
        if self.by_class:
            of: dict[str, Sequence[str]] = dict(self.templates)  # type: ignore[arg-type]
            made = [list(of[name]) for name in self.class_names]
        else:
            made = [[str(each).replace("{c}", name) for each in self.templates] for name in self.class_names]
        for function in self.spelling:
            made = [[function(text) for text in of_class] for of_class in made]
        return made


def stored_texts(cell: StoredCell) -> Texts:
    """The texts that the stored logits were computed with.

    Raises:
        NotApplicableError: If there are none, or they are not on record.
    """
    prompts: dict[str, Any] = cell.identity.get("forward", {}).get("prompts") or {}
    names, templates = prompts.get("class_names"), prompts.get("templates")
    if not names or not templates:
        raise NotApplicableError("the zero-shot head came from a file" if prompts else "no class prompts are involved")
    return texts_of(prompts)


def texts_of(prompts: Mapping[str, Any]) -> Texts:
    """Texts from what `testbed.eval_settings.base.parts.Prompts.spec` gives."""
    names, templates = prompts["class_names"], prompts["templates"]
    if isinstance(templates, Mapping):
        return Texts(tuple(names), tuple((name, tuple(templates[name])) for name in dict.fromkeys(names)))
    return Texts(tuple(names), tuple(templates))


class Heads:
    """Logits from image embeddings and texts. Each text is embedded once.

    Args:
        cell: The cell.
        load: Returns the loaded dual encoder.
    """

    def __init__(self, cell: StoredCell, load: Callable[[], Any]) -> None:
        self._cell = cell
        self._load = load
        self._embedded: dict[tuple[str, int | None], Array] = {}
        self._heads: dict[Texts, tuple[Array, int]] = {}
        self.texts = 0

    def logits(self, embeddings: Array, texts: Texts) -> Array:
        """Float array [m, C] from image embeddings [m, D]."""
        head, prompts = self._head(texts)
        scaled = np.asarray(embeddings, dtype=np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
        logits: Array = (SCALE * scaled @ head).astype(np.float32)
        if prompts > 1:
            logits = logits.reshape(len(logits), -1, prompts).max(axis=2)
        return logits

    def same(self, texts: Texts, other: Texts) -> bool:
        """Whether two heads are equal, number by number."""
        (one, prompts), (two, more) = self._head(texts), self._head(other)
        return prompts == more and np.array_equal(one, two)

    def _head(self, texts: Texts) -> tuple[Array, int]:
        """Float array [D, C · prompts], and the number of columns of a class."""
        if texts not in self._heads:
            prompts = texts.prompts()
            self._embed([text for of_class in prompts for text in of_class], texts.length)
            of_classes = [np.stack([self._embedded[text, texts.length] for text in each]) for each in prompts]
            if texts.average == MAXIMUM:
                most = max(map(len, of_classes))
                columns = [_unit(each)[np.arange(most) % len(each)] for each in of_classes]
                self._heads[texts] = np.concatenate(columns).T, most
            else:
                self._heads[texts] = np.stack([_class_embedding(each, texts.average) for each in of_classes], 1), 1
        return self._heads[texts]

    def _embed(self, texts: Sequence[str], length: int | None) -> None:
        new = [text for text in dict.fromkeys(texts) if (text, length) not in self._embedded]
        if not new:
            return
        import torch

        from testbed.graph.texts import embed_texts

        loaded = self._load()
        encoder = loaded if length is None else _Cut(loaded, length)
        with torch.no_grad():
            made = embed_texts(encoder, new, self._cell.setting.language).double().cpu().numpy()
        self._embedded.update({(text, length): made[place] for place, text in enumerate(new)})
        self.texts += len(new)


def _class_embedding(prompts: Array, average: str) -> Array:
    mean: Array = (prompts if average == RAW else _unit(prompts)).mean(axis=0)
    return mean if average == LOGITS else _unit(mean[None])[0]


def _unit(rows: Array) -> Array:
    scaled: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


class _Cut:
    """A loaded dual encoder whose texts are cut after some tokens, the last one kept as their end."""

    def __init__(self, loaded: Any, length: int) -> None:
        import copy

        self._loaded = copy.copy(loaded)
        tokenizer = loaded.tokenizer

        def cut(texts: Sequence[str]) -> Any:
            tokens = tokenizer(texts)
            if tokens.shape[1] <= length:
                return tokens
            shorter = tokens.clone()
            shorter[:, length:] = 0
            longer = (tokens[:, length:] != 0).any(dim=1)
            shorter[longer, length - 1] = tokens[longer].max(dim=1).values
            return shorter

        self._loaded.tokenizer = cut
        self.definition = loaded.definition

    def embed_text(self, texts: Sequence[str], language: str | None = None) -> Any:
        """As `LoadedDualEncoder.embed_text`."""
        return self._loaded.embed_text(texts, language)
