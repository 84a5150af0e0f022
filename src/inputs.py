"""Inputs of a run besides its definitions: the data root, recorded predictions, files of class names and heads.

A command collects these once, as `Inputs`; a user's variables are the defaults. They are part of a run's options, are
active while it runs, and travel with the work to every thread and process that takes part, so that nothing is passed
through the environment. Where none are active, as in a notebook that opens a data set, the variables are read as they
are then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from testbed.errors import DataError

T = TypeVar("T")

ENV_DATA = "TESTBED_DATA"
ENV_PREDICTIONS = "TESTBED_PREDICTIONS"
ENV_CHECKPOINTS = "TESTBED_CHECKPOINTS"
ENV_LMU_DATA = "LMUData"  # VLMEvalKit's variable
ENV_CLASSNAMES = "TESTBED_CLASSNAMES"
ENV_TEMPLATES = "TESTBED_TEMPLATES"
ENV_HEADS = "TESTBED_CLASSIFIERS"
ENV_CLIP_CC_BASE = "TESTBED_CLIP_CC_BASE"
ENV_CLIP_CC_GROUND_TRUTH = "TESTBED_CLIP_CC_GROUND_TRUTH"
ENV_TRUST_CODE = "TESTBED_TRUST_REMOTE_CODE"
ENV_MAX_MEGAPIXELS = "TESTBED_MAX_MEGAPIXELS"
STORED, TURN = "stored", "turn"  # how images with an EXIF orientation are read

MAX_MEGAPIXELS = 89  # where Pillow begins to warn of decompression bombs

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Preprocessing:
    """Preprocessing of a checkpoint, in place of its architecture's. None stands for the architecture's.

    Attributes:
        resize: Length of the shorter side after resizing (pixels).
        crop: Side of the square that is then cropped (pixels); given together with ``resize``.
        mean: The means of the three channels, in [0, 1].
        std: Likewise; positive.
        interpolation: The interpolation of resizing.
    """

    resize: int | None = None
    crop: int | None = None
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    interpolation: str | None = None

    def or_else(self, other: Preprocessing) -> Preprocessing:
        """Fills the fields that are None here with another preprocessing's values."""
        sizes = self if self.crop is not None else other
        return Preprocessing(
            resize=sizes.resize,
            crop=sizes.crop,
            mean=self.mean or other.mean,
            std=self.std or other.std,
            interpolation=self.interpolation or other.interpolation,
        )

    @property
    def options(self) -> list[str]:
        """The options of ``testbed run`` for this preprocessing."""
        said: dict[str, object] = {"--image-size": self.crop, "--mean": self.mean, "--std": self.std}
        said["--interpolation"] = self.interpolation
        return [option for option, value in said.items() if value is not None]


@dataclass(frozen=True)
class OwnName:
    """The short name of a model in a file of the user's own, such as ``lite0``.

    Attributes:
        name: The short name.
        reference: Its target, such as ``timm/tf_efficientnet_lite0,/path/lite0.pth``.
        preprocessing: With which options.
        class_order: As of `Inputs`.
        content: A digest of the file; empty for a folder.
        weights_entry: As of `Inputs`.
        match_by_order: Likewise.
    """

    name: str
    reference: str
    preprocessing: Preprocessing = Preprocessing()
    class_order: str | None = None
    content: str = ""
    weights_entry: str = ""
    match_by_order: bool = False

    def as_text(self) -> str:
        """Returns the target of the name, as a store keeps it."""
        about = {key: value for key, value in vars(self).items() if key not in ("name", "reference", "preprocessing")}
        return json.dumps({"model": self.reference, **about, **vars(self.preprocessing)}, sort_keys=True)

    @classmethod
    def of_text(cls, name: str, text: str) -> OwnName:
        """The same, read again."""
        fields_of_name = json.loads(text)
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields_of_name.items()
        }
        known = {field.name for field in fields(Preprocessing)}
        preprocessing = Preprocessing(**{key: given.pop(key) for key in known & given.keys()})
        return cls(name, given.pop("model"), preprocessing, **given)


