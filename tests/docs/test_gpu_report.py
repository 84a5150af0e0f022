"""The section about GPUs in benchmarks/results.md is what the stored proofs say."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

GPU = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a program of benchmarks/gpu."""
    monkeypatch.syspath_prepend(str(GPU))

    def module(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(f"gpu_{name}", GPU / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, made)
        spec.loader.exec_module(made)
        return made

    return module


def proof(commit: str, *found: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"date": "2026-01-01", "commit": commit, "cards": ["H100"], "cores": 16, "python": "3.12", "torch": "2.11"}
    return {**about, "install": "ok", "parts": {"throughput": {"found": list(found), **more}}}


def test_the_page_has_what_the_stored_proofs_say(load):
    report = load("report")
    page = report.PAGE.read_text(encoding="utf-8")
    assert report.placed(page, report.section(list(report.results()))) == page


def test_without_a_proof_the_page_says_so(load):
    assert load("report").section([]) == "Not run on a GPU."


def test_the_newest_finding_counts_unless_it_was_not_run(load):
    report = load("report")
    old = proof("old", {"name": "a", "ok": False}, {"name": "b", "ok": True}, {"name": "c", "not_run": "no time"})
    new = proof("new", {"name": "a", "ok": True}, {"name": "b", "not_run": "no time"}, {"name": "d", "failed": "why"})
    found = report.newest([old, new])
    assert [(name, each["commit"]) for name, each in found.items()] == [
        ("a", "new"),
        ("b", "old"),
        ("c", "old"),
        ("d", "new"),
    ]
    text = report.section([old, new])
    assert "| a |  | ok |" in text
    assert "| d |  | not finished |" in text
    assert "Not run: c." in text


def test_a_missed_target_is_shown_as_missed(load):
    speed = {"name": "resnet50", "forward": 3453.5, "decode": 2713.2, "testbed": 2382.4, "ratio": 0.878, "target": 0.9}
    text = load("report").section([proof("one", {**speed, "met": False, "bound": "decode", "start_seconds": 29.7})])
    assert "| resnet50 | 3,454 | 2,713 | 2,382 | decode | 0.88 | ≥ 0.9, missed | 30 s |" in text


@pytest.mark.parametrize(
    ("found", "more", "sound"),
    [
        ({"name": "a", "ok": True, "met": False}, {}, True),  # a missed target is no failure
        ({"name": "a", "not_run": "needs a GPU"}, {}, True),
        ({"name": "a", "ok": False}, {}, False),
        ({"name": "a", "failed": "Traceback"}, {}, False),
        ({"name": "a", "ok": True}, {"ended": "stopped after 10 s"}, False),
    ],
)
def test_what_failed_or_differs_is_not_sound(found, more, sound, load):
    assert load("prove").sound(proof("one", found, **more)) is sound


def test_parts_that_measure_speed_run_alone(load):
    prove = load("prove")
    together = [[part.name for part in group] for group in prove.groups(prove.PARTS)]
    assert together == [["demo", "correct"], ["throughput"], ["profile"], ["sharing"], ["large"]]
    assert sum(max(part.seconds for part in group) for group in prove.groups(prove.PARTS)) <= 480 - 40


def test_findings_are_kept_one_by_one(load, tmp_path, capsys):
    findings = load("findings").Findings(tmp_path / "part.json", "cpu", True, 60)
    with findings.trying("works") as figures:
        figures["ok"] = True
    with findings.trying("breaks"):
        raise ValueError("this is why")
    findings.not_run("left out", "needs a GPU")
    import json

    works, breaks, left_out = json.loads((tmp_path / "part.json").read_text(encoding="utf-8"))
    assert works["ok"] is True
    assert "this is why" in breaks["failed"]
    assert left_out == {"name": "left out", "not_run": "needs a GPU"}
    assert "works: " in capsys.readouterr().out
