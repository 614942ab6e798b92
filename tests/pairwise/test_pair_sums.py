"""The fast sums against extended precision, on inputs chosen to break them."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erfc

from toprank.pairwise import SUMMATIONS, pair_sum
from toprank.pairwise.pair_sums import SeriesParameters

LOGISTIC = ["sigmoid", "reversed_sigmoid", "log_sigmoid", "sigmoid_derivative"]
ALL = [*LOGISTIC, "erfc"]


def phi(function, s):
    """The function in extended precision (erfc: double)."""
    if function == "erfc":
        return erfc(s.astype(np.float64)).astype(np.longdouble)
    decay = np.exp(-np.abs(s))
    if function == "log_sigmoid":
        return np.minimum(s, 0) - np.log1p(decay)
    if function == "sigmoid_derivative":
        return decay / (1 + decay) ** 2
    upper = s > 0 if function == "sigmoid" else s < 0
    return np.where(upper, 1, decay) / (1 + decay)


def reference(function, y, z, q):
    """The sum and the sum of the absolute terms."""
    terms = phi(function, y[:, None].astype(np.longdouble) - z)
    return terms @ q.astype(np.longdouble), np.abs(terms) @ np.abs(q).astype(np.longdouble)


def relative_error(function, y, z, q, result):
    """Largest error as a share of Σ|q φ| at each target; for erfc, which is cut off, as a share of Σ|q|."""
    exact, scale = reference(function, y, z, q)
    if function == "erfc":
        scale = np.full(len(y), np.abs(q).sum())
    error = np.abs(result - exact)
    # results below 1e-290 have fewer digits
    return float(np.max(error / np.maximum(scale, 1e-280)))


def hard_points(name, rng):
    normal = rng.normal(size=400)
    return {
        "normal": (3 * normal, 3 * rng.normal(size=300)),
        "clustered": (
            np.concatenate([1e-6 * normal, 50 + 1e-9 * normal]),
            np.concatenate([1e-4 * normal, 50 + normal]),
        ),
        "spread 1e6": (rng.uniform(-1e6, 1e6, 500), rng.uniform(-1e6, 1e6, 500)),
        "spread 1e6 in clusters": (1e6 * rng.integers(-1, 2, 400) + normal, 1e6 * rng.integers(-1, 2, 400) + normal),
        "spread 1e15": (1e15 * normal, 1e15 * normal),
        "all equal": (np.full(200, 0.3), np.full(500, 0.3)),
        "all equal and far": (np.full(200, -3e7 - 0.1), np.full(500, -3e7 - 0.1)),
        "one and one": (np.array([1.5]), np.array([-2.0])),
        "on the edges of boxes": (np.arange(-9.0, 9.0), np.arange(-9.0, 9.0)),
        "next to the edges": (np.nextafter(np.arange(-9.0, 9.0), 99), np.nextafter(np.arange(-9.0, 9.0), -99)),
        "tails": (np.linspace(-600, 600, 1201), 0.1 * rng.normal(size=5)),
        "tiny numbers": (1e-300 * normal, -1e-310 * normal),
    }[name]


@pytest.mark.covering
@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("signs", ["positive", "mixed", "cancelling"])
@pytest.mark.parametrize(
    "name",
    [
        "normal",
        "clustered",
        "spread 1e6",
        "spread 1e6 in clusters",
        "spread 1e15",
        "all equal",
        "all equal and far",
        "one and one",
        "on the edges of boxes",
        "next to the edges",
        "tails",
        "tiny numbers",
    ],
)
def test_exact_sums_to_1e_12(name, signs, function):
    rng = np.random.default_rng(0)
    y, z = hard_points(name, rng)
    q = rng.random(len(z)) + 0.1
    if signs != "positive":
        q *= rng.choice([-1, 1], len(z))
    if signs == "cancelling":
        z, q = np.concatenate([z, z]), np.concatenate([q, -q * (1 + 1e-9)])
    assert relative_error(function, y, z, q, pair_sum(y, z, q, function=function)) < 1e-12


@pytest.mark.parametrize("function", ["sigmoid", "log_sigmoid"])
def test_rounding_errors_of_many_equal_terms_do_not_pile_up(function):
    n = 1_000_000  # added one by one, 0.1 a million times is wrong by 1e-11
    result = pair_sum([0.3], np.full(n, 0.3), np.full(n, 0.1), function=function)[0]
    assert result == pytest.approx(n * 0.1 * float(phi(function, np.zeros(1))[0]), rel=1e-12)
    series = pair_sum([0.3], np.full(n, 0.3), np.full(n, 0.1), function="erfc", summation="erfc", eps=1e-12)[0]
    assert series == pytest.approx(n * 0.1, rel=1e-12)
    spread = np.arange(100_000) * 40.0
    result = pair_sum([spread[-1] + 40, -40.0], spread, np.full(len(spread), 0.1), function=function)
    exact = [0.1 * len(spread), 0.0] if function == "sigmoid" else [0.0, -0.1 * (spread + 40).sum()]
    np.testing.assert_allclose(result, exact, rtol=1e-12, atol=1e-12)


@settings(max_examples=150)
@given(
    arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e7, 1e7)),
    arrays(np.float64, st.integers(1, 30), elements=st.floats(-60, 60)),
    st.floats(-1e7, 1e7),
    st.sampled_from(ALL),
)
def test_exact_sums_of_any_points(wide, narrow, offset, function):
    sources = np.concatenate([wide, narrow + offset])
    targets = np.concatenate([narrow + offset, wide + 1.0])
    q = np.cos(np.arange(len(sources)))
    assert relative_error(function, targets, sources, q, pair_sum(targets, sources, q, function=function)) < 1e-12


@pytest.mark.parametrize("function", ALL)
@pytest.mark.parametrize("exponent", [39, 41, 47, 50, 51, 52, 53, 54, 60, 900])
def test_points_with_gaps_between_numbers(exponent, function):
    """Around 2⁵³ neighbouring numbers are a box apart, and beyond it farther."""
    rng = np.random.default_rng(exponent)
    bases = [2.0**exponent, -1.37 * 2.0**exponent, 1.999 * 2.0**exponent]
    for base, widest in itertools.product(bases, [0, 3, 40, 40 * 64, 40 * 2**11]):
        steps = np.spacing(abs(base)) * rng.integers(-widest, widest + 1, 200)
        y, z, q = base + steps[:80], base + steps[70:], rng.random(130)
        assert relative_error(function, y, z, q, pair_sum(y, z, q, function=function)) < 1e-12
        if function == "erfc":
            for eps in (1e-3, 1e-7, 1e-12):
                series = pair_sum(y, z, q, function=function, summation="erfc", eps=eps)
                assert relative_error(function, y, z, q, series) < eps


def test_shift_reflection_and_order(rng):
    y, z, q = rng.normal(size=200), 3 * rng.normal(size=300), rng.normal(size=300)
    base = pair_sum(y, z, q)
    np.testing.assert_allclose(pair_sum(y + 1024, z + 1024, q), base, atol=1e-11)
    np.testing.assert_allclose(pair_sum(-y, -z, q, function="reversed_sigmoid"), base, atol=1e-12)
    np.testing.assert_allclose(q.sum() - pair_sum(y, z, q, function="reversed_sigmoid"), base, atol=1e-12)
    order = rng.permutation(300)
    np.testing.assert_allclose(pair_sum(y, z[order], q[order]), base, atol=1e-12)
    np.testing.assert_array_equal(pair_sum(y, z, q), base)


@pytest.mark.parametrize("eps", [10.0**-k for k in range(3, 14)])
@pytest.mark.parametrize("name", ["normal", "clustered", "spread 1e6 in clusters", "spread 1e6", "one and one"])
def test_erfc_series_is_within_eps(name, eps):
    rng = np.random.default_rng(1)
    y, z = hard_points(name, rng)
    for q in (np.ones(len(z)), rng.normal(size=len(z))):
        result = pair_sum(y, z, q, function="erfc", summation="erfc", eps=eps)
        assert relative_error("erfc", y, z, q, result) < eps


@pytest.mark.parametrize("eps", [1e-3, 1e-6, 1e-9, 1e-12])
def test_series_parameters_meet_the_conditions_of_the_paper(eps):
    """The error bound (22) for every distance that the series has to cover, and the cut-off (40) beyond."""
    p = SeriesParameters.of(eps)
    covered = p.cutoff + p.cluster_radius
    series_error = 2 / (np.sqrt(np.pi) * p.h) * erfc((2 * p.n_terms + 1) * p.h)
    image_error = erfc(np.pi / (2 * p.h) - covered)
    assert series_error + image_error < eps
    assert erfc(p.cutoff - p.cluster_radius) <= eps * (1 + 1e-6)
    assert np.ceil(2 * p.cutoff / (2 * p.cluster_radius)) in (11, 12)
    s = np.linspace(-covered, covered, 2001)
    n = 2 * np.arange(p.n_terms) + 1
    series = 1 - 4 / np.pi * np.sin(2 * np.outer(s, n) * p.h) @ (np.exp(-((n * p.h) ** 2)) / n)
    assert np.abs(series - erfc(s)).max() < series_error + image_error + 1e-14


def test_erfc_replaces_the_sigmoid_by_a_normal_distribution(rng):
    y, z, q = 3 * rng.normal(size=400), 3 * rng.normal(size=400), rng.random(400)
    for function in ("sigmoid", "reversed_sigmoid"):
        difference = pair_sum(y, z, q, function=function, summation="erfc") - pair_sum(y, z, q, function=function)
        assert 1e-4 < np.abs(difference).max() / q.sum() < 0.0228
    one = pair_sum(np.linspace(-8, 8, 4001), [0.0], summation="erfc", eps=1e-9)
    worst = np.abs(one - pair_sum(np.linspace(-8, 8, 4001), [0.0])).max()
    assert worst == pytest.approx(0.0227, abs=2e-4)


@pytest.mark.parametrize("function", ALL)
def test_direct_in_blocks(function, rng):
    y, z, q = rng.normal(size=300), rng.normal(size=5000), rng.normal(size=5000)
    assert relative_error(function, y, z, q, pair_sum(y, z, q, function=function, summation="direct")) < 1e-13


@pytest.mark.parametrize("summation", SUMMATIONS)
def test_memory_grows_neither_with_the_pairs_nor_with_the_spread(summation, rng):
    n = 20_000
    y = rng.uniform(-1e6, 1e6, n)
    y[:2] = -1e12, 1e12
    pair_sum(y[:3], y[:3], summation=summation)  # compile outside
    tracemalloc.start()
    pair_sum(y[:200] if summation == "direct" else y, y, summation=summation)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # all pairs would need 8 n² = 160,000 n bytes; boxes over the whole spread, of which those in compiled code are not
    # traced, 1e14 bytes, more than there is
    assert peak < 2000 * n


@pytest.mark.parametrize("summation", SUMMATIONS)
def test_types_and_empty_input(summation):
    assert pair_sum(np.float32([1]), np.float32([0]), summation=summation).dtype == np.float32
    assert pair_sum([1], np.float32([0]), summation=summation).dtype == np.float64
    assert pair_sum([], [1.0], summation=summation).shape == (0,)
    np.testing.assert_array_equal(pair_sum([1.0, 2.0], [], summation=summation), [0, 0])
    np.testing.assert_array_equal(pair_sum([1.0, 2.0], [1.0], [0.0], summation=summation), [0, 0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [1.0]), r"targets must have one dimension, got shape \(1, 1\)"),
        (([1.0], [np.nan, np.inf]), "sources must be finite, but hold 2 NaN"),
        (([1.0], [1.0], [np.nan]), "weights must be finite"),
        (([1.0], [1.0, 2.0], [1.0]), "weights and sources must be equally many, got 1 and 2"),
    ],
)
def test_bad_arrays(arguments, message):
    with pytest.raises(ValueError, match=message):
        pair_sum(*arguments)


def test_huge_numbers():
    far = [1e300, -1e300]
    np.testing.assert_allclose(pair_sum(far, [*far, 0.0]), [2.5, 0.5], rtol=1e-12)
    np.testing.assert_array_equal(
        pair_sum([*far, 1e308], [1e308, 1e308], [0.0, 1e308], summation="direct"), [0, 0, 5e307]
    )
    for summation in ("exact", "erfc"):
        with pytest.raises(ValueError, match=r"at most 1e300 in absolute value, got 0 to 1e\+308; scale them"):
            pair_sum([0.0], [0.0, 1e308], summation=summation, function="erfc")


def test_bad_options():
    with pytest.raises(ValueError, match=r"function must be one of 'sigmoid', .* got 'tanh'"):
        pair_sum([1.0], [1.0], function="tanh")
    with pytest.raises(ValueError, match="summation must be one of 'exact', 'erfc', 'direct', got 'fast'"):
        pair_sum([1.0], [1.0], summation="fast")
    with pytest.raises(ValueError, match="no series for function='log_sigmoid'; use summation='exact'"):
        pair_sum([1.0], [1.0], function="log_sigmoid", summation="erfc")
    with pytest.raises(ValueError, match="eps must be at least 1e-13 and below 1, got 0"):
        pair_sum([1.0], [1.0], eps=0)
