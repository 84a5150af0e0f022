"""VLMEvalKit's log."""

from __future__ import annotations

import logging


def get_logger(name: str = "vlmeval", log_file: str | None = None, log_level: int = logging.INFO) -> logging.Logger:
    """A logger of testbed's; a log file of its own is not written."""
    return logging.getLogger(f"testbed.{name.removeprefix('testbed.')}")
