"""The ops that several tasks use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from testbed.data.decode import decoder
from testbed.graph.nodes import ItemOp, Reads
from testbed.identity.describe import digest
from testbed.models.base.capability import EMBED_TEXT, GENERATE, GenerationConfig

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

TEXT_REVISION = 1  # of how texts are embedded; raised when the same texts get other embeddings
ANSWER_REVISION = 1  # of how messages are sent; raised when the same messages get other answers


def image_spec(setting: EvalSetting, seed: int) -> dict[str, Any]:
    """Describes what determines the pixels that a model sees: decoder, transform, perturbations, random numbers."""
    spec: dict[str, Any] = {"decoder": decoder(), "transform": setting.transform}
    if setting.perturbation:
        spec["perturbation_cpu"] = setting.perturbation_fn_cpu
        spec["perturbation_gpu"] = setting.perturbation_fn_gpu
        spec["noise"] = [setting.perturbation.noise_key, seed]
    return spec


def embedding_spec(setting: EvalSetting, seed: int) -> dict[str, Any]:
    """Describes what determines the embeddings of a setting's images, besides model and images."""
    return {"task": "image_embedding", **image_spec(setting, seed)}


@dataclass(frozen=True)
class TextEmbeddings(ItemOp):
    """Embeddings [D] of texts, not normalized."""

    language: str
    reads = Reads.TEXTS
    needs = EMBED_TEXT

    def node(self, model_identity: str, definition: ModelDefinition, seed: int) -> str:
        """Model and language, where that makes a difference."""
        return digest([model_identity, definition.text_language(self.language), TEXT_REVISION])


def refusals_of(node: str) -> str:
    """Returns the node that stores the refusals of requests of a node of `Answers`.

    They are apart from answers: another evaluation with the same request asks once more.
    """
    return digest([node, "refusals"])


@dataclass(frozen=True)
class Answers(ItemOp):
    """Answers to messages."""

    config: GenerationConfig
    reads = Reads.QUESTIONS
    needs = GENERATE

    def node(self, model_identity: str, definition: ModelDefinition, seed: int) -> str:
        """Model, how text is generated, and the seed where it is sampled."""
        sampling = seed if self.config.temperature > 0 else None
        return digest([model_identity, "answers", self.config.spec(), sampling, ANSWER_REVISION])
