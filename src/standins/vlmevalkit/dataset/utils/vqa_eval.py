"""VLMEvalKit's helpers for short answers."""

from __future__ import annotations

from testbed.answers.published.words import without_punctuation as process_punctuation
from testbed.answers.texts import edit_distance
from testbed.standins.vlmevalkit.absent import refusing
from testbed.standins.vlmevalkit.smp.misc import istype

__all__ = ["istype", "levenshtein_distance", "process_punctuation"]

__getattr__ = refusing(__name__)


def levenshtein_distance(s1: str, s2: str) -> int:
    """The number of characters to insert, delete or replace that make one text of another."""
    return edit_distance(s1, s2)
