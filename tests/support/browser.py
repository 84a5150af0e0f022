"""The explorer's pages in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

# The first of Debian's is Chromium without windows, which opens a page in a third of the processor's time.
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome", "chromium-browser")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")


def drive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a test that needs a browser."""
    for mark in (pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")):
        function = mark(function)
    return function
