"""Boosters of LightGBM and XGBoost in model files: the same scores, and nothing crafted reaches their readers."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from toprank import LeafFeatures, NeymanPearsonClassifier, PatMatNP, TopForest
from toprank.persistence import ModelFileError, load, packed, save
from toprank.persistence.lightgbm_text import check_lightgbm_text
from toprank.persistence.xgboost_json import check_xgboost_json
from toprank.saved_state import StateError


def rows(n=300):
    random = np.random.default_rng(0)
    X = random.random((n, 3))
    y = ((X[:, 1] > 0.8) ^ (random.random(n) < 0.05)).astype(int)
    X[::7, 0] = np.nan
    return X, y


def booster_of(library):
    package = pytest.importorskip(library, reason=f"{library} is not installed")
    if library == "lightgbm":
        return package.LGBMClassifier(n_estimators=5, num_leaves=5, verbose=-1, n_jobs=1)
    return package.XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1)


WRAPPED = {
    "promise": lambda model: NeymanPearsonClassifier(FrozenEstimator(model), max_fpr=0.2),
    "leaves": lambda model: make_pipeline(LeafFeatures(FrozenEstimator(model)), PatMatNP(tau=0.1)),
    "retuned": lambda model: TopForest(trees=FrozenEstimator(model), tau=0.1, alpha=1.0, honest=True, random_state=0),
}


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("name", WRAPPED)
def test_a_booster_inside_of_models(library, name, tmp_path):
    X, y = rows()
    model = WRAPPED[name](booster_of(library).fit(X, y)).fit(X, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    save(loaded, tmp_path / "again")
    assert load(tmp_path / "again").decision_function(X).tolist() == model.decision_function(X).tolist()


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_a_frozen_booster_without_its_model(library, tmp_path):
    X, y = rows()
    old = booster_of(library).fit(X, y)
    model = WRAPPED["retuned"](old.booster_ if library == "lightgbm" else old.get_booster()).fit(X, y)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").decision_function(X), model.decision_function(X))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_categories_of_lightgbm_and_what_it_learned_in_training(tmp_path):
    X, y = rows()
    frame = pd.DataFrame({"a": X[:, 0], "kind": pd.Categorical(np.where(X[:, 1] > 0.8, "card", "wire"))})
    old = booster_of("lightgbm").set_params(min_data_per_group=5)
    old.fit(frame, y, eval_set=[(frame, y)])
    model = NeymanPearsonClassifier(FrozenEstimator(old), max_fpr=0.2).fit(frame, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(frame), model.decision_function(frame))
    inner = loaded.estimators_[0].estimator
    assert inner.best_score_ == old.best_score_
    assert inner.evals_result_ == old.evals_result_
    assert "cat_threshold" in inner.booster_.model_to_string()


def test_what_is_not_saved_says_why(tmp_path):
    X, y = rows()
    with pytest.raises(ModelFileError, match=r"not saved, as it has linear models in its leaves.*linear_tree=False"):
        save(booster_of("lightgbm").set_params(linear_tree=True).fit(X, y), tmp_path / "model")
    with pytest.raises(ModelFileError, match="several trees a step"):
        save(booster_of("lightgbm").fit(X, np.arange(len(y)) % 3), tmp_path / "model")
    with pytest.raises(ModelFileError, match="booster 'dart', of which none is saved"):
        save(booster_of("xgboost").set_params(booster="dart").fit(X, y), tmp_path / "model")


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    X, y = rows()
    save(WRAPPED["promise"](booster_of("lightgbm").fit(X, y)).fit(X, y), tmp_path / "model")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ModelFileError, match=r"a model of lightgbm, which is not installed.*pip install lightgbm"):
        load(tmp_path / "model")


def lines_changed(text, key, change):
    """A text in which the first line of a key is changed, with the size of its tree made to fit."""
    lines = text.split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith(f"{key}="))
    before, lines[place] = lines[place], f"{key}={change(lines[place].partition('=')[2])}"
    sizes = next(i for i, line in enumerate(lines) if line.startswith("tree_sizes="))
    if place > sizes:
        first, *others = lines[sizes].partition("=")[2].split()
        more = len(lines[place]) - len(before)
        lines[sizes] = "tree_sizes=" + " ".join([str(int(first) + more), *others])
    return "\n".join(lines)


def first(value):
    return lambda text: " ".join([str(value), *text.split()[1:]])


TEXTS = {
    "a feature outside": ("split_feature", first(3)),
    "a negative feature": ("split_feature", first(-1)),
    "a child far outside": ("left_child", first(10**6)),
    "a node that is its own child": ("right_child", first(0)),
    "a leaf outside": ("left_child", first(-6)),
    "more leaves": ("num_leaves", lambda text: "1000000"),
    "fewer values": ("leaf_value", lambda text: "0.5"),
    "a set of categories that is not there": ("decision_type", first(1)),
    "sizes of trees outside": ("tree_sizes", first(10**9)),
    "a negative size": ("tree_sizes", first(-5)),
    "more features": ("max_feature_idx", lambda text: "1000000000"),
    "several classes": ("num_class", lambda text: "3"),
    "linear leaves": ("is_linear", lambda text: "1"),
    "a fraction of a node": ("left_child", first(1.5)),
}


@pytest.fixture(scope="module")
def text():
    return booster_of("lightgbm").fit(*rows()).booster_.model_to_string()


@pytest.mark.parametrize("case", TEXTS)
def test_a_crafted_text_does_not_reach_lightgbm(case, text):
    check_lightgbm_text(text)
    with pytest.raises((StateError, ValueError)):
        check_lightgbm_text(lines_changed(text, *TEXTS[case]))


def test_a_line_that_is_there_twice_or_not_known(text):
    for line in ("num_leaves=7", "secret=1"):
        with pytest.raises(StateError, match="not known there or there twice"):
            check_lightgbm_text(text.replace("version=v4", f"version=v4\n{line}\nmax_feature_idx=2", 1))


TREES = {
    "a child far outside": lambda tree: tree["left_children"].__setitem__(0, 10**6),
    "a root that is a child": lambda tree: tree["left_children"].__setitem__(0, 0),
    "two parents": lambda tree: tree["left_children"].__setitem__(1, tree["left_children"][0]),
    "a feature outside": lambda tree: tree["split_indices"].__setitem__(0, 3),
    "fewer thresholds": lambda tree: tree["split_conditions"].pop(),
    "more nodes": lambda tree: tree["tree_param"].__setitem__("num_nodes", "1000"),
    "categories": lambda tree: tree["split_type"].__setitem__(0, 1),
}


@pytest.mark.parametrize("case", TREES)
def test_a_crafted_model_does_not_reach_xgboost(case):
    content = json.loads(bytes(booster_of("xgboost").fit(*rows()).get_booster().save_raw("json")))
    check_xgboost_json(content)
    TREES[case](content["learner"]["gradient_booster"]["model"]["trees"][0])
    with pytest.raises(StateError):
        check_xgboost_json(content)


@pytest.mark.parametrize(("library", "name"), [("lightgbm", "text"), ("xgboost", "json")])
def test_a_crafted_file_is_refused(library, name, tmp_path, monkeypatch):
    X, y = rows()
    model = booster_of(library).fit(X, y)
    key = f"{library}.Booster"
    before = packed.PACKINGS[key]

    def damaged(booster):
        state = before.pack(booster)
        content = state[name].tobytes().replace(b"num_class=1", b"num_class=3").replace(b'"gbtree"', b'"linear"')
        return {**state, name: np.frombuffer(content, np.uint8)}

    monkeypatch.setitem(packed.PACKINGS, key, packed.Packing(before.home, before.schema, damaged, before.unpack))
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="cannot be loaded: its Booster "):
        load(tmp_path / "model")
