"""The options of a run that choose the task, split or language of named data sets, as in CLIP benchmark.

They are equivalent to setting names: ``cifar10 --task linear_probe --fewshot-k 5`` is ``cifar10.linear_probe.k5``, and
``--scorers A`` turns each captioning setting X into ``X@A``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import click

from testbed.errors import DataError, DefinitionError
from testbed.graph.options import option

if TYPE_CHECKING:
    from testbed.eval_settings.benchmark_families.benchmark_names import BenchmarkName
    from testbed.registry.catalog import Catalog


LINEAR_PROBE = "linear_probe"
AMONG_PRESENT = "present"
SIMILARITY = "similarity"
TASKS = (
    *("auto", "zeroshot_classification", "zeroshot_retrieval", "image_caption_selection"),
    *("linear_probe", "clip_score", "captioning"),
)


@dataclass(frozen=True)
class TaskOptions:
    """Task options; None where not given."""

    task: Annotated[str | None, option("The task on named data sets.  [default: their own]", choices=TASKS)] = None
    among: Annotated[
        str | None,
        option(
            "Classes to choose from if the data have only some of a classifier's classes: all of its outputs, or those"
            " of the classes that are present (a separate setting, NAME.among-present, from the same outputs)."
            "  [default: all]",
            choices=("all", AMONG_PRESENT),
        ),
    ] = None
    language: Annotated[tuple[str, ...], option("Languages of named data sets.", metavar="CODE")] = ()
    split: Annotated[str | None, option("The split of named data sets to evaluate.", metavar="NAME")] = None
    recall_k: Annotated[tuple[int, ...], option("Retrieval: values of k in recall@k.", metavar="K", least=1)] = ()
    probe: Annotated[str | None, option("The optimizer that fits the probe.", choices=("adamw", "lbfgs"))] = None
    fewshot_k: Annotated[int | None, option("Training samples per class.", metavar="K", least=1)] = None
    fewshot_lr: Annotated[float | None, option("Learning rate.  [default: 0.1]", metavar="LR")] = None
    fewshot_epochs: Annotated[int | None, option("Epochs.  [default: 10]", metavar="N", least=1)] = None
    fewshot_batch_size: Annotated[int | None, option("Batch size.  [default: 64]", metavar="N", least=1)] = None
    fewshot_seed: Annotated[int | None, option("Seed.  [default: 0]", metavar="N", least=0)] = None
    train_split: Annotated[str | None, option("The split to fit on.  [default: train]", metavar="NAME")] = None
    val_split: Annotated[str | None, option("The validation split, for the weight decay.", metavar="NAME")] = None
    val_proportion: Annotated[
        float | None,
        option(
            "Instead of --val-split: the share of the training samples to hold out for validation.",
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            metavar="P",
        ),
    ] = None
    normalize: Annotated[
        bool | None, option("Whether to scale embeddings to length 1.", "--normalize/--no-normalize")
    ] = None

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of a setting's name that the options set."""
        held_out = None if self.val_proportion is None else self.val_proportion * 100
        said = {
            "split": self.split,
            "method": self.probe,
            "shots": self.fewshot_k,
            "lr": self.fewshot_lr,
            "epochs": self.fewshot_epochs,
            "batch_size": self.fewshot_batch_size,
            "seed": self.fewshot_seed,
            "train": self.train_split,
            "validation": self.val_split,
            "held_out": held_out,
            "normalize": self.normalize,
        }
        return {name: value for name, value in said.items() if value is not None}


def as_tasks(settings: Sequence[str], given: TaskOptions) -> list[str]:
    """Applies the options to the names of settings; prints which data sets are not available in which languages.

    Args:
        settings: Canonical names.

    Raises:
        DefinitionError: If an option does not apply to a setting, or no setting is in any of the languages.
    """
    if given.among is not None:
        from testbed.registry import registry
        from testbed.registry.references import among_present

        named = as_tasks(settings, replace(given, among=None))
        return among_present(registry.eval_settings, named) if given.among == AMONG_PRESENT else named
    if given in (TaskOptions(), TaskOptions("auto")):
        return list(settings)
    names: dict[str, None] = {}
    lacking: dict[tuple[str, str], dict[str, None]] = {}
    for setting in settings:
        lacked = []
        for language in given.language or (None,):
            try:
                names.setdefault(_with(setting, given, language))
            except LanguageError as error:
                lacked.append(str(language))
                has = str(error)
        if lacked:
            lacking.setdefault((", ".join(lacked), has), {})[setting] = None
    said = [f"{_some(list(sets))} in {lacked}: there {has}" for (lacked, has), sets in lacking.items()]
    if not names:
        raise DefinitionError(f"no setting is available in a requested language: {'; '.join(said)}")
    for line in said:
        click.echo(f"Left out: {line}", err=True)
    return list(names)


class LanguageError(DefinitionError):
    """A data set has no class names, templates or captions in a language."""


