"""Surrogates: derivatives, conjugates and inverses against their definitions."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from toprank.formulations.surrogates import SURROGATES, get_surrogate

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
