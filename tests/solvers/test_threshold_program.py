"""The program of the multipliers that may be at a bound, against cvxpy; and the pair method with such steps."""

import gc
import weakref
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

from solvers.test_pair_ascent import MEANS, by_newton, check_certificate, make_kernel, solve, with_features
from toprank.matrices.dense_or_sparse import Cholesky
from toprank.matrices.gram import Gram
from toprank.matrices.threads import one_blas_thread
from toprank.solvers import active_sets, program_step, threshold_program
from toprank.solvers.active_sets import solve_by_active_sets
from toprank.solvers.problem import DualPoint
from toprank.solvers.threshold_program import Elimination, ThresholdProgram


@pytest.fixture(autouse=True)
def one_thread():
    """As in the estimators."""
    with one_blas_thread():
        yield


def part_of(products):
    """What an elimination asks for."""
    return lambda rows, others, dtype: products[np.ix_(rows, others)].astype(dtype)


@pytest.mark.parametrize("by", ["active sets", "interior point"])
@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize(("n_doubtful", "fixed"), [(0, 0.0), (5, 0.7)])
def test_program_is_the_dual_with_some_multipliers_eliminated(by, capped, n_doubtful, fixed, rng, monkeypatch):
    """The same u, y and b as those of the whole quadratic program: max l·x − ½ ‖R x‖², Σu + Σy + fixed = Σb."""
    if by == "interior point":
        monkeypatch.setattr(threshold_program, "solve_by_active_sets", lambda *args: None)
    m, k = 12, 15
    n = m + n_doubtful + k
    signs = np.r_[np.ones(m + n_doubtful), -np.ones(k)]
    rows = rng.standard_normal((n, 40)) + 1.0
    bend = np.r_[np.full(m + n_doubtful, 2.0), np.full(k, 1e-3)]
    products = rows @ rows.T + np.diag(bend)
    slopes = np.r_[60.0 + rng.random(m), rng.standard_normal(n_doubtful), rng.standard_normal(k)]
    caps = np.full(k, 0.15) if capped else None
    elimination = Elimination(part_of(rows @ rows.T), np.arange(m), bend[:m], 1.0, n)
    places, none = elimination.places(np.r_[m:n], part_of(rows @ rows.T)), np.zeros(0, int)
    at_zero = (slopes[:m], slopes[m:]), (np.zeros(m), np.zeros(n - m))
    program = ThresholdProgram(elimination, places, -signs[m:], bend[m:], *at_zero, fixed, none)
    z, level = program.solve(np.r_[np.zeros(n_doubtful), np.ones(k)], caps, 1e-8)
    assert (level == 0) == (by == "active sets")

    x = cp.Variable(n)
    b = x[m + n_doubtful :]
    limits = [x[m:] >= 0, cp.sum(x[: m + n_doubtful]) + fixed == cp.sum(b)]
    if capped:
        limits.append(b <= 0.15 * cp.sum(b))
    root, curvature = np.linalg.cholesky(products), products * np.outer(signs, signs)
    squares = cp.sum_squares(root.T @ cp.multiply(signs, x))
    best = cp.Problem(cp.Maximize(slopes @ x - 0.5 * squares), limits).solve(solver=cp.CLARABEL)
    found = np.r_[program.eliminated_at(z), z]
    assert slopes @ found - 0.5 * found @ curvature @ found == pytest.approx(best, rel=1e-6)
    assert signs @ found + fixed == pytest.approx(0.0, abs=1e-9 * np.abs(found).sum())
    np.testing.assert_allclose(found, x.value, atol=1e-3 * np.abs(x.value).max())
    assert 0 < np.count_nonzero(z[n_doubtful:]) < k  # some b are zero, and exactly so


