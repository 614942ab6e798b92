"""Trees in a graph give every score of the model to the last bits, also where rows fall on a split."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.tree import DecisionTreeClassifier

from deployment.running import assert_same, run
from toprank import NeymanPearsonClassifier, TopForest, to_onnx
from toprank.boosting import objective


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 5))
    X[:, 4] = random.integers(0, 4, 600)  # ties, and rows on splits
    y = X[:, 0] + X[:, 1] ** 2 + random.normal(size=600) > 1.5
    return X, np.where(y, "yes", "no")


FORESTS = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "one leaf": DecisionTreeClassifier(max_depth=1, min_samples_leaf=300, random_state=0),
    "forest": RandomForestClassifier(12, random_state=0),
    "extra": ExtraTreesClassifier(7, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=10, random_state=0),
    "exponential": GradientBoostingClassifier(n_estimators=10, loss="exponential", random_state=0),
    "from zero": GradientBoostingClassifier(n_estimators=3, init="zero", random_state=0),
    "histogram": HistGradientBoostingClassifier(max_iter=10, random_state=0),
}


def lightgbm(**parameters):
    package = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    return package.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1, random_state=0, **parameters)


def on_splits(X):
    """Rows, and again with each number moved to its neighbours."""
    return np.vstack([X, np.nextafter(X, np.inf), np.nextafter(X, -np.inf)])


@pytest.mark.parametrize("method", ["auto", "predict_proba"])
@pytest.mark.parametrize("name", [*FORESTS, "lightgbm"])
def test_forests_and_their_thresholds(name, method, rows):
    X, y = rows
    model = lightgbm() if name == "lightgbm" else FORESTS[name]
    model = NeymanPearsonClassifier(model, max_fpr=0.1, response_method=method, pos_label="yes", random_state=0)
    model.fit(X, y)
    assert_same(model, on_splits(X), tolerance=1e-13)
    assert_same(model.estimator_, on_splits(X), tolerance=1e-13)


def numbers_of_roots(model):
    """The numbers that both ways of each root have in a graph, be it of a leaf or of a node."""
    (node,) = [one for one in to_onnx(model).graph.node if one.op_type == "TreeEnsemble"]
    given = {one.name: np.array(one.ints) for one in node.attribute}
    return [given[f"nodes_{way}nodeids"][given["tree_roots"]] for way in ("true", "false")]


def with_trees_of_one_leaf(X, y):
    forest = GradientBoostingClassifier(n_estimators=6, min_impurity_decrease=0.03, random_state=0).fit(X, y)
    sizes = [tree.tree_.node_count for tree in forest.estimators_[:, 0]]
    assert min(sizes) == 1 < max(sizes)
    return forest


def with_a_leaf_left_of_the_second_root(X, y):
    """In whose graph that leaf and the node on the right would have the same number."""
    forests = (RandomForestClassifier(3, max_leaf_nodes=3, random_state=seed).fit(X, y) for seed in range(100))
    return next(forest for forest in forests if forest.estimators_[1].tree_.children_left[1] < 0)


@pytest.mark.parametrize("make", [with_trees_of_one_leaf, with_a_leaf_left_of_the_second_root])
def test_roots_do_not_look_like_leaves(make, rows):
    """To runtimes before 1.24 they do if both ways have the same number, even of a leaf and of a node."""
    forest = make(*rows)
    assert_same(forest, rows[0])
    left, right = numbers_of_roots(forest)
    assert (left != right).all()


def test_an_objective_of_the_top_inside_lightgbm(rows):
    X, y = rows
    model = NeymanPearsonClassifier(lightgbm(objective=objective("TauFPL", tau=0.1)), max_fpr=0.1, random_state=0)
    assert_same(model.fit(X, y == "yes"), on_splits(X), tolerance=1e-13)


@pytest.mark.parametrize("name", ["tree", "forest", "histogram", "lightgbm", "lightgbm without gaps"])
def test_missing_values(name, rows):
    X, y = rows
    X = X.copy()
    gaps = X.copy()
    gaps[::3, 0], gaps[1::4, 4] = np.nan, np.nan
    model = lightgbm() if name.startswith("lightgbm") else FORESTS[name]
    model = model.fit(X if "without" in name else gaps, y)
    assert_same(model, gaps, tolerance=1e-13)


def test_what_a_model_refuses_has_no_score(rows):
    X, y = rows
    model = FORESTS["boosting"].fit(X, y)
    X = X[:3].copy()
    X[1, 2] = np.nan
    assert np.isnan(run(model, X)[0]).tolist() == [False, True, False]


def test_what_has_no_export(rows):
    X, y = rows
    pytest.importorskip("onnx", reason="onnx is not installed")
    for model in (
        HistGradientBoostingClassifier(max_iter=2, categorical_features=[4]),
        GradientBoostingClassifier(n_estimators=2, init=DecisionTreeClassifier(max_depth=1)),
        lightgbm(zero_as_missing=True),
        lightgbm(linear_tree=True),
        lightgbm(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5),
    ):
        with pytest.raises(TypeError, match=f"{type(model).__name__} with .* has no ONNX export here"):
            to_onnx(model.fit(X, y))
    with pytest.raises(TypeError, match="categorical features"):
        to_onnx(lightgbm(min_data_per_group=1, cat_smooth=1).fit(X, X[:, 4] % 2, categorical_feature=[4]))


def table(n=300):
    """Numbers with gaps, words with gaps, truth values as objects, and labels."""
    random = np.random.default_rng(0)
    amount, kind = random.exponential(100, n), random.choice(["card", "cash", "wire"], n)
    y = ((amount > 120) & (kind == "wire")) | (random.random(n) < 0.05)
    amount[random.random(n) < 0.1] = np.nan
    words = [None if random.random() < 0.1 else str(word) for word in kind]
    seen = [None if random.random() < 0.2 else bool(one) for one in random.random(n) < 0.5]
    return pd.DataFrame({"amount": amount, "kind": words, "seen": pd.Series(seen, dtype=object)}), y.astype(int)


@pytest.fixture(scope="module")
def small_forest():
    return TopForest(tau=0.1, n_estimators=5, alpha=1.0, honest=False, random_state=0)


def test_a_top_forest_with_categories_and_gaps(small_forest):
    frame, y = table()
    model = small_forest.fit(frame, y)
    new = frame.assign(kind=frame["kind"].replace("cash", "cheque"))  # one that was not in training counts as missing
    for rows in (frame, new):
        assert_same(model, rows, tolerance=1e-12)
    assert len(np.unique(run(model, new)[0])) > 10


def test_a_top_forest_under_a_promise_reads_rows_in_single_precision(small_forest, rows):
    X, y = rows
    X = np.where(X > 2, np.nan, X)
    model = NeymanPearsonClassifier(small_forest, max_fpr=0.2, pos_label="yes", random_state=0).fit(X, y)
    assert_same(model, on_splits(X), tolerance=1e-12)
