"""`LeafFeatures`: leaves of every source as the source itself has them, honesty, and what cannot be used."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import LeafFeatures, PatMatNP
from toprank.matrices.leaves import LeafMatrix
from toprank.trees.sources import source_of


def rows(n=200, seed=0, missing=0.0):
    """Rows of five features and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.standard_normal(n) > 1.5).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def of_library(module, name, **parameters):
    """An unfitted model of a library that may not be installed."""
    return getattr(pytest.importorskip(module), name)(**parameters)


SOURCES = {
    "ExtraTrees": lambda: ExtraTreesClassifier(6, max_leaf_nodes=9, bootstrap=True),
    "ExtraTreesRegressor": lambda: ExtraTreesRegressor(6, max_leaf_nodes=7),
    "RandomForest": lambda: RandomForestClassifier(6, max_depth=3),
    "GradientBoosting": lambda: GradientBoostingClassifier(n_estimators=6),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5),
    "LightGBM": lambda: of_library("lightgbm", "LGBMClassifier", n_estimators=6, min_child_samples=5, verbose=-1),
    "XGBoost": lambda: of_library("xgboost", "XGBClassifier", n_estimators=6, max_depth=3),
    "CatBoost": lambda: of_library(
        "catboost", "CatBoostClassifier", iterations=6, depth=3, verbose=0, allow_writing_files=False
    ),
}


@pytest.fixture(params=SOURCES)
def source(request):
    return SOURCES[request.param]()


def raw_scores(model, X):
    """What the leaves of an ensemble add up to, by the library itself."""
    if hasattr(model, "booster_"):
        return model.predict(X, raw_score=True)
    if hasattr(model, "get_booster"):
        return model.predict(X, output_margin=True)
    if hasattr(model, "calc_leaf_indexes"):
        return model.predict(X, prediction_type="RawFormulaVal")
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def explained(design, scores):
    """The scores that one value a leaf can give, nearest to given ones."""
    values, *_ = np.linalg.lstsq(design, scores, rcond=None)
    return design @ values


def test_the_scores_of_an_ensemble_are_sums_over_its_leaves(source):
    """So few leaves explain the scores of so many rows only if they are the right ones."""
    X, y = rows(2000)
    new, _ = rows(300, seed=1)
    features = LeafFeatures(source, random_state=0).fit(X, y)
    model, leaves = features.trees_[0], features.transform(np.vstack([X, new]))
    assert leaves.shape == (2300, features.n_leaves_.sum())
    assert leaves.n_trees == 6
    assert np.all(leaves.leaves.max(axis=0) < features.n_leaves_)
    scores = np.asarray(raw_scores(model, np.vstack([X, new])), dtype=float)
    design = leaves.tocsr().toarray()
    assert design.shape[1] < 250
    np.testing.assert_allclose(explained(design, scores), scores, atol=1e-4)


