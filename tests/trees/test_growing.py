"""The growing of trees in portions: the same trees as at once, and how far it is."""

from contextlib import nullcontext

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from toprank import TopForest
from toprank.datasets import make_imbalanced
from toprank.files import fit_file
from toprank.log import listening
from toprank.trees.grove import bins_needed, default_ensembles
from toprank.trees.growing import grown


@pytest.fixture(scope="module")
def data():
    X, y, _ = make_imbalanced(300, random_state=0)
    X[::7, 2] = np.nan
    return X.astype(np.float32), y


@pytest.fixture
def small_portions(monkeypatch):
    monkeypatch.setattr("toprank.trees.growing._LEAST_WORK", 0)


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize(
    "forest",
    [
        ExtraTreesClassifier(45, bootstrap=True, random_state=3),
        ExtraTreesClassifier(45, random_state=3, class_weight={0: 1, 1: 3}, n_jobs=2),
        RandomForestClassifier(45, max_samples=0.5, random_state=3),
        ExtraTreesRegressor(45, bootstrap=True, random_state=3),
    ],
    ids=repr,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_portions_give_the_trees_of_one_fit(forest, weighted, data):
    X, y = data
    weights = np.random.default_rng(0).random(len(y)) if weighted else None
    at_once, said = clone(forest).fit(X, y, sample_weight=weights), []
    model = grown(clone(forest), X, y, weights, said.append)
    name = type(forest).__name__
    assert said == [f"growing {name}: {done} of 45 trees" for done in range(0, 45, 3)]
    assert model.get_params() == forest.get_params()
    for one, other in zip(model.estimators_, at_once.estimators_, strict=True):
        left, right = one.tree_.__getstate__(), other.tree_.__getstate__()
        np.testing.assert_array_equal(left["nodes"], right["nodes"])
        np.testing.assert_array_equal(left["values"], right["values"])
    for one, other in zip(model.estimators_samples_, at_once.estimators_samples_, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        ExtraTreesClassifier(30, bootstrap=True, oob_score=True, random_state=0),
        ExtraTreesClassifier(30, class_weight="balanced", random_state=0),
        ExtraTreesClassifier(30, random_state=np.random.RandomState(0)),
        type("Own", (ExtraTreesClassifier,), {})(30, random_state=0),
    ],
    ids=["boosting", "oob_score", "class weights", "generator", "own class"],
)
def test_others_grow_at_once(model, data):
    said = []
    grown(model, *data, None, said.append)
    assert said == [f"growing {type(model).__name__}"]


@pytest.mark.usefixtures("small_portions")
def test_a_forest_says_how_far_it_is_and_stays_the_same(data, caplog, monkeypatch):
    model = TopForest(tau=0.05, n_estimators=40, alpha=1.0, honest=False, random_state=0)
    heard = []
    with listening(heard.append), caplog.at_level("INFO", logger="toprank"):
        verbose = clone(model).set_params(verbose=1).fit(*data)
    for text in (
        "growing ExtraTreesClassifier: 38 of 40 trees, ensemble 1 of 3",
        "growing ExtraTreesClassifier: 0 of 40 trees, ensemble 2 of 3",
        "growing HistGradientBoostingClassifier, ensemble 3 of 3",
        "growing HistGradientBoostingClassifier without fold 5 of 5",
    ):
        assert text in heard
        assert f"TopForest: {text}" in caplog.messages
    monkeypatch.setattr("toprank.trees.growing._LEAST_WORK", 10**9)
    caplog.clear()
    at_once = clone(model).fit(*data)
    assert not caplog.messages
    np.testing.assert_array_equal(verbose.leaf_values_, at_once.leaf_values_)
    assert verbose.threshold_ == at_once.threshold_


@pytest.mark.usefixtures("small_portions")
def test_the_command_shows_the_trees_while_they_grow(data, tmp_path):
    X, y = data
    columns = {f"x{j}": X[:, j] for j in range(3)}
    pl.DataFrame(columns | {"y": y}).write_csv(tmp_path / "train.csv")
    watcher = Watcher()
    model = TopForest(tau=0.05, n_estimators=40, alpha=1.0, honest=False, random_state=0)
    fit_file(tmp_path / "train.csv", model, target="y", watcher=watcher)
    assert "fitting: growing ExtraTreesClassifier: 20 of 40 trees, ensemble 1 of 3" in watcher.titles
    assert "fitting: growing HistGradientBoostingClassifier without fold 2 of 5" in watcher.titles


class Watcher:
    """Keeps the titles of its progress, as the bar of the command shows them."""

    shows_progress = True

    def __init__(self):
        self.titles = []

    def note(self, text):
        pass

    def progress(self, title, total=None):
        return nullcontext(lambda position, title=title: self.titles.append(title))


@pytest.mark.parametrize("most", [2, 40, 400])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_more_bins_than_values_change_nothing(most, weighted, rng):
    X = rng.integers(0, rng.integers(1, most + 1, 12), (600, 12)).astype(np.float32)
    X[:, 0] = np.arange(600) % most
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X).sum(axis=1) + rng.normal(0, most, 600) > 6 * most / 2).astype(int)
    weights = rng.random(600) if weighted else None
    *_, boosted = default_ensembles(20, 3, "sqrt", bins_needed(X))
    usual = clone(boosted).set_params(max_bins=255, random_state=0).fit(X, y, sample_weight=weights)
    fewer = boosted.set_params(random_state=0).fit(X, y, sample_weight=weights)
    assert fewer.max_bins == min(most + 1, 255)  # a gap counts as a value
    for one, other in zip(fewer._predictors, usual._predictors, strict=True):
        for field in set(one[0].nodes.dtype.names) - {"bin_threshold"}:
            np.testing.assert_array_equal(one[0].nodes[field], other[0].nodes[field])
