"""Algorithm 3.1: every closed form against a numerical maximisation, the whole method against cvxpy."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from exact import optimum
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import PiecewiseQuadratic, get_surrogate
from toprank.formulations.thresholds import Quantile, SurrogateQuantile, TopMean
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.solvers.dual_cd import _Dual, best_partner, pair_step, solve_dual_cd, threshold_sums
from toprank.solvers.kernel_problem import KernelProblem
from toprank.solvers.problem import HISTORY, DualPoint, Problem
from toprank.solvers.smooth_newton import solve_smooth_newton
from toprank.solvers.working_set_newton import solve_newton

QUANTILE = {"tau": 0.1, "beta": 0.5}
THRESHOLDS = {
    "K=1": ({}, "negatives"),
    "K=3": ({"k": 3}, "negatives"),
    "K=2.5": ({"k": 2.5}, "negatives"),
    "40 %": ({"share": 0.4}, "negatives"),
    "40 % of all": ({"share": 0.4}, "all"),
    "PatMatNP": (QUANTILE, "negatives"),
    "PatMat": (QUANTILE, "all"),
}


def scaled(name, scaling):
    """The surrogate with a scaling ϑ of its own."""
    surrogate = get_surrogate(name)
    return PiecewiseQuadratic(
        name, surrogate.shift / scaling, surrogate.width / scaling**2, surrogate.max_slope * scaling
    )


def make_problem(
    rng, name, threshold, *, alpha=0.1, n=60, scaling=1.0, cache=10.0, kernel="linear", d=4, shift=1.0, every=4
):
    positive = np.arange(n) % every == 0
    X = rng.standard_normal((n, d)) + shift * positive[:, None]
    weights = rng.uniform(0.5, 2, n)
    parameters, over = THRESHOLDS[threshold]
    surrogate = scaled(name, scaling)
    quantile = SurrogateQuantile(surrogate=surrogate, **parameters) if "tau" in parameters else TopMean(**parameters)
    gram = Gram(Kernel.resolve(kernel, X, 0.3), X, cache)
    return KernelProblem(gram, positive, weights, Formulation(surrogate, quantile, over), alpha)


def exact(problem, threshold):
    parameters, over = THRESHOLDS[threshold]
    name = problem.formulation.surrogate.name
    return optimum(problem.gram.X, problem.positive, problem.weights, problem.alpha, name, over=over, **parameters)


class NaiveDual:
    """The dual of the paper written down as it stands, with weights: the objective and the constraints."""

    def __init__(self, problem, K):
        self.problem, self.K = problem, K
        self.m = len(problem.positives)
        self.C = problem.positive_share / problem.alpha
        self.rows = np.concatenate([problem.positives, problem.threshold_rows])
        self.threshold = problem.formulation.threshold
        self.caps = None
        if isinstance(self.threshold, TopMean):
            self.caps = self.threshold.caps(problem.threshold_weights)
        self.q = problem.threshold_share

    def split(self, variables):
        return variables[..., : self.m], variables[..., self.m :]

    def best_delta(self, beta):
        surrogate, threshold = self.threshold.surrogate, self.threshold
        if surrogate.width > 0:
            return np.sqrt(0.5 * surrogate.width * np.sum(beta**2 / self.q) / threshold.tau) / threshold.beta
        return (beta / self.q).max() / (threshold.beta * surrogate.max_slope)

    def objective(self, variables, delta=None):
        alpha, beta = self.split(variables)
        c = np.zeros(len(self.K))
        c[self.rows[: self.m]] += alpha
        c[self.rows[self.m :]] -= beta
        value = -0.5 * c @ self.K @ c - np.sum(self.C * self.problem.formulation.surrogate.conjugate(alpha / self.C))
        if isinstance(self.threshold, SurrogateQuantile):
            delta = self.best_delta(beta) if delta is None else delta
            weight = delta * self.q  # ℓ₂(z) = ℓ(ϑ₂ z) has the conjugate ℓ*(y / ϑ₂)
            conjugate = self.threshold.surrogate.conjugate(beta / weight / self.threshold.beta)
            value -= np.sum(weight * conjugate) + delta * self.threshold.tau
        return value

    def is_feasible(self, variables):
        """Whether a point is feasible, or each of the points in the rows of a matrix."""
        alpha, beta = self.split(variables)
        total = alpha.sum(axis=-1, keepdims=True)
        slack = 1e-12 * total
        upper = self.C * self.problem.formulation.surrogate.max_slope
        within = [alpha <= upper + slack, variables >= -slack]
        if self.caps is not None:
            within.append(beta <= self.caps * total + slack)
        return np.logical_and.reduce([np.all(bounds, axis=-1) for bounds in within])


def farthest(naive, variables, directions, towards):
    """Lengths of the steps along the rows of a matrix at which the feasible points end, by bisection."""
    low, high = np.zeros(len(directions)), np.full(len(directions), towards)
    whole = naive.is_feasible(variables + towards * directions)
    for _ in range(48):
        middle = 0.5 * (low + high)
        inside = naive.is_feasible(variables + middle[:, None] * directions)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(whole, towards, low)


def random_point(rng, dual, problem):
    """A feasible dual point, with some variables at their bounds."""
    m, n = dual.terms.m, len(dual.terms.rows) - dual.terms.m
    alpha = rng.random(m) * (rng.random(m) < 0.7)
    alpha[rng.integers(m)] = 1.0
    max_slope = problem.formulation.surrogate.max_slope
    if np.isfinite(max_slope):
        alpha = np.minimum(1.3 * alpha, 1.0) * dual.terms.limits[:m] * max_slope
    total = alpha.sum()
    caps = np.ones(n)
    if isinstance(problem.formulation.threshold, TopMean):
        caps = dual.terms.limits[m:]
    beta = np.zeros(n)
    for j in rng.permutation(n):  # the first ones reach their caps
        beta[j] = min(caps[j] * total * rng.choice([1.0, 0.4]), total - beta.sum())
    for j in rng.permutation(n):
        beta[j] += min(caps[j] * total - beta[j], max(total - beta.sum(), 0.0))
    if rng.random() < 0.3:
        beta = total * problem.threshold_share  # all of them at one δ
    return np.concatenate([alpha, beta])


@pytest.mark.covering
@pytest.mark.parametrize("scaling", [1.0, 0.6])
@pytest.mark.parametrize("name", ["quadratic", "hinge"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_closed_form_is_the_maximum_on_its_line(name, threshold, scaling):
    rng = np.random.default_rng(0)
    found = {rule: {"at": 0, "inside": 0} for rule in ("αα", "αβ", "ββ")}
    for trial in range(14):
        options = {"alpha": 10.0 ** rng.uniform(-3, 1), "kernel": ("linear", "rbf")[trial % 2], "scaling": scaling}
        problem = make_problem(rng, name, threshold, n=10, d=3, every=2, **options)
        dual, K = _Dual.of(problem), problem.gram.full
        terms = dual.terms
        naive = NaiveDual(problem, K)
        variables = random_point(rng, dual, problem)
        scores = K @ dual.coefficients(variables)
        if trial % 2:  # nearer to the optimum more steps end inside the bounds
            dual.ascend(rng.integers(len(variables), size=12), scores, variables, 0.0)
        assert naive.is_feasible(variables)
        before = naive.objective(variables)
        assert dual.objective(variables, scores) == pytest.approx(problem.alpha * before, rel=1e-9, abs=1e-9)
        delta = naive.best_delta(naive.split(variables)[1]) if terms.kind == 2 else None
        k = rng.integers(terms.m) if trial % 4 < 2 else rng.integers(terms.m, len(variables))
        gains = {}
        n, size = len(variables), variables.sum()
        directions = np.where((k < terms.m) == (np.arange(n) < terms.m), -1.0, 1.0)[:, None] * np.eye(n)
        directions[:, k] = 1.0
        lows = -farthest(naive, variables, -directions, 50 * size)
        highs = farthest(naive, variables, directions, 50 * size)
        for other in range(n):
            if other == k:
                continue
            direction, low, high = directions[other], lows[other], highs[other]
            a, b = terms.rows[k], terms.rows[other]
            eta = max(K[a, a] + K[b, b] - 2 * K[a, b], 0.0)
            sums = threshold_sums(k, terms, variables)
            step, gain = pair_step(k, other, eta, sums, terms, scores, variables)
            gains[other] = gain
            assert low - 1e-9 * size <= step <= high + 1e-9 * size
            # the quadratic quantile is maximised for the present δ, then δ is set: the paper's order
            line = lambda t, f=naive, v=variables, u=direction, d=delta: -f.objective(np.maximum(v + t * u, 0.0), d)  # noqa: E731
            numeric = min((line(end), end) for end in (low, high, 0.0))
            result = minimize_scalar(line, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * size})
            numeric = min(numeric, (result.fun, result.x))
            scale = abs(before) + abs(numeric[0]) + size
            assert -line(step) >= -numeric[0] - 1e-10 * scale
            assert gain == pytest.approx(naive.objective(variables + step * direction) - before, abs=1e-9 * scale)
            rule = "αα" if max(k, other) < terms.m else "ββ" if min(k, other) >= terms.m else "αβ"
            found[rule]["inside" if low + 1e-6 * size < step < high - 1e-6 * size else "at"] += 1
        whole = best_partner(k, K[terms.rows[k]], terms, scores, variables)
        assert whole[2] == pytest.approx(max(*gains.values(), 0.0), rel=1e-12)
        assert whole[2] == 0 or gains[whole[0]] == whole[2]
    for rule, counts in found.items():
        assert counts["at"] >= 2, (rule, counts)
        assert counts["inside"] >= 2, (rule, counts)


SMOOTH = [
    ("quadratic", "K=1"),
    ("hinge", "K=1"),
    ("quadratic", "PatMatNP"),
    ("quadratic", "PatMat"),
]


@pytest.mark.parametrize(("name", "threshold"), SMOOTH)
@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_reaches_the_optimum_where_bounds_are_separate(name, threshold, alpha, rng):
    problem = make_problem(rng, name, threshold, alpha=alpha)
    solution = solve_dual_cd(problem, tol=1e-6, max_iter=1_000_000, random_state=0)
    best = exact(problem, threshold)
    assert solution.converged
    assert solution.gap <= 1e-6
    assert solution.primal == pytest.approx(best, rel=1.1e-6, abs=1e-8)
    assert solution.dual == pytest.approx(best, rel=1.1e-6, abs=1e-8)
    scores = problem.scores(solution.coef)
    assert solution.primal == pytest.approx(problem.primal(solution.coef, scores), rel=1e-9)
    t = problem.formulation.threshold.value(scores[problem.threshold_rows], problem.threshold_weights)
    assert solution.threshold == pytest.approx(t, rel=1e-8, abs=1e-8)


COUPLED = [(name, threshold) for name in ("quadratic", "hinge") for threshold in THRESHOLDS]


@pytest.mark.parametrize(("name", "threshold"), [case for case in COUPLED if case not in SMOOTH])
@pytest.mark.parametrize("alpha", [1.0, 1e-2])
def test_bounds_the_optimum_where_it_stops_short(name, threshold, alpha, rng):
    problem = make_problem(rng, name, threshold, alpha=alpha)
    solution = solve_dual_cd(problem, tol=1e-6, max_iter=50_000, random_state=0)
    best = exact(problem, threshold)
    assert solution.dual <= best * (1 + 1e-7) + 1e-9
    assert solution.primal >= best * (1 - 1e-7) - 1e-9
    assert solution.converged == (solution.gap <= 1e-6)
    assert solution.history["dual"][-1] > solution.history["dual"][0]
    assert solution.gap < solution.history["gap"][0]


@pytest.mark.parametrize(("name", "threshold"), [("quadratic", "40 %"), ("hinge", "PatMatNP")])
def test_no_pair_has_a_gain_where_it_stopped_short(name, threshold):
    """The gap that remains is the method's, not that of a run cut short: no pair can be improved."""
    problem = make_problem(np.random.default_rng(1), name, threshold, alpha=1.0)
    solution = solve_dual_cd(problem, tol=1e-6, max_iter=10**7, random_state=0)
    assert not solution.converged
    assert solution.n_iter < 10**7
    assert solution.gap > 1e-3
    dual, K, variables = _Dual.of(problem), problem.gram.full, variables_of(solution, problem)
    scores = K @ dual.coefficients(variables)
    for k in range(len(variables)):
        assert best_partner(k, K[dual.terms.rows[k]], dual.terms, scores, variables)[2] < 1e-12


