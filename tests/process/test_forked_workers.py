"""The processes of a test run, forked from one that has imported the tests: each file is still tested or named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forked_workers

CONFTEST = """
from forked_workers import fork_workers

def pytest_configure(config):
    if config.option.tx and not hasattr(config, "workerinput"):
        fork_workers(config)
"""
FILES = {
    "conftest.py": CONFTEST,
    "pytest.ini": "[pytest]\naddopts = --import-mode=importlib",
    "test_broken.py": "def test_one(): pass\nimport nothing_of_this_name",
    "test_left_out.py": "import pytest\ndef test_two(): pass\npytest.skip('not here', allow_module_level=True)",
    "test_right.py": "import os, forked_workers\ndef test_three(): assert 'PYTEST_XDIST_WORKER' in os.environ",
    "test_wrong.py": "def test_four(): assert False",
}


def test_files_that_cannot_be_imported_are_errors_and_those_left_out_are_skipped(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(Path(forked_workers.__file__).parent)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "2",
        "-rs",
        "-p",
        "no:cacheprovider",
        "--continue-on-collection-errors",
    ]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert "No module named 'nothing_of_this_name'" in done.stdout, done.stdout + done.stderr
    assert "not here" in done.stdout
    assert "1 failed, 1 passed, 1 skipped, 1 error" in done.stdout
