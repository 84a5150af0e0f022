"""Finishing evaluations: from stored outputs to scores and metrics. Runs no model."""

from __future__ import annotations

import logging
from functools import partial

from testbed.db.store import Store
from testbed.errors import CorruptOutputError, LackingEmbeddingsError, StoreError, TestbedError
from testbed.registry.catalog import Catalog
from testbed.runner.cells import model_identity
from testbed.runner.scorers import scorer_of
from testbed.runner.stored_images import embedded_images_of
from testbed.tasks.task_base import Outputs, get_task

log = logging.getLogger("testbed")


def finish(store: Store, catalog: Catalog, evaluation_id: int) -> str | None:
    """Scores the outputs of an evaluation and completes it, in one transaction.

    Args:
        store: Where the outputs are.
        catalog: For the setting's metric.
        evaluation_id: An evaluation whose outputs are all stored, or that is derived from one.

    Returns:
        None, or the reason why it could not be scored; the evaluation is then marked as failed, its outputs stay.

    Raises:
        StoreError: If the store cannot be read or written.
    """
    try:
        scores, metrics = _score(store, catalog, evaluation_id)
    except (LackingEmbeddingsError, CorruptOutputError) as error:  # others may be whole
        reason = str(error)
    except StoreError:
        raise
    except TestbedError as error:
        reason = str(error)
    except Exception as error:  # a setting's own metrics_fn may raise anything
        log.debug("evaluation %d cannot be scored", evaluation_id, exc_info=True)
        first = (str(error).strip().splitlines() or [""])[0]
        reason = f"scoring failed: {type(error).__name__}: {first}"
    else:
        store.complete(evaluation_id, scores, metrics)
        return None
    store.fail(evaluation_id, reason)
    return reason


def _score(store: Store, catalog: Catalog, evaluation_id: int):  # type: ignore[no-untyped-def]
    evaluation = store.evaluation(evaluation_id)
    setting = catalog.get_eval_setting(evaluation.eval_setting)
    task = get_task(setting.task)
    unreadable = store.sample_errors(evaluation_id)
    if unreadable and len(unreadable) == evaluation.size:
        raise TestbedError(f"none of the {evaluation.size} samples could be read; the first: {unreadable[0]}")
    assert evaluation.dataset_id is not None
    dataset = store.dataset(evaluation.dataset_id)
    identity = store.identity(evaluation)
    scorer = scorer_of(identity)
    outputs = Outputs(
        values=store.read_outputs(evaluation_id, task.output_kind),
        samples=dataset.samples,
        class_names=dataset.class_names,
        restricted=bool(identity.get("forward", {}).get("restricted")),
        unreadable=sorted(unreadable),
        model_identity=model_identity(identity) if {"model", "dtype"} <= set(identity) else "",
        artifact=store.get_artifact,
        texts=partial(store.read_text_embeddings, scorer["encoder"]) if scorer else None,
        images=partial(embedded_images_of, store, scorer["images"], evaluation.dataset_id)
        if scorer and scorer["images"]
        else None,
    )
    known = catalog.contains_model(evaluation.model)  # a stored model may be defined no longer
    return task.score(outputs, setting, catalog.get_model(evaluation.model) if known else None)
