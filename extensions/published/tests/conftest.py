"""Published files, written by the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from built_stores import backend, build, builder, postgres_store_url, raw, store_url  # noqa: F401

from testbed.claims.document import read_document
from testbed.db.store import Store
from testbed.extensions.published.adding import FileClaims, add
from testbed.extensions.published.mapped import read_map

Reader = Callable[..., FileClaims]


@pytest.fixture
def publish(tmp_path: Path, empty_store: Store) -> Reader:
    """A function that writes a file and adds it to the store."""

    def write(path: str, text: str, *words: str, source: str = "theirs") -> FileClaims:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return add(empty_store, [read_document(file)], source, read_map(words))

    return write


@pytest.fixture
def empty_store(tmp_path: Path) -> Store:
    """A store with nothing in it."""
    return Store.create(str(tmp_path / "claims.db"))
