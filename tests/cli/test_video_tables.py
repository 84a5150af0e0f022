"""Questions about videos, asked and scored with the programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from table_world import write_table
from video_world import video_questions

pytest.importorskip("av")
pytestmark = pytest.mark.usefixtures("shared_cache")
PLUGIN = Path(__file__).parent.parent / "plugins" / "frames_world.py"


def run(program: Any, *settings: str, code: int | None = 0) -> Any:
    words = ("--plugin", str(PLUGIN), "--models", "counts-frames", "--lmu-data", "lmu", "--executor", "inline")
    return program("eval.py", *words, "--eval-settings", *settings, "--json", code=code)


def values(done: Any) -> dict[Any, float]:
    results = json.loads(done.stdout)["results"]
    return {(each["eval_setting"], each["metric"], each["slice"]): each["value"] for each in results}


def test_video_mme_is_asked_with_its_frames_and_scored_by_its_rules(program: Any, tmp_path: Path) -> None:
    video_questions(tmp_path / "lmu" / "videos" / "Video-MME")
    (tmp_path / "lmu" / "videos" / "Video-MME" / "video" / "b.mp4").write_bytes(b"damaged")
    done = run(program, "Video-MME_8frame", "Video-MME_8frame_subs", "Video-MME_64frame+imagenet-c.fog.3")
    found = values(done)
    # the model says A, and nothing is said of the damaged video; the true answers to the other are A and B
    assert found["Video-MME_8frame", "accuracy", "overall"] == pytest.approx(1 / 2)
    assert any(name == "Video-MME_8frame" and "Knowledge" in part for name, _, part in found)
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    by_count = {count: [each for each in asked if each["frames"] == count] for count in (8, 64)}
    assert len(by_count[8]) == 4
    assert len(by_count[64]) == 2
    assert sum("Hello there" in each["text"] for each in by_count[8]) == 2
    assert {each["mime"] for each in by_count[64]} == {"image/png"}  # each frame was changed
    assert {each["mime"] for each in by_count[8]} == {"image/jpeg"}


def test_a_table_of_ones_own_shows_eight_frames(program: Any, tmp_path: Path) -> None:
    video_questions(tmp_path / "lmu", "other")
    rows = [["0", "a", "What is it?", "one", "two", "A"]]
    write_table(tmp_path / "lmu" / "mine.tsv", ["index", "video", "question", "A", "B", "answer"], rows)
    assert values(run(program, "mine"))["mine", "accuracy", "overall"] == 1
    assert json.loads((tmp_path / "asked").read_text())["frames"] == 8


def test_a_missing_table_is_told_in_one_line(program: Any, tmp_path: Path) -> None:
    done = run(program, "Video-MME_1fps", code=1)
    assert "lmu/videos/Video-MME/Video-MME.tsv" in done.stdout + done.stderr
    assert "lmms-lab/Video-MME" in done.stdout + done.stderr
