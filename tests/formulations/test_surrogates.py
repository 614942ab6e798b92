"""Surrogates: derivatives, conjugates and inverses against their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from toprank.formulations.surrogates import SURROGATES, SlopeSums, get_surrogate

everywhere = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES)


@everywhere
def test_shape(surrogate):
    z = np.linspace(-6, 6, 2001)
    value = surrogate.value(z)
    assert surrogate.value(np.zeros(1))[0] == pytest.approx(1)
    assert np.all(value >= (z >= 0))  # an upper bound of the 0-1 loss
    assert np.all(np.diff(value) >= 0)
    assert np.all(np.diff(value, 2) >= -1e-9)


@everywhere
def test_derivatives(surrogate, rng):
    z = rng.uniform(-5, 5, 200)
    h = 1e-6
    slope = (surrogate.value(z + h) - surrogate.value(z - h)) / (2 * h)
    bend = (surrogate.derivative(z + h) - surrogate.derivative(z - h)) / (2 * h)
    smooth = np.abs(z + 1) > 1e-3
    np.testing.assert_allclose(surrogate.derivative(z)[smooth], slope[smooth], rtol=1e-6, atol=1e-7)
    smooth &= (np.abs(z + 1.5) > 1e-3) & (np.abs(z + 0.5) > 1e-3)
    np.testing.assert_allclose(surrogate.curvature(z)[smooth], bend[smooth], rtol=1e-6, atol=1e-7)
    assert np.all(surrogate.derivative(z) <= surrogate.max_slope)


@everywhere
@pytest.mark.parametrize("share", [0.01, 0.3, 0.7, 0.99])
def test_conjugate_is_the_supremum(surrogate, share):
    y = share * min(surrogate.max_slope, 3.0)
    found = minimize_scalar(
        lambda z: surrogate.value(np.array(z)) - y * z, bounds=(-50, 50), method="bounded", options={"xatol": 1e-10}
    )
    assert surrogate.conjugate(np.array([y]))[0] == pytest.approx(-found.fun, abs=1e-8)


@everywhere
def test_conjugate_derivatives(surrogate, rng):
    y = rng.uniform(0.05, 0.95, 50) * min(surrogate.max_slope, 3.0)
    h = 1e-6
    slope = (surrogate.conjugate(y + h) - surrogate.conjugate(y - h)) / (2 * h)
    bend = (surrogate.conjugate_derivative(y + h) - surrogate.conjugate_derivative(y - h)) / (2 * h)
    np.testing.assert_allclose(surrogate.conjugate_derivative(y), slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(surrogate.conjugate_curvature(y), bend, rtol=1e-6, atol=1e-8)


@everywhere
def test_inverse(surrogate):
    value = np.geomspace(1e-3, 1e3, 50)
    np.testing.assert_allclose(surrogate.value(surrogate.inverse(value)), value, rtol=1e-10)


@everywhere
def test_huge_arguments_do_not_overflow(surrogate):
    z = np.array([-1e300, -1e5, 1e5])
    assert np.all(np.isfinite(surrogate.derivative(z)))
    assert surrogate.value(z)[0] == 0


def test_unknown_name():
    with pytest.raises(ValueError, match=r"surrogate must be one of quadratic, hinge, .* got 'square'"):
        get_surrogate("square")


@everywhere
def test_what_it_declares_is_so(surrogate, rng):
    top = min(surrogate.max_slope, 1e300)
    ends = np.array([1e-300] + ([top * (1 - 1e-15)] if np.isfinite(surrogate.max_slope) else []))
    with np.errstate(over="ignore"):
        steep = np.abs(surrogate.conjugate_derivative(ends)) > 30  # infinite as a logarithm is
    assert np.all(steep) == surrogate.is_own_barrier
    z = np.linspace(-6, 6, 100_001)
    assert (np.abs(np.diff(surrogate.derivative(z))).max() < 0.1) == surrogate.is_smooth
    grows = surrogate.value(np.array(700.0)) > 1e300
    assert grows == surrogate.in_log_domain
    bends = np.unique(np.round(surrogate.curvature(rng.uniform(-5, 5, 500)), 9))
    assert (len(bends) <= 2) == surrogate.is_piecewise_quadratic
    if surrogate.is_piecewise_quadratic:
        assert surrogate.pieces is surrogate
        assert surrogate.is_parabola == bool(surrogate.curvature(np.array([1e9]))[0] > 0)
    else:
        assert not surrogate.is_parabola
        with pytest.raises(ValueError, match=f"'{surrogate.name}' is not piecewise quadratic"):
            surrogate.pieces  # noqa: B018


@everywhere
def test_means_in_logarithms(surrogate, rng):
    z, share = rng.uniform(-3, 3, 50), rng.dirichlet(np.ones(50))
    loss = surrogate.mean_loss(z, share, (np.sum, z), (np.count_nonzero, z))
    assert loss.log_mean == pytest.approx(np.log(share @ surrogate.value(z)))
    assert loss.others == [pytest.approx(z.sum()), 50]
    y = np.exp(loss.log_largest) * loss.unit
    assert loss.unit.max() == pytest.approx(1.0)
    np.testing.assert_allclose(y, share * surrogate.derivative(z), rtol=1e-12)
    np.testing.assert_allclose(loss.sums, SlopeSums.of(loss.unit, share), rtol=1e-12)
    total, steepest, square = SlopeSums.of(y, share)
    np.testing.assert_allclose([total, steepest], [y.sum(), surrogate.derivative(z).max()], rtol=1e-12)
    assert square == pytest.approx((y**2 / share).sum())


@everywhere
def test_conjugates_along_a_line(surrogate, rng):
    share, slopes = rng.dirichlet(np.ones(50)), rng.uniform(0.1, 0.9, 50)
    along = surrogate.conjugate_along(share * slopes, slopes)
    for scale in (0.1, 0.7, 1.0):
        expected = share * slopes @ surrogate.conjugate_derivative(scale * slopes)
        assert along(scale) == pytest.approx(expected)


def test_means_in_logarithms_do_not_overflow():
    z, share = np.array([5000.0, 5001.0]), np.array([0.5, 0.5])
    loss = get_surrogate("exponential").mean_loss(z, share)
    assert loss.log_mean == pytest.approx(5001 + np.log(0.5 * (1 + np.exp(-1))))
    np.testing.assert_allclose(loss.unit, [np.exp(-1), 1.0])
    nothing = get_surrogate("hinge").mean_loss(np.full(2, -9.0), share)
    assert nothing.log_mean == nothing.log_largest == -np.inf
    assert nothing.sums == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("z", [-300.0, -500.0, -700.0])
def test_slopes_whose_squares_are_below_the_range(z):
    logistic = get_surrogate("logistic")
    loss = logistic.mean_loss(np.array([z, z - 1]), np.array([0.5, 0.5]))
    assert loss.log_largest == pytest.approx(np.log(0.5 * logistic.derivative(np.array(z))))
    np.testing.assert_allclose(loss.sums, SlopeSums.of(np.array([1.0, np.exp(-1)]), np.array([0.5, 0.5])), rtol=1e-3)


def test_slopes_whose_squares_are_above_the_range():
    assert SlopeSums.of(np.array([1e200, 1.0]), np.array([0.5, 0.5])) == (1e200, 2e200, np.inf)


@pytest.mark.parametrize("width", [1.0, 0.2, 1e-3])
def test_a_smoothed_hinge_has_the_same_line(width):
    smooth = get_surrogate("hinge").smoothed(width)
    z = np.linspace(-4, 4, 801)
    difference = smooth.value(z) - get_surrogate("hinge").value(z)
    np.testing.assert_allclose(difference[np.abs(z + 1) >= 0.5 * width], 0.0, atol=1e-12)
    assert difference.max() == pytest.approx(width / 8, rel=1e-2)
    assert smooth.is_smooth
    np.testing.assert_allclose(
        get_surrogate("hinge").smoothed(1.0).value(z), get_surrogate("huber").value(z), rtol=1e-14
    )
