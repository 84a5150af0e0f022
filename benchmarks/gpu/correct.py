"""Part of the proof: the tests marked ``gpu``, which compare the device with the CPU; a finding for each file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from findings import Findings, part

ROOT = Path(__file__).resolve().parents[2]
# In the order of their worth, and which tests of each a tiny run selects: none of those that take seconds to begin.
FILES: tuple[tuple[str, str | None], ...] = (
    ("tests/gpu/test_runs.py", None),
    ("tests/gpu/test_corruptions.py", "is_that_of_the_cpu and 3x"),
    ("tests/gpu/test_random.py", "philox or normal"),
    ("tests/gpu/test_encoders.py", None),
    ("tests/gpu/test_probe.py", None),
    ("tests/tasks/test_probe_fit.py", None),
    ("tests/gpu/test_generation.py", None),
    ("tests/gpu/test_attacks.py", None),
)
AT_ONCE = 4  # files, each in a process with a CUDA context of its own
LEAST = 8.0  # seconds that a file needs to begin at all
MESSAGE = 1500  # characters of a failed test's message that are kept: its end says most
MOST_FAILED = 40  # tests of a file whose messages are kept
PRINTED = 1500  # characters of what pytest printed, where it wrote no file
ONE_TEST = {True: 60, False: 240}  # seconds that one test has, on a GPU and on the CPU
PYTEST = ("-m", "pytest", "-m", "gpu", "-n", "0", "-q", "-p", "no:cacheprovider")

_adding = threading.Lock()  # findings are added to one file


def work(findings: Findings) -> None:
    """Runs the tests marked gpu, several files at the same time."""
    at_once = min(AT_ONCE, len(os.sched_getaffinity(0))) if findings.on_gpu else 1
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as threads:
        for _ in threads.map(lambda file: run(findings, Path(folder), *file), FILES):
            pass


def run(findings: Findings, folder: Path, file: str, words: str | None) -> None:
    """Runs the tests of a file in a process of their own; adds what they found."""
    name = f"tests: {Path(file).stem}"
    if findings.tiny and words is None:
        with _adding:
            findings.not_run(name, "left out of a tiny run")
        return
    seconds = findings.left - 3
    if seconds < LEAST:
        with _adding:
            findings.not_run(name, f"{max(0, findings.left):.0f} s were left")
        return
    report, log = folder / f"{Path(file).stem}.xml", folder / f"{Path(file).stem}.log"
    command = [sys.executable, *PYTEST, f"--junitxml={report}", f"--basetemp={folder / Path(file).stem}"]
    # pytest ends by itself in time, after the test at hand, and then writes what there is.
    command += [f"--session-timeout={max(seconds - 10, LEAST / 2):.0f}", f"--timeout={ONE_TEST[findings.on_gpu]}"]
    command += [str(ROOT / file), *(["-k", words] if findings.tiny and words is not None else [])]
    began = time.monotonic()
    status = _ended(command, _surroundings(findings), log, seconds)
    figures: dict[str, Any] = {"seconds": round(time.monotonic() - began, 1), **_counted(report)}
    text = log.read_text(encoding="utf-8", errors="replace")
    if status is None or "session-timeout" in text:
        figures |= {"stopped": f"after {figures['seconds']} s of {seconds:.0f} s", "ok": False}
    if not report.exists():
        figures |= {"ok": False, "ended": f"exit status {status}"}
    if figures["ok"] is False and not figures.get("failed_tests"):
        figures["printed"] = text[-PRINTED:]
    with _adding:
        findings.add(name, **figures)


def _ended(command: list[str], environment: dict[str, str], log: Path, seconds: float) -> int | None:
    """Runs a command; returns its status, or None if it was killed, with all that it had started, after the seconds."""
    with log.open("w", encoding="utf-8") as printed:
        process = subprocess.Popen(
            command, stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment, cwd=ROOT,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def _surroundings(findings: Findings) -> dict[str, str]:
    own = {"TESTBED_TEST_DEVICE": "cuda" if findings.on_gpu else "cpu"}
    if cache := os.environ.get("TESTBED_CACHE"):
        own["TESTBED_TESTS_CACHE"] = cache  # where the names that the libraries know are, or will be for the next file
    if not findings.on_gpu and not findings.tiny:
        own["TESTBED_TEST_FULL"] = "1"
    return {**os.environ, **own}


def _counted(report: Path) -> dict[str, Any]:
    """Passed, failed and skipped tests of a JUnit file, the messages of those that failed, and what was measured."""
    if not report.exists():
        return {"tests": {"passed": 0, "failed": 0, "skipped": 0}, "ok": False}
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    bad = [(case, found) for case in cases for found in (*case.findall("failure"), *case.findall("error"))]
    skipped = [case for case in cases if case.find("skipped") is not None]
    failed = {_id(case) for case, _ in bad}
    counts = {
        "passed": sum(_id(case) not in failed for case in cases) - len(skipped),
        "failed": len(failed),
        "skipped": len(skipped),
    }
    reasons = sorted({str(case.find("skipped").get("message")) for case in skipped})  # type: ignore[union-attr]
    tests = [
        {"id": _id(case), "message": f"{found.get('message') or ''}\n{found.text or ''}"[-MESSAGE:]}
        for case, found in bad[:MOST_FAILED]
    ]
    figures: dict[str, Any] = {"tests": counts, "ok": not failed and counts["passed"] > 0}
    figures["slowest"] = {_id(case): round(_seconds(case), 1) for case in sorted(cases, key=_seconds)[:-4:-1]}
    if reasons:
        figures["skipped_because"] = reasons
    if tests:
        figures["failed_tests"] = tests
    if measured := _measured(cases):
        figures["measured"] = measured
    return figures


def _measured(cases: list[ElementTree.Element]) -> dict[str, dict[str, float]]:
    """For each test function, over its cases: the largest difference, and the largest share of values that differ."""
    found: dict[str, dict[str, float]] = {}
    for case in cases:
        most = found.setdefault(_id(case).partition("[")[0], {})
        for prop in case.iter("property"):
            key, value = prop.get("name", ""), float(prop.get("value", "nan"))
            most[key] = max(most.get(key, 0.0), value)
    return {name: most for name, most in found.items() if most}


def _id(case: ElementTree.Element) -> str:
    return f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"


def _seconds(case: ElementTree.Element) -> float:
    return float(case.get("time", 0))


main = part(work)

if __name__ == "__main__":
    main()
