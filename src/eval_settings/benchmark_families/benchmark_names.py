"""Names of settings on named data sets: parsing, and the canonical form.

``cifar10`` is the data set's own task on its default split and in its default language; words after a dot change
these: ``cifar10.train``, ``cifar10.linear_probe.k5``, ``imagenet1k.zeroshot.zh``, ``mscoco_captions.recall1-100``,
``mscoco_captions.clip_score``, ``flickr30k.captioning.zh``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from testbed.eval_settings.benchmark_families.benchmark_dataset import KINDS, BenchmarkDataset
from testbed.registry.references import CLIP_SCORE, PREFIX

ZERO_SHOT = "zeroshot"
LINEAR_PROBE = "linear_probe"
CAPTIONING = "captioning"
OTHER_TASKS = {LINEAR_PROBE: "classification", CLIP_SCORE: "retrieval", CAPTIONING: "retrieval"}  # and on which kind
# Other words for a data set's own task: those of CLIP benchmark's --task.
OWN_TASK = {
    ZERO_SHOT: KINDS,
    "zeroshot_classification": ("classification", "multilabel"),
    "zeroshot_retrieval": ("retrieval",),
    "image_caption_selection": ("selection",),
}
DEFAULT_LANGUAGE = "en"  # of data sets whose languages require reading them
SEVERAL_NAMES = {"zh": ("cn",), "cn": ("zh",), "ja": ("jp",), "jp": ("ja",)}  # of one language, in published files


@dataclass(frozen=True)
class BenchmarkName:
    """The parsed name of a setting.

    Attributes:
        dataset: The name of the data set.
        split: None for the default one.
        task: ``"zeroshot"`` (the data set's own task, whatever it is) or one of `OTHER_TASKS`.
        language: None for the default one.
        shots: Linear probe: training samples of each class; None means all.
        method: Linear probe: ``"adamw"`` or ``"lbfgs"``.
        seed: Linear probe: of shots, initial weights and order.
        lr: Linear probe: learning rate.
        epochs: Linear probe: passes over the training samples.
        batch_size: Linear probe: samples at once.
        validation: Linear probe: the validation split, for the weight decay.
        held_out: Linear probe: instead, so many percent of the training samples.
        train: Linear probe: the training split; None means ``train``.
        normalize: Linear probe: whether embeddings are scaled to length 1.
        recall: Retrieval: other k of recall@k.
        prefix: CLIPScore: whether "A photo depicts" goes in front of captions.
    """

    dataset: str
    split: str | None = None
    task: str = ZERO_SHOT
    language: str | None = None
    shots: int | None = None
    method: str | None = None
    seed: int | None = None
    lr: float | None = None
    epochs: int | None = None
    batch_size: int | None = None
    validation: str | None = None
    held_out: float | None = None
    train: str | None = None
    normalize: bool | None = None
    recall: tuple[int, ...] | None = None
    prefix: bool | None = None

    @property
    def probe_words(self) -> bool:
        """True if the name has words that only apply to linear probes."""
        return any(getattr(self, attribute) is not None for _, attribute, _ in _PROBE_WORDS)

    def __str__(self) -> str:
        words = [self.dataset]
        if self.split is not None:
            words.append(self.split)
        if self.task != ZERO_SHOT:
            words.append(self.task)
        for write, attribute, _ in _PROBE_WORDS:
            if (value := getattr(self, attribute)) is not None:
                words.append(write(value))
        if self.prefix:
            words.append(PREFIX)
        if self.recall is not None:
            words.append("recall" + "-".join(map(str, self.recall)))
        if self.language is not None:
            words += [ZERO_SHOT, self.language] if self.task == ZERO_SHOT else [self.language]
        return ".".join(words)


def _number(value: float) -> str:
    return f"{value:g}"


# How a word of a linear probe is written, the attribute, and how it is read.
_PROBE_WORDS: tuple[tuple[Callable[[Any], str], str, re.Pattern[str]], ...] = (
    (str, "method", re.compile(r"lbfgs")),
    (lambda value: f"k{value}", "shots", re.compile(r"k([1-9]\d{0,8})")),
    (lambda value: f"train-{value}", "train", re.compile(r"train-([\w-]+)")),
    (lambda value: f"val-{value}", "validation", re.compile(r"val-([\w-]*[a-z_][\w-]*)")),
    (lambda value: f"val{_number(value)}", "held_out", re.compile(r"val(\d{1,3}(?:\.\d{1,15})?)")),
    (lambda value: f"lr{_number(value)}", "lr", re.compile(r"lr(\d{1,9}(?:\.\d{1,20})?(?:e-?\d{1,2})?)")),
    (lambda value: f"epochs{value}", "epochs", re.compile(r"epochs([1-9]\d{0,8})")),
    (lambda value: f"batch{value}", "batch_size", re.compile(r"batch([1-9]\d{0,8})")),
    (lambda value: f"seed{value}", "seed", re.compile(r"seed(\d{1,18})")),
    (lambda value: "unnormalized", "normalize", re.compile(r"unnormalized")),
)
_READ: dict[str, Callable[[str], Any]] = {
    "shots": int,
    "epochs": int,
    "batch_size": int,
    "seed": int,
    "lr": float,
    "held_out": float,
    "normalize": lambda word: False,
}
_DEFAULTS: dict[str, Any] = {
    "seed": 0,
    "lr": 0.1,
    "epochs": 10,
    "batch_size": 64,
    "train": "train",
    "recall": (1, 5, 10),
}
_LANGUAGE = re.compile(r"zeroshot\.([a-z]{2,3}(?:_[A-Z][a-z]{3})?)")
_RECALL = re.compile(r"recall(\d{1,9}(?:-\d{1,9}){0,99})")


def read_words(name: BenchmarkName, words: Sequence[str], dataset: BenchmarkDataset | None) -> BenchmarkName | None:
    """Applies words to a name; None if a word is unknown.

    Args:
        name: The name so far, such as only the data set.
        words: The parts between the dots; a number's own point (``lr0.1``) does not end a word.
        dataset: Its splits, languages and kind; None for one whose languages require reading it.
    """
    pending = list(words)
    while pending:
        for length in (2, 1):  # lr0.1 comes as two
            read = _read_word(name, ".".join(pending[:length]), dataset) if length <= len(pending) else None
            if read is not None:
                name, pending = read, pending[length:]
                break
        else:
            return None
    defaults = dict(_DEFAULTS, split="test", language=DEFAULT_LANGUAGE)
    if dataset is not None:
        defaults.update(split=dataset.splits[0], language=dataset.languages[0])
    for attribute, default in defaults.items():
        if getattr(name, attribute) == default:
            name = _without(name, attribute)
    return name if _fits_together(name) else None


def spellings(language: str) -> tuple[str, ...]:
    """The codes that published files have for a language, the given one first."""
    return (language, *SEVERAL_NAMES.get(language, ()))


def kinds_of(task: str | None) -> Sequence[str]:
    """The kinds of data sets that a task of CLIP benchmark's ``--task`` is for; all for None and ``auto``."""
    return (OTHER_TASKS[task],) if task in OTHER_TASKS else OWN_TASK.get(task or "auto", KINDS)


def _fits_together(name: BenchmarkName) -> bool:
    """Checks whether all words of the name apply to its task."""
    if name.task == LINEAR_PROBE:
        return not name.language and not name.prefix
    if name.probe_words or (name.recall and name.task != ZERO_SHOT):
        return False
    return not name.prefix or name.task == CLIP_SCORE


def _without(name: BenchmarkName, attribute: str) -> BenchmarkName:
    nothing: dict[str, Any] = {attribute: None}
    return replace(name, **nothing)


def _read_word(name: BenchmarkName, word: str, dataset: BenchmarkDataset | None) -> BenchmarkName | None:
    """Applies one more word to a name; None if it is unknown or repeated."""
    if dataset is None and (read := _read_language(name, word)) is not None:
        return read
    if word in OTHER_TASKS:
        fits = name.task == ZERO_SHOT and (dataset is None or dataset.kind == OTHER_TASKS[word])
        return replace(name, task=word) if fits else None
    if word == PREFIX:
        fits = name.prefix is None and (dataset is None or dataset.kind == OTHER_TASKS[CLIP_SCORE])
        return replace(name, prefix=True) if fits else None
    if word in OWN_TASK:
        fits = name.task == ZERO_SHOT and (dataset is None or dataset.kind in OWN_TASK[word])
        return name if fits else None
    for _, attribute, pattern in _PROBE_WORDS:
        if (match := pattern.fullmatch(word)) and getattr(name, attribute) is None:
            text = match.group(1) if pattern.groups else word
            return replace(name, **{attribute: _READ.get(attribute, str)(text)})
    if (match := _RECALL.fullmatch(word)) and name.recall is None:
        numbers = tuple(sorted({int(number) for number in match.group(1).split("-")}))
        fits = numbers[0] > 0 and (dataset is None or dataset.kind == "retrieval")
        return replace(name, recall=numbers) if fits else None
    return _read_place(name, word, dataset)


def _read_language(name: BenchmarkName, word: str) -> BenchmarkName | None:
    """Reads the language in ``zeroshot.it``, for a data set whose languages require reading it."""
    match = _LANGUAGE.fullmatch(word)
    return replace(name, language=match.group(1)) if match and name.language is None else None


def _read_place(name: BenchmarkName, word: str, dataset: BenchmarkDataset | None) -> BenchmarkName | None:
    """A split or a language."""
    if dataset is None:
        known = word in ("train", "test", "val", "valid", "trainval") and name.split is None
        return replace(name, split=word) if known else None
    if word in dataset.splits and name.split is None:
        return replace(name, split=word)
    spelled = next((spelling for spelling in spellings(word) if spelling in dataset.languages), None)
    if spelled is not None and name.language is None:
        return replace(name, language=spelled)
    return None
