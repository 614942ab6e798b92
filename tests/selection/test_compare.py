"""compare: the table, its tests, failures, determinism."""

import logging
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from toprank import PatMatNP, TauFPL, TopPush, WMWRanker
from toprank.datasets import make_imbalanced
from toprank.decision import NeymanPearsonClassifier
from toprank.inspection import certificate_of
from toprank.metrics import get_scorer
from toprank.selection import compare
from toprank.selection.paired_tests import corrected_t_test, holm

TPR = ("tpr_at_fpr", {"max_fpr": 0.05})


class Breaks(ClassifierMixin, BaseEstimator):
    """Fails in the fold whose first row is not the first row of all."""

    def __init__(self, first=0.0):
        self.first = first

    def fit(self, X, y):
        if X[0, 0] != self.first:
            raise RuntimeError("this one breaks")
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]


def data(n=600):
    X, y, _ = make_imbalanced(n, 5, positive_share=0.2, separation=2.0, random_state=0)
    return X, y


def by_key(result):
    return {(row["estimator"], row["metric"]): row for row in result.rows}


def test_means_are_those_of_cross_validation_and_tests_those_of_all_pairs():
    X, y = data()
    models = {"patmat": PatMatNP(), "logistic": LogisticRegression(), "taufpl": TauFPL(tau=0.2)}
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    result = compare(models, X, y, metrics=[TPR, "roc_auc"], cv=folds)
    table = by_key(result)
    assert len(table) == len(result.rows) == 6
    assert result.metrics == ["tpr_at_fpr(max_fpr=0.05)", "roc_auc"]
    for metric, scorer in zip(result.metrics, [get_scorer("tpr_at_fpr", max_fpr=0.05), "roc_auc"], strict=True):
        scores = {name: cross_val_score(model, X, y, cv=folds, scoring=scorer) for name, model in models.items()}
        best = max(scores, key=lambda name: scores[name].mean())
        assert result.best(metric) == best
        share = np.mean([len(test) / len(train) for train, test in folds.split(X, y)])
        pairs = [("patmat", "logistic"), ("patmat", "taufpl"), ("logistic", "taufpl")]
        raw = [corrected_t_test(scores[a] - scores[b], share) for a, b in pairs]
        adjusted = holm(raw)
        for name in models:
            row = table[name, metric]
            np.testing.assert_allclose(result.fold_scores[name][metric], scores[name])
            assert row["mean"] == pytest.approx(scores[name].mean())
            assert row["std"] == pytest.approx(scores[name].std(ddof=1))
            assert row["difference"] == pytest.approx(scores[name].mean() - scores[best].mean())
            if name == best:
                assert np.isnan(row["p_value"])
            else:
                place = next(i for i, pair in enumerate(pairs) if set(pair) == {name, best})
                assert row["p_value"] == pytest.approx(raw[place])
                assert row["p_adjusted"] == pytest.approx(adjusted[place])
    order = [row["estimator"] for row in result.rows[:3]]
    assert order == sorted(order, key=lambda name: -table[name, result.metrics[0]]["mean"])


def test_certificates_are_found_inside():
    X, y = data()
    models = {
        "plain": PatMatNP(),
        "pipeline": make_pipeline(StandardScaler(), TauFPL(tau=0.2)),
        "search": GridSearchCV(TauFPL(tau=0.2), {"alpha": [0.1, 1.0]}, scoring="roc_auc", cv=2),
        "threshold": NeymanPearsonClassifier(PatMatNP(), 0.1),
        "vote": NeymanPearsonClassifier(PatMatNP(), 0.2, cv=2),
        "ranker": WMWRanker(),
        "none": LogisticRegression(),
        "forest": RandomForestClassifier(3),
    }
    result = compare(models, X, y, metrics=TPR, cv=2)
    gaps = {row["estimator"]: row["dual_gap"] for row in result.rows}
    assert all(0 <= gaps[name] <= 1e-4 for name in ("plain", "pipeline", "search", "threshold", "vote", "ranker"))
    assert np.isnan(gaps["none"])
    assert np.isnan(gaps["forest"])
    assert all(row["fit_seconds"] > 0 for row in result.rows)


def test_models_of_others_have_no_certificate():
    X, y = data()
    for model in (GradientBoostingClassifier(n_estimators=2), RandomForestClassifier(n_estimators=2)):
        assert certificate_of(model.fit(X, y)) is None


def test_certificate_is_the_worst_of_the_folds():
    X, y = data()
    model, folds = TauFPL(tau=0.2), StratifiedKFold(3)
    gaps = [clone(model).fit(X[train], y[train]).dual_gap_ for train, _ in folds.split(X, y)]
    assert len(set(gaps)) == 3
    assert compare(model, X, y, metrics=TPR, cv=folds).rows[0]["dual_gap"] == max(gaps)


