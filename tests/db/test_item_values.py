"""Embeddings of texts in the store, on both databases."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import sqlalchemy as sa
import torch

from testbed.db.store import Store
from testbed.errors import CorruptOutputError, ReadOnlyStoreError, StoreError

TEXTS = ["a cat", "a dog", "", " a cat", "ein Käse 🧀", "half a pair \ud83d", "x" * 100_000]


def values(count: int, width: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)


def test_embeddings_come_back_as_they_were_in_the_order_that_is_asked_for(store: Store) -> None:
    given = values(len(TEXTS))
    store.items.put("clip", TEXTS, given)
    np.testing.assert_array_equal(store.items.read("clip", TEXTS), given)
    order = [3, 0, 0, 6, 5]
    read = store.items.read("clip", [TEXTS[place] for place in order])
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, given[order])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_embeddings_keep_their_precision(store: Store, dtype: torch.dtype) -> None:
    given = torch.from_numpy(values(2)).to(dtype)
    store.items.put("clip", TEXTS[:2], given)
    wanted = given.float().numpy() if dtype == torch.bfloat16 else given.numpy()
    np.testing.assert_array_equal(store.items.read("clip", TEXTS[:2]), wanted)


def test_what_is_lacking_is_told_once_and_in_order(store: Store) -> None:
    store.items.put("clip", TEXTS[:2], values(2))
    assert store.items.lacking("clip", ["b", "a dog", "a", "b", "a cat"]) == ["b", "a"]
    assert store.items.lacking("other", ["a cat"]) == ["a cat"]
    assert store.items.lacking("clip", []) == []


def test_more_texts_than_a_statement_takes(store: Store) -> None:
    texts = [f"text {number}" for number in range(2500)]
    given = values(len(texts), 2)
    store.items.put("clip", texts, given)
    assert store.items.lacking("clip", [*texts, "another"]) == ["another"]
    np.testing.assert_array_equal(store.items.read("clip", texts[::-1]), given[::-1])


def test_the_first_embedding_of_a_text_stays(store: Store) -> None:
    first, second = values(2), values(2, seed=1)
    store.items.put("clip", ["a", "b"], first)
    store.items.put("clip", ["b", "c"], second)
    np.testing.assert_array_equal(store.items.read("clip", ["a", "b", "c"]), [first[0], first[1], second[1]])


def test_a_text_that_is_not_embedded_is_an_error_that_says_what_to_do(store: Store) -> None:
    store.items.put("clip", ["a"], values(1))
    with pytest.raises(StoreError, match="1 of 2 texts have no stored embedding; testbed run"):
        store.items.read("clip", ["a", "b"])


def test_embeddings_may_take_the_place_of_others(store: Store) -> None:
    store.items.put("clip", ["a", "b"], values(2))
    store.items.put("clip", ["b", "c"], values(2) + 7)
    store.items.put("clip", ["c", "a"], -values(2)[:, :3], replace=True)
    np.testing.assert_array_equal(store.items.read("clip", ["c", "a"]), -values(2)[:, :3])
    np.testing.assert_array_equal(store.items.read("clip", ["b"]), values(2)[1:])
    with pytest.raises(StoreError, match="although one model computed them"):
        store.items.read("clip", ["a", "b"])


def test_no_texts_are_no_embeddings(store: Store) -> None:
    assert store.items.read("clip", []).shape == (0, 0)
    store.items.put("clip", [], values(0))


def test_damage_is_found(store: Store) -> None:
    store.items.put("clip", ["a", "b"], values(2))
    assert list(store.maintenance.check()) == []
    with store.database.engine.execution_options(testbed_mode="write").connect() as connection, connection.begin():
        connection.execute(
            sa.text("UPDATE item_values SET payload = :bytes WHERE digest = :digest"),
            {
                "bytes": b"\0" * 20,
                "digest": connection.execute(sa.text("SELECT min(digest) FROM item_values")).scalar(),
            },
        )
    with pytest.raises(CorruptOutputError, match="the embedding of the text"):
        store.items.read("clip", ["a", "b"])
    (fault,) = store.maintenance.check()
    assert "the embedding of the text" in fault


def test_reading_does_not_write(store: Store, store_url: str) -> None:
    with Store.open(store_url) as reading, pytest.raises(ReadOnlyStoreError):
        reading.items.put("clip", ["a"], values(1))


def test_two_runs_may_embed_the_same_texts_at_once(store: Store, store_url: str) -> None:
    texts = [f"text {number}" for number in range(300)]
    given = values(len(texts))
    errors: list[BaseException] = []

    def write(order: list[int]) -> None:
        try:
            with Store.open(store_url, "write") as own:
                for start in range(0, len(order), 50):
                    part = order[start : start + 50]
                    own.items.put("clip", [texts[place] for place in part], given[part])
        except BaseException as error:
            errors.append(error)

    orders = [list(range(300)), list(range(299, -1, -1))]
    threads = [threading.Thread(target=write, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    np.testing.assert_array_equal(store.items.read("clip", texts), given)
