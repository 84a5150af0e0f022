"""Runs the user's command on a new best checkpoint, without a shell."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Sequence

from testbed.errors import DataError
from testbed.extensions.watching.pairing import CheckpointComparison
from testbed.visible import visible_line

NAMES = ("path", "run", "step", "setting", "metric", "value")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def words_of(command: str) -> list[str]:
    """Splits a command into words with placeholders.

    Raises:
        DataError: If it is empty, or has an unclosed quote or an unknown placeholder.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise DataError(f"--on-new-best {command!r} cannot be split into words: {error}") from None
    unknown = [name for word in words for name in _PLACEHOLDER.findall(word) if name not in NAMES]
    if not words or unknown:
        known = ", ".join(f"{{{name}}}" for name in NAMES)
        what = f"has {{{unknown[0]}}}; expected {known}" if unknown else "has no program"
        raise DataError(f"--on-new-best {command!r} {what}")
    return words


def run_hook(words: Sequence[str], path: str, row: CheckpointComparison) -> str:
    """Runs the command and waits for it; its output goes to standard error.

    Returns:
        A line about the problem; empty on success.
    """
    values = {
        "path": path,
        "run": row.curve.run,
        "step": str(row.point.checkpoint.step),
        "setting": row.curve.eval_setting,
        "metric": row.curve.spec.name,
        "value": f"{row.point.value:.6g}",
    }
    command = [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, check=False)
    except (OSError, ValueError) as error:
        return f"--on-new-best: {visible_line(command[0])} cannot be run: {getattr(error, 'strerror', None) or error}"
    return f"--on-new-best: {visible_line(command[0])} ended with status {done.returncode}" if done.returncode else ""
