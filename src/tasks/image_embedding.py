"""Image embeddings, stored for retrieval, selection, probes and other prompts, which use them instead of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from testbed.data.decode import DECODER
from testbed.entities import Metric, Score
from testbed.errors import UnsupportedError
from testbed.models.capability_base import EMBED_IMAGE
from testbed.tasks.task_base import BoundCell, Outputs, PrepareContext, Task, require

if TYPE_CHECKING:
    import torch

    from testbed.eval_settings.eval_setting_base import EvalSetting
    from testbed.models.model_base import ModelDefinition

KIND = "image_embeddings"
SCORER = "image_embedding@1"


class ImageEmbedding(Task):
    """Images to embeddings."""

    name = "image_embedding"
    output_kind = KIND

    def route(self, model: ModelDefinition, setting: EvalSetting) -> str:
        """``"embed_image"``."""
        require(model, {EMBED_IMAGE}, setting)
        if setting.adversarial_attack is not None or setting.perturbation_needs_model:
            raise UnsupportedError(f"{setting.name} attacks a classifier; image embeddings are not supported")
        return EMBED_IMAGE

    def forward_spec(
        self, model: ModelDefinition, setting: EvalSetting, class_names: Sequence[str] | None, seed: int
    ) -> dict[str, Any]:
        """Decoder, transform, perturbations with the key of their random numbers."""
        spec: dict[str, Any] = {"task": self.name, "decoder": DECODER, "transform": setting.transform}
        if setting.perturbed:
            spec["perturbation_cpu"] = setting.perturbation_fn_cpu
            spec["perturbation_gpu"] = setting.perturbation_fn_gpu
            spec["noise"] = [setting.noise_key, seed]
        return spec

    def view_spec(self, setting: EvalSetting) -> dict[str, Any]:
        """Only the scorer."""
        return {"scorer": SCORER}

    def bind(self, loaded: Any, setting: EvalSetting, context: PrepareContext) -> BoundCell:
        """The image encoder."""
        return EmbeddingCell(loaded)

    def score(
        self, outputs: Outputs, setting: EvalSetting, model: ModelDefinition | None
    ) -> tuple[list[Score], list[Metric]]:
        """The mean length of the embeddings; 0 or a non-finite value indicates a broken model."""
        import numpy as np

        from testbed.metrics.statistics import mean_and_stderr

        norms = np.linalg.norm(outputs.values.astype(np.float64), axis=1)
        readable = np.delete(norms, list(outputs.unreadable))
        value, stderr = mean_and_stderr(readable)
        return [], [Metric("embedding_norm", value, len(readable), stderr, unit="", scorer=SCORER)]


task = ImageEmbedding()


class EmbeddingCell(BoundCell):
    """An image encoder on a setting."""

    feature_key = "image-embeddings"

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded

    def features(self, images: torch.Tensor) -> torch.Tensor:
        """The embeddings."""
        embeddings: torch.Tensor = self.loaded.embed_image(images)
        return embeddings

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """The embeddings, unchanged."""
        return features

    def attacked_model(self) -> Any:
        """None: there is no classifier."""
        raise NotImplementedError
