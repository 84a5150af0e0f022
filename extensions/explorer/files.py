"""The installed files of the page."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

ENDINGS = (".html", ".css", ".js")


@cache
def assets() -> tuple[str, ...]:
    """The names of the files."""
    names = (path.name for path in files("testbed.extensions.explorer").joinpath("assets").iterdir())
    return tuple(sorted(name for name in names if name.endswith(ENDINGS)))


def asset(name: str) -> bytes:
    """Reads a file, one of `assets`."""
    return files("testbed.extensions.explorer").joinpath("assets", name).read_bytes()
