"""TopSearchCV against GridSearchCV, which has no warm starts."""

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from toprank import Grill, GrillNP, PatMat, PatMatNP, TauFPL, TopMeanK, TopPush, TopPushK, WMWRanker, path
from toprank.datasets import load_bundled, make_imbalanced
from toprank.decision import NeymanPearsonClassifier
from toprank.matrices.gram import Gram
from toprank.matrices.kernel import Kernel
from toprank.matrices.shared_values import kernel_matrix, shared_kernel_values
from toprank.metrics import get_scorer
from toprank.selection import TopSearchCV
from toprank.selection._path_folds import starts_warm

TPR = ("tpr_at_fpr", {"max_fpr": 0.05})
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
SCORER = get_scorer("tpr_at_fpr", max_fpr=0.05)


# The checks have some sets with classes that cannot be told apart, and folds of a few rows.
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::toprank.PositiveClassWarning")  # for labels 1 and 2
@parametrize_with_checks([TopSearchCV(PatMatNP(tau=0.3), {"alpha": [0.1, 1.0]}, scoring="roc_auc", cv=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def data(n=400):
    X, y, _ = make_imbalanced(n, 6, positive_share=0.2, separation=3.0, random_state=0)
    return X * [1, 10, 1, 0.1, 1, 1], y


def same_search(ours, theirs):
    """The same candidates, scores, ranks and choice."""
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name in [f"split{i}_test_score" for i in range(ours.n_splits_)] + ["mean_test_score", "std_test_score"]:
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=1e-12)
    np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], theirs.cv_results_["rank_test_score"])
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    names = {name for name in theirs.cv_results_ if name.startswith("param_")}
    assert names == {name for name in ours.cv_results_ if name.startswith("param_")}
    for name in names:
        assert ours.cv_results_[name].tolist() == theirs.cv_results_[name].tolist()


# Scores are shares of rows, so models that agree to 1e-8 have the same.
@pytest.mark.parametrize(
    "model",
    [
        PatMatNP(tol=1e-8),  # with the threshold that spends its budget, the others without the fits of folds
        TauFPL(tol=1e-8, threshold="trained"),
        TopPushK(k=20, tol=1e-8, threshold="trained"),
        TauFPL(surrogate="logistic", tol=1e-8, threshold="trained"),
    ],
    ids=["PatMatNP", "TauFPL", "TopPushK", "logistic"],
)
def test_same_choice_as_grid_search(model):
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), model)
    grid = {f"{pipeline.steps[-1][0]}__alpha": [10.0**e for e in range(-3, 4)]}
    ours = TopSearchCV(pipeline, scoring=TPR, cv=FOLDS).fit(X, y)
    theirs = GridSearchCV(pipeline, grid, scoring=SCORER, cv=FOLDS).fit(X, y)
    same_search(ours, theirs)
    np.testing.assert_array_equal(ours.decision_function(X), theirs.decision_function(X))
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.score(X, y) == theirs.score(X, y)


def test_more_parameters_and_several_grids():
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), TauFPL(tol=1e-8, threshold="trained"))
    grid = [
        {
            "taufpl__tau": np.array([0.05, 0.2]),
            "taufpl__alpha": np.array([1.0, 0.01]),
            "standardscaler": [None, MaxAbsScaler()],
        },
        {"taufpl__surrogate": ["hinge", "huber"], "taufpl__alpha": [0.1]},
    ]
    ours = TopSearchCV(pipeline, grid, scoring=TPR, cv=FOLDS).fit(X, y)
    theirs = GridSearchCV(pipeline, grid, scoring=SCORER, cv=FOLDS).fit(X, y)
    assert len(ours.cv_results_["params"]) == 10
    same_search_of_objects(ours, theirs)


def same_search_of_objects(ours, theirs):
    """As `same_search` where parameters are estimators, which do not compare as equal."""
    assert [str(p) for p in ours.cv_results_["params"]] == [str(p) for p in theirs.cv_results_["params"]]
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12)
    assert ours.best_index_ == theirs.best_index_


@pytest.mark.parametrize(
    "model",
    [
        GrillNP(random_state=0, max_iter=1, threshold="trained"),
        WMWRanker(tol=1e-10),
        RidgeClassifier(),
        PatMatNP(kernel="rbf", approximation="nystroem", n_components=20, random_state=0),
    ],
    ids=["GrillNP", "WMWRanker", "ridge", "nystroem"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cold_fits_where_a_start_would_matter(model):
    X, y = data(200)
    X = StandardScaler().fit_transform(X)
    assert not starts_warm(model)
    ours = TopSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=TPR, cv=FOLDS).fit(X, y)
    theirs = GridSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=SCORER, cv=FOLDS).fit(X, y)
    same_search(ours, theirs)


