"""``eval.py --download``: missing data sets are fetched before the run, and only then."""

from __future__ import annotations

import json

import pytest
from digits_world import write_digits
from web_world import serving


@pytest.fixture
def server(tmp_path):
    folder = write_digits(tmp_path / "away")
    write_digits(tmp_path / "away2").rename(folder / "train2")
    (folder / "train2" / "test").rename(folder / "train")
    files = {
        f"/{path.relative_to(folder.parent).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    with serving(files) as served:
        yield served


def test_missing_data_are_fetched_when_asked_for(server, program, tmp_path):
    (tmp_path / "data").mkdir()
    words = ("--models", "digits-clip", "--eval-settings", "wds/digits", "--executor", "inline", "--data-root", "data")
    done = program("eval.py", *words, code=1)
    assert "testbed run --download gets" in done.stdout
    assert server.asked == []
    words = (*words, "--download", server.url + "/wds_{dataset_cleaned}")
    program("eval.py", *words, "--dry-run", code=1)
    assert server.asked == []
    done = program("eval.py", *words, "--json")
    assert json.loads(done.stdout)["outcomes"][0]["status"] == "complete"
    assert "downloading 1 of 1 shards of digits test from" in done.stderr
    assert " MB)" in done.stderr
    server.asked.clear()
    done = program("eval.py", *words)
    assert server.asked == []
    assert "1 stored" in done.stdout


def test_a_probe_gets_both_of_its_splits(server, program, tmp_path):
    (tmp_path / "data").mkdir()
    words = ("--models", "digits-clip", "--eval-settings", "wds/digits.linear_probe", "--executor", "inline")
    program("eval.py", *words, "--data-root", "data", "--download", server.url + "/wds_{dataset}")
    assert sorted(path.name for path in (tmp_path / "data" / "wds_digits").iterdir() if path.is_dir()) == [
        "test",
        "train",
    ]


def test_what_cannot_be_downloaded_is_told_and_the_rest_runs(program, tmp_path):
    words = (
        "--models",
        "digits-clip",
        "--eval-settings",
        "dummy",
        "wds/digits",
        "mscoco_captions",
        "--executor",
        "inline",
    )
    done = program("eval.py", *words, "--data-root", str(tmp_path), "--download", code=1)
    assert "note: wds/digits was not downloaded" in done.stderr
    assert "HF_HUB_OFFLINE forbids downloads" in done.stderr
    assert "note: testbed cannot download mscoco_captions; it must be below the data root" in done.stderr
    assert "1 complete, 2 failed" in done.stdout
