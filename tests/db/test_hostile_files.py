"""Rows of a shared store that name files which are no outputs: nothing else is read, and nothing else is deleted."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import pytest
import sqlalchemy as sa

from testbed.db.payloads import encoding
from testbed.db.payloads.deletion import delete_files, files_of
from testbed.db.store import Store
from testbed.db.upkeep.garbage import garbage
from testbed.errors import CorruptOutputError, StoreError

SIZE = 48  # bytes of the outputs


@pytest.fixture
def backend() -> str:
    """What is read and deleted is decided before the database is asked."""
    return "sqlite"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "outputs"


@pytest.fixture
def outside(store_url: str, place: Path) -> Any:
    with Store.open(store_url, "write", str(place)) as store:
        yield store


@pytest.fixture
def name(raw: Any) -> Callable[..., None]:
    """Changes the row of the only chunk."""

    def change(store: Store, **values: Any) -> None:
        with raw(store) as connection:
            text = ", ".join(f"{column} = :{column}" for column in values)
            connection.execute(sa.text(f"UPDATE output_chunks SET {text}"), values)
            connection.commit()

    return change


def only(folder: Path) -> Path:
    (found,) = (each for each in folder.rglob("*.bin"))
    return found


def forms(victim: Path, own: Path) -> list[str]:
    """URIs by which a row could name a file that is no output of this store."""
    return [
        str(victim),
        f"file://{victim}",
        f"{own.parent}/../../{victim.parent.name}/{victim.name}",
        f"{own}/../../../{victim.parent.name}/{victim.name}",
        f"file://{victim}::{own}",
        f"{victim}::file://{own}",
        f"simplecache::file://{victim}",
        f"local://{victim}",
        f"file:{victim}",
        f"{victim}#/{own.parent.name}/{own.name}",
        f"{victim}?/{own.parent.name}/{own.name}",
        f"{victim}\0/{own.parent.name}/{own.name}",
    ]


FORMS = range(len(forms(Path("/a/b"), Path("/c/d/e"))))


@pytest.fixture(params=FORMS)
def victim(request: Any, builder: Any, outside: Store, place: Path, tmp_path: Path, name: Any) -> Path:
    """A file, with the right content, that the row of the only evaluation was made to name."""
    builder(outside).complete()
    (tmp_path / "home").mkdir()
    path = tmp_path / "home" / "thesis.bin"
    path.write_bytes(only(place).read_bytes())
    name(outside, uri=forms(path, only(place))[request.param])
    return path


def test_no_file_is_read_or_deleted_that_a_row_was_made_to_name(outside: Store, place: Path, victim: Path) -> None:
    (evaluation,) = outside.evaluations.find()
    for ask in (
        lambda: outside.outputs.read(evaluation.id, "logits"),
        lambda: outside.outputs.read_rows(evaluation.id, "logits", [0]),
        lambda: outside.samples.output_rows("logits", {evaluation.id: [0, 1]}),
        lambda: list(outside.samples.output_blocks(evaluation.id, "logits")),
    ):
        with pytest.raises(
            CorruptOutputError,
            match=r"cannot be read: (this is not the file name|only the row refers|no such file|.*null)",
        ):
            ask()
    (fault,) = outside.maintenance.check()
    assert "cannot be read" in fault
    outside.names.hide("model", "net")
    assert outside.removal.purge() == (1, 1)
    assert victim.exists()
    assert only(place).exists()


def test_a_purge_deletes_what_lies_in_the_folder_of_another_store_only_where_the_user_says_so(
    store_url: str, builder: Any, place: Path, tmp_path: Path, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(store_url, "write", str(place)) as store:
        evaluation = builder(store).complete()
        moved = tmp_path / "moved" / f"{evaluation.fingerprint}-{'0' * 8}" / only(place).name
        moved.parent.mkdir(parents=True)
        only(place).rename(moved)
        name(store, uri=str(moved))
        store.names.hide("model", "net")
    with Store.open(store_url, "write") as store:
        left: list[str] = []
        with store.database.writing() as session:  # as a purge would, which is then undone
            files = files_of(store.database, session, sa.true())
        delete_files(files, lambda uri, why: left.append(uri))
        assert left == [str(moved)]
    with Store.open(store_url, "write", str(tmp_path / "moved")) as store:
        store.removal.purge()
    assert not moved.exists()


@pytest.mark.parametrize("of", ["zeros", "pipe", "folder", "socket", "large", "sparse"])
def test_reading_a_row_is_bounded_and_never_waits(
    outside: Store, builder: Any, place: Path, name: Any, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = builder(outside).complete()
    own = only(place)
    own.unlink()
    if of == "zeros":
        own.symlink_to("/dev/zero")
    elif of == "pipe":
        os.mkfifo(own)
    elif of == "folder":
        own.mkdir()
    elif of == "socket":
        import socket

        monkeypatch.chdir(own.parent)
        socket.socket(socket.AF_UNIX).bind(own.name[-100:])
        Path(own.name[-100:]).rename(own)
    else:
        with own.open("wb") as file:
            file.truncate(10**12)
        if of == "sparse":
            name(outside, size_bytes=SIZE)
    done: list[Any] = []

    def ask() -> None:
        for each in (
            lambda: outside.outputs.read(evaluation.id, "logits"),
            lambda: outside.outputs.read_rows(evaluation.id, "logits", [0]),
            lambda: list(outside.samples.output_blocks(evaluation.id, "logits")),
        ):
            try:
                each()
            except CorruptOutputError as error:
                done.append(error)
        done.append(list(outside.maintenance.check()))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert len(done) == 4
    assert len(done[3]) == 1


@pytest.mark.parametrize("size", [-1, 0, SIZE - 1, SIZE + 1, 2**40, 2**62])
def test_a_wrong_length_in_the_row_is_a_fault_and_takes_no_memory(
    outside: Store, builder: Any, place: Path, name: Any, size: int
) -> None:
    builder(outside).complete()
    name(outside, size_bytes=size)
    (fault,) = outside.maintenance.check()
    assert "logits" in fault


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "sftp", "smb", "github", "hdfs", "data", "zip", "nosuch"])
def test_a_row_alone_makes_nobody_connect_to_anywhere(
    outside: Store, builder: Any, place: Path, name: Any, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = builder(outside).complete()
    own = only(place)
    monkeypatch.setattr(fsspec, "open", lambda *given, **more: pytest.fail("it is opened"))
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *given, **more: pytest.fail("it is opened"))
    name(outside, uri=f"{scheme}://169.254.169.254/outputs/{own.parent.name}/{own.name}")
    with pytest.raises(CorruptOutputError, match=f"set TESTBED_PAYLOADS to a URL of {scheme}"):
        outside.outputs.read(evaluation.id, "logits")
    assert "cannot be read" in next(iter(outside.maintenance.check()))


def test_garbage_is_never_looked_for_where_only_a_row_says_so(
    outside: Store, builder: Any, place: Path, tmp_path: Path, name: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation = builder(outside).complete()
    own = only(place)
    home = tmp_path / "home"
    theirs = [
        home / "models" / "pytorch_model.bin",
        home / "models" / own.name,
        home / f"{evaluation.fingerprint}-{'0' * 8}" / own.name,  # of another store, perhaps
        home / own.parent.name / "thesis.bin",
        home / own.parent.name / "thesis.bin.txt",
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"1")
        os.utime(path, (0, 0))
    for uri in (
        f"{home}/models/any.bin",
        f"{home}/models/{own.name}",
        f"{home}/{evaluation.fingerprint}-{'0' * 8}/{own.name}",
        f"{home}/{own.parent.name}/{own.name}",
    ):
        name(outside, uri=uri)
        assert garbage(outside).own == {}, uri
        assert set(garbage(outside).others) <= {str(own)}, uri  # at the place that the user named
    assert all(path.exists() for path in theirs)


def test_a_file_that_cannot_be_deleted_is_told_and_the_others_go(
    outside: Store, builder: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = builder(outside)
    build.complete("net"), build.complete("other")
    stubborn = sorted(place.rglob("*.bin"))[0]
    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self == stubborn:
            raise PermissionError(13, "Permission denied")
        unlink(self, missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    outside.names.hide("model", "net"), outside.names.hide("model", "other")
    left: list[str] = []
    assert outside.removal.purge(lambda uri, why: left.append(f"{uri}: {why}")) == (2, 2)
    assert len(left) == 1
    assert "Permission denied" in left[0]
    assert sorted(place.rglob("*.bin")) == [stubborn]


# The URL for outputs ----------------------------------------------------------------------------------------------

SECRET = "s3cret"


@pytest.mark.parametrize(
    "url",
    [
        f"s3://AKIAKEY:{SECRET}@bucket/outputs",
        f"sftp://me:{SECRET}@host/outputs",
        f"sftp://me:{SECRET}@host:22/outputs",
        f"ftp://:{SECRET}@host/outputs",
        f"s3://AKIAKEY:{SECRET}/+x@bucket/outputs",
        f"az://container/outputs?sig={SECRET}",
        f"s3://bucket/outputs#token={SECRET}",
        f"simplecache::s3://AKIAKEY:{SECRET}@bucket/outputs",
        f"simplecache::s3://bucket/{SECRET}",
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_shown(store_url: str, url: str) -> None:
    with Store.open(store_url) as store:
        for ask in (
            lambda: Store.open(store_url, "write", url),
            lambda: Store.create(store_url, url),
            lambda: encoding.External(url),
            lambda: garbage(store, [url]),
        ):
            with pytest.raises(StoreError, match="contains a password or parameters") as error:
                ask()
            assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        *("s3://bucket/a:b/c@d", "sftp://me@host:22/outputs", "sftp://me@[::1]:22/outputs"),
        *("abfs://container@account.dfs.core.windows.net/outputs", "file:///mnt/a:b@c?d#e", "/mnt/a:b@c?d#e"),
        "memory://outputs",
    ],
)
def test_a_url_without_a_secret_is_taken(url: str) -> None:
    assert encoding.External(url).base == url


def test_a_secret_that_an_older_testbed_has_stored_is_not_shown(
    outside: Store, builder: Any, place: Path, name: Any
) -> None:
    evaluation = builder(outside).complete()
    own = only(place)
    name(outside, uri=f"sftp://me:{SECRET}@host/outputs/{own.parent.name}/{own.name}")
    with pytest.raises(CorruptOutputError) as error:
        outside.outputs.read(evaluation.id, "logits")
    assert SECRET not in str(error.value)
    assert SECRET not in "".join(outside.maintenance.check())