def variables_of(solution, problem):
    """α and β of the last point, in the scaling of the paper."""
    y, p = solution.state.y, solution.state.p
    return np.concatenate([y, y.sum() * p]) / problem.alpha


@pytest.mark.parametrize(("name", "threshold"), SMOOTH)
def test_a_linear_kernel_gives_the_model_of_the_linear_solvers(name, threshold, rng):
    problem = make_problem(rng, name, threshold)
    linear = Problem(problem.gram.X, problem.positive, problem.weights, problem.formulation, problem.alpha)
    solve = solve_newton if threshold == "K=1" else solve_smooth_newton
    expected = solve(linear, tol=1e-9)
    found = solve_dual_cd(problem, tol=1e-8, max_iter=400_000, random_state=0)
    assert found.primal == pytest.approx(expected.primal, rel=1e-7)
    np.testing.assert_allclose(linear.X.T @ found.coef, expected.coef, atol=2e-3)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("name", ["quadratic", "hinge"])
def test_row_by_row_from_a_tiny_cache_is_the_same_run(name, threshold):
    whole, rows = (
        solve_dual_cd(
            make_problem(np.random.default_rng(0), name, threshold, kernel="rbf", cache=cache),
            tol=1e-9,
            max_iter=200,
            random_state=3,
        )
        for cache in (10.0, 1e-9)
    )
    assert whole.n_iter == rows.n_iter
    np.testing.assert_allclose(whole.coef, rows.coef, atol=1e-9)
    assert whole.dual == pytest.approx(rows.dual, rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernels_reach_their_gap(kernel, rng):
    problem = make_problem(rng, "quadratic", "PatMat", kernel=kernel, alpha=0.01)
    solution = solve_dual_cd(problem, tol=1e-5, max_iter=400_000, random_state=0)
    assert solution.converged
    assert solution.gap <= 1e-5
    y, p = solution.state.y, solution.state.p
    threshold = problem.formulation.threshold
    # t*(p) of the surrogate quantile: the least of δ-terms, here at the best δ
    roots = np.sqrt(2 * threshold.surrogate.width * threshold.tau * np.sum(p**2 / problem.threshold_share))
    conjugate = (roots - threshold.surrogate.shift) / threshold.beta
    assert solution.state.threshold_conjugate == pytest.approx(conjugate, rel=1e-9)
    assert problem.lower_bound(DualPoint(y, p, conjugate)) >= solution.dual * (1 - 1e-9)


def test_weight_is_repetition(rng):
    problem = make_problem(rng, "quadratic", "PatMatNP")
    X, times = problem.gram.X, rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), times)
    linear = Kernel.resolve("linear", X)
    weighted = KernelProblem(Gram(linear, X, 1), problem.positive, times.astype(float), problem.formulation, 0.1)
    repeated = KernelProblem(
        Gram(linear, X[rows], 1), problem.positive[rows], np.ones(len(rows)), problem.formulation, 0.1
    )
    first, second = (solve_dual_cd(p, tol=1e-8, max_iter=400_000, random_state=0) for p in (weighted, repeated))
    assert first.primal == pytest.approx(second.primal, rel=1e-7)


