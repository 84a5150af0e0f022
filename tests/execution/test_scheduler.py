"""Who does what next, and what becomes of the shards of workers that die."""

from __future__ import annotations

import random

from testbed.execution.scheduler import WAIT, Scheduler
from testbed.graph.nodes import Reads
from testbed.graph.ops import TextEmbeddings
from testbed.graph.passes import Pass, PassCell, Shard


def make_pass(number, cells, models=None):
    models = models or [f"model {number}"]
    members = tuple(PassCell(each, models[index % len(models)], "setting", "") for index, each in enumerate(cells))
    return Pass(number, members, source=None, positions=range(100), targets=[], batch_size=10, chunk=10)  # type: ignore[arg-type]


def make_shards(pass_id, cells, ranges, first=0):
    return [Shard(first + index, pass_id, start, stop, tuple(cells)) for index, (start, stop) in enumerate(ranges)]


def one_pass_with_two_tasks():
    return Scheduler([make_pass(0, [1, 2])], make_shards(0, [1, 2], [(0, 10), (10, 20)]))


def test_workers_begin_different_passes_and_then_help_each_other():
    passes = [make_pass(0, [1]), make_pass(1, [2])]
    shards = make_shards(0, [1], [(0, 10), (10, 20)]) + make_shards(1, [2], [(0, 10)], first=2)
    scheduler = Scheduler(passes, shards)
    assert scheduler.next_pass(0) == 0
    scheduler.next_shard(0, 0)
    assert scheduler.next_pass(1) == 1
    scheduler.shard_done(scheduler.next_shard(1, 1).id)
    assert scheduler.next_shard(1, 1) is None
    assert scheduler.next_pass(1) == 0  # the other one's pass


def test_a_worker_prefers_the_models_it_has_loaded():
    passes = [make_pass(0, [1], ["a"]), make_pass(1, [2], ["b"]), make_pass(2, [3], ["a"])]
    shards = [Shard(index, index, 0, 10, (index + 1,)) for index in range(3)]
    scheduler = Scheduler(passes, shards)
    assert scheduler.next_pass(0) == 0
    scheduler.shard_done(scheduler.next_shard(0, 0).id)
    assert scheduler.next_pass(0) == 2


def test_a_task_that_kills_workers_is_split_and_its_guilty_cell_given_up():
    """Cell 1 kills every worker that touches it; cell 2 is innocent."""
    scheduler = Scheduler([make_pass(0, [1, 2])], make_shards(0, [1, 2], [(0, 10)]))
    given_up, complete, worker = [], [], 0
    while not scheduler.finished:
        assert worker < 20
        scheduler.next_pass(worker)
        shard = scheduler.next_shard(worker, 0)
        scheduler.shard_begun(worker, shard.id)
        if 1 in shard.cells:
            given_up += scheduler.worker_lost(worker)
        else:
            complete += scheduler.shard_done(shard.id)
        worker += 1
    assert [each.evaluation_id for each in given_up] == [1]
    assert "samples 0 to 9" in given_up[0].reason
    assert complete == [2]


def test_tasks_that_were_only_taken_ahead_are_not_held_against_their_cells():
    """Cell 1 kills every worker that begins it, each of which has taken the shards of cell 2 as well."""
    shards = [*make_shards(0, [1], [(0, 10)]), *make_shards(0, [2], [(0, 10), (10, 20)], first=1)]
    scheduler = Scheduler([make_pass(0, [1, 2])], shards)
    given_up = []
    for worker in range(3):
        taken = [scheduler.next_shard(worker, 0) for _ in range(3)]
        assert [(shard.start, shard.cells) for shard in taken] == [(0, (1,)), (0, (2,)), (10, (2,))]
        scheduler.shard_begun(worker, taken[0].id)
        given_up += scheduler.worker_lost(worker)
    assert [each.evaluation_id for each in given_up] == [1]
    left = [scheduler.next_shard(3, 0), scheduler.next_shard(3, 0)]
    assert [shard.attempts for shard in left] == [0, 0]
    assert [scheduler.shard_done(shard.id) for shard in left] == [[], [2]]


def test_a_worker_that_dies_before_it_computes_anything_blames_nobody():
    scheduler = one_pass_with_two_tasks()
    for worker in range(10):
        scheduler.next_shard(worker, 0)
        assert scheduler.worker_lost(worker) == []
    assert scheduler.next_shard(10, 0).attempts == 0


def test_what_a_dead_worker_had_is_computed_carefully_also_when_it_is_cut():
    scheduler = one_pass_with_two_tasks()
    for worker in range(2):
        shard = scheduler.next_shard(worker, 0)
        assert shard.careful == (worker == 1)
        scheduler.shard_begun(worker, shard.id)
        scheduler.worker_lost(worker)
    parts = [scheduler.next_shard(2, 0) for _ in range(2)]
    assert [(shard.cells, shard.careful) for shard in parts] == [((1,), True), ((2,), True)]
    assert not scheduler.next_shard(2, 0).careful


