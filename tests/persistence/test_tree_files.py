"""Trees in model files: the same bits in another process, and no crafted array that a compiled walk would follow."""

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from toprank import AlertShareClassifier, LeafFeatures, NeymanPearsonClassifier, PatMatNP, TopBlend, TopForest
from toprank.persistence import ModelFileError, encode, load, packed, save
from toprank.trees.plain_trees import PlainTrees


def table(n=300):
    """Numbers with gaps, words, truth values, and the label."""
    random = np.random.default_rng(0)
    amount, kind = random.exponential(100, n), random.choice(["card", "cash", "wire"], n)
    y = ((amount > 120) & (kind == "wire")) | (random.random(n) < 0.05)
    amount[random.random(n) < 0.1] = np.nan
    words = [None if random.random() < 0.1 else str(word) for word in kind]
    return pd.DataFrame({"amount": amount, "kind": words, "night": random.random(n) < 0.5}), y.astype(int)


@pytest.fixture(scope="module")
def forest():
    return TopForest(tau=0.1, n_estimators=5, alpha=1.0, honest=False, random_state=0).fit(*table())


def rows():
    frame, y = table()
    return np.column_stack([frame["amount"].fillna(0.0), frame["night"]]), y


IN_ANOTHER_PROCESS = """
import sys
from dataclasses import fields
import numpy as np, pandas as pd
import toprank
model = toprank.load(sys.argv[1])
np.save(sys.argv[3], model.decision_function(pd.read_pickle(sys.argv[2])))
"""


def test_the_same_bits_in_another_process(forest, tmp_path):
    new = table()[0].assign(kind=lambda frame: frame["kind"].replace("cash", "cheque"))  # a category that is new
    save(forest, tmp_path / "model")
    new.to_pickle(tmp_path / "rows")
    files = [str(tmp_path / name) for name in ("model", "rows", "scores.npy")]
    subprocess.run([sys.executable, "-c", IN_ANOTHER_PROCESS, *files], check=True, timeout=120)
    np.testing.assert_array_equal(np.load(files[2]), forest.decision_function(new))


def test_what_is_loaded_is_all_of_a_forest(forest, tmp_path):
    save(forest, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.selection_ == forest.selection_
    assert loaded._columns.categories == {1: ("card", "cash", "wire")}
    assert loaded.dual_gap_ == forest.dual_gap_
    assert "_node_values_" not in vars(loaded)  # what follows from the rest is not in the file


MODELS = {
    "leaves": lambda X, y: make_pipeline(
        LeafFeatures([RandomForestClassifier(3, random_state=0), ExtraTreesRegressor(2, random_state=0)]), PatMatNP()
    ),
    "frozen leaves": lambda X, y: make_pipeline(
        LeafFeatures(FrozenEstimator(RandomForestClassifier(3, random_state=0).fit(X, y))), PatMatNP()
    ),
    "promise": lambda X, y: NeymanPearsonClassifier(RandomForestClassifier(3, random_state=0), max_fpr=0.2),
    "share": lambda X, y: AlertShareClassifier(RandomForestClassifier(3, random_state=0), share=0.1, random_state=0),
    "blend": lambda X, y: TopBlend(
        [("line", PatMatNP()), ("trees", RandomForestClassifier(3, random_state=0))], alpha=1.0, cv=2, random_state=0
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_forests_of_scikit_learn_inside_of_models(name, tmp_path):
    X, y = rows()
    model = MODELS[name](X, y).fit(X, y)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def with_value(where, value):
    """An array with another value at the first place, or at the first leaf or inner node."""

    def damage(trees, array):
        array = array.copy()
        inner = trees["feature"] >= 0
        array[{"first": 0, "leaf": np.argmin(inner), "inner": np.argmax(inner)}[where]] = value
        return array

    return damage


NODES = {
    "a child far outside": {"left": with_value("inner", 2**30)},
    "a child before the first node": {"right": with_value("inner", -1)},
    "a node that is its own child": {"left": with_value("inner", 0)},
    "a child in the next tree": {"right": lambda trees, array: np.where(trees["feature"] >= 0, len(array) - 1, array)},
    "two ways to a node": {"left": lambda trees, array: np.where(trees["feature"] >= 0, trees["right"], array)},
    "a feature outside": {"feature": with_value("inner", 3)},
    "a feature that is none": {"feature": with_value("inner", -2)},
    "a leaf outside": {"leaf": with_value("leaf", 2**20)},
    "a negative leaf": {"leaf": with_value("leaf", -1)},
    "more leaves than there are": {"n_leaves": with_value("first", 10**9)},
    "no leaves": {"n_leaves": with_value("first", 0)},
    "a root outside": {"roots": lambda trees, array: array + 10**6},
    "roots in disorder": {"roots": lambda trees, array: array[::-1].copy()},
    "a tree without nodes": {"roots": lambda trees, array: np.zeros_like(array)},
    "fewer thresholds": {"threshold": lambda trees, array: array[1:]},
    "wide children": {"left": lambda trees, array: array.astype(np.int64)},
    "no trees": {name: lambda trees, array: array[:0] for name in PlainTrees.saved_state.fields},
}


@pytest.fixture
def forged(tmp_path, monkeypatch):
    """Load what one who means harm would have written."""

    def through_file(model):
        with monkeypatch.context() as patch:
            patch.setattr(encode, "check_state", lambda *_: None)
            save(model, tmp_path / "model")
        return load(tmp_path / "model")

    return through_file


@pytest.mark.parametrize("case", NODES)
def test_no_walk_leaves_the_trees(case, forest, forged):
    before = {field.name: getattr(forest.trees_, field.name) for field in fields(PlainTrees)}
    changed = {name: change(before, before[name]) for name, change in NODES[case].items()}
    model = TopForest()
    vars(model).update(vars(forest))
    model.trees_ = PlainTrees(**{**before, **changed})
    with pytest.raises(ModelFileError, match=r"cannot be loaded: its (PlainTrees|TopForest) "):
        forged(model)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("leaf_values_", np.zeros(3)),
        ("n_features_in_", 1),
        ("intercept_", np.zeros(0)),
    ],
)
def test_a_forest_fits_its_trees(name, value, forest, forged):
    model = TopForest()
    vars(model).update(vars(forest))
    vars(model)[name] = value
    with pytest.raises(ModelFileError, match=r"cannot be loaded: its TopForest (has|does not have|leaf_|intercept_|f)"):
        forged(model)


COMPILED = {
    "a child far outside": {"left_child": 2**40},
    "a child that is no node": {"right_child": -1},
    "a circle": {"left_child": 0},
    "a feature outside": {"feature": 2},
    "a negative feature": {"feature": -2},
}


@pytest.mark.parametrize("case", COMPILED)
def test_no_walk_leaves_a_tree_of_scikit_learn(case, tmp_path, monkeypatch):
    X, y = rows()
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    before = packed.PACKINGS["sklearn.Tree"]

    def damaged(tree):
        state = before.pack(tree)
        for name, value in COMPILED[case].items():
            state[name][0] = value
        return state

    changed = packed.Packing(before.home, before.schema, damaged, before.unpack)
    monkeypatch.setitem(packed.PACKINGS, "sklearn.Tree", changed)
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="cannot be loaded: its Tree "):
        load(tmp_path / "model")
