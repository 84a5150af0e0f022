"""Passes and shards: what is read together, and which ranges are left to do."""

from __future__ import annotations

import random
from itertools import count

import pytest

from testbed.graph.fuse import MIN_CHUNK
from testbed.graph.passes import Pass, PassCell, chunk_size, missing, shards_of


@pytest.mark.parametrize("batch_size", [1, 7, 64, 100, 255, 256, 257, 1000])
def test_a_chunk_is_the_smallest_multiple_of_the_batch_that_is_large_enough(batch_size):
    chunk = chunk_size(batch_size, MIN_CHUNK)
    assert chunk % batch_size == 0
    assert chunk >= MIN_CHUNK > chunk - batch_size


@pytest.mark.parametrize(
    ("size", "stored", "chunk", "expected"),
    [
        (10, [], 4, [(0, 4), (4, 8), (8, 10)]),
        (10, [(0, 10)], 4, []),
        (10, [(0, 4)], 4, [(4, 8), (8, 10)]),
        (10, [(4, 8)], 4, [(0, 4), (8, 10)]),
        (10, [(0, 3)], 4, [(3, 4), (4, 8), (8, 10)]),
        (10, [(1, 2), (5, 6)], 4, [(0, 1), (2, 4), (4, 5), (6, 8), (8, 10)]),
        (10, [(0, 12)], 4, []),
        (0, [], 4, []),
    ],
)
def test_missing_ranges(size, stored, chunk, expected):
    assert missing(size, stored, chunk) == expected


def test_missing_ranges_and_stored_ones_cover_everything_once():
    generator = random.Random(0)
    for _ in range(200):
        size, chunk = generator.randint(1, 60), generator.randint(1, 20)
        marks = sorted(generator.sample(range(size + 1), min(size + 1, 2 * generator.randint(0, 5))))
        stored = list(zip(marks[::2], marks[1::2], strict=False))
        stored = [(start, stop) for start, stop in stored if start < stop]
        pieces = missing(size, stored, chunk)
        covered = sorted(place for start, stop in [*pieces, *stored] for place in range(start, stop))
        assert covered == list(range(size))
        # A piece never crosses a boundary of the grid, so that batches fall as they would have.
        assert all(start // chunk == (stop - 1) // chunk for start, stop in pieces)


def one_pass(size, chunk, evaluation_ids):
    cells = tuple(PassCell(each, f"model {each}", "setting", "identity") for each in evaluation_ids)
    return Pass(3, cells, source=None, positions=range(size), targets=[], batch_size=chunk, chunk=chunk)  # type: ignore[arg-type]


def test_tasks_name_the_cells_that_lack_a_range():
    shards = shards_of(one_pass(10, 4, [1, 2]), {1: [(0, 4)], 2: []}, count())
    assert [(shard.start, shard.stop, shard.cells) for shard in shards] == [
        (0, 4, (2,)),
        (4, 8, (1, 2)),
        (8, 10, (1, 2)),
    ]
    assert [shard.id for shard in shards] == [0, 1, 2]
    assert {shard.pass_id for shard in shards} == {3}


def test_tasks_for_some_cells_only():
    shards = shards_of(one_pass(10, 10, [1, 2]), {}, count(7), only={2})
    assert [(shard.id, shard.cells) for shard in shards] == [(7, (2,))]
