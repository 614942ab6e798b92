"""Which two multipliers move, against a plain search; the functions run here as they are written."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from toprank.solvers._pair_choice import (
    Candidates,
    _largest_gain,
    _Model,
    extremes_of_positives,
    extremes_of_thresholds,
)
from toprank.solvers._pair_state import Thresholds

# Few values, so that many are equal, of both signs, tiny and huge, with both zeros and the infinities.
VALUES = st.sampled_from([-np.inf, -1e300, -2.0, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 2.0, 1e300, np.inf])
SIZES = st.integers(1, 12)


def first_of(values, allowed, largest):
    """The number of the first of the extreme values that are allowed, or −1."""
    numbers = np.flatnonzero(allowed)
    if not len(numbers):
        return -1
    extreme = values[numbers].max() if largest else values[numbers].min()
    return int(numbers[values[numbers] == extreme][0])


def with_bits(n):
    values = np.zeros(n)
    return values, values.view(np.int64)


@given(st.data())
def test_extremes_of_positives(data):
    n = data.draw(SIZES)
    s, u = data.draw(arrays(float, n, elements=VALUES)), data.draw(arrays(float, n, elements=st.integers(0, 2)))
    rows = np.asarray(data.draw(st.permutations(range(n))))
    g, bits = with_bits(n)
    high, low = extremes_of_positives(g, bits, u, np.full(n, 2.0), np.full(n, 0.5), 1.0, s, rows)
    np.testing.assert_array_equal(g, 1.0 - s[rows] - 0.5 * u)
    # −0.0 and 0.0 are equal: either may be the first
    for found, allowed, largest in ((high, u < 2, True), (low, u > 0, False)):
        expected = first_of(g, allowed, largest)
        assert found == expected or (allowed[found] and g[found] == g[expected] == 0.0)


@given(st.data())
def test_extremes_of_thresholds(data):
    n = data.draw(SIZES)
    s, b = data.draw(arrays(float, n, elements=VALUES)), data.draw(arrays(float, n, elements=st.integers(0, 2)))
    has_caps = data.draw(st.booleans())
    bound = data.draw(arrays(bool, n)) & (b > 0) & has_caps
    caps = np.full(n, 0.5 if has_caps else np.inf)
    h, bits = with_bits(n)
    room = np.full(n, np.inf)
    given_ = Thresholds(np.arange(n), np.ones(n), caps, np.zeros(n), 0.25, 0.0, b, bound, h, bits, room)
    with np.errstate(invalid="ignore"):  # caps times infinite scores
        high, low, low_bound, bound_slope = extremes_of_thresholds(given_, s, 0.0, 4.0)
        np.testing.assert_allclose(bound_slope, np.sum(0.5 * h[bound]))
    np.testing.assert_array_equal(h, s + 0.25)
    np.testing.assert_array_equal(room, np.where(bound, 0.0, caps * 4.0 - b))
    assert high == first_of(h, ~bound, True)
    assert low == first_of(h, (b > 0) & ~bound, False)
    # one that is infinite is never the smallest to take from
    assert low_bound == first_of(h, bound & (h < np.inf), False)


@given(st.data())
def test_the_partner_has_the_largest_gain(data):
    n = data.draw(SIZES)
    finite = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0])
    slopes, row = (data.draw(arrays(float, n, elements=finite)) for _ in range(2))
    room = data.draw(arrays(float, n, elements=st.sampled_from([0.0, 0.3, np.inf])))
    bound_row, has_bound = np.linspace(0, 0.5, n), data.draw(st.booleans())
    candidates = Candidates(slopes, np.arange(n), np.full(n, 1.5), np.full(n, 0.1), 2.0, room)
    model = _Model(0.5, 1.0, 2.0, 1.0, -2.0, 0.25, 0.3, 1e-12, 1.0, 0.7)
    partner, gain = _largest_gain(*with_bits(n), candidates, model, row, 3.0, bound_row, has_bound)
    value = np.maximum(0.5 + slopes, 0.0)
    bend = np.maximum((2.0 + 1.5 - 2.0 * row + 0.25 * bound_row * has_bound) * 3.0 + 0.3 + 0.2, 1e-12)
    change = np.minimum(np.minimum(value / bend, room), 0.7)
    gains = change * (value - 0.5 * change * bend)
    if gains.max() > 0:
        assert 0 <= partner < n
        np.testing.assert_allclose([gain, gains[partner]], gains.max(), rtol=1e-12)
    else:
        assert (partner, gain) == (-1, 0.0)