class Recording(TauFPL):
    """TauFPL that remembers how its fits started: the penalty, and whether from an earlier solution."""

    starts: ClassVar[list[tuple[float, bool]]] = []

    def fit(self, X, y, sample_weight=None):
        self.starts.append((self.alpha, self.warm_start and hasattr(self, "_solution")))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_how_fits_start(kernel):
    X, y = data(200)
    Recording.starts.clear()
    grid = {"alpha": [0.1, 10.0, 1.0], "tau": [0.1, 0.2]}
    TopSearchCV(Recording(kernel=kernel), grid, scoring=TPR, cv=2, refit=False).fit(X, y)
    assert Recording.starts == [(10.0, False), (1.0, True), (0.1, True)] * 4


@pytest.mark.parametrize("model", [TauFPL(), TopPush(surrogate="huber"), PatMatNP()], ids=lambda m: type(m).__name__)
def test_kernels_have_their_values_once_and_the_same_choice(model, monkeypatch):
    """One matrix for each fold and width, whatever the penalties, the shares and the number of jobs."""
    X, y = data(300)
    X, made, inside = StandardScaler().fit_transform(X), [], Gram._compute_all
    monkeypatch.setattr(Gram, "_compute_all", lambda self: made.append(self.kernel.gamma) or inside(self))
    model = clone(model).set_params(kernel="rbf", tol=1e-7)
    grid = {"alpha": [1e-3, 1e-1, 1.0], "gamma": [0.05, 0.2]}
    if hasattr(model, "tau"):
        grid["tau"] = [0.05, 0.2]
    ours = TopSearchCV(model, grid, scoring=TPR, cv=FOLDS, refit=False).fit(X, y)
    assert sorted(made) == [0.05] * 3 + [0.2] * 3
    trained = clone(model).set_params(**({"threshold": "trained"} if hasattr(model, "threshold") else {}))
    theirs = GridSearchCV(trained, grid, scoring=SCORER, cv=FOLDS, refit=False).fit(X, y)
    same_search(ours, theirs)
    assert np.all(ours.cv_results_["mean_dual_gap"] <= 1e-7)
    with parallel_config(backend="threading", n_jobs=2):
        jobs = TopSearchCV(model, grid, scoring=TPR, cv=FOLDS, refit=False).fit(X, y)
    for name in ("mean_test_score", "mean_dual_gap"):
        np.testing.assert_array_equal(jobs.cv_results_[name], ours.cv_results_[name])


def test_other_rows_share_no_kernel_values(rng):
    X = rng.standard_normal((30, 3))
    kernel = Kernel.resolve("rbf", X, 0.3)
    with shared_kernel_values():
        first = kernel_matrix(kernel, X, 10.0)
        assert kernel_matrix(kernel, X.copy(), 10.0) is first
        other = X.copy()
        other[3, 1] += 1e-9
        for changed in (other, X[:-1], X.astype(np.float32), csr_array(X)):
            assert kernel_matrix(kernel, changed, 10.0) is not first
        assert kernel_matrix(Kernel.resolve("rbf", X, 0.4), X, 10.0) is not first
        assert kernel_matrix(kernel, X, 20.0) is not first
    assert kernel_matrix(kernel, X, 10.0) is not first


def test_columns_of_scored_rows_are_computed_once(rng, monkeypatch):
    """Those of rows that have a coefficient for the first time; other rows are scored as usual."""
    X, asked = rng.standard_normal((60, 3)), []
    y, new = X[:, 0] + rng.standard_normal(60) > 0.5, rng.standard_normal((20, 3))
    model = TopPush(kernel="rbf", gamma=0.3, alpha=0.1).fit(X, y)
    expected, of_others = model.decision_function(new), model.decision_function(X)
    between = Kernel.between
    with shared_kernel_values():
        model.fit(X, y)
        monkeypatch.setattr(Kernel, "between", lambda *args, **kw: asked.append(1) or between(*args, **kw))
        for _ in range(3):
            np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-10)
        assert len(asked) == 1
        np.testing.assert_array_equal(model.decision_function(X), of_others)
        moved = X.copy()
        moved[model.support_[0]] += 1.0
        np.testing.assert_array_equal(
            model.fit(moved, y).decision_function(new), clone(model).fit(moved, y).decision_function(new)
        )


def test_linear_convex_fits_start_warm():
    for model in (TopPush(), TopPushK(), TauFPL(), TopMeanK(), PatMat(), PatMatNP()):
        assert starts_warm(model)
    for model in (Grill(), GrillNP(), PatMat(solver="sgd"), LogisticRegression()):
        assert not starts_warm(model)
    X, y = data()
    X = StandardScaler().fit_transform(X)
    gaps = TopSearchCV(TauFPL(), cv=FOLDS).fit(X, y).cv_results_["mean_dual_gap"]
    assert np.all(gaps <= 1e-4)
    train, test = next(FOLDS.split(X, y))
    along = path(TauFPL(), X[train], y[train])
    scores = [SCORER._score_func(y[test], column, max_fpr=0.05) for column in along.decision_function(X[test]).T]
    np.testing.assert_allclose(
        TopSearchCV(TauFPL(), scoring=TPR, cv=[(train, test)]).fit(X, y).cv_results_["split0_test_score"], scores
    )


@pytest.mark.parametrize(
    ("model", "scorer"),
    [
        (TauFPL(tau=0.1), get_scorer("tpr_at_fpr", max_fpr=0.1)),
        (PatMatNP(tau=0.1), get_scorer("tpr_at_fpr", max_fpr=0.1)),
        (TopPushK(k=24), get_scorer("tpr_at_fpr", max_fpr=24 / 320)),
        (PatMat(tau=0.1), get_scorer("precision_at_quantile", tau=0.1)),
        (TopPush(), get_scorer("positives_at_top")),
        (WMWRanker(), get_scorer("wmw")),
    ],
    ids=["TauFPL", "PatMatNP", "TopPushK", "PatMat", "TopPush", "WMWRanker"],
)
@pytest.mark.filterwarnings("ignore::toprank.DegenerateSolutionWarning")
@pytest.mark.usefixtures("trained_thresholds")
def test_default_scoring(model, scorer):
    X, y = data()
    y = (np.argsort(np.argsort(X[:, 0] + 3 * y)) >= 320).astype(int)
    X = StandardScaler().fit_transform(X)
    labels = np.where(y == 1, "yes", "no") if not isinstance(model, WMWRanker) else y
    search = TopSearchCV(model, {"alpha": [0.01, 1.0]}, cv=FOLDS, pos_label=labels[np.argmax(y)]).fit(X, labels)
    plain = GridSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=scorer, cv=FOLDS).fit(X, y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=0.02)
    assert search.score(X, labels) == pytest.approx(scorer(plain, X, y), abs=0.02)


def test_no_default_scoring_for_others():
    X, y = data()
    with pytest.raises(ValueError, match="there is no default scoring for RidgeClassifier; give scoring="):
        TopSearchCV(RidgeClassifier()).fit(X, y)


def test_weights_of_zero_are_removed_rows_in_scores_too():
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 2, len(y)).astype(float)
    kept = np.flatnonzero(weight)
    folds = [(train, test) for train, test in FOLDS.split(X, y)]
    numbers = np.full(len(y), -1)
    numbers[kept] = np.arange(len(kept))
    folds_of_kept = [tuple(numbers[part][numbers[part] >= 0] for part in fold) for fold in folds]
    pipeline = make_pipeline(MaxAbsScaler(), TauFPL(tol=1e-8))
    weighted = TopSearchCV(pipeline, scoring=TPR, cv=folds).fit(X, y, taufpl__sample_weight=weight)
    scaled = X / np.abs(X).max(axis=0)
    plain = TopSearchCV(TauFPL(tol=1e-8), scoring=TPR, cv=folds_of_kept).fit(X[kept], y[kept])
    alone = TopSearchCV(TauFPL(tol=1e-8), scoring=TPR, cv=folds).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(alone.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-12)
    assert weighted.best_estimator_[-1].objective_ == pytest.approx(
        clone(weighted.best_estimator_[-1]).fit(scaled, y, weight).objective_, rel=1e-6
    )


def test_metadata_routing_and_groups():
    X, y = data()
    weight, groups = np.random.default_rng(0).random(len(y)), np.arange(len(y)) % 5
    plain = TopSearchCV(TauFPL(), scoring=TPR, cv=GroupKFold(3)).fit(X, y, sample_weight=weight, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline(
            [
                ("scale", StandardScaler(with_mean=False, with_std=False).set_fit_request(sample_weight=True)),
                ("top", TauFPL().set_fit_request(sample_weight=True)),
            ]
        )
        routed = TopSearchCV(pipeline, scoring=TPR, cv=GroupKFold(3).set_split_request(groups=True)).fit(
            X, y, sample_weight=weight, groups=groups
        )
    np.testing.assert_allclose(routed.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-12)


def test_storages_frames_and_pickle():
    X, y = data()
    pipeline = make_pipeline(MaxAbsScaler(), TauFPL(tol=1e-8))
    dense = TopSearchCV(pipeline, scoring=TPR, cv=FOLDS).fit(X, y)
    sparse = TopSearchCV(pipeline, scoring=TPR, cv=FOLDS).fit(csr_array(X), y)
    np.testing.assert_allclose(dense.cv_results_["mean_test_score"], sparse.cv_results_["mean_test_score"], atol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = TopSearchCV(pipeline, scoring=TPR, cv=FOLDS).fit(frame, y)
    assert named.feature_names_in_.tolist() == list("abcdef")
    assert named.n_features_in_ == 6
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dense)).predict(X), dense.predict(X))


