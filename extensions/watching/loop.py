"""The loop: looks for files, evaluates one after the other, and tells of each."""

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
from testbed.extensions.watching.pairing import Paired, paired
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
TOLD = "told"  # what is claimed of an evaluation before its line is printed
SUFFIXES = (".pth", ".pt", ".safetensors", ".bin", ".ckpt")  # of files that are looked into before they are evaluated


@dataclass(frozen=True)
class Wanted:
    """What is watched, and until when.

    Attributes:
        patterns: Of files, as `glob` has them; ``**`` stands for any folders.
        arch: The architecture that stands before each path.
        settings: Canonical names.
        pattern: Where epoch and step are in a path; None: as `testbed.stored_results.checkpoint_steps` has it.
        marker: The path of the file that says that ``{path}`` is complete; None: it is when it no longer changes.
        until: Ends after so many checkpoints have results; None never.
        idle: Ends when no file has come or changed for so many seconds; None never.
    """

    patterns: tuple[str, ...]
    arch: str
    settings: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    marker: str | None = None
    until: int | None = None
    idle: float | None = None


@dataclass
class Teller:
    """What is done about a checkpoint once it is evaluated, and what is told.

    Attributes:
        line: Takes a message.
        rows: Takes a checkpoint's file and its results, a row for each setting.
        best_on: The setting on which the best checkpoint is looked for.
        new_best: Takes the file of a new best and its row on that setting; None: nothing is done about it.
        mirrors: Get the results, too.
        progress: Makes what shows the progress of one evaluation.
    """

    line: Callable[[str], None]
    rows: Callable[[CheckpointFile, Sequence[Paired]], None]
    best_on: str
    new_best: Callable[[CheckpointFile, Paired], None] | None = None
    mirrors: Sequence[Mirror] = ()
    progress: Callable[[], Progress] = SilentProgress


@dataclass
class Summary:
    """What a watch has done.

    Attributes:
        evaluated: Checkpoints with results, whenever they were computed.
        here: How many of these this watch computed.
        failed: Evaluations without a result, and why.
    """

    evaluated: set[TrainingCheckpoint] = field(default_factory=set)
    here: int = 0
    failed: list[str] = field(default_factory=list)


