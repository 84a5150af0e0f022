"""The watch loop: looks for files, evaluates them one by one, and reports on each."""

from __future__ import annotations

import glob
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from testbed.db.parts.evaluations import UNIDENTIFIED
from testbed.db.store import Store
from testbed.entities import CellRecord, TrainingCheckpoint
from testbed.errors import DataError, StoreError, TestbedError, WeightsError
from testbed.execution.progress import Progress, SilentProgress
from testbed.execution.report import Outcome, Report
from testbed.extensions.watching.files import REFUSED, Files, Stamp
from testbed.extensions.watching.pairing import CheckpointComparison, paired
from testbed.graph.options import RunOptions
from testbed.models.loading.checkpoint_file import open_checkpoint
from testbed.paths import expanded
from testbed.registry.catalog import Catalog
from testbed.runner.run import run
from testbed.stored_results.checkpoint_steps import CheckpointFile, checkpoint_of, label_of
from testbed.stored_results.checkpoints import checkpoints, told_of
from testbed.trackers.mirrors import Mirror, Point
from testbed.trackers.results import log_once

LOOK_SECONDS = 2.0
TOLD = "told"  # the claim on an evaluation before its line is printed
# Suffixes of files that are inspected before they are evaluated.
SUFFIXES = (".pth", ".pt", ".safetensors", ".bin", ".ckpt")


@dataclass(frozen=True)
class WatchRequest:
    """The files and settings to watch, and when to stop.

    Attributes:
        patterns: Patterns of files, as for `glob`; ``**`` matches any folders.
        arch: The architecture in front of each path.
        settings: Canonical names.
        pattern: Regular expression for epoch and step in a path; None: that of
            `testbed.stored_results.checkpoint_steps`.
        marker: Path of the marker file for a complete ``{path}``; None: a file is complete when it no longer changes.
        until: Stops after this many checkpoints have results; None: never.
        idle: Stops when no file has appeared or changed for this many seconds; None: never.
    """

    patterns: tuple[str, ...]
    arch: str
    settings: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    marker: str | None = None
    until: int | None = None
    idle: float | None = None


@dataclass
class Reporter:
    """Reports evaluated checkpoints and runs follow-up actions.

    Attributes:
        line: Prints a message.
        rows: Reports a checkpoint's file and its results, a row for each setting.
        best_on: The setting that determines the best checkpoint.
        new_best: Called with the file of a new best checkpoint and its row on that setting; None: no action.
        mirrors: Trackers that also get the results.
        progress: Creates the progress reporter of an evaluation.
    """

    line: Callable[[str], None]
    rows: Callable[[CheckpointFile, Sequence[CheckpointComparison]], None]
    best_on: str
    new_best: Callable[[CheckpointFile, CheckpointComparison], None] | None = None
    mirrors: Sequence[Mirror] = ()
    progress: Callable[[], Progress] = SilentProgress


@dataclass
class WatchSummary:
    """The outcome of a watch.

    Attributes:
        evaluated: Checkpoints with results, including earlier ones.
        here: Those of them that this watch reported first.
        failed: Evaluations without a result, with reasons.
    """

    evaluated: set[TrainingCheckpoint] = field(default_factory=set)
    here: set[TrainingCheckpoint] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)


