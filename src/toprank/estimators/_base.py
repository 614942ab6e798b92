"""What the eight estimators of the top family share: parameters, validation, wiring, attributes."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from toprank.checks import require_count, require_moderate, require_positive, require_share
from toprank.estimators._above_zero import PredictsAboveZero
from toprank.estimators._anew import anew_or_unchanged
from toprank.estimators._documentation import document
from toprank.estimators._weights import usable_weights
from toprank.exceptions import DegenerateSolutionWarning, Message
from toprank.formulations.formulation import Formulation
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Quantile, TopMean
from toprank.matrices.dense_or_sparse import one_blas_thread
from toprank.saved_state import FEATURES, HISTORY, TWO_CLASSES, WORD, Array, Kind, Number, Schema, count
from toprank.solvers.choice import automatic_phases, linear_phase, supports_pairs, without_empty_columns
from toprank.solvers.phases import solve_in_phases
from toprank.solvers.problem import Problem, Solution, WeightedRows, without_noise

# Rules for what a model has whatever its direction is made of.
COMMON_STATE = {
    **FEATURES,
    "classes_": TWO_CLASSES,
    "threshold_": Number(),
    "intercept_": Array("f", (1,)),
    "objective_": Number(),
    "dual_objective_": Number(finite=False),
    "dual_gap_": Number(low=0, finite=False),
    "n_iter_": count(),
    "solver_": WORD,
    "history_": HISTORY,
    "_solution": Kind((Solution,), optional=True),
    "_solution_of": Kind((str,), ("features", "rows")),
}


class TopClassifier(PredictsAboveZero, ClassifierMixin, BaseEstimator):
    """Base of the linear top family; a subclass adds its threshold and says when it may collapse."""

    remedies: ClassVar[str] = ""
    """What helps when w = 0 is optimal; empty for formulations of which it never is, though it may be within tol."""

    saved_state: ClassVar[Schema] = Schema({**COMMON_STATE, "coef_": Array("f", (1, "n_features_in_"))})

    alpha: float
    surrogate: str
    solver: str
    tol: float
    max_iter: int | None
    warm_start: bool
    random_state: Any
    verbose: int

    def __init__(
        self,
        *,
        alpha: float = 0.1,
        surrogate: str = "quadratic",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = document(inspect.getdoc(cls) or "")

    @abstractmethod
    def _formulation(self) -> Formulation:
        """The formulation that the parameters describe."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to learn from; standardise them first. float32 stays float32.
        y : array-like of shape (n_samples,)
            Two classes; the second in sorted order is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row, a weight of 0 a removed one. Rows whose weight cannot change the result
            at double precision are left out, with a warning.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight)
        self._warn()
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
        check_indices(X)
        positive = self._encode(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = usable_weights(weights, positive, self._formulation())
        kept = weights > 0
        if not kept.all():
            X, positive, weights = X[kept], positive[kept], weights[kept]
        if positive.all() or not positive.any():
            raise ValueError(
                f"{type(self).__name__} needs rows of both classes with a weight that counts; only one class is left: "
                f"{self.classes_[int(positive.any())]!r}"
            )
        check_magnitude(X)
        with one_blas_thread():
            self._fit_rows(X, positive, weights, np.flatnonzero(kept))

    def _fit_rows(self, X: Any, positive: NDArray[np.bool_], weights: NDArray[Any], rows: NDArray[np.intp]) -> None:
        """Fit to rows with a positive weight, which are numbered `rows` in the data that the user gave."""
        problem = Problem(without_offset(X), positive, weights, self._formulation(), float(self.alpha))
        start = self._start(X.shape[1], "features")
        solution = without_noise(problem, self._solve(problem, start))
        self.coef_ = solution.coef.astype(X.dtype)[None, :]
        self._set_linear_attributes(X, problem, solution)

    def _set_linear_attributes(self, X: Any, problem: WeightedRows, solution: Solution) -> None:
        """Attributes of a model with `coef_`; X are the rows of the problem without any shift."""
        scores = np.asarray(X @ self.coef_[0])
        margin = 8 * float(np.finfo(scores.dtype).eps) * float(np.abs(scores).max())
        self._set_attributes(problem, solution, scores, margin)

    def _start(self, length: int, what: str) -> Solution | None:
        """The last solution, for a warm start; one of weights of rows is none for weights of features."""
        start: Solution | None = getattr(self, "_solution", None) if self.warm_start else None
        if getattr(self, "_solution_of", what) != what:
            start = None
        self._solution_of = what
        if start is not None and len(start.coef) != length:
            raise ValueError(
                f"warm_start=True, but the earlier fit had {len(start.coef)} {what} and X has {length}; use "
                "warm_start=False or a new estimator"
            )
        return start

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold: above zero means "in the top".

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Larger for more likely positives.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(self._scores(X) + self.intercept_[0])

    def _scores(self, X: Any) -> NDArray[Any]:
        """Scores of validated rows."""
        return np.asarray(X @ self.coef_[0])

    def _check_parameters(self) -> None:
        require_moderate("alpha", self.alpha, "use a value such as 0.1")
        require_positive("tol", self.tol, "use a value such as 1e-4")
        get_surrogate(self.surrogate)
        if self.max_iter is not None:
            require_count("max_iter", self.max_iter)
        if self.solver not in self._solvers():
            raise ValueError(
                f"solver must be one of {', '.join(map(repr, self._solvers()))} for {type(self).__name__}, "
                f"got {self.solver!r}"
            )

    def _solvers(self) -> tuple[str, ...]:
        formulation = self._formulation()
        if isinstance(formulation.threshold, Quantile):
            return ("auto", "sgd")
        pairs = ("pairs",) if supports_pairs(formulation) else ()
        apg = ("apg",) if isinstance(formulation.threshold, TopMean) else ()
        return ("auto", "newton", *pairs, *apg, "sgd")

    def _encode(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}, with {len(self.classes_)} classes; reduce it with "
                "toprank.datasets.binarize(y, positive=...)."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes, but y has only one class: {self.classes_.tolist()}"
            )
        return np.asarray(codes == 1)

    def _solve(self, problem: Problem, start: Solution | None) -> Solution:
        used = None
        if self.solver == "auto":
            problem, used = without_empty_columns(problem)
            phases = automatic_phases(problem)
        else:
            phases = [linear_phase(self.solver)]
        if used is not None and start is not None:
            start = replace(start, coef=start.coef[used])
        common: dict[str, Any] = {"tol": self.tol, "verbose": self.verbose, "max_iter": self.max_iter}
        if phases[0].name in ("sgd", "restarts"):
            common["random_state"] = check_random_state(self.random_state)
        solution, self.solver_ = solve_in_phases(phases, problem, start=start, **common)
        if used is None:
            return solution
        coef = np.zeros(self.n_features_in_)
        coef[used] = solution.coef
        return replace(solution, coef=coef)

    def _set_attributes(self, problem: WeightedRows, solution: Solution, scores: NDArray[Any], margin: float) -> None:
        """Attributes that do not depend on what w is made of; `scores` are those of the rows of the problem.

        The threshold is raised by a margin of a few rounding errors: a row whose score is the threshold, as that of the
        highest negative in TopPush, is then never in the top.
        """
        self._solution = solution
        t = problem.formulation.threshold.value(
            scores[problem.threshold_rows].astype(np.float64), problem.threshold_weights
        )
        self.threshold_ = t + margin
        self.intercept_ = np.array([-self.threshold_], dtype=scores.dtype)
        self.objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.history_ = {name: np.asarray(values) for name, values in solution.history.items()}

    def _warn(self) -> None:
        solution = self._solution
        if not solution.coef.any():
            warnings.warn(self._collapse_message(solution), DegenerateSolutionWarning, stacklevel=3)
        elif not solution.converged:
            reached = f"a relative duality gap of {solution.gap:.1e}" if np.isfinite(solution.dual) else "no rest"
            stopped = f"{type(self).__name__} stopped after {solution.n_iter} iterations at {reached}, tol={self.tol:g}"
            message = Message(
                "{stopped}; increase {max_iter} or {tol}, or standardise the features",
                elsewhere="{stopped}; a larger {alpha} is easier to fit",
                stopped=stopped,
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _collapse_message(self, solution: Solution) -> str:
        if self.remedies and solution.gap <= 1e-6:
            return Message(
                "w = 0 is the optimum: on average the positives score no higher than the threshold, whatever the "
                "direction. One outlier or mislabelled row can cause this. The model ranks nothing: {remedies}. "
                "(Features much smaller than 1 look the same to the penalty; scale those first.)",
                remedies=self.remedies,
            )
        known = f" It is within {solution.gap:.0e} of the optimum, tol={self.tol:g}." if solution.dual > -np.inf else ""
        remedy = Message("lower {tol} or {alpha}, or scale the features", elsewhere="lower {alpha}")
        if self.remedies:
            remedy = Message("{first}, or {others}", first=remedy, others=self.remedies)
        return Message(
            "Nothing better than w = 0 was found.{known} The model ranks nothing: {remedy}", known=known, remedy=remedy
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # predict selects the top of the list, as few rows as the threshold says; accuracy over all rows is not its aim
        tags.classifier_tags.poor_score = True
        tags.input_tags.sparse = True
        return tags


class TauClassifier(TopClassifier):
    """Base of the estimators with a true quantile, which have a share τ."""

    tau: float

    def __init__(
        self,
        tau: float = 0.05,
        *,
        alpha: float = 0.1,
        surrogate: str = "quadratic",
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        keep(locals())

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        super()._check_parameters()


def keep(arguments: dict[str, Any]) -> None:
    """Store the arguments of a constructor under their names, as scikit-learn wants it."""
    estimator = arguments["self"]
    for name, value in arguments.items():
        if name != "self":
            setattr(estimator, name, value)


def check_magnitude(X: Any) -> None:
    """Refuse features so large or small that the squares in a penalised objective lose all digits."""
    values = X.data if issparse(X) else X
    largest = float(max(values.max(), -values.min())) if values.size else 0.0
    if largest > 1e15 or 0 < largest < 1e-15:
        raise ValueError(
            f"the largest absolute value of X is {largest:.0e}, too far from 1 for the penalty to make sense; scale "
            "the features, for instance with sklearn.preprocessing.StandardScaler"
        )


def check_indices(X: Any) -> None:
    """Refuse sparse rows that point outside their arrays or columns, where compiled loops would read and write."""
    if issparse(X):
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X is no valid sparse matrix of shape {X.shape}: {error}; build it anew") from error


def without_offset(X: Any) -> Any:
    """Dense X minus its column means, where a column hardly varies beside its mean, else X itself.

    A threshold shifts with the scores, so the direction is the same; differences of scores keep their digits.
    """
    if issparse(X):
        return X
    sample = X[:: max(1, len(X) // 1000)]
    mean, spread = sample.mean(axis=0, dtype=np.float64), sample.std(axis=0, dtype=np.float64)
    if not np.any((np.abs(mean) > 1e3 * spread) & (spread > 0)):
        return X
    return X - mean.astype(X.dtype)
