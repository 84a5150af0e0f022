"""What the tests of data sets share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of the test's own."""
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def own_web(own_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and no proxy before servers on this machine."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
