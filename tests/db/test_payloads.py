"""Payloads: arrays as bytes and back, and outputs that are kept at an fsspec URL instead of in the database."""

from __future__ import annotations

import errno
import gc
import os
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
import sqlalchemy as sa
import torch
from fsspec.implementations.memory import MemoryFileSystem
from tables import cases
from unsteady import ClientError, Unsteady, register_unsteady

from testbed.db.payloads import encoding
from testbed.db.payloads.encoding import decode, encode, result_dtype, widen_bfloat16
from testbed.db.store import Store
from testbed.db.upkeep.garbage import Garbage, garbage
from testbed.entities import Chunk
from testbed.errors import CorruptOutputError, StoreError
from testbed.identity.describe import digest_bytes

DTYPES = ["float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "uint16", "bool", "complex64"]


# Bytes ------------------------------------------------------------------------------------------------------------


def drawn(seed: int) -> np.ndarray[Any, Any]:
    """An array of random bits, dtype, shape, byte order and memory layout."""
    draw = np.random.default_rng(seed)
    dtype = np.dtype(DTYPES[seed % len(DTYPES)])
    shape = tuple(int(length) for length in draw.integers(0 if seed % 7 == 0 else 1, 6, int(draw.integers(1, 5))))
    if dtype.kind == "b":
        array = draw.random(shape) < 0.5
    else:
        array = np.frombuffer(draw.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    if seed % 3 == 1:
        array = array.T
    if seed % 3 == 2:
        array = array[::-1]
    return array.astype(dtype.newbyteorder(">")) if seed % 4 == 3 else array


@cases("seed", range(44))
def test_any_array_is_raw_little_endian_bytes_in_c_order_and_comes_back(seed: int) -> None:
    array = drawn(seed)
    payload = encode(array)
    little = array.astype(array.dtype.newbyteorder("<"))
    assert bytes(payload.data) == little.tobytes(order="C")
    assert payload.checksum == digest_bytes(bytes(payload.data))
    assert payload.dtype == array.dtype.name
    back = decode(bytes(payload.data), payload.dtype, payload.count, payload.shape)
    assert back.dtype == little.dtype == result_dtype(payload.dtype)
    assert back.shape == array.shape == (payload.count, *payload.shape)
    assert back.tobytes() == little.tobytes()
    if back.size:
        with pytest.raises(ValueError, match="read-only"):
            back[...] = 1


def test_the_bytes_of_known_numbers() -> None:
    payload = encode(np.array([[1.0, -2.0]], dtype=">f4"))
    assert bytes(payload.data) == b"\x00\x00\x80\x3f\x00\x00\x00\xc0"
    assert (payload.dtype, payload.count, payload.shape) == ("float32", 1, (2,))


def test_bytes_of_another_length_are_not_taken_for_the_array() -> None:
    with pytest.raises(CorruptOutputError, match="reshape"):
        decode(b"\0" * 12, "float32", 2, (2,))


def test_every_bfloat16_is_widened_as_torch_does() -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    ours = widen_bfloat16(bits)
    theirs = torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16).float().numpy()
    assert ours.dtype == np.float32
    assert (ours.view(np.uint32) == theirs.view(np.uint32)).all()


@pytest.mark.parametrize(
    "values",
    [np.array([{"a": 1}, None], dtype=object), np.array(["a", "bb"]), np.array([b"a"]), np.zeros(2, [("a", "f4")])],
    ids=["objects", "texts", "bytes", "records"],
)
def test_what_cannot_be_read_again_is_refused(values: Any) -> None:
    with pytest.raises((TypeError, ValueError, StoreError)):
        encode(values)


# Outputs at a URL -------------------------------------------------------------------------------------------------


PLACES = (("sqlite", "file"), ("postgres", "path"), ("sqlite", "memory"))


@pytest.fixture(params=PLACES, ids=" ".join)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A database, and where outputs lie: each of both, but not each pair."""
    pair: tuple[str, str] = request.param
    return pair


@pytest.fixture
def backend(place: tuple[str, str]) -> str:
    return place[0]


@pytest.fixture
def payload_url(place: tuple[str, str], tmp_path: Path) -> Iterator[str]:
    """A place for outputs, which need not exist yet."""
    folder = tmp_path / "lab storage ü" / "outputs"
    if place[1] == "memory":
        yield f"memory://{uuid.uuid4().hex}/outputs"
        fsspec.filesystem("memory").store.clear()
    else:
        yield f"file://{folder}" if place[1] == "file" else str(folder)


@pytest.fixture
def outside(store_url: str, payload_url: str) -> Iterator[Store]:
    """A store whose outputs lie elsewhere."""
    with Store.open(store_url, "write", payload_url) as store:
        yield store


def files(url: str) -> list[str]:
    system, path = fsspec.core.url_to_fs(url)
    return sorted(system.find(path)) if system.exists(path) else []


def test_outputs_go_to_the_url_and_come_back(outside: Store, builder: Any, payload_url: str, raw: Any) -> None:
    values = builder(outside).logits(10)
    evaluation = builder(outside).begin(size=10, dataset=builder(outside).dataset(10))
    size = outside.outputs.append(
        [Chunk(evaluation.id, "logits", start, values[start : start + 5]) for start in (0, 5)]
    )
    assert size == values.nbytes
    assert outside.outputs.read(evaluation.id, "logits").tobytes() == values.tobytes()
    with raw(outside) as connection:
        rows = connection.execute(sa.text("SELECT payload, uri, size_bytes FROM output_chunks ORDER BY start")).all()
    assert [row.payload for row in rows] == [None, None]
    assert [row.size_bytes for row in rows] == [60, 60]
    assert all(row.uri.startswith(payload_url) and evaluation.fingerprint in row.uri for row in rows)
    contents = [fsspec.open(row.uri, "rb").open().read() for row in rows]
    assert b"".join(contents) == values.tobytes()
    assert len(files(payload_url)) == 2
    nothing = builder(outside).begin("nothing", size=0, dataset=builder(outside).dataset(0))
    outside.outputs.append([Chunk(nothing.id, "logits", 0, np.zeros((0, 3), np.float32))])
    assert outside.outputs.read(nothing.id, "logits").shape == (0, 3)
    assert list(outside.maintenance.check()) == []


def test_outputs_go_to_a_far_place_and_come_back_several_at_once(sqlite_store: Store, builder: Any) -> None:
    sent, fetched = threading.Barrier(4, timeout=30), threading.Barrier(7, timeout=30)

    class Far(MemoryFileSystem):
        def _open(self, path: str, mode: str = "rb", **more: Any) -> Any:
            if mode == "wb":
                sent.wait()  # until so many are under way
            elif "logits-0-" not in path:  # the first says what kind of outputs they are
                fetched.wait()
            return super()._open(path, mode, **more)

    fsspec.register_implementation("far", Far, clobber=True)
    with Store.open(str(sqlite_store.database.url.database), "write", f"far://{uuid.uuid4().hex}") as store:
        values = builder(store).logits(8)
        evaluation = builder(store).begin(size=8, dataset=builder(store).dataset(8))
        store.outputs.append([Chunk(evaluation.id, "logits", start, values[start : start + 1]) for start in range(8)])
        assert store.outputs.read(evaluation.id, "logits").tobytes() == values.tobytes()


def test_outputs_at_a_url_are_found_by_who_does_not_know_it(outside: Store, builder: Any, store_url: str) -> None:
    evaluation = builder(outside).complete()
    with Store.open(store_url) as reader:
        assert reader.database.external is None
        assert (reader.outputs.read(evaluation.id, "logits") == builder(outside).logits(seed=evaluation.id)).all()
        assert list(reader.maintenance.check()) == []


def test_outputs_may_lie_partly_in_the_database(outside: Store, store_url: str, builder: Any) -> None:
    values = builder(outside).logits()
    evaluation = builder(outside).begin()
    outside.outputs.append([Chunk(evaluation.id, "logits", 2, values[2:])])
    with Store.open(store_url, "write") as inside:
        inside.outputs.append([Chunk(evaluation.id, "logits", 0, values[:2])])
    assert outside.outputs.read(evaluation.id, "logits").tobytes() == values.tobytes()


def test_the_variable_names_where_outputs_go(
    sqlite_store: Store, builder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTBED_PAYLOADS", f"file://{tmp_path}/by-variable/")
    with Store.open(sqlite_store.full_url, "write") as store:
        builder(store).complete()
        assert len(files(str(tmp_path / "by-variable"))) == 1
    with Store.open(sqlite_store.full_url, "write", f"file://{tmp_path}/given") as store:
        builder(store).complete("other")
        assert len(files(str(tmp_path / "given"))) == 1
    assert len(files(str(tmp_path / "by-variable"))) == 1


@pytest.mark.parametrize("place", ["outputs", "./outputs", "file://outputs"])
def test_outputs_in_a_relative_folder_are_found_from_everywhere(
    sqlite_store: Store, builder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store.open(sqlite_store.full_url, "write", place) as store:
        evaluation = builder(store).complete()
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert len(store.outputs.read(evaluation.id, "logits")) == 4


def test_storing_the_same_outputs_again_makes_no_second_file(outside: Store, builder: Any, payload_url: str) -> None:
    evaluation = builder(outside).begin()
    for _ in range(2):
        outside.outputs.append([Chunk(evaluation.id, "logits", 0, builder(outside).logits())])
    assert len(files(payload_url)) == 1


@pytest.mark.parametrize("content", [None, b"", b"\0" * 48, b"\0" * 10], ids=["lost", "empty", "zeros", "short"])
def test_a_lost_or_changed_file_is_told_and_listed(
    outside: Store, builder: Any, payload_url: str, content: bytes | None
) -> None:
    evaluation = builder(outside).complete()
    system, _ = fsspec.core.url_to_fs(payload_url)
    (file,) = files(payload_url)
    system.rm_file(file) if content is None else system.pipe_file(file, content)
    said = rf"the outputs at .*{evaluation.fingerprint}.* cannot be read" if content is None else "checksum"
    with pytest.raises(CorruptOutputError, match=said):
        outside.outputs.read(evaluation.id, "logits")
    (fault,) = outside.maintenance.check()
    assert (evaluation.fingerprint if content is None else f"evaluation {evaluation.id} (net on val), logits") in fault
    assert outside.results.metrics(evaluation.id), "its metrics are there"
    outside.names.hide("model", "net")
    assert outside.removal.purge() == (1, 1)


def test_a_failed_reading_leaves_no_cursor_to_later_transactions(
    outside: Store, builder: Any, payload_url: str
) -> None:
    """Else it is closed whenever the error is forgotten, which aborts what runs on its connection then."""
    evaluation = builder(outside).complete()
    system, _ = fsspec.core.url_to_fs(payload_url)
    system.rm_file(*files(payload_url))
    try:
        outside.outputs.read(evaluation.id, "logits")
    except CorruptOutputError as error:
        errors = [error]  # keeps what was running
    with outside.outputs.reading() as session:
        session.execute(sa.text("SELECT 1"))
        errors.clear()
        gc.collect()
        assert session.scalar(sa.text("SELECT 2")) == 2


def test_a_place_that_cannot_be_written_is_told_and_nothing_is_stored(
    sqlite_store: Store, builder: Any, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    for url in (f"file://{tmp_path}/file", "nosuchprotocol://bucket/outputs"):
        with Store.open(sqlite_store.full_url, "write", url) as store:
            evaluation = builder(store).begin()
            with pytest.raises(StoreError, match=f"outputs cannot be written to {url}"):
                store.outputs.append([Chunk(evaluation.id, "logits", 0, builder(store).logits())])
            assert store.outputs.stored_ranges([evaluation.id]) == {evaluation.id: []}


def test_purging_deletes_the_files_of_what_was_removed_and_no_other(
    outside: Store, builder: Any, payload_url: str
) -> None:
    build = builder(outside)
    kept, removed = build.complete("kept"), build.complete("removed")
    assert len(files(payload_url)) == 2
    outside.names.hide("model", "removed")
    assert len(files(payload_url)) == 2, "removing hides"
    assert outside.removal.purge() == (1, 1)
    (left,) = files(payload_url)
    assert kept.fingerprint in left
    assert removed.fingerprint not in left
    assert len(outside.outputs.read(kept.id, "logits")) == 4
    assert list(outside.maintenance.check()) == []


def test_a_purge_that_is_refused_deletes_no_file(outside: Store, builder: Any, payload_url: str) -> None:
    build = builder(outside)
    source = build.complete("net", "all")
    build.begin("net", "part", dataset=source.dataset_id, origin="derived", derived_from=source.id)
    outside.removal.hide("net", "all")
    with pytest.raises(StoreError, match="cannot be purged"):
        outside.removal.purge()
    assert len(files(payload_url)) == 1


def test_purging_leaves_the_files_of_a_cell_that_was_run_again(outside: Store, builder: Any) -> None:
    build = builder(outside)
    values = build.logits()
    build.complete("net", "val", fingerprint="f", logits=values)
    outside.removal.hide("net", "val")
    again = build.complete("net", "val", fingerprint="f", logits=values)
    outside.removal.purge()
    assert outside.outputs.read(again.id, "logits").tobytes() == values.tobytes()


def test_purging_leaves_the_files_of_another_store(
    outside: Store, builder: Any, payload_url: str, tmp_path: Path
) -> None:
    values = builder(outside).logits()
    with Store.create(str(tmp_path / "another.db"), payload_url) as other:
        theirs = builder(other).complete("net", "val", fingerprint="f", logits=values)
        builder(outside).complete("net", "val", fingerprint="f", logits=values)
        outside.removal.hide("net", "val")
        outside.removal.purge()
        assert other.outputs.read(theirs.id, "logits").tobytes() == values.tobytes()


def test_a_file_that_cannot_be_written_to_its_end_is_not_there(
    sqlite_store: Store, builder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store.open(sqlite_store.full_url, "write", str(tmp_path / "outputs")) as outside:
        evaluation = builder(outside).begin()
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            outside.outputs.append([Chunk(evaluation.id, "logits", 0, builder(outside).logits())])
    assert files(str(tmp_path / "outputs")) == []


def test_files_that_no_row_names_are_found_and_those_of_other_stores_told_apart(
    outside: Store, builder: Any, payload_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = builder(outside).complete()
    assert garbage(outside, [payload_url]) == Garbage()
    system, _ = fsspec.core.url_to_fs(payload_url)
    (named,) = files(payload_url)
    folder, _, name = named.rpartition("/")
    orphan, theirs = f"{folder}/logits-4-{'a' * 32}.bin", f"{folder.rpartition('/')[0]}/of-another/{name}"
    for path in (orphan, theirs, f"{folder.rpartition('/')[0]}/of-another/README.txt"):
        system.makedirs(path.rpartition("/")[0], exist_ok=True)
        system.pipe_file(path, b"12345")
    assert garbage(outside).young == 2
    monkeypatch.setattr("testbed.db.upkeep.garbage.AGE_SECONDS", 0.0)
    found = garbage(outside)
    assert [(uri.rpartition("/")[2], size) for uri, size in found.own.items()] == [(orphan.rpartition("/")[2], 5)]
    assert [uri.endswith(f"of-another/{name}") for uri in found.others] == [True]
    for uri in found.own:
        encoding.delete_uri(uri)
    assert not system.exists(orphan)
    assert len(outside.outputs.read(kept.id, "logits")) == 4


# Text -------------------------------------------------------------------------------------------------------------


SAID = [
    {"text": "Käse 🧀\n", "finish_reason": "stop"},
    None,
    {"text": "half a pair \ud83d", "n": [1, 2.5]},
    "plain",
    3,
    [],
]


def test_json_values_come_back_as_they_were() -> None:
    payload = encode(SAID)
    assert (payload.dtype, payload.count, payload.shape) == ("json", len(SAID), ())
    assert payload.checksum == digest_bytes(payload.data)
    back = decode(bytes(payload.data), payload.dtype, payload.count, payload.shape)
    assert back.dtype.hasobject
    assert result_dtype("json").hasobject
    assert list(back) == SAID


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_json_has_no_word_for_is_refused(value: Any) -> None:
    with pytest.raises(StoreError, match="JSON values"):
        encode([value])


def test_text_is_stored_in_chunks_and_read_as_one(sqlite_store: Store, builder: Any) -> None:
    begun = builder(sqlite_store).begin("captioner", size=6)
    sqlite_store.outputs.append([Chunk(begun.id, "text", 0, SAID[:2])])
    sqlite_store.outputs.append([Chunk(begun.id, "text", 2, SAID[2:])])
    assert list(sqlite_store.outputs.read(begun.id, "text")) == SAID
    assert sqlite_store.outputs.kinds(begun.id) == {"text": "json"}


def test_text_of_unreadable_samples_is_none(sqlite_store: Store, builder: Any) -> None:
    begun = builder(sqlite_store).begin("captioner", size=3)
    sqlite_store.outputs.append([Chunk(begun.id, "text", 0, ["a", "b"])], {begun.id: {2: "broken"}})
    assert list(sqlite_store.outputs.read(begun.id, "text")) == ["a", "b", None]


# What goes wrong far away ------------------------------------------------------------------------------------------


@pytest.fixture
def unsteady(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose outputs lie at such a place."""
    register_unsteady(monkeypatch)
    with Store.open(str(sqlite_store.database.url.database), "write", f"unsteady://{uuid.uuid4().hex}/lab") as store:
        yield store


ERRORS = [ClientError("the payload is not completed"), TimeoutError(), ConnectionResetError("by peer"), EOFError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("times", [1, 3])
def test_what_fails_for_a_moment_is_done_again(unsteady: Store, builder: Any, error: Exception, times: int) -> None:
    Unsteady.error, Unsteady.times = error, times
    evaluation = builder(unsteady).complete()
    assert Unsteady.times == 0
    Unsteady.times = times
    values = unsteady.outputs.read(evaluation.id, "logits")
    assert values.tobytes() == builder(unsteady).logits(seed=evaluation.id).tobytes()
    Unsteady.times = times
    assert unsteady.outputs.read_rows(evaluation.id, "logits", [0])[0].tolist() == values[0].tolist()
    assert Unsteady.times == 0


@pytest.mark.parametrize("cut", [1, 3])
def test_an_answer_that_ends_early_is_asked_for_again(unsteady: Store, builder: Any, cut: int) -> None:
    evaluation = builder(unsteady).complete()
    Unsteady.cut = cut
    values = unsteady.outputs.read(evaluation.id, "logits")
    assert values.tobytes() == builder(unsteady).logits(seed=evaluation.id).tobytes()
    Unsteady.cut = 100
    with pytest.raises(CorruptOutputError, match=r"cannot be read: only 0 of \d+ bytes arrived"):
        unsteady.outputs.read(evaluation.id, "logits")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_what_goes_on_failing_is_one_clear_line(unsteady: Store, builder: Any, error: Exception) -> None:
    evaluation = builder(unsteady).complete()
    Unsteady.error, Unsteady.times = error, 10**6
    said = str(error) or type(error).__name__
    with pytest.raises(CorruptOutputError, match=f"the outputs at unsteady://.* cannot be read: .*{said}"):
        unsteady.outputs.read(evaluation.id, "logits")
    with pytest.raises(StoreError, match=f"outputs cannot be written to unsteady://.*{said}"):
        builder(unsteady).complete("other")
    with pytest.raises(StoreError, match=f"the files at unsteady://.* cannot be listed: .*{said}"):
        garbage(unsteady)
    (line,) = [each for each in unsteady.maintenance.check() if "cannot be read" in each]
    assert said in line
    assert "store repair" not in line
    assert "store salvage" not in line
    done = unsteady.maintenance.repair()
    assert (len(done.done), [said in each.text for each in done.left]) == (0, [True])
    tries = 10**6 - Unsteady.times
    list(unsteady.maintenance.check())
    assert 10**6 - Unsteady.times == tries + 1  # while nobody answers, each is asked once
    Unsteady.times = 0
    assert list(unsteady.maintenance.check()) == []


def test_a_place_that_may_not_be_listed_or_is_not_there_is_an_error_of_gc(unsteady: Store, builder: Any) -> None:
    builder(unsteady).complete()
    for error in (PermissionError("Forbidden"), FileNotFoundError("the bucket does not exist")):
        Unsteady.error, Unsteady.times = error, 10**6
        with pytest.raises(StoreError, match=f"the files at unsteady://.* cannot be listed: .*{error}"):
            garbage(unsteady)


def test_another_place_that_may_not_be_listed_is_an_error_of_gc(unsteady: Store, builder: Any) -> None:
    """Such as a bucket that the user names, of which no row says that it is there."""
    builder(unsteady).complete()
    assert garbage(unsteady, ["memory://elsewhere/lab"]) == Garbage()
    other = type("Forbidden", (MemoryFileSystem,), {"protocol": "forbidden", "ls": forbidden})
    fsspec.register_implementation("forbidden", other, clobber=True)
    with pytest.raises(StoreError, match=r"the files at forbidden://elsewhere/lab cannot be listed: .*Access Denied"):
        garbage(unsteady, ["forbidden://elsewhere/lab"])


def forbidden(*given: Any, **more: Any) -> Any:
    raise PermissionError("Access Denied")


@pytest.mark.parametrize("instead", ["nothing", "a file"])
def test_a_folder_of_outputs_that_is_gone_is_an_error_of_gc(
    sqlite_store: Store, builder: Any, tmp_path: Path, instead: str
) -> None:
    folder = tmp_path / "outputs"
    with Store.open(str(sqlite_store.database.url.database), "write", str(folder)) as store:
        builder(store).complete()
        folder.rename(tmp_path / "moved")
        if instead == "a file":
            folder.write_text("not a folder")
        with pytest.raises(StoreError, match=f"the files at .*{folder.name} cannot be listed"):
            garbage(store)


def test_a_place_that_does_not_answer_is_told_once(unsteady: Store, builder: Any) -> None:
    for name in ("a", "b", "c"):
        builder(unsteady).complete(name)
    Unsteady.error, Unsteady.times = TimeoutError(), 10**6
    first, rest = unsteady.maintenance.check()
    assert "evaluation 1 (a on val)" in first
    assert rest.startswith("2 more files of outputs at unsteady://")
    assert unsteady.maintenance.repair().done == []
    Unsteady.error = PermissionError("Forbidden")
    assert len(list(unsteady.maintenance.check())) == 2
    Unsteady.times = 0
    assert list(unsteady.maintenance.check()) == []


def test_files_stored_while_they_are_listed_are_no_garbage(
    unsteady: Store, builder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing may take hours, after which a file is old enough."""
    evaluation = builder(unsteady).begin()
    monkeypatch.setattr("testbed.db.upkeep.garbage.AGE_SECONDS", 0.0)
    builder(unsteady).complete("first")
    whole = Unsteady.find

    def find(self: Unsteady, *given: Any, **more: Any) -> Any:
        unsteady.outputs.append([Chunk(evaluation.id, "logits", 0, builder(unsteady).logits())])
        return whole(self, *given, **more)

    monkeypatch.setattr(Unsteady, "find", find)
    assert garbage(unsteady) == Garbage()


def test_files_that_cannot_be_deleted_are_told_and_the_rest_of_the_purge_is_done(unsteady: Store, builder: Any) -> None:
    builder(unsteady).complete()
    unsteady.removal.hide("net", "val")
    Unsteady.times = 10**6
    left: list[str] = []
    assert unsteady.removal.purge(lambda uri, why: left.append(why))[0] == 1
    assert [why.endswith("cannot be deleted: ClientError: the payload is not completed") for why in left] == [True]


def test_a_purge_asks_a_place_that_does_not_answer_once(unsteady: Store, builder: Any) -> None:
    for name in ("a", "b", "c"):
        builder(unsteady).complete(name)
        unsteady.removal.hide(name, "val")
    Unsteady.error, Unsteady.times = TimeoutError(), 10**6
    left: list[str] = []
    assert unsteady.removal.purge(lambda uri, why: left.append(why))[0] == 3
    assert [why.startswith("not tried, since unsteady://") for why in left] == [False, True, True]
    assert 10**6 - Unsteady.times <= 4


def test_what_is_not_there_or_not_allowed_is_not_tried_again(unsteady: Store, builder: Any) -> None:
    evaluation = builder(unsteady).complete()
    for error in (FileNotFoundError("gone"), PermissionError("forbidden")):
        Unsteady.error, Unsteady.times = error, 10**6
        with pytest.raises(CorruptOutputError, match=str(error)):
            unsteady.outputs.read(evaluation.id, "logits")
        assert Unsteady.times == 10**6 - 1