def test_a_failure_does_not_lose_the_others():
    X, y = data()
    result = compare(
        {"breaks": Breaks(X[0, 0]), "always": Breaks(np.inf), "fine": PatMatNP()},
        X,
        y,
        metrics=[TPR, "roc_auc"],
        cv=KFold(3),
    )
    table = by_key(result)
    assert table["breaks", "roc_auc"]["n_failed"] == 1
    assert table["always", "roc_auc"]["n_failed"] == 3
    assert table["breaks", "roc_auc"]["error"] == "RuntimeError: this one breaks"
    assert np.isnan(table["breaks", "roc_auc"]["mean"])
    assert np.isfinite(result.fold_scores["breaks"]["roc_auc"]).sum() == 2
    assert table["fine", "roc_auc"]["mean"] > 0.8
    assert result.best() == "fine"
    assert [row["estimator"] for row in result.rows[:3]] == ["fine", "breaks", "always"]
    assert "breaks failed in 1 folds: RuntimeError: this one breaks" in str(result)
    nothing = compare({"always": Breaks(np.inf)}, X, y, metrics="roc_auc", cv=3)
    assert nothing.best() is None
    assert "-" in str(nothing)


def test_a_failing_metric_is_a_failure():
    X, y = data()
    result = compare({"fine": PatMatNP()}, X, y, metrics=lambda model, X, y: float("no number"), cv=2)
    assert "could not convert" in result.rows[0]["error"]


def test_warnings_are_collected():
    X, y = data()
    flipped = np.where(np.arange(len(y)) % 2, y, 1 - y)
    result = compare({"collapses": TopPush()}, X, flipped, metrics="roc_auc", cv=2)
    assert result.rows[0]["n_warnings"] == 2
    assert result.rows[0]["warning"].startswith("DegenerateSolutionWarning: w = 0 is")
    assert "collapses, 2 warnings: DegenerateSolutionWarning" in str(result)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_the_same_whatever_the_number_of_jobs(backend):
    X, y = data()
    models = [RandomForestClassifier(5), make_pipeline(StandardScaler(), RandomForestClassifier(7)), PatMatNP()]
    with parallel_config(backend):
        one, two = (compare(models, X, y, metrics=TPR, cv=3, n_jobs=n) for n in (1, 2))
    assert one.fold_scores == two.fold_scores
    assert set(one.fold_scores) == {"RandomForestClassifier 1", "RandomForestClassifier 2", "PatMatNP"}
    assert models[0].random_state is None
    other = compare(models, X, y, metrics=TPR, cv=3, random_state=5)
    assert other.fold_scores != one.fold_scores


def test_estimators_and_metrics_in_every_form():
    X, y = data()
    assert [row["estimator"] for row in compare(PatMatNP(), X, y, metrics="roc_auc", cv=2).rows] == ["PatMatNP"]
    named = compare([("mine", PatMatNP())], X, y, metrics={"area": "roc_auc", "top": TPR}, cv=2)
    assert (named.metrics, set(named.fold_scores)) == (["area", "top"], {"mine"})
    mean_score = make_scorer(lambda y, s: float(np.mean(s)), response_method="decision_function")
    assert len(compare(PatMatNP(), X, y, metrics=[mean_score, "positives_at_top"], cv=2).metrics) == 2
    default = compare(PatMatNP(), X, y, cv=2)
    assert default.metrics == ["tpr_at_fpr(max_fpr=0.01)", "positives_at_top", "roc_auc"]


def test_equal_names_are_numbered_and_nothing_is_lost():
    X, y = data()
    named = compare(
        [("a", PatMatNP()), ("a", TauFPL(tau=0.2)), ("a 1", LogisticRegression()), ("b", LogisticRegression())],
        X,
        y,
        metrics=[lambda model, X, y: 1.0, "roc_auc", lambda model, X, y: 2.0, TPR, "roc_auc"],
        cv=2,
    )
    assert list(named.fold_scores) == ["a 2", "a 3", "a 1", "b"]
    assert named.metrics == ["<lambda> 1", "roc_auc 1", "<lambda> 2", "tpr_at_fpr(max_fpr=0.05)", "roc_auc 2"]
    assert len(named.rows) == 4 * 5
    scores = named.fold_scores["a 3"]
    assert (scores["<lambda> 1"], scores["<lambda> 2"]) == ([1.0, 1.0], [2.0, 2.0])
    assert scores["roc_auc 1"] == scores["roc_auc 2"]
    for name, model in [("a 2", PatMatNP()), ("a 3", TauFPL(tau=0.2)), ("a 1", LogisticRegression())]:
        alone = compare(model, X, y, metrics="roc_auc", cv=2)
        assert named.fold_scores[name]["roc_auc 1"] == next(iter(alone.fold_scores.values()))["roc_auc"]
    by_key = compare({1: PatMatNP(), "1": TauFPL(tau=0.2)}, X, y, metrics={2: "roc_auc", "2": TPR}, cv=2)
    assert (list(by_key.fold_scores), by_key.metrics) == (["1 1", "1 2"], ["2 1", "2 2"])


