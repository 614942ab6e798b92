"""Files made up to harm: indices and sizes that compiled loops would follow out of their arrays."""

import hashlib
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from toprank import PatMatNP, TopPush, WMWRanker, stream
from toprank.online import CBR, OAM, OPAUC, UniExp
from toprank.persistence import ModelFileError, encode, load, save
from toprank.persistence.model_file import read_tree, write_tree

X = np.random.default_rng(0).normal(size=(40, 6))
Y = (X[:, 0] > 0.5).astype(int)


def changed(model, **attributes):
    for name, value in attributes.items():
        vars(model)[name] = value(getattr(model, name)) if callable(value) else value
    return model


def online(model, **attributes):
    return changed(model.fit(X, Y), **attributes)


def without(model, name):
    del vars(model)[name]
    return model


def filled(value):
    return lambda array: np.full_like(array, value)


CRAFTED = {
    "rows of the buffer far outside": lambda: online(CBR(), buffer_indices_=filled(2**30)),
    "rows of the buffer just outside": lambda: online(CBR(covariance="diag"), buffer_indices_=filled(6)),
    "a negative index": lambda: online(OAM(), buffer_indices_=filled(-1)),
    "a large buffer": lambda: online(CBR(), buffer_size_=filled(10**9)),
    "an empty buffer": lambda: online(CBR(), buffer_size_=filled(0)),
    "long rows in the buffer": lambda: online(CBR(), buffer_length_=filled(7)),
    "more features": lambda: online(CBR(), n_features_in_=10**6),
    "fewer features": lambda: online(CBR(), n_features_in_=5),
    "a short direction": lambda: online(CBR(), weights_=np.zeros(1)),
    "a direction of objects": lambda: online(CBR(), weights_=np.zeros(6, object)),
    "another byte order": lambda: online(CBR(), weights_=np.zeros(6, ">f8")),
    "a covariance that is none": lambda: online(CBR(), factor_=np.zeros((8, 8))),
    "a covariance by columns": lambda: online(CBR(), factor_=np.asfortranarray),
    "no variances": lambda: online(CBR(), variances_=np.zeros(8)),
    "another form of covariance": lambda: online(CBR(), started_with_=lambda start: {**start, "covariance": "diag"}),
    "no form of covariance": lambda: online(CBR(), started_with_=lambda start: {}),
    "no window": lambda: online(UniExp(), recent_scores_=np.zeros((2, 0))),
    "a narrow basis": lambda: online(OPAUC(rank=3), basis_=np.zeros((6, 2))),
    "a direction that is not finite": lambda: online(UniExp(), base_=filled(np.nan)),
    "another rank": lambda: online(OPAUC(), rank=3),
    "no output": lambda: changed(StandardScaler().fit(X), _sklearn_output_config=3),
    "a missing part": lambda: without(online(OAM()), "slot_moved_"),
    "a part without the rest": lambda: without(online(OAM()), "classes_"),
    "a wrong parameter": lambda: online(CBR(), max_fpr=float("nan")),
    "a missing parameter": lambda: without(online(CBR()), "max_fpr"),
    "a longer linear model": lambda: changed(PatMatNP().fit(X, Y), coef_=np.zeros((1, 7))),
    "narrow support vectors": lambda: changed(
        TopPush(kernel="rbf").fit(X, Y), support_vectors_=lambda vectors: vectors[:, 1:]
    ),
    "components outside": lambda: changed(WMWRanker(kernel="precomputed").fit(X @ X.T, Y), components_=filled(40)),
    "columns that are not there": lambda: changed(OneHotEncoder().fit(X.round()), _n_features_outs=[1] * 6),
    "a million processes": lambda: changed(make_union(StandardScaler()), n_jobs=10**6),
    "no parameters": lambda: without(CBR(), "max_fpr"),
    "categories in disorder": lambda: changed(
        OneHotEncoder().fit(X.round()), categories_=lambda all_of_them: [values[::-1] for values in all_of_them]
    ),
}


@pytest.fixture
def save_unchecked(monkeypatch):
    """Save a model without a look at its state, as one who means harm would."""
    monkeypatch.setattr(encode, "check_state", lambda *_: None, raising=False)
    return save


@pytest.mark.parametrize("case", CRAFTED)
def test_a_state_that_compiled_code_must_not_see(case, save_unchecked, tmp_path):
    save_unchecked(CRAFTED[case](), tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"cannot be loaded: its [A-Za-z]+ "):
        load(tmp_path / "model")