@pytest.mark.parametrize("threshold", ["K=1", "K=3", "PatMat"])
def test_seed_history_and_warm_start(threshold):
    problem = make_problem(np.random.default_rng(0), "quadratic", threshold)
    first, second, other = (
        solve_dual_cd(problem, tol=1e-12, max_iter=400, random_state=seed) for seed in (3, 3, np.random.RandomState(4))
    )
    np.testing.assert_array_equal(first.coef, second.coef)
    assert np.any(first.coef != other.coef)
    assert first.n_iter == 400
    assert set(first.history) == set(HISTORY)
    primal, dual = np.diff(first.history["primal"]), np.diff(first.history["dual"])
    assert np.all(primal[:-1] <= 0)
    assert np.all(dual[:-1] >= 0)
    rounding = 1e-14 * len(problem.weights)  # the last row has sums over all rows, computed again
    assert primal[-1] <= rounding
    assert dual[-1] >= -rounding
    again = solve_dual_cd(problem, tol=1e-12, max_iter=200, random_state=0, start=first)
    assert again.history["dual"][0] >= first.dual * (1 - 1e-12)
    assert again.dual >= first.dual


def test_a_warm_start_with_another_penalty_stays_feasible():
    first = solve_dual_cd(make_problem(np.random.default_rng(0), "hinge", "K=3", alpha=0.01), random_state=0)
    problem = make_problem(np.random.default_rng(0), "hinge", "K=3", alpha=1.0)
    second = solve_dual_cd(problem, random_state=0, start=first)
    assert NaiveDual(problem, problem.gram.full).is_feasible(variables_of(second, problem))
    assert second.dual <= exact(problem, "K=3") * (1 + 1e-7)


