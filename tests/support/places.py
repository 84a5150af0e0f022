"""Folders of the repository that tests refer to from wherever they stand."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
ASSETS = TESTS / "assets"
PLUGINS = TESTS / "plugins"
