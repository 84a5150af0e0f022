"""Zero-shot heads: class embeddings from prompts (Radford et al. 2021), as in CLIP benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.identity import digest
from testbed.tasks.texts import embed_texts, text_language

if TYPE_CHECKING:
    import torch

    from testbed.tasks.task_base import PrepareContext

REVISION = 2  # of how heads are computed and used; raised if the same prompts give different logits


def head_fingerprint(model_identity: str, prompts: Sequence[Sequence[str]], language: str | None = None) -> str:
    """The fingerprint of a head: the model, all prompts, and the language if the model depends on it."""
    what: dict[str, Any] = {"head": "zero-shot", "revision": REVISION, "model": model_identity}
    what["prompts"] = [list(each) for each in prompts]
    return digest(what if language is None else {**what, "language": language})


def make_head(encoder: Any, prompts: Sequence[Sequence[str]], language: str = "en") -> torch.Tensor:
    """Embeds the prompts of each class: normalized, averaged over the prompts, normalized again.

    Args:
        encoder: An object with ``embed_text(texts) -> [B, D]``.
        prompts: The prompts of each of C classes. Distinct texts are embedded once, all together.
        language: The language of the prompts.

    Returns:
        Float32 tensor [D, C] on the CPU, columns of length 1.
    """
    import torch
    from torch.nn import functional

    texts = list(dict.fromkeys(prompt for prompts_of_class in prompts for prompt in prompts_of_class))
    place = {text: index for index, text in enumerate(texts)}
    embedded = functional.normalize(embed_texts(encoder, texts, language).float(), dim=-1)
    columns = []
    for prompts_of_class in prompts:
        mean = embedded[[place[prompt] for prompt in prompts_of_class]].mean(dim=0)
        columns.append(functional.normalize(mean, dim=0))
    return torch.stack(columns, dim=1).cpu()


def prepared_head(
    encoder: Any, prompts: Sequence[Sequence[str]], context: PrepareContext, language: str = "en"
) -> torch.Tensor:
    """The head, computed once for a model and its prompts and then cached by its content."""
    import numpy as np
    import torch

    code = text_language(getattr(encoder, "definition", None), language)
    fingerprint = head_fingerprint(context.model_identity, prompts, code)
    found = context.get(fingerprint)
    if found is None:
        head = make_head(encoder, prompts, language)
        context.put(fingerprint, "zero-shot-head", head, {"classes": len(prompts), "prompts": len(prompts[0])})
        found = context.get(fingerprint)  # use the stored one, in case another process computed it too
        if found is None:
            return head
    head = torch.from_numpy(np.array(found))
    if context.again:
        some = range(0, len(prompts), max(1, len(prompts) // context.again))
        head[:, list(some)] = make_head(encoder, [prompts[label] for label in some], language).to(head.dtype)
    return head
