"""pm0 and pm10 by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from testbed.metrics.scorers.frames import pm_accuracy


def frames(*rows):
    """Logits, targets and slices of frames given as (best class, right classes, set, anchor)."""
    logits = np.zeros((len(rows), 4), dtype=np.float32)
    for place, (best, *_) in enumerate(rows):
        logits[place, best] = 1
    return logits, [list(row[1]) for row in rows], [{"set": row[2], "anchor": row[3]} for row in rows]


def metrics(*rows):
    *found, score = pm_accuracy(*frames(*rows))
    return {each.name: each for each in found}, score.values.tolist()


def test_an_anchor_is_right_with_all_its_frames_or_not_at_all():
    found, right = metrics(
        (0, [0], "a", True),  # right, and so are its frames
        (1, [1, 2], "a", False),
        (0, [0], "a", False),
        (2, [2], "b", True),  # right, but one of its frames is wrong
        (2, [2], "b", False),
        (1, [2], "b", False),
        (3, [0], "c", True),  # wrong, though its frame is right
        (0, [0], "c", False),
        (1, [1], "d", True),  # right, without frames
    )
    assert (found["pm0"].value, found["pm0"].n) == (0.75, 4)
    assert (found["pm10"].value, found["pm10"].n) == (0.5, 4)
    assert found["pm0"].stderr == pytest.approx(scipy.stats.sem([1, 1, 0, 1]))
    assert found["pm10"].stderr == pytest.approx(scipy.stats.sem([1, 0, 0, 1]))
    assert right == [1, 1, 1, 1, 1, 0, 0, 1, 1]


def test_the_order_of_frames_does_not_matter():
    rows = [(0, [0], "a", True), (1, [0], "a", False), (2, [2], "b", False), (2, [2], "b", True)]
    assert metrics(*rows)[0] == metrics(*rows[::-1])[0]


def test_a_frame_without_a_right_class_is_wrong():
    found, right = metrics((0, [], "a", True), (1, [1], "b", True), (1, [], "b", False))
    assert (found["pm0"].value, found["pm10"].value) == (0.5, 0.0)
    assert right == [0, 1, 0]


@pytest.mark.parametrize(
    ("logits", "targets"),
    [
        ([[np.nan, 0], [1, 0]], [[0], [0]]),  # NaN is wrong
        ([[0, 0, 0], [0, 0, 0]], [[0], [1]]),  # of equal logits the first class counts
    ],
)
def test_what_is_no_clear_answer(logits, targets):
    slices = [{"set": "a", "anchor": True}, {"set": "b", "anchor": True}]
    pm0, *_ = pm_accuracy(np.array(logits, dtype=np.float32), targets, slices)
    assert pm0.value == 0.5


def test_sets_without_their_anchor_do_not_count():
    found, _ = metrics((0, [0], "a", False), (1, [1], "b", True))
    assert (found["pm0"].n, found["pm0"].value) == (1, 1.0)
    found, _ = metrics((0, [0], "a", False))
    assert (found["pm0"].n, found["pm0"].value) == (0, None)
