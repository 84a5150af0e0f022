"""What a store holds, read back; and what the explorer's server is asked."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import fuzzed, mangled, mangled_bytes, odd_values, robust, trial
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sample_world import sample_store
from starlette.testclient import TestClient

from testbed.db.payloads import encoding
from testbed.db.payloads.locations import Location
from testbed.db.store import Store
from testbed.errors import StoreError
from testbed.extensions.explorer.app import LiveExplorer, make_app
from testbed.jsontext import to_json

numbers = st.sampled_from([np.dtype(each) for each in ("<f4", ">f8", "<f2", "<i8", "u1", "?", "<c8")])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@fuzzed()
@given(values=numbers.flatmap(lambda dtype: arrays.arrays(dtype, arrays.array_shapes(max_dims=3, max_side=4))))
def test_arrays_are_read_as_they_were_written(values: Any) -> None:
    payload = encoding.encode(values)
    read = encoding.decode(bytes(payload.data), payload.dtype, payload.count, payload.shape)
    np.testing.assert_array_equal(read, values)
    encoding.verify(bytes(payload.data), payload.checksum, "x")


@fuzzed()
@given(values=st.lists(json_values, max_size=4))
def test_json_values_are_read_as_they_were_written(values: list[Any]) -> None:
    payload = encoding.encode(values)
    assert list(encoding.decode(payload.data, payload.dtype, payload.count, payload.shape)) == values


DTYPES = (
    "float32",
    "<f4",
    "json",
    "bfloat16",
    "int64",
    "O",
    "V8",
    "U4",
    "M8[s]",
    "f4,f4",
    "(2,)f4",
    "x",
    "",
    "f" * 300,
)


@fuzzed()
@given(
    data=mangled_bytes(b"\0" * 24, b'["a", {"b": 1}, null]', b"\x93NUMPY"),
    dtype=st.sampled_from(DTYPES), count=st.sampled_from((0, 1, 3, 6, -1, 10**12, 10**30)),
    shape=st.sampled_from(((), (2,), (-1,), (0,), (10**10, 10**10), (1.5,), ("a",), (None,), [[1]])),
)  # fmt: skip
@example(data=b"\0" * 24, dtype="float32", count=5, shape=())
@example(data=b"\0" * 24, dtype="O", count=3, shape=())
@example(data=b"[1]", dtype="json", count=3, shape=())
def test_damaged_arrays(data: bytes, dtype: str, count: int, shape: Any) -> None:
    with robust(errors=(StoreError,)):
        assert len(encoding.decode(data, dtype, count, shape)) == count


@fuzzed()
@given(data=mangled_bytes(b"\0" * 24), checksum=mangled(encoding.encode(np.zeros(6, np.float32)).checksum))
def test_checksums(data: bytes, checksum: str) -> None:
    with robust(errors=(StoreError,)):
        encoding.verify(data, checksum, "x")
        assert data == b"\0" * 24


@fuzzed()
@given(value=odd_values({"a": [1, 2.5, {"b": None}], "c": "x"}))
def test_json_for_every_reader(value: Any) -> None:
    text = to_json(value)
    assert to_json(json.loads(text)) == text
    assert "NaN" not in text or "NaN" in repr(value)
    if not any(isinstance(each, float) and not math.isfinite(each) for each in _leaves(value)):
        assert json.loads(text) == value


def _leaves(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for each in inner for leaf in _leaves(each)]


@fuzzed(3)
@given(texts=st.lists(st.text(), max_size=3, unique=True), data=st.data())
def test_values_of_items(texts: list[str], data: st.DataObject, tmp_path: Path, sqlite_template: Path) -> None:
    values = [data.draw(json_values) for _ in texts]
    with (
        trial(tmp_path, sqlite_template.parent) as folder,
        Store.open(f"sqlite:///{shutil.copy(sqlite_template, folder / 'store.db')}", "write") as store,
    ):
        store.items.put("node", texts, values)
        assert store.items.read_answers("node", texts) == values
        assert store.items.lacking("node", [*texts, "another one"]) in (["another one"], [])


# Files that rows name ------------------------------------------------------------------------------------------------


@fuzzed()
@given(
    uri=mangled("/lab/f-01234567/logits-0-aa.bin", "sftp://k:s@b/f-01234567/logits-0-aa.bin", "file:///etc/passwd"),
    kind=mangled("logits", ".."), start=st.sampled_from((0, -1, 10**30)), checksum=mangled("aa", "../x"),
    size=st.sampled_from((0, 24, -1, 2**62, None, "x", 1.5)),
)  # fmt: skip
@example(uri="/dev/zero", kind="", start=0, checksum="", size=2**62)
@example(uri="//../../logits-0-aa.bin", kind="logits", start=0, checksum="aa", size=1)
@example(uri="file:///dev/zero::/f/logits-0-aa.bin", kind="logits", start=0, checksum="aa", size=1)
def test_places_of_outputs(uri: str, kind: str, start: int, checksum: str, size: Any) -> None:
    place = Location(uri, kind, start, checksum, size)
    with contextlib.suppress(StoreError):  # whatever has the name of outputs may be asked for, and is not there
        encoding.read(place)
    if place.is_deletable("f", "f-01234567", ()):
        assert uri.endswith(f"/f-01234567/{kind}-{start}-{checksum}.bin")
        assert "::" not in uri
        assert "/" not in kind + checksum


# The explorer -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    url, catalog = sample_store(tmp_path_factory.mktemp("explored"))
    served = LiveExplorer(url, catalog, None, "x.db")
    with TestClient(make_app(served, "127.0.0.1"), base_url="http://127.0.0.1") as client:
        yield client
    served.close()


PATHS = (
    *("/", "/sample.js", "/data/index.json", "/data/samples/1.json", "/data/samples/1/chunk/0.json"),
    *("/pictures/1/0.jpg", "/pictures/1/0-clean.jpg", "/../etc/passwd", "/data/../../x.js", "/pictures/-1/1.jpg"),
    "/data/samples/1/details/1/0.json",
)


@fuzzed(2)
@given(path=mangled(*PATHS))
@example(path="/pictures/1/" + "9" * 30 + ".jpg")
@example(path="/pictures/" + "9" * 30 + "/1.jpg")
@example(path="/pictures/1/" + "9" * 5000 + ".jpg")
@example(path="/data/samples/" + "9" * 5000 + ".json")
@example(path="/data/samples/1/chunk/" + "9" * 30 + ".json")
def test_paths_of_the_explorer(client: Any, path: str) -> None:
    from urllib.parse import quote

    answer = client.get(quote("/" + path.lstrip("/")[:8000], safe="/%?", errors="replace"))
    assert answer.status_code in (200, 404, 400), answer.text
