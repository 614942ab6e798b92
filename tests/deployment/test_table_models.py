"""Models of the command line: columns by name, with text, gaps and truths."""

import numpy as np
import polars
import pytest
from scipy.sparse import csr_array

from deployment.running import metadata_of, session_of
from toprank import PatMatNP
from toprank.files import TableModel, fit_file
from toprank.files.estimators import table_pipeline

COUNTRIES = ["DE", "FR", "NA", "", "Côte d’Ivoire", 'O\'Neil "x"', "null", " IT "]


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    n = 400
    amount, score = random.exponential(50, n), random.normal(size=n)
    return polars.DataFrame(
        {
            "id": [f"t{i}" for i in range(n)],
            "amount": [None if gap else value for gap, value in zip(random.random(n) < 0.1, amount, strict=True)],
            "score": score,
            "land": random.choice(COUNTRIES, n),
            "new client": random.choice(["true", "False", ""], n, p=[0.5, 0.4, 0.1]),
            "fraud": np.where(amount / 50 + score + random.normal(size=n) > 3, "yes", "no"),
        }
    )


def fed(frame, session):
    """What the docs say: nan for a missing number, 1 and 0 for true and false, texts without spaces around them."""
    given = {}
    for one in session.get_inputs():
        column = frame[one.name]
        if one.type == "tensor(string)":
            values = column.fill_null("").str.strip_chars().to_numpy().astype(object)
        elif column.dtype == polars.String:
            values = column.str.to_lowercase().replace_strict({"true": 1.0, "false": 0.0, "": np.nan}).to_numpy()
        else:
            values = column.cast(polars.Float64).fill_null(np.nan).to_numpy()
        given[one.name] = values.reshape(-1, 1)
    return given


def assert_same_scores(model, frame):
    session = session_of(model)
    scores, labels = session.run(None, fed(frame, session))
    expected = model.decision_function(frame)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    assert labels.tolist() == model.predict(frame).tolist()


@pytest.mark.parametrize("options", [{}, {"max_fpr": 0.05, "confidence": 0.8}, {"search": True}], ids=str)
def test_models_of_files(options, table, tmp_path):
    table.write_csv(tmp_path / "train.csv")
    known = {"target": "fraud", "positive": "yes", "id_column": "id"}
    model = fit_file(tmp_path / "train.csv", PatMatNP(tau=0.05), **known, holdout=0, **options)
    assert model.columns == {"amount": "number", "score": "number", "land": "category", "new client": "truth"}
    unknown = table.with_columns(land=polars.lit("Atlantis"), amount=polars.lit(None, polars.Float64))
    assert_same_scores(model, table)
    assert_same_scores(model, polars.concat([table, unknown]))
    session = session_of(model)
    assert [one.name for one in session.get_inputs()] == list(model.columns)
    assert [one.name for one in session.get_outputs()] == ["toprank_score", "label"]
    found = metadata_of(model)
    assert [(one["name"], one["kind"]) for one in found["columns"]] == list(model.columns.items())
    assert (found["target"], found["positive"], found["threshold"]) == ("fraud", "yes", 0.0)


def test_every_spelling_of_a_missing_text(table):
    columns = {"land": "category", "score": "number"}
    y = (table["fraud"] == "yes").to_numpy().astype(int)
    model = TableModel(table_pipeline(columns, PatMatNP()), columns).fit(table, y)
    spellings = ["", "na", "NA", "Na", "nan", "NaN", "NULL", "Null", "(missing)"]
    rows = polars.DataFrame({"land": spellings, "score": [0.5] * len(spellings)})
    assert len(set(model.decision_function(rows))) == 1
    assert_same_scores(model, rows)


def test_rows_of_svmlight(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 3)), random.random(60) < 0.4
    fields = [" ".join(f"{j + 1}:{x:.6f}" for j, x in enumerate(row)) for row in X]
    lines = [f"{int(label)} {row}" for label, row in zip(y, fields, strict=True)]
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    model = fit_file(tmp_path / "rows.svm", PatMatNP(), holdout=0)
    session = session_of(model)
    scores, labels = session.run(None, {"X": X})
    np.testing.assert_allclose(scores, model.decision_function(csr_array(X)))
    assert labels.tolist() == model.predict(csr_array(X)).tolist()
