"""WMWRanker as a user meets it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank.datasets import load_bundled, make_randnet
from toprank.metrics import wmw_score
from toprank.pairwise import WMWRanker


# Models are compared to 1e-7, so the optimum has to be found that exactly.
@parametrize_with_checks(
    [
        WMWRanker(tol=1e-14, alpha=0.1),
        WMWRanker(tol=1e-14, alpha=0.1, solver="ncg"),
        WMWRanker(tol=1e-14, alpha=0.1, kernel="rbf", gamma=0.1),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def ordinal(n=300, d=6, seed=0, levels=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X @ np.arange(1, d + 1) + 4 * rng.normal(size=n)
    return X, np.digitize(noisy, np.quantile(noisy, np.arange(1, levels) / levels))


def differences(X, y, graph="full", weight=None):
    """All preferred pairs as rows x_better − x_worse, with their weights."""
    weight = np.ones(len(y)) if weight is None else weight
    rows, weights = [], []
    for i in range(len(y)):
        for j in range(len(y)):
            if y[i] == y[j] + 1 if graph == "chain" else y[i] > y[j]:
                rows.append(X[i] - X[j])
                weights.append(weight[i] * weight[j])
    return np.array(rows), np.array(weights)


def reference(D, p, alpha):
    """The optimum by scipy over explicit pairs."""
    p = p / p.sum()

    def objective(w):
        margins = D @ w
        loss = np.logaddexp(0, -margins)
        return alpha / 2 * w @ w + p @ loss, alpha * w - D.T @ (p / (1 + np.exp(margins)))

    result = minimize(objective, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", tol=1e-15)
    return result.x, result.fun


@pytest.mark.covering
@pytest.mark.parametrize("graph", ["full", "chain"])
@pytest.mark.parametrize("solver", ["newton-cg", "ncg"])
@pytest.mark.parametrize("alpha", [1.0, 1e-2, 1e-5])
def test_optimum_of_all_pairs(alpha, solver, graph):
    X, y = ordinal(120, 4)
    weight = np.random.default_rng(1).random(120) + 0.5
    w, value = reference(*differences(X, y, graph, weight), alpha)
    model = WMWRanker(alpha=alpha, graph=graph, solver=solver, tol=1e-12).fit(X, y, weight)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-4, atol=1e-5)


def test_two_classes_are_logistic_regression_on_differences():
    X, y = ordinal(80, 3, levels=2)
    D, _ = differences(X, y)
    alpha = 0.05
    peer = LogisticRegression(C=1 / (alpha * len(D)), fit_intercept=False, tol=1e-10, max_iter=10_000)
    peer.fit(np.vstack([D, -D]), np.repeat([1, 0], len(D)), np.full(2 * len(D), 0.5))
    model = WMWRanker(alpha=alpha, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-5)


@pytest.mark.parametrize("solver", ["newton-cg", "ncg"])
@pytest.mark.parametrize("alpha", [1e3, 1.0, 1e-3, 1e-7])
def test_certificate(alpha, solver):
    X, y = ordinal()
    model = WMWRanker(alpha=alpha, solver=solver).fit(X, y)
    assert model.suboptimality_ <= model.tol * model.objective_
    assert model.suboptimality_ == pytest.approx(model.gradient_norm_**2 / (2 * alpha))
    assert set(model.history_) == {"iteration", "passes", "seconds", "objective", "gradient_norm", "suboptimality"}
    assert model.history_["suboptimality"][-1] == model.suboptimality_
    assert model.history_["objective"][-1] == model.objective_
    assert model.history_["objective"][0] == pytest.approx(np.log(2))
    assert len(model.history_["iteration"]) == model.n_iter_ + 1
    better = WMWRanker(alpha=alpha, tol=1e-13).fit(X, y)
    assert -1e-13 <= model.objective_ - better.objective_ <= model.suboptimality_
    if solver == "newton-cg":
        assert np.all(np.diff(model.history_["objective"]) <= 1e-14)


@pytest.mark.parametrize("summation", ["exact", "erfc", "direct"])
def test_summations_end_at_the_same_ranking(summation):
    X, y = ordinal(200)
    exact = WMWRanker(alpha=1e-2).fit(X, y)
    model = WMWRanker(alpha=1e-2, solver="ncg", summation=summation).fit(X, y)
    tolerance = 1e-3 if summation == "erfc" else 1e-6
    assert model.objective_ == pytest.approx(exact.objective_, rel=tolerance)
    assert model.objective_ - exact.objective_ <= model.suboptimality_  # the certificate is that of the true objective
    assert model.score(X, y) == pytest.approx(exact.score(X, y), abs=2e-3)


def test_storages_and_precisions(stored):
    X, y = ordinal()
    X[np.abs(X) < 0.5] = 0
    reference_model = WMWRanker(alpha=1e-2).fit(X, y)
    X_stored = stored(X)
    model = WMWRanker(alpha=1e-2).fit(X_stored, y)
    assert model.coef_.dtype == X_stored.dtype == model.predict(X_stored).dtype
    assert model.coef_.shape == (1, X.shape[1])
    np.testing.assert_allclose(model.coef_, reference_model.coef_, rtol=1e-3)
    np.testing.assert_allclose(model.decision_function(X_stored), X @ model.coef_[0], atol=1e-5)


@pytest.mark.parametrize("pairs", [False, True])
def test_weights_are_repeated_and_removed_rows(pairs, rng):
    X, y = ordinal(60)
    weight = rng.integers(0, 4, 60).astype(float)
    options, repeated_options = {}, {}
    copies = np.repeat(np.arange(60), weight.astype(int))
    if pairs:
        chosen = np.array([rng.choice(60, 2, replace=False) for _ in range(20)])
        options = {"pairs": chosen}
        repeated_options = {
            "pairs": [
                (i, j) for a, b in chosen for i in np.flatnonzero(copies == a) for j in np.flatnonzero(copies == b)
            ]
        }
    weighted = WMWRanker(alpha=1e-2, tol=1e-12).fit(X, y, weight, **options)
    repeated = WMWRanker(alpha=1e-2, tol=1e-12).fit(X[copies], y[copies], **repeated_options)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-11)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5)


@pytest.mark.parametrize("scale", [2.0**-7, 1e-320, 1e-200, 1e200, 1e308])
@pytest.mark.parametrize("pairs", [None, [[3, 5], [8, 2]]], ids=["levels", "levels-and-pairs"])
def test_the_scale_of_the_weights_does_not_matter(scale, pairs, rng):
    X, y = ordinal(60)
    weight = rng.integers(0, 4, 60) / 4
    plain = WMWRanker(alpha=1e-2).fit(X, y, weight, pairs=pairs)
    scaled = WMWRanker(alpha=1e-2).fit(X, y, scale * weight, pairs=pairs)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-3 if scale == 1e-320 else 1e-12)
    np.testing.assert_allclose(scaled.coef_, plain.coef_, rtol=1e-2 if scale == 1e-320 else 1e-9)


def test_pairs_alone_equal_the_levels_they_spell_out():
    X, y = ordinal(40, 3)
    pairs = [(i, j) for i in range(40) for j in range(40) if y[i] > y[j]]
    by_levels = WMWRanker(tol=1e-12).fit(X, y)
    by_pairs = WMWRanker(tol=1e-12).fit(X, pairs=pairs)
    np.testing.assert_allclose(by_pairs.coef_, by_levels.coef_, rtol=1e-5)
    assert by_pairs.classes_ is None
    assert by_pairs.score(X, y) == by_levels.score(X, y)
    both = WMWRanker(tol=1e-12).fit(X, y, pairs=pairs, pair_weight=np.full(len(pairs), 3.0))
    np.testing.assert_allclose(both.coef_, by_levels.coef_, rtol=1e-5)


def test_few_pairs_among_many_rows():
    """Rows without a preference do not matter."""
    X, _ = ordinal(9000, 2)
    few = np.arange(1, 8101, 900)  # none of them is among every ninth row
    pairs = [(i, j) for i in few for j in few if X[i, 0] > X[j, 0]]
    model = WMWRanker(tol=1e-12).fit(X, pairs=pairs)
    positions = {row: number for number, row in enumerate(few)}
    alone = WMWRanker(tol=1e-12).fit(X[few], pairs=[(positions[i], positions[j]) for i, j in pairs])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-5, atol=1e-8)


def test_edges_and_named_levels():
    X, y = ordinal(100, levels=3)
    names = np.array(["low", "middle", "high"])[y]
    order = ["low", "middle", "high"]
    plain = WMWRanker().fit(X, y)
    named = WMWRanker(labels=order).fit(X, names)
    assert named.classes_.tolist() == order
    np.testing.assert_allclose(named.coef_, plain.coef_)
    assert named.score(X, names) == plain.score(X, y) == wmw_score(y, plain.predict(X))
    edges = WMWRanker(labels=order, graph=[("high", "low", 2.0)]).fit(X, names)
    kept = y != 1
    np.testing.assert_allclose(edges.coef_, WMWRanker().fit(X[kept], y[kept]).coef_, rtol=1e-3, atol=1e-4)
    assert edges.score(X, names) == wmw_score(names, edges.predict(X), graph=[("high", "low")], labels=order)
    reversed_order = WMWRanker(graph=[(0, 1), (0, 2), (1, 2)]).fit(X, y)
    np.testing.assert_allclose(reversed_order.coef_, -plain.coef_, rtol=1e-3, atol=1e-5)


def test_many_levels():
    X, y = ordinal(200, levels=150)
    model = WMWRanker(tol=1e-10, alpha=1e-2).fit(X, y)
    direct = WMWRanker(tol=1e-10, alpha=1e-2, solver="ncg", summation="direct").fit(X, y)
    assert model.objective_ == pytest.approx(direct.objective_, rel=1e-9)


def test_permuted_rows_shifted_and_scaled_columns():
    X, y = ordinal()
    order = np.random.default_rng(0).permutation(len(y))
    model = WMWRanker(tol=1e-12).fit(X, y)
    np.testing.assert_allclose(WMWRanker(tol=1e-12).fit(X[order], y[order]).coef_, model.coef_, rtol=1e-6)
    np.testing.assert_allclose(WMWRanker(tol=1e-12).fit(X + 1e7, y).coef_, model.coef_, rtol=1e-5)
    badly_scaled = X * np.geomspace(1e-3, 1e3, X.shape[1])
    assert WMWRanker(alpha=1e-8).fit(badly_scaled, y).suboptimality_ <= 1e-6


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["newton-cg", "ncg"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("alpha", [1e4, 1e6, 1e12])
def test_a_large_penalty_leaves_the_direction(alpha, kernel, solver):
    X, y = ordinal()
    options = {"solver": solver, "kernel": kernel}
    model = WMWRanker(alpha=alpha, **options).fit(X, y)
    assert model.n_iter_ == 1
    scores = model.predict(X) - model.predict(X).mean()
    at_zero = differences(np.eye(len(y)), y)[0].mean(axis=0)  # minus twice the gradient by the scores at w = 0
    K = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var())) if kernel == "rbf" else X @ X.T
    expected = K @ at_zero / (2 * alpha)
    np.testing.assert_allclose(scores, expected - expected.mean(), rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("solver", ["newton-cg", "ncg"])
@pytest.mark.parametrize("scale", [1e-3, 1e-6, 1e-13])
def test_tiny_features_are_a_large_penalty(scale, solver):
    X, y = ordinal()
    tiny = WMWRanker(solver=solver, alpha=1e-2).fit(scale * X, y)
    large = WMWRanker(solver=solver, alpha=1e-2 / scale**2).fit(X, y)
    assert tiny.n_iter_ >= 1
    assert tiny.suboptimality_ <= tiny.tol * tiny.objective_
    np.testing.assert_allclose(tiny.coef_ * scale, large.coef_, rtol=1e-3)


def test_wide_sparse_and_separable_data():
    rng = np.random.default_rng(0)
    X = csr_array((rng.random((60, 500)) < 0.02) * rng.random((60, 500)))
    y = rng.integers(0, 3, 60)
    model = WMWRanker(alpha=1e-6).fit(X, y)
    assert model.suboptimality_ <= 1e-6 * model.objective_
    assert model.score(X, y) > 0.95
    huge = WMWRanker(alpha=1e-12).fit(np.array([[0.0], [1.0], [2.0]]), [0, 1, 2])
    assert huge.coef_[0, 0] > 5
    assert huge.suboptimality_ <= 1e-6 * huge.objective_


KERNELS = [
    ("rbf", {"gamma": 0.3}),
    ("poly", {"degree": 2, "gamma": 0.5, "coef0": 1.0}),
    (lambda A, B: np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2)), {}),
]


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS, ids=["rbf", "poly", "callable"])
def test_kernel_form_is_the_optimum_over_all_coefficients(kernel, parameters):
    X, y = ordinal(40, 3)
    model = WMWRanker(kernel=kernel, alpha=1e-2, tol=1e-12, **parameters).fit(X, y)
    assert model.kernel_form_ == "exact"
    K = model._kernel.block(X, X)
    D, p = differences(K, y)
    p = p / p.sum()

    def objective(a):
        margins = D @ a
        value = 0.005 * a @ K @ a + p @ np.logaddexp(0, -margins)
        return value, 0.01 * K @ a - D.T @ (p / (1 + np.exp(margins)))

    best = minimize(objective, np.zeros(40), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-6)
    assert objective(model.dual_coef_.astype(float))[0] == pytest.approx(model.objective_, rel=1e-8)
    np.testing.assert_allclose(model.predict(X), K @ model.dual_coef_, atol=1e-10)


def test_precomputed_kernel():
    X, y = ordinal(80)
    K = rbf_kernel(X, gamma=0.2)
    weight = np.ones(80)
    weight[:10] = 0
    for options in ({}, {"n_components": 30, "random_state": 0}):
        by_matrix = WMWRanker(kernel="precomputed", **options).fit(K, y, weight)
        by_name = WMWRanker(kernel="rbf", gamma=0.2, **options).fit(X, y, weight)
        assert by_matrix.kernel_form_ == by_name.kernel_form_ == ("nystroem" if options else "exact")
        np.testing.assert_allclose(by_matrix.predict(K), by_name.predict(X), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(
            by_matrix.predict(rbf_kernel(X[:7] + 1, X, gamma=0.2)), by_name.predict(X[:7] + 1), rtol=1e-6, atol=1e-8
        )
    with pytest.raises(ValueError, match="needs the square matrix of all training rows"):
        WMWRanker(kernel="precomputed").fit(K[:, :5], y)


def test_nystroem_comes_near_the_exact_form(monkeypatch):
    X, y, _ = make_randnet(400, 5, random_state=0)
    exact = WMWRanker(kernel="rbf").fit(X, y)
    low_rank = WMWRanker(kernel="rbf", n_components=150, random_state=0).fit(X, y)
    assert low_rank.kernel_form_ == "nystroem"
    assert len(low_rank.dual_coef_) == 150 == len(low_rank.components_)
    assert exact.objective_ <= low_rank.objective_ * (1 + 1e-6)
    assert low_rank.objective_ == pytest.approx(exact.objective_, rel=0.02)
    again = WMWRanker(kernel="rbf", n_components=150, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, low_rank.dual_coef_)
    whole = low_rank.predict(X)
    monkeypatch.setattr("toprank.matrices.features._BLOCK_ENTRIES", 1000)
    np.testing.assert_allclose(low_rank.predict(X), whole, rtol=1e-10)


def test_the_kernel_form_of_the_paper_is_linear_on_kernel_columns():
    """(43) of the paper penalises the coefficients themselves: minimise it directly and compare."""
    X, y = ordinal(40, 3)
    K = rbf_kernel(X)
    a, value = reference(*differences(K, y), 1e-2)
    model = WMWRanker(alpha=1e-2, tol=1e-12).fit(K, y)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(model.coef_[0], a, atol=1e-4)


def test_sparse_kernel_and_float32():
    X, y = ordinal(60)
    X = np.where(np.abs(X) > 0.5, X, 0).astype(np.float32)
    dense = WMWRanker(kernel="rbf").fit(X, y)
    sparse = WMWRanker(kernel="rbf").fit(csr_array(X), y)
    assert dense.dual_coef_.dtype == dense.predict(X).dtype == sparse.predict(csr_array(X)).dtype == np.float32
    np.testing.assert_allclose(sparse.predict(csr_array(X)), dense.predict(X), rtol=0.02, atol=0.02)


def test_in_a_pipeline_and_a_search():
    X, y, _ = make_randnet(300, 8, random_state=0)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(8)])
    search = GridSearchCV(make_pipeline(StandardScaler(), WMWRanker()), {"wmwranker__alpha": [1e-3, 1e-1]}, cv=3)
    search.fit(frame, y)
    assert search.best_score_ > 0.8
    assert search.score(frame, y) == wmw_score(y, search.predict(frame))


def test_unseen_levels_in_score():
    X, y = ordinal(100)
    model = WMWRanker().fit(X[y < 3], y[y < 3])
    assert model.score(X, y) == wmw_score(y, model.predict(X))


def test_convergence_warning_says_what_to_do():
    X, y = ordinal()
    for solver in ("newton-cg", "ncg"):
        with pytest.warns(ConvergenceWarning, match=r"stopped after 1 iterations.*increase max_iter or tol"):
            WMWRanker(max_iter=1, tol=1e-10, solver=solver).fit(X, y)


def test_same_result_pickle_clone_and_log(caplog):
    X, y = ordinal()
    first, second = WMWRanker(verbose=1), WMWRanker()
    with caplog.at_level("INFO", logger="toprank"):
        first.fit(X, y)
    assert "iteration 1: passes" in caplog.text
    second.fit(X, y)
    np.testing.assert_array_equal(first.coef_, second.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(X), first.predict(X))
    assert clone(WMWRanker(graph=[(1, 0)])).graph == [(1, 0)]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alpha": 0}, "alpha must be positive and finite, got 0"),
        ({"alpha": np.inf}, "alpha must be"),
        ({"tol": -1}, "tol must be"),
        ({"graph": "ring"}, "graph must be"),
        ({"graph": [(1, 7)]}, "names the label 7"),
        ({"labels": [0, 1]}, "not in labels"),
        ({"solver": "lbfgs"}, "solver must be one of 'newton-cg', 'ncg', got 'lbfgs'"),
        ({"summation": "fast"}, "summation must be one of"),
        ({"summation": "erfc"}, "no second derivatives for solver='newton-cg'; use solver='ncg'"),
        ({"eps": 2}, "eps must be"),
        ({"kernel": "laplace"}, "kernel must be a callable or one of"),
        ({"eps": "a"}, "eps must be at least 1e-13 and below 1, got 'a'"),
        ({"eps": None}, "eps must be .* got None"),
        ({"eps": np.nan}, "eps must be .* got nan"),
        ({"max_iter": 0}, "max_iter must be a whole number of at least 1, got 0"),
        ({"max_iter": "a"}, "max_iter must be .* got 'a'"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1, got 0"),
        ({"n_components": "a"}, "n_components must be .* got 'a'"),
        ({"n_components": None}, "n_components must be .* got None"),
        ({"n_components": 10.5}, "n_components must be .* got 10.5"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = ordinal(50)
    with pytest.raises(ValueError, match=message):
        WMWRanker(**parameters).fit(X, y)


def test_bad_data():
    X, y = ordinal(50)
    with pytest.raises(ValueError, match=r"requires y to be passed.*or pairs="):
        WMWRanker().fit(X)
    with pytest.raises(ValueError, match="no row is preferred to another"):
        WMWRanker().fit(X, np.zeros(50))
    with pytest.raises(ValueError, match="no row is preferred to another"):
        WMWRanker().fit(X, y, sample_weight=(y == 0))
    with pytest.raises(ValueError, match="no row is preferred to another"):
        WMWRanker().fit(X, pairs=np.zeros((0, 2), int))
    with pytest.raises(ValueError, match="NaN"):
        WMWRanker().fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="Negative values"):
        WMWRanker().fit(X, y, sample_weight=-np.ones(50))
    with pytest.raises(ValueError, match="StandardScaler"):
        WMWRanker().fit(1e100 * X, y)


def test_bundled_data_reach_a_good_ranking():
    data = load_bundled("breast_cancer")
    model = make_pipeline(StandardScaler(), WMWRanker()).fit(data.X[::2], data.y[::2])
    assert model.score(data.X[1::2], data.y[1::2]) > 0.98


def test_no_warning_on_tiny_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = WMWRanker().fit([[0], [1]], [3, 5])
    assert model.coef_[0, 0] > 0
    for value in (1.0, 0.1):
        for dtype in (np.float32, np.float64):
            constant = WMWRanker().fit(np.full((41, 2), value, dtype), np.arange(41) % 3)
            np.testing.assert_array_equal(constant.coef_, [[0, 0]])
