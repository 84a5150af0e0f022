"""Zero-shot heads: class embeddings from prompts (Radford et al. 2021), as in CLIP benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.graph.nodes import Artifact, Given
from testbed.graph.texts import embed_texts
from testbed.identity.describe import digest

if TYPE_CHECKING:
    import torch

    from testbed.models.model_base import ModelDefinition

REVISION = 2  # of how heads are computed and used; raised if the same prompts give different logits


def head_fingerprint(model_identity: str, prompts: Sequence[Sequence[str]], language: str | None = None) -> str:
    """The fingerprint of a head: the model, all prompts, and the language if the model depends on it."""
    what: dict[str, Any] = {"head": "zero-shot", "revision": REVISION, "model": model_identity}
    what["prompts"] = [list(prompt) for prompt in prompts]
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


@dataclass(frozen=True)
class ZeroShotHead(Artifact):
    """The class embeddings of a setting's prompts, float32 [D, C]."""

    kind = "zero-shot-head"

    def fingerprint(self, given: Given, definition: ModelDefinition) -> str:
        """See `head_fingerprint`."""
        prompts = given.setting.prompts.texts(given.class_names)
        return head_fingerprint(given.model_identity, prompts, definition.text_language(given.setting.language))

    def make(self, loaded: Any, given: Given) -> tuple[torch.Tensor, dict[str, Any]]:
        """Embeds the prompts."""
        prompts = given.setting.prompts.texts(given.class_names)
        about = {"classes": len(prompts), "prompts": len(prompts[0])}
        return make_head(loaded, prompts, given.setting.language), about

    def remake(self, value: torch.Tensor, loaded: Any, given: Given, parts: int) -> torch.Tensor:
        """Embeds the prompts of so many classes again."""
        prompts = given.setting.prompts.texts(given.class_names)
        some = range(0, len(prompts), max(1, len(prompts) // parts))
        made = make_head(loaded, [prompts[label] for label in some], given.setting.language)
        head = value.clone()
        head[:, list(some)] = made.to(head.dtype)
        return head
