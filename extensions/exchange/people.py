"""Stores people's responses to images as models: model-vs-human's files of responses (Geirhos et al. 2021).

A file is a CSV with a row for each trial: ``subj``, ``object_response``, ``category``, ``condition`` and ``imagename``
are used. A person becomes the model ``human:NAME`` on a setting whose images are stored: a response is the only class
with a logit of 1, no response (``na``) has no finite logits and is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from testbed.arrays import Array
from testbed.data.sets.model_vs_human import short_name
from testbed.data.source import dataset_of
from testbed.db.store import Store
from testbed.entities import CellRecord, Chunk, DatasetInfo, Metric, SampleInfo, Score
from testbed.errors import DataError, StoreError
from testbed.identity.describe import digest
from testbed.metrics.classification import predicted_classes
from testbed.metrics.scorers.classification import BRIER, CONFIDENCE, ECE, NLL, score_classes
from testbed.metrics.scorers.shape_bias import TEXTURE, shape_bias
from testbed.spreadsheet import reading_csv

PREFIX = "human:"
TYPE = "Human"
NO_RESPONSE = "na"
_COLUMNS = ("subj", "object_response", "category", "condition", "imagename")
_OF_PROBABILITIES = {spec.name for spec in (NLL, BRIER, ECE, CONFIDENCE)} | {"top5"}

Key = tuple[str | None, str]  # condition, and the image's short name


@dataclass(frozen=True)
class Person:
    """A person on a setting.

    Attributes:
        model: The name in the store.
        n: Number of images with a trial.
        unanswered: Number of these without a response.
        without: Number of images of the setting without a trial.
        repeated: Number of repeated trials with an image, which are ignored.
        top1: The share of right responses.
    """

    model: str
    n: int
    unanswered: int
    without: int
    repeated: int
    top1: float


@dataclass(frozen=True)
class _Trial:
    response: str
    category: str
    condition: str
    image: str
    where: str


def add_people(store: Store, setting: str, files: Sequence[Path]) -> list[Person]:
    """Stores people's responses to the images of a setting; existing ones are kept.

    Args:
        store: The results store, open for writing.
        setting: A setting on whose images a model has been evaluated.
        files: Files of responses, or folders of these.

    Raises:
        StoreError: If the store does not have the images of the setting.
        DataError: If a file has no responses, or has other images or classes.
    """
    dataset = _dataset(store, setting)
    places = _places(dataset, setting)
    by_person: dict[str, list[_Trial]] = {}
    for path in _listed(files):
        for person, trial in _read(path):
            by_person.setdefault(person, []).append(trial)
    return [_add(store, setting, dataset, places, person, trials) for person, trials in sorted(by_person.items())]


def _dataset(store: Store, setting: str) -> DatasetInfo:
    """The images of a setting with the most samples in the store."""
    found = [
        evaluation
        for evaluation in store.evaluations.find(None, [setting])
        if evaluation.dataset_id and evaluation.status == "complete"
    ]
    if not found:
        raise StoreError(
            f"the store does not have the images of {setting}; run a model on them first: testbed run"
            f" MODEL --on {setting}"
        )
    most = max(found, key=lambda each: (not each.model.startswith(PREFIX), each.size or 0))
    assert most.dataset_id is not None
    dataset = store.datasets.get(most.dataset_id)
    if not dataset.class_names or not all(type(target) is int and target >= 0 for target in dataset.targets):
        raise DataError(f"{setting} does not have a named class for each image to compare responses with")
    return dataset


def _places(dataset: DatasetInfo, setting: str) -> dict[Key, int]:
    """The position of each image, by its condition (if the set has several) and its short name."""
    places: dict[Key, int] = {}
    for place, sample in enumerate(dataset.samples):
        key = (sample.slices or {}).get("condition"), short_name(sample.id)
        if key in places:
            other = dataset.samples[places[key]].id
            raise DataError(f"{setting}: the images {other} and {sample.id} have the same name {key[1]}")
        places[key] = place
    return places


def _listed(files: Sequence[Path]) -> list[Path]:
    found = [each for path in files for each in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
    if not found:
        raise DataError(f"{', '.join(map(str, files)) or 'no folder'} has no files of responses (*.csv)")
    return found


def _read(path: Path) -> list[tuple[str, _Trial]]:
    with reading_csv(path) as reader:
        names = {name.strip().lower(): name for name in reader.fieldnames or ()}
        missing = [text for text in _COLUMNS if text not in names]
        if missing:
            raise DataError(
                f"{path} is not a file of responses: it has no column {missing[0]}; expected {', '.join(_COLUMNS)}"
            )
        found = []
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            person, said, label, condition, image = ((row[names[text]] or "").strip() for text in _COLUMNS)
            if not person:
                raise DataError(f"{where}: the person (subj) is missing")
            found.append((person, _Trial(said, label, condition, image, where)))
    return found


def _add(
    store: Store,
    setting: str,
    dataset: DatasetInfo,
    places: Mapping[Key, int],
    person: str,
    trials: Sequence[_Trial],
) -> Person:
    """Stores one person's responses."""
    names = list(dataset.class_names or ())
    said: dict[int, int] = {}
    conditions = any(condition is not None for condition, _ in places)
    for trial in trials:
        place = places.get((trial.condition if conditions else None, short_name(trial.image)))
        if place is None:
            under = f" under the condition {trial.condition}" if conditions else ""
            raise DataError(f"{trial.where}: {setting} has no image {short_name(trial.image)}{under}")
        if trial.category != names[dataset.targets[place]]:
            raise DataError(
                f"{trial.where}: {trial.image} is of {trial.category!r}, but in the store of"
                f" {names[dataset.targets[place]]!r}"
            )
        if trial.response not in (*names, NO_RESPONSE):
            raise DataError(
                f"{trial.where}: unknown response {trial.response!r}; expected one of {', '.join(names)}, {NO_RESPONSE}"
            )
        said.setdefault(place, -1 if trial.response == NO_RESPONSE else names.index(trial.response))
    kept = sorted(said)
    samples = [dataset.samples[place] for place in kept]
    logits = np.zeros((len(kept), len(names)), dtype=np.float32)
    responses = np.array([said[place] for place in kept])
    logits[np.arange(len(kept)), responses] = 1
    logits[responses < 0] = np.nan
    whole = len(kept) == len(dataset.samples)
    data = dataset if whole else dataset_of(dataset.name, samples, dataset.class_names)
    scores, metrics = _scored(logits, samples, names, setting)
    model = PREFIX + person
    _store(store, model, setting, data, logits, scores, metrics)
    right = next(metric.value for metric in metrics if metric.name == "top1")
    return Person(
        model, len(kept), int((responses < 0).sum()), len(places) - len(kept), len(trials) - len(kept), right or 0.0
    )


