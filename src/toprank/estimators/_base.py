"""What the estimators of the top family share: parameters, the walk of a fit, attributes, warnings."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from toprank.arrays import is_dask
from toprank.base import (
    BinaryClassifier,
    anew_or_unchanged,
    check_square,
    is_positive,
    two_classes,
)
from toprank.checks import require_count, require_moderate, require_positive
from toprank.estimators._documentation import SHARED_TEXT
from toprank.estimators._rows import check_rows, rows_to_score, training_rows
from toprank.estimators._weights import usable_weights
from toprank.estimators.back_ends import BackEnd, Kept, Linear, Task, scores_of
from toprank.exceptions import DegenerateSolutionWarning, InputError, Message
from toprank.formulations.formulation import Formulation, Over
from toprank.formulations.surrogates import get_surrogate
from toprank.formulations.thresholds import Threshold
from toprank.matrices.threads import one_blas_thread
from toprank.positive_class import warn_of_sorted_scorer
from toprank.saved_state import FEATURES, HISTORY, TWO_CLASSES, WORD, Array, Kind, Number, Schema, count
from toprank.solvers.problem import Solution, without_noise
from toprank.solvers.registry import check_solver, solver_names

# Rules for what a model has whatever its direction is made of.
COMMON_STATE = {
    **FEATURES,
    "classes_": TWO_CLASSES,
    "threshold_": Number(),
    "trained_threshold_": Number(optional=True),
    "threshold_from_": Kind((str,), ("trained", "training scores", "out-of-fold scores"), optional=True),
    "intercept_": Array("f", (1,)),
    "objective_": Number(),
    "dual_objective_": Number(finite=False),
    "dual_gap_": Number(low=0, finite=False),
    "n_iter_": count(),
    "interrupted_": Kind((bool,), optional=True),
    "solver_": WORD,
    "history_": HISTORY,
    "_solution": Kind((Solution,), optional=True),
    "_solution_of": Kind((str,), ("features", "rows")),
}


@dataclass(eq=False, repr=False, kw_only=True)
class TopClassifier(BinaryClassifier):
    """Base of the linear top family; a subclass adds its threshold and says when it may collapse."""

    shared_text = SHARED_TEXT

    remedies: ClassVar[str] = ""
    """What helps when w = 0 is optimal; empty for formulations of which it never is, though it may be within tol."""

    over: ClassVar[Over] = "negatives"
    """The rows that the threshold looks at."""

    false_positives: ClassVar[bool] = False
    """Whether negatives above the threshold have a loss too."""

    saved_state: ClassVar[Schema] = Schema({**COMMON_STATE, "coef_": Array("f", (1, "n_features_in_"))})

    alpha: float = 0.1
    surrogate: str = "quadratic"
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int | None = None
    warm_start: bool = False
    random_state: Any = None
    verbose: int = 0

    @abstractmethod
    def _threshold(self) -> Threshold:
        """The threshold that the parameters describe."""

    def _formulation(self) -> Formulation:
        """The formulation that the parameters describe."""
        surrogate, threshold = get_surrogate(self.surrogate), self._threshold()
        return Formulation(surrogate, threshold, over=self.over, false_positives=self.false_positives)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, checkpoint: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix, dataframe, LeafMatrix, Dask array} of shape (n_samples, n_features)
            Rows to learn from; standardise them first. float32 stays float32.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 equals a repeated row, a weight of 0 a removed one. Rows whose weight cannot change the result
            at double precision are left out, with a warning.
        checkpoint : path, optional
            Only with a Dask array as X: a file that is written after each round and removed when the fit is complete.
            Where it is there, the fit goes on from it.

        {fitted}
        """
        self._check_parameters()
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight, checkpoint)
        self._warn()
        return self

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None, checkpoint: Any) -> None:
        if checkpoint is not None and not is_dask(X):
            raise InputError.of("checkpoint", str(checkpoint), "is for Dask arrays", "leave it out, rows are in memory")
        back_end_of, task = (self._block_task if is_dask(X) else self._task)(X, y, sample_weight)
        if is_dask(X):
            task = replace(task, settings={**task.settings, "checkpoint": checkpoint, "name": type(self).__name__})
        with one_blas_thread():
            back_end = back_end_of(task)
            solution, self.solver_ = back_end.solve(self._start(back_end))
            self._keep(back_end, without_noise(back_end.problem, solution))
            back_end.finish(solution)

    @property
    def takes_blocks(self) -> bool:
        """Whether, with its parameters, it learns from rows in blocks."""
        return self._formulation().is_convex

    @property
    def n_features_in_blocks(self) -> int:
        """Number of features that a row in blocks gets in place of a kernel."""
        return 0

    def _block_task(self, X: Any, y: Any, sample_weight: Any) -> tuple[type[BackEnd], Task]:
        """What to fit to rows in blocks, and by what."""
        from toprank.estimators._blocks import labelled_blocks

        formulation = self._formulation()
        if not self.takes_blocks:
            raise self._no_blocks()
        check_solver(self.solver, formulation, ["blocks"], f"{type(self).__name__} on Dask arrays")
        back_end_of = self._block_back_end()
        rows = labelled_blocks(self, X, y, sample_weight)
        numbers = np.zeros(0, np.intp)  # no model of blocks names rows
        settings = self.get_params(deep=False)
        return back_end_of, Task(rows.X, rows.positive, rows.weights, numbers, formulation, settings)

    def _no_blocks(self) -> InputError:
        """Why it does not learn from rows in blocks."""
        return InputError.saying(
            "{name} takes no Dask arrays; TopPush, TopPushK, TauFPL, TopMeanK, PatMat and PatMatNP do",
            name=type(self).__name__,
        )

    def _block_back_end(self) -> type[BackEnd]:
        """What the direction is made of where the rows are in blocks."""
        from toprank.estimators.block_back_end import Blocks

        return Blocks

    def _task(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[type[BackEnd], Task]:
        """What to fit to rows in one memory, and by what."""
        X, y = training_rows(self, X, y)
        self.classes_ = two_classes(y, self, self.pos_label)
        positive = is_positive(y, self.classes_)
        if get_tags(self).input_tags.pairwise:
            check_square(X)
        formulation = self._formulation()
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        weights = usable_weights(weights, positive, formulation)
        kept = weights > 0
        if not kept.all():
            X, positive, weights = X[kept], positive[kept], weights[kept]
        if positive.all() or not positive.any():
            raise ValueError(
                f"{type(self).__name__} needs rows of both classes with a weight that counts; only one class is left: "
                f"{self.classes_.tolist()[int(positive.any())]!r}"
            )
        back_end_of = self._back_end(formulation, len(positive))
        check_rows(X, as_features=back_end_of is Linear)
        settings = self.get_params(deep=False)
        return back_end_of, Task(X, positive, weights, np.flatnonzero(kept), formulation, settings)

    def _back_ends(self) -> tuple[type[BackEnd], ...]:
        """What the direction may be made of, the first choice first."""
        return (Linear,)

    def _back_end(self, formulation: Formulation, n_rows: int) -> type[BackEnd]:
        """The first one for which the solver is."""
        return next(one for one in self._back_ends() if self.solver in solver_names(formulation, [one.matrix]))

    def _start(self, back_end: BackEnd) -> Solution | None:
        """The last solution, for a warm start; one of weights of rows is none for weights of features."""
        what, length = back_end.coefficients_of, back_end.n_coefficients
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

    def _keep(self, back_end: BackEnd, solution: Solution) -> None:
        """Set the attributes of the fitted model.

        The threshold is raised by a few rounding errors: a row whose score is the threshold, as that of the highest
        negative in TopPush, is then never in the top.
        """
        problem, kept = back_end.problem, back_end.keep(solution)
        for name, value in kept.attributes.items():
            setattr(self, name, value)
        self._solution, self.interrupted_ = solution, solution.interrupted
        of_rows = kept.scores[problem.threshold_rows].astype(np.float64)
        trained = problem.formulation.threshold.value(of_rows, problem.threshold_weights) + kept.rounding
        self.threshold_ = self._threshold_of_predict(trained, back_end, solution, kept)
        self.intercept_ = np.array([-self.threshold_], dtype=kept.scores.dtype)
        self.objective_ = solution.primal
        self.dual_objective_ = solution.dual
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.history_ = {name: np.asarray(values) for name, values in solution.history.items()}

    def _threshold_of_predict(self, trained: float, back_end: BackEnd, solution: Solution, kept: Kept) -> float:
        """The threshold by which rows are in the top: that of the formulation, or one that a subclass sets."""
        return trained

    def decision_function(self, X: Any) -> Any:
        """Score minus threshold: above zero means "in the top". Of a Dask array it is one too, not yet computed.

        {rows_and_scores}
        """
        check_is_fitted(self)
        warn_of_sorted_scorer(self.classes_)
        if is_dask(X):
            from toprank.matrices.block_input import lazy_scores

            return lazy_scores(self, X, self.intercept_.dtype)
        X = rows_to_score(self, X)
        return np.asarray(scores_of(self, X) + self.intercept_[0])

    def _check_parameters(self) -> None:
        require_moderate("alpha", self.alpha, "use a value such as 0.1")
        require_positive("tol", self.tol, "use a value such as 1e-4")
        get_surrogate(self.surrogate)
        if self.max_iter is not None:
            require_count("max_iter", self.max_iter)
        matrices = [one.matrix for one in self._back_ends()]
        check_solver(self.solver, self._formulation(), matrices, type(self).__name__)

    def _warn(self) -> None:
        solution = self._solution
        if not solution.coef.any():
            warnings.warn(self._collapse_message(solution), DegenerateSolutionWarning, stacklevel=3)
        elif not solution.converged:
            warnings.warn(self._unfinished_message(solution), ConvergenceWarning, stacklevel=3)
        elif self.interrupted_:
            message = (
                "the model is complete, but the search for its threshold was interrupted: it spends the budget on the "
                "rows that were learned from, and more than that on others"
            )
            warnings.warn(message, ConvergenceWarning, stacklevel=3)

    def _unfinished_message(self, solution: Solution) -> str:
        reached = f"a relative duality gap of {solution.gap:.1e}" if np.isfinite(solution.dual) else "no rest"
        verb = "was interrupted" if solution.interrupted else "stopped"
        stopped = f"{type(self).__name__} {verb} after {solution.n_iter} iterations at {reached}, tol={self.tol:g}"
        if solution.interrupted:
            return Message(
                "{stopped}; this is the best model so far, and a fit with {warm_start=True} goes on from there",
                elsewhere="{stopped}; this is the best model so far",
                stopped=stopped,
            )
        return Message(
            "{stopped}; increase {max_iter} or {tol}, or standardise the features",
            elsewhere="{stopped}; a larger {alpha} is easier to fit",
            stopped=stopped,
        )

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
        # predict selects the top of the list, as few rows as the threshold says; accuracy over all rows is not its aim
        tags.classifier_tags.poor_score = True
        return tags