class Watch:
    """A watch.

    Args:
        catalog: Where names are looked up, loaded.
        options: How to run.
        wanted: What is watched.
        files: Decides what is complete, and in which order.
        teller: What is told.
        clock: Seconds since 1970.
        sleep: Waits so many seconds.

    Attributes:
        summary: What it has done so far.
    """

    def __init__(
        self,
        catalog: Catalog,
        options: RunOptions,
        wanted: Wanted,
        files: Files,
        teller: Teller,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.catalog = catalog
        self.options = options
        self.wanted = wanted
        self.files = files
        self.teller = teller
        self.clock = clock
        self.sleep = sleep
        self.summary = Summary()
        self._stepless: set[str] = set()

    def run(self) -> None:
        """Watches until what `Wanted` says, or Ctrl-C.

        Raises:
            DataError: If two files that are there at the beginning have the same step, and none has results yet.
            KeyboardInterrupt: At Ctrl-C; what was computed until then is stored.
            TestbedError: If the first evaluation cannot begin at all.
        """
        began = self.clock()
        lines = self._look(at_start=True)
        for line in lines:
            self.teller.line(line)
        self._known()
        while not self._is_done(began):
            found = self.files.next(self.clock(), self._marked())
            if found is not None:
                self._take(found)
            else:
                self.sleep(max(0.05, min(LOOK_SECONDS, self.files.settle / 2)))
            for line in self._look():
                self.teller.line(line)

    def _is_done(self, began: float) -> bool:
        if self.wanted.until is not None and len(self.summary.evaluated) >= self.wanted.until:
            return True
        waits = self.files.ready(self.clock(), self._marked())
        quiet = self.clock() - max(began, self.files.changed)
        return self.wanted.idle is not None and not waits and quiet >= max(self.wanted.idle, self.files.settle)

    @property
    def stepless(self) -> int:
        """How many files have no step in their names."""
        return len(self._stepless)

    # Files --------------------------------------------------------------------------------------------------------

    def _look(self, at_start: bool = False) -> list[str]:
        """Takes note of the files that are there now.

        Raises:
            DataError: See `run`; a watch that goes on leaves such a file out, as while it runs.
        """
        stamps: dict[CheckpointFile, Stamp] = {}
        lines = []
        for path in self._paths():
            checkpoint = checkpoint_of(path, self.wanted.pattern)
            if checkpoint is None:
                if path not in self._stepless:
                    lines.append(f"{path} is left out: there is no step or epoch in its name (--pattern)")
                self._stepless.add(path)
            elif (stamp := _stamp(path)) is not None:
                stamps[CheckpointFile(path, checkpoint)] = stamp
        stored = self._stored(stamps) if at_start else set[CheckpointFile]()
        lines += self.files.look(self.clock(), stamps, stored)
        if at_start and self.files.counts[REFUSED] and not stored:
            _, _, why = lines[-1].partition(" is left out: ")
            raise DataError(f"{why}; narrow the pattern of the files, or tell them apart by --pattern")
        return lines

    def _stored(self, files: Iterable[CheckpointFile]) -> set[CheckpointFile]:
        """The files that the store knows from an earlier watch or run."""
        try:
            with Store.open(self.options.db_url) as store:
                known = {each.model for each in store.evaluations.find(None, self.wanted.settings)}
        except StoreError:
            return set()
        return {each for each in files if self._name(each) in known}

    def _paths(self) -> list[str]:
        found = {
            os.path.abspath(path)
            for pattern in self.wanted.patterns
            for path in glob.glob(str(expanded(pattern)), recursive=True)
        }
        return sorted(path for path in found if os.path.isfile(path))

    def _marked(self) -> set[str] | None:
        """The files whose markers are there; None if there are no markers."""
        if self.wanted.marker is None:
            return None
        return {path for path in self._paths() if os.path.exists(marker_of(self.wanted.marker, path))}

    # Evaluating ---------------------------------------------------------------------------------------------------

    def _known(self) -> None:
        """Takes all files at once that have results already: one plan finds whether these are still right."""
        ready = self.files.ready(self.clock(), self._marked())
        try:
            with Store.open(self.options.db_url) as store:
                stored = store.evaluations.find(None, self.wanted.settings, statuses=("complete",))
        except StoreError:
            return  # there is no store yet, or the evaluation will say what is wrong with it
        cells = {(each.model, each.eval_setting) for each in stored}
        known = [each for each in ready if all((self._name(each), on) in cells for on in self.wanted.settings)]
        known = [each for each in known if not self._torn(each)]
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
                raise  # what keeps the first one from being evaluated will keep the others from it, too
            self._try_later(found, str(error))
            return
        self._finish([found], report)

    def _torn(self, found: CheckpointFile) -> str:
        """Why a file cannot be read; empty if it can, or if only its evaluation will tell."""
        if not found.path.endswith(SUFFIXES):
            return ""
        try:
            open_checkpoint(expanded(found.path), content=False)
        except WeightsError as error:
            return str(error).removeprefix(f"the checkpoint {found.path} ")
        return ""

    def _try_later(self, found: CheckpointFile, why: str) -> None:
        if not os.path.exists(found.path):
            return  # the next look tells that
        if self.files.failed(found, self.clock()):
            self.teller.line(
                f"{found.path} cannot be evaluated yet ({why.partition(' (')[0]}); it is tried again later"
            )
        else:
            self.teller.line(f"{found.path} is given up unless it changes: {why}")
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
            self.teller.line(f"that is not stored: {error}")

    def _evaluated(self, several: Sequence[CheckpointFile]) -> Report:
        progress = self.teller.progress()
        try:
            names = [self._name(each) for each in several]
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
        """Notes steps, tells of results, and hands them on."""
        by_model: dict[str, list[Outcome]] = {}
        for each in report.outcomes:
            by_model.setdefault(each.model, []).append(each)
        finished = {id(each) for each in report.finished}
        before = 0
        with Store.open(self.options.db_url, mode="write") as store:
            for found in several:
                outcomes = by_model.get(self._name(found), [])
                done = {each.setting: each for each in outcomes if id(each) in finished and each.evaluation_id}
                missing = [each for each in outcomes if id(each) not in finished]
                if missing and not done and not os.path.exists(found.path):
                    continue  # it was deleted meanwhile
                self.files.done(found)
                self._note_failed(store, found, [each.setting for each in missing])
                for each in missing:
                    self.summary.failed.append(f"{found.path} on {each.setting} {each.status}: {each.reason}")
                    self.teller.line(self.summary.failed[-1])
                if done:
                    before += not self._tell(store, found, done)
        if before:
            noun = "checkpoint was" if before == 1 else "checkpoints were"
            self.teller.line(f"{before:,} {noun} evaluated before, or by another watch")

    def _tell(self, store: Store, found: CheckpointFile, done: Mapping[str, Outcome]) -> bool:
        """Tells of a checkpoint; returns whether nobody has told it before."""
        ids = {setting: each.evaluation_id for setting, each in done.items() if each.evaluation_id is not None}
        self._note(store, ids, found.checkpoint)
        self.summary.evaluated.add(found.checkpoint)
        fresh = [setting for setting, each in ids.items() if TOLD not in told_of(store.evaluations.get(each))]
        rows = paired(store, found.checkpoint, self._name(found), fresh) if fresh else []
        rows = [row for row in rows if store.checkpoints.claim(row.point.evaluation, TOLD)]
        if rows:
            self.summary.here += 1
            self.teller.rows(found, rows)
            for row in rows:
                if row.new_best and row.curve.eval_setting == self.teller.best_on and self.teller.new_best is not None:
                    self.teller.new_best(found, row)
        for mirror in self.teller.mirrors:
            self._mirror(store, mirror, found.checkpoint, ids)
        return bool(rows)

    def _mirror(self, store: Store, mirror: Mirror, checkpoint: TrainingCheckpoint, ids: Mapping[str, int]) -> None:
        """Logs what a mirror does not have."""
        point = Point(checkpoint.run, label_of(checkpoint.run), checkpoint.step, checkpoint.unit)
        if problem := log_once(store, mirror, point, list(ids.values())):
            self.teller.line(f"{checkpoint.label} of {checkpoint.run} is not in {mirror.name}: {problem}")

    def close(self) -> None:
        """Ends the mirrors."""
        for mirror in self.teller.mirrors:
            mirror.close()

    def _note_failed(self, store: Store, found: CheckpointFile, settings: Sequence[str]) -> None:
        """Notes the step of a checkpoint with its evaluations that failed."""
        cells = store.evaluations.find([self._name(found)], settings, statuses=("failed", "unsupported"))
        store.checkpoints.note([each.id for each in cells], found.checkpoint)

    def _note(self, store: Store, ids: Mapping[str, int], checkpoint: TrainingCheckpoint) -> None:
        """Notes the step, where it is not noted already."""
        evaluations = [store.evaluations.get(each) for each in ids.values()]
        lacking = [each.id for each in evaluations if checkpoint not in checkpoints([each]).values()]
        if lacking:
            store.checkpoints.note(lacking, checkpoint)


def marker_of(marker: str, path: str) -> str:
    """The path of the file that says that another one is complete."""
    return marker.replace("{path}", path).replace("{folder}", os.path.dirname(path))


def _stamp(path: str) -> Stamp | None:
    """Size and time of a file; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime
