"""Who does what next, and what becomes of the tasks of workers that die."""

from __future__ import annotations

import random

from testbed.runner.cells import Pass, PassCell, PassKind, Task
from testbed.runner.scheduler import WAIT, Scheduler


def make_pass(number, cells, models=None):
    models = models or [f"model {number}"]
    members = tuple(PassCell(each, models[index % len(models)], "setting", "") for index, each in enumerate(cells))
    return Pass(number, members, source=None, positions=range(100), targets=[], batch_size=10, chunk=10)  # type: ignore[arg-type]


def make_tasks(pass_id, cells, ranges, first=0):
    return [Task(first + index, pass_id, start, stop, tuple(cells)) for index, (start, stop) in enumerate(ranges)]


def one_pass_with_two_tasks():
    return Scheduler([make_pass(0, [1, 2])], make_tasks(0, [1, 2], [(0, 10), (10, 20)]))


def test_tasks_come_in_order_and_cells_complete_with_their_last_one():
    scheduler = one_pass_with_two_tasks()
    assert scheduler.next_pass(0) == 0
    first, second = scheduler.next_task(0, 0), scheduler.next_task(0, 0)
    assert scheduler.next_task(0, 0) is None
    assert scheduler.task_done(first.id) == []
    assert not scheduler.finished
    assert sorted(scheduler.task_done(second.id)) == [1, 2]
    assert scheduler.finished
    assert scheduler.next_pass(0) is None


def test_an_idle_worker_waits_while_others_work():
    scheduler = one_pass_with_two_tasks()
    tasks = [scheduler.next_task(0, 0), scheduler.next_task(0, 0)]
    assert scheduler.next_pass(1) is WAIT
    for task in tasks:
        scheduler.task_done(task.id)
    assert scheduler.next_pass(1) is None


def test_workers_begin_different_passes_and_then_help_each_other():
    passes = [make_pass(0, [1]), make_pass(1, [2])]
    tasks = make_tasks(0, [1], [(0, 10), (10, 20)]) + make_tasks(1, [2], [(0, 10)], first=2)
    scheduler = Scheduler(passes, tasks)
    assert scheduler.next_pass(0) == 0
    scheduler.next_task(0, 0)
    assert scheduler.next_pass(1) == 1
    scheduler.task_done(scheduler.next_task(1, 1).id)
    assert scheduler.next_task(1, 1) is None
    assert scheduler.next_pass(1) == 0  # the other one's pass


def test_a_worker_rather_stays_with_the_models_it_has_loaded():
    passes = [make_pass(0, [1], ["a"]), make_pass(1, [2], ["b"]), make_pass(2, [3], ["a"])]
    tasks = [Task(index, index, 0, 10, (index + 1,)) for index in range(3)]
    scheduler = Scheduler(passes, tasks)
    assert scheduler.next_pass(0) == 0
    scheduler.task_done(scheduler.next_task(0, 0).id)
    assert scheduler.next_pass(0) == 2


def test_the_task_of_a_dead_worker_goes_to_another_one():
    scheduler = one_pass_with_two_tasks()
    task = scheduler.next_task(0, 0)
    scheduler.task_begun(0, task.id)
    assert scheduler.holds_tasks(0)
    assert scheduler.worker_lost(0) == []
    assert not scheduler.holds_tasks(0)
    again = scheduler.next_task(1, 0)
    assert (again.start, again.stop, again.cells) == (task.start, task.stop, task.cells)
    assert again.attempts == 1


def test_a_task_that_kills_workers_is_split_and_its_guilty_cell_given_up():
    """Cell 1 kills every worker that touches it; cell 2 is innocent."""
    scheduler = Scheduler([make_pass(0, [1, 2])], make_tasks(0, [1, 2], [(0, 10)]))
    given_up, complete, worker = [], [], 0
    while not scheduler.finished:
        assert worker < 20
        scheduler.next_pass(worker)
        task = scheduler.next_task(worker, 0)
        scheduler.task_begun(worker, task.id)
        if 1 in task.cells:
            given_up += scheduler.worker_lost(worker)
        else:
            complete += scheduler.task_done(task.id)
        worker += 1
    assert [each.evaluation_id for each in given_up] == [1]
    assert "samples 0 to 9" in given_up[0].reason
    assert complete == [2]


