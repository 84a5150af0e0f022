"""Where results are shown besides the store: TensorBoard, Weights & Biases, MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from testbed.entities import Checkpoint, Result


class Mirror(Protocol):
    """Shows the results of checkpoints elsewhere.

    Attributes:
        name: What it is, and where: a point is logged once under the same name.
    """

    name: str

    def log(self, checkpoint: Checkpoint, setting: str, results: Sequence[Result]) -> None:
        """Logs the metrics of a checkpoint on a setting, so that they are kept if the process is killed."""
        ...

    def close(self) -> None:
        """Nothing more will come."""
        ...
