"""Dask dataframes as X and y: names are kept and checked, as with pandas."""

from __future__ import annotations

import numpy as np
import pytest

from toprank import NeymanPearsonClassifier, TauFPL
from toprank.datasets import make_imbalanced
from toprank.metrics import roc_auc_score

dask = pytest.importorskip("dask")
pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe", exc_type=ImportError)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def frame():
    X, y, _ = make_imbalanced(300, 3, positive_share=0.2, separation=3.0, random_state=0)
    frame = pd.DataFrame(X, columns=["amount", "age", "visits"])
    frame["weekend"] = X[:, 0] > 0.3
    frame["label"] = np.where(y == 1, "fraud", "ok")
    return frame


def test_fit_and_scores(frame):
    X, y = frame.drop(columns="label"), frame["label"]
    blocks = dd.from_pandas(frame, npartitions=3)
    dX, dy = blocks.drop(columns="label"), blocks["label"]
    parameters = {"tau": 0.1, "alpha": 0.01, "tol": 1e-8, "threshold": "trained", "pos_label": "fraud"}
    expected, found = TauFPL(**parameters).fit(X, y), TauFPL(**parameters).fit(dX, dy)
    assert found.coef_ == pytest.approx(expected.coef_, abs=1e-5 * np.abs(expected.coef_).max())
    assert found.feature_names_in_.tolist() == expected.feature_names_in_.tolist()
    scores = found.decision_function(dX)
    assert scores.compute() == pytest.approx(found.decision_function(X))
    assert found.predict(dX).compute().tolist() == found.predict(X).tolist()
    assert roc_auc_score(dy, scores, pos_label="fraud") == pytest.approx(
        roc_auc_score(y, scores.compute(), pos_label="fraud"), rel=1e-12
    )
    wrapped = NeymanPearsonClassifier(found, max_fpr=0.2, shuffle=False)
    assert wrapped.fit(dX, dy).threshold_ == pytest.approx(wrapped.fit(X, y).threshold_, rel=1e-5)


def test_partitions_of_files_stay_apart(frame, tmp_path):
    for number in range(4):
        frame[number * 75 : (number + 1) * 75].to_parquet(tmp_path / f"{number}.parquet")
    blocks = dd.read_parquet(tmp_path)
    dX, dy = blocks[["amount", "age"]], blocks["label"]
    assert len(dy.to_delayed()) < 4  # Dask puts small ones together
    model = TauFPL(tau=0.1, threshold="trained", pos_label="fraud").fit(dX, dy)
    expected = TauFPL(tau=0.1, threshold="trained", pos_label="fraud").fit(frame[["amount", "age"]], frame["label"])
    assert model.coef_ == pytest.approx(expected.coef_, rel=1e-3)
    assert roc_auc_score(dy, model.decision_function(dX), pos_label="fraud") == pytest.approx(
        roc_auc_score(frame["label"], model.decision_function(frame[["amount", "age"]]), pos_label="fraud"), rel=1e-12
    )


def test_names_are_checked(frame):
    blocks = dd.from_pandas(frame, npartitions=3)
    dX = blocks.drop(columns="label")
    model = TauFPL(tau=0.1, pos_label="fraud", threshold="trained").fit(dX, blocks["label"])
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        model.decision_function(dX[["age", "amount", "visits", "weekend"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.decision_function(dX.astype(float).to_dask_array())
    with pytest.raises(ValueError, match="columns that are no numbers: 'label'"):
        model.fit(blocks, blocks["label"])
    with pytest.raises(ValueError, match="a Dask X of unknown length needs a Dask y"):
        model.fit(dX, frame["label"])
    with pytest.raises(ValueError, match="in 2 blocks, X has an unknown number of rows in 3"):
        model.fit(dX, dd.from_pandas(frame["label"], npartitions=2))
