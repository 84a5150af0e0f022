"""Registering and listing import no torch: in a process of its own, with everything that is defined."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "torchvision", "timm", "open_clip", "sklearn", "PIL", "pandas", "plotly")
HEAVY += ("testbed.answers.choice", "testbed.answers.yes_no")  # hundreds of regular expressions are compiled


def heavy_imports(import_times: str) -> set[str]:
    """The heavy libraries in what ``python -X importtime`` reports."""
    reported = {
        line.rpartition("|")[2].strip() for line in import_times.splitlines() if line.startswith("import time:")
    }
    assert "testbed" in reported
    return {name for name in HEAVY if name in reported}


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--list-models-registry", {"digits-logreg", "digits-knn", "digits-mlp", "digits-cnn", "digits-clip"}),
        ("--list-eval-settings-registry", {"digits", "digits-even", "digits-c.contrast.5", "val"}),
        ("--list-parent-eval-settings-registry", {"digits", "digits-even", "val"}),
    ],
)
def test_db_py_lists_the_registry_and_imports_no_torch(root: Path, option: str, expected: set[str]) -> None:
    finished = subprocess.run(
        [sys.executable, "-X", "importtime", "db.py", option],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    listed = finished.stdout.splitlines()
    assert expected <= set(listed)
    assert len(set(listed)) == len(listed)
    assert heavy_imports(finished.stderr) == set()


def test_asking_for_models_and_settings_imports_no_torch(tmp_path: Path) -> None:
    script = f"""
import sys
from testbed.errors import UnknownNameError
from testbed.identity.describe import digest
from testbed.registry import registry
try:
    registry.get_model("resnet5O")
except UnknownNameError as error:
    print(error)
print(digest(registry.get_model("digits-cnn").spec()), registry.get_eval_setting("digits-pgd.linf.eps0.1").size)
print(set({HEAVY!r}) & set(sys.modules))
"""
    finished = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    message, described, loaded = finished.stdout.splitlines()
    assert "did you mean 'resnet50'" in message
    assert described.endswith(" 540")
    assert loaded == "set()"
