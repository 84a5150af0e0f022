"""scikit-learn's classifiers and pipelines as models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from testbed.errors import DefinitionError, RunError
from testbed.models.base.class_order import LISTED, ClassOrder

if TYPE_CHECKING:
    import numpy as np
    import torch

# Which of an estimator's methods give logits, the preferred one first.
METHODS = ("predict_proba", "decision_function")


def is_estimator(thing: Any) -> bool:
    """Checks whether a thing follows scikit-learn's conventions for classifiers."""
    return not isinstance(thing, type) and callable(getattr(thing, "fit", None)) and hasattr(thing, "get_params")


class EstimatorNetwork:
    """A fitted classifier as a function from images or features to logits.

    The numbers of an image come in the order channels, rows, columns. Probabilities become logits by their logarithm,
    so that softmax gives them back; those of 0 become the smallest positive float32. Where there are none, the decision
    function is taken; of two classes, 0 is the other one's.

    Args:
        estimator: The fitted estimator.

    Raises:
        DefinitionError: If it is not a fitted classifier.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        name = type(estimator).__name__
        self.method = next((method for method in METHODS if hasattr(estimator, method)), "")
        if not self.method:
            raise DefinitionError(
                f"{name} has neither predict_proba nor decision_function; a model here is a classifier of scikit-learn"
            )
        try:
            self.classes = [class_.item() if hasattr(class_, "item") else class_ for class_ in estimator.classes_]
        except (AttributeError, TypeError):
            raise DefinitionError(f"{name} is not fitted: it has no classes_; call its fit method first") from None

    @property
    def order(self) -> ClassOrder:
        """The classes of the logits: by name, unless they are the numbers 0, 1, …"""
        if self.classes == list(range(len(self.classes))):
            return ClassOrder()
        name = type(self.estimator).__name__
        return ClassOrder(LISTED, f"classes_ of {name}", tuple(str(class_) for class_ in self.classes))

    @property
    def features(self) -> int | None:
        """The number of features of a sample, if the estimator reports it."""
        number = getattr(self.estimator, "n_features_in_", None)
        return None if number is None else int(number)

    def check(self, made: Any) -> None:
        """Checks that a transform's tensor has the estimator's number of features; else raises DefinitionError."""
        if self.features is not None and made.numel() != self.features:
            raise DefinitionError(
                f"{type(self.estimator).__name__} takes {self.features:,} numbers for each image; its transform makes"
                f" {made.numel():,} (shape {tuple(made.shape)})"
            )

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        """Maps images [B, 3, H, W] or features [B, D] to logits [B, C]."""
        import numpy as np
        import torch

        rows = images.detach().cpu().numpy().reshape(len(images), -1)
        outputs: np.ndarray = np.asarray(getattr(self.estimator, self.method)(rows), dtype=np.float64)
        if self.method == METHODS[0]:
            outputs = np.log(np.maximum(outputs, np.finfo(np.float32).tiny))
        elif outputs.ndim == 1:
            outputs = np.stack([np.zeros_like(outputs), outputs], axis=1)
        if outputs.shape != (len(images), len(self.classes)):
            raise RunError(
                f"{type(self.estimator).__name__}: {self.method} should give ({len(images)}, {len(self.classes)})"
                f" numbers, got {outputs.shape}"
            )
        return torch.tensor(outputs, dtype=torch.float32, device=images.device)


def estimator_name(estimator: Any) -> str:
    """The class of an estimator; of a pipeline, that of its last step."""
    steps = getattr(estimator, "steps", None)
    last = steps[-1][1] if isinstance(steps, list) and steps else estimator
    return type(last).__name__
