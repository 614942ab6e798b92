"""A thinned line keeps what can be seen."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.plots import thin


def columns_of(x, columns, logarithmic):
    """The column of each vertex, plainly."""
    place = x
    if logarithmic:
        place = np.log(np.where(x > 0, x, x[x > 0].min()))
    width = max(place.max() - place.min(), 1e-300)
    column = np.minimum(np.floor((place - place[0]) / width * columns), columns - 1)
    return np.where((x <= 0) & logarithmic, -1, column)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(-9, 9)), min_size=40, max_size=200),
    st.booleans(),
    st.integers(1, 9),
)
def test_every_column_keeps_its_ends_and_extremes(vertices, logarithmic, columns):
    x, y = np.array(sorted([*vertices, (1, 0)], key=lambda v: v[0]), dtype=float).T
    kept = thin(x, y, logarithmic=logarithmic, columns=columns)
    assert np.all(np.diff(kept) > 0)
    assert {0, len(x) - 1} <= set(kept)
    column = columns_of(x, columns, logarithmic)
    for c in np.unique(column):
        rows = np.flatnonzero(column == c)
        chosen = kept[column[kept] == c]
        assert {rows[0], rows[-1]} <= set(chosen)
        assert (y[chosen].min(), y[chosen].max()) == (y[rows].min(), y[rows].max())
        assert len(chosen) <= 4 or len(x) <= 4 * columns


def test_short_lines_stay():
    x = np.arange(10.0)
    np.testing.assert_array_equal(thin(x, x), np.arange(10))


def test_corner_at_zero_survives_on_a_logarithmic_axis():
    """The height at a false positive rate of 0 is the share of positives at the top."""
    x = np.concatenate([np.zeros(1000), np.full(1000, 1e-6), np.linspace(1e-6, 1, 100_000)])
    y = np.linspace(0, 1, len(x))
    kept = thin(x, y, logarithmic=True, columns=50)
    assert 999 in kept
    assert len(kept) <= 2 * 51


@pytest.mark.parametrize("logarithmic", [False, True])
def test_all_at_one_place(logarithmic):
    y = np.sin(np.arange(1000.0))
    kept = thin(np.full(1000, 0.5), y, logarithmic=logarithmic, columns=10)
    assert len(kept) == 4
    assert y[kept].max() == y.max()


def test_a_logarithmic_axis_needs_a_positive_place():
    with pytest.raises(ValueError, match="needs a positive x, but the largest is 0"):
        thin(np.zeros(100), np.arange(100.0), logarithmic=True, columns=10)
