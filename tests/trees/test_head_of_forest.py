"""The head of `TopForest`: its optimum by an exact solver, what a label can move, and hard input."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.frozen import FrozenEstimator

from exact import optimum
from toprank import TopForest
from toprank.datasets import make_imbalanced
from toprank.trees import forest as module
from toprank.trees.grove import Grove
from toprank.trees.head_choice import to_fit
from toprank.trees.training_leaves import training_leaves


@pytest.fixture(scope="module")
def data():
    X, y, _ = make_imbalanced(120, random_state=0, positive_share=0.25)
    return X.astype(np.float32), y


@pytest.mark.parametrize("honest", [False, True])
def test_the_optimum_is_that_of_an_exact_solver(honest, data, monkeypatch):
    seen = []

    def keeping(head, candidate, rows):
        seen.append(to_fit(rows, candidate))
        return fitted(head, candidate, rows)

    fitted = module.fitted
    monkeypatch.setattr(module, "fitted", keeping)
    trees = ExtraTreesClassifier(5, max_leaf_nodes=6, bootstrap=True, random_state=0)
    model = TopForest(tau=0.1, trees=trees, alpha=0.1, honest=honest, tol=1e-7, random_state=0).fit(*data)
    rows = seen[0].tocsr().toarray()
    assert rows.shape[1] == model.n_leaves_.sum() + 1  # and the prior
    expected = optimum(rows, data[1] == 1, np.ones(len(rows)), 0.1, "quadratic", tau=0.1, beta=0.1)
    assert model.objective_ == pytest.approx(expected, rel=1e-5)


def test_the_label_of_a_row_cannot_move_its_honest_leaves_and_prior(data):
    X, y = data
    trees = ExtraTreesClassifier(20, min_samples_leaf=2, bootstrap=True, random_state=0)

    def of_row(row, labels):
        random = np.random.RandomState(0)
        grove = Grove.of([trees], X, labels, None, None, random)
        rows, (prior,) = training_leaves(grove, X, labels == 1, np.ones(len(y)), random)
        honest = rows.honest[[row]].tocsr().indices
        tree = np.searchsorted(rows.honest.starts, honest, side="right") - 1
        score = rows.prior[row, 0] * prior.scale + prior.centre  # the column is standardised over all rows
        return tree, honest - rows.honest.starts[tree], score, rows.whole.leaves[row]

    moved = 0
    for row in range(0, 120, 20):
        other = y.copy()
        other[row] = 1 - other[row]
        before, after = of_row(row, y), of_row(row, other)
        for one, same in zip(before[:3], after[:3], strict=True):
            np.testing.assert_allclose(one, same, atol=1e-12)
        moved += not np.array_equal(before[3], after[3])
    assert moved >= 3  # in the trees that drew a row, its label has a say


def test_a_bag_of_one_class(data):
    X, y = data
    few = np.concatenate([np.flatnonzero(y == 1)[:2], np.flatnonzero(y == 0)[:60]])
    trees = ExtraTreesClassifier(10, bootstrap=True, random_state=1)
    model = TopForest(tau=0.1, trees=trees, alpha=1.0, random_state=0).fit(X[few], y[few])
    drawn = [set(y[few][rows]) for rows in model.sources_[0].estimators_samples_]
    assert {0} in drawn  # a tree without any positive has a single leaf
    assert np.isfinite(model.decision_function(X)).all()


def test_hard_input_says_what_is_wrong(data):
    X, y = data
    with pytest.raises(ValueError, match=r"min_samples_leaf must be a whole number.*got 0\.01"):
        TopForest(min_samples_leaf=0.01).fit(X, y)
    old = ExtraTreesClassifier(3, random_state=0).fit(X, y)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), alpha=1.0).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.decision_function(X[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        TopForest(trees=FrozenEstimator(old)).fit(X, y[:-1])


def test_ctrl_c_leaves_the_model_as_it_was(data, monkeypatch):
    old = ExtraTreesClassifier(3, random_state=0).fit(*data)
    model = TopForest(tau=0.1, trees=FrozenEstimator(old), alpha=1.0, random_state=0).fit(*data)
    before = model.decision_function(data[0])

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "training_leaves", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    np.testing.assert_array_equal(model.decision_function(data[0]), before)
