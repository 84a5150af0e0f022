"""The base of tasks that compare image embeddings with text embeddings, both by the model under test."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.graph.nodes import Built
from testbed.graph.ops import TEXT_REVISION
from testbed.models.base.capability import EMBED_IMAGE, EMBED_TEXT
from testbed.tasks import image_embedding
from testbed.tasks.task_base import Task, require

if TYPE_CHECKING:
    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition


class EmbeddingTask(Task):
    """Image embeddings against embeddings of texts."""

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embeddings"``, for dual encoders."""
        require(model, {EMBED_IMAGE, EMBED_TEXT}, setting)
        image_embedding.task.route(model, setting)
        model.text_language(setting.language)
        return "embeddings"

    def build(self, graph: Graph) -> Built:
        """The embeddings of the images, and those of the texts."""
        return Built(graph.image_embeddings(), {"texts": graph.text_embeddings(self.texts)})

    @abstractmethod
    def texts(self, setting: EvalSetting, values: Values) -> Sequence[str]:
        """The texts of a setting's samples, each once."""

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """The scorer, the language passed to the tokenizer, and how texts are embedded."""
        return {"scorer": self.scorer, "language": setting.language, "texts": TEXT_REVISION}
