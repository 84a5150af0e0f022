"""The options of ``testbed run`` and ``eval.py``; most are declared by the fields that they fill."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import Field, fields
from inspect import signature
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin

import click

from testbed.cli.options.inputs import InputOptions
from testbed.cli.options.tasks import SIMILARITY, TaskOptions
from testbed.console.completion import registered
from testbed.console.options import DATA_ROOT, DB_URL, PLUGIN, ManyWords, Option
from testbed.errors import shortened
from testbed.graph.options import RunOptions

D = TypeVar("D")

_ANY_PATH = click.Path(path_type=Path)
_MOST = 1 << 63  # bytes
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

FROM_THE_HUB = ""  # the value of --download without a URL


class Bytes(click.ParamType[int]):
    """A number of bytes, such as ``20G``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parses the value."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", str(value).strip().upper())
        if match is None:
            self.fail(f"{value!r} is not a valid size; write for example 20G", param, ctx)
        size = float(match[1]) * _UNITS[match[2]]
        if size >= _MOST:
            self.fail(f"{shortened(str(value))} is larger than any disk; write for example 20G", param, ctx)
        return int(size)


def _or_none(_: click.Context, __: click.Parameter, value: Sequence[int]) -> tuple[int, ...] | None:
    return tuple(value) or None


MODELS: dict[str, Any] = {
    "metavar": "NAME",
    "shell_complete": registered("model"),
    "help": "Models: names, patterns ('timm/convnext*'), collections (demo), or a text file of these.",
}
SETTINGS: dict[str, Any] = {
    "metavar": "SETTING",
    "shell_complete": registered("eval setting"),
    "help": "Eval settings: names, patterns ('digits-c.*'), collections (demo), folders of images (one folder per"
    " class), or a text file of these.",
}


