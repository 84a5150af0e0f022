"""The documents of samples: an overview of a setting, its samples in chunks, and arrays for filters and comparisons.

- ``samples/S``: the setting number S.
- ``samples/S/ids/B``: the ids of a block of samples.
- ``samples/S/filters``: arrays with a value for each sample.
- ``samples/S/chunk/C``: some samples with the outputs of every model.
- ``packed/ID``: arrays of one evaluation.
- ``details/ID/C``: retrieved items, or replies of judges, for the samples of a chunk.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from testbed.errors import StoreError
from testbed.extensions.explorer.answers import described, size_of_chunk
from testbed.extensions.explorer.arrays import EvaluationArrays, arrays_of, filters_of, top_of_all
from testbed.extensions.explorer.details import Details, retrieved_in
from testbed.extensions.explorer.documents import number_in
from testbed.extensions.explorer.packing import packed, packed_counts, packed_scores, packed_shares
from testbed.registry.references import SettingReference
from testbed.stored_results.evaluated import LOGITS, TEXT, SettingSamples, ShownEvaluation
from testbed.stored_results.unread import without_folder

if TYPE_CHECKING:
    from testbed.db.store import Store
    from testbed.registry.catalog import Catalog

BLOCK = 20_000  # ids in a document
_SETTINGS = 12  # settings with cached evaluations
_EVALUATIONS = 32  # evaluations with cached arrays


class SamplesPart:
    """The documents of samples.

    Args:
        store: The results store.
        catalog: The registry, for rules that read answers; settings may be unknown to it.
        settings: The names of the settings, by number.
        chosen: For an export, setting → the positions of included samples; other settings have no samples there. None
            means everything.
    """

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        settings: Sequence[str],
        chosen: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.store = store
        self.catalog = catalog
        self.settings = list(settings)
        self.chosen = chosen
        self._number = {name: number for number, name in enumerate(self.settings)}
        self._known: OrderedDict[str, SettingSamples | None] = OrderedDict()
        self._arrays: OrderedDict[int, EvaluationArrays] = OrderedDict()
        self.details = Details(store, catalog)

    # Paths --------------------------------------------------------------------------------------------------------

    def paths(self) -> Iterator[str]:
        """Every document of the chosen settings, setting by setting."""
        for number, name in enumerate(self.settings):
            samples = self._samples(name)
            if samples is None or (self.chosen is not None and name not in self.chosen):
                continue
            yield f"samples/{number}"
            yield f"samples/{number}/filters"
            yield from (f"samples/{number}/ids/{block}" for block in range(-(-samples.size // BLOCK)))
            yield from (f"packed/{shown_one.id}" for shown_one in samples.shown)
            chunks = range(-(-len(self.positions(name, samples)) // size_of_chunk(samples)))
            yield from (f"samples/{number}/chunk/{chunk}" for chunk in chunks)
            for shown_one in samples.shown:
                if self.details.kind(samples, shown_one):
                    yield from (f"details/{shown_one.id}/{chunk}" for chunk in chunks)

    def document(self, path: str) -> Any:
        """Returns a document.

        Raises:
            KeyError: If there is no document at this path.
        """
        makers: dict[str, Callable[..., Any]] = {
            r"samples/(\d+)": self._setting,
            r"samples/(\d+)/filters": self._filters,
            r"samples/(\d+)/ids/(\d+)": self._ids,
            r"samples/(\d+)/chunk/(\d+)": self._chunk,
            r"packed/(\d+)": self._packed,
            r"details/(\d+)/(\d+)": self._details,
        }
        for pattern, make in makers.items():
            if found := re.fullmatch(pattern, path):
                return make(*map(number_in, found.groups()))
        raise KeyError(path)

    # Settings and evaluations -------------------------------------------------------------------------------------

    def samples_of(self, number: int) -> SettingSamples:
        """Returns the samples of a setting by its number.

        Raises:
            KeyError: If the setting does not exist or has no samples.
        """
        if not 0 <= number < len(self.settings):
            raise KeyError(number)
        found = self._samples(self.settings[number])
        if found is None or (self.chosen is not None and found.name not in self.chosen):
            raise KeyError(number)
        return found

    def _samples(self, name: str) -> SettingSamples | None:
        if name not in self._known:
            self._known[name] = SettingSamples.of(self.store, name)
            if len(self._known) > _SETTINGS:
                self._known.popitem(last=False)
        self._known.move_to_end(name)
        return self._known[name]

    def positions(self, name: str, samples: SettingSamples) -> Sequence[int]:
        """The positions of the shown samples."""
        return range(samples.size) if self.chosen is None else self.chosen[name]

    def evaluation(self, number: int) -> tuple[SettingSamples, ShownEvaluation]:
        """Returns an evaluation by its id, with the samples of its setting.

        Raises:
            KeyError: If it does not exist or has no samples.
        """
        try:
            evaluation = self.store.evaluations.get(number)
        except StoreError:
            raise KeyError(number) from None
        samples = self._samples(evaluation.eval_setting)
        if samples is None or evaluation.dataset_id is None or evaluation.status != "complete":
            raise KeyError(number)
        for shown_one in samples.shown:
            if shown_one.id == number:
                return samples, shown_one
        return samples, SettingSamples.among(self.store, samples.name, [evaluation]).shown[0]

    def arrays(self, samples: SettingSamples, shown: ShownEvaluation) -> EvaluationArrays:
        """The arrays of an evaluation, on the setting's samples."""
        if shown.id not in self._arrays:
            keep = self.positions(samples.name, samples) if self.chosen is not None else ()
            self._arrays[shown.id] = arrays_of(samples, shown, keep, self._multilabel(samples))
            if self.chosen is None and len(self._arrays) > _EVALUATIONS:
                self._arrays.popitem(last=False)
        return self._arrays[shown.id]

    def _multilabel(self, samples: SettingSamples) -> bool:
        return self.store.names.tasks().get(samples.name, (None, None))[0] == "multilabel"

    # Documents ----------------------------------------------------------------------------------------------------

    def _setting(self, number: int) -> dict[str, Any]:
        samples = self.samples_of(number)
        task, parent = self.store.names.tasks().get(samples.name, (None, None))
        size = size_of_chunk(samples)
        return {
            "setting": samples.name,
            "task": task,
            "kind": samples.kind,
            "n": samples.size,
            "dataset": samples.dataset,
            "chunk": size,
            "block": BLOCK,
            "shown": None if self.chosen is None else list(self.chosen[samples.name]),
            "classes": samples.classes.names,
            "score": samples.main,
            "right": samples.right,
            "larger": samples.larger,
            "unit": "" if samples.spec is None else samples.spec.unit,
            "clean": self._number.get(self._clean(samples.name, parent) or "", None),
            "perturbed": self.perturbs(samples.name),
            "evaluations": [
                {
                    "id": shown_one.id,
                    "model": shown_one.evaluation.model,
                    "details": self.details.kind(samples, shown_one),
                }
                for shown_one in samples.shown
            ],
        }

    def perturbs(self, name: str) -> str | None:
        """The kind of perturbation of a setting: ``"image"``; ``"attack"`` if it depends on the model; None without
        one."""
        setting = self.catalog.find_eval_setting(name)
        if setting is None:
            return None
        perturbation = setting.perturbation
        if not perturbation and not perturbation.attacks:
            return None
        return "attack" if perturbation.attacks or perturbation.needs_targets else "image"

    def _clean(self, name: str, parent: str | None) -> str | None:
        """The stored setting with the same unperturbed images; None if there is none."""
        if parent is not None:
            return parent
        bases = (str(replace(SettingReference.parse(name), corruption="")), re.split(r"-c\.", name)[0])
        return next((base for base in bases if base in self._number and base != name), None)

    def _ids(self, number: int, block: int) -> list[str]:
        samples = self.samples_of(number)
        if block * BLOCK >= samples.size:
            raise KeyError(block)
        return self.store.datasets.sample_ids(samples.dataset, block * BLOCK, (block + 1) * BLOCK)

    def _filters(self, number: int) -> dict[str, Any]:
        return filters_of(self.samples_of(number))

    def _packed(self, number: int) -> dict[str, Any]:
        samples, shown = self.evaluation(number)
        arrays = self.arrays(samples, shown)
        if samples.name not in self._number or (self.chosen is not None and samples.name not in self.chosen):
            raise KeyError(number)
        return {
            "id": number,
            "model": shown.evaluation.model,
            "setting": self._number[samples.name],
            "score": shown.main if shown.right is None else shown.right,
            "values": packed_scores(arrays.score),
            "prediction": None if arrays.prediction is None else packed_counts(arrays.prediction),
            "confidence": None if arrays.confidence is None else packed_shares(arrays.confidence),
            "errors": sorted(arrays.errors),
        }

    def _chunk(self, number: int, chunk: int) -> dict[str, Any]:
        samples = self.samples_of(number)
        size, every = size_of_chunk(samples), self.positions(samples.name, samples)
        positions = list(every[chunk * size : (chunk + 1) * size])
        if not positions:
            raise KeyError(chunk)
        infos = self.store.datasets.samples(samples.dataset, positions)
        own = {shown_one.id: samples.positions_in(shown_one, positions) for shown_one in samples.shown}
        found: dict[str, Any] = {
            "samples": [_sample(position, infos[position]) for position in positions],
            "scores": self._scores(samples, own),
            "errors": self._errors(samples, own, [infos[position].id for position in positions]),
        }
        if samples.kind == LOGITS:
            found["top"] = self._top(samples, positions)
        elif samples.kind == TEXT:
            setting = self.catalog.find_eval_setting(samples.name)
            found["texts"] = described(
                samples.outputs(positions), [infos[position].target for position in positions], setting
            )
        return found

    def _top(self, samples: SettingSamples, positions: Sequence[int]) -> dict[str, Any]:
        """The classes with the largest logits, of each model and each sample."""
        multilabel = self._multilabel(samples)
        kept = [self._arrays.get(shown_one.id) for shown_one in samples.shown]
        if all(arrays is not None and arrays.has_top(positions) for arrays in kept):
            tops = [arrays.top_of(positions) for arrays in kept if arrays is not None]
        else:
            tops = top_of_all(samples.shown, samples.outputs(positions), multilabel)
        classes, shares = (np.stack(column) for column in zip(*tops, strict=True))
        return {
            "k": classes.shape[2],
            "classes": packed_counts(classes),
            "shares": packed(shares.astype(np.float32)) if multilabel else packed_shares(shares),
            "meaning": "logit" if multilabel else "softmax",
        }

    def _scores(self, samples: SettingSamples, own: Mapping[int, Sequence[int | None]]) -> dict[str, Any]:
        """The scores of each model and each sample; for logits only the main one."""
        names = [samples.main] if samples.kind == LOGITS and samples.main else None
        found = self.store.scores.rows(own, names)
        every = sorted({name for scores in found.values() for name in scores})
        length = len(next(iter(own.values()), ()))
        lacking: list[float | None] = [None] * length
        return {
            name: packed_scores(
                np.array([found[shown_one.id].get(name, lacking) for shown_one in samples.shown], dtype=np.float64)
            )
            for name in every
        }

    def _errors(
        self, samples: SettingSamples, own: Mapping[int, Sequence[int | None]], ids: Sequence[str]
    ) -> dict[str, dict[str, str]]:
        """Position of the evaluation → position of the sample → why it could not be read, without the data folder."""
        errors = self.store.samples.error_rows(shown_one.root for shown_one in samples.shown)
        found: dict[str, dict[str, str]] = {}
        for number, shown in enumerate(samples.shown):
            if shown.root in errors:
                of = errors[shown.root] if shown.root == shown.id else self.store.outputs.errors(shown.id)
                there = [(place, at) for place, at in enumerate(own[shown.id]) if at is not None and at in of]
                if there:
                    found[str(number)] = {str(place): without_folder(of[at], ids[place]) for place, at in there}
        return found

    def _details(self, number: int, chunk: int) -> list[Any]:
        samples, shown = self.evaluation(number)
        if samples.name not in self._number or (self.chosen is not None and samples.name not in self.chosen):
            raise KeyError(number)
        size, every = size_of_chunk(samples), self.positions(samples.name, samples)
        positions = list(every[chunk * size : (chunk + 1) * size])
        if not positions or not self.details.kind(samples, shown):
            raise KeyError(chunk)
        return self.details.of(samples, shown, positions)

    def retrieved(self, samples: SettingSamples) -> set[int]:
        """The samples that models retrieved for the shown ones."""
        found: set[int] = set()
        chunks = range(-(-len(self.positions(samples.name, samples)) // size_of_chunk(samples)))
        for shown_one in samples.shown:
            if self.details.kind(samples, shown_one) == "retrieval":
                for chunk in chunks:
                    found |= retrieved_in(self._details(shown_one.id, chunk))
        return found


def _sample(position: int, info: Any) -> dict[str, Any]:
    found = {"position": position, "id": info.id, "target": info.target}
    if info.group is not None:
        found["group"] = info.group
    if info.slices:
        found["slices"] = info.slices
    return found
