"""VLMEvalKit's judges, of which there is none without it."""

from __future__ import annotations

from typing import Any

from testbed.errors import UnsupportedError

DEBUG_MESSAGE = ""


def build_judge(**kwargs: Any) -> Any:
    """Refuses, by an UnsupportedError: judges are models of VLMEvalKit's."""
    raise UnsupportedError(f"the judge {kwargs.get('model')!r} takes VLMEvalKit itself: pip install vlmeval")
