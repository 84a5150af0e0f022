"""The options of ``eval.py`` about where and how fast it computes; they do not change what is computed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from testbed.console.options import ManyWords
from testbed.errors import shortened

F = TypeVar("F", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)
_MOST = 1 << 63  # bytes
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Bytes(click.ParamType[int]):
    """A number of bytes, such as ``20G``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number."""
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", str(value).strip().upper())
        if match is None:
            self.fail(f"{value!r} is no size; write for example 20G", param, ctx)
        size = float(match[1]) * _UNITS[match[2]]
        if size >= _MOST:
            self.fail(f"{shortened(str(value))} is more than any disk has; write for example 20G", param, ctx)
        return int(size)


_OPTIONS = (
    click.option(
        "--gpus",
        cls=ManyWords,
        type=click.IntRange(min=0),
        metavar="ID",
        help="GPUs to use.  [default: all, else the CPU]",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=0),
        metavar="N",
        help="Data-loading processes for each evaluation process.",
    ),
    click.option("--cpu-processes", type=_POSITIVE, metavar="N", help="Evaluation processes on the CPU.  [default: 1]"),
    click.option(
        "--executor",
        metavar="NAME",
        default="processes",
        show_default=True,
        help="Where cells are computed: in 'processes', 'inline' in this one (for debuggers), on a 'ray' cluster, or by"
        " an installed executor.",
    ),
    click.option(
        "--ray-address",
        metavar="HOST:PORT",
        help="The Ray cluster for --executor ray.  [default: $RAY_ADDRESS, else this machine's, else a new one]",
    ),
    click.option(
        "--compile",
        is_flag=True,
        help="Compile image and text networks with torch.compile: slow to start, then faster.",
    ),
    click.option(
        "--channels-last",
        is_flag=True,
        help="Keep images and weights in the channels_last layout, which speeds up convolutions.",
    ),
    click.option(
        "--decoded-cache",
        type=Bytes(),
        metavar="SIZE",
        default=0,
        help="Keep decoded and transformed images in the cache folder, up to this size (such as 20G), so that the next"
        " model with the same transform decodes nothing.  [default: none]",
    ),
    click.option(
        "--profile",
        is_flag=True,
        help="Print, and store with the results, where time goes: reading, decoding, forward, …",
    ),
)


def machine_options(function: F) -> F:
    """The options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def machine_choices(given: dict[str, Any]) -> dict[str, Any]:
    """What the options say, as fields of `RunOptions`."""
    return {
        "gpus": tuple(given["gpus"]) or None,
        "data_workers": given["workers"],
        "cpu_processes": given["cpu_processes"],
        "executor": given["executor"],
        "ray_address": given["ray_address"],
        "compile": given["compile"],
        "channels_last": given["channels_last"],
        "decoded_cache": given["decoded_cache"],
        "profile": given["profile"],
    }
