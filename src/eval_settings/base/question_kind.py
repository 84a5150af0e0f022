"""The parts of a benchmark that is a table of questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.data.video_frames import Frames


@dataclass(frozen=True)
class Questions:
    """The prompt, scoring and report of a table of questions.

    Attributes:
        prompt: Makes the turns of the user from a row.
        scoring: The scoring of answers; a name in `testbed.answers.scorings.SCORINGS`.
        report: The report; a name in `testbed.answers.reports.report.REPORTS`.
        table: The set with the same table, whose file is taken where there is none of this set's name.
        generation: Fields of `GenerationConfig` that the benchmark asks for.
        required: The columns that the table must have.
        lacks: The reason why answers cannot be scored, if any.
        frames: The frames of a video that are shown, if the table is of videos.
        lists: The table names the files of frames, and not videos.
        subtitles: Also shows their subtitles; see `testbed.data.tables.videos.VideoSource`.
        origin: The origin of the table, for messages.
        answers: The column with right answers, where it is not ``answer``.
        texts: Rows without a picture are asked too.
        files: The columns that name files of pictures, where it is not ``image_path``.
        places: The folders of these files below the root of tables, or zip archives, where it is not ``images/NAME``.
        archive: Where these files are published, for messages.
        indexed: The index of a row says which kind of question it is.
        masks: The column that names the pictures of right regions.
        sized: Right answers are places in the picture, and its size is needed to read them.
    """

    prompt: Callable[..., Any]
    scoring: str = "multiple_choice"
    report: str = "accuracy"
    table: str = ""
    generation: Mapping[str, Any] = field(default_factory=dict)
    required: tuple[str, ...] = ("question",)
    lacks: str = ""
    frames: Frames | None = None
    subtitles: bool | str = False
    lists: bool = False
    origin: str = ""
    answers: str = ""
    sized: bool = False
    texts: bool = False
    files: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    archive: str = ""
    indexed: bool = False
    masks: str = ""
