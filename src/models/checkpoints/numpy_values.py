"""numpy's scalars and arrays in checkpoints, read without numpy's own functions: those could run code."""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from types import FunctionType
from typing import Any


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


def stand_ins() -> list[Any]:
    """Returns our own functions under the names in numpy's pickles, which differ between its versions."""
    functions: list[Any] = [
        type("dtype", (PlainType,), {"__module__": "numpy"}),
        type("ndarray", (PlainArray,), {"__module__": "numpy"}),
    ]
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        for name, function in (("scalar", _scalar), ("_reconstruct", _array)):
            stand_in: Any = FunctionType(function.__code__, function.__globals__)
            stand_in.__module__, stand_in.__name__, stand_in.__qualname__ = module, name, name
            functions.append(stand_in)
    return functions