def test_what_is_left_of_a_row_is_computed_once_and_in_any_order(rng):
    """That of an earlier program is kept."""
    rows, asked = rng.standard_normal((30, 40)), []
    products = rows @ rows.T

    def of(some, others, dtype):
        asked.extend(some if len(others) == 10 else [])
        return products[np.ix_(some, others)].astype(dtype)

    elimination = Elimination(of, np.arange(10), np.zeros(10), 1.0, 30)
    asked.clear()
    inverse = np.linalg.inv(products[:10, :10])
    for some in (np.array([12, 11, 25]), np.array([25, 13, 12]), np.array([11]), np.r_[28:9:-1]):
        places = elimination.places(some, of)
        known = products[some, :10] @ inverse @ products[:10, some]
        halves = elimination.halves[places]
        np.testing.assert_allclose(halves @ halves.T, known)
        np.testing.assert_allclose(elimination.left(places), products[np.ix_(some, some)] - known, atol=1e-9)
        np.testing.assert_allclose(elimination.squares[places], products[some, some])
    assert sorted(asked) == list(range(10, 29))


def test_what_is_projected_out_was_never_eliminated(rng):
    """The program of a factor with three u too many is that of the factor without them."""
    n, m, dropped = 40, 12, np.array([1, 5, 10])
    rows, slopes = rng.standard_normal((n, 50)), rng.standard_normal(n)
    products, some = rows @ rows.T + np.eye(n), np.r_[20:35]
    signs = np.where(np.arange(len(some)) < 4, -1.0, 1.0)
    programs = []
    for kept, out in ((np.setdiff1d(np.arange(m), dropped), dropped[:0]), (np.arange(m), dropped)):
        elimination = Elimination(part_of(products), kept, np.zeros(len(kept)), 1.0, n)
        places, both = elimination.places(some, part_of(products)), (slopes[kept], slopes[some])
        zero = np.zeros(len(kept)), np.zeros(len(some))
        programs.append(ThresholdProgram(elimination, places, signs, zero[1], both, zero, 0.3, out))
    without, projected = programs
    np.testing.assert_allclose(projected.H, without.H, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(projected.q, without.q, rtol=1e-9, atol=1e-9)
    z = rng.random(len(some))
    u = projected.eliminated_at(z)
    np.testing.assert_allclose(u[dropped], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.delete(u, dropped), without.eliminated_at(z), rtol=1e-9, atol=1e-9)


def test_programs_of_rows_that_are_nearly_alike(rng):
    """Guesses alone do not settle with a kernel of one feature; programs in turn come to the optimum."""
    x = np.sort(rng.random(90))
    products = np.exp(-(np.subtract.outer(x, x) ** 2))
    kept, some = np.arange(30), np.r_[30:90]
    elimination = Elimination(part_of(products), kept, np.full(30, 1e-2), 1.0, 90)
    places, slopes = elimination.places(some, part_of(products)), (np.ones(30), 0.3 * np.sin(9 * x[30:]))
    zero = np.zeros(30), np.zeros(60)
    program = ThresholdProgram(elimination, places, np.ones(60), zero[1], slopes, zero, 0.0, kept[:0])

    def value(z):
        return 0.5 * z @ program.H @ z - program.q @ z

    z, level = np.full(60, 0.1), 0
    first = value(z)
    for _ in range(6):
        z, level = program.solve(z, None, 1e-9, max(level - 1, 0))
        assert z.min() >= 0.0
    exact = cp.Variable(60, nonneg=True)
    roots, vectors = np.linalg.eigh(program.H)
    half = np.sqrt(np.maximum(roots, 0.0))[:, None] * vectors.T
    best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(half @ exact) - program.q @ exact)).solve(solver=cp.CLARABEL)
    assert value(z) - best <= 1e-4 * (first - best)


def test_rows_without_entries_share_their_multiplier(rng, monkeypatch):
    """Several of them are alike, and have no curvature but that of the level: guesses settle all the same."""
    features = rng.standard_normal((60, 40))
    features[-5:] = 0.0
    products = features @ features.T
    kept, some = np.arange(20), np.r_[20:60]
    elimination = Elimination(part_of(products), kept, np.full(20, 5.0), 1.0, 60)
    places = elimination.places(some, part_of(products))
    slopes = np.ones(20), np.repeat([0.0, 1.0], [35, 5])
    zero = np.zeros(20), np.zeros(40)
    program = ThresholdProgram(elimination, places, np.ones(40), zero[1], slopes, zero, 0.0, kept[:0])
    monkeypatch.setattr(threshold_program, "_InteriorPoint", None)  # not called
    z, level = program.solve(np.full(40, 0.1), None, 1e-9)
    assert level == 0
    assert z[-5] > 0
    np.testing.assert_allclose(z[-5:], z[-5], rtol=1e-6)
    slopes = program.H @ z - program.q
    assert slopes.min() >= -1e-4
    np.testing.assert_allclose(z * slopes, 0.0, atol=1e-4)


