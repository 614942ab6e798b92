"""Models of tables: the fast way of scoring, files, and all rows of a source."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from toprank import PatMatNP, TauFPL
from toprank.decision import NeymanPearsonClassifier
from toprank.files import TableError, TableModel, open_table
from toprank.files.best_rows import Best
from toprank.files.columns import prepared
from toprank.files.estimators import pipeline_of, table_pipeline
from toprank.files.found_in_rows import FoundInRows
from toprank.files.linear_scorer import NotFiniteError, linear_scorer
from toprank.files.scoring import score_rows
from toprank.persistence import load, save

COLUMNS = {"a": "number", "b": "number", "t": "truth", "c": "category", "d": "category"}


def frame_of(n, seed, categories="xyz"):
    """Numbers far from zero, missing values, truth values and two categorical columns."""
    random = np.random.default_rng(seed)
    hidden = random.random((n, 4)) < 0.2
    c = random.choice(list(categories), n)
    return pl.DataFrame(
        {
            "a": np.where(hidden[:, 0], np.nan, random.normal(1e4, 3, n)),
            "b": np.where(hidden[:, 1], np.nan, random.normal(0, 1e-3, n)),
            "t": [
                None if gone else str(value) for gone, value in zip(hidden[:, 2], random.random(n) < 0.5, strict=True)
            ],
            "c": [None if gone else str(value) for gone, value in zip(hidden[:, 3], c, strict=True)],
            "d": [f"k{i}" for i in random.integers(0, 150, n)],
        }
    )


def labels_of(frame):
    random = np.random.default_rng(0)
    score = frame["a"].fill_nan(1e4).to_numpy() - 1e4 + 3 * (frame["c"].fill_null("") == "x").to_numpy()
    return (score + random.normal(size=len(frame)) > 4).astype(int)


def fitted(ranker, columns=COLUMNS, n=600, around=None):
    frame = frame_of(n, seed=0)
    pipeline = table_pipeline(columns, ranker)
    return TableModel(pipeline if around is None else around(pipeline), columns).fit(frame, labels_of(frame))


MODELS = {
    "PatMatNP": lambda columns: fitted(PatMatNP(tau=0.1), columns),
    "logistic": lambda columns: fitted(LogisticRegression(), columns),
    "threshold": lambda columns: fitted(
        TauFPL(tau=0.1),
        columns,
        around=lambda pipeline: NeymanPearsonClassifier(pipeline, max_fpr=0.1, random_state=0),
    ),
}


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("kinds", [("number",), ("category",), ("number", "truth"), ("number", "truth", "category")])
def test_fast_scores_are_those_of_the_pipeline(name, kinds):
    columns = {column: kind for column, kind in COLUMNS.items() if kind in kinds}
    model = MODELS[name](columns)
    scorer = linear_scorer(model)
    for seed, categories in [(1, "xyz"), (2, "xu")]:  # u was never seen
        frame = frame_of(300, seed, categories)
        expected = model.decision_function(frame)
        np.testing.assert_allclose(scorer(prepared(frame, columns)), expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(data=st.data())
def test_fast_scores_of_any_numbers(data):
    columns = {"a": "number", "b": "number"}
    model = _two_numbers()
    values = st.one_of(st.just(np.nan), st.floats(-1e6, 1e6))
    rows = data.draw(st.lists(st.tuples(values, values), min_size=1, max_size=10))
    frame = pl.DataFrame(rows, schema={"a": pl.Float64, "b": pl.Float64}, orient="row")
    expected = model.decision_function(frame)
    np.testing.assert_allclose(linear_scorer(model)(prepared(frame, columns)), expected, rtol=1e-9, atol=1e-9)


def _two_numbers(model=[]):  # noqa: B006, fitted once
    if not model:
        model.append(fitted(PatMatNP(tau=0.1), {"a": "number", "b": "number"}))
    return model[0]


def test_what_is_not_linear_has_no_fast_way():
    assert linear_scorer(fitted(PatMatNP(kernel="rbf", tau=0.1), n=100)) is None
    vote = fitted(
        LogisticRegression(),
        around=lambda pipeline: NeymanPearsonClassifier(pipeline, max_fpr=0.2, cv=2, random_state=0),
    )
    assert linear_scorer(vote) is None


@pytest.mark.parametrize("column", ["a", "b"])
def test_infinite_values_are_found(column):
    frame = frame_of(20, seed=3).with_columns(
        pl.when(pl.int_range(pl.len()) == 7).then(np.inf).otherwise(pl.col(column)).alias(column)
    )
    model = _two_numbers()
    with pytest.raises(NotFiniteError) as caught:
        linear_scorer(model)(prepared(frame, model.columns))
    assert (caught.value.row, caught.value.column) == (7, column)


def test_columns_in_any_order_and_more_of_them():
    model, frame = fitted(PatMatNP(tau=0.1)), frame_of(50, seed=4)
    other = frame.select(pl.lit("?").alias("more"), *reversed(frame.columns))
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))
    assert model.feature_names_in_.tolist() == list(COLUMNS)
    assert set(model.predict(frame)) <= {0, 1}


def test_frames_of_pandas_need_no_other_package():
    model, frame = fitted(PatMatNP(tau=0.1)), frame_of(50, seed=4)
    other = pd.DataFrame(frame.to_dict(as_series=False)).assign(more="text")
    np.testing.assert_array_equal(model.decision_function(other), model.decision_function(frame))


def test_files_keep_all(tmp_path):
    model, frame = MODELS["threshold"](COLUMNS), frame_of(50, seed=5)
    model.summary_ = {"rows": 600, "missing": {"a": 3}}
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert (again.columns, again.summary_) == (COLUMNS, model.summary_)


def test_sparse_rows_and_tables_are_not_mixed_up():
    X = csr_array(np.random.default_rng(0).normal(size=(60, 3)))
    y = (X.toarray()[:, 0] > 1).astype(int)
    sparse = TableModel(pipeline_of(None, PatMatNP(tau=0.1))).fit(X, y)
    assert sparse.n_features_in_ == 3
    assert linear_scorer(sparse) is None
    with pytest.raises(TableError, match="rows of an svmlight file"):
        sparse.decision_function(frame_of(5, 0))
    with pytest.raises(TableError, match="a table with 5 columns"):
        fitted(PatMatNP(tau=0.1)).decision_function(X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scores_of_a_file_are_those_of_its_rows(tmp_path, monkeypatch, kernel):
    frame = frame_of(200, seed=6).insert_column(0, pl.Series("id", [f"0{i}" for i in range(200)]))
    path = str(tmp_path / "a.csv")
    frame.with_columns(pl.col("a", "b").fill_nan(None)).write_csv(path)
    model = fitted(PatMatNP(kernel=kernel, tau=0.1), n=200)
    source = open_table(path)
    source._block = 500
    parts = list(score_rows(source, model, "id"))
    assert len(parts) > 5
    np.testing.assert_allclose(np.concatenate([part.scores for part in parts]), model.decision_function(frame))
    table = pl.concat([part.frame() for part in parts])
    assert table.columns == ["id", "score", "decision"]
    assert table["id"].to_list() == frame["id"].to_list()
    assert table["decision"].to_list() == model.predict(frame).tolist()
    numbered = pl.concat([part.frame() for part in score_rows(source, model)])
    assert numbered["row"].to_list() == list(range(1, 201))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_identifier_that_is_a_feature_too_stays_as_it_is(tmp_path, ending):
    model = fitted(PatMatNP(tau=0.1))
    frame = frame_of(40, seed=8).with_columns(a=pl.int_range(40) + 9980)
    path = str(tmp_path / f"a.{ending}")
    if ending == "csv":
        frame = frame.with_columns(a=pl.format("00{}", "a"))
        frame.with_columns(pl.col("b").fill_nan(None)).write_csv(path)
    else:
        frame.write_parquet(path)
    source = open_table(path)
    parts = list(score_rows(source, model, "a"))
    assert pl.concat([part.ids for part in parts]).to_list() == frame["a"].cast(pl.String).to_list()
    np.testing.assert_allclose(np.concatenate([part.scores for part in parts]), model.decision_function(frame))


def test_a_bad_identifier_of_a_feature_is_named_with_its_row(tmp_path):
    lines = frame_of(90, seed=7).with_columns(pl.col("a", "b").fill_nan(None)).write_csv().splitlines()
    lines[61] = "T61" + lines[61][lines[61].index(",") :]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    source = open_table(str(tmp_path / "a.csv"))
    source._block = 300
    model = fitted(PatMatNP(tau=0.1))
    found = FoundInRows(model)
    parts = list(score_rows(source, model, "a", found=found))
    assert found.strays.columns()["a"].told() == "'T61' (1, in row 61)"
    assert pl.concat([part.ids for part in parts])[60] == "T61"


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_infinite_value_is_named_with_its_row(tmp_path, kernel):
    frame = frame_of(90, seed=7).with_columns(pl.col("a", "b").fill_nan(None))
    lines = frame.write_csv().splitlines()
    lines[61] = "inf" + lines[61][lines[61].index(",") :]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    source = open_table(str(tmp_path / "a.csv"))
    source._block = 300
    with pytest.raises(TableError, match=r"row 61 of .* in the column 'a'"):
        list(score_rows(source, fitted(PatMatNP(kernel=kernel, tau=0.1), n=200)))


@pytest.mark.parametrize("name", ["score", "decision"])
def test_an_identifier_named_like_an_output_column_gets_another_name(tmp_path, name):
    frame_of(5, 0).with_columns(pl.int_range(5).alias(name)).write_csv(tmp_path / "a.csv")
    (part,) = score_rows(open_table(str(tmp_path / "a.csv")), fitted(PatMatNP(tau=0.1)), name)
    assert part.frame().columns == ["id", "score", "decision"]
    assert part.frame()["id"].to_list() == list("01234")


def test_a_missing_column_is_named(tmp_path):
    frame_of(5, 0).drop("b", "t").write_csv(tmp_path / "a.csv")
    with pytest.raises(TableError, match="has no column 'b' and 1 more"):
        list(score_rows(open_table(str(tmp_path / "a.csv")), fitted(PatMatNP(tau=0.1))))


@given(
    scores=st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40),
    count=st.integers(0, 10),
    size=st.integers(1, 7),
)
def test_best_rows_are_the_first_of_a_stable_sort(scores, count, size):
    frame = pl.DataFrame({"row": range(len(scores)), "score": scores})
    best = Best(count)
    for start in range(0, len(scores), size):
        best.add(frame[start : start + size])
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:count]
    assert best.frame["row"].to_list() == order