def _options() -> list[click.Parameter]:
    def add(*flags: str, cls: type[Option] = Option, **keywords: Any) -> None:
        made.append(cls([*flags], heading=heading, **keywords))

    def declared(kind: type, *names: str) -> None:
        by_name = {field.name: field for field in fields(kind)}
        made.extend(_declared(by_name[name], heading) for name in names)

    made: list[click.Parameter] = []
    heading = "What"
    declared(RunOptions, "limit")
    add(
        "--until",
        metavar="POINTS|better:MODEL",
        help="Run on ever more samples in random order, until the main metric over all of them is known to within"
        " this many points (0.5), or until it is decided for each model whether it is better or worse than MODEL;"
        " METRIC:POINTS and METRIC:better:MODEL choose another metric.",
    )
    declared(TaskOptions, "task", "among", "language", "split", "recall_k")
    declared(RunOptions, "seed", "random_weights", "strict")
    add(
        "--fail-on-disagreement",
        is_flag=True,
        help="Exit with status 1 if a result of this run, computed or reused, differs from a published one.",
    )
    add("--dry-run", is_flag=True, help="Print the plan and do nothing.")
    add("--plugin", "plugins", cls=ManyWords, **PLUGIN)

    heading = "Data and checkpoints"
    add("--data-root", **DATA_ROOT)
    add(
        "--download",
        is_flag=False,
        flag_value=FROM_THE_HUB,
        metavar="[URL]",
        help="Download missing data sets to the data root: torchvision's, hf/…, and wds/… and vtab/… from a URL with"
        " {dataset} or {dataset_cleaned} in it.  [default URL: CLIP benchmark's data sets on the Hugging Face hub]",
    )
    declared(InputOptions, "predictions", "checkpoints", "lmu_data")
    add(
        "--vlmevalkit",
        type=_ANY_PATH,
        metavar="FILE.json",
        help="Run the models on the sets of a configuration file of VLMEvalKit, in addition to those that are named.",
    )
    add(
        "--recorded",
        type=_ANY_PATH,
        metavar="DIR",
        help="Score all answer files MODEL_SET.xlsx (.tsv, .json) that VLMEvalKit wrote below a folder, each on the"
        " set in its file name; if settings are named, only those of these settings.",
    )
    declared(InputOptions, "max_megapixels", "exif", "image_size", "mean", "std", "interpolation")
    declared(InputOptions, "class_order", "weights_entry", "match_by_order")
    add(
        *("--as", "name"),
        metavar="NAME",
        help="A name for the only model file, used from now on in the store.  [default: the file's stem, made unique]",
    )

    heading = "Prompts"
    declared(InputOptions, "classnames_file", "templates_file", "load_clfs")
    add(
        "--save-clf",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write the zero-shot heads of the run to this folder.",
    )

    heading = "Linear probe"
    declared(TaskOptions, "probe", "fewshot_k", "fewshot_lr", "fewshot_epochs", "fewshot_batch_size", "fewshot_seed")
    declared(TaskOptions, "train_split", "val_split", "val_proportion", "normalize")

    heading = "Judges of captions"
    add(
        "--scorers",
        cls=ManyWords,
        metavar="NAME",
        help="Captioning settings: the judges, which score the captions; names, patterns, collections (decoders).",
    )
    add(
        "--scoring",
        type=click.Choice([SIMILARITY, "clip_score"]),
        default=SIMILARITY,
        show_default=True,
        help="Compare captions with references or images.",
    )

    heading = "Devices and speed"
    declared(RunOptions, "gpus", "cpu_processes", "data_workers", "batch_size", "dtype", "executor", "ray_address")
    declared(RunOptions, "compile", "channels_last", "decoded_cache", "profile")

    heading = "Stored results"
    declared(RunOptions, "override", "trust", "verify", "share_passes")

    heading = "Store and output"
    add("--db-url", **DB_URL)
    add("--db/--no-db", default=True, help="Whether to store the results.  [default: --db]")
    declared(RunOptions, "payload_url", "store_dtype")
    add(
        "--logdir",
        type=click.Path(file_okay=False, path_type=Path),
        help="Also write metrics.json and the outputs to this folder.",
    )
    add(
        "--log-file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Append events to this file as JSON lines: passes, their progress, messages, and how each cell ended.",
    )
    add(
        "--log",
        "logs",
        cls=ManyWords,
        metavar="WHERE",
        help="Also log the metrics to tensorboard:DIR, wandb[:PROJECT] or mlflow[:URI], as one run per model.",
    )
    add("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
    declared(RunOptions, "verbose")
    return made


def _declared(field: Field[Any], heading: str) -> Option:
    """Makes the option that a field's annotation declares; see `testbed.graph.options.option`."""
    annotation: Any = field.type
    name, default = field.name, field.default
    facts = {"heading": heading, **annotation.__metadata__[0]}
    flags = facts.pop("flags") or [f"--{name.replace('_', '-')}"]
    types = get_args(annotation.__origin__) if isinstance(annotation.__origin__, UnionType) else [annotation.__origin__]
    many, choices, least = get_origin(types[0]) is tuple, facts.pop("choices", None), facts.pop("least", None)
    if choices is not None:
        facts["type"] = click.Choice(choices)
    elif least is not None:
        facts["type"] = click.IntRange(min=least)
    elif facts.pop("unit", None) == "bytes":
        facts["type"] = Bytes()
    elif isinstance(default, bool):
        facts |= {"is_flag": True, **({"flag_value": False} if default else {})}
    else:
        facts.setdefault("type", get_args(types[0])[0] if many else types[0])
    if many and default is None:
        facts["callback"] = _or_none
    elif not many and default is not False:
        facts["default"] = default
    return (ManyWords if many else Option)([*flags, name], **facts)


OPTIONS = _options()


def some_options(*names: str) -> list[click.Parameter]:
    """Selects the options with these names."""
    return [parameter for parameter in OPTIONS if parameter.name in names]


def picked(kind: type[D], given: dict[str, Any], **more: Any) -> D:
    """Creates a dataclass from the options named after its fields, and removes them from the given ones."""
    return kind(**{name: given.pop(name) for name in signature(kind).parameters if name in given}, **more)
