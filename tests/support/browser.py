"""The explorer's pages in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
AXE = Path(axe_core_python.__file__).with_name("axe.min.js")


def drive(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a test that needs a browser."""
    for mark in (pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is installed")):
        function = mark(function)
    return function
