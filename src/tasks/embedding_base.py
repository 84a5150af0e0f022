"""What tasks on stored image embeddings share: the images' role, text embeddings kept by content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from testbed.db.entities import SampleInfo
from testbed.errors import StoreError
from testbed.identity import digest
from testbed.models.capability_base import EMBED_IMAGE, EMBED_TEXT
from testbed.tasks import image_embedding
from testbed.tasks.task_base import IMAGES, BoundCell, Outputs, PrepareContext, Task, require
from testbed.tasks.texts import embed_texts, text_language

if TYPE_CHECKING:
    import numpy as np
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

TEXT_REVISION = 1  # of how texts are embedded; raised when the same texts get other embeddings


class TextTask(Task):
    """Image embeddings against embeddings of texts: its outputs are the image embeddings, the texts are prepared."""

    output_kind = image_embedding.KIND
    has_outputs = False
    scorer: ClassVar[str]

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embeddings"``, for dual encoders."""
        require(model, {EMBED_IMAGE, EMBED_TEXT}, setting)
        image_embedding.task.route(model, setting)
        text_language(model, setting.language)
        return "embeddings"

    def image_settings(self, model: ModelDefinition, setting: EvalSetting) -> dict[str, str]:
        """Its own images."""
        return {IMAGES: setting.name}

    def forward_spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """What decides the image embeddings."""
        return image_embedding.task.forward_spec(model, setting, class_names, seed)

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The scorer, the language that the tokenizer is told, and how texts are embedded."""
        return {"scorer": self.scorer, "language": setting.language, "texts": TEXT_REVISION}

    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """Embeds the texts, unless they are embedded already."""
        texts = self.texts(setting, context.samples)
        if texts:
            prepare_texts(loaded, texts, setting.language, context)
        return Prepared()

    def texts(self, setting: EvalSetting, samples: Sequence[SampleInfo]) -> list[str]:
        """The texts of all samples, each once, in the order of their first appearance."""
        raise NotImplementedError


class Prepared(BoundCell):
    """A cell for which nothing is left to be computed."""

    feature_key = "prepared"

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """Never called."""
        raise NotImplementedError

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """Never called."""
        raise NotImplementedError

    def attacked_model(self) -> Any:
        """Never called."""
        raise NotImplementedError


def text_fingerprint(model_identity: str, texts: Sequence[str], language: str) -> str:
    """What tells the embeddings of a list of texts from others."""
    return digest({"texts": list(texts), "language": language, "model": model_identity, "text_revision": TEXT_REVISION})


def prepare_texts(encoder: Any, texts: Sequence[str], language: str, context: PrepareContext) -> None:
    """Keeps the embeddings [len(texts), D] of some texts, as the encoder gives them."""
    fingerprint = text_fingerprint(context.model_identity, texts, language)
    if context.get(fingerprint) is None:
        embedded = embed_texts(encoder, texts, language).cpu()
        context.put(fingerprint, "text-embeddings", embedded, {"texts": len(texts), "language": language})


def text_embeddings(outputs: Outputs, texts: Sequence[str], language: str) -> np.ndarray[Any, Any]:
    """The embeddings [len(texts), D] of some texts, which were prepared when the cell was run.

    Raises:
        StoreError: If they are not in the store.
    """
    import numpy as np

    if not texts:
        return np.zeros((0, outputs.values.shape[1]), dtype=np.float32)
    found = outputs.artifact(text_fingerprint(outputs.model_identity, texts, language))
    if found is None:
        raise StoreError(
            f"the embeddings of the {len(texts)} texts are not in the store; eval.py with --override makes them again"
        )
    return found
