"""Image embeddings that are stored, read for the samples of some data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from testbed.db.store import Store
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, StoreError
from testbed.tasks import image_embedding
from testbed.tasks.task_base import EmbeddedImages

if TYPE_CHECKING:
    import numpy as np


def embedded_images(store: Store, evaluation_id: int, dataset_id: int) -> EmbeddedImages:
    """The stored embeddings of the samples of a data set, in their order.

    Args:
        store: Where they are.
        evaluation_id: The evaluation that has them, perhaps among others and in another order.
        dataset_id: The data set.

    Raises:
        StoreError: If one is missing.
    """
    evaluation = store.evaluation(evaluation_id)
    assert evaluation.dataset_id is not None
    rows = store.positions_among(dataset_id, evaluation.dataset_id)
    values = store.read_outputs(evaluation_id, image_embedding.KIND)
    errors = store.sample_errors(evaluation_id)
    own_errors: Mapping[int, str] = {place: errors[row] for place, row in enumerate(rows) if row in errors}
    taken: np.ndarray[Any, Any] = values if rows == list(range(len(values))) else values[rows]
    return EmbeddedImages(taken, store.dataset(dataset_id).samples, own_errors)


def embedded_images_of(store: Store, forward: str, dataset_id: int) -> EmbeddedImages:
    """The same, from whichever stored evaluation has them.

    Args:
        store: Where they are.
        forward: What decides the embeddings: the forward fingerprint of such evaluations.
        dataset_id: The data set.

    Raises:
        LackingEmbeddingsError: If no evaluation has all of them.
    """
    for evaluation in store.sources({forward}):
        try:
            return embedded_images(store, evaluation.id, dataset_id)
        except CorruptOutputError:
            raise
        except StoreError:
            continue  # it has other images, or not all of them
    raise LackingEmbeddingsError(
        "the scorer's embeddings of the images are not in the store; run eval.py with the same model and setting, which"
        " makes them again"
    )
