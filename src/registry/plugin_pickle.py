"""Sends objects whose classes are defined in plug-in files to another process.

Python's own way of sending an object names the module of its class, which the other process must be able to import. A
plug-in file is not such a module until it has been loaded there; a parcel loads the plug-ins before it is opened, and
does so with the inputs that were active where it was packed.
"""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

from testbed.inputs import Inputs, active, using
from testbed.tracing.patches import tracing


class PluginPickle:
    """Any object, unpickled in the receiving process.

    Args:
        value: The object.
        plugins: The plug-in files to load first.
    """

    def __init__(self, value: Any, plugins: tuple[str, ...]) -> None:
        self.value = value
        self.plugins = plugins
        self.inputs = active()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _unpack, (bytes(ForkingPickler.dumps(self.value)), self.plugins, self.inputs)


def _unpack(data: bytes, plugins: tuple[str, ...], inputs: Inputs) -> Any:
    """The object itself takes the place of the parcel. The bytes come from the process that started this one."""
    from testbed.registry import registry

    with using(inputs), tracing():
        registry.load(plugins)
        return ForkingPickler.loads(data)
