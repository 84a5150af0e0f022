"""The stored values of a cell, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from testbed.db.store import Store
from testbed.entities import NOT_FINITE, OVERALL, TEXTS, Evaluation, Metric, SampleInfo
from testbed.errors import LackingEmbeddingsError, StoreError
from testbed.graph.ops import refusals_of
from testbed.graph.requests import request_text
from testbed.graph.values import RowValues, Values
from testbed.metric_specs import LOWER, NEVER, rate
from testbed.models.base.capability import Message
from testbed.planning.item_nodes import outputs_read, recorded_nodes, scorer_of
from testbed.scoring.refusals import refused
from testbed.tasks.image_embedding import KIND

NOT_FINITE_SHARE = rate(NOT_FINITE, LOWER, NEVER)


class LateValues(Values):
    """Values whose outputs are read when a task asks for them.

    Args:
        read: Reads the outputs.
        samples: The samples of the cell.
        **known: As `Values` takes them.
    """

    def __init__(self, read: Callable[[], Any], samples: Sequence[SampleInfo], **known: Any) -> None:
        super().__init__(None, samples, **known)
        self._read = read

    @property
    def outputs(self) -> Any:
        """The outputs, read once."""
        if self._outputs is None:
            self._outputs = self._read()
        return self._outputs

    def replies(self, role: str, messages: Sequence[Message]) -> list[dict[str, Any] | None]:
        """None as yet.

        Raises:
            LackingEmbeddingsError: Always.
        """
        raise LackingEmbeddingsError(f"the {role} are not computed yet")


class EvaluationValues(LateValues):
    """What an evaluation is scored from.

    Args:
        store: The results store.
        evaluation: The evaluation; its outputs are stored, or those of the one that it is derived from.
        unreadable: Positions of unreadable samples.
    """

    def __init__(self, store: Store, evaluation: Evaluation, unreadable: Iterable[int] = ()) -> None:
        assert evaluation.dataset_id is not None
        self.store = store
        self._texts: list[Any] = []  # which embeddings of texts are not finite, one array for each question
        self._evaluation = evaluation
        self._identity = store.evaluations.identity(evaluation)
        self._nodes = recorded_nodes(self._identity)
        dataset = store.datasets.get(evaluation.dataset_id)
        super().__init__(
            lambda: read_outputs(store, evaluation.id),
            dataset.samples,
            restricted=bool(self._identity.get("forward", {}).get("restricted")),
            unreadable=sorted(unreadable),
            class_names=dataset.class_names,
            among=outputs_read(self._identity),
        )

    def replies(self, role: str, messages: Sequence[Message]) -> list[dict[str, Any] | None]:
        """See `Values.replies`."""
        if role not in self._nodes:
            return [None] * len(messages)
        node, requests = self._nodes[role], [request_text(each) for each in messages]
        answers = self.store.items.read_answers(node, requests)
        if all(each is not None for each in answers):
            return answers
        refusals = self.store.items.read_answers(refusals_of(node), requests)
        return [refusal if answer is None else answer for answer, refusal in zip(answers, refusals, strict=True)]

    def texts(self, texts: Sequence[str]) -> Any:
        """See `Values.texts`."""
        from testbed.metrics.scorers.finite import not_finite

        found = self._stored_texts(texts)
        self._texts.append(not_finite(found))
        return found

    def not_finite(self) -> list[Metric]:
        """The share of samples, and of texts, for which what was read here is not finite; only where there are such.

        Samples that could not be read do not count.
        """
        import numpy as np

        from testbed.metrics.scorers.finite import not_finite

        counted = {TEXTS: np.concatenate(self._texts)} if self._texts else {}
        if isinstance(self._outputs, np.ndarray):
            counted[OVERALL] = np.delete(not_finite(self._outputs), list(self.unreadable))
        return [
            NOT_FINITE_SHARE.metric(float(found.mean()), len(found), slice=what, scorer="outputs")
            for what, found in counted.items()
            if found.any()
        ]

    def refused(self) -> list[Metric]:
        """The share of samples that the model refused; see `testbed.scoring.refusals.refused`."""
        dtype = getattr(self._outputs, "dtype", None)
        return refused(self._outputs) if dtype is not None and dtype.kind == "O" else []

    def _stored_texts(self, texts: Sequence[str]) -> Any:
        """The embeddings of texts."""
        import numpy as np

        if not texts:
            width = self.outputs.shape[1] if self.outputs.ndim > 1 else 0
            return np.zeros((0, width), dtype=np.float32)
        return self.store.items.read(self._nodes["texts"], texts) if "texts" in self._nodes else super().texts(texts)

    def images(self) -> RowValues:
        """See `Values.images`."""
        forward = (scorer_of(self._identity) or {}).get("images")
        if not forward:
            return super().images()
        assert self._evaluation.dataset_id is not None
        evaluations = [each.id for each in self.store.evaluations.sources({forward})]
        try:
            values, errors = self.store.outputs.read_values(self._evaluation.dataset_id, evaluations, KIND)
        except LackingEmbeddingsError as error:
            raise LackingEmbeddingsError(f"the judge's image embeddings: {error}") from None
        return RowValues(values, self.samples, errors)


def read_outputs(store: Store, evaluation_id: int) -> Any:
    """All outputs of an evaluation.

    Raises:
        StoreError: If they are missing.
    """
    kinds = list(store.outputs.kinds(evaluation_id))
    if not kinds:
        raise StoreError(f"evaluation {evaluation_id} has no stored outputs; run its model and setting again")
    return store.outputs.read(evaluation_id, kinds[0])
