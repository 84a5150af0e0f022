"""The log file of a run of CLIP-CC-Bench's configuration file, with the location and format of its own scripts."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import RunError

if TYPE_CHECKING:
    from testbed.data.sets.clip_cc_config import ClipCcConfig
    from testbed.execution.progress import Progress
    from testbed.execution.report import Report

FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"
LOGGER = "clip_cc_bench"


@contextmanager
def logged(config: ClipCcConfig, folder: Path, progress: Progress, interval: int | None) -> Iterator[Progress]:
    """Also writes the messages of a run to its log file.

    Args:
        config: The configuration file of the run.
        folder: The folder of the log file.
        progress: The other progress callback of the run.
        interval: The number of samples between lines about the progress.

    Raises:
        RunError: If the file cannot be written.
    """
    from testbed.execution.progress import LineProgress, Several

    handler = _handler(config, folder)
    testbed, own = logging.getLogger("testbed"), logging.getLogger(LOGGER)
    own.propagate = False
    own.setLevel(logging.DEBUG)
    for logger in (testbed, own):
        logger.addHandler(handler)
    try:
        own.info("configuration file %s, decoder %s", config.path, config.decoder.name)
        yield Several(progress, LineProgress(_Lines(), interval))
    finally:
        for logger in (testbed, own):
            logger.removeHandler(handler)
        handler.close()


def log_outcomes(report: Report, results: Sequence[Any]) -> None:
    """Logs the outcome of each captioner, and missing captions; does nothing outside `logged`."""
    own = logging.getLogger(LOGGER)
    values = {(result.evaluation_id, result.metric): result for result in results if result.slice == "overall"}
    for outcome in report.outcomes:
        level = logging.ERROR if outcome.status in ("failed", "incomplete", "stopped") else logging.INFO
        reason = f": {outcome.reason}" if outcome.reason else ""
        own.log(level, "%s on %s: %s%s", outcome.model, outcome.setting, outcome.status, reason)
        covered = values.get((outcome.evaluation_id, "coverage"))
        if covered is not None and covered.n and covered.value is not None and covered.value < 1:
            lacking = round(covered.n * (1 - covered.value))
            own.warning("%s has no caption for %d of %d samples", outcome.model, lacking, covered.n)
        for metric in ("coarse_similarity_raw", "fine_f1_raw", "hm_cf_raw"):
            if (found := values.get((outcome.evaluation_id, metric))) is not None and found.value is not None:
                own.info("%s: %s %.4f (%d samples)", outcome.model, metric, found.value, found.n or 0)


def _handler(config: ClipCcConfig, folder: Path) -> logging.Handler:
    name, said = config.decoder.name, config.logging
    prefix = said.prefix or f"{re.sub(r'[^0-9a-z]+', '_', name.lower()).strip('_')}_evaluation"
    path = folder / f"{prefix}_{datetime.now():%Y%m%d_%H%M%S}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise RunError(f"the log file {path} cannot be written: {error.strerror or error}") from error
    handler.setLevel(said.level)
    handler.setFormatter(logging.Formatter(FORMAT))
    return handler


class _Lines:
    """A stream whose lines are messages of the log."""

    def write(self, text: str) -> None:
        """Logs a line."""
        if text.strip():
            logging.getLogger(LOGGER).info(text.strip())

    def flush(self) -> None:
        """Does nothing."""
