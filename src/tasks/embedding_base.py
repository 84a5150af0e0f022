"""What tasks on stored image embeddings share: their outputs are the embeddings, and texts are embedded beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from testbed.errors import LackingEmbeddingsError, StoreError
from testbed.identity import digest
from testbed.models.capability_base import EMBED_IMAGE, EMBED_TEXT
from testbed.tasks import image_embedding
from testbed.tasks.task_base import IMAGES, BoundCell, Outputs, PrepareContext, Task, require
from testbed.tasks.texts import text_language

if TYPE_CHECKING:
    import numpy as np

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

TEXT_REVISION = 1  # of how texts are embedded; raised when the same texts get other embeddings


class TextTask(Task):
    """Image embeddings against embeddings of texts, both by the model under test."""

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
        """Never called: the image embeddings are stored."""
        raise NotImplementedError


def text_node(model_identity: str, definition: Any, language: str) -> str:
    """The name under which a model's embeddings of texts in a language are stored.

    Args:
        model_identity: The digest of model, weights and precision.
        definition: The model's definition.
        language: Of the texts.
    """
    return digest([model_identity, text_language(definition, language), TEXT_REVISION])


def text_fingerprint(model_identity: str, texts: Sequence[str], language: str) -> str:
    """The fingerprint under which stores of schema 0004 and before have the embeddings of a list of texts."""
    return digest({"texts": list(texts), "language": language, "model": model_identity, "text_revision": TEXT_REVISION})


def text_embeddings(outputs: Outputs, texts: Sequence[str], language: str) -> np.ndarray[Any, Any]:
    """The embeddings [len(texts), D] of some texts, by the model under test.

    Stores of schema 0004 and before have them as one array for each list of texts.

    Raises:
        StoreError: If they are missing.
    """
    import numpy as np

    if not texts:
        return np.zeros((0, outputs.values.shape[1]), dtype=np.float32)
    if outputs.texts is not None:
        try:
            return outputs.texts(texts)
        except LackingEmbeddingsError:
            if (found := outputs.artifact(text_fingerprint(outputs.model_identity, texts, language))) is None:
                raise
            return found
    found = outputs.artifact(text_fingerprint(outputs.model_identity, texts, language))
    if found is None:
        raise StoreError(f"the embeddings of the {len(texts)} texts are not stored; eval.py with --override makes them")
    return found
