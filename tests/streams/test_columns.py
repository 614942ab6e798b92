"""Models know which columns they learned from, and do not mix them up."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from toprank.datasets import make_imbalanced
from toprank.files.source import chosen_features
from toprank.online import CBR
from toprank.persistence import load, save
from toprank.streams import stream


@pytest.fixture
def frame(tmp_path):
    X, y, _ = make_imbalanced(300, n_features=2, positive_share=0.3, separation=2.0, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    frame.to_csv(tmp_path / "ab.csv", index=False)
    frame[["b", "a", "y"]].to_csv(tmp_path / "ba.csv", index=False)
    pl.read_csv(tmp_path / "ba.csv").write_parquet(tmp_path / "ba.parquet")
    frame.rename(columns={"a": "c"}).to_csv(tmp_path / "cb.csv", index=False)
    return frame


def models(X):
    return {
        "CBR": CBR(),
        "SGDClassifier": SGDClassifier(random_state=0),
        "scaled": make_pipeline(StandardScaler().fit(X.to_numpy()), CBR()),
        "named": make_pipeline(StandardScaler().fit(X), CBR()),
        "nested": make_pipeline(make_pipeline(StandardScaler().fit(X.to_numpy()), "passthrough"), CBR()),
        "stateless": make_pipeline(Normalizer(), CBR()),
    }


@pytest.mark.parametrize("name", ["CBR", "SGDClassifier", "scaled", "named", "nested", "stateless"])
def test_a_model_goes_on_with_the_same_columns_only(frame, tmp_path, name):
    X = frame[["a", "b"]]
    model = stream(tmp_path / "ab.csv", models(X)[name], target="y", batch=50).model
    assert model.feature_names_in_.tolist() == ["a", "b"]
    again = stream(tmp_path / "ab.csv", model, target="y", batch=50).model
    for other in ("ba.csv", "ba.parquet"):
        with pytest.raises(ValueError, match=r"other columns, or in another order, .*; pass features=\['a', 'b'\]"):
            stream(tmp_path / other, model, target="y")
        chosen = stream(tmp_path / other, model, target="y", batch=50, features=["a", "b"]).model
        assert chosen.feature_names_in_.tolist() == ["a", "b"]
        # the right names give no warning
        np.testing.assert_array_equal(chosen.decision_function(X), again.decision_function(X))
    with pytest.raises(ValueError, match=r"than those of .*cb.csv'"):
        stream(tmp_path / "cb.csv", model, target="y")


def test_names_are_saved_and_compared_after_loading(frame, tmp_path):
    model = stream(tmp_path / "ab.csv", CBR(), target="y", checkpoint=tmp_path / "run").model
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="pass features="):
        stream(tmp_path / "ba.csv", loaded, target="y")
    # of the run, too, after it is resumed
    resumed = stream(tmp_path / "ab.csv", CBR(), target="y", checkpoint=tmp_path / "run").model
    assert resumed.feature_names_in_.tolist() == ["a", "b"]


def test_a_model_fitted_on_a_frame_goes_on_without_warnings(frame, tmp_path):
    model = CBR().fit(frame[["a", "b"]], frame["y"])
    result = stream(tmp_path / "ab.csv", model, target="y", batch=50, checkpoint=tmp_path / "run")
    assert result.model.n_samples_seen_ == 600
    assert stream(tmp_path / "ab.csv", model, target="y", batch=50, checkpoint=tmp_path / "run").resumed_at == 300
    with pytest.raises(ValueError, match="pass features="):
        stream(tmp_path / "ba.csv", model, target="y")


def test_steps_that_give_frames(frame, tmp_path):
    X = frame[["a", "b"]]
    model = make_pipeline(StandardScaler().set_output(transform="pandas").fit(X), CBR())
    result = stream(tmp_path / "ab.csv", model, target="y", batch=50)
    assert result.model[-1].feature_names_in_.tolist() == ["a", "b"]
    result.model.decision_function(X)


def test_a_model_that_failed_at_its_first_rows_starts_anew(frame, tmp_path):
    model = CBR()
    with pytest.raises(ValueError, match="largest absolute value"):
        model.partial_fit([[1e60, 1.0, 2.0]], [1], classes=[0, 1])
    assert model.n_features_in_ == 3
    result = stream(tmp_path / "ab.csv", model, target="y", batch=50)
    reference = stream(tmp_path / "ab.csv", CBR(), target="y", batch=50)
    np.testing.assert_array_equal(result.model.coef_, reference.model.coef_)
    (tmp_path / "f.svm").write_text("1 1:1 4:2\n0 2:1\n")
    assert stream(tmp_path / "f.svm", model).model.n_features_in_ == 4


def test_many_columns_are_chosen_in_one_pass():
    """Not in one for each of them: 200,000 columns would take minutes."""
    looks = []

    class Name(str):
        __slots__ = ()

        def __eq__(self, other):
            looks.append(1)
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    columns = [Name(f"c{i}") for i in range(500)]
    assert len(chosen_features("f.csv", [*columns, "y"], "y", None, ["c3"])) == 499
    assert len(looks) < 20 * len(columns)
