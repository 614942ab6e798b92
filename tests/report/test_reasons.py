"""What puts rows at the top: the page says what the library computes, in the columns of the user."""

import re
from html import unescape

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csc_array
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import CBR, PatMatNP, TopForest, contributions, importance_at_the_top, reasons
from toprank.files import TableModel
from toprank.files.estimators import table_pipeline
from toprank.report import build_report

COLUMNS = {"amount <b>": "number", "kind": "category", "age": "number"}
TITLE = "What puts rows at the top"


@pytest.fixture(scope="module")
def payments():
    random = np.random.default_rng(0)
    n = 400
    amount, age = random.exponential(100, n), np.where(random.random(n) < 0.1, np.nan, random.normal(40, 10, n))
    kind = random.choice(["card", "wire"], n)
    y = ((amount > 120) & (kind == "wire") & (random.random(n) < 0.8)).astype(int)
    return pl.DataFrame({"age": age, "amount <b>": amount, "kind": kind, "note": ["-"] * n}), y


@pytest.fixture(scope="module", params=["linear", "forest"])
def model(request, payments):
    ranker = PatMatNP(tau=0.1) if request.param == "linear" else TopForest(tau=0.1, n_estimators=5, random_state=0)
    return TableModel(table_pipeline(COLUMNS, ranker), COLUMNS).fit(*payments)


def section(page, name):
    (found,) = re.findall(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return unescape(found).replace("\xa0", " ")


def test_a_model_of_a_file_tells_it_in_the_columns_of_the_file(model, payments):
    X, y = payments
    page = build_report(model, X, y, k=30, n_top_rows=12)
    why = section(page, "reasons")
    assert "the mean size over the 30 rows within the budget shown first, and over 100 of all rows" in why
    assert "from the mean of the training rows" in why
    found = importance_at_the_top(model, X, top=30, max_rows=100)
    bars = re.findall(r'class="name">(.*?)</th><td class="right">(.*?)</td><td class="right">(.*?)</td>', why)
    assert [name for name, *_ in bars] == found.names
    decimals = {len(text.partition(".")[2]) for _, *numbers in bars for text in numbers}
    assert len(decimals) == 1
    shown = np.array([numbers for _, *numbers in bars], dtype=float)
    half = 0.501 * 10.0 ** -decimals.pop()
    np.testing.assert_allclose(shown, np.column_stack([found.at_the_top, found.of_all]), atol=half)
    assert f"on average {found.raised.sum():.3g} above that mean" in why
    assert ("Shapley values" in why) == ('<section id="features"' not in page)
    best = np.argsort(-model.decision_function(X), kind="stable")[:12]
    rows = re.findall(r'<td class="reasons">(.*?)</td>', section(page, "rows"))
    assert [re.findall(r"<span>(.*?)</span>", row) for row in rows] == [
        [str(reason) for reason in of_row] for of_row in reasons(model, X[best], 3)
    ]


def test_means_that_are_not_known_are_those_of_the_held_out_rows_or_of_those_given(payments):
    X, y = payments[0].select("amount <b>").to_numpy(), payments[1]
    plain = LogisticRegression().fit(X, y)
    of_held_out, of_given = build_report(plain, csc_array(X), y), build_report(plain, X, y, background=X[:1])
    assert "the mean of held-out rows, as that of the training rows is not known" in section(of_held_out, "reasons")
    assert "the mean of those given as background" in section(of_given, "reasons")
    for page, background in ((of_held_out, X), (of_given, X[:1])):
        top = X[[np.argmax(X)]]
        expected = [str(reason) for reason in reasons(plain, top, 3, background=background)[0]]
        assert re.findall(r"<span>(.*?)</span>", section(page, "rows"))[: len(expected)] == expected
    standardised = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    assert "the mean of the training rows" in section(build_report(standardised, X, y), "reasons")


def test_what_has_no_reasons_says_so_or_nothing(payments):
    X, y = payments[0].select("amount <b>").to_numpy(), payments[1]
    kernel = PatMatNP(tau=0.1, kernel="rbf").fit(X[:100], y[:100])
    page = build_report(kernel, X, y)
    assert "this PatMatNP is not known as a sum over columns" in section(page, "reasons")
    assert "Reasons</th>" not in page
    other = build_report(LogisticRegression().fit(X, y), X, y, pos_label=0)
    assert "fitted to find the other class" in section(other, "reasons")
    assert TITLE not in build_report(y_true=y, scores=X[:, 0])


def test_an_array_of_a_table_keeps_the_names_of_its_columns(payments):
    X, y = payments[0].select(pl.col("amount <b>") / 100, pl.col("age").fill_nan(40.0) / 40), payments[1]
    online = CBR().fit(X.to_numpy(), y)
    model = TableModel(online, {"amount <b>": "number", "age": "number"}, as_array=True).keep_fitted(online)
    assert contributions(model, X, background=X).names == ["amount <b>", "age"]