@pytest.mark.parametrize("case", ["a short direction", "more features", "a missing parameter"])
def test_a_damaged_model_is_not_saved(case, tmp_path):
    with pytest.raises(ModelFileError, match=r"^[A-Za-z]+ "):
        save(CRAFTED[case](), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_arrays_that_learning_changes_are_not_shared(tmp_path):
    """The size of a buffer that is also the number of its rows would grow with each of them."""
    model = online(OAM(buffer_size=4))
    model.buffer_inserted_ = model.buffer_size_
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.buffer_inserted_ is not loaded.buffer_size_
    content = (tmp_path / "model").read_bytes()
    end = 20 + int.from_bytes(content[12:20], "little")
    header = json.loads(content[20:end])
    state = next(node["state"] for node in header["nodes"] if node["kind"] == "object")
    state["buffer_inserted_"] = state["buffer_size_"]
    text = json.dumps(header, separators=(",", ":")).encode().ljust(end - 20)
    body = content[:20] + text + content[end:-32]
    (tmp_path / "model").write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(ModelFileError, match="an array that learning changes, and that two attributes refer to"):
        load(tmp_path / "model")


def test_the_error_names_attribute_value_and_limit(save_unchecked, tmp_path):
    save_unchecked(CRAFTED["rows of the buffer far outside"](), tmp_path / "model")
    with pytest.raises(
        ModelFileError, match=r"CBR buffer_indices_ has the value 1073741824, where less than 6 is expe"
    ):
        load(tmp_path / "model")


def test_a_parameter_may_be_anything_before_a_fit(tmp_path):
    """It is the fit that complains."""
    save(CBR(max_fpr="none"), tmp_path / "model")
    with pytest.raises(ValueError, match="max_fpr must be"):
        load(tmp_path / "model").fit(X, Y)


@pytest.mark.parametrize(
    "change",
    [
        {"indices": np.array([0, 6], np.int32)},
        {"indices": np.array([0, -1], np.int32)},
        {"indptr": np.array([0, 3, 2], np.int32)},
        {"indptr": np.array([0, 1, 9], np.int32)},
        {"indptr": np.array([1, 1, 2], np.int32)},
        {"indptr": np.array([0, 2, 0], np.int32)},
        {"indptr": np.array([0, 2**62, -(2**62)])},
        {"indptr": np.array([0, 2, 0], np.uint32)},
        {"indices": np.array([0.0, 1.0])},
        {"data": np.array([1.0, 2.0], object)},
        {"data": np.ones((2, 1))},
    ],
    ids=[
        "column",
        "negative",
        "order",
        "end",
        "start",
        "end-zero",
        "overflow",
        "unsigned",
        "floats",
        "objects",
        "axes",
    ],
)
def test_sparse_matrices_are_consistent(change, save_unchecked, tmp_path):
    model = TopPush(kernel="rbf").fit(sparse.csr_array(np.where(X > 0, X, 0)), Y)
    vectors = sparse.csr_array((np.ones(2), np.array([0, 5], np.int32), np.array([0, 1, 2], np.int32)), shape=(2, 6))
    for name, value in change.items():
        vars(vectors)[name] = value
    vars(model).update(support_vectors_=vectors, dual_coef_=np.ones((1, 2)), support_=np.arange(2))
    save_unchecked(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load(tmp_path / "model")


CHECKPOINTS = {
    "model": lambda content: content,
    "no model": lambda content: {**content, "model": 3},
    "no place": lambda content: {name: value for name, value in content.items() if name != "place"},
    "place": lambda content: {**content, "place": (-1, 0)},
    "counts": lambda content: {**content, "n_rows": "many"},
    "bad lines": lambda content: {**content, "bad": [(3, 4)]},
    "metrics": lambda content: {**content, "metrics": {}},
    "history": lambda content: {**content, "metrics": {**content["metrics"], "history": np.zeros((2, 3))}},
    "scores": lambda content: {
        **content,
        "metrics": {**content["metrics"], "scores": np.zeros(20_000), "labels": np.zeros(20_000, np.int64)},
    },
    "settings": lambda content: {**content, "settings": 3},
    "a list": lambda content: [content],
}


@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_checkpoint_is_a_state_too(case, save_unchecked, tmp_path):
    rows = "\n".join(f"{y},{','.join(map(str, row))}" for y, row in zip(Y, X, strict=True))
    (tmp_path / "rows.csv").write_text(f"y,a,b,c,d,e,f\n{rows}\n")
    options = {"target": "y", "batch": 10, "every": 10, "checkpoint": tmp_path / "checkpoint"}
    stream(tmp_path / "rows.csv", CBR(), **options)
    content = read_tree(tmp_path / "checkpoint", kind="checkpoint")
    model = changed(content["model"], buffer_indices_=filled(2**30)) if case == "model" else content["model"]
    content = CHECKPOINTS[case]({**content, "model": model})
    write_tree(content, tmp_path / "checkpoint", kind="checkpoint", name="checkpoint")
    with pytest.raises(ModelFileError, match="checkpoint' cannot be loaded: its "):
        stream(tmp_path / "rows.csv", CBR(), **options)
