"""Folders of images with pipes and endless files in them: a run ends, and Ctrl-C ends it at once."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_world import WORLD

from testbed.db.store import Store


def test_a_pipe_or_a_device_in_a_folder_is_left_out_and_named(
    program: Callable[..., Any], make_tree: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_tree(tmp_path / "photos")
    os.mkfifo(folder / "cat" / "pipe.png")
    (folder / "dog" / "endless.png").symlink_to("/dev/zero")
    words = ["--plugin", WORLD, "--models", "world-plain", "--eval-settings", str(folder), "--executor", "inline"]
    out = program("eval.py", *words, "--db-url", str(tmp_path / "x.db"), code=None).stdout  # of other classes
    (line,) = [line for line in out.splitlines() if "left out" in line]
    assert "2" in line
    assert "cat/pipe.png" in line


@pytest.mark.slow
def test_ctrl_c_while_files_are_digested_ends_the_run_at_once(
    root: Path, make_tree: Callable[..., Path], tmp_path: Path
) -> None:
    folder = make_tree(tmp_path / "photos")
    with (folder / "cat" / "large.png").open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes minutes to read
    words = ["--plugin", WORLD, "--models", "world-plain", "--eval-settings", str(folder), "--executor", "inline"]
    process = subprocess.Popen(
        [sys.executable, str(root / "eval.py"), *words, "--db-url", str(tmp_path / "x.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    end = time.monotonic() + 60
    while not reads(process.pid, folder / "cat" / "large.png"):
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.strip().endswith("Error: interrupted")
    with Store.open(str(tmp_path / "x.db")) as store:
        assert [each.outcome for each in store.leases.runs()] == ["interrupted"]


def reads(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    for each in Path(f"/proc/{pid}/fd").glob("*"):
        with contextlib.suppress(OSError):
            if each.readlink() == path:
                return True
    return False
