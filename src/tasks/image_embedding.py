"""Image embeddings, stored for retrieval, selection, probes and other prompts, which use them instead of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from testbed.entities import Metric, Score
from testbed.errors import UnsupportedError
from testbed.graph.nodes import Built, Op, Steps
from testbed.graph.ops import embedding_spec
from testbed.metric_specs import NEITHER, MetricSpec
from testbed.models.base.capability import EMBED_IMAGE
from testbed.tasks.task_base import Task, require

if TYPE_CHECKING:
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.graph.build import Graph
    from testbed.graph.values import Values
    from testbed.models.model_base import ModelDefinition

KIND = "image_embeddings"
NORM = MetricSpec("embedding_norm", "", NEITHER, lowest=0)
FEATURES = "image-embeddings"  # cells with these features share them


class ImageEmbeddings(Op):
    """Embeddings [D] of images, not normalized."""

    kind = KIND

    def spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """The pixels."""
        return embedding_spec(setting, seed)

    def steps(
        self,
        loaded: Any,
        setting: EvalSetting,
        ones: Mapping[str, torch.Tensor],
        class_names: Sequence[str] | None = None,
    ) -> Steps:
        """The image encoder."""
        return Steps(FEATURES, lambda embeddings: embeddings, loaded.embed_image)


class ImageEmbedding(Task):
    """Images to embeddings."""

    name = "image_embedding"
    scorer = "image_embedding@1"
    leaves_out_unreadable = True
    of_images_alone = True

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embed_image"``."""
        require(model, {EMBED_IMAGE}, setting)
        if setting.perturbation.attacks:
            raise UnsupportedError(f"{setting.name} attacks a classifier; image embeddings are not supported")
        return EMBED_IMAGE

    def build(self, graph: Graph) -> Built:
        """The embeddings."""
        return Built(graph.rows(ImageEmbeddings()))

    def score(
        self, values: Values, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The mean length of the embeddings; 0 or a non-finite value indicates a broken model."""
        import numpy as np

        from testbed.metrics.inference.statistics import mean_and_stderr

        norms = np.linalg.norm(values.outputs.astype(np.float64), axis=1)
        readable = np.delete(norms, list(values.unreadable))
        value, stderr = mean_and_stderr(readable)
        return [], [NORM.metric(value, len(readable), stderr, scorer=self.scorer)]


task = ImageEmbedding()