def test_missing_values_go_where_the_source_sends_them():
    X, y = rows(1000, missing=0.2)
    for source in (
        ExtraTreesClassifier(8, max_leaf_nodes=20, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
    ):
        features = LeafFeatures(source).fit(X, y)
        leaves = features.transform(X)
        scores = raw_scores(features.trees_[0], X)
        np.testing.assert_allclose(explained(leaves.tocsr().toarray(), scores), scores, atol=1e-6)


def test_categories_are_those_of_the_source():
    X, y = rows(300)
    frame = pd.DataFrame({"number": X[:, 0], "word": pd.Categorical(np.where(X[:, 1] > 0, "a", "b"))})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    features = LeafFeatures(model).fit(frame, y)
    assert list(features.feature_names_in_) == ["number", "word"]
    scores = raw_scores(features.trees_[0], frame)
    np.testing.assert_allclose(explained(features.transform(frame).tocsr().toarray(), scores), scores, atol=1e-6)


def test_sparse_rows_have_the_leaves_of_dense_ones():
    X, y = rows()
    X[X < 0] = 0.0
    features = LeafFeatures(ExtraTreesClassifier(6, random_state=0)).fit(csr_array(X), y)
    np.testing.assert_array_equal(features.transform(csr_array(X)).leaves, features.transform(X).leaves)


@pytest.mark.filterwarnings("ignore:The argument 'eval_set'")
def test_an_early_stopped_booster_has_the_trees_that_it_predicts_with():
    lightgbm = pytest.importorskip("lightgbm")
    xgboost = pytest.importorskip("xgboost")
    X, y = rows(400)
    held_out = [rows(200, seed=1)]
    models = [
        lightgbm.LGBMClassifier(n_estimators=100, learning_rate=0.5, verbose=-1).fit(
            X, y, eval_set=held_out, callbacks=[lightgbm.early_stopping(3, verbose=False)]
        ),
        xgboost.XGBClassifier(n_estimators=100, learning_rate=0.5, early_stopping_rounds=3).fit(
            X, y, eval_set=held_out, verbose=False
        ),
    ]
    for model in models:
        leaves = LeafFeatures(FrozenEstimator(model)).fit_transform(X, y)
        assert 0 < leaves.n_trees < 100
        scores = np.asarray(raw_scores(model, X), dtype=float)
        np.testing.assert_allclose(explained(leaves.tocsr().toarray(), scores), scores, atol=1e-4)


def test_a_grove_has_the_leaves_of_all_ensembles():
    X, y = rows()
    parts = [ExtraTreesClassifier(5, random_state=0), GradientBoostingClassifier(n_estimators=3, random_state=0)]
    grove = LeafFeatures(parts).fit_transform(X, y)
    each = [LeafFeatures(part).fit_transform(X, y) for part in parts]
    np.testing.assert_array_equal(grove.leaves, np.hstack([one.leaves for one in each]))
    np.testing.assert_allclose(grove.squared_norms(), 1.0)


def leaves_by_tree(matrix):
    """The number of the leaf of each row in each tree, −1 where the tree does not count."""
    entries = matrix.tocsr().tocoo()
    trees = np.searchsorted(matrix.starts, entries.col, side="right") - 1
    leaves = np.full((len(matrix), matrix.n_trees), -1)
    leaves[entries.row, trees] = entries.col - matrix.starts[trees]
    return leaves


def test_honest_leaves_are_those_of_the_trees_that_did_not_draw_the_row():
    X, y = rows(80)
    features = LeafFeatures(RandomForestClassifier(15, random_state=0), honest=True)
    honest = features.fit_transform(X, y)
    used = leaves_by_tree(honest) >= 0
    for tree, drawn in enumerate(features.trees_[0].estimators_samples_):
        assert not used[drawn, tree].any()
        assert used[np.setdiff1d(np.arange(80), drawn), tree].all()
    entries = honest.tocsr()
    counts = np.diff(entries.indptr)
    np.testing.assert_array_equal(counts, used.sum(axis=1))
    np.testing.assert_allclose(entries.data, np.repeat(np.sqrt(15) / counts, counts))
    everything = features.transform(X)
    assert everything.listed is None
    np.testing.assert_array_equal(everything.leaves[used], leaves_by_tree(honest)[used])


@pytest.mark.parametrize("forest", [ExtraTreesClassifier, RandomForestClassifier])
def test_the_label_of_a_row_cannot_move_its_honest_features(forest):
    X, y = rows(60)
    trees = forest(25, min_samples_leaf=2, bootstrap=True, random_state=3)
    before, plain = (LeafFeatures(trees, honest=honest).fit_transform(X, y) for honest in (True, False))
    moved = 0
    for row in range(0, 60, 6):
        other = y.copy()
        other[row] = 1 - other[row]
        after = LeafFeatures(trees, honest=True).fit_transform(X, other)
        np.testing.assert_array_equal(leaves_by_tree(after) >= 0, leaves_by_tree(before) >= 0)
        np.testing.assert_array_equal(leaves_by_tree(after)[row], leaves_by_tree(before)[row])
        everywhere = LeafFeatures(trees).fit_transform(X, other).leaves
        moved += not np.array_equal(everywhere[row], plain.leaves[row])
    assert moved > 5  # in the trees that drew a row, its label has a say


def test_a_row_that_all_trees_drew_has_no_honest_leaves():
    X, y = rows(100)
    honest = LeafFeatures(RandomForestClassifier(2, random_state=0), honest=True).fit_transform(X, y)
    empty = np.diff(honest.tocsr().indptr) == 0
    assert empty.any()
    assert PatMatNP(tau=0.1).fit(honest, y).dual_gap_ <= 1e-4


def test_frozen_trees_are_not_fitted_again():
    X, y = rows()
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    features = LeafFeatures(FrozenEstimator(model), honest=True)
    leaves = features.fit_transform(*rows(50, seed=5))
    assert features.trees_[0] is model
    np.testing.assert_allclose(leaves.squared_norms(), 1.0)  # they have not seen these rows


def test_the_default_is_deterministic_and_goes_into_a_pipeline():
    X, y = rows()
    model = make_pipeline(LeafFeatures(random_state=0, honest=True), PatMatNP(tau=0.1))
    scores = clone(model).fit(X, y).decision_function(X)
    np.testing.assert_array_equal(model.fit(X, y).decision_function(X), scores)
    assert isinstance(model[0].transform(X), LeafMatrix)
    assert len(model[0].get_feature_names_out()) == model[1].n_features_in_
    assert model[0].get_feature_names_out()[0] == "tree0_leaf0"


def test_estimators_of_others_read_csr():
    X, y = rows()
    model = make_pipeline(LeafFeatures(ExtraTreesClassifier(20), output="csr"), LogisticRegression()).fit(X, y)
    assert model.score(X, y) > 0.8


def test_weights_and_jobs_reach_the_trees():
    X, y = rows()
    weights = np.where(np.arange(200) < 100, 1.0, 0.0)
    features = LeafFeatures(RandomForestClassifier(5), random_state=0, n_jobs=2).fit(X, y, sample_weight=weights)
    assert features.trees_[0].n_jobs == 2
    assert isinstance(features.trees_[0].random_state, int)
    plain = LeafFeatures(RandomForestClassifier(5), random_state=0).fit(X, y)
    assert not np.array_equal(features.n_leaves_, plain.n_leaves_)


def test_what_cannot_be_used_says_what_can():
    X, y = rows()
    with pytest.raises(ValueError, match=r"trees must be ensembles of trees, got LogisticRegression.*LightGBM"):
        LeafFeatures(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="trees must be ensembles of trees, got 5"):
        LeafFeatures(5).fit(X, y)
    with pytest.raises(ValueError, match="trees must have an ensemble at least"):
        LeafFeatures([]).fit(X, y)
    with pytest.raises(ValueError, match=r"honest=True needs trees.*GradientBoostingClassifier.*bootstrap=True"):
        LeafFeatures(GradientBoostingClassifier(n_estimators=2), honest=True).fit(X, y)
    with pytest.raises(ValueError, match="output must be one of 'leaves', 'csr', got 'dense'"):
        LeafFeatures(output="dense").fit(X, y)
    frozen = FrozenEstimator(RandomForestClassifier(3).fit(X, y))
    with pytest.raises(ValueError, match="X has 4 features, but the trees of RandomForestClassifier were fitted to 5"):
        LeafFeatures(frozen).fit(X[:, :4], y)
    with pytest.raises(ValueError, match="one tree a step"):
        LeafFeatures(GradientBoostingClassifier(n_estimators=2)).fit(X, np.arange(200) % 3)


@parametrize_with_checks([LeafFeatures(ExtraTreesClassifier(5), output="csr", random_state=0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_boosted_trees_as_arrays_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0] * X[:, 1]) > 0
    model = HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=3).fit(X[:300], y[:300])
    source = source_of(model)
    np.testing.assert_array_equal(source.trees.leaf_numbers(X), source.leaf_numbers(X))
    scores = source.trees.scores(X, source.trees.node_values(source.leaf_values()))
    expected = model.decision_function(X)  # with a constant that ranks nothing
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-12)


def test_a_source_that_forgets_its_nodes_knows_draws_and_values():
    X, y = rows()
    model = ExtraTreesClassifier(5, bootstrap=True, random_state=0).fit(X, y)
    source = source_of(model)
    seen, values, leaves = source.seen(len(X)), source.leaf_values(), source.leaf_numbers(X)
    source.forget_nodes()
    np.testing.assert_array_equal(source.seen(len(X)), seen)
    np.testing.assert_array_equal(source.leaf_values(), values)
    np.testing.assert_array_equal(source.leaf_numbers(X), leaves)
    assert all(tree.tree_.node_count for tree in model.estimators_)  # that of the user has its own
