"""Options for a run's inputs besides definitions: folders, files, and how a checkpoint was trained."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import click

from testbed.errors import DataError, DefinitionError
from testbed.graph.options import option
from testbed.inputs import (
    ENV_CHECKPOINTS,
    ENV_LMU_DATA,
    ENV_PREDICTIONS,
    MAX_MEGAPIXELS,
    STORED,
    TURN,
    Inputs,
    Preprocessing,
)
from testbed.models.base.class_order import NATURAL, SETTING, SORTED
from testbed.paths import expanded

ORDERS = (NATURAL, SORTED, SETTING)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class InputOptions:
    """Options of a run's inputs; None where not given."""

    data_root: str | None = None
    predictions: Annotated[
        str | None,
        option(
            f"The folder with recorded predictions, for models named replay:NAME.  [default: ${ENV_PREDICTIONS}]",
            metavar="DIR",
        ),
    ] = None
    checkpoints: Annotated[
        str | None,
        option(
            "The folder with the checkpoints of models defined in ImageNet-testbed's files, by the model's name."
            f"  [default: ${ENV_CHECKPOINTS}]",
            metavar="DIR",
        ),
    ] = None
    lmu_data: Annotated[
        str | None,
        option(
            "VLMEvalKit's folder of tables, with DIR/NAME.tsv and pictures in DIR/images."
            f"  [default: ${ENV_LMU_DATA}, else ~/LMUData]",
            metavar="DIR",
        ),
    ] = None
    max_megapixels: Annotated[
        int | None,
        option(
            "Do not decode images of more than N million pixels; they count as unreadable."
            f"  [default: {MAX_MEGAPIXELS}]",
            metavar="N",
            least=1,
        ),
    ] = None
    exif: Annotated[
        str,
        option(
            "Read images as they are stored, or turned by their EXIF orientation, as viewers show them; the results"
            " differ, and are stored separately.",
            choices=(STORED, TURN),
            show_default=True,
        ),
    ] = STORED
    classnames_file: Annotated[
        Path | None,
        option(
            "Class names by data set, in CLIP benchmark's JSON format.",
            *("--classnames-file", "--custom-classname-file"),
            type=_FILE,
        ),
    ] = None
    templates_file: Annotated[
        Path | None,
        option(
            "Prompt templates by data set, or prompts by class (CuPL), in the same format.",
            *("--templates-file", "--custom-template-file"),
            type=_FILE,
        ),
    ] = None
    load_clfs: Annotated[tuple[Path, ...], option("Zero-shot heads to use, averaged.", type=_FILE, metavar="FILE")] = ()
    image_size: Annotated[
        tuple[int, ...],
        option(
            "For checkpoints of torchvision's and timm's architectures, such as resnet18,finetuned.pth: the shorter"
            " side after resizing, and the side of the centre crop; one number sets both.  [default: the"
            " architecture's]",
            metavar="[RESIZE] CROP",
            least=1,
        ),
    ] = ()
    mean: Annotated[tuple[float, ...], option("For these: the mean, in [0, 1].", metavar="R G B")] = ()
    std: Annotated[tuple[float, ...], option("For these: the standard deviation.", metavar="R G B")] = ()
    interpolation: Annotated[
        str | None,
        option("For these: the interpolation for resizing.", choices=("bilinear", "bicubic", "nearest", "lanczos")),
    ] = None
    class_order: Annotated[
        str | None,
        option(
            "For these: the order of the classes: natural (timm's), sorted (torchvision's ImageFolder), setting, or a"
            " file with a class name per line.  [default: as stored in the file, else setting]",
            metavar="ORDER",
        ),
    ] = None
    weights_entry: Annotated[
        str | None,
        option(
            "For these: the entry of the file that holds the weights, such as ema.module or teacher.  [default:"
            " averaged weights, else the entry that fits the architecture]",
            metavar="NAME",
        ),
    ] = None
    match_by_order: Annotated[
        bool,
        option("For these: if tensor names do not match but all shapes agree in order, match tensors by order."),
    ] = False

    def inputs(self) -> Inputs:
        """Returns the inputs of a run; options that are not given fall back to environment variables.

        Raises:
            click.UsageError: If a value is invalid.
            DataError: If a file of class names or templates cannot be read, or has the wrong format.
        """
        from testbed.data.language import prompts

        names, templates = self.classnames_file, self.templates_file
        inputs = Inputs.from_environment().but(
            data_root=self.data_root,
            predictions=self.predictions,
            checkpoints=self.checkpoints,
            lmu_data=self.lmu_data,
            max_megapixels=self.max_megapixels,
            class_names=prompts.class_names_file(names) if names is not None else None,
            templates=prompts.templates_file(templates) if templates is not None else None,
            heads=self.load_clfs,
        )
        return replace(
            inputs,
            exif=self.exif,
            preprocessing=self._preprocessing(),
            class_order=self._class_order(),
            weights_entry=self.weights_entry or "",
            match_by_order=self.match_by_order,
        )

    def _preprocessing(self) -> Preprocessing:
        size = self.image_size
        if len(size) > 2:
            raise click.UsageError(f"--image-size takes one or two numbers, RESIZE and CROP; got {len(size)}")
        if size and size[0] < size[-1]:
            raise click.UsageError(
                f"--image-size {size[0]} {size[1]} crops more than the resized image; RESIZE comes first"
            )
        return Preprocessing(
            resize=size[0] if size else None,
            crop=size[-1] if size else None,
            mean=_three("--mean", self.mean),
            std=_three("--std", self.std),
            interpolation=self.interpolation,
        )

    def _class_order(self) -> str | None:
        """The class order; for a file, its absolute path."""
        asked = self.class_order
        if asked is None or asked in ORDERS:
            return asked
        path = expanded(asked).absolute()
        if not path.is_file():
            raise click.UsageError(
                f"--class-order is {', '.join(ORDERS[:-1])} or {ORDERS[-1]}, or a file with a class name per line;"
                f" no such file: {path}"
            )
        return str(path)


