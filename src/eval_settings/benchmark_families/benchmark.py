"""Named data sets as in CLIP benchmark: one declaration makes an eval setting for every task."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from testbed.errors import DataError, DefinitionError, DuplicateNameError, TestbedError
from testbed.eval_settings.base.parts import PHOTO_DEPICTS
from testbed.eval_settings.base.setting import EvalSetting
from testbed.eval_settings.benchmark_families.benchmark_dataset import BenchmarkDataset
from testbed.eval_settings.benchmark_families.benchmark_names import (
    CAPTIONING,
    LINEAR_PROBE,
    OTHER_TASKS,
    ZERO_SHOT,
    BenchmarkName,
    read_words,
    spellings,
)
from testbed.inputs import Inputs, active
from testbed.registry import registry
from testbed.registry.references import CLIP_SCORE

_WITH_LANGUAGE = re.compile(r"(?P<dataset>[^,]+),(?P<language>[a-z]{2,3}(_[A-Z][a-z]{3})?)")
_SPLIT = re.compile(r"\w[\w-]*")
_SCORED = re.compile(rf"\.{CAPTIONING}[\w.-]*@")  # captions, and a judge that is not known


class Benchmarks:
    """The named data sets, as a family of eval settings."""

    name = "benchmarks"

    def __init__(self) -> None:
        self._datasets: dict[str, BenchmarkDataset] = {}
        self._open: dict[str, Callable[[str], BenchmarkDataset]] = {}
        self._opened: dict[tuple[str, Inputs], BenchmarkDataset] = {}

    def add(self, dataset: BenchmarkDataset) -> None:
        """Adds a data set; raises DuplicateNameError if the name is taken."""
        if dataset.name in self._datasets:
            raise DuplicateNameError(f"two data sets are named {dataset.name!r}; rename one")
        self._datasets[dataset.name] = dataset

    def add_open(self, prefix: str, make: Callable[[str], BenchmarkDataset]) -> None:
        """Adds all data sets whose name begins with a prefix; each is created on first use."""
        self._open[prefix] = make

    def dataset(self, name: str) -> BenchmarkDataset:
        """The data set with this name.

        Raises:
            DefinitionError: If there is none.
            DataError: If it must be read to find its kind, and is missing.
        """
        if name in self._datasets:
            return self._datasets[name]
        key = (name, active())
        if key not in self._opened:
            for prefix, make in self._open.items():
                if name.startswith(prefix):
                    self._opened[key] = make(name)
                    break
            else:
                raise DefinitionError(f"there is no data set {name!r}")
        return self._opened[key]

    def declared(self, name: str) -> BenchmarkDataset | None:
        """Returns the data set of that name, if that needs no reading."""
        return self._datasets.get(name) or self._opened.get((name, active()))

    # Family ---------------------------------------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        """Lists each data set in each of its languages, and the other tasks on it."""
        for dataset in self._datasets.values():
            for language in dataset.languages:
                other = language if language != dataset.languages[0] else None
                yield str(BenchmarkName(dataset.name, language=other))
            if dataset.kind == "classification" and "train" in dataset.splits:
                yield str(BenchmarkName(dataset.name, task=LINEAR_PROBE))
            if dataset.kind == "retrieval":
                yield str(BenchmarkName(dataset.name, task=CLIP_SCORE))
                yield str(BenchmarkName(dataset.name, task=CAPTIONING))

    def canonical(self, name: str) -> str | None:
        """The canonical form of a name, without defaults."""
        parsed = self.parse(name)
        return None if parsed is None else str(parsed)

    def build(self, name: str) -> EvalSetting:
        """The setting of a canonical name."""
        parsed = self.parse(name)
        assert parsed is not None
        dataset, parsed = self._with_own_split(parsed)
        if parsed.task == LINEAR_PROBE:
            return _linear_probe(dataset, parsed)
        return _own_task(dataset, parsed)

    def _with_own_split(self, name: BenchmarkName) -> tuple[BenchmarkDataset, BenchmarkName]:
        """The data set; where its last word turns out to be a split of another one, that one and the split."""
        try:
            return self.dataset(name.dataset), name
        except DataError:
            shorter, dot, split = name.dataset.rpartition(".")
            try:
                asked = bool(dot) and name.split is None and _SPLIT.fullmatch(split) is not None
                dataset = self.dataset(shorter) if asked else None
            except TestbedError:
                dataset = None
            if dataset is None:
                raise
        return dataset, replace(name, dataset=shorter, split=_split(dataset, split))

    def parse(self, name: str) -> BenchmarkName | None:
        """Parses a name; None if it does not belong to a named data set."""
        if pair := _WITH_LANGUAGE.fullmatch(name):  # a line of CLIP benchmark's lists
            name = f"{pair['dataset']}.{ZERO_SHOT}.{pair['language']}"
        words = name.split(".")
        for cut in range(len(words), 0, -1):
            dataset = ".".join(words[:cut])
            if dataset in self._datasets:
                return self._read(self._datasets[dataset], words[cut:])
        prefix = next((prefix for prefix in self._open if name.startswith(prefix) and len(name) > len(prefix)), None)
        if prefix is None or _SCORED.search(name):
            return None
        # Of a data set that would have to be read first, no more is taken off than what could be nothing else.
        for cut in range(1, len(words) + 1):
            dataset = ".".join(words[:cut])
            if len(dataset) > len(prefix) and (parsed := read_words(BenchmarkName(dataset), words[cut:], None)):
                return parsed
        return None

    def _read(self, dataset: BenchmarkDataset, words: list[str]) -> BenchmarkName | None:
        return read_words(BenchmarkName(dataset.name), words, dataset)


# Settings ---------------------------------------------------------------------------------------------------------


def _own_task(dataset: BenchmarkDataset, name: BenchmarkName) -> EvalSetting:
    """The data set's own task, or another one on the same samples."""
    if name.task != ZERO_SHOT and dataset.kind != OTHER_TASKS[name.task]:
        raise DefinitionError(f"{name}: {name.task} is for data sets with captions; {dataset.name} is {dataset.kind}")
    split = _split(dataset, name.split)
    language = name.language or dataset.languages[0]
    language = next((spelling for spelling in spellings(language) if spelling in dataset.languages), language)
    if language not in dataset.languages and not dataset.any_language:
        raise DefinitionError(f"{dataset.name} has the languages {', '.join(dataset.languages)}, not {language!r}")
    options: dict[str, Any] = {}
    if dataset.kind == "retrieval" and name.recall is not None:
        options["recall_k"] = list(name.recall)
    if name.prefix:
        options["prefix"] = PHOTO_DEPICTS
    setting = EvalSetting(
        name=str(name),
        dataset=dataset.dataset(split, language),
        **_sizes(dataset, split),
        metrics_fn=dataset.metrics_fn if name.task == ZERO_SHOT else None,
        task=dataset.kind if name.task == ZERO_SHOT else name.task,
        language=language,
        image_set=str(BenchmarkName(dataset.name, split=name.split)),
        keep_embeddings=True,
        task_options=options,
        description=dataset.description,
        **_prompts(dataset, language),
    )
    if dataset.about_prompts is not None:
        setting.prompts = replace(setting.prompts, about=partial(dataset.about_prompts, language))
    return setting