def test_a_failed_cell_is_dropped_from_the_tasks_that_are_left():
    scheduler = one_pass_with_two_tasks()
    first = scheduler.next_shard(0, 0)
    scheduler.cell_failed(1)
    second = scheduler.next_shard(0, 0)
    assert second.cells == (2,)
    assert scheduler.shard_done(first.id) == []
    assert scheduler.shard_done(second.id) == [2]


def test_added_tasks_keep_a_cell_open():
    scheduler = Scheduler([make_pass(0, [1])], make_shards(0, [1], [(0, 10)]))
    shard = scheduler.next_shard(0, 0)
    scheduler.add([Shard(scheduler.fresh_id(), 0, 10, 20, (1,))])
    assert scheduler.shard_done(shard.id) == []
    assert scheduler.shard_done(scheduler.next_shard(0, 0).id) == [1]


def test_whatever_dies_every_cell_completes_once_or_is_given_up():
    generator = random.Random(1)
    for _ in range(100):
        cells = list(range(1, generator.randint(2, 5)))
        ranges = [(start, start + 10) for start in range(0, 10 * generator.randint(1, 4), 10)]
        scheduler = Scheduler([make_pass(0, cells)], make_shards(0, cells, ranges))
        complete, given_up, steps = [], set(), 0
        held = {0: [], 1: [], 2: []}
        while not scheduler.finished:
            steps += 1
            assert steps < 5000
            worker = generator.randrange(3)
            if generator.random() < 0.1:
                given_up |= {each.evaluation_id for each in scheduler.worker_lost(worker)}
                held[worker] = []
            elif held[worker] and generator.random() < 0.6:
                complete += scheduler.shard_done(held[worker].pop(0))
            elif (shard := scheduler.next_shard(worker, 0)) is not None:
                held[worker].append(shard.id)
        assert sorted(complete) == sorted(set(cells) - given_up)


def test_texts_of_a_scorer_that_kills_its_workers_are_given_up_for_all_cells_at_once():
    cells = tuple(PassCell(each, "scorer", "setting", "") for each in range(1, 21))
    texts = Pass(
        0, cells, source=None, positions=range(20), targets=[], batch_size=10, chunk=10, reads=Reads.TEXTS,
        op=TextEmbeddings("en"),
    )  # fmt: skip
    scheduler = Scheduler([texts], make_shards(0, range(1, 21), [(0, 10), (10, 20)]))
    deaths, given_up = 0, []
    while not scheduler.finished:
        scheduler.next_pass(deaths)
        scheduler.shard_begun(deaths, scheduler.next_shard(deaths, 0).id)
        given_up += scheduler.worker_lost(deaths)
        deaths += 1
    assert deaths == 3
    assert sorted(each.evaluation_id for each in given_up) == list(range(1, 21))
    assert given_up[0].reason == "the worker died 3 times while scorer embedded texts"


def test_other_workers_wait_while_the_first_makes_what_all_need():
    alone = Pass(0, (PassCell(1, "model", "setting", ""),), None, range(30), [], 10, 10, alone=True)
    scheduler = Scheduler([alone], make_shards(0, [1], [(0, 10), (10, 20), (20, 30)]))
    assert scheduler.next_pass(0) == 0
    first = scheduler.next_shard(0, 0)
    assert scheduler.next_pass(1) is WAIT
    assert scheduler.next_shard(0, 0).start == 10  # the first worker reads ahead
    scheduler.shard_done(first.id)
    assert scheduler.next_pass(1) == 0


def test_another_worker_goes_on_when_the_first_one_dies_alone():
    alone = Pass(0, (PassCell(1, "model", "setting", ""),), None, range(30), [], 10, 10, alone=True)
    scheduler = Scheduler([alone], make_shards(0, [1], [(0, 10)]))
    scheduler.next_pass(0)
    scheduler.next_shard(0, 0)
    scheduler.worker_lost(0)
    assert scheduler.next_pass(1) == 0


def test_what_waits_for_a_network_occupies_no_device():
    served = Pass(1, (PassCell(2, "served", "setting", ""),), None, range(10), [], 10, 10, resource="network")
    shards = make_shards(0, [1], [(0, 10)]) + make_shards(1, [2], [(0, 10)], 1)
    scheduler = Scheduler([make_pass(0, [1]), served], shards)
    assert scheduler.next_pass(0, "device") == 0
    scheduler.shard_done(scheduler.next_shard(0, 0).id)
    assert scheduler.next_pass(0, "device") is WAIT
    assert scheduler.next_pass(1, "network") == 1
    scheduler.shard_done(scheduler.next_shard(1, 1).id)
    assert scheduler.next_pass(0, "device") is scheduler.next_pass(1, "network") is None
