"""What is in a checkpoint file: a state dict, alone or among what a training script saved with it.

Files are opened with ``weights_only=True``. Of numpy, scalars and arrays of numbers and texts are read, by functions of
our own in place of numpy's; any other object is refused, by its name.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from testbed.errors import WeightsError
from testbed.models.base.weights import object_refused, plain

# Where training scripts keep their weights, the preferred ones first: timm's order.
AVERAGED = ("state_dict_ema", "model_ema")
ENTRIES = (*AVERAGED, "state_dict", "model_state_dict", "model", "ema")
SIGNATURES = (
    (b"PK\x03\x04", "a ZIP archive that torch.save did not write"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes them"),
    (b"\x1f\x8b", "a gzip archive; unpack it"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"version https://git-lfs", "a Git LFS pointer: the file itself was not downloaded ('git lfs pull' does that)"),
)
_HEAD = 512  # bytes


@dataclass(frozen=True)
class FoundState:
    """A state dict in a file.

    Attributes:
        state: Name → tensor, with torch's ``_metadata`` if the file has any.
        entry: The entry of the file that holds it; empty for the file itself.
        others: Entries with other weights that are not taken.
    """

    state: dict[str, Any]
    entry: str = ""
    others: tuple[str, ...] = ()


def load_state_dict(path: Path, entry: str = "") -> dict[str, Any]:
    """The state dict in a checkpoint file (safetensors, or torch's format read with weights_only=True).

    Unwraps the containers of training scripts: ``state_dict_ema``, ``model_ema``, ``state_dict``, ``model`` and others.

    Args:
        path: The file.
        entry: The container to unwrap; empty for the preferred one.

    Raises:
        WeightsError: If the file is missing or has none.
    """
    return found_in(open_checkpoint(path), path, entry).state


def open_checkpoint(path: Path, content: bool = True) -> Any:
    """What a checkpoint file holds: a state dict, or what a training script put around it.

    Args:
        path: The file.
        content: False: tensors have a shape and a type but no content, and almost nothing is read.

    Raises:
        WeightsError: If it is missing, or holds more than tensors and plain values.
    """
    if os.path.isdir(path):
        raise WeightsError(f"the checkpoint {path} does not exist as a file: it is a folder")
    if not os.path.isfile(path):
        raise WeightsError(f"the checkpoint {path} does not exist")
    try:
        return _safetensors(path, content) if _is_safetensors(path) else _torch(path, content)
    except Exception as error:
        raise why_not_read(path, error) from error


@contextlib.contextmanager
def plain_values() -> Iterator[None]:
    """Lets ``torch.load(…, weights_only=True)`` read what training scripts save: their arguments and scores."""
    import torch

    with torch.serialization.safe_globals([argparse.Namespace, *_numpy()]):
        yield


def why_not_read(path: Path, error: Exception) -> WeightsError:
    """The error for a file that cannot be opened: says what was found in it."""
    return WeightsError(f"the checkpoint {path} cannot be read as weights: {_reason(path, error)}")


def _torch(path: Path, content: bool) -> Any:
    import torch

    place = "cpu" if content else "meta"
    with plain_values():
        try:
            return torch.load(path, map_location=place, weights_only=True, mmap=not content)
        except RuntimeError:
            if content:
                raise
            return torch.load(path, map_location=place, weights_only=True)  # an old format, which cannot be mapped


def _is_safetensors(path: Path) -> bool:
    """Whether a file has the format, whatever it is called: a length of eight bytes, then a JSON object."""
    with open(path, "rb") as file:
        head = file.read(9)
    return path.suffix == ".safetensors" or (head[8:] == b"{" and head[3:8] == bytes(5))


def _safetensors(path: Path, content: bool) -> dict[str, Any]:
    import torch
    from safetensors import safe_open
    from safetensors.torch import load_file

    if content:
        loaded: dict[str, Any] = load_file(path)
        return loaded
    with safe_open(path, framework="pt") as file:
        return {name: torch.empty(file.get_slice(name).get_shape(), device="meta") for name in [*file.keys()]}


# What cannot be read ----------------------------------------------------------------------------------------------


def _reason(path: Path, error: Exception) -> str:
    """Why a file is not opened, in a line: the object in it that is refused, else what the file is instead."""
    if object_refused(error):
        return f"{plain(error)}; save the state dict by itself: torch.save(network.state_dict(), FILE)"
    if "TorchScript" in str(error):
        return (
            "it is a TorchScript archive, a program; save the state dict of the network by itself:"
            " torch.save(torch.jit.load(FILE).state_dict(), OTHER)"
        )
    if isinstance(error, PermissionError):
        return plain(error)
    with open(path, "rb") as file:
        what = _what_is(file.read(_HEAD))
    return what if isinstance(error, pickle.UnpicklingError | EOFError) else f"{what} ({plain(error)})"


def _what_is(head: bytes) -> str:
    """What a file is by its first bytes, for people."""
    if not head:
        return "the file is empty"
    if _is_torch_archive(head):
        return "it is damaged, or was not written to its end"
    known = next((what for signature, what in SIGNATURES if head.startswith(signature)), None)
    if known is not None:
        return f"it is {known}"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and all(each.isprintable() or each.isspace() for each in text):
        return f"it is a text that begins with {text.split(chr(10))[0][:40]!r}"
    if head[:1] == b"\x80":
        return "it is a pickle that torch.load does not understand, or is damaged"
    return f"it is neither a file of torch.save nor of safetensors; it begins with the bytes {head[:8].hex(' ')}"


def _is_torch_archive(head: bytes) -> bool:
    """Whether a file begins as torch.save begins its archives."""
    return (
        head.startswith(b"PK\x03\x04") and re.match(rb"[^/]+/(?:data\.pkl|\.|version|byteorder)", head[30:]) is not None
    )


# numpy's scalars and arrays ---------------------------------------------------------------------------------------


class PlainType:
    """A numpy type of numbers or texts, in place of ``numpy.dtype``."""

    def __init__(self, code: str, *_: Any) -> None:
        if not re.fullmatch(r"[biufcUS?]\d*", str(code)):
            raise pickle.UnpicklingError(f"Unsupported global: GLOBAL numpy.dtype({code!r})")
        self.code = str(code)

    def __setstate__(self, state: Sequence[Any]) -> None:
        order = state[1] if len(state) > 1 else "|"
        self.code = f"{order if order in ('<', '>') else '|'}{self.code.lstrip('<>|')}"


class PlainArray:
    """A numpy array of numbers or texts, in place of ``numpy.ndarray``; its content is not needed."""

    def __setstate__(self, state: Any) -> None:
        self.shape = tuple(state[1])


def _scalar(kind: PlainType, content: bytes) -> Any:
    """A Python number or text."""
    import numpy as np

    if not isinstance(kind, PlainType):
        raise pickle.UnpicklingError("Unsupported global: GLOBAL numpy.dtype")
    return np.frombuffer(content, dtype=np.dtype(kind.code))[0].item()


def _array(kind: Any, *_: Any) -> PlainArray:
    if not (isinstance(kind, type) and issubclass(kind, PlainArray)):
        raise pickle.UnpicklingError("Unsupported global: GLOBAL numpy.ndarray")
    return kind()


def _numpy() -> list[Any]:
    """Our own functions under the names that pickles of numpy have, which differ between its versions."""
    found: list[Any] = [
        type("dtype", (PlainType,), {"__module__": "numpy"}),
        type("ndarray", (PlainArray,), {"__module__": "numpy"}),
    ]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        for name, function in (("scalar", _scalar), ("_reconstruct", _array)):
            stand_in: Any = FunctionType(function.__code__, function.__globals__)
            stand_in.__module__, stand_in.__name__, stand_in.__qualname__ = module, name, name
            found.append(stand_in)
    return found


# The state dict ---------------------------------------------------------------------------------------------------


def found_in(loaded: Any, path: Path, wanted: str = "") -> FoundState:
    """The state dict in what `open_checkpoint` returned: that of an entry, or the preferred one.

    Raises:
        WeightsError: If there is none, or several in entries that are not known.
    """
    if not isinstance(loaded, Mapping):
        raise _none(path, f"it holds {_kind(loaded)}")
    held = {key: value for key, value in loaded.items() if isinstance(key, str) and _is_state(value)}
    if wanted and wanted not in held:
        raise _none(path, f"{wanted!r} is none of its entries with weights ({', '.join(map(repr, held)) or 'none'})")
    entry = wanted or next((key for key in ENTRIES if key in held), None)
    if entry is None and not _is_state(loaded):
        if len(held) > 1:
            raise WeightsError(
                f"the checkpoint {path} has several state dicts: {', '.join(map(repr, held))}; save the one that is"
                " meant by itself: torch.save(torch.load(FILE, weights_only=True)[ENTRY], OTHER)"
            )
        if not held:
            raise _none(
                path, f"it has the entries {', '.join(map(repr, list(loaded)[:6]))}" if loaded else "it is empty"
            )
        entry = next(iter(held))
    if entry is None:
        return FoundState(_copied(loaded))
    return FoundState(_copied(held[entry]), entry, tuple(key for key in ENTRIES if key in held and key != entry))


def _is_state(value: Any) -> bool:
    """Whether it is a mapping of names to tensors; other plain values may be among them."""
    import torch

    return (
        isinstance(value, Mapping)
        and all(isinstance(key, str) for key in value)
        and any(isinstance(each, torch.Tensor) for each in value.values())
    )


def _copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state dict with the versions of its modules, which torch keeps in an attribute."""
    copy: Any = OrderedDict(state)
    if hasattr(state, "_metadata"):
        copy._metadata = OrderedDict(state._metadata)
    return copy  # type: ignore[no-any-return]


def _none(path: Path, found: str) -> WeightsError:
    return WeightsError(f"the checkpoint {path} has no state dict (a mapping of names to tensors); {found}")


def _kind(loaded: Any) -> str:
    return "a tensor" if type(loaded).__name__ == "Tensor" else f"one value of type {type(loaded).__name__}"
