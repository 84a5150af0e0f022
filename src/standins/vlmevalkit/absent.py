"""Errors for names that VLMEvalKit's modules have and ours do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def refusing(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``: an import of a name that is not there is refused by that name."""

    def refuse(name: str) -> Any:
        if name.startswith("_") or name == "pytestmark":
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        theirs = module.replace("testbed.standins.vlmevalkit", "vlmeval")
        raise ImportError(
            f"testbed has no {name!r} of {theirs}; docs/vlmevalkit.md lists what it has. Install VLMEvalKit, or"
            " define it in your file",
            name=module,
        )

    return refuse
