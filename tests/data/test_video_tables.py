"""Videos as pictures of rows: which frames, what is said meanwhile, and what is refused."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from table_world import write_table
from video_world import number_of, video_questions, write_video

from testbed.answers.prompts import video_mme
from testbed.data.rows import Row
from testbed.data.tables.videos import VideoSource
from testbed.data.video_frames import Frames, shown
from testbed.errors import DefinitionError, MissingExtraError, SampleError

pytest.importorskip("av")


def numbers(row: Row) -> list[int]:
    """The numbers of the frames that a row shows."""
    return [number_of(each.image()) for each in row.pictures]


@pytest.mark.parametrize("gop", [1, 12, 250])
def test_frames_are_those_that_vlmevalkit_chooses(tmp_path: Path, gop: int) -> None:
    video_questions(tmp_path)
    write_video(tmp_path / "video" / "a.mp4", gop=gop)
    source = VideoSource(tmp_path / "Video-MME.tsv", Frames(8))
    assert numbers(source.row(0)) == [11, 22, 33, 44, 55, 66, 77, 88]
    assert all(each.mime == "image/jpeg" for each in source.row(0).pictures)
    every = VideoSource(tmp_path / "Video-MME.tsv", Frames(fps=0.5))
    assert numbers(every.row(0)) == [0, 20, 40, 60, 80]
    many = VideoSource(tmp_path / "Video-MME.tsv", Frames(150))
    assert numbers(many.row(0)) == [int(number * 100 / 151) for number in range(1, 151)]
    assert source.groups == ["a", "a", "b", "b"]


def test_only_what_is_near_the_chosen_frames_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.data import video_frames

    path = write_video(tmp_path / "long.mp4", 110, gop=10)
    decoded = []

    def counted(*arguments: Any) -> Iterator[Any]:
        for frame in kept(*arguments):
            decoded.append(frame.pts)
            yield frame

    kept = video_frames._decoded
    monkeypatch.setattr(video_frames, "_decoded", counted)
    shown(path, Frames(2), "x")
    assert 2 <= len(decoded) <= 20


def test_what_is_said_while_frames_are_shown_is_in_the_prompt(tmp_path: Path) -> None:
    video_questions(tmp_path)
    source = VideoSource(tmp_path / "Video-MME.tsv", Frames(8), subtitles=True)
    first, other = source.row(0), source.row(2)
    assert first.columns["subtitles"] == "Hello there\nHello there\nBye"  # frames 11, 22 and 55
    assert other.columns["subtitles"] == ""  # this video has none
    ((*pictures, given, question),) = video_mme(first, subtitles=True)
    assert pictures == list(first.pictures)
    choose = (
        "Select the best answer to the following multiple-choice question based on the video. Respond with only the"
        " letter (A, B, C, or D) of the correct option.\n"
    )
    heard = "This video's subtitles are listed below:\nHello there\nHello there\nBye\n"
    assert given == f"\nThese are the frames of a video. {heard}{choose}"
    assert question == "Question: How many in 0?\nA. one\nB. two\nC. three\nD. four\nAnswer: "
    assert video_mme(first)[0][-2] == f"\nThese are the frames of a video. {choose}"


def test_what_cannot_be_read_is_the_samples_error(tmp_path: Path) -> None:
    write_video(tmp_path / "outside.mp4")
    folder = tmp_path / "set"
    whole = write_video(folder / "whole.mp4").read_bytes()
    (folder / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    place = whole.index(b"mdat") + 4
    hurt = bytearray(whole)
    hurt[place : place + len(whole) // 3] = bytes(len(whole) // 3)
    (folder / "hurt.mp4").write_bytes(hurt)
    (folder / "text.mp4").write_text("no video")
    (folder / "list.mp4").write_text(f"#EXTM3U\n#EXTINF:1,\n{tmp_path}/outside.mp4\n#EXT-X-ENDLIST\n")
    (folder / "other.mp4").write_text(f"ffconcat version 1.0\nfile {tmp_path}/outside.mp4\n")
    (folder / "link.mp4").symlink_to(tmp_path / "outside.mp4")
    named = ["cut.mp4", "hurt.mp4", "text.mp4", "list.mp4", "other.mp4", "none.mp4", "link.mp4", "../outside.mp4"]
    rows = [[str(place), "x", name, "what?"] for place, name in enumerate([*named, "whole.mp4", ""])]
    path = write_table(folder / "t.tsv", ["index", "video", "video_path", "question"], rows)
    source = VideoSource(path, Frames(4))
    for position, name in enumerate(named):
        with pytest.raises(SampleError, match=r"t\.tsv, line") as raised:
            source.row(position)
        assert ("outside the folder of videos" in str(raised.value)) == (name in ("link.mp4", "../outside.mp4"))
    assert len(source.row(8).pictures) == 4
    with pytest.raises(SampleError, match=r"video/x\.mp4"):
        source.row(9)
    with pytest.raises(DefinitionError, match="above 0"):
        Frames(8, 1.0)


def test_the_identity_is_of_the_video_the_choice_and_the_decoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = video_questions(tmp_path)

    def found(frames: Frames | None = None, subtitles: bool = False) -> str:
        return VideoSource(path, frames or Frames(8), subtitles=subtitles).digests([0])[0]

    plain = found()
    assert found() == plain
    digests = {plain, found(Frames(9)), found(Frames(fps=1)), found(subtitles=True)}
    (tmp_path / "subtitle" / "a.srt").write_text("")
    assert found() == plain
    digests.add(found(subtitles=True))
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "0" if name == "av" else version(name))
    digests.add(found())
    monkeypatch.undo()
    write_video(tmp_path / "video" / "a.mp4", 99)
    digests.add(found())
    assert len(digests) == 7


def test_without_pyav_one_line_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[video\]'"):
        VideoSource(video_questions(tmp_path), Frames(8))
