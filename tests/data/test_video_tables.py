"""Videos as pictures of rows: which frames, what is said meanwhile, and what is refused."""

from __future__ import annotations

import importlib.metadata
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
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


def frame_bytes(path: Path) -> list[bytes]:
    """All frames of a video as Pillow saves them."""
    import av

    with av.open(str(path)) as container:
        return [jpeg(frame.to_image()) for frame in container.decode(video=0)]


def jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG")
    return file.getvalue()


CODECS: dict[str, dict[str, Any]] = {
    "closed groups": {},
    "one group": {"gop": 250},
    "open groups": {"x264-params": "open-gop=1:bframes=5"},  # of which one refers to the one before
    "AV1": {"codec": "libsvtav1", "preset": "12"},
}


@pytest.mark.parametrize("codec", CODECS)
def test_leaving_out_frames_changes_no_pixel_of_the_others(tmp_path: Path, codec: str) -> None:
    path = write_video(tmp_path / "v.mp4", 60, **{"gop": 25, **CODECS[codec]})
    every = frame_bytes(path)
    for count in (2, 3, 17, 60):
        chosen = shown(path, Frames(count, rule="ends"), "x")
        assert [each.data for each in chosen.pictures] == [every[number] for number in chosen.numbers]
    (small, _) = shown(path, Frames(2, area=44 * 33), "x").pictures
    assert small.image().size == (48, 32)  # of 64 x 48, in steps of 16


def test_kept_frames_are_those_of_the_video_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from testbed.data import frame_cache, video_frames

    def decoded() -> list[int]:
        video_frames._shown.cache_clear()
        before = list(counts)
        shown(path, Frames(4), "x")
        return counts[len(before) :]

    counts: list[int] = []
    decode = video_frames._decode
    monkeypatch.setattr(video_frames, "_decode", lambda *given: counts.append(1) or decode(*given))
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    path = write_video(tmp_path / "v.mp4", 30)
    assert [decoded(), decoded()] == [[1], []]
    (kept,) = (tmp_path / "cache" / "frames").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    assert decoded() == [1]  # it was damaged
    write_video(path, 40)
    assert [decoded(), decoded()] == [[1], []]
    assert len(list(kept.parent.iterdir())) == 2
    monkeypatch.setattr(frame_cache, "MOST", kept.stat().st_size)
    shown(path, Frames(3), "x")
    assert kept not in kept.parent.iterdir()


def test_mvbench_takes_frames_of_clips_and_of_folders(tmp_path: Path) -> None:
    write_video(tmp_path / "video" / "v.mp4")
    folder = tmp_path / "video" / "show"
    folder.mkdir()
    for number in range(1, 13):
        Image.new("RGB", (8, 8), (20 * number, 0, 0)).save(folder / f"{number:05d}.jpg", quality=95)
    header = ["index", "video", "prefix", "data_type", "bound", "start", "end", "question", "answer"]
    rows = [
        ["0", "v.mp4", "video/", "video", "False", "", "", "q", "a"],
        ["1", "v.mp4", "video/", "video", "True", "2.0", "6.0", "q", "a"],
        ["2", "v.mp4", "video/", "video", "True", "8.0", "99", "q", "a"],
        ["3", "show", "video/", "frame", "True", "1.0", "3.0", "q", "a"],
        ["4", "show", "video/", "frame", "False", "", "", "q", "a"],
        ["5", "v.mp4", "video/", "video", "True", "now", "6.0", "q", "a"],
        ["6", "gone", "video/", "frame", "False", "", "", "q", "a"],
    ]
    source = VideoSource(write_table(tmp_path / "MVBench.tsv", header, rows), Frames(4, rule="segments"))

    def middles(start: int, end: int) -> list[int]:  # of four parts of these frames, as VLMEvalKit computes them
        size = (end - start) / 4
        return [int(start + size / 2 + np.round(size * number)) for number in range(4)]

    assert numbers(source.row(0)) == middles(0, 99) == [12, 37, 62, 86]
    assert numbers(source.row(1)) == middles(20, 60)
    assert numbers(source.row(2)) == middles(80, 99)
    assert [each.name[-9:-4] for each in source.row(3).pictures] == [f"{number:05d}" for number in middles(3, 9)]
    assert [each.name[-9:-4] for each in source.row(4).pictures] == [f"{number:05d}" for number in middles(1, 12)]
    for position, why in ((5, "not numbers of seconds"), (6, "not a folder of frames")):
        with pytest.raises(SampleError, match=why):
            source.row(position)
    before = source.digests(range(7))
    Image.new("RGB", (9, 9)).save(folder / "00005.jpg")
    after = source.digests(range(7))
    assert [place for place in range(7) if before[place] != after[place]] == [3, 4]


def test_subtitles_that_cannot_be_read_are_the_samples_error(tmp_path: Path) -> None:
    write_video(tmp_path / "videos" / "v.mp4", 20)
    header = ["index", "video", "video_path", "subtitle_path", "duration", "correct_choice", "question"]
    rows = [[str(place), "v", "./videos/v.mp4", f"{place}.json", "2", str(place), "q"] for place in range(3)]
    path = write_table(tmp_path / "LongVideoBench.tsv", header, rows)
    (tmp_path / "subtitles").mkdir()
    (tmp_path / "subtitles" / "0.json").write_text('[{"timestamp": [0.2, null], "text": "all the time"}]')
    (tmp_path / "subtitles" / "1.json").write_text('[{"said": "what?"}]')
    source = VideoSource(path, Frames(2), subtitles="before frames")
    assert [row["answer"] for row in source.targets] == ["A", "B", "C"]
    assert source.row(0).columns["subtitles"] == '[[], ["all the time\\n"], []]'
    for position, why in ((1, "cannot be read: 'start'"), (2, "No such file")):
        with pytest.raises(SampleError, match=why):
            source.row(position)