@dataclass(frozen=True)
class Inputs:
    """Inputs of a run besides its definitions. None means unset; no variable is asked in its place.

    Attributes:
        data_root: The folder with the data sets, or the URL of one; either may have ``{dataset}`` in it.
        predictions: The folder with recorded predictions.
        checkpoints: The folder with the checkpoints of models that ImageNet-testbed's files define, by name.
        lmu_data: VLMEvalKit's folder of tables.
        class_names: A file of class names, in CLIP benchmark's JSON format.
        templates: A file of prompt templates, in the same format.
        heads: Files of zero-shot heads, used in place of prompts.
        clip_cc_base: The folder that the paths in CLIP-CC-Bench's configuration files are relative to.
        clip_cc_ground_truth: The file with the references of CLIP-CC-Bench.
        trusted_code: The models whose repositories may run their own code: ``"1"`` for all, or names between commas.
        max_megapixels: The largest image that is decoded, in millions of pixels. Decoding one takes up to 12 bytes for
            each pixel.
        exif: ``stored`` to read images as they are, ``turn`` to apply their EXIF orientation.
        preprocessing: The preprocessing of checkpoints that the command line names, such as ``resnet18,finetuned.pth``.
        class_order: The order of their outputs: ``setting``, ``sorted``, ``natural``, or the path of a file of class
            names; None for the checkpoint's own.
        weights_entry: The entry of their files that has the weights, such as ``ema.module``; empty for the default.
        match_by_order: True to match tensors by their order where names do not match and shapes agree.
        own_names: The short names of models in files, as the store has them.
        kept: The members of each greedy soup of the run, by its name: the models that it keeps, or the reason why none
            can be chosen.
    """

    data_root: str | None = None
    predictions: str | None = None
    checkpoints: str | None = None
    lmu_data: str | None = None
    class_names: str | None = None
    templates: str | None = None
    heads: tuple[str, ...] = ()
    clip_cc_base: str | None = None
    clip_cc_ground_truth: str | None = None
    trusted_code: str = ""
    max_megapixels: int = MAX_MEGAPIXELS
    exif: str = STORED
    preprocessing: Preprocessing = Preprocessing()
    class_order: str | None = None
    weights_entry: str = ""
    match_by_order: bool = False
    own_names: tuple[OwnName, ...] = ()
    kept: tuple[tuple[str, tuple[str, ...] | str], ...] = ()

    @classmethod
    def from_environment(cls) -> Inputs:
        """Reads the inputs from the user's environment variables; raises DataError if a numeric one is not a number."""
        return cls(
            data_root=os.environ.get(ENV_DATA),
            predictions=os.environ.get(ENV_PREDICTIONS),
            checkpoints=os.environ.get(ENV_CHECKPOINTS),
            lmu_data=os.environ.get(ENV_LMU_DATA),
            class_names=os.environ.get(ENV_CLASSNAMES),
            templates=os.environ.get(ENV_TEMPLATES),
            heads=tuple(file for file in os.environ.get(ENV_HEADS, "").split(os.pathsep) if file),
            clip_cc_base=os.environ.get(ENV_CLIP_CC_BASE),
            clip_cc_ground_truth=os.environ.get(ENV_CLIP_CC_GROUND_TRUTH),
            trusted_code=os.environ.get(ENV_TRUST_CODE, ""),
            max_megapixels=_positive(ENV_MAX_MEGAPIXELS, MAX_MEGAPIXELS),
        )

    def but(
        self,
        heads: Sequence[AnyPath] = (),
        trusted_code: str | None = None,
        max_megapixels: int | None = None,
        **paths: AnyPath | None,
    ) -> Inputs:
        """Returns a copy with some fields replaced; None and empty values change nothing. Paths are made absolute.

        Example:
            ``Inputs.from_environment().but(data_root="~/data", class_names="names.json")``
        """
        changes: dict[str, Any] = {name: absolute(path) for name, path in paths.items() if path is not None}
        if heads:
            changes["heads"] = tuple(absolute(file) for file in heads)
        if trusted_code is not None:
            changes["trusted_code"] = trusted_code
        if max_megapixels is not None:
            changes["max_megapixels"] = max_megapixels
        return replace(self, **changes)


def _positive(variable: str, default: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise DataError(f"the variable {variable} is {text!r}; expected a whole number, at least 1")
    return int(text)


_active: ContextVar[Inputs] = ContextVar("testbed_inputs")


def active() -> Inputs:
    """Returns the inputs of the run, or of the command, that is under way; else those in the user's variables now."""
    inputs = _active.get(None)
    return Inputs.from_environment() if inputs is None else inputs


@contextmanager
def using(inputs: Inputs) -> Iterator[None]:
    """Makes inputs the active ones within, in this thread."""
    token = _active.set(inputs)
    try:
        yield
    finally:
        _active.reset(token)


def use_in_this_thread(inputs: Inputs) -> None:
    """Makes inputs the active ones for good, as the ``initializer`` of threads: these do not inherit any."""
    _active.set(inputs)


def once_for_inputs(make: Callable[[], T]) -> Callable[[], T]:
    """A function that makes something which depends on the active inputs: once for each of them."""
    made: dict[Inputs, T] = {}

    def get() -> T:
        inputs = active()
        if inputs not in made:
            made[inputs] = make()
        return made[inputs]

    return get


def absolute(path: AnyPath) -> str:
    """A path as the same one in every working folder; a URL as it is."""
    text = os.fspath(path)
    return text if is_url(text) else os.path.abspath(os.path.expanduser(text))


def is_url(root: str) -> bool:
    """Checks whether a data root is a folder on a web server."""
    return root.startswith(("https://", "http://"))