def test_frames_groups_and_ordinal_labels():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    plain = compare(PatMatNP(), X, y, metrics=TPR, cv=3)
    assert compare(PatMatNP(), frame, pd.Series(y), metrics=TPR, cv=3).fold_scores == plain.fold_scores
    levels = np.digitize(X[:, 0], [-1, 0, 1])
    assert compare(WMWRanker(), X, levels, metrics="wmw", cv=3).rows[0]["mean"] > 0.9


def test_precomputed_kernels_are_split_by_rows_and_columns():
    X, y = data(200)
    kernel = compare(TauFPL(kernel="rbf", gamma=0.1), X, y, metrics=TPR, cv=2)
    matrix = compare(TauFPL(kernel="precomputed"), rbf_kernel(X, gamma=0.1), y, metrics=TPR, cv=2)
    np.testing.assert_allclose(matrix.rows[0]["mean"], kernel.rows[0]["mean"], atol=0.03)


def test_tables_of_pandas_and_polars():
    X, y = data()
    result = compare({"a": PatMatNP(), "b": Breaks(np.inf)}, X, y, metrics=[TPR, "roc_auc"], cv=2)
    for frame in (result.to_pandas(), result.to_polars()):
        assert isinstance(frame, pd.DataFrame | pl.DataFrame)
        assert list(frame.columns) == list(result.rows[0])
        assert len(frame) == 4


def test_printed_table():
    X, y = data()
    text = str(compare({"patmat": PatMatNP(), "logistic": LogisticRegression()}, X, y, metrics=TPR, cv=3))
    title, header, first, second = text.splitlines()
    assert title == "tpr_at_fpr(max_fpr=0.05)"
    assert header.split()[:3] == ["estimator", "mean", "std"]
    assert first.split()[3] == "best"
    assert float(second.split()[1]) <= float(first.split()[1])


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package, monkeypatch):
    X, y = data(200)
    result = compare(PatMatNP(), X, y, metrics="roc_auc", cv=2)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"needs {package}"):
        getattr(result, f"to_{package}")()


def test_progress_without_rich_is_logged(caplog, monkeypatch):
    X, y = data(200)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with caplog.at_level(logging.INFO, logger="toprank"):
        compare(PatMatNP(), X, y, metrics="roc_auc", cv=4, verbose=1)
    assert [record.getMessage() for record in caplog.records] == [f"compare: {i} of 4" for i in range(1, 5)]


def test_progress_bar_of_rich_goes_to_standard_error(capsys):
    pytest.importorskip("rich")
    X, y = data(200)
    compare(PatMatNP(), X, y, metrics="roc_auc", cv=2, verbose=1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "compare" in captured.err


def test_folds_are_needed():
    X, y = data(200)
    with pytest.raises(ValueError, match="cv has no splits; give at least one pair of train and test rows"):
        compare(PatMatNP(), X, y, metrics="roc_auc", cv=[])


@pytest.mark.parametrize(
    ("estimators", "metrics", "message"),
    [
        ([], None, "estimators is empty"),
        ({"class": PatMatNP}, None, "the estimator 'class' must be an instance with a method fit"),
        ([3], None, "must be an instance with a method fit, got 3"),
        (PatMatNP(), [], "metrics is empty"),
        (PatMatNP(), [3], "a metric must be a name, a tuple .*, got 3"),
        (PatMatNP(), ("tpr_at_fpr", {}), "tpr_at_fpr needs max_fpr="),
        (PatMatNP(), "tpr_at_fpr", "tpr_at_fpr needs max_fpr="),
    ],
    ids=["none", "class", "number", "no-metric", "number-metric", "parameter", "name-only"],
)
def test_errors(estimators, metrics, message):
    X, y = data(200)
    with pytest.raises(ValueError, match=message):
        compare(estimators, X, y, metrics=metrics)
    with pytest.raises(ValueError, match="there is no metric 'none' in the table; it has 'roc_auc'"):
        compare(PatMatNP(), X, y, metrics="roc_auc", cv=2).best("none")


def test_a_notebook_shows_the_table():
    X, y = data()
    result = compare({"<b>fine": PatMatNP(), "bad": TauFPL(tau=-1)}, X, y, metrics=["roc_auc", TPR], cv=2)
    page = result._repr_html_()
    assert page.count("<table") == page.count("</table>") == 2
    assert "&lt;b&gt;fine" in page
    assert "<b>" not in page
    mean = result.rows[0]["mean"]
    assert f"{mean:.4f}" in page
    assert f"{100 * mean:.1f}%" in page  # the bar
    assert "bad failed in 2 folds: InputError: tau must be" in page
