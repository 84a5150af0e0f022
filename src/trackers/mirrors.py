"""Experiment trackers that mirror results: TensorBoard, Weights & Biases, MLflow. Each is an extra."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Protocol

from testbed.errors import DataError, MissingExtraError
from testbed.paths import expanded

PROJECT = "testbed"  # in Weights & Biases, and the experiment in MLflow


@dataclass(frozen=True)
class Point:
    """The point that metrics are logged for.

    Attributes:
        run: The training run, or the model; each gets a run in the tracker.
        label: Its display name.
        step: Position on the axis.
        unit: Unit of the axis, such as ``"epoch"``.
    """

    run: str
    label: str
    step: int
    unit: str


class Mirror(Protocol):
    """Base class of trackers.

    Attributes:
        name: Kind and location; a point is logged once under the same name.
    """

    name: str

    def log(self, point: Point, values: Mapping[str, float]) -> None:
        """Logs a point's metrics, by SETTING/METRIC, rates as fractions, so that they survive a kill."""
        ...

    def close(self) -> None:
        """Ends the tracker's runs."""
        ...


def mirror_of(word: str, store: str) -> Mirror:
    """Returns the mirror that the command line names: ``tensorboard:DIR``, ``wandb[:PROJECT]`` or ``mlflow[:URI]``.

    Args:
        word: The name.
        store: The name of the results store: results of two stores are not mixed.

    Raises:
        DataError: If the word does not name a tracker.
        MissingExtraError: If what it needs is not installed.
    """
    kind, _, where = word.partition(":")
    if kind == "tensorboard" and where:
        return TensorBoard(where)
    if kind == "wandb":
        return WandB(where, store)
    if kind == "mlflow":
        return MLflow(where, store)
    raise DataError(f"--log {word}: expected tensorboard:DIR, wandb, wandb:PROJECT, mlflow or mlflow:URI")


def _required(module: str, package: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(package, extra, f"--log {extra}") from None


class TensorBoard:
    """Event files in a folder, with a subfolder for each run."""

    def __init__(self, folder: str) -> None:
        self._folder = expanded(folder).absolute()
        self.name = f"tensorboard:{self._folder}"
        _required("tensorboard", "tensorboard", "tensorboard")
        self._writers: dict[str, Any] = {}

    def log(self, point: Point, values: Mapping[str, float]) -> None:
        """See `Mirror`."""
        from torch.utils.tensorboard import SummaryWriter

        if point.run not in self._writers:
            label = PurePath(point.label)
            folder = Path(self._folder, *(part for part in label.parts if part not in (label.anchor, "..")))
            self._writers[point.run] = SummaryWriter(str(folder))
        writer = self._writers[point.run]
        for tag, value in values.items():
            writer.add_scalar(tag, value, point.step)
        writer.flush()

    def close(self) -> None:
        """See `Mirror`."""
        for writer in self._writers.values():
            writer.close()


class WandB:
    """Runs of Weights & Biases, one for each training run or model; later runs continue them."""

    def __init__(self, project: str, store: str) -> None:
        self._entity, _, self._project = project.rpartition("/")
        self._project = self._project or PROJECT
        self._store = store
        self.name = f"wandb:{project or PROJECT}"
        self._wandb = _required("wandb", "wandb", "wandb")
        self._runs: dict[str, Any] = {}

    def log(self, point: Point, values: Mapping[str, float]) -> None:
        """See `Mirror`."""
        if point.run not in self._runs:
            self._runs[point.run] = self._begun(point)
        self._runs[point.run].log({point.unit: point.step, **values})

    def _begun(self, point: Point) -> Any:
        run = self._wandb.init(
            project=self._project,
            entity=self._entity or None,
            id=hashlib.sha256(f"{self._store}\0{point.run}".encode()).hexdigest()[:16],
            name=point.label,
            config={"run": point.run, "store": self._store},
            resume="allow",
            reinit="create_new",
            settings=self._wandb.Settings(console="off", silent=True),
        )
        run.define_metric("*", step_metric=point.unit)  # points may come out of order
        return run

    def close(self) -> None:
        """See `Mirror`."""
        for run in self._runs.values():
            run.finish()


class MLflow:
    """Runs of MLflow, one for each training run or model; later runs continue them."""

    def __init__(self, uri: str, store: str) -> None:
        self._store = store
        self.name = f"mlflow:{uri}"
        self._client = _required("mlflow.tracking", "mlflow-skinny", "mlflow").MlflowClient(tracking_uri=uri or None)
        self._runs: dict[str, str] = {}

    def log(self, point: Point, values: Mapping[str, float]) -> None:
        """See `Mirror`."""
        if point.run not in self._runs:
            self._runs[point.run] = self._begun(point)
        for key, value in values.items():
            name = re.sub(r"[^\w./ -]", "_", key)  # characters that MLflow accepts
            self._client.log_metric(self._runs[point.run], name, value, step=point.step)

    def _begun(self, point: Point) -> str:
        """The id of MLflow's run, created if necessary."""
        experiment = self._client.get_experiment_by_name(PROJECT)
        number = experiment.experiment_id if experiment is not None else self._client.create_experiment(PROJECT)
        tags = {"testbed.run": point.run, "testbed.store": self._store}
        for found_run in self._client.search_runs([number], max_results=10_000):
            if all(found_run.data.tags.get(name) == value for name, value in tags.items()):
                return str(found_run.info.run_id)
        return str(self._client.create_run(number, tags=tags, run_name=point.label).info.run_id)

    def close(self) -> None:
        """See `Mirror`."""
        for run in self._runs.values():
            self._client.set_terminated(run)
