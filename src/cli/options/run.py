"""The options of a run, for ``testbed run`` and ``eval.py``. Each is named after the field that it fills."""

from __future__ import annotations

import re
from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import click

from testbed.cli.options.tasks import AMONG, SIMILARITY
from testbed.console.completion import registered
from testbed.console.options import DATA_ROOT, DB_URL, PLUGIN, ManyWords, Option
from testbed.errors import shortened
from testbed.inputs import ENV_CHECKPOINTS, ENV_LMU_DATA, ENV_PREDICTIONS, MAX_MEGAPIXELS, STORED, TURN
from testbed.models.base.definition import PRECISIONS

D = TypeVar("D")

_POSITIVE = click.IntRange(min=1)
_NATURAL = click.IntRange(min=0)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ANY_PATH = click.Path(path_type=Path)
_MOST = 1 << 63  # bytes
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

TASKS = (
    *("auto", "zeroshot_classification", "zeroshot_retrieval", "image_caption_selection"),
    *("linear_probe", "clip_score", "captioning"),
)
INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "lanczos")
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

    made: list[click.Parameter] = []
    heading = "What"
    add("--limit", type=_POSITIVE, metavar="N", help="At most N samples of each setting, evenly spread.")
    add(
        "--until",
        metavar="POINTS|better:MODEL",
        help="Run on ever more samples in random order, until the main metric of all of them is known to this many"
        " points (0.5), or until it is decided whether each model is better or worse than MODEL; METRIC:POINTS and"
        " METRIC:better:MODEL choose another metric.",
    )
    add("--task", type=click.Choice(TASKS), help="The task on named data sets.  [default: their own]")
    add(
        "--among",
        type=click.Choice(AMONG),
        help="Classes to choose from if the data have only some of a classifier's classes: all of its outputs, or those"
        " of the classes that are present (a separate setting, NAME.among-present, from the same outputs)."
        "  [default: all]",
    )
    add("--language", cls=ManyWords, metavar="CODE", help="Languages of named data sets.")
    add("--split", metavar="NAME", help="The split of named data sets to evaluate.")
    add("--recall-k", cls=ManyWords, type=_POSITIVE, metavar="K", help="Retrieval: values of k in recall@k.")
    add("--seed", type=int, default=0, show_default=True, help="Seed for perturbations, sampling and random weights.")
    add("--random-weights", is_flag=True, help="Build untrained architectures; their results are marked.")
    add(
        "--strict",
        is_flag=True,
        help="Stop at a sample that cannot be read instead of counting it as wrong; fail if outputs are NaN or"
        " infinite, or if a data set leaves out files that may be samples.",
    )
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
    add(
        "--predictions",
        metavar="DIR",
        help=f"The folder with recorded predictions, for models named replay:NAME.  [default: ${ENV_PREDICTIONS}]",
    )
    add(
        "--checkpoints",
        metavar="DIR",
        help="The folder with the checkpoints of models defined in ImageNet-testbed's files, by the model's name."
        f"  [default: ${ENV_CHECKPOINTS}]",
    )
    add(
        "--lmu-data",
        metavar="DIR",
        help="VLMEvalKit's folder of tables, with DIR/NAME.tsv and pictures in DIR/images."
        f"  [default: ${ENV_LMU_DATA}, else ~/LMUData]",
    )
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
        help="Score all files of answers MODEL_SET.xlsx (.tsv, .json) that VLMEvalKit wrote below a folder, each on the"
        " set in its file name; if settings are named, only those of these settings.",
    )
    add(
        "--max-megapixels",
        type=_POSITIVE,
        metavar="N",
        help="Do not decode images of more than N million pixels; they count as unreadable."
        f"  [default: {MAX_MEGAPIXELS}]",
    )
    add(
        "--exif",
        type=click.Choice([STORED, TURN]),
        default=STORED,
        show_default=True,
        help="Read images as they are stored, or turned by their EXIF orientation, as viewers show them; the results"
        " differ, and are stored separately.",
    )
    add(
        "--image-size",
        cls=ManyWords,
        type=_POSITIVE,
        metavar="[RESIZE] CROP",
        help="For checkpoints of torchvision's and timm's architectures, such as resnet18,finetuned.pth: the shorter"
        " side after resizing, and the side of the centre crop; one number sets both.  [default: the"
        " architecture's]",
    )
    add("--mean", cls=ManyWords, type=float, metavar="R G B", help="For these: the mean, in [0, 1].")
    add("--std", cls=ManyWords, type=float, metavar="R G B", help="For these: the standard deviation.")
    add("--interpolation", type=click.Choice(INTERPOLATIONS), help="For these: how images are resized.")
    add(
        "--class-order",
        metavar="ORDER",
        help="For these: the order of the classes: natural (timm's), sorted (torchvision's ImageFolder), setting, or a"
        " file with a class name per line.  [default: as stored in the file, else setting]",
    )
    add(
        "--weights-entry",
        metavar="NAME",
        help="For these: the entry of the file that has the weights, such as ema.module or teacher.  [default: averaged"
        " weights, else the entry that fits the architecture]",
    )
    add(
        "--match-by-order",
        is_flag=True,
        help="For these: if tensor names do not match but all shapes agree in order, match tensors by order.",
    )

    add(
        *("--as", "name"),
        metavar="NAME",
        help="A name for the only model file, used from now on in the store.  [default: the file's stem, made unique]",
    )

    heading = "Prompts"
    add(
        *("--classnames-file", "--custom-classname-file"),
        type=_FILE,
        help="Class names by data set, in CLIP benchmark's JSON format.",
    )
    add(
        *("--templates-file", "--custom-template-file"),
        type=_FILE,
        help="Prompt templates by data set, or prompts by class (CuPL), in the same format.",
    )
    add("--load-clfs", cls=ManyWords, type=_FILE, metavar="FILE", help="Zero-shot heads to use, averaged.")
    add(
        "--save-clf",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write the zero-shot heads of the run to this folder.",
    )

    heading = "Linear probe"
    add("--probe", type=click.Choice(["adamw", "lbfgs"]), help="How the probe is fitted.")
    add("--fewshot-k", type=_POSITIVE, metavar="K", help="Training samples per class.")
    add("--fewshot-lr", type=float, metavar="LR", help="Learning rate.  [default: 0.1]")
    add("--fewshot-epochs", type=_POSITIVE, metavar="N", help="Epochs.  [default: 10]")
    add("--fewshot-batch-size", type=_POSITIVE, metavar="N", help="Batch size.  [default: 64]")
    add("--fewshot-seed", type=_NATURAL, metavar="N", help="Seed.  [default: 0]")
    add("--train-split", metavar="NAME", help="The split to fit on.  [default: train]")
    add("--val-split", metavar="NAME", help="The validation split, for the weight decay.")
    add(
        "--val-proportion",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="P",
        help="Or the share of the training samples to use as the validation split.",
    )
    add("--normalize/--no-normalize", default=None, help="Whether to scale embeddings to length 1.")

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
    add(
        "--gpus",
        cls=ManyWords,
        type=_NATURAL,
        metavar="ID",
        callback=_or_none,
        help="GPUs to use.  [default: all, else the CPU]",
    )
    add("--cpu-processes", type=_POSITIVE, metavar="N", help="Evaluation processes on the CPU.  [default: 1]")
    add(
        *("--workers", "data_workers"),
        type=_NATURAL,
        metavar="N",
        help="Data-loading processes for each evaluation process.",
    )
    add(
        "--batch-size",
        type=_POSITIVE,
        metavar="N",
        help="Batch size (attacks and vLLM use each model's own).  [default: each model's own]",
    )
    add(
        "--dtype",
        type=click.Choice(PRECISIONS),
        default="float32",
        show_default=True,
        help="Precision of the models (tf32: TensorFloat-32, on NVIDIA's GPUs; lower ones through torch.autocast).",
    )
    add(
        "--executor",
        metavar="NAME",
        default="processes",
        show_default=True,
        help="Where cells are computed: in 'processes', 'inline' in this one (for debuggers), on a 'ray' cluster, or by"
        " an installed executor.",
    )
    add(
        "--ray-address",
        metavar="HOST:PORT",
        help="The Ray cluster for --executor ray.  [default: $RAY_ADDRESS, else this machine's, else a new one]",
    )
    add("--compile", is_flag=True, help="Compile networks with torch.compile: slow to start, then faster.")
    add(
        "--channels-last",
        is_flag=True,
        help="Keep images and weights in the channels_last layout, which speeds up convolutions.",
    )
    add(
        "--decoded-cache",
        type=Bytes(),
        metavar="SIZE",
        default=0,
        help="Keep decoded and transformed images in the cache folder, up to this size (such as 20G), so that the next"
        " model with the same transform decodes nothing.  [default: none]",
    )
    add("--profile", is_flag=True, help="Measure where time goes (reading, decoding, forward, …); print and store it.")

    heading = "Stored results"
    add("--override", is_flag=True, help="Run stored cells again; the stored evaluations are hidden.")
    add("--trust", is_flag=True, help="Reuse stored results unchecked, even if files or versions have changed since.")
    add(
        "--verify",
        metavar="N|P%",
        help="Recompute N samples (or P percent) of each stored result, compare them, and store the outcome.",
    )
    add(
        *("--no-shared-pass", "share_passes"),
        is_flag=True,
        flag_value=False,
        default=True,
        help="Read the images again for each cell.",
    )

    heading = "Store and output"
    add("--db-url", **DB_URL)
    add("--db/--no-db", default=True, help="Whether to store the results.  [default: --db]")
    add("--payload-url", metavar="URL", help="Store outputs at an fsspec URL (s3://…, file://…), not in the database.")
    add(
        "--store-dtype",
        type=click.Choice(["float16"]),
        help="Store logits and embeddings rounded to 3 digits, at half the size, as separate evaluations.",
    )
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
    add("-v", "--verbose", is_flag=True, help="Print more; show where errors come from.")
    return made


OPTIONS = _options()


def some_options(*names: str) -> list[click.Parameter]:
    """Selects the options with these names."""
    return [parameter for parameter in OPTIONS if parameter.name in names]


def picked(kind: type[D], given: dict[str, Any], **more: Any) -> D:
    """Creates a dataclass from the options named after its fields, and removes them from the given ones."""
    return kind(**{name: given.pop(name) for name in signature(kind).parameters if name in given}, **more)
