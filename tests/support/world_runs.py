"""Programs that run the plug-in ``world.py``, whose slow network is paced and counted by files in a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

PLUGIN = Path(__file__).parent.parent / "plugins" / "world.py"


def set_pace(folder: Path, seconds: float) -> None:
    """How long the slow network takes for 256 images from now on."""
    (folder / "pace").touch()
    os.utime(folder / "pace", (seconds, seconds))


def computed(folder: Path) -> int:
    """How many samples the slow network has computed in all runs."""
    return sum(int(line) for line in (folder / "batches").read_text().split())


def heed_ctrl_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would its children; these tests may be such."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_until(
    happened: Callable[[], object], process: subprocess.Popen[str] | None = None, seconds: float = 90
) -> None:
    """Until something has happened, which it must before the process ends."""
    end = time.monotonic() + seconds
    while not happened():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