def _scored(
    logits: Array, samples: Sequence[SampleInfo], names: Sequence[str], setting: str
) -> tuple[list[Score], list[Metric]]:
    """The outputs of classification, without metrics of probabilities, which people do not give."""
    scores, metrics = score_classes(logits, samples, names, setting)
    if all(TEXTURE in (sample.slices or {}) for sample in samples):
        textures = np.array([names.index((sample.slices or {})[TEXTURE]) for sample in samples])
        metrics.append(shape_bias(predicted_classes(logits), np.array([sample.target for sample in samples]), textures))
    return (
        [score for score in scores if score.name not in _OF_PROBABILITIES],
        [metric for metric in metrics if metric.name not in _OF_PROBABILITIES],
    )


def _store(
    store: Store,
    model: str,
    setting: str,
    data: DatasetInfo,
    logits: Array,
    scores: Sequence[Score],
    metrics: Sequence[Metric],
) -> None:
    responses = digest([data.fingerprint, predicted_classes(logits).tolist()])
    identity = {"view": {"class_sublist": None, "metric": {"scorer": "people@1"}}, "forward": {"responses": responses}}
    record = CellRecord(
        *(model, setting, digest(["people@1", model, setting, responses])),
        size=len(data.samples),
        dtype="float32",
        identity=identity,
    )
    begun = store.evaluations.begin(record, store.datasets.ensure(data), {}, {})
    if begun.status == "complete":
        store.evaluations.confirm([begun.id])
        return
    store.outputs.append([Chunk(begun.id, "logits", 0, logits)])
    store.evaluations.complete(begun.id, scores, metrics)
    store.names.set_types({model: TYPE})
