"""Rows of a working set: put together from parts, and thinned out."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from toprank.matrices.working_rows import WorkingRows


def parts_of(rng, lengths, d=5, dtype=np.float32):
    return [rng.standard_normal((n, d)).astype(dtype) for n in lengths]


def expected(rows, m):
    signs = np.where(np.arange(len(rows)) < m, 1.0, -1.0)[:, None]
    borders = np.where(signs > 0, [[-1.0, 0.0]], [[0.0, 1.0]])
    return np.hstack([signs * rows.astype(np.float64), borders])


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_become_signed_rows_with_their_borders(sparse):
    parts = parts_of(np.random.default_rng(0), (2, 0, 3, 4))
    rows = np.concatenate(parts)
    working = WorkingRows.of_parts([csr_array(part) if sparse and len(part) else part for part in parts], 5)
    extended = working.extended.toarray() if sparse else working.extended
    np.testing.assert_array_equal(extended, expected(rows, 5))
    kept = np.array([True, False] * 4 + [True])
    some = working.subset(kept)
    assert some.n_positive == 3
    found = [matrix.toarray() if sparse else matrix for matrix in (some.extended, some.B)]
    np.testing.assert_array_equal(found[0], expected(rows, 5)[kept])
    np.testing.assert_array_equal(found[1], expected(rows, 5)[kept, :-2])


def test_dense_parts_are_in_memory_once():
    parts = parts_of(np.random.default_rng(0), [500] * 40, 50, np.float64)
    size = sum(part.nbytes for part in parts)
    tracemalloc.start()
    try:
        copies = [part.copy() for part in parts]
        WorkingRows.of_parts(copies, 10_000)
        assert not copies
        # the copies, and beside them the rows that they become; not a third time
        assert tracemalloc.get_traced_memory()[1] < 2.3 * size
    finally:
        tracemalloc.stop()
