"""Which files are complete, and in which order they come."""

from __future__ import annotations

from testbed.extensions.watching.files import SECONDS_BETWEEN, TRIES, Files
from testbed.stored_results.checkpoint_steps import CheckpointFile, checkpoint_of

FILES = [CheckpointFile(f"/r/a/epoch_{step}.pt", checkpoint_of(f"/r/a/epoch_{step}.pt")) for step in range(4)]


def test_a_file_is_complete_when_it_stays_as_it_is():
    files = Files(settle=10)
    one = FILES[1]
    files.look(100, {one: (5, 100)})
    files.look(108, {one: (9, 108)})
    assert files.next(117) is None
    assert files.next(118) == one
    old = Files(settle=10)
    old.look(100, {one: (5, 60)})
    assert old.next(100) == one  # it has not changed for long when the watch begins
    ahead = Files(settle=10)
    ahead.look(100, {one: (5, 5000)})  # by the clock of the machine that keeps the files
    assert (ahead.next(109), ahead.next(110)) == (None, one)


def test_a_marker_says_it_alone():
    files = Files(settle=10)
    files.look(100, {FILES[1]: (5, 0)})
    assert files.next(1000, marked=set()) is None
    assert files.next(100, marked={FILES[1].path}) == FILES[1]


def test_steps_come_in_order_or_the_newest_first():
    stamps = {FILES[step]: (5, 0.0) for step in (3, 1, 2)}
    for latest, order in ((False, [1, 2, 3]), (True, [3, 2, 1])):
        files = Files(settle=10, latest=latest)
        files.look(100, stamps)
        taken = []
        while (one := files.next(100)) is not None:
            taken.append(one.checkpoint.step)
            files.done(one)
        assert taken == order


def test_an_overwritten_file_is_evaluated_again():
    files = Files(settle=10)
    files.look(100, {FILES[1]: (5, 0)})
    files.done(FILES[1])
    assert files.look(101, {FILES[1]: (5, 0)}) == []
    assert files.next(200) is None
    (line,) = files.look(300, {FILES[1]: (5, 299)})
    assert "written again" in line
    assert (files.next(305), files.next(310)) == (None, FILES[1])


def test_deleted_files_are_counted_if_they_were_waiting():
    files = Files(settle=10)
    files.look(100, {FILES[1]: (5, 0), FILES[2]: (5, 0)})
    files.done(FILES[1])
    (line,) = files.look(101, {})
    assert line == "/r/a/epoch_2.pt was deleted before it was evaluated"
    assert files.gone == 1


def test_a_torn_file_is_tried_again_and_given_up_until_it_changes():
    files, now = Files(settle=10), 100.0
    one = FILES[1]
    files.look(now, {one: (5, 0)})
    for attempt in range(TRIES):
        assert files.next(now) == one
        assert files.failed(one, now) == (attempt < TRIES - 1)
        assert files.next(now + SECONDS_BETWEEN - 1) is None
        now += SECONDS_BETWEEN
    assert files.next(now) is None
    files.look(now, {one: (9, now)})
    assert files.next(now + 10) == one


def test_a_second_file_of_a_step_is_left_out_and_does_not_keep_the_watch_awake():
    files = Files(settle=10)
    other = CheckpointFile("/r/a/x_epoch_1.pt", checkpoint_of("/r/a/x_epoch_1.pt"))
    files.look(100, {FILES[1]: (5, 0)})
    (line,) = files.look(200, {FILES[1]: (5, 0), other: (5, 0)})
    assert "both have epoch 1" in line
    assert files.ready(300) == [FILES[1]]
    assert files.look(300, {FILES[1]: (5, 0), other: (5, 0)}) == []
    assert files.changed == 200
