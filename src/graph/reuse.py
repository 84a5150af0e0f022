"""What is stored already: outputs of all samples of a cell, or of some, under whatever name; its heads and probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from testbed.data.perturbation import gpu_call
from testbed.db.store import Store
from testbed.entities import DatasetInfo, Evaluation, SampleInfo
from testbed.errors import StoreError, TestbedError
from testbed.graph.cells import Cell
from testbed.graph.nodes import Given
from testbed.graph.values import RowValues

Keys = frozenset[tuple[str, str]]


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

    def sources(self, forward_fingerprints: Iterable[str]) -> list[Evaluation]:
        """Stored evaluations with one of these fingerprints whose outputs may be reused."""
        if self.store is None:
            return []
        found = self.store.evaluations.sources(forward_fingerprints)
        unread = self.store.outputs.unreadable([each.id for each in found]) if self.strict else {}
        return [each for each in found if each.id not in unread]

    def covering(self, cell: Cell, stored: Iterable[Evaluation], ran: Iterable[Cell]) -> Evaluation | Cell | None:
        """The first of some evaluations, or else of some cells, that has all samples of a cell; not its own one."""
        own = _dataset(cell)
        for evaluation in stored:
            if not _is_own(cell, evaluation) and self._keys_of(own) <= self._stored_keys(evaluation):
                return evaluation
        for other in ran:
            if own.fingerprint == _dataset(other).fingerprint or self._keys_of(own) <= self._keys_of(_dataset(other)):
                return other
        return None

    def partial(self, cell: Cell, stored: Sequence[Evaluation]) -> list[Evaluation]:
        """The evaluations that have some samples of a cell; none where outputs depend on the batch of a sample."""
        if depends_on_batch(cell):
            return []
        others = [each for each in stored if not _is_own(cell, each)]
        return [each for each in others if self._keys_of(_dataset(cell)) & self._stored_keys(each)]

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
    return store.outputs.find(_dataset(cell), [each.id for each in cell.partly], cell.rows.op.kind)


def depends_on_batch(cell: Cell) -> bool:
    """Whether outputs depend on the batch that a sample is in: under attack, or where random numbers may be shared."""
    assert cell.opened_model is not None
    assert cell.opened_setting is not None
    model, setting = cell.opened_model.definition, cell.opened_setting.setting
    if setting.adversarial_attack is not None or getattr(model, "classify", None) is not None:
        return True
    perturbation = setting.perturbation_fn_gpu
    return perturbation is not None and "seeds" not in gpu_call(perturbation).arguments


def _is_own(cell: Cell, evaluation: Evaluation) -> bool:
    """Whether an evaluation is the cell's own, whose scoring failed: a run scores it again."""
    return cell.stored is not None and cell.stored.id == evaluation.id


def _keys_of(dataset: DatasetInfo) -> Keys:
    return frozenset((sample.id, sample.digest) for sample in dataset.samples)


def _dataset(cell: Cell) -> DatasetInfo:
    assert cell.opened_setting is not None
    return cell.opened_setting.dataset


def lacks_artifacts(store: Store, cell: Cell) -> bool:
    """Whether a head or a probe must be made for a cell."""
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
