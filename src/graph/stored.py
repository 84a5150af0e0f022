"""Stored values: which outputs of the same samples can be reused, and what an evaluation is scored from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from testbed.data.perturbation import gpu_call
from testbed.db.store import Store
from testbed.db.upkeep.lost import LostFiles
from testbed.entities import NOT_FINITE, OVERALL, TEXTS, DatasetInfo, Evaluation, Metric, SampleInfo
from testbed.errors import LackingEmbeddingsError, StoreError, TestbedError
from testbed.graph.cells import Cell
from testbed.graph.item_nodes import outputs_read, recorded_nodes, scorer_of
from testbed.graph.nodes import Given
from testbed.graph.ops import refusals_of
from testbed.graph.requests import request_text
from testbed.graph.values import RowValues, Values
from testbed.metric_specs import LOWER, NEVER, rate
from testbed.models.base.capability import Message
from testbed.registry.references import IMAGE_EMBEDDINGS

Keys = frozenset[tuple[str, str]]

COMPUTED_FROM = "computed from"  # in an environment: what `when_begun` returns for a derived model's members
NOT_FINITE_SHARE = rate(NOT_FINITE, LOWER, NEVER)


class StoredOutputs:
    """Finds the outputs of samples in a store, by what decides them.

    Args:
        store: The store; None for one that does not exist yet.
        strict: Whether evaluations count only if all their samples could be read.
    """

    def __init__(self, store: Store | None, strict: bool) -> None:
        self.store = store
        self.strict = strict
        self._keys: dict[str, Keys] = {}
        self._lost = LostFiles(store.database) if store is not None else None

    def sources(self, forward_fingerprints: Iterable[str]) -> list[Evaluation]:
        """Stored evaluations with one of these fingerprints whose outputs may be reused."""
        if self.store is None:
            return []
        found = self.store.evaluations.sources(forward_fingerprints)
        unread = self.store.outputs.unreadable([evaluation.id for evaluation in found]) if self.strict else {}
        return [evaluation for evaluation in found if evaluation.id not in unread]

    def covering(self, cell: Cell, stored: Iterable[Evaluation], ran: Iterable[Cell]) -> Evaluation | Cell | None:
        """The first of some evaluations, or else of some cells, that has all samples of a cell; not its own one."""
        own = _dataset(cell)
        for evaluation in stored:
            covers = not _is_own(cell, evaluation) and self._keys_of(own) <= self._stored_keys(evaluation)
            if covers and self.are_there(evaluation):
                return evaluation
        for other in ran:
            if own.fingerprint == _dataset(other).fingerprint or self._keys_of(own) <= self._keys_of(_dataset(other)):
                return other
        return None

    def partial(self, cell: Cell, stored: Sequence[Evaluation]) -> list[Evaluation]:
        """The evaluations that have some samples of a cell; none where outputs depend on the batch of a sample."""
        if depends_on_batch(cell):
            return []
        others = [evaluation for evaluation in stored if not _is_own(cell, evaluation)]
        some = [other for other in others if self._keys_of(_dataset(cell)) & self._stored_keys(other)]
        return [evaluation for evaluation in some if self.are_there(evaluation)]

    def are_there(self, evaluation: Evaluation) -> bool:
        """Returns whether no file of an evaluation's outputs is known to be missing."""
        return self._lost is None or not self._lost.of(evaluation.root)

    def _stored_keys(self, evaluation: Evaluation) -> Keys:
        if self.store is None or evaluation.dataset_id is None:
            return frozenset()
        key = f"stored/{evaluation.dataset_id}"
        if key not in self._keys:
            self._keys[key] = _keys_of(self.store.datasets.get(evaluation.dataset_id))
        return self._keys[key]

    def _keys_of(self, dataset: DatasetInfo) -> Keys:
        if dataset.fingerprint not in self._keys:
            self._keys[dataset.fingerprint] = _keys_of(dataset)
        return self._keys[dataset.fingerprint]


