"""SPICE of captions (Anderson et al. 2016), by its authors' Java program, which comes with pycocoevalcap.

The program parses captions with Stanford CoreNLP 3.6.0, which the package does not have; the package's Python code
downloads it without asking. Nothing is downloaded here.
"""

from __future__ import annotations

import importlib.util
import json
import math
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.calls import reason_of
from testbed.errors import TestbedError
from testbed.metrics.captions.meteor import PACKAGE
from testbed.paths import cache_dir

VERSION = "SPICE 1.0"
TIMEOUT = 3600.0  # seconds for all captions
_JAR = "spice-1.0.jar"
_PARSERS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")
# Without the program's cache of parses, which newer Javas refuse to write.
_COMMAND = ("java", "-Xmx4G", "-jar", _JAR)


def lacking() -> str:
    """Explains why SPICE cannot be computed here, and what to do; empty if it can."""
    folder = _folder()
    if folder is None:
        return f"SPICE needs the package {PACKAGE}: pip install -e '.[captions]'"
    if shutil.which("java") is None:
        return "SPICE needs Java, and there is no program java; install a Java runtime"
    for name in _PARSERS:
        if not (folder / "lib" / name).is_file():
            return (
                f"SPICE needs {name} in {folder / 'lib'}; it is not downloaded unasked:"
                f" cd {folder} && python get_stanford_models.py"
            )
    return ""


def spice(captions: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[float | None, list[float]]:
    """The mean SPICE, and that of each caption: the F-score of its propositions, NaN where none is defined.

    Args:
        captions: Words, with spaces between them; at least one caption.
        references: At least one for each.

    Raises:
        TestbedError: If something is missing (see `lacking`), the program fails, or takes longer than an hour.
    """
    reason = lacking()
    if reason:
        raise TestbedError(reason)
    asked = [
        {"image_id": index, "test": text, "refs": list(several)}
        for index, (text, several) in enumerate(zip(captions, references, strict=True))
    ]
    with tempfile.TemporaryDirectory(dir=cache_dir("spice")) as folder:
        given, output = Path(folder) / "captions.json", Path(folder) / "scores.json"
        given.write_text(json.dumps(asked), encoding="utf-8")
        _run([*_COMMAND, str(given), "-out", str(output), "-silent"])
        scores = _read(output, len(asked))
    defined = [score for score in scores if not math.isnan(score)]
    return (math.fsum(defined) / len(defined) if defined else None), scores


def _folder() -> Path | None:
    """Returns the program's folder; None without the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "spice"


def _run(command: Sequence[str]) -> None:
    folder = _folder()
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise TestbedError(f"SPICE's program took longer than {TIMEOUT:,.0f} seconds, and was ended") from None
    except OSError as error:
        raise TestbedError(f"SPICE's program cannot be started: {error.strerror}") from error
    if done.returncode:
        told = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise TestbedError(
            f"SPICE's program in {folder} failed (exit status {done.returncode}):"
            f" {told[0][:200] if told else 'it prints nothing'}"
        )


def _read(path: Path, count: int) -> list[float]:
    """The score of each caption."""
    try:
        records = json.loads(path.read_bytes())
        scores = {record["image_id"]: _number(record["scores"]["All"]["f"]) for record in records}
        return [scores[index] for index in range(count)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise TestbedError(
            f"SPICE's program wrote no scores that can be read ({reason_of(error)}); run java -version"
        ) from error


def _number(value: Any) -> float:
    """A number; NaN for anything else, as in pycocoevalcap."""
    return float(value) if isinstance(value, int | float) else math.nan
