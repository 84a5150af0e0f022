"""METEOR 1.5 of captions (Denkowski and Lavie 2014), by its authors' Java program, which comes with pycocoevalcap."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from testbed.errors import MissingExtraError, TestbedError

PACKAGE = "pycocoevalcap"
_COMMAND = ("java", "-jar", "-Xmx2G", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm")  # as pycocoevalcap
_MARK = "|||"


def meteor(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float, list[float]]:
    """Computes METEOR of all captions together, and of each one.

    Args:
        captions: Words, with spaces between them; at least one caption.
        references: At least one for each.

    Raises:
        MissingExtraError: If pycocoevalcap is not installed.
        TestbedError: If there is no Java, or the program fails.
    """
    folder = _folder()
    with subprocess.Popen(
        _COMMAND, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            counts = []
            for text, several in zip(captions, references, strict=True):
                parts = [sentence.replace(_MARK, "").replace("  ", " ") for sentence in (*several, text)]
                process.stdin.write(f" {_MARK} ".join(["SCORE", *parts]) + "\n")
                process.stdin.flush()
                counts.append(process.stdout.readline().strip())
            process.stdin.write(f" {_MARK} ".join(["EVAL", *counts]) + "\n")
            process.stdin.flush()
            scores = [float(process.stdout.readline()) for _ in counts]
            return float(process.stdout.readline()), scores
        except (OSError, ValueError) as error:
            raise TestbedError(f"METEOR's program in {folder} ended early: {error}; run java -version") from error
        finally:
            process.kill()


def _folder() -> Path:
    """Returns the program's folder."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(PACKAGE, "captions", "METEOR")
    if shutil.which("java") is None:
        raise TestbedError("METEOR needs Java, and there is no program java; install a Java runtime")
    return Path(spec.submodule_search_locations[0]) / "meteor"
