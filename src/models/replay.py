"""Recorded predictions as models: they repeat a captioner's earlier answers.

``replay:/path/to/internvl.json`` is any file of predictions (see `testbed.data.formats.predictions`), and so are
VLMEvalKit's files of answers (xlsx, tsv, json; see `testbed.data.tables.answers`).
``replay:internvl`` is the file ``internvl.json`` or ``internvl.jsonl`` in the folder ``$TESTBED_PREDICTIONS``
(``testbed run --predictions``). A pattern stands for all files that it matches: ``'replay:runs/*.json'``,
``'replay:intern*'``.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.data.formats import text_records
from testbed.data.tables.answers import FAILED as NOT_OBTAINED
from testbed.errors import SampleError, WeightsError
from testbed.inputs import ENV_PREDICTIONS
from testbed.models.base.capability import FAILED, NO_ANSWER, Generation, GenerationConfig, Message
from testbed.models.base.definition import LoadOptions
from testbed.models.base.generator import Generator, LoadedGenerator
from testbed.paths import expanded, predictions_root
from testbed.registry import registry

PREFIX = "replay:"
SUFFIXES = (*text_records.SUFFIXES, ".xlsx", ".tsv")
EVAL_BATCH_SIZE = 1024
REVISION = 2  # of how a file is read; raised when the same file gives other answers


@dataclass(frozen=True)
class PredictionFile:
    """The file behind a name; its content identifies the recorded predictions."""

    name: str

    def files(self, fetch: bool) -> Sequence[Path]:
        """The file.

        Raises:
            WeightsError: If there is none; the message names the places searched.
        """
        return [path_of(self.name)]


class Recorded:
    """Answers from a file of predictions.

    Raises:
        DataError: If it is not in one of the known forms.
    """

    def __init__(self, path: Path) -> None:
        from testbed.data.formats.predictions import read_predictions
        from testbed.data.tables.answers import is_prediction_table, read_prediction_table

        self.predictions = read_prediction_table(path) if is_prediction_table(path) else read_predictions(path)

    def generate(self, messages: Sequence[Message], config: GenerationConfig) -> list[Generation | Exception]:
        """Returns the file's answer for each message's sample; the configuration changes nothing."""
        return [self._answer(message.sample) for message in messages]

    def coverage(self, ids: Sequence[str], targets: Sequence[Any] = ()) -> int:
        """Counts the samples with a text; see `Predictions.coverage`."""
        return self.predictions.coverage(ids, targets)

    def _answer(self, sample: str) -> Generation | Exception:
        text = self.predictions.texts.get(sample)
        if text is not None:
            return Generation(text, extra=dict(self.predictions.extras.get(sample, {})))
        fault = self.predictions.faults.get(sample)
        if fault is None:
            return Generation("", NO_ANSWER)
        if fault.startswith(NOT_OBTAINED):  # the model gave no answer, and that is what is recorded
            return Generation("", f"{FAILED}: {fault}")
        return SampleError(fault)


class Replay(Generator):
    """Recorded predictions as a model."""

    sees_images = False

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            lambda: Recorded(path_of(name)),
            EVAL_BATCH_SIZE,
            architecture={"replay": REVISION},
            weights=PredictionFile(name),
        )

    @property
    def recorded(self) -> Path | None:
        """The file; None if there is none, which loading reports."""
        try:
            return path_of(self.name)
        except WeightsError:
            return None

    def make_random_network(self, seed: int) -> Any:
        """Raises WeightsError: nothing about them is random."""
        raise WeightsError(f"{self.name}: recorded predictions have no weights; leave out --random-weights")

    def load(self, options: LoadOptions) -> LoadedReplay:
        """The predictions, read."""
        return LoadedReplay(self, self._network(options), options)


class LoadedReplay(LoadedGenerator):
    """Recorded predictions that have been read."""

    def coverage(self, ids: Sequence[str], targets: Sequence[Any] = ()) -> int:
        """Counts the samples that have a text.

        Args:
            ids: Those of all samples of the data set.
            targets: The target of each, if the file may contain the questions.

        Raises:
            DataError: If the file has none of them, or has other questions: it belongs to another data set, or uses
                other ids.
        """
        found: int = self.generator.coverage(ids, targets)
        return found


def path_of(name: str) -> Path:
    """The file behind the name of a model; raises WeightsError if there is none."""
    given = name.removeprefix(PREFIX)
    if is_path(given):
        path = expanded(given)
        if not os.path.isfile(path):
            fault = "is a folder" if os.path.isdir(path) else f"does not exist{_near(path.stem, path.parent)}"
            raise WeightsError(f"{name}: the file of predictions {path.absolute()} {fault}")
        return path
    folder = predictions_root()
    if folder is None:
        raise WeightsError(
            f"{name}: where the predictions are is not known; give --predictions DIR or set {ENV_PREDICTIONS}, where"
            f" DIR/{given}.json has them, or write {PREFIX}/path/to/{given}.json"
        )
    for suffix in SUFFIXES:
        if os.path.isfile(folder / f"{given}{suffix}"):
            return folder / f"{given}{suffix}"
    there = ", ".join(sorted(path.stem for path in _files(folder))[:12]) or "no .json file"
    near = _near(given, folder)
    raise WeightsError(f"{name}: {given}.json is missing in {folder.absolute()}, which has {there}{near}")


def _near(given: str, folder: Path) -> str:
    """A hint about captioners of a folder with like names."""
    there = {path.stem.lower(): path.stem for path in _files(folder)}
    near = [there[each] for each in difflib.get_close_matches(given.lower(), there, 2, 0.6)]
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def is_path(given: str) -> bool:
    """Checks whether the part after the prefix is a path, not the name of a file in the folder of predictions."""
    return given.endswith(SUFFIXES) or "/" in given


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix in SUFFIXES] if folder.is_dir() else []


class ReplayFamily:
    """Every file of predictions."""

    name = "replay"

    def names(self) -> Iterable[str]:
        """Lists those in the folder of predictions, where one is given."""
        folder = predictions_root()
        return sorted({f"{PREFIX}{path.stem}" for path in _files(folder)}) if folder is not None else ()

    def canonical(self, name: str) -> str | None:
        """The name; a path is made absolute."""
        given = name.removeprefix(PREFIX)
        if given == name or not given:
            return None
        return PREFIX + str(expanded(given).absolute()) if is_path(given) else name

    def build(self, name: str) -> Replay:
        """The definition; the file is not read."""
        return Replay(name)


registry.add_model_family(ReplayFamily())
