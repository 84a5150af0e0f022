"""Sends objects whose classes are defined in plug-in files to another process.

A pickled object names the module of its class, which the other process must import. Plug-in files cannot be imported
until they are loaded there; a parcel loads them before it unpickles the object.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any


class Parcel:
    """Any object, unpickled in the receiving process.

    Args:
        value: The object.
        plugins: The plug-in files to load first.
    """

    def __init__(self, value: Any, plugins: tuple[str, ...]) -> None:
        self.value = value
        self.plugins = plugins

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpack, (bytes(ForkingPickler.dumps(self.value)), self.plugins)


def _unpack(data: bytes, plugins: tuple[str, ...]) -> Any:
    """Returns the object itself. The bytes come from the process that started this one."""
    from testbed.registry import registry

    registry.load(plugins)
    return ForkingPickler.loads(data)
