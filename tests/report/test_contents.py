"""What the page says of the model and the rows: metrics, features, certificate, top rows."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from report.models import FirstColumn, model_and_rows, ranked_rows
from toprank import Grill, PatMat, PatMatNP, TauFPL, TopForest, TopPushK, WMWRanker
from toprank.datasets import make_imbalanced
from toprank.decision import AlertShareClassifier, NeymanPearsonClassifier, TopKClassifier
from toprank.inspection import anatomy
from toprank.metrics import partial_auc_score, positives_at_top, precision_at_k, recall_at_k, tpr_at_fpr, wmw_score
from toprank.plots import RankedList
from toprank.ranking.intervals import delong, share_limits
from toprank.report import build_report, card, figures
from toprank.report.evaluation import Evaluation
from toprank.report.importance import importance
from toprank.report.metrics_table import metric_rows
from toprank.report.sections import feature_bars
from toprank.report.svg import count_axis, linear_ticks, log_axis, rate_axis
from toprank.report.top_rows import top_rows


@pytest.fixture(scope="module")
def rows():
    X, y, _ = make_imbalanced(3000, separation=2.5, random_state=0)
    return X, y


def evaluated(model, X, y, pos_label=None):
    return Evaluation.of(model, X, y, pos_label)


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_are_those_of_the_library(ties):
    y, scores = ranked_rows(1500, ties=ties)
    found = {
        row.name.replace("\xa0", " "): row
        for row in metric_rows(RankedList.from_predictions(y, scores), y == 1, scores, 0.9)
    }
    expected = {
        "Positives at the top": positives_at_top(y, scores),
        "Recall at FPR ≤ 0.1 %": tpr_at_fpr(y, scores, max_fpr=0.001),
        "Recall at FPR ≤ 1 %": tpr_at_fpr(y, scores, max_fpr=0.01),
        "Recall at FPR ≤ 5 %": tpr_at_fpr(y, scores, max_fpr=0.05),
        "Precision at 10": precision_at_k(y, scores, k=10),
        "Recall at 10": recall_at_k(y, scores, k=10),
        "Precision at 100": precision_at_k(y, scores, k=100),
        "Recall at 100": recall_at_k(y, scores, k=100),
        "Precision at 1,000": precision_at_k(y, scores, k=1000),
        "Recall at 1,000": recall_at_k(y, scores, k=1000),
        "Partial AUC, FPR ≤ 10 %": partial_auc_score(y, scores, max_fpr=0.1),
        "AUC": wmw_score(y, scores),
    }
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, rel=1e-12), name


@pytest.mark.parametrize("ties", [False, True])
def test_delong_against_all_pairs(ties):
    y, scores = ranked_rows(120, ties=ties)
    ahead = np.sign(scores[y == 1][:, None] - scores[y == 0]) / 2 + 0.5
    variance = ahead.mean(axis=1).var(ddof=1) / len(ahead) + ahead.mean(axis=0).var(ddof=1) / ahead.shape[1]
    half = 1.959963984540054 * np.sqrt(variance)
    lower, upper = delong(RankedList.from_predictions(y, scores), 0.95)
    assert lower == pytest.approx(ahead.mean() - half)
    assert upper == pytest.approx(min(ahead.mean() + half, 1.0))


def test_delong_covers_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    y = np.repeat([1, 0], [60, 200])
    truth = 0.8555778168  # P(N(1.5, 2) > 0) = Φ(1.5 / √2)
    covered = 0
    for _ in range(400):
        lower, upper = delong(RankedList.from_predictions(y, random.normal(size=260) + 1.5 * y), 0.95)
        covered += lower <= truth <= upper
    assert 0.90 <= covered / 400 <= 0.99


def test_one_row_of_a_class_has_no_area_limits():
    assert np.isnan(delong(RankedList.from_predictions([1, 0, 0], [3, 2, 1]), 0.95)).all()
    assert share_limits(0.0, 1.0, 0.95)[0] == 0


def test_default_budgets(rows):
    X, y = rows
    cases = [
        (TauFPL(tau=0.03), (None, 0.03)),
        (PatMatNP(tau=0.02), (None, 0.02)),
        (PatMat(tau=0.02), (60, None)),
        (NeymanPearsonClassifier(PatMatNP(tau=0.3), max_fpr=0.05, random_state=0), (None, 0.05)),
        (TopKClassifier(LogisticRegression(), k=77), (77, None)),
        (TopKClassifier(LogisticRegression(), share=0.1), (300, None)),
        (make_pipeline(StandardScaler(), LogisticRegression()), (int(y.sum()), None)),
    ]
    for model, expected in cases:
        assert evaluated(model.fit(X, y), X, y).default_budget() == expected, type(model).__name__
    assert "here all rows are one batch" in build_report(cases[4][0], X, y)
    fixed = AlertShareClassifier(PatMat(tau=0.02), share=0.02, random_state=0).fit(X, y)  # not a share of each batch
    assert evaluated(fixed, X, y).default_budget() == (int((fixed.decision_function(X) > 0).sum()), None)


def test_anatomy_looks_into_wrappers(rows):
    X, y = rows
    inner = make_pipeline(StandardScaler(), TauFPL(tau=0.05))
    search = GridSearchCV(inner, {"taufpl__alpha": [0.1, 1.0]}, scoring="roc_auc", cv=2).fit(X, y)
    vote = NeymanPearsonClassifier(inner, max_fpr=0.05, cv=3, random_state=0).fit(X, y)
    frozen = NeymanPearsonClassifier(FrozenEstimator(search), max_fpr=0.05).fit(X, y)
    assert anatomy(search).name == "GridSearchCV › TauFPL"
    assert anatomy(frozen).name == "NeymanPearsonClassifier › GridSearchCV › TauFPL"
    assert [type(part.estimator).__name__ for part in anatomy(vote).parts] == ["TauFPL"] * 3
    for model in (search, frozen):
        (part,) = anatomy(model).parts
        np.testing.assert_allclose(part.prepare(X), search.best_estimator_[:-1].transform(X))


def test_certificates(rows):
    X, y = rows
    vote = NeymanPearsonClassifier(TauFPL(), max_fpr=0.05, cv=3, random_state=0).fit(X, y)
    found = card.certificate(anatomy(vote))
    worst = max(model.dual_gap_ for model in vote.estimators_)
    assert "largest gap of 3 models" in found.sentences[0]
    assert found.rows[0][0] == "Relative gap"
    assert float(re.sub("·10.*", "", found.rows[0][1])) == pytest.approx(float(f"{worst:.2e}".split("e")[0]))
    assert "at or below 5\xa0% with 95\xa0% confidence" in found.sentences[2]
    assert found.figure is not None
    for model in (LogisticRegression(), Grill(random_state=0, threshold="trained")):
        found = card.certificate(anatomy(model.fit(X, y)))
        assert found.sentences[0].startswith(f"{type(model).__name__} comes without a certificate")
    foreign = LogisticRegression().fit(X, y)
    foreign.objective_, foreign.n_iter_ = "binary", np.array([], dtype=int)
    assert [name for name, _ in card.certificate(anatomy(foreign)).rows] == ["Relative gap", "Tolerance"]
    ranker = WMWRanker().fit(X[:500], y[:500])
    assert "at most" in card.certificate(anatomy(ranker)).sentences[0]


def test_linear_importance(rows):
    X, y = rows
    names = [f"column {j}" for j in range(X.shape[1])]
    scale = np.geomspace(0.01, 100, X.shape[1])
    table = pd.DataFrame(X * scale, columns=names)
    model = make_pipeline(StandardScaler(), TauFPL()).fit(table, y)
    found = importance(model, anatomy(model), table, y == 1, 1)
    effects = model[-1].coef_[0] * model[:-1].transform(table).std(axis=0)
    order = np.argsort(-np.abs(effects))[:20]
    assert found.kind == "coefficient"
    assert found.names == [names[j] for j in order]
    np.testing.assert_allclose(found.values, effects[order])
    turned = importance(model, anatomy(model), table, y == 0, 0)
    np.testing.assert_allclose(turned.values, -found.values)
    sparse = TauFPL().fit(csr_array(X), y)
    found = importance(sparse, anatomy(sparse), csr_array(X), y == 1, 1)
    np.testing.assert_allclose(np.sort(np.abs(found.values)), np.sort(np.abs(sparse.coef_[0] * X.std(axis=0)))[-20:])


def test_names_of_encoded_columns(rows):
    _, y = rows
    random = np.random.default_rng(0)
    table = pd.DataFrame({"colour": np.where(y == 1, "red", "blue"), "size": random.normal(size=len(y))})
    encode = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["size"]))
    model = make_pipeline(encode, LogisticRegression()).fit(table, y)
    found = importance(model, anatomy(model), table, y == 1, 1)
    assert found.names[:2] in (
        ["onehotencoder__colour_blue", "onehotencoder__colour_red"],
        ["onehotencoder__colour_red", "onehotencoder__colour_blue"],
    )
    assert found.names[2] == "standardscaler__size"


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "sparse"])
def test_shuffled_importance(kind):
    y, scores = ranked_rows(2500)
    X = np.column_stack([np.random.default_rng(1).normal(size=2500), scores])
    names = ["noise", "signal"]
    made = {
        "array": lambda: X,
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "polars": lambda: pl.DataFrame(X, schema=names),
        "sparse": lambda: csr_array(X),
    }[kind]()
    model = RandomForestClassifier(10, min_samples_leaf=20, random_state=0).fit(made, y)
    found = importance(model, anatomy(model), made, y == 1, 1)
    again = importance(model, anatomy(model), made, y == 1, 1)
    assert found.kind == "loss"
    assert found.names[0] == ("signal" if kind in ("pandas", "polars") else "x1")
    assert found.values[0] > 0.1 > abs(found.values[1])
    np.testing.assert_array_equal(found.values, again.values)
    bars = feature_bars(found)
    assert all(0 <= bar["x"] <= 200 and bar["x"] + bar["width"] <= 200 for bar in bars)


def test_many_columns_are_shuffled_on_fewer_rows():
    y, scores = ranked_rows(6000)
    X = np.column_stack([scores] + [np.zeros(6000)] * 159)
    model = FirstColumn().fit(X, y)
    found = importance(model, anatomy(model), X, y == 1, 1)
    assert "5 shuffles of 500 rows" in found.note
    assert found.names[0] == "x0"
    assert found.values[0] > 0.1
    assert found.values[1] == 0


def test_importance_says_why_not(rows):
    X, y = rows
    X, y = X[:300], y[:300]
    K = X @ X.T
    model = TopPushK(kernel="precomputed").fit(K, y)
    assert "precomputed kernel" in importance(model, anatomy(model), K, y == 1, 1)
    wide = np.hstack([X] * 30)
    model = RandomForestClassifier(2, random_state=0).fit(wide, y)
    assert f"reads {wide.shape[1]}" in importance(model, anatomy(model), wide, y == 1, 1)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_top_rows(library):
    y, scores = ranked_rows(80, ties=True)
    columns = {"name": [f"row {i}" for i in range(80)], "amount": np.arange(80) / 7, "maybe": [None, "x"] * 40}
    table = pd.DataFrame(columns) if library == "pandas" else pl.DataFrame(columns)
    found = top_rows(scores, y, y == 1, ids=[f"#{i}" for i in range(80)], table=table, most=15)
    order = sorted(range(80), key=lambda i: (-scores[i], i))[:15]
    assert [row.name for row in found.rows] == [f"#{i}" for i in order]
    assert [row.cells[0] for row in found.rows] == [f"row {i}" for i in order]
    assert [row.cells[1] for row in found.rows] == [f"{i / 7:.5g}" for i in order]
    assert [row.positive for row in found.rows] == [y[i] == 1 for i in order]
    assert {row.cells[2] for row in found.rows} == {"–", "x"}


def test_figures_of_a_long_list_are_short():
    y, scores = ranked_rows(200_000)
    lists = [("model", RankedList.from_predictions(y, scores))]
    for figure in (figures.roc(lists), figures.precision_at_k(lists, 0.95), figures.precision_recall(lists)):
        assert len(figure.render()) < 45_000, figure.name


@pytest.mark.parametrize("threshold", [None, 0.25, -60.0])
def test_far_scores_are_in_the_outermost_bins(threshold):
    y, scores = ranked_rows(1000)
    assert figures.score_edges(RankedList.from_predictions(y, scores), threshold) is None
    scores[[5, 6, 7]] = -80.0, -20.0, 90.0
    ranked = RankedList.from_predictions(y, scores)
    edges = figures.score_edges(ranked, threshold)
    assert edges[0] < scores.min()
    assert edges[-1] >= scores.max()
    inner = edges[1:-1]
    assert -6 < inner[0] < inner[-1] < 8
    np.testing.assert_allclose(np.diff(inner), np.diff(inner)[0])
    assert (threshold in inner) == (threshold == 0.25)
    figure = figures.densities(ranked, threshold)
    assert figure.x.high - figure.x.low < 15
    assert "outermost bins" in figure.description


def test_places_on_axes():
    axis = rate_axis("rate", 1e-4)
    assert axis.place([0.0, 1e-4, 1.0]).tolist() == pytest.approx([0.0, 0.07, 1.0])
    assert count_axis("k", 1000).place([1, 10, 1000]).tolist() == pytest.approx([0, 1 / 3, 1])
    assert [text for _, text in log_axis("gap", 2e-6, 0.5).ticks] == [
        "10⁰",
        "10⁻¹",
        "10⁻²",
        "10⁻³",
        "10⁻⁴",
        "10⁻⁵",
        "10⁻⁶",
    ]
    assert linear_ticks(-1e-7, 1e-7) == pytest.approx([-1e-7, -5e-8, 0, 5e-8, 1e-7], abs=1e-20)


@pytest.mark.parametrize("constant", [0.0, 5.0])
def test_constant_scores(constant):
    y = np.array([0, 1, 0, 0])
    X = np.full((4, 2), constant)
    assert "4 rows" in build_report(FirstColumn().fit(X, y), X, y).replace("held-out ", "")


def test_smallest_list():
    model, X = model_and_rows(np.array([0, 1]), np.array([0.0, 1.0]))
    assert build_report(model, X, np.array([0, 1])).count("<svg id=") == 4


@pytest.mark.parametrize(
    ("k", "sentence"),
    [
        (1, "With a budget of 1 alert it raises 1 alert, none of them right."),
        (2, "With a budget of 2 alerts it raises 2 alerts: 1 of 2 positives are caught (50.0 %), 1 missed, and the"),
    ],
)
def test_summary_in_words(k, sentence):
    y = np.array([0, 1, 0, 1, 0])
    model, X = model_and_rows(y, np.array([5.0, 4.0, 3.0, 2.0, 1.0]))
    assert sentence in build_report(model, X, y, k=k).replace("\xa0", " ")


def test_the_card_says_what_a_forest_chose():
    forest = TopForest()
    forest.selection_ = {"why": "the best of 8 candidates", "alpha": 1.0, "tau": 0.05, "honest": True}
    forest.selection_ |= {"worth": 0.764, "worth_of_prior": 0.711, "candidates": []}
    (chosen,) = (group for group in card.groups(anatomy(forest), []) if group.name == "What the fit chose")
    assert dict(chosen.rows)["Why"] == "the best of 8 candidates"
    assert dict(chosen.rows)["The prior alone"] == "0.711"
