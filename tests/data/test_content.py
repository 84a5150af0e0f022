"""Digests of files: right, remembered, and noticed when a file changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.data import content
from testbed.data.content import MISSING, ContentDigests, file_digest, remembered_digest
from testbed.data.decode import decode_file
from testbed.errors import DataError, SampleError


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TESTBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(content, "_SETTLED_NS", 0)  # so that no test has to wait


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.png").write_bytes(b"first")
    (folder / "sub" / "b.png").write_bytes(b"second")
    return folder


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def memo_of(root):
    return ContentDigests(root)._memo


def test_digests_are_those_of_the_contents(root):
    assert ContentDigests(root).digests(["sub/b.png", "a.png"]) == [sha(b"second"), sha(b"first")]


def test_a_file_larger_than_a_block_is_digested_whole(root):
    data = os.urandom(content._BLOCK + 12345)
    (root / "big.bin").write_bytes(data)
    assert file_digest(root / "big.bin") == sha(data)


def test_only_what_is_new_is_hashed(root):
    first = ContentDigests(root)
    for names, hashed in ((["a.png"], 1), (["a.png", "sub/b.png"], 2), (["a.png", "sub/b.png"], 2)):
        assert first.digests(names) == [sha(b"first"), sha(b"second")][: len(names)]
        assert first.hashed == hashed
    second = ContentDigests(root)
    assert second.digests(["a.png", "sub/b.png"]) == [sha(b"first"), sha(b"second")]
    assert second.hashed == 0
    assert json.loads(memo_of(root).read_text()).keys() == {"a.png", "sub/b.png"}


@pytest.mark.parametrize(
    ("content", "later"),
    [(b"FIRST", 1), (b"longer than before", 0), (b"first", 1)],
    ids=["of the same size", "at the same time", "only touched"],
)
def test_a_changed_file_is_noticed(root, content, later):
    path = root / "a.png"
    ContentDigests(root).digests(["a.png"])
    time = path.stat().st_mtime_ns + later
    path.write_bytes(content)
    os.utime(path, ns=(time, time))
    again = ContentDigests(root)
    assert again.digests(["a.png"]) == [sha(content)]
    assert again.hashed == 1


def test_a_copy_that_keeps_size_and_time_is_noticed(root, tmp_path):
    path, other = root / "a.png", tmp_path / "other.png"
    ContentDigests(root).digests(["a.png"])
    before = path.stat().st_mtime_ns
    other.write_bytes(b"other")
    os.utime(other, ns=(before, before))
    shutil.copy2(other, path)  # as cp -p: the same inode
    assert path.stat().st_mtime_ns == before
    assert ContentDigests(root).digests(["a.png"]) == [sha(b"other")]
    other.write_bytes(b"third")
    os.utime(other, ns=(before, before))
    other.replace(path)  # as rsync -t: another inode
    assert ContentDigests(root).digests(["a.png"]) == [sha(b"third")]


def test_a_file_that_has_just_changed_is_not_cached(root, monkeypatch):
    monkeypatch.setattr(content, "_SETTLED_NS", 100_000_000)
    path = root / "a.png"
    changed = path.stat().st_ctime_ns
    for later, hashed in ((50_000_000, 1), (50_000_000, 1), (150_000_000, 1), (150_000_000, 0)):
        monkeypatch.setattr(content.time, "time_ns", lambda later=later: changed + later)
        digests = ContentDigests(root)
        assert digests.digests(["a.png"]) == [sha(b"first")]
        assert digests.hashed == hashed


def test_a_missing_file_is_missing_until_it_comes(root):
    digests = ContentDigests(root)
    assert digests.digests(["gone.png", "a.png"]) == [MISSING, sha(b"first")]
    (root / "gone.png").write_bytes(b"here")
    assert ContentDigests(root).digests(["gone.png"]) == [sha(b"here")]
    (root / "gone.png").unlink()
    assert ContentDigests(root).digests(["gone.png"]) == [MISSING]


DAMAGES = [
    *(b"", b"{", b"\xff\xfe\x00", b"[]", b"null", b"7", b'{"a.png": []}', b'{"a.png": ["x", "y", "z"]}'),
    *(b'{"a.png": [1, 2, 3, 4, 5]}', b'{"a.png": null}', b'{"a.png": 5}', b'{"a.png": [SIZE, TIME]}'),
    b'{"a.png": [SIZE, TIME, "00000000000000000000000000000000"]}',  # as an older version wrote it
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_memo_is_healed(root, damage):
    ContentDigests(root).digests(["a.png"])
    stat = (root / "a.png").stat()
    memo_of(root).write_bytes(damage.replace(b"SIZE", b"%d" % stat.st_size).replace(b"TIME", b"%d" % stat.st_mtime_ns))
    for hashed in (1, 0):
        healed = ContentDigests(root)
        assert healed.digests(["a.png"]) == [sha(b"first")]
        assert healed.hashed == hashed


def test_a_file_that_could_not_be_read_once_is_read_the_next_time(root, monkeypatch):
    with monkeypatch.context() as patch:

        def fail(path, stop):
            raise OSError(5, "Input/output error")

        patch.setattr(content, "file_digest", fail)
        assert ContentDigests(root).digests(["a.png"]) == [MISSING]
    assert ContentDigests(root).digests(["a.png"]) == [sha(b"first")]


def test_each_root_has_a_memo_of_its_own(root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.png").write_bytes(b"another")
    assert memo_of(root) != memo_of(other)
    ContentDigests(root).digests(["a.png"])
    assert ContentDigests(other).digests(["a.png"]) == [sha(b"another")]


def test_a_root_is_the_same_however_it_is_written(root, monkeypatch, tmp_path):
    (tmp_path / "link").symlink_to(root)
    monkeypatch.chdir(tmp_path)
    assert memo_of(Path("root")) == memo_of(tmp_path / "link") == memo_of(root / "sub" / "..")


def test_no_files_is_no_work(root):
    digests = ContentDigests(root)
    assert digests.digests([]) == []
    assert not memo_of(root).exists()


def test_remembered_digest_of_one_file(root):
    assert remembered_digest(root / "a.png") == sha(b"first")
    (root / "a.png").write_bytes(b"longer")
    assert remembered_digest(root / "a.png") == sha(b"longer")
    with pytest.raises(DataError, match=r"gone\.png cannot be read"):
        remembered_digest(root / "gone.png")


# What is no file, and Ctrl-C --------------------------------------------------------------------------------------


def test_a_pipe_a_device_or_a_socket_is_no_file_and_nobody_waits_for_it(root):
    os.mkfifo(root / "pipe.png")
    (root / "device.png").symlink_to("/dev/zero")
    (root / "folder.png").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket.png"))
        names = ["a.png", "pipe.png", "device.png", "folder.png", "socket.png"]
        assert ContentDigests(root).digests(names) == [sha(b"first"), *[MISSING] * 4]
    for name in names[1:]:
        with pytest.raises(DataError, match="cannot be read"):
            remembered_digest(root / name)
        with pytest.raises(OSError, match=r"not a regular file|Is a directory|No such device"):
            file_digest(root / name)
        with pytest.raises(SampleError, match="cannot be read"):
            decode_file(root / name)


def test_a_file_that_becomes_a_pipe_meanwhile_is_not_waited_for(root, monkeypatch):
    monkeypatch.setattr(ContentDigests, "_stat", lambda self, name: [1, 2, 3, 4])
    os.mkfifo(root / "pipe.png")
    assert ContentDigests(root).digests(["pipe.png"]) == [MISSING]


@pytest.fixture
def many(root):
    """More files than are read at a time, one of which is large, and their names."""
    names = [f"{number:04d}.png" for number in range(600)]
    for name in names:
        (root / name).write_bytes(name.encode())
    with (root / names[0]).open("r+b") as file:
        file.truncate(1 << 40)  # a hole, which takes minutes to read
    return names


def test_ctrl_c_does_not_wait_for_what_is_left_and_what_was_read_is_kept(root, many):
    ready = root.parent / "ready"
    program = f"""
import os, signal, sys
from pathlib import Path
from testbed.data import content
content._SETTLED_NS = 0
signal.signal(signal.SIGINT, signal.default_int_handler)
digest = content.ContentDigests._digest
def slow(self, name, stop):
    found = digest(self, name, stop)
    if name > "0500":
        Path({str(ready)!r}).touch()
    return found
content.ContentDigests._digest = slow
content.ContentDigests(Path({str(root)!r})).digests({many!r})
"""
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)  # the large file alone would take minutes
    assert "KeyboardInterrupt" in err
    (root / many[0]).write_bytes(b"small")
    again = ContentDigests(root)
    assert again.digests(many)[1:] == [sha(name.encode()) for name in many[1:]]
    assert again.hashed < 300
