"""Settings as CLIP benchmark's records name them: a data set, a task, a language, and how a probe was trained."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS, parse_name
from testbed.eval_settings.benchmark_families.benchmark_names import LINEAR_PROBE, ZERO_SHOT, BenchmarkName, read_words
from testbed.registry import registry

CLASSIFICATION = "zeroshot_classification"
RETRIEVAL = "zeroshot_retrieval"
SELECTION = "image_caption_selection"
CAPTIONING = "captioning"
TASKS = (CLASSIFICATION, RETRIEVAL, SELECTION, LINEAR_PROBE, CAPTIONING)
ENGLISH = "en"
ALL_SHOTS = -1  # CLIP benchmark's fewshot_k of a probe that is trained on everything

_LANGUAGE = re.compile(r"(?P<dataset>.+)\.zeroshot\.(?P<language>[a-z]{2,3}(?:_[A-Z][a-z]{3})?)")


@dataclass(frozen=True)
class ClipBenchmarkFields:
    """CLIP benchmark's fields of an eval setting.

    Attributes:
        dataset: Its name for the data set; where a setting is on another split, the split after a dot.
        task: One of `TASKS`.
        language: By default ``"en"``.
        probe: Options of a linear probe: ``fewshot_k``, ``epochs``, ``seed``, ``normalized``.
    """

    dataset: str
    task: str = CLASSIFICATION
    language: str = ENGLISH
    probe: Mapping[str, Any] = field(default_factory=dict)


def place_of(eval_setting: str, metrics: Collection[str]) -> ClipBenchmarkFields:
    """Returns CLIP benchmark's fields of an eval setting.

    Args:
        eval_setting: Its name.
        metrics: The names of its metrics, which reveal the task of a data set that is not registered.
    """
    name = parse_name(eval_setting) or _by_syntax(eval_setting)
    dataset = name.dataset if name.split is None else f"{name.dataset}.{name.split}"
    if name.task == LINEAR_PROBE:
        probe = {
            "fewshot_k": ALL_SHOTS if name.shots is None else name.shots,
            "epochs": 10 if name.epochs is None else name.epochs,
            "seed": name.seed or 0,
            "normalized": name.normalize is not False,
        }
        return ClipBenchmarkFields(dataset, LINEAR_PROBE, ENGLISH, probe)
    return ClipBenchmarkFields(dataset, _own_task(metrics), name.language or _first_language(name.dataset))


def setting_of(place: ClipBenchmarkFields) -> str:
    """Returns the eval setting of a record of CLIP benchmark; undoes `place_of` as far as records allow."""
    words = BenchmarkName(place.dataset)
    if place.task == LINEAR_PROBE:
        words = _with_probe(replace(words, task=LINEAR_PROBE), place.probe)
    elif place.task == CAPTIONING:
        return f"{place.dataset}.{CAPTIONING}"
    elif place.language and place.language != _first_language(place.dataset):
        words = replace(words, language=place.language)
    return canonical(str(words))


def canonical(eval_setting: str) -> str:
    """The one spelling of a setting's name, if it is registered; else the name as it is."""
    registry.load()
    return registry.eval_settings.canonical(eval_setting) or eval_setting


def _own_task(metrics: Collection[str]) -> str:
    """The task that has such metrics."""
    if any("_retrieval_recall@" in name for name in metrics):
        return RETRIEVAL
    if {"image_acc", "text_acc", "acc"} & set(metrics):
        return SELECTION
    if {"CIDEr", "Bleu_4", "METEOR", "SPICE", "ROUGE_L"} & set(metrics):
        return CAPTIONING
    return CLASSIFICATION


def _with_probe(name: BenchmarkName, probe: Mapping[str, Any]) -> BenchmarkName:
    """A name with what is not the default about a probe."""
    shots, epochs, seed = (probe.get(key) for key in ("fewshot_k", "epochs", "seed"))
    return replace(
        name,
        shots=int(shots) if shots is not None and int(shots) > 0 else None,
        epochs=int(epochs) if epochs is not None and int(epochs) != 10 else None,
        seed=int(seed) if seed else None,
        normalize=False if probe.get("normalized") is False else None,
    )


def _first_language(dataset: str) -> str:
    """The language that a data set is evaluated in when none is named."""
    registry.load()
    declared = BENCHMARKS.declared(dataset)
    return ENGLISH if declared is None else declared.languages[0]


def _by_syntax(name: str) -> BenchmarkName:
    """Guesses the fields from the name of a setting of an unknown data set."""
    if match := _LANGUAGE.fullmatch(name):
        return BenchmarkName(match["dataset"], task=ZERO_SHOT, language=match["language"])
    words = name.split(".")
    if LINEAR_PROBE in words[1:]:
        place = words.index(LINEAR_PROBE, 1)
        if found_words := read_words(BenchmarkName(".".join(words[:place])), words[place:], None):
            return found_words
    return BenchmarkName(name.removesuffix(f".{CAPTIONING}"))
