"""Expressions of vectors in pieces: a portion of the rows at a time, and the same numbers as all at once."""

from __future__ import annotations

from operator import getitem

import numpy as np
import pytest

from toprank.matrices.block_expressions import PORTION, Call, Leaf, as_type, evaluate

POSITIVE = Call(np.greater, (Leaf(0), 0.1))
# numbers that no row knows alone are computed once, of all rows
CASES = {
    "row by row": (
        Call(np.where, (POSITIVE, Call(np.multiply, (Leaf(0), Leaf(1))), 2.5)),
        lambda x, y: np.where(x > 0.1, x * y, 2.5),
    ),
    "under a mask": (
        Call(np.exp, (Call(np.subtract, (Call(getitem, (Leaf(0), POSITIVE)), 1.0)),)),
        lambda x, y: np.exp(x[x > 0.1] - 1.0),
    ),
    "beside a sum": (
        Call(np.divide, (Leaf(0), Call(np.dot, (Leaf(0), Leaf(1))))),
        lambda x, y: x / np.dot(x, y),
    ),
    "another type": (Call(as_type, (POSITIVE, np.float32)), lambda x, y: (x > 0.1).astype(np.float32)),
    "a number": (Call(np.dot, (Call(np.abs, (Leaf(0),)), Leaf(1))), lambda x, y: np.dot(np.abs(x), y)),
    "zeros": (Call(np.zeros_like, (Leaf(1),)), lambda x, y: np.zeros_like(y)),
}


@pytest.mark.parametrize("n", [0, 1, PORTION, 3 * PORTION + 5])
@pytest.mark.parametrize("name", CASES)
def test_the_same_as_all_at_once(name, n, rng):
    expression, expected = CASES[name]
    x, y = rng.standard_normal(n), np.broadcast_to(0.5, n)
    with np.errstate(invalid="ignore"):  # no rows have no sum
        found, directly = evaluate(expression, [x, y]), expected(x, y)
    np.testing.assert_array_equal(found, directly, strict=True)


def test_intermediate_results_have_no_more_than_a_portion_of_the_rows(rng):
    sizes = []

    class Watched(np.ndarray):
        def __array_ufunc__(self, ufunc, method, *inputs, **options):
            plain = [np.asarray(x) for x in inputs]
            sizes.append(len(plain[0]))
            return getattr(ufunc, method)(*plain, **options).view(Watched)

    x = rng.random(2 * PORTION + 1)
    found = evaluate(Call(np.sqrt, (Call(np.add, (Leaf(0), 1.0)),)), [x.view(Watched)])
    np.testing.assert_array_equal(np.asarray(found), np.sqrt(x + 1.0))
    assert max(sizes) == PORTION
    assert sum(sizes) == 2 * len(x)
