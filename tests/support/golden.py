"""Tiny definitions of every kind, of which the kept store and the kept identities are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from testbed.registry import Catalog

ASSETS = Path(__file__).parent.parent / "assets"
SCORED = ("described@letters", "described.coarse@letters", "described.clip_score@towers", "prompted.zero@letters")


def golden_catalog() -> Catalog:
    """The tiny definitions."""
    name = "golden_definitions"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ASSETS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    definitions = sys.modules[name]
    catalog = Catalog(packages=(), entry_points=False)
    for model in definitions.models():
        catalog.add_model(model)
    for setting in definitions.settings():
        catalog.add_eval_setting(setting)
    return catalog