def require_checkpoints(inputs: Inputs, models: Sequence[str]) -> None:
    """Refuses checkpoint options for a model, or a member of a derived model, to which they do not apply.

    Raises:
        click.UsageError: If there is such a model.
    """
    given = [*inputs.preprocessing.options, *(["--class-order"] if inputs.class_order is not None else [])]
    given += ["--weights-entry"] if inputs.weights_entry else []
    given += ["--match-by-order"] if inputs.match_by_order else []
    if not given:
        return
    from testbed.registry import registry

    named = {own_name.name: own_name.reference for own_name in inputs.own_names}
    for name in models:
        members = _members(name)
        for member in members or [name]:
            if registry.models.source(named.get(member, member)) not in ("family checkpoint", "family program"):
                way = (
                    "; give each checkpoint a name with its options (testbed run FILE --as NAME …), and write that here"
                )
                raise click.UsageError(
                    f"--image-size, --mean, --std, --interpolation, --class-order, --weights-entry and --match-by-order"
                    f" are for checkpoints of torchvision's and timm's architectures, such as resnet18,finetuned.pth,"
                    f" and for programs such as model.onnx; {member} is not such a model{way * bool(members)}"
                )
            if members and member in named:
                raise click.UsageError(
                    f"{', '.join(given)}: {member} keeps the options that it was registered with; leave these out, or"
                    f" write {named[member]} in its place"
                )


def _members(name: str) -> list[str]:
    """Returns the base models that a model is derived from, recursively; empty for a model that is not derived."""
    from testbed.models.made.names import made_in
    from testbed.registry import registry

    made = list(made_in(name, registry.models.canonical, registry.eval_settings.canonical))
    between = {str(each) for each in made}
    return [text for text in dict.fromkeys(of for one in made for of in one.of) if text not in between]


def _three(option: str, values: Sequence[float]) -> tuple[float, float, float] | None:
    if not values:
        return None
    if len(values) != 3:
        raise click.UsageError(f"{option} takes three numbers, for red, green and blue; got {len(values)}")
    least = "at least 0" if option == "--mean" else "above 0"
    if not all(0 <= value <= 1 for value in values) or (option == "--std" and 0 in values):
        raise click.UsageError(
            f"{option} takes numbers {least} and at most 1, since images are in [0, 1]; got"
            f" {' '.join(f'{value:g}' for value in values)} (divide numbers of 0 to 255 by 255)"
        )
    return values[0], values[1], values[2]


def download_missing(settings: Sequence[str], url: str) -> None:
    """Downloads the splits that settings need; prints their sizes, and which data sets cannot be downloaded.

    Args:
        settings: Canonical names.
        url: URL of webdatasets; empty for those on the hub.
    """
    from testbed.data.libraries.downloads import download

    for dataset, split in dict.fromkeys(needed for setting in settings for needed in _needed(setting)):
        try:
            if not download(dataset, split, url, lambda line: click.echo(line, err=True)):
                click.echo(f"note: testbed cannot download {dataset}; it must be below the data root", err=True)
        except (DataError, DefinitionError) as error:
            click.echo(f"note: {dataset} was not downloaded: {error}", err=True)


def _needed(setting: str) -> list[tuple[str, str]]:
    """Returns a setting's data set with each split that it reads; nothing without a named data set."""
    from testbed.eval_settings.benchmark_families.benchmark import BENCHMARKS, parse_name
    from testbed.eval_settings.benchmark_families.benchmark_names import LINEAR_PROBE

    name = parse_name(setting)
    if name is None:
        return []
    declared = BENCHMARKS.declared(name.dataset)
    splits = [name.split or (declared.splits[0] if declared is not None else "test")]
    if name.task == LINEAR_PROBE:
        splits += [name.train or "train", *([name.validation] if name.validation is not None else [])]
    return [(name.dataset, split) for split in splits]