def as_captioners(models: Sequence[str], task: str | None) -> list[str]:
    """Replaces open_clip encoders by the captioners that they contain if ``--task`` is captioning."""
    if task != "captioning":
        return list(models)
    from testbed.models.open_clip_coca import PREFIX
    from testbed.registry import registry

    return [registry.models.canonical(f"{PREFIX}{name}") or name for name in models]


def _with(setting: str, given: TaskOptions, language: str | None) -> str:
    from testbed.eval_settings.benchmark_families.benchmark import parse_name
    from testbed.eval_settings.benchmark_families.benchmark_names import OTHER_TASKS
    from testbed.registry import registry

    name = parse_name(setting)
    if name is None:
        raise DefinitionError(
            f"{setting} is not a named data set; --task, --split, --language and similar options require one; testbed"
            " list settings lists all settings"
        )
    options, task = given.attributes, given.task
    if options.get("method") == "adamw":
        options["method"] = None
    if options.get("normalize") is True:
        options["normalize"] = None
    if task in OTHER_TASKS:
        options["task"] = task
    if given.recall_k:
        options["recall"] = tuple(sorted(set(given.recall_k)))
    if language is not None:
        options["language"] = language
    wanted: BenchmarkName = replace(name, **options)
    written = str(wanted)
    if task not in (None, "auto", *OTHER_TASKS):
        written = f"{written}.{task}"
    canonical = registry.eval_settings.canonical(written)
    if canonical is None or not _fits(name.dataset, task, given.split):
        if language is not None and _fits(name.dataset, task, given.split) and _is_setting(wanted, language):
            raise LanguageError(_languages_of(name.dataset))
        raise DefinitionError(_why_not(name.dataset, written, given))
    return canonical


def _is_setting(wanted: "BenchmarkName", language: str) -> bool:
    """Returns whether a name is that of a setting without this language."""
    from testbed.registry import registry

    written = str(replace(wanted, language=None))
    return wanted.language == language and registry.eval_settings.canonical(written) is not None


def _languages_of(name: str) -> str:
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS

    known = BENCHMARKS.dataset(name).languages
    return f"are the languages {_some(known)}" if len(known) > 1 else f"is the language {known[0]} alone"


def _fits(dataset: str, task: str | None, split: str | None) -> bool:
    """Returns whether a data set is for a task and has a split; the run reports data sets that cannot be read."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
    from testbed.eval_settings.benchmark_families.benchmark_names import kinds_of

    if task in (None, "auto") and split is None:
        return True
    try:
        found = BENCHMARKS.dataset(dataset)
    except DataError:
        return True
    return found.kind in kinds_of(task) and split in (None, *found.splits)


def _why_not(name: str, written: str, given: TaskOptions) -> str:
    """Returns the message for a name that is not a setting."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS

    dataset = BENCHMARKS.dataset(name)
    if given.split is not None and given.split not in dataset.splits:
        return f"{dataset.name} has no split {given.split!r}; its splits are {', '.join(dataset.splits)}"
    few_shot = given.attributes.keys() - {"split"} and given.task != LINEAR_PROBE
    return (
        f"{written} is not a setting: {dataset.name} is a data set for {dataset.kind}, with the splits"
        f" {', '.join(dataset.splits)} and the languages {_some(dataset.languages)}"
        + ("; few-shot options require --task linear_probe" if few_shot else "")
    )


def _some(words: Sequence[str], most: int = 12) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def as_scored(catalog: "Catalog", settings: Sequence[str], scorers: Sequence[str], scoring: str) -> list[str]:
    """The names of settings, with each captioning setting expanded to one per scorer.

    Args:
        catalog: Catalog to look names up in.
        settings: Canonical names.
        scorers: Names as the user wrote them.
        scoring: One of the choices of ``--scoring``.

    Raises:
        DefinitionError: If scorers are given and a setting is not a captioning setting.
    """
    from testbed.registry.references import SettingReference
    from testbed.registry.select import select

    if not scorers:
        return list(settings)
    chosen = select(catalog.models, catalog.model_collections, scorers)
    names: dict[str, None] = {}
    for setting in settings:
        if SettingReference.parse(setting).judge and catalog.get_eval_setting(setting).scoring is not None:
            names.setdefault(setting)
            continue
        if catalog.get_eval_setting(setting).task != "captioning":
            raise DefinitionError(_not_captioning(catalog, setting))
        way = "" if scoring == SIMILARITY else f".{scoring}"
        for scorer in chosen:
            name = catalog.eval_settings.canonical(f"{setting}{way}@{scorer}")
            assert name is not None
            names.setdefault(name)
    return list(names)


def _not_captioning(catalog: "Catalog", setting: str) -> str:
    """Returns the message for a setting that is not a captioning setting."""
    captioning = f"{setting}.captioning"
    known = catalog.contains_eval_setting(captioning)
    remedy = f"use {captioning}" if known else "use clip-cc-bench or mscoco_captions.captioning, for example"
    task = catalog.get_eval_setting(setting).task
    return f"--scorers requires captioning settings; {setting} is for {task}; {remedy}"