def test_active_sets_end_where_guesses_would_cycle():
    """Small random programs, against all active sets."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        half = rng.standard_normal((5, 5))
        H, q = half @ half.T + 1e-3 * np.eye(5), rng.random(5)
        z = solve_by_active_sets(H, q, None, 0, np.ones(5))
        assert z is not None
        slopes = H @ z - q
        assert z.min() >= 0.0
        assert slopes.min() >= -1e-8
        np.testing.assert_allclose(z * slopes, 0.0, atol=1e-8)


@pytest.mark.parametrize("alpha", [1.0, 1e-3])
@pytest.mark.parametrize(
    ("name", "threshold"),
    [(name, threshold) for threshold in MEANS for name in ("quadratic", "huber")]
    + [("quadratic", "PatMatNP"), ("quadratic", "PatMat")],
)
def test_programs_from_the_first_moves_on(name, threshold, alpha, monkeypatch):
    """Wherever the programs start from, the pair method ends at the optimum."""
    monkeypatch.setattr(program_step, "_COST_OF_STEP", 0.0)
    monkeypatch.setattr(program_step, "_FIRST_SHARE", 1e9)
    monkeypatch.setattr(program_step, "_FIRST_MOVES", 0.0)
    problem = make_kernel(5, name, threshold, alpha=alpha)
    solution = solve(problem, tol=1e-8)
    reference = by_newton(with_features(problem))
    assert solution.converged
    assert solution.primal == pytest.approx(reference.primal, rel=1e-7)
    check_certificate(problem, solution, reference.primal)


def test_fits_on_one_kernel_matrix_share_the_factor(monkeypatch):
    """Where the penalty and the positives are the same; with another penalty it is another factor."""
    monkeypatch.setattr(program_step, "_COST_OF_STEP", 0.0)
    monkeypatch.setattr(program_step, "_FIRST_SHARE", 1e9)
    monkeypatch.setattr(program_step, "_FIRST_MOVES", 0.0)
    whole = make_kernel(7, threshold="15 %", alpha=1e-2, n=120)
    first = solve(whole, tol=1e-8)
    factor = whole.gram.remembered["elimination"]
    weights = np.where(~whole.positive & (np.arange(120) % 5 == 1), 0.0, whole.weights)
    part = replace(whole, weights=weights)
    found = solve(part, tol=1e-8, start=replace(first, state=part_of_point(whole, weights, first)))
    assert whole.gram.remembered["elimination"] is factor
    reference = solve(replace(part, gram=make_kernel(7, threshold="15 %", n=120).gram), tol=1e-8)
    assert found.converged
    assert found.primal == pytest.approx(reference.primal, rel=1e-7)
    other = solve(replace(whole, alpha=2e-2), tol=1e-8, start=first)
    assert whole.gram.remembered["elimination"] is not factor
    reference = by_newton(with_features(replace(whole, alpha=2e-2)))
    assert other.primal == pytest.approx(reference.primal, rel=1e-7)


def test_a_kernel_matrix_is_freed_with_its_problem(monkeypatch):
    """What it remembers does not refer to it: memory that waits for a collection is touched anew by the next fit."""
    monkeypatch.setattr(program_step, "_COST_OF_STEP", 0.0)
    monkeypatch.setattr(program_step, "_FIRST_SHARE", 1e9)
    monkeypatch.setattr(program_step, "_FIRST_MOVES", 0.0)
    problem = make_kernel(7, threshold="15 %", alpha=1e-2, n=120)
    solve(problem, tol=1e-8)
    assert "elimination" in problem.gram.remembered
    matrix = weakref.ref(problem.gram)
    gc.disable()
    try:
        del problem
        assert matrix() is None
    finally:
        gc.enable()


def part_of_point(whole, weights, solution):
    """The dual point of the rows with a weight."""
    y, p = solution.state.y, solution.state.p
    return DualPoint(y[weights[whole.positives] > 0], p[weights[whole.threshold_rows] > 0])


def test_programs_save_most_of_the_moves(monkeypatch):
    """Where many rows share the threshold and the penalty is small."""
    problem = make_kernel(6, alpha=1e-5, n=400)
    monkeypatch.setattr(program_step, "_COST_OF_STEP", 1e5)
    with_programs = solve(problem, tol=1e-6)
    monkeypatch.setattr(program_step.ProgramStep, "cost", lambda self, dual: np.inf)
    moves_alone = solve(problem, tol=1e-6)
    assert with_programs.converged
    assert with_programs.n_iter < 0.2 * moves_alone.n_iter


def test_cholesky_in_place_solves_singular_systems_too(rng):
    half = rng.standard_normal((20, 8))
    definite, right = half @ half.T + np.eye(20), rng.standard_normal((20, 3))
    factor = Cholesky(definite.copy(), in_place=True)
    np.testing.assert_allclose(factor.solve(right), np.linalg.solve(definite, right), rtol=1e-9, atol=1e-12)
    root = factor.half_solve(right)
    np.testing.assert_allclose(root.T @ root, right.T @ np.linalg.solve(definite, right), rtol=1e-9, atol=1e-12)
    singular = half @ half.T
    solution = Cholesky(singular.copy(), in_place=True).solve(singular @ right)
    np.testing.assert_allclose(singular @ solution, singular @ right, rtol=1e-4, atol=1e-4)


def program_by_cvxpy(H, q, caps, n_doubtful):
    z, root = cp.Variable(len(q)), np.linalg.cholesky(H)
    limits = [z >= 0]
    if caps is not None:
        limits.append(z[n_doubtful:] <= caps * cp.sum(z[n_doubtful:]))
    cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root.T @ z) - q @ z), limits).solve(solver=cp.CLARABEL)
    return z.value


@pytest.mark.parametrize("start", ["all", "some", "optimum"])
@pytest.mark.parametrize("caps", [None, "equal", "weights", "hardly any room"])
@pytest.mark.parametrize("n_doubtful", [0, 6])
def test_active_sets_give_the_optimum_or_nothing(start, caps, n_doubtful, rng):
    """From near the optimum, and without caps from anywhere, they do give it."""
    n, k = 40 + n_doubtful, 40
    half = rng.standard_normal((n, 25))
    H, q = half @ half.T + 0.5 * np.eye(n), rng.standard_normal(n) + 2.0
    bounds = {"equal": np.full(k, 0.06), "weights": rng.uniform(0.05, 0.1, k), "hardly any room": np.full(k, 1.02 / k)}
    caps = bounds.get(caps)
    best = program_by_cvxpy(H, q, caps, n_doubtful)
    first = {"all": np.ones(n), "some": np.arange(n) % 2, "optimum": np.where(best > 1e-6 * best.max(), best, 0)}[start]
    if caps is not None and start == "optimum":  # as exactly at the caps as the moves leave it
        most = caps * best[n_doubtful:].sum()
        first[n_doubtful:] = np.where(first[n_doubtful:] > (1 - 1e-4) * most, most, first[n_doubtful:])
    z = solve_by_active_sets(H, q, caps, n_doubtful, first)
    if z is None:
        assert caps is not None
        assert start != "optimum"
        return
    np.testing.assert_allclose(z, best, atol=1e-4 * best.max())
    assert z.min() >= 0.0
    if caps is not None:
        b = z[n_doubtful:]
        assert np.all(b <= caps * b.sum() * (1 + 1e-9))
        assert np.any(b >= caps * b.sum() * (1 - 1e-9))  # some are at their cap


def test_active_sets_say_where_there_is_no_answer():
    """Equal rows have no unique z, and caps of sum 1 leave no free one: the interior-point method is for these."""
    equal = np.ones((4, 4))
    assert solve_by_active_sets(equal, np.ones(4), None, 0, np.ones(4)) is None
    assert solve_by_active_sets(np.eye(4), np.ones(4), np.full(4, 0.25), 0, np.ones(4)) is None


@pytest.mark.parametrize("capped", [False, True])
def test_systems_of_other_rows_are_bordered(capped, rng, monkeypatch):
    """As exact as by factors of their own, also where rows are alike but for 1e-7; many other rows need a new one."""
    made = []
    potrf = active_sets.lapack.dpotrf
    monkeypatch.setattr(active_sets.lapack, "dpotrf", lambda *args, **kw: made.append(1) or potrf(*args, **kw))
    half = np.repeat(rng.standard_normal((40, 50)), 2, axis=0)
    H = half @ half.T + 1e-7 * np.eye(80)
    systems, rows = active_sets._Systems(H), np.arange(60)
    some = [rows, np.setdiff1d(rows, [3, 17]), np.r_[rows[2:], 61, 70], np.arange(30, 80)]
    for rows, n_made in zip(some, (1, 1, 1, 2), strict=True):
        p, a = rng.random((2, len(rows))) / len(rows)
        known, matrix = rng.standard_normal(len(rows)), H[np.ix_(rows, rows)]
        if capped:
            matrix = matrix + np.outer(p, a) + np.outer(a, p)
        found = systems.solve(rows, matrix @ known, p, a if capped else None)
        np.testing.assert_allclose(matrix @ found, matrix @ known, atol=1e-11 * np.abs(matrix @ known).max())
        assert len(made) == n_made


def test_a_smaller_penalty_takes_few_programs(monkeypatch):
    """Positives that are beyond their margins at the scaled start are doubtful at once, and rows join with them."""
    made, whole = [], make_kernel(3, threshold="max", alpha=3e-2, n=200)
    init = ThresholdProgram.__init__
    monkeypatch.setattr(ThresholdProgram, "__init__", lambda *args: made.append(1) or init(*args))
    first, programs = solve(whole, tol=1e-6), {}
    for name in ("guessed", "not guessed"):
        made.clear()
        whole.gram.remembered.pop("elimination", None)
        found = solve(replace(whole, alpha=3e-3), tol=1e-6, start=first)
        programs[name] = len(made)
        assert found.converged
        monkeypatch.setattr(program_step, "_may_leave", lambda dual: np.zeros(len(dual.u), dtype=bool))
    assert programs["guessed"] < programs["not guessed"]


@pytest.fixture
def products_asked(monkeypatch):
    """One entry for each product with a kernel matrix."""
    asked, product = [], Gram.product
    monkeypatch.setattr(Gram, "product", lambda gram, c: asked.append(1) or product(gram, c))
    return asked


def test_a_start_from_the_same_kernel_matrix_has_its_scores(products_asked):
    """Of a multiple of the last weights they are known; those of other weights are computed."""
    whole = make_kernel(5, threshold="max", alpha=1e-2, n=150)
    first = solve(whole, tol=1e-6)
    products_asked.clear()
    found = solve(replace(whole, alpha=5e-3), tol=1e-6, start=first)
    assert not products_asked
    whole.gram.remembered["certified"] = np.ones(150), np.ones(150), 1
    again = solve(replace(whole, alpha=5e-3), tol=1e-6, start=first)
    assert len(products_asked) == 1
    assert found.primal == pytest.approx(again.primal, rel=1e-6)


def test_scores_that_programs_add_up_stay_exact(products_asked):
    """Along forty penalties hardly any product is made, and every certificate holds."""
    whole = make_kernel(5, threshold="max", alpha=1e-1, n=150)
    solution = solve(whole, tol=1e-6)
    products_asked.clear()
    for alpha in np.logspace(-1, -4, 40):
        problem = replace(whole, alpha=alpha)
        solution = solve(problem, tol=1e-6, start=solution)
        exact = problem.gram.between(np.arange(150), np.arange(150)) @ solution.coef
        np.testing.assert_allclose(solution.scores, exact, atol=1e-12 * np.abs(exact).max())
        assert problem.primal(solution.coef, exact) == pytest.approx(solution.primal, rel=1e-12)
        assert solution.gap <= 1e-6
    assert 0 < len(products_asked) <= 10
