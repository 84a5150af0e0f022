"""The tests of a device run on the CPU, which shows that nothing in them is broken before there is a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from device_under_test import VARIABLE


@pytest.mark.long  # CI runs a part of it: benchmarks/gpu/prove.py --cpu --tiny
@pytest.mark.timeout(900)
def test_the_tests_of_a_device_run_on_the_cpu(tmp_path):
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-n", "0", "-q", "-p", "no:cacheprovider"]
    command += [f"--basetemp={tmp_path / 'trial'}", str(Path(__file__).parent)]
    environment = {**os.environ, VARIABLE: "cpu", "TESTBED_TESTS_CACHE": os.environ["TESTBED_CACHE"]}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=880, env=environment, cwd=root)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 200


def test_a_misspelt_device_is_refused():
    code = "import device_under_test"
    environment = {**os.environ, VARIABLE: "gpu", "PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert "TESTBED_TEST_DEVICE is one of cuda, cpu, got 'gpu'" in done.stderr
