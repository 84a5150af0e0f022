"""In place of ``mldb.utils``: checkpoints come from a folder, ``--checkpoints DIR`` or ``$TESTBED_CHECKPOINTS``.

The file of a model is named like it, with or without a suffix: ``DIR/resnet50_cutmix.pth.tar``.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from testbed.errors import WeightsError
from testbed.eval_settings.base.setting import StandardDataset
from testbed.inputs import ENV_CHECKPOINTS, active
from testbed.models.base.fitting import fit_state_dict
from testbed.models.loading.checkpoint_file import load_state_dict

SUFFIXES = ("", ".pt", ".pth", ".pth.tar", ".tar", ".bin", ".ckpt", ".safetensors", ".pkl", ".dill")

_INSTEAD = {
    "add_model_shell": "results need no model to be added first",
    "close_db_connection": "nothing is to be closed",
    "create_eval_setting": "results need no setting to be added first",
    "evaluation_completed": "a run skips what is stored",
    "get_eval_extra_info": "use testbed show MODEL SETTING --json",
    "hide_evaluation": "use testbed store remove evaluation",
    "hide_rename_eval_setting": "use testbed store remove setting",
    "hide_rename_model": "use testbed store remove model",
    "rename_eval_setting": "use testbed store rename setting",
    "rename_model": "use testbed store rename model",
    "store_evaluation": "a run stores its results itself",
}


def load_model_state_dict(model: Any, name: str) -> None:
    """Loads the checkpoint of a model into its network.

    Raises:
        WeightsError: If it is missing, contains more than weights, or does not fit.
    """
    path = checkpoint_path(name)
    fit_state_dict(model, load_state_dict(path), str(path))


def load_model_checkpoint_bytes(model_name: str) -> io.BytesIO:
    """The checkpoint file of a model, as a file in memory; raises WeightsError if it is missing."""
    return io.BytesIO(load_model_checkpoint_raw(model_name))


def load_model_checkpoint_raw(model_name: str) -> bytes:
    """The content of the checkpoint file of a model; raises WeightsError if it is missing."""
    return checkpoint_path(model_name).read_bytes()


def download_dataset(dataset: str) -> str:
    """The folder of a data set below the data root. Nothing is downloaded; raises DataError if no data root is set."""
    return str(StandardDataset(name=dataset).get_root())


def checkpoint_path(name: str) -> Path:
    """The checkpoint file of a model.

    Args:
        name: The model's name; it may have slashes.

    Raises:
        WeightsError: If there is no folder of checkpoints, or no such file in it; the message names the places
            searched.
    """
    given = active().checkpoints
    if given is None:
        raise WeightsError(
            f"{name}: where the checkpoints are is not known; give --checkpoints DIR or set {ENV_CHECKPOINTS}, where"
            f" DIR/{name}.pt is the checkpoint"
        )
    folder = Path(given)
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise WeightsError(f"{name}: a checkpoint is named by its path below the folder {folder}")
    paths = [path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()]
    if len(paths) != 1:
        there = f"has {' and '.join(path.name for path in paths)}; leave one" if paths else "has no such file"
        raise WeightsError(f"{name}: its checkpoint is {folder / name}.pt (or .pth, .pth.tar, …), but {folder} {there}")
    return paths[0]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise ImportError(f"testbed has no mldb.utils.{name}{instead}")