@pytest.mark.parametrize("cache", [10.0, 1e-9])
def test_single_precision_is_close(cache):
    problem = make_problem(np.random.default_rng(0), "quadratic", "PatMat", kernel="rbf")
    X = problem.gram.X.astype(np.float32)
    gram = Gram(problem.gram.kernel, X, cache)
    single = KernelProblem(gram, problem.positive, problem.weights, problem.formulation, problem.alpha)
    expected = solve_dual_cd(problem, tol=1e-7, random_state=0).primal
    solution = solve_dual_cd(single, tol=1e-4, max_iter=5000, random_state=0)
    assert solution.converged
    assert solution.primal == pytest.approx(expected, rel=1.1e-4)


def test_collapse_is_found():
    """Positives like negatives: w = 0 is the optimum, and the dual variables say so."""
    problem = make_problem(np.random.default_rng(0), "quadratic", "K=1", shift=0.0, d=2, n=200)
    solution = solve_dual_cd(problem, tol=1e-4, random_state=0)
    assert solution.converged
    assert solution.primal == pytest.approx(1.0, rel=1e-3)


def test_duplicate_rows_and_a_kernel_of_zeros():
    problem = make_problem(np.random.default_rng(0), "hinge", "K=3")
    X = np.vstack([problem.gram.X] * 2)
    doubled = KernelProblem(
        Gram(Kernel.resolve("linear", X), X, 1),
        np.tile(problem.positive, 2),
        np.tile(problem.weights, 2),
        problem.formulation,
        0.1,
    )
    assert np.isfinite(solve_dual_cd(doubled, max_iter=2000, random_state=0).coef).all()
    zeros = np.zeros((60, 60))
    flat = KernelProblem(
        Gram(Kernel.resolve("precomputed", zeros), zeros, 1),
        problem.positive,
        problem.weights,
        problem.formulation,
        0.1,
    )
    solution = solve_dual_cd(flat, max_iter=2000, random_state=0)
    assert solution.converged
    assert solution.primal == pytest.approx(1.0)


def test_other_surrogates_and_thresholds_are_refused():
    problem = make_problem(np.random.default_rng(0), "quadratic", "K=1")
    for name in ("huber", "logistic", "exponential"):
        formulation = Formulation(get_surrogate(name), TopMean(), "negatives")
        other = KernelProblem(problem.gram, problem.positive, problem.weights, formulation, 0.1)
        with pytest.raises(
            ValueError, match=f"the surrogate 'quadratic' or 'hinge', got '{name}' .*; use solver='auto'"
        ):
            solve_dual_cd(other)
    grill = Formulation(get_surrogate("quadratic"), Quantile(0.1), "all", false_positives=True)
    with pytest.raises(
        ValueError, match=r"'dual-cd' needs a convex problem of .*, got .* the threshold Quantile.*; use solver='auto'"
    ):
        solve_dual_cd(KernelProblem(problem.gram, problem.positive, problem.weights, grill, 0.1))
