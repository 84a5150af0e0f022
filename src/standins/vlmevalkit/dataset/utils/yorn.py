"""VLMEvalKit's helpers for answers yes and no."""

from __future__ import annotations

from testbed.answers.published.words import yes_no
from testbed.standins.vlmevalkit.absent import refusing

__getattr__ = refusing(__name__)


def YOrN_Extraction(output: str) -> str:
    """Returns ``Yes`` or ``No`` if exactly one of the two words is in an answer, else ``Unknown``."""
    return yes_no({"answer": ""}, output).extracted or "Unknown"
