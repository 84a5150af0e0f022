"""Which outputs are no numbers to rank."""

import numpy as np

from testbed.metrics.scorers.finite import not_finite


def test_nan_and_infinity_are_found_but_not_a_masked_class():
    inf, nan = np.inf, np.nan
    outputs = np.array([[0, 1], [nan, 1], [inf, 0], [-inf, 0], [-inf, -inf], [nan, inf], [-inf, nan]], np.float32)
    assert not_finite(outputs).tolist() == [False, True, True, False, True, True, True]
    many = np.zeros((10_000, 2, 3), np.float16)
    many[[5, 4096, 9999], 1, 2] = nan
    assert np.flatnonzero(not_finite(many)).tolist() == [5, 4096, 9999]


def test_what_is_no_float_has_nothing_to_find():
    assert not not_finite(np.array(["a", None], dtype=object)).any()
    assert not_finite(np.zeros((0, 4))).tolist() == []
    assert not_finite(np.zeros((2, 0))).tolist() == [False, False]
