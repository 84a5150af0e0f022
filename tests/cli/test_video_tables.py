"""Questions about videos, asked and scored with the programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from table_world import write_table
from video_world import video_questions, video_sets

pytest.importorskip("av")
pytestmark = pytest.mark.usefixtures("shared_cache")
PLUGIN = Path(__file__).parent.parent / "plugins" / "frames_world.py"


def run(program: Any, *settings: str, code: int | None = 0, models: tuple[str, ...] = ("counts-frames",)) -> Any:
    words = ("--plugin", str(PLUGIN), "--models", *models, "--lmu-data", "lmu", "--executor", "inline")
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
    done = run(program, "Video-MME_1fps", "VSI-Bench", code=1)
    assert "lmu/videos/Video-MME/Video-MME.tsv" in done.stdout + done.stderr
    assert "lmms-lab/Video-MME" in done.stdout + done.stderr
    assert "the frames of videos are a part of the name: VSI-Bench_128frame, " in done.stdout + done.stderr


def test_sets_of_videos_are_asked_in_their_own_ways(program: Any, tmp_path: Path) -> None:
    video_sets(tmp_path / "lmu")
    sets = (
        "MVBench_4frame",
        "MLVU_8frame",
        "LongVideoBench_8frame_subs",
        "TempCompass_8frame",
        "WorldSense_8frame_subs",
        "VSI-Bench_16frame",
        "SiteBenchVideo_3frame",
        "MMSIVideoBench_3frame",
    )
    done = run(program, *sets, "MMBench_Video_16frame_nopack@pleased", "Video-MME-v2_8frame_resize")
    found = values(done)
    accuracies = {
        "MVBench_4frame": 1 / 2,
        "MLVU_MCQ_8frame": 1,
        "LongVideoBench_8frame_subs": 0,
        "TempCompass_MCQ_8frame": 1,
        "TempCompass_YorN_8frame": 0,
        "WorldSense_8frame_subs": 1,
        "Video-MME-v2_8frame_resize": 3 / 4,
        "SiteBenchVideo_3frame": 1 / 2,
        "MMSIVideoBench_3frame": 1,
    }
    assert {name: found[name, "accuracy", "overall"] for name in accuracies} == accuracies
    assert found["MVBench_4frame", "accuracy", "task_type/State Change"] == 0
    assert found["WorldSense_8frame_subs", "accuracy", "duration/<1min/audio_class/Music"] == 1
    assert found["LongVideoBench_8frame_subs", "accuracy", "duration_group/15/question_category/S2E"] == 0
    assert found["Video-MME-v2_8frame_resize", "group_score", "level/1"] == (3 / 4) ** 2
    assert found["MMBench_Video_16frame_nopack@pleased", "grade", "group/TR"] == 3
    assert found["VSI-Bench_16frame", "average", "overall"] == 1 / 2
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    texts = [each["text"] for each in asked]
    assert [each["frames"] for each in asked if each["text"].startswith("Look.")] == [4]  # three and the other picture
    assert any(
        "Look there\nWhat runs?\nA. a dog\nB. a cat\nC. a bird\nAnswer with the option" in text for text in texts
    )
    for name in ("MMBench_Video_8frame_pack", "WorldSense_8frame_audio"):
        assert "not supported" in run(program, name, code=1).stdout


def test_a_video_is_decoded_once_for_all_models_and_questions(program: Any, tmp_path: Path) -> None:
    video_questions(tmp_path / "lmu", "mine")
    header = ["index", "video", "question", "A", "B", "answer"]
    rows = [[str(number), "ab"[number // 3], "What is it?", "one", "two", "A"] for number in range(6)]
    write_table(tmp_path / "lmu" / "mine.tsv", header, rows)
    run(program, "mine_6frame", models=("counts-frames", "counts-them-too"))
    asked = [json.loads(line)["frames"] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [6] * 12
    assert len((tmp_path / "decoded").read_text().splitlines()) == 2  # a video each
