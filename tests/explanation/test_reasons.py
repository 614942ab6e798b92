"""Contributions add up to the score, for columns as the user has them; reasons and importance are made of them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

from toprank import (
    AlertShareClassifier,
    NeymanPearsonClassifier,
    PatMatNP,
    TopForest,
    TopKClassifier,
    contributions,
    importance_at_the_top,
    reasons,
)
from toprank.explanation import Reason
from toprank.files import TableModel
from toprank.files.estimators import table_pipeline

COLUMNS = {"age": "number", "job": "category", "amount": "number"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 400
    job = rng.choice(["clerk", "student", "judge", None], n, p=[0.5, 0.2, 0.2, 0.1])
    amount = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    age = rng.normal(40, 10, n)
    y = (age / 10 + 2 * (job == "student") + np.nan_to_num(amount) + rng.normal(size=n) > 6.2).astype(int)
    return pd.DataFrame({"age": age, "job": job, "amount": amount}), y


@pytest.fixture(scope="module")
def forest(table):
    return TopForest(tau=0.1, n_estimators=10, random_state=0).fit(*table)


def add_up(model, X, found):
    np.testing.assert_allclose(found.base + found.values.sum(axis=1), model.decision_function(X), atol=1e-9)


def prepared(ranker):
    number = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    steps = [("job", OneHotEncoder(handle_unknown="ignore"), ["job"]), ("number", number, ["age", "amount"])]
    return make_pipeline(ColumnTransformer(steps), ranker)


def test_linear_models_against_the_mean_with_one_hot_columns_summed(table):
    X, y = table
    model = prepared(PatMatNP(tau=0.1)).fit(X, y)
    found = contributions(model, X, background=X)
    assert found.names == ["age", "job", "amount"]
    add_up(model, X, found)
    np.testing.assert_allclose(found.values.mean(axis=0), 0, atol=1e-9)
    encoder = model[0].named_transformers_["job"]
    weight = dict(zip(encoder.categories_[0], model[-1].coef_[0], strict=False))
    of_job = X["job"].map(lambda job: weight[job])
    np.testing.assert_allclose(found.values[:, 1], of_job - of_job.mean(), atol=1e-9)


def test_standardised_features_need_no_background_and_others_do(table):
    X, y = table[0][["age", "amount"]].fillna(0).to_numpy(), table[1]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    found = contributions(model, X)
    add_up(model, X, found)
    np.testing.assert_allclose(found.values, contributions(model, X, background=X).values, atol=1e-9)
    with pytest.raises(ValueError, match="give the rows by background=X_train"):
        contributions(make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, y), X)


def test_a_forest_takes_tables_as_they_are(forest, table):
    X, model = table[0], forest
    found = contributions(model, X)
    add_up(model, X, found)
    of_polars = contributions(model, pl.DataFrame(X.to_dict("list"), strict=False))
    np.testing.assert_array_equal(of_polars.values, found.values)
    students, others = (found.values[(X["job"] == "student") == is_one, 1].mean() for is_one in (True, False))
    assert students > 0 > others


@pytest.mark.parametrize(
    "rule",
    [
        NeymanPearsonClassifier(PatMatNP(tau=0.1), max_fpr=0.1, random_state=0),
        NeymanPearsonClassifier(PatMatNP(tau=0.1), max_fpr=0.1, cv=3, random_state=0),
        AlertShareClassifier(PatMatNP(tau=0.1), share=0.1, random_state=0),
        TopKClassifier(PatMatNP(tau=0.1), k=5),
    ],
    ids=["one model", "vote", "share", "k"],
)
def test_rules_subtract_their_threshold_and_of_a_vote_the_deciding_model_counts(rule, table):
    X, y = table[0][["age", "amount"]].fillna(0).to_numpy(), table[1]
    model = make_pipeline(StandardScaler(), rule).fit(X, y)
    add_up(model, X, contributions(model, X, background=X))


def test_sparse_rows_and_features_of_unknown_origin(table):
    X, y = table[0][["age", "amount"]].fillna(0).to_numpy(), table[1]
    sparse = make_pipeline(MaxAbsScaler(), PatMatNP(tau=0.1)).fit(csr_array(X), y)
    add_up(sparse, csr_array(X), contributions(sparse, csr_array(X), background=csr_array(X)))
    frame = pl.DataFrame(X, schema=["age", "amount"])
    of_frame = contributions(PatMatNP(tau=0.1).fit(frame, y), frame, background=frame)
    np.testing.assert_allclose(of_frame.values.mean(axis=0), 0, atol=1e-9)
    best = int(np.argmax(sparse.decision_function(X)))
    assert reasons(sparse, csr_array(X[[best]]), 1, background=csr_array(X))[0][0].value in X[best]
    mixed = make_pipeline(PCA(2), PatMatNP(tau=0.1)).fit(X, y)
    found = contributions(mixed, X, background=X)
    assert found.names == ["pca0", "pca1"]
    np.testing.assert_allclose(found.data, mixed[0].transform(X))
    chosen = make_pipeline(SelectKBest(k=1), PatMatNP(tau=0.1)).fit(X, y)
    found = contributions(chosen, X, background=X)
    assert found.names == ["x0", "x1"]
    assert [bool(column.any()) for column in found.values.T] == chosen[0].get_support().tolist()


def test_a_model_of_a_file_is_asked_for_the_columns_of_the_file(table):
    frame, y = pl.DataFrame(table[0].to_dict("list"), strict=False), table[1]
    model = TableModel(table_pipeline(COLUMNS, PatMatNP(tau=0.1)), COLUMNS).fit(frame, y)
    found = contributions(model, frame, background=frame)
    assert found.names == list(COLUMNS)
    add_up(model, frame, found)
    job = next(reason for reason in reasons(model, frame, 3, background=frame)[0] if reason.feature != "amount")
    assert job.value == found.data[job.feature][0]


def test_reasons_are_the_largest_that_raise_a_row(forest, table):
    X, model = table[0], forest
    found = contributions(model, X)
    told = reasons(model, X, n=2)
    for i, of_row in enumerate(told):
        expected = sorted((value for value in found.values[i] if value > 0), reverse=True)[:2]
        assert [reason.contribution for reason in of_row] == expected
        assert all(X[reason.feature][i] == reason.value or pd.isna(reason.value) for reason in of_row)
    assert str(Reason("amount", np.float32(np.nan), -0.25)) == "amount = (missing) (-0.25)"
    assert str(Reason("amount", 1234.5, 2.0)) == "amount = 1234.5 (+2)"


def test_importance_at_the_top_is_the_mean_over_the_rows_there(forest, table):
    X, model = table[0], forest
    found = importance_at_the_top(model, X, max_rows=None)
    top = model.decision_function(X) > 0
    values = contributions(model, X).values
    by_name = dict(zip(["age", "job", "amount"], values.T, strict=True))
    for name, at_top, of_all, raised in zip(found.names, found.at_the_top, found.of_all, found.raised, strict=True):
        assert at_top == pytest.approx(np.abs(by_name[name][top]).mean())
        assert raised == pytest.approx(by_name[name][top].mean())
        assert of_all == pytest.approx(np.abs(by_name[name]).mean())
    assert (np.diff(found.at_the_top) <= 0).all()
    assert found.n_top == top.sum()
    assert importance_at_the_top(model, X, top=7, max_rows=3).n_top == 7


def test_what_cannot_be_explained(table):
    X, y = table[0][["age", "amount"]].fillna(0), table[1]
    kernel = PatMatNP(tau=0.1, kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="must be linear or a TopForest"):
        contributions(kernel, X)
    linear = make_pipeline(StandardScaler(), PatMatNP(tau=0.1)).fit(X, y)
    with pytest.raises(ValueError, match="n must be a whole number of at least 1, got 0"):
        reasons(linear, X, 0)
    with pytest.raises(ValueError, match="top must be a whole number from 1 to 400"):
        importance_at_the_top(linear, X, top=401)
    low = X.assign(age=-1000.0)
    with pytest.raises(ValueError, match="no row is above the threshold of the model; say by top=10"):
        importance_at_the_top(linear, low)
