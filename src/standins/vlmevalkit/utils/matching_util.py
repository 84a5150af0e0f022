"""VLMEvalKit's rules for finding an option in an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from testbed.answers.published.choice import infer
from testbed.standins.vlmevalkit.absent import refusing

__getattr__ = refusing(__name__)


def can_infer(answer: Any, choices: Mapping[str, Any]) -> Any:
    """The letter that an answer names, ``Z`` for a refusal; False for none."""
    return infer(str(answer), _texts(choices))[0] or False


def _texts(choices: Mapping[str, Any]) -> dict[str, str]:
    return {letter: str(text) for letter, text in choices.items()}