class Watch:
    """A watch.

    Args:
        catalog: The loaded catalog to look names up in.
        options: Options of runs.
        wanted: The request.
        files: Decides which files are complete, and their order.
        reporter: Reports results.
        clock: Returns the seconds since 1970.
        sleep: Waits a number of seconds.

    Attributes:
        summary: The outcome so far.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        wanted: WatchRequest,
        files: Files,
        reporter: Reporter,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.catalog = catalog
        self.options = options
        self.wanted = wanted
        self.files = files
        self.reporter = reporter
        self.clock = clock
        self.sleep = sleep
        self.summary = WatchSummary()
        self._stepless: set[str] = set()

    def run(self) -> None:
        """Watches until the conditions of the request are met, or until Ctrl-C.

        Raises:
            DataError: If two initial files have the same step, and none has results yet.
            KeyboardInterrupt: At Ctrl-C; earlier results are stored.
            TestbedError: If the first evaluation cannot begin.
        """
        began = self.clock()
        lines = self._look(at_start=True)
        for line in lines:
            self.reporter.line(line)
        self._known()
        while not self._is_done(began):
            found = self.files.next(self.clock(), self._marked())
            if found is not None:
                self._take(found)
            else:
                self.sleep(max(0.05, min(LOOK_SECONDS, self.files.settle / 2)))
            for line in self._look():
                self.reporter.line(line)

    def _is_done(self, began: float) -> bool:
        if self.wanted.until is not None and len(self.summary.evaluated) >= self.wanted.until:
            return True
        waits = self.files.ready(self.clock(), self._marked())
        quiet = self.clock() - max(began, self.files.changed)
        return self.wanted.idle is not None and not waits and quiet >= max(self.wanted.idle, self.files.settle)

    @property
    def stepless(self) -> int:
        """The number of files without a step in their names."""
        return len(self._stepless)

    # Files --------------------------------------------------------------------------------------------------------

    def _look(self, at_start: bool = False) -> list[str]:
        """Updates the list of files.

        Raises:
            DataError: See `run`; a resumed watch leaves such a file out instead.
        """
        stamps: dict[CheckpointFile, Stamp] = {}
        lines = []
        for path in self._paths():
            checkpoint = checkpoint_of(path, self.wanted.pattern)
            if checkpoint is None:
                if path not in self._stepless:
                    lines.append(f"{path} is left out: its name has no step or epoch (--pattern)")
                self._stepless.add(path)
            elif (stamp := _stamp(path)) is not None:
                stamps[CheckpointFile(path, checkpoint)] = stamp
        stored = self._stored(stamps) if at_start else set[CheckpointFile]()
        lines += self.files.look(self.clock(), stamps, stored)
        if at_start and self.files.counts[REFUSED] and not stored:
            _, _, why = lines[-1].partition(" is left out: ")
            raise DataError(f"{why}; narrow the pattern of the files, or distinguish them by --pattern")
        return lines

    def _stored(self, files: Iterable[CheckpointFile]) -> set[CheckpointFile]:
        """The files with stored results from an earlier watch or run."""
        try:
            with Store.open(self.options.db_url) as store:
                known = {evaluation.model for evaluation in store.evaluations.find(None, self.wanted.settings)}
        except StoreError:
            return set()
        return {file for file in files if self._name(file) in known}

    def _paths(self) -> list[str]:
        found = {
            os.path.abspath(path)
            for pattern in self.wanted.patterns
            for path in glob.glob(str(expanded(pattern)), recursive=True)
        }
        return sorted(path for path in found if os.path.isfile(path))

    def _marked(self) -> set[str] | None:
        """The files with existing markers; None without markers."""
        if self.wanted.marker is None:
            return None
        return {path for path in self._paths() if os.path.exists(marker_of(self.wanted.marker, path))}

    # Evaluating ---------------------------------------------------------------------------------------------------

    def _known(self) -> None:
        """Handles all files with existing results at once: a single plan checks whether these are still valid."""
        ready = self.files.ready(self.clock(), self._marked())
        try:
            with Store.open(self.options.db_url) as store:
                stored = store.evaluations.find(None, self.wanted.settings, statuses=("complete",))
        except StoreError:
            return  # there is no store yet, or the evaluation will report its error
        cells = {(evaluation.model, evaluation.eval_setting) for evaluation in stored}
        known = [found for found in ready if all((self._name(found), on) in cells for on in self.wanted.settings)]
        known = [found for found in known if not self._torn(found)]
        if known:
            self._finish(known, self._evaluated(known))

    def _take(self, found: CheckpointFile) -> None:
        """Evaluates one file."""
        if why := self._torn(found):
            self._try_later(found, why)
            return
        try:
            report = self._evaluated([found])
        except TestbedError as error:
            if not self.summary.evaluated:
                raise  # the same error would prevent the other evaluations
            self._try_later(found, str(error))
            return
        self._finish([found], report)

    def _torn(self, found: CheckpointFile) -> str:
        """The reason why a file cannot be read; empty if it can, or if only its evaluation can show that."""
        if not found.path.endswith(SUFFIXES):
            return ""
        try:
            open_checkpoint(expanded(found.path), content=False)
        except WeightsError as error:
            return str(error).removeprefix(f"the checkpoint {found.path} ")
        return ""

    def _try_later(self, found: CheckpointFile, why: str) -> None:
        if not os.path.exists(found.path):
            return  # the next look reports that
        if self.files.failed(found, self.clock()):
            self.reporter.line(f"{found.path} cannot be evaluated yet ({why.partition(' (')[0]}); it will be retried")
        else:
            self.reporter.line(f"{found.path} is given up unless it changes: {why}")
            self._record(found, why)

    def _record(self, found: CheckpointFile, why: str) -> None:
        """Stores that a file was given up, as evaluations that failed."""
        try:
            with Store.create(self.options.db_url) as store:
                for setting in self.wanted.settings:
                    cell = CellRecord(self._name(found), setting, UNIDENTIFIED)
                    store.evaluations.record_failure(cell, "failed", why, {}, {})
                self._note_failed(store, found, self.wanted.settings)
        except StoreError as error:
            self.reporter.line(f"that is not stored: {error}")

    def _evaluated(self, several: Sequence[CheckpointFile]) -> Report:
        progress = self.reporter.progress()
        try:
            names = [self._name(found) for found in several]
            report = run(self.catalog, self.options, names, self.wanted.settings, progress)
        finally:
            progress.close()
        if report.interrupted:
            raise KeyboardInterrupt
        return report

    def _name(self, found: CheckpointFile) -> str:
        return str(self.catalog.models.canonical(f"{self.wanted.arch},{found.path}"))

    # Telling ------------------------------------------------------------------------------------------------------

    def _finish(self, several: Sequence[CheckpointFile], report: Report) -> None:
        """Records steps, reports results, and forwards them."""
        by_model: dict[str, list[Outcome]] = {}
        for outcome in report.outcomes:
            by_model.setdefault(outcome.model, []).append(outcome)
        finished = {id(outcome) for outcome in report.finished}
        before = 0
        with Store.open(self.options.db_url, mode="write") as store:
            for found in several:
                outcomes = by_model.get(self._name(found), [])
                done = {
                    outcome.setting: outcome
                    for outcome in outcomes
                    if id(outcome) in finished and outcome.evaluation_id
                }
                missing = [outcome for outcome in outcomes if id(outcome) not in finished]
                if missing and not done and not os.path.exists(found.path):
                    continue  # it was deleted meanwhile
                self.files.done(found)
                self._note_failed(store, found, [outcome.setting for outcome in missing])
                for outcome in missing:
                    self.summary.failed.append(f"{found.path} on {outcome.setting} {outcome.status}: {outcome.reason}")
                    self.reporter.line(self.summary.failed[-1])
                if done:
                    before += not self._tell(store, found, done)
        if before:
            noun = "checkpoint was" if before == 1 else "checkpoints were"
            self.reporter.line(f"{before:,} {noun} evaluated before, or by another watch")

    def _tell(self, store: Store, found: CheckpointFile, done: Mapping[str, Outcome]) -> bool:
        """Reports a checkpoint; returns whether it had not been reported before."""
        ids = {setting: value.evaluation_id for setting, value in done.items() if value.evaluation_id is not None}
        self._note(store, ids, found.checkpoint)
        self.summary.evaluated.add(found.checkpoint)
        fresh = [setting for setting, value in ids.items() if TOLD not in told_of(store.evaluations.get(value))]
        rows = paired(store, found.checkpoint, self._name(found), fresh) if fresh else []
        rows = [row for row in rows if store.checkpoints.claim(row.point.evaluation, TOLD)]
        if rows:
            self.summary.here.add(found.checkpoint)
            self.reporter.rows(found, rows)
            for row in rows:
                if (
                    row.new_best
                    and row.curve.eval_setting == self.reporter.best_on
                    and self.reporter.new_best is not None
                ):
                    self.reporter.new_best(found, row)
        for mirror in self.reporter.mirrors:
            self._mirror(store, mirror, found.checkpoint, ids)
        return bool(rows)

    def _mirror(self, store: Store, mirror: Mirror, checkpoint: TrainingCheckpoint, ids: Mapping[str, int]) -> None:
        """Logs the points that a mirror does not have."""
        point = Point(checkpoint.run, label_of(checkpoint.run), checkpoint.step, checkpoint.unit)
        if problem := log_once(store, mirror, point, list(ids.values())):
            self.reporter.line(f"{checkpoint.label} of {checkpoint.run} is not in {mirror.name}: {problem}")

    def close(self) -> None:
        """Closes the mirrors."""
        for mirror in self.reporter.mirrors:
            mirror.close()

    def _note_failed(self, store: Store, found: CheckpointFile, settings: Sequence[str]) -> None:
        """Records the step of a checkpoint with its failed evaluations."""
        cells = store.evaluations.find([self._name(found)], settings, statuses=("failed", "unsupported"))
        store.checkpoints.note([cell.id for cell in cells], found.checkpoint)

    def _note(self, store: Store, ids: Mapping[str, int], checkpoint: TrainingCheckpoint) -> None:
        """Records the step, unless it is already recorded."""
        evaluations = [store.evaluations.get(one_id) for one_id in ids.values()]
        lacking = [evaluation.id for evaluation in evaluations if checkpoint not in checkpoints([evaluation]).values()]
        if lacking:
            store.checkpoints.note(lacking, checkpoint)


def marker_of(marker: str, path: str) -> str:
    """The path of the marker for a complete file."""
    return marker.replace("{path}", path).replace("{folder}", os.path.dirname(path))


def _stamp(path: str) -> Stamp | None:
    """Size and time of a file; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime
