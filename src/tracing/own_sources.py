"""Imports the user's own files from source, never from byte code.

Python reuses cached byte code if the size and the modification time of a file are the same. A file that was copied with
its times (``cp -p``, ``rsync -t``), or edited twice within a second, would be described by its new text but run by its
old byte code.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

from testbed.tracing.own_code import is_own


class SourceLoader(SourceFileLoader):
    """Compiles a file on every import."""

    def get_code(self, fullname: str) -> Any:
        """The code of the module."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class OwnSources(MetaPathFinder):
    """Finds what `PathFinder` finds, and has the user's own files compiled."""

    def __init__(self) -> None:
        self._libraries: set[str] = set()  # top-level packages that are libraries

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The module's spec; None to let other finders search."""
        top = fullname.partition(".")[0]
        if top in self._libraries or top in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        if top == "testbed" or not is_own(fullname, spec.origin):
            self._libraries.add(top)
        elif type(spec.loader) is SourceFileLoader:
            spec.loader = SourceLoader(fullname, spec.origin)
        return spec
