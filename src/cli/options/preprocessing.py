"""``eval.py --image-size --mean --std --interpolation --class-order``: how a checkpoint was trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from testbed.console.options import ManyWords
from testbed.inputs import Inputs, Preprocessing
from testbed.models.loading.class_order import NATURAL, SETTING, SORTED
from testbed.paths import expanded

F = TypeVar("F", bound=Callable[..., Any])

FOR = "For checkpoints of torchvision's and timm's architectures, such as resnet18,finetuned.pth:"
ORDERS = (NATURAL, SORTED, SETTING)
INTERPOLATIONS = ("bilinear", "bicubic", "nearest", "lanczos")


def preprocessing_options(function: F) -> F:
    """--image-size, --mean, --std, --interpolation, --class-order."""
    for decorate in (
        click.option(
            "--class-order",
            metavar="ORDER",
            help=f"{FOR} the order of its classes: natural (timm's), sorted (torchvision's ImageFolder), setting, or a"
            " file with a class name per line.  [default: what the file says, else setting]",
        ),
        click.option("--interpolation", type=click.Choice(INTERPOLATIONS), help=f"{FOR} how images are resized."),
        click.option("--std", cls=ManyWords, type=float, metavar="R G B", help=f"{FOR} the standard deviation."),
        click.option("--mean", cls=ManyWords, type=float, metavar="R G B", help=f"{FOR} the mean, in [0, 1]."),
        click.option(
            "--image-size",
            cls=ManyWords,
            type=click.IntRange(min=1),
            metavar="[RESIZE] CROP",
            help=f"{FOR} the shorter side after resizing, and the side of the centre crop; one number stands for both."
            "  [default: the architecture's]",
        ),
    ):
        function = decorate(function)
    return function


def preprocessing(given: dict[str, Any]) -> Preprocessing:
    """What the options say.

    Raises:
        click.UsageError: If there are too many or too few numbers, or they are not possible.
    """
    size = given["image_size"]
    if len(size) > 2:
        raise click.UsageError(f"--image-size takes one or two numbers, RESIZE and CROP; got {len(size)}")
    if size and size[0] < size[-1]:
        raise click.UsageError(f"--image-size {size[0]} {size[1]} would crop more than there is; RESIZE comes first")
    mean, std = _three("--mean", given["mean"]), _three("--std", given["std"])
    return Preprocessing(
        resize=size[0] if size else None,
        crop=size[-1] if size else None,
        mean=mean,
        std=std,
        interpolation=given["interpolation"],
    )


def class_order(given: dict[str, Any]) -> str | None:
    """What ``--class-order`` says; a file as its absolute path.

    Raises:
        click.UsageError: If there is no such order and no such file.
    """
    asked: str | None = given["class_order"]
    if asked is None or asked in ORDERS:
        return asked
    path = expanded(asked).absolute()
    if not path.is_file():
        raise click.UsageError(
            f"--class-order is {', '.join(ORDERS[:-1])} or {ORDERS[-1]}, or a file with a class name per line; there is"
            f" no file {path}"
        )
    return str(path)


def require_checkpoints(inputs: Inputs, models: Sequence[str]) -> None:
    """Refuses the options where a model is none that they change.

    Raises:
        click.UsageError: As said.
    """
    if inputs.preprocessing == Preprocessing() and inputs.class_order is None:
        return
    from testbed.registry import registry

    for name in models:
        if registry.models.source(name) != "family checkpoint":
            raise click.UsageError(
                f"--image-size, --mean, --std, --interpolation and --class-order are for checkpoints of torchvision's"
                f" and timm's architectures, such as resnet18,finetuned.pth; {name} is none"
            )


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
