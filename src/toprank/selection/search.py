"""Search over penalties along warm-started paths."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from toprank.base import Estimator, anew_or_unchanged, is_positive
from toprank.decision._labels import Coding, Relabelled, agreed
from toprank.decision._rows import RoutesToSplitter, check_rows, row_arguments, rows_with_weight, splits_of
from toprank.exceptions import Message, PositiveClassWarning
from toprank.inspection import last_step
from toprank.metrics.scorers import names_labels, positive_of
from toprank.selection._path_folds import OWN_CHOICE, fit_group, groups_of, prefix_of_last, settings_of
from toprank.selection._progress import track
from toprank.selection._scorers import default_scorer, named_scorer

ALPHAS = tuple(10.0**exponent for exponent in range(-3, 4))


def _best_has(name: str) -> Any:
    def check(self: Any) -> bool:
        return hasattr(getattr(self, "best_estimator_", self.estimator), name)

    return check


@dataclass(eq=False, repr=False)
class TopSearchCV(RoutesToSplitter, MetaEstimatorMixin, Estimator):
    r"""Choose the penalty, and other parameters, by cross-validation along warm-started paths.

    .. math:: \max_{\alpha, \ldots} \frac1J \sum_{j=1}^J \text{score}_j(\alpha, \ldots)

    The same choice as scikit-learn's `GridSearchCV` with the same grid and folds, but for ties within `tol`: of each
    fold and setting of the other parameters the penalties are taken from the largest to the smallest, and each fit
    starts from the one before it. In a pipeline the steps before the last are fitted once for all penalties.

    Fits start warm for convex estimators of the top family, linear or with a kernel, whose values are computed once for
    all penalties, and for all of `tau`, `k`, `beta` and `surrogate`. `Grill` and other estimators with a parameter
    `alpha` are fitted from scratch. That a candidate collapses (`DegenerateSolutionWarning`) shows in its
    score and is not said; of the chosen one it is.

    Parameters
    ----------
    estimator : estimator
        An estimator with a parameter `alpha`, or a pipeline that ends with one.
    param_grid : dict or list of dict, optional
        Values to try, as for `GridSearchCV`, with the names of a pipeline's parameters such as ``"taufpl__alpha"``. If
        the penalty is not there, 1e-3, 1e-2, …, 1e3 are tried, the grid of the papers; an estimator with
        ``alpha="auto"``, as `TopForest`, goes on choosing it itself.
    scoring : str, tuple or scorer, optional
        What to maximise: a name, a tuple of a name and parameters such as ``("tpr_at_fpr", {"max_fpr": 0.01})``, or a
        scorer, which gets the last step and the transformed rows. By default what the estimator was made for:
        `tpr_at_fpr` at its `tau` for `TopForest`, `TauFPL`, `PatMatNP` and `GrillNP`, and at k over the number of
        negatives for `TopPushK`; `precision_at_quantile` at its `tau` for `TopMeanK`, `PatMat` and `Grill`;
        `positives_at_top` for `TopPush`; `wmw_score` for `WMWRanker`. The `tau` and `k` are those of `estimator`, also
        where the grid has others.
    cv : int, splitter or iterable of splits, optional
        Folds, by default five, stratified for classifiers.
    refit : bool, default=True
        Fit the best candidate to all rows.
    n_jobs : int, optional
        How many paths at the same time; the results are the same whatever it is.
    error_score : "raise" or float, default=nan
        Score of a fit that fails, which a `FitFailedWarning` names; "raise" to stop there.
    verbose : int, default=0
        With 1 a progress bar on standard error if rich is installed, else lines to the logger "toprank".
    {pos_label} An estimator that names one is enough. Whatever the labels are, scorers by name, such as "roc_auc" and
        "average_precision", get 1 for it and 0 for the other.

    Attributes
    ----------
    best_estimator_ : estimator
        The best candidate, fitted to all rows.
    best_params_ : dict
        Its parameters.
    best_score_ : float
        Its mean score.
    best_index_ : int
        Its number in `cv_results_`; the first one of equals.
    cv_results_ : dict of arrays
        As that of `GridSearchCV`, with ``mean_dual_gap`` (nan where there is no certificate).
    scorer_ : callable
        The scorer.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of the last fit.
    classes_ : ndarray
        Labels of a classifier; the second one of two is the positive class.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had names.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from toprank import TauFPL, TopSearchCV
    >>> from toprank.datasets import make_imbalanced
    >>> X, y, _ = make_imbalanced(2000, separation=3.0, random_state=0)
    >>> search = TopSearchCV(make_pipeline(StandardScaler(), TauFPL(tau=0.05))).fit(X, y)
    >>> sorted(search.best_params_), bool(search.best_score_ > 0.8)
    (['taufpl__alpha'], True)
    """

    estimator: Any
    param_grid: Any = None
    _: KW_ONLY
    scoring: Any = None
    cv: Any = None
    refit: bool = True
    n_jobs: int | None = None
    error_score: Any = np.nan
    verbose: int = 0
    pos_label: Any = None

    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Search, and fit the best candidate to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        **params : dict
            Arguments of the estimator's `fit`, such as `sample_weight` or a pipeline's ``step__sample_weight``, and
            `groups` of the splitter; by metadata routing where that is enabled. Weights of the last step count in the
            scores too.

        {fitted}
        """
        alpha = f"{prefix_of_last(self.estimator)}alpha"
        plan = settings_of(self._grid(last_step(self.estimator), alpha), alpha)
        X, y = check_rows(X, y, type(self).__name__)
        fit_params, split_params = self._route(params)
        rows_with_weight(y, fit_params)
        scorer = None if self.scoring is None else named_scorer(self.scoring)[1]
        with anew_or_unchanged(self):
            coding = self._coding(y, scorer)
            self.scorer_ = scorer or default_scorer(last_step(self._told(coding)), coding.codes(y))
            self._search(X, y, coding, plan, fit_params, split_params)
            if self.refit:
                self._refit(X, y, coding, fit_params)
        return self

    def _coding(self, y: NDArray[Any], scorer: Any) -> Coding:
        """How candidates get the labels: of two classes as 0 and 1, else as they are."""
        two = is_classifier(self.estimator) and (self.pos_label is not None or len(np.unique(y)) == 2)
        named = agreed([self.pos_label, positive_of(scorer)])
        return Coding.of(y, self, [self.estimator], named) if two else Coding()

    def _told(self, coding: Coding) -> Any:
        """The estimator, which knows its positive class; a ranker takes labels as they are."""
        estimator = coding.told(self.estimator)
        if coding.classes is None and self.pos_label is not None:
            estimator.set_params(**{f"{prefix_of_last(estimator)}pos_label": self.pos_label})
        return estimator

    def _search(
        self, X: Any, y: Any, coding: Coding, plan: Any, fit_params: dict[str, Any], split_params: dict[str, Any]
    ) -> None:
        """Fit all candidates to all folds, and keep the table and the best; the plan is that of `settings_of`."""
        candidates, settings = plan
        estimator = self._told(coding)
        folds = splits_of(self.cv, X, y, classifier=is_classifier(self.estimator), **split_params)
        groups = groups_of(settings, estimator)
        tasks = [(fold, group) for group in groups for fold in range(len(folds))]
        outcomes = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(fit_group)(group, estimator, X, y, *folds[fold], self.scorer_, coding, fit_params)
            for fold, group in tasks
        )
        results: list[list[dict[str, Any]]] = [[{} for _ in folds] for _ in candidates]
        for (fold, _), outcome in zip(tasks, track(outcomes, len(tasks), "search", self.verbose), strict=True):
            for number, result in outcome.items():
                results[number][fold] = result
        self.n_splits_ = len(folds)
        self._keep_best(candidates, self._scores(results), results)

    def _grid(self, model: Any, alpha: str) -> list[dict[str, Any]]:
        """The grid as a list of dicts, each with penalties."""
        if not hasattr(model, "get_params") or "alpha" not in model.get_params():
            raise ValueError(
                f"{type(model).__name__} has no parameter alpha to search along; use "
                "sklearn.model_selection.GridSearchCV"
            )
        given = {} if self.param_grid is None else self.param_grid
        grid = [dict(part) for part in ([given] if isinstance(given, Mapping) else given)]
        known, own = self.estimator.get_params(), [OWN_CHOICE] if model.alpha == OWN_CHOICE else []
        for part in grid:
            for name in part:
                if name not in known:
                    raise ValueError(
                        f"param_grid has {name!r}, which is no parameter of the estimator; the penalty is {alpha!r}"
                    )
            tried = np.atleast_1d(np.asarray(part.setdefault(alpha, own or ALPHAS), dtype=object))
            penalties = np.asarray([one for one in tried if one not in own], dtype=np.float64)
            if not np.all((penalties > 0) & np.isfinite(penalties)):
                raise ValueError(f"{alpha} in param_grid must be positive and finite, got {penalties.tolist()}")
            if alpha.count("__") and alpha.split("__")[0] in part:
                raise ValueError(f"param_grid replaces the step {alpha.split('__')[0]!r}; use GridSearchCV for that")
        return grid

    def _scores(self, results: list[list[dict[str, Any]]]) -> NDArray[np.float64]:
        """Scores of shape (n_candidates, n_folds), with those of failed fits."""
        errors = [result["error"] for row in results for result in row if "error" in result]
        if errors and (self.error_score == "raise" or len(errors) == sum(len(row) for row in results)):
            raise errors[0]
        if errors:
            failed = f"{len(errors)} of {sum(len(row) for row in results)} fits failed"
            first = f"have the score {self.error_score}; the first error: {type(errors[0]).__name__}"
            message = Message("{failed} and {first}: {error}", failed=failed, first=first, error=errors[0])
            warnings.warn(message, FitFailedWarning, stacklevel=4)
        return np.array([[result.get("score", self.error_score) for result in row] for row in results], dtype=float)

    def _keep_best(
        self, candidates: list[dict[str, Any]], scores: NDArray[np.float64], results: list[list[dict[str, Any]]]
    ) -> None:
        means = scores.mean(axis=1)
        if np.isnan(means).all():
            raise ValueError("every candidate failed in some fold, so none has a mean score; use error_score='raise'")
        ranked = np.where(np.isnan(means), np.nanmin(means) - 1, means)
        table: dict[str, Any] = {}
        for name in ("fit_time", "score_time", "dual_gap"):
            values = np.array([[result.get(name, np.nan) for result in row] for row in results], dtype=float)
            table[f"mean_{name}"], table[f"std_{name}"] = values.mean(axis=1), values.std(axis=1)
        for name in sorted({name for candidate in candidates for name in candidate}):
            table[f"param_{name}"] = _column([candidate.get(name, np.ma.masked) for candidate in candidates])
        table["params"] = candidates
        table |= {f"split{fold}_test_score": scores[:, fold] for fold in range(scores.shape[1])}
        table |= {"mean_test_score": means, "std_test_score": scores.std(axis=1)}
        table["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
        self.cv_results_ = table
        self.best_index_ = int(np.argmax(ranked))
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = candidates[self.best_index_]

    def _refit(self, X: Any, y: Any, coding: Coding, params: dict[str, Any]) -> None:
        """Fit the best candidate to all rows: with the labels of the user where it can be told the positive one."""
        estimator, labels, name = self._told(coding), coding.codes(y), f"{prefix_of_last(self.estimator)}pos_label"
        if coding.classes is not None and name in estimator.get_params():
            positive = None if coding.as_given and self.pos_label is None else coding.classes.tolist()[1]
            estimator, labels = clone(self.estimator).set_params(**{name: positive}), y
        best = {name: clone(value, safe=False) for name, value in self.best_params_.items()}
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PositiveClassWarning)  # the search has said it
            self.best_estimator_ = estimator.set_params(**best).fit(X, labels, **row_arguments(X, params))
        self.refit_time_ = time.perf_counter() - start
        self._classes_ = coding.classes
        if hasattr(self.best_estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.best_estimator_.feature_names_in_

    def _best(self) -> Any:
        """The best candidate, with the labels of the user."""
        check_is_fitted(self, "cv_results_")
        if not hasattr(self, "best_estimator_"):
            raise AttributeError("the best candidate was not fitted to all rows; use refit=True")
        best, classes = self.best_estimator_, self._classes_
        return best if classes is None or np.array_equal(best.classes_, classes) else Relabelled(best, classes)

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of a classifier, of two the positive one last; the levels of a ranker."""
        return np.asarray(self._best().classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in `fit`."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} object has no n_features_in_ attribute before fit")
        return int(self.best_estimator_.n_features_in_)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the best candidate.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, or scores of a ranker.
        """
        return np.asarray(self._best().predict(X))

    @available_if(_best_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores of the best candidate.

        {rows_and_scores}
        """
        return np.asarray(self._best().decision_function(X))

    @available_if(_best_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the best candidate.

        {rows_to_classify}

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            One column for each of `classes_`.
        """
        return np.asarray(self._best().predict_proba(X))

    def score(self, X: Any, y: Any) -> float:
        """The value of `scorer_` for the best candidate.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to score.
        y : array-like of shape (n_samples,)
            Their labels.

        Returns
        -------
        float
            Larger is better.
        """
        best = self._best()
        if self._classes_ is None or names_labels(self.scorer_):
            return float(self.scorer_(best, X, y))
        return float(self.scorer_(Relabelled(best, [0, 1]), X, is_positive(np.asarray(y), self._classes_).astype(int)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type, tags.target_tags = inner.estimator_type, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags = inner.input_tags
        return tags


def _column(values: list[Any]) -> Any:
    """Parameters as a masked array, masked where a candidate has none."""
    column = np.ma.array(np.empty(len(values), dtype=object), mask=[value is np.ma.masked for value in values])
    for number, value in enumerate(values):
        if value is not np.ma.masked:
            column[number] = value
    return column
