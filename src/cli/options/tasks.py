"""The options of ``eval.py`` that choose the task, split or language of named data sets, as in CLIP benchmark.

They are equivalent to setting names: ``cifar10 --task linear_probe --fewshot-k 5`` is ``cifar10.linear_probe.k5``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from testbed.console.options import ManyWords
from testbed.errors import DataError, DefinitionError

F = TypeVar("F", bound=Callable[..., Any])

POSITIVE = click.IntRange(min=1)
TASKS = (
    *("auto", "zeroshot_classification", "zeroshot_retrieval", "image_caption_selection"),
    *("linear_probe", "clip_score", "captioning"),
)
# Option → the attribute of a setting's name.
_ATTRIBUTES = {
    "split": "split",
    "probe": "method",
    "fewshot_k": "shots",
    "fewshot_lr": "lr",
    "fewshot_epochs": "epochs",
    "fewshot_batch_size": "batch_size",
    "fewshot_seed": "seed",
    "train_split": "train",
    "val_split": "validation",
    "val_proportion": "held_out",
    "normalize": "normalize",
}
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option("--task", type=click.Choice(TASKS), help="The task on named data sets.  [default: their own]"),
    click.option("--language", cls=ManyWords, metavar="CODE", help="Languages of named data sets."),
    click.option("--split", metavar="NAME", help="The split of named data sets to evaluate."),
    click.option("--recall-k", cls=ManyWords, type=POSITIVE, metavar="K", help="Retrieval: values of k in recall@k."),
    click.option("--probe", type=click.Choice(["adamw", "lbfgs"]), help="Linear probe: how it is fitted."),
    click.option("--fewshot-k", type=POSITIVE, metavar="K", help="Linear probe: training samples per class."),
    click.option("--fewshot-lr", type=float, metavar="LR", help="Linear probe: learning rate.  [default: 0.1]"),
    click.option("--fewshot-epochs", type=POSITIVE, metavar="N", help="Linear probe: epochs.  [default: 10]"),
    click.option("--fewshot-batch-size", type=POSITIVE, metavar="N", help="Linear probe: batch size.  [default: 64]"),
    click.option("--fewshot-seed", type=click.IntRange(min=0), metavar="N", help="Linear probe: seed.  [default: 0]"),
    click.option("--train-split", metavar="NAME", help="Linear probe: the split to fit on.  [default: train]"),
    click.option("--val-split", metavar="NAME", help="Linear probe: the validation split, for the weight decay."),
    click.option(
        "--val-proportion",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="P",
        help="Linear probe: or the share of the training samples to use as the validation split.",
    ),
    click.option(
        "--normalize/--no-normalize",
        default=None,
        help="Linear probe: whether to scale embeddings to length 1.",
    ),
    click.option(
        "--classnames-file",
        "--custom-classname-file",
        type=_FILE,
        help="Class names by data set, in CLIP benchmark's JSON format.",
    ),
    click.option(
        "--templates-file",
        "--custom-template-file",
        type=_FILE,
        help="Prompt templates by data set, or prompts by class (CuPL), in the same format.",
    ),
    click.option(
        "--load-clfs",
        cls=ManyWords,
        type=_FILE,
        metavar="FILE",
        help="Zero-shot heads to use; several are averaged.",
    ),
    click.option(
        "--save-clf",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write the zero-shot heads of the run to this folder.",
    ),
)


def task_options(function: F) -> F:
    """The options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def given_files(given: Mapping[str, Any]) -> dict[str, Any]:
    """The files of class names, templates and heads that the options name, as `Inputs.but` takes them.

    Raises:
        DataError: If one of class names or templates cannot be read, or has another form.
    """
    from testbed.data.language import prompts

    names, templates = given["classnames_file"], given["templates_file"]
    return {
        "class_names": prompts.class_names_file(names) if names is not None else None,
        "templates": prompts.templates_file(templates) if templates is not None else None,
        "heads": given["load_clfs"],
    }


def as_tasks(settings: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    """Applies the options to the names of settings.

    Args:
        settings: Canonical names.
        given: The options, by name.

    Raises:
        DefinitionError: If an option does not apply to a setting.
    """
    said = {option: given[option] for option in _ATTRIBUTES if given[option] is not None}
    if not said and not given["language"] and not given["recall_k"] and given["task"] in (None, "auto"):
        return list(settings)
    if "val_proportion" in said:
        said["val_proportion"] = said["val_proportion"] * 100
    names: dict[str, None] = {}
    for setting in settings:
        for language in given["language"] or (None,):
            names.setdefault(_with(setting, said, language, given["task"], given["recall_k"]))
    return list(names)


def as_captioners(models: Sequence[str], task: str | None) -> list[str]:
    """The names of models, of a captioning task with open_clip's encoders as the captioners that they are too.

    Args:
        models: Canonical names.
        task: The option ``--task``.
    """
    if task != "captioning":
        return list(models)
    from testbed.models.open_clip_coca import PREFIX
    from testbed.registry import registry

    return [registry.models.canonical(f"{PREFIX}{name}") or name for name in models]


def _with(setting: str, said: Mapping[str, Any], language: str | None, task: str | None, recall: Sequence[int]) -> str:
    from testbed.eval_settings.benchmark_families.benchmark import parse_name
    from testbed.eval_settings.benchmark_families.benchmark_names import OTHER_TASKS, BenchmarkName
    from testbed.registry import registry

    name = parse_name(setting)
    if name is None:
        raise DefinitionError(
            f"{setting} is not a named data set; --task, --split, --language and similar options require one; python"
            " db.py --list-eval-settings-registry lists all settings"
        )
    options: dict[str, Any] = {_ATTRIBUTES[option]: value for option, value in said.items()}
    if options.get("method") == "adamw":
        options["method"] = None
    if options.get("normalize") is True:
        options["normalize"] = None
    if task in OTHER_TASKS:
        options["task"] = task
    if recall:
        options["recall"] = tuple(sorted(set(recall)))
    if language is not None:
        options["language"] = language
    wanted: BenchmarkName = replace(name, **options)
    written = str(wanted)
    if task not in (None, "auto", *OTHER_TASKS):
        written = f"{written}.{task}"
    canonical = registry.eval_settings.canonical(written)
    if canonical is None or not _fits(name.dataset, task, said.get("split")):
        raise DefinitionError(_why_not(name.dataset, written, said.get("split")))
    return canonical


def _fits(dataset: str, task: str | None, split: str | None) -> bool:
    """Whether a data set is for a task and has a split; the run reports a data set that cannot be read."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS
    from testbed.eval_settings.benchmark_families.benchmark_names import kinds_of

    if task in (None, "auto") and split is None:
        return True
    try:
        found = BENCHMARKS.dataset(dataset)
    except DataError:
        return True
    return found.kind in kinds_of(task) and split in (None, *found.splits)


def _why_not(name: str, written: str, split: str | None) -> str:
    """The message for a name that is not a setting."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS

    dataset = BENCHMARKS.dataset(name)
    if split is not None and split not in dataset.splits:
        return f"{dataset.name} has no split {split!r}; there are {', '.join(dataset.splits)}"
    return (
        f"{written} is not a setting: {dataset.name} is a data set for {dataset.kind}, with the splits"
        f" {', '.join(dataset.splits)} and the languages {_some(dataset.languages)}; few-shot options require --task"
        " linear_probe"
    )


def _some(words: Sequence[str], most: int = 12) -> str:
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")
