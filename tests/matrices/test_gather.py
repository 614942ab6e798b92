"""Entries of a matrix by a compiled loop."""

import numpy as np
import pytest

from toprank.matrices._gather import gather


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries_are_those_of_numpy(dtype, rng):
    values = rng.standard_normal((50, 70)).astype(dtype)
    rows, columns = rng.integers(0, 50, 30), rng.integers(0, 70, 20)
    out = np.zeros((40, 20))
    gather(values, rows, columns, 0.3, out)
    np.testing.assert_array_equal(out[:30], 0.3 * values[np.ix_(rows, columns)].astype(np.float64))
    assert not out[30:].any()


def test_no_rows_and_no_columns_are_nothing(rng):
    values, none, out = rng.standard_normal((5, 5)), np.zeros(0, np.intp), np.full((2, 2), 7.0)
    gather(values, none, np.arange(2), 1.0, out)
    gather(values, np.arange(2), none, 1.0, out)
    assert (out == 7.0).all()
