"""Reads stored image embeddings for the samples of a data set."""

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
        store: The results store.
        evaluation_id: The evaluation with the embeddings, possibly with others and in a different order.
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
    """The same, from any stored evaluation that has them all.

    Args:
        store: The results store.
        forward: The forward fingerprint of the evaluations to search.
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
            continue  # it lacks some of the images
    raise LackingEmbeddingsError(
        "the judge's image embeddings are missing from the store; run eval.py with the same model and setting to"
        " compute them"
    )