def _linear_probe(dataset: BenchmarkDataset, name: BenchmarkName) -> EvalSetting:
    """A linear probe, trained on another split."""
    if dataset.kind != "classification":
        raise DefinitionError(f"{name}: linear probes are for classification; {dataset.name} is {dataset.kind}")
    split, language = _split(dataset, name.split), dataset.languages[0]
    train = _other_split(dataset, name.train or "train", split)
    validation = _other_split(dataset, name.validation, split) if name.validation is not None else None
    if name.validation is not None and name.held_out is not None:
        raise DefinitionError(
            f"{name}: choose the weight decay on a split or on a part of the training samples, not both"
        )
    classes = _prompts(dataset, language)
    given = {
        "method": name.method,
        "fewshot_k": name.shots,
        "seed": name.seed,
        "lr": name.lr,
        "epochs": name.epochs,
        "batch_size": name.batch_size,
        "normalize": name.normalize,
        "val_proportion": None if name.held_out is None else name.held_out / 100,
    }
    return EvalSetting(
        name=str(name),
        dataset=dataset.dataset(split, language),
        **_sizes(dataset, split),
        task=LINEAR_PROBE,
        image_set=str(BenchmarkName(dataset.name, split=name.split)),
        keep_embeddings=True,
        task_options={
            "train": train,
            "validation": validation,
            "probe": {key: value for key, value in given.items() if value is not None},
        },
        class_names=classes.get("class_names"),
        num_classes=classes["num_classes"],
        description=dataset.description,
    )


def _sizes(dataset: BenchmarkDataset, split: str) -> dict[str, Any]:
    sizes = dataset.sizes.get(split)
    first, *others = sizes if isinstance(sizes, tuple) else (sizes,)
    return {"size": first, "other_sizes": others}


def _prompts(dataset: BenchmarkDataset, language: str) -> dict[str, Any]:
    count = dataset.num_classes
    options: dict[str, Any] = {"num_classes": partial(count, language) if callable(count) else count}
    if dataset.class_names is not None:
        names = dataset.class_names
        options["class_names"] = lambda: names(language)
    if dataset.templates is not None:
        templates = dataset.templates
        options["templates"] = lambda: templates(language)
    return options


def _split(dataset: BenchmarkDataset, split: str | None) -> str:
    """A split that the data set has; the default one for None."""
    if split is None:
        return dataset.splits[0]
    if split not in dataset.splits:
        raise DefinitionError(f"{dataset.name} has no split {split!r}; there are {', '.join(dataset.splits)}")
    return split


def _other_split(dataset: BenchmarkDataset, split: str, evaluated: str) -> str:
    """The name of the setting of another split."""
    if _split(dataset, split) == evaluated:
        raise DefinitionError(f"{dataset.name}: a probe cannot be trained on the evaluated split {evaluated!r}")
    return str(BenchmarkName(dataset.name, split=None if split == dataset.splits[0] else split))


BENCHMARKS = Benchmarks()


def add_benchmark(dataset: BenchmarkDataset) -> None:
    """Registers a named data set, with all its tasks, splits and languages, and in its collections.

    Raises:
        DuplicateNameError: If the name is taken.
    """
    BENCHMARKS.add(dataset)
    for collection in dataset.collections:
        registry.add_eval_setting_collection(collection, [dataset.name])


def add_open_benchmarks(prefix: str, make: Callable[[str], BenchmarkDataset]) -> None:
    """Registers all data sets whose name begins with a prefix, such as ``wds/``.

    Args:
        prefix: The prefix of their names.
        make: From a name to the data set; may read its folder, and raise `DataError`.
    """
    BENCHMARKS.add_open(prefix, make)


def parse_name(name: str) -> BenchmarkName | None:
    """Parses the name of a setting of a named data set; None if it is not such a name."""
    registry.load()
    return BENCHMARKS.parse(name)