def given_outputs(store: Store, cell: Cell) -> dict[int, tuple[int, int]]:
    """Position of a sample of a cell → the evaluation that has its outputs already, and the position there."""
    if not cell.partly or cell.rows is None:
        return {}
    return store.outputs.find(_dataset(cell), [evaluation.id for evaluation in cell.partly], cell.rows.op.kind)


def depends_on_batch(cell: Cell) -> bool:
    """Returns whether outputs depend on the batch: under attack, or where random numbers may be shared."""
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    model, setting = cell.opened_model.definition, cell.opened_setting.setting
    if setting.adversarial_attack is not None or model.classify is not None:
        return True
    perturbation = setting.perturbation_fn_gpu
    return perturbation is not None and "seeds" not in gpu_call(perturbation).arguments


def _is_own(cell: Cell, evaluation: Evaluation) -> bool:
    """Checks whether an evaluation is the cell's own, whose scoring failed: a run scores it again."""
    return cell.stored is not None and cell.stored.id == evaluation.id


def _keys_of(dataset: DatasetInfo) -> Keys:
    return frozenset((sample.id, sample.digest) for sample in dataset.samples)


def _dataset(cell: Cell) -> DatasetInfo:
    assert cell.opened_setting is not None
    return cell.opened_setting.dataset


def lacks_artifacts(store: Store, cell: Cell) -> bool:
    """Returns whether a head or a probe must be made for a cell."""
    if cell.rows is None or not cell.rows.ones:
        return False
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    opened, definition = cell.opened_setting, cell.opened_model.definition

    def samples(role: str) -> Sequence[SampleInfo]:
        return cell.inputs[role].dataset.samples if role in cell.inputs else opened.dataset.samples

    given = Given(cell.model_identity, opened.setting, opened.dataset.class_names, samples, _no_rows)
    try:
        prints = [one.fingerprint(given, definition) for one in cell.rows.ones.values()]
    except StoreError:
        raise
    except TestbedError:  # the worker reports it
        return False
    return any(not store.artifacts.has(each) for each in prints if each)


def _no_rows(role: str) -> RowValues:
    raise AssertionError(f"the embeddings {role} are not read before the run")


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
        """Raises an error: there are no replies yet.

        Raises:
            LackingEmbeddingsError: Always.
        """
        raise LackingEmbeddingsError(f"the {role} are not computed yet")


class EvaluationValues(LateValues):
    """The values that an evaluation is scored from.

    Args:
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
        node, requests = self._nodes[role], [request_text(message) for message in messages]
        answers = self.store.items.read_answers(node, requests)
        if all(answer is not None for answer in answers):
            return answers
        refusals = self.store.items.read_answers(refusals_of(node), requests)
        return [refusal if answer is None else answer for answer, refusal in zip(answers, refusals, strict=True)]

    def texts(self, texts: Sequence[str]) -> Any:
        """See `Values.texts`."""
        from testbed.metrics.scorers.finite import not_finite

        found = self._stored_texts(texts)
        self._texts.append(not_finite(found))
        return found

    @property
    def read_here(self) -> Any:
        """The outputs if they have been read; None otherwise."""
        return self._outputs

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
        evaluations = [source.id for source in self.store.evaluations.sources({forward})]
        try:
            values, errors = self.store.outputs.read_values(self._evaluation.dataset_id, evaluations, IMAGE_EMBEDDINGS)
        except LackingEmbeddingsError as error:
            raise LackingEmbeddingsError(f"the judge's image embeddings: {error}") from None
        return RowValues(values, self.samples, errors)


def read_outputs(store: Store, evaluation_id: int) -> Any:
    """All outputs of an evaluation; raises StoreError if they are missing."""
    kinds = list(store.outputs.kinds(evaluation_id))
    if not kinds:
        raise StoreError(f"evaluation {evaluation_id} has no stored outputs; run its model and setting again")
    return store.outputs.read(evaluation_id, kinds[0])


def when_begun(store: Store, evaluations: Mapping[str, int]) -> dict[str, str]:
    """Role → when its evaluation began, which identifies it among others of its cell in any store."""
    return {role: store.evaluations.get(each).created_at.isoformat() for role, each in evaluations.items()}
