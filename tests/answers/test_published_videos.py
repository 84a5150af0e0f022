"""Prompts, frames and ratings of sets of videos against VLMEvalKit's classes (tests/assets/make_published_videos.py).

Its verdicts on answers are compared in test_published_answers.py.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.answers.reports.report import report
from testbed.answers.verdict import AnsweredQuestions, Verdict
from testbed.data.rows import Picture, Row
from testbed.data.tables.video_subtitles import FORMS
from testbed.data.video_frames import SelectedFrames
from testbed.eval_settings.base.question_kind import Questions
from testbed.eval_settings.base.questions import questions_of_videos

PUBLISHED = json.loads(
    gzip.decompress((Path(__file__).parent.parent / "assets" / "published_videos.json.gz").read_bytes())
)
GRADES = {"mmbench_video": 3}


def questions(name: str) -> Questions:
    """The set of a name."""
    found = questions_of_videos(name)
    assert found is not None, name
    return found


def test_every_prompt_is_the_published_one() -> None:
    chosen = SelectedFrames((), (20, 40, 60, 80), 10.0, 100)
    for name, columns, parts in PUBLISHED["prompts"]:
        asked = questions(name)
        row = {**columns, "sampled_fps": "0.40"}
        if asked.subtitles and name != "WorldSense_4frame_subs":  # its video has none
            form = FORMS[str(asked.subtitles)]
            entries = PUBLISHED["subtitles"][columns.get("subtitle_path", "001.jsonl")]
            text = "\n".join(map(json.dumps, entries)) if "subtitle_path" not in columns else json.dumps(entries)
            row["subtitles"] = form.said(text, chosen, columns)
        (turn,) = asked.prompt(Row("0", row, tuple(Picture(b"", f"<{place}>") for place in range(4))))
        assert [part if isinstance(part, str) else part.name for part in turn] == parts, name


def test_every_frame_is_the_published_one() -> None:
    for name, total, rate, count, fps, clip, numbers in PUBLISHED["frames"]:
        rest = f"{count}frame" if count else f"{fps:g}fps"
        chosen = questions(f"{name}_{rest}{'_nopack' if name == 'MMBench_Video' else ''}").frames
        assert chosen is not None
        ours = chosen.chosen(total, rate, clip and tuple(clip))
        if max(numbers, default=0) < total:
            assert ours == numbers, (name, total, rate, rest, clip)
        else:  # VLMEvalKit fails where a clip begins after the end
            assert 0 <= min(ours) <= max(ours) < total


def leaves(rating: Any, *path: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """The numbers of a rating by their places, without those of parts that have no rows."""
    if isinstance(rating, dict):
        for name, value in rating.items():
            yield from leaves(value, *path, name)
    elif isinstance(rating, list):
        yield path, rating[0] / rating[1]
    elif not math.isnan(float(rating)):
        yield path, float(rating)


def place_of(name: str, path: tuple[str, ...]) -> tuple[str, str]:
    """The metric and the slice of a number."""
    if name in ("world_sense", "long_video_bench"):
        column = "duration" if name == "world_sense" else "duration_group"
        within = [] if path[0] == "overall" else [column, path[0]]
        return "accuracy", "/".join([*within, *(path[1:] if path[1:] != ("overall",) else ())]) or "overall"
    if name == "mmbench_video":
        kind = {"Perception": "side", "Reasoning": "side"}.get(path[1], "group") if "coarse" in path[0] else "dimension"
        return "grade", "overall" if path[1] == "Overall" else f"{kind}/{path[1]}"
    if name == "video_mme_v2":
        if path[0] != "final_rating":
            return "group_score", f"{path[0].removesuffix('_rating')}/{path[1]}"
        kinds = {"total": "overall", "relevance_score": "group_type/relevance", "logic_score": "group_type/logic"}
        if path[1] == "relevance_linear_score":
            return "linear_score", "group_type/relevance"
        return "group_score", kinds.get(path[1], path[1].replace("_", "/"))
    if name == "vsi":
        kind = path[0].rpartition("_")[0]
        return ("average", "overall") if path == ("overall",) else ("accuracy", f"question_type/{kind}")
    if name == "temp_compass":
        dim, task = path[0].split(". ")
        return "accuracy", f"dim/{dim}/task_type/{task}"
    return "accuracy", "overall" if path == ("overall",) else f"task_type/{path[0]}"


@pytest.mark.parametrize("name", PUBLISHED["ratings"])
def test_every_rating_is_the_published_one(name: str) -> None:
    rows, rating = PUBLISHED["ratings"][name].values()
    best = GRADES.get(name, 1)
    verdicts = [Verdict(str(row["score"]), row["score"] / best, "letter") for row in rows]
    columns = [{key: str(cell) for key, cell in row.items() if key not in ("index", "score")} for row in rows]
    answered = AnsweredQuestions([str(row["index"]) for row in rows], columns, verdicts, [""] * len(rows))
    found = {(each.name, each.slice): each.value for each in report(name, answered, "test@1")}
    scale = 100 if name in ("video_mme_v2", "vsi") else 1
    compared = 0
    for path, value in leaves(rating):
        if path == ("object_rel_direction_accuracy",):  # the mean of three kinds, in the average
            continue
        ours = found[place_of(name, path)]
        assert ours is not None
        assert ours * scale == pytest.approx(value, abs=0.0051 if name == "mmbench_video" else 0.00051), path
        compared += 1
    assert compared >= 2
