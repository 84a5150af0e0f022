"""Options for a run's inputs besides definitions: folders, files, and how a checkpoint was trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from testbed.errors import DataError, DefinitionError
from testbed.inputs import STORED, Inputs, Preprocessing
from testbed.models.base.class_order import NATURAL, SETTING, SORTED
from testbed.paths import expanded

ORDERS = (NATURAL, SORTED, SETTING)


@dataclass(frozen=True)
class InputOptions:
    """Input options; None where not given."""

    data_root: str | None = None
    predictions: str | None = None
    checkpoints: str | None = None
    lmu_data: str | None = None
    max_megapixels: int | None = None
    exif: str = STORED
    classnames_file: Path | None = None
    templates_file: Path | None = None
    load_clfs: tuple[Path, ...] = ()
    image_size: tuple[int, ...] = ()
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    interpolation: str | None = None
    class_order: str | None = None
    weights_entry: str | None = None
    match_by_order: bool = False

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
                f"--image-size {size[0]} {size[1]} crops more than the resized image has; RESIZE comes first"
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