def test_tasks_that_were_only_taken_ahead_are_not_held_against_their_cells():
    """Cell 1 kills every worker that begins it, each of which has taken the tasks of cell 2 as well."""
    tasks = [*make_tasks(0, [1], [(0, 10)]), *make_tasks(0, [2], [(0, 10), (10, 20)], first=1)]
    scheduler = Scheduler([make_pass(0, [1, 2])], tasks)
    given_up = []
    for worker in range(3):
        taken = [scheduler.next_task(worker, 0) for _ in range(3)]
        assert [(task.start, task.cells) for task in taken] == [(0, (1,)), (0, (2,)), (10, (2,))]
        scheduler.task_begun(worker, taken[0].id)
        given_up += scheduler.worker_lost(worker)
    assert [each.evaluation_id for each in given_up] == [1]
    left = [scheduler.next_task(3, 0), scheduler.next_task(3, 0)]
    assert [task.attempts for task in left] == [0, 0]
    assert [scheduler.task_done(task.id) for task in left] == [[], [2]]


def test_a_worker_that_dies_before_it_computes_anything_blames_nobody():
    scheduler = one_pass_with_two_tasks()
    for worker in range(10):
        scheduler.next_task(worker, 0)
        assert scheduler.worker_lost(worker) == []
    assert scheduler.next_task(10, 0).attempts == 0


def test_a_failed_cell_is_dropped_from_the_tasks_that_are_left():
    scheduler = one_pass_with_two_tasks()
    first = scheduler.next_task(0, 0)
    scheduler.cell_failed(1)
    second = scheduler.next_task(0, 0)
    assert second.cells == (2,)
    assert scheduler.task_done(first.id) == []
    assert scheduler.task_done(second.id) == [2]


def test_tasks_whose_cells_have_all_failed_vanish():
    scheduler = one_pass_with_two_tasks()
    scheduler.cell_failed(1)
    scheduler.cell_failed(2)
    assert scheduler.finished
    assert scheduler.next_pass(0) is None


def test_added_tasks_keep_a_cell_open():
    scheduler = Scheduler([make_pass(0, [1])], make_tasks(0, [1], [(0, 10)]))
    task = scheduler.next_task(0, 0)
    scheduler.add([Task(scheduler.fresh_id(), 0, 10, 20, (1,))])
    assert scheduler.task_done(task.id) == []
    assert scheduler.task_done(scheduler.next_task(0, 0).id) == [1]


def test_whatever_dies_every_cell_completes_once_or_is_given_up():
    generator = random.Random(1)
    for _ in range(100):
        cells = list(range(1, generator.randint(2, 5)))
        ranges = [(start, start + 10) for start in range(0, 10 * generator.randint(1, 4), 10)]
        scheduler = Scheduler([make_pass(0, cells)], make_tasks(0, cells, ranges))
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
                complete += scheduler.task_done(held[worker].pop(0))
            elif (task := scheduler.next_task(worker, 0)) is not None:
                held[worker].append(task.id)
        assert sorted(complete) == sorted(set(cells) - given_up)


def test_texts_of_a_scorer_that_kills_its_workers_are_given_up_for_all_cells_at_once():
    cells = tuple(PassCell(each, "scorer", "setting", "") for each in range(1, 21))
    texts = Pass(
        0, cells, source=None, positions=range(20), targets=[], batch_size=10, chunk=10, kind=PassKind.TEXTS,
        outputs=False, texts=["text"] * 20,
    )  # fmt: skip
    scheduler = Scheduler([texts], make_tasks(0, range(1, 21), [(0, 10), (10, 20)]))
    deaths, given_up = 0, []
    while not scheduler.finished:
        scheduler.next_pass(deaths)
        scheduler.task_begun(deaths, scheduler.next_task(deaths, 0).id)
        given_up += scheduler.worker_lost(deaths)
        deaths += 1
    assert deaths == 3
    assert sorted(each.evaluation_id for each in given_up) == list(range(1, 21))
    assert given_up[0].reason == "the worker died 3 times while the scorer scorer embedded texts"
