"""Programs of the pair method with a factor in single precision."""

import numpy as np
import pytest

from solvers.test_threshold_program import part_of
from toprank import TopPush
from toprank.solvers import program_step
from toprank.solvers.threshold_program import Elimination, ThresholdProgram


@pytest.fixture
def kinds(monkeypatch):
    """Whether the factors that are made are of single precision, in turn."""
    found, init = [], Elimination.__init__

    def watched(self, *args, is_single=False):
        found.append(is_single)
        init(self, *args, is_single=is_single)

    monkeypatch.setattr(Elimination, "__init__", watched)
    return found


def overlapping_bands(n):
    """Half of the rows are positive, and all of these are below their margin."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    noisy = np.cos(1.5 * (X[:, 0] + X[:, 1] ** 2)) + 0.5 * rng.standard_normal(n)
    return X, noisy > np.median(noisy)


def test_programs_in_single_precision_come_to_the_optimum_in_double(rng):
    """Each has its slopes at the solution of the last one, so that its rounding is one of the way that is left."""
    m, k = 50, 40
    rows = rng.standard_normal((m + k, 60)) + 0.5
    products, signs = rows @ rows.T, np.r_[np.ones(m), -np.ones(k)]
    bend, slopes = np.r_[np.full(m, 3.0), np.zeros(k)], np.r_[30.0 + rng.random(m), rng.standard_normal(k)]
    curvature = products * np.outer(signs, signs) + np.diag(bend)

    def value(x):
        return slopes @ x - 0.5 * x @ curvature @ x

    def run(is_single, n_programs):
        elimination = Elimination(part_of(products), np.arange(m), bend[:m], 1.0, m + k, is_single=is_single)
        places, x = elimination.places(np.r_[m : m + k], part_of(products)), np.r_[np.full(m, 0.4), np.full(k, 0.5)]
        for _ in range(n_programs):
            at_x = slopes - curvature @ x
            both, base = (at_x[:m], at_x[m:]), (x[:m], x[m:])
            program = ThresholdProgram(elimination, places, np.ones(k), bend[m:], both, base, 0.0, np.zeros(0, int))
            z, _ = program.solve(x[m:], None, 1e-12, 2 if is_single else 0)
            x = np.r_[program.eliminated_at(z), z]
        assert (elimination.halves.dtype == np.float32) == is_single
        return x

    exact = run(False, 3)
    np.testing.assert_allclose(exact, run(False, 6), rtol=1e-7, atol=1e-9)
    assert 0 < np.count_nonzero(exact[m:]) < k
    assert value(exact) - value(run(True, 1)) > 1e-12 * value(exact)
    assert value(run(True, 6)) == pytest.approx(value(exact), rel=1e-12)


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_where_the_factor_is_of_single_precision(tol, kinds):
    """Where the gap that is asked for is not tiny; the model is as good as its gap says in both."""
    X, y = overlapping_bands(1200)
    best = TopPush(alpha=1e-3, kernel="rbf", gamma=0.5, tol=1e-10).fit(X, y)
    kinds.clear()
    model = TopPush(alpha=1e-3, kernel="rbf", gamma=0.5, tol=tol).fit(X, y)
    assert kinds
    assert all(kinds) == any(kinds) == (tol == 1e-4)
    assert model.dual_gap_ <= tol
    assert 0 <= model.objective_ - best.objective_ <= tol * best.objective_


def test_double_precision_where_single_does_not_get_on(kinds, monkeypatch):
    """It is not to be trusted with a huge C, and is given up where it is taken all the same."""
    X, y = overlapping_bands(1200)
    alpha = 1e-3 / y.sum()
    assert TopPush(alpha=alpha, kernel="rbf", gamma=0.5, tol=1e-4).fit(X, y).dual_gap_ <= 1e-4
    assert kinds
    assert not any(kinds)
    for name, value in {"_MANY": 1, "_SINGLE_GAP": 0.0, "_SINGLE_ROUNDING": np.inf}.items():
        monkeypatch.setattr(program_step, name, value)
    kinds.clear()
    assert TopPush(alpha=alpha, kernel="rbf", gamma=0.5, tol=1e-7).fit(X, y).dual_gap_ <= 1e-7
    assert kinds[0]
    assert not kinds[-1]
