"""Anchor files: a few samples of a setting, and how to estimate the score of all from theirs. They are JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from testbed.errors import DataError
from testbed.jsontext import to_json
from testbed.paths import write_atomically

FORM = "anchors@1"
SUFFIX = ".json"


@dataclass(frozen=True)
class Errors:
    """The errors of estimates.

    Attributes:
        mean_absolute: The mean absolute error.
        quantile: The absolute error that the share ``level`` of new models stay below.
        rank_correlation: Spearman's correlation of the estimates with the truth; None where either is constant.
        level: 0.9, or less where there are too few families; None in files of earlier versions.
    """

    mean_absolute: float
    quantile: float
    rank_correlation: float | None
    level: float | None = None


@dataclass(frozen=True)
class Anchor:
    """A sample.

    Attributes:
        id: Its name in the data set.
        digest: The digest of its content.
        weight: The weight of its score.
        discrimination: A parameter of item response theory, as `easiness`; None where scores are not 0 or 1.
    """

    id: str
    digest: str
    weight: float
    discrimination: float | None = None
    easiness: float | None = None


@dataclass(frozen=True)
class KnownModel:
    """A model that the anchors were chosen with: its family, and its score on all samples."""

    name: str
    family: str
    value: float


@dataclass(frozen=True)
class AnchorFile:
    """The content of an anchor file.

    Attributes:
        eval_setting: The setting.
        score: The score of each sample.
        n: The number of all samples.
        method: The method of choosing the anchors.
        estimator: The estimator of the score of all samples.
        seed: The seed of random draws.
        offset: The offset added to the weighted sum of scores.
        blend: The share of the weighted sum in ``gp-irt``.
        expected: The expected score of all samples for each ability; empty where scores are not 0 or 1.
        larger_is_better: True if the first of a ranking has the largest score.
        fraction: True if scores are fractions from 0 to 1.
        families: True if whole families were held out, else single models.
        held_out: The error of this method, and of as many samples drawn at random, on models that were held out.
        models: The models by which the anchors were chosen.
        samples: The anchors.
    """

    eval_setting: str
    score: str
    n: int
    method: str
    estimator: str
    seed: int
    offset: float
    blend: float
    expected: Sequence[float]
    larger_is_better: bool
    fraction: bool
    families: bool
    held_out: Errors
    random: Errors
    models: Sequence[KnownModel]
    samples: Sequence[Anchor]

    def write(self, path: Path) -> None:
        """Writes the file; raises DataError if that is not possible."""
        try:
            write_atomically(path, f"{to_json({'form': FORM, **asdict(self)})}\n".encode())
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}") from error


def check_path(path: Path) -> None:
    """Checks the path of a new file.

    Raises:
        DataError: If a name of a setting cannot have it, or its folder is missing.
    """
    if path.suffix != SUFFIX or any(character.isspace() for character in str(path)):
        raise DataError(f"{path}: expected a path that ends in {SUFFIX} and has no white space")
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}")


def read_anchors(path: Path) -> AnchorFile:
    """Reads an anchor file.

    Raises:
        DataError: If it is not one; the message describes its content.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"the anchor file {path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not an anchor file, since it is not JSON: {error}") from error
    form = given.get("form") if isinstance(given, dict) else None
    if form != FORM:
        raise DataError(f"{path} is not an anchor file: expected the form {FORM!r}, got {form!r:.40}")
    del given["form"]
    try:
        return _checked(given)
    except KeyError as error:
        raise DataError(f"{path} is damaged: it has no {error}; testbed anchors choose writes a new one") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path} is damaged: {error}; testbed anchors choose writes a new one") from error


def _checked(given: dict[str, Any]) -> AnchorFile:
    parts: dict[str, Any] = {
        "held_out": Errors(**given.pop("held_out")),
        "random": Errors(**given.pop("random")),
        "models": [KnownModel(**model) for model in given.pop("models")],
        "samples": [Anchor(**sample) for sample in given.pop("samples")],
    }
    anchors = AnchorFile(**given, **parts)
    if not 0 < len(anchors.samples) <= anchors.n:
        raise ValueError(f"{len(anchors.samples)} anchors of {anchors.n} samples")
    for sample in anchors.samples:
        if not (isinstance(sample.id, str) and isinstance(sample.digest, str)):
            raise ValueError(f"a sample is named {sample.id!r}, {sample.digest!r}")
        float(sample.weight)
    return anchors
