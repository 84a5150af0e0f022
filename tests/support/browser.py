"""The explorer's pages in a real browser."""

from __future__ import annotations

import json
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


class Pages:
    """Opens pages of a browser, in one context for all with the same options: making one takes longer than most tests.

    A page has nothing of what others have stored.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: dict[str, Any] = {}

    def new_page(self, width: int = 1280, height: int = 720, **options: Any) -> Any:
        """An empty page, to be closed at the end of the test; the options are those of a context."""
        key = json.dumps(options, sort_keys=True)
        if key not in self._contexts:
            self._contexts[key] = self._browser.new_context(**options)
        context = self._contexts[key]
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        everything = {"origin": "*", "storageTypes": "all"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", everything)
        return page
