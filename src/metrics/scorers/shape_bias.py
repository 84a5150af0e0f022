"""Shape bias: whether images whose shape and texture are of different classes are taken for the class of the shape.

Geirhos et al., "ImageNet-trained CNNs are biased towards texture" (2019): of the images that are taken for either, the
share that is taken for the class of the shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from testbed.arrays import Array
from testbed.entities import Metric, SampleInfo
from testbed.metric_specs import NEITHER, rate
from testbed.metrics.classification import predicted_classes
from testbed.metrics.scorers.classification import SCORER, score_classes

TEXTURE = "texture"  # the slice with the class of the texture
SHAPE_BIAS = rate("shape_bias", NEITHER, zero_one=True)
SCORER_OF_BIAS = "shape_bias@1"


def shape_bias(predicted: Array, shapes: Array, textures: Array) -> Metric:
    """The share of decisions for the shape among those for the shape or the texture.

    Args:
        predicted: Integer array [n] of classes; −1 where there is none.
        shapes: The class of the shape, [n].
        textures: The class of the texture, [n]; where both are the same class the image does not count.
    """
    apart = shapes != textures
    by_shape, by_texture = (int((apart & (predicted == labels)).sum()) for labels in (shapes, textures))
    decided = by_shape + by_texture
    value = by_shape / decided if decided else None
    stderr = None if value is None or decided < 2 else (value * (1 - value) / (decided - 1)) ** 0.5
    return SHAPE_BIAS.metric(value, decided, stderr, scorer=SCORER_OF_BIAS)


class ShapeBias:
    """A ``metrics_fn``: the usual metrics, and the shape bias."""

    def spec(self) -> dict[str, Any]:
        """The usual metrics with their version, and the shape bias with its own."""
        return {"scorer": SCORER, "also": SCORER_OF_BIAS}

    def __call__(
        self,
        logits: Any,
        targets: Any,
        image_paths: Sequence[str],
        slices: Sequence[Mapping[str, Any]],
        class_names: Sequence[str],
    ) -> list[Any]:
        """Computes metrics and scores of logits [n, C], targets [n], the samples' ids and slices, and class names."""
        values, shapes = np.asarray(logits), np.asarray(targets)
        samples = [SampleInfo(str(path), "", int(target)) for path, target in zip(image_paths, shapes, strict=True)]
        scores, metrics = score_classes(values, samples, class_names, TEXTURE)
        textures = np.array([class_names.index(sample_slices[TEXTURE]) for sample_slices in slices])
        return [*scores, *metrics, shape_bias(predicted_classes(values), shapes, textures)]