def test_jobs_do_not_matter():
    X, y = data()
    grid = {"tau": [0.05, 0.2]}
    with parallel_config("threading"):
        one, two = (TopSearchCV(TauFPL(), grid, scoring=TPR, cv=FOLDS, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_inside_a_threshold_with_a_guarantee():
    data = load_bundled("breast_cancer")
    pipeline = make_pipeline(StandardScaler(), PatMatNP(tau=0.1))
    model = NeymanPearsonClassifier(TopSearchCV(pipeline, cv=3), 0.1, 0.9, random_state=0).fit(data.X, data.y)
    assert model.estimator_.best_params_["patmatnp__alpha"] > 0
    assert np.mean(model.predict(data.X)[data.y == 1]) > 0.7


def test_failed_fits_have_the_error_score():
    X, y = data()
    with pytest.warns(FitFailedWarning, match=r"3 of 6 fits failed .* tau must be strictly between 0 and 1, got 2"):
        search = TopSearchCV(TauFPL(), {"tau": [2, 0.1], "alpha": [0.1]}, scoring=TPR, cv=FOLDS).fit(X, y)
    assert search.best_params_["tau"] == 0.1
    assert np.isnan(search.cv_results_["mean_test_score"][0])
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]
    for options in ({"error_score": "raise"}, {}):
        with pytest.raises(ValueError, match="tau must be strictly between 0 and 1, got 2"):
            TopSearchCV(TauFPL(), {"tau": [2]}, scoring=TPR, cv=FOLDS, **options).fit(X, y)
    with pytest.warns(FitFailedWarning, match="the score 0.5"):
        search = TopSearchCV(TauFPL(), {"tau": [2, 0.1], "alpha": [0.1]}, scoring=TPR, cv=FOLDS, error_score=0.5).fit(
            X, y
        )
    assert search.cv_results_["mean_test_score"][0] == 0.5


def test_precomputed_kernels_are_split_by_rows_and_columns():
    X, y = data(200)
    K = rbf_kernel(X, gamma=0.1)
    model = TauFPL(kernel="precomputed", tol=1e-6)
    ours = TopSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=TPR, cv=FOLDS).fit(K, y)
    same_search(ours, GridSearchCV(model, {"alpha": [0.01, 1.0]}, scoring=SCORER, cv=FOLDS).fit(K, y))


def test_probabilities_where_there_are_some():
    X, y = data()
    search = TopSearchCV(SGDClassifier(loss="log_loss", random_state=0), {"alpha": [0.1, 1.0]}, scoring=TPR, cv=2)
    np.testing.assert_array_equal(search.fit(X, y).predict_proba(X), search.best_estimator_.predict_proba(X))
    assert not hasattr(TopSearchCV(TauFPL()), "predict_proba")


def test_without_refit():
    X, y = data()
    search = TopSearchCV(TauFPL(), scoring=TPR, cv=FOLDS)
    with pytest.raises(NotFittedError):
        search.predict(X)
    search.set_params(refit=False).fit(X, y)
    assert search.best_params_["alpha"] > 0
    with pytest.raises(AttributeError, match="use refit=True"):
        search.predict(X)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (TopSearchCV(LogisticRegression()), "LogisticRegression has no parameter alpha"),
        (
            TopSearchCV(TauFPL(), {"alpha": [0.1, -1]}),
            r"alpha in param_grid must be positive and finite, got \[0.1, -1.0\]",
        ),
        (
            TopSearchCV(TauFPL(), {"taufpl__alpha": [1.0]}),
            "'taufpl__alpha', which is no parameter .* the penalty is 'alpha'",
        ),
        (TopSearchCV(TauFPL(), {"tau": []}), "non-empty"),
        (TopSearchCV(make_pipeline(TauFPL()), {"taufpl": [TauFPL()]}), "replaces the step 'taufpl'"),
        (TopSearchCV(TauFPL(), scoring="nothing"), "nothing"),
        (TopSearchCV(TauFPL(), cv=[]), "cv has no splits; give at least one pair of train and test rows"),
    ],
    ids=["no-alpha", "negative", "unknown", "empty", "step", "scoring", "no-splits"],
)
def test_errors(search, message):
    X, y = data(200)
    with pytest.raises(ValueError, match=message):
        search.fit(X, y)
