"""A forest with leaf values for the top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from toprank.arrays import Floats, Mask
from toprank.base import BinaryClassifier, anew_or_unchanged, is_positive, two_classes
from toprank.checks import require_choice, require_count, require_moderate, require_share
from toprank.estimators._base import TopClassifier
from toprank.estimators.top import PatMatNP
from toprank.exceptions import InputError
from toprank.log import logger
from toprank.matrices.leaves import LeafMatrix
from toprank.trees.head_choice import Candidate, Judged, Jury, TrainingLeaves, chosen, fitted
from toprank.trees.plain_trees import PlainTrees
from toprank.trees.sources import Forest
from toprank.trees.table_columns import TableColumns, is_frame

# Penalties that alpha="auto" compares, and the multiple of the budget that is tried as τ of the best one.
ALPHAS, _WIDER = (10.0, 1.0, 0.1, 0.01, 0.001), 5.0
# What the prior is multiplied by: its penalty is that of the leaves over the square.
_FREEDOM = 5.0


@dataclass(eq=False, repr=False)
class TopForest(BinaryClassifier):
    r"""Extra trees whose leaf values are those that are best for the top of the list.

    .. math:: s(x) = v\, s_0(x) + \frac{1}{\sqrt T} \sum_{t=1}^T w_{\ell_t(x)}

    with :math:`\ell_t(x)` the leaf of x in tree t and the prior :math:`s_0`, the share of positives by a second forest,
    of fully grown trees. The values w and v minimise a convex objective of the top family, by default that of
    `PatMatNP`, with its certificate. The prior is nearly free of penalty: a large `alpha` gives back the ranking of
    that forest, a small one new values for all leaves. Both together are again a plain additive ensemble of trees.

    The prior of a training row is out of bag. Penalty, τ and honesty are chosen without growing another tree, by heads
    on parts of the rows that score the others by the trees that did not draw them; the prior alone is one of the
    candidates. `selection_` tells what was chosen and what each candidate was worth.

    Rows may be arrays, with NaN for gaps, or frames of pandas or polars with numbers, text and categories. A category
    that was not in the training rows counts as missing.

    Parameters
    ----------
    tau : float, default=0.01
        The budget: the share of the negatives that may be above the threshold, strictly between 0 and 1.
    head : estimator, optional
        A linear estimator of the top family with a convex objective, such as ``TauFPL(tau=0.01)``. By default
        `PatMatNP`, of which τ is chosen too.
    alpha : float or "auto", default="auto"
        The penalty of the head.
    honest : bool or "auto", default="auto"
        Whether the head learns from honest leaves, those of the trees that did not draw a row, or from all.
    n_estimators : int, default=300
        Number of trees of each of the two forests.
    min_samples_leaf : int, default=3
        Number of rows that a leaf has at least, in the trees whose leaves get new values.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        Number of features of which each split takes the best, as in `ExtraTreesClassifier` of scikit-learn.
    tol : float, default=1e-4
        Relative duality gap at which the head stops.
    n_jobs : int, optional
        Number of jobs that grow trees.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees and of the folds.
    verbose : int, default=0
        With 1 or more, the steps are logged.
    {pos_label}

    Attributes
    ----------
    selection_ : dict
        What was chosen ("prior_alone", "alpha", "tau", "honest"), its "worth" (the mean share of the positives found at
        false positive rates around the budget, on rows that the head has not seen), that of the prior alone
        ("worth_of_prior"), "why" in words, and all "candidates".
    trees_ : PlainTrees
        The trees of both forests as arrays.
    leaf_values_ : ndarray of shape (n_leaves,)
        What each leaf adds to the score, tree by tree.
    threshold_ : float
        The score above which a row is positive: so that the share τ of the negatives is above it, on rows that the head
        has not seen, by the trees that did not draw them. With few trees these scores spread more than those of new
        rows by all trees, and fewer new negatives than τ are above it.
    intercept_ : ndarray of shape (1,)
        Minus the threshold.
    objective_, dual_objective_, dual_gap_ : float
        Objective of the head, its lower bound, and their relative gap.
    n_iter_ : int
        Iterations of the head.
    classes_ : ndarray of shape (2,)
        The classes, of which the second is the positive one.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if they are text.

    References
    ----------
    Geurts, Ernst and Wehenkel, Extremely randomized trees, Machine Learning 63(1), 2006.
    Ren, Cao, Wei and Sun, Global refinement of random forest, CVPR 2015.

    Examples
    --------
    >>> from toprank import TopForest
    >>> from toprank.datasets import make_imbalanced
    >>> from toprank.metrics import tpr_at_fpr
    >>> X, y, _ = make_imbalanced(1000, random_state=0)
    >>> model = TopForest(tau=0.05, n_estimators=50, random_state=0).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4)
    True
    >>> bool(model.selection_["worth"] >= model.selection_["worth_of_prior"])
    True
    """

    tau: float = 0.01
    head: Any = None
    alpha: float | Literal["auto"] = "auto"
    honest: bool | Literal["auto"] = "auto"
    n_estimators: int = 300
    min_samples_leaf: int = 3
    max_features: Any = "sqrt"
    tol: float = 1e-4
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees, choose a head and fit it.

        Parameters
        ----------
        X : {array-like, dataframe} of shape (n_samples, n_features)
            Rows; NaN and other missing values are allowed, and text or categories in frames.
        y : array-like of shape (n_samples,)
            Two classes, of which `pos_label` is the positive one.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows; a weight of 0 is a removed row.

        {fitted}
        """
        self._check_parameters()
        with anew_or_unchanged(self):
            self._fit(X, y, sample_weight)
        return self

    def _check_parameters(self) -> None:
        require_share("tau", self.tau)
        if self.alpha != "auto":
            require_moderate("alpha", self.alpha, "use {alpha='auto'}")
        if not isinstance(self.honest, bool):
            require_choice("honest", self.honest, ("auto",))
        require_count("n_estimators", self.n_estimators)
        require_count("min_samples_leaf", self.min_samples_leaf)
        if self.head is not None and not _is_linear_and_convex(self.head):
            raise InputError.of(
                "head", self.head, "must be a linear estimator of the top family with a convex objective",
                "use PatMatNP(), TauFPL() or another one",
            )  # fmt: skip

    def _fit(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> None:
        random = check_random_state(self.random_state)
        X, y = self._training_rows(X, y)
        self.classes_ = two_classes(y, self, self.pos_label)
        positive = is_positive(y, self.classes_)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        kept = weights > 0
        X, positive, weights = X[kept], positive[kept], weights[kept]
        if positive.all() or not positive.any():
            raise ValueError(
                f"TopForest needs rows of both classes with a weight; only one class is left: "
                f"{self.classes_[int(positive.any())]!r}"
            )
        rows, shares = self._grow(X, positive, weights, random)
        best, candidates = self._choose(rows, random)
        self._say("fitting the head")
        head = fitted(self._head(), best.candidate, rows)
        self._keep(head, best, shares, rows)
        self.selection_ = _told(best, candidates, getattr(head, "tau", None))

    def _training_rows(self, X: Any, y: Any) -> tuple[NDArray[np.float32], Any]:
        """Rows in single precision, and labels; what the columns hold is kept."""
        self._columns = TableColumns.of(X)
        names, read = X, self._columns.read(X)
        read, y = validate_data(self, read, y, dtype=np.float32, order="C", ensure_all_finite="allow-nan")
        if is_frame(names):
            _check_feature_names(self, names, reset=True)
        return read, y

    def _grow(
        self, X: NDArray[np.float32], positive: Mask, weights: Floats, random: np.random.RandomState
    ) -> tuple[TrainingLeaves, Floats]:
        """The trees; the honest leaves of the rows with their prior, and the shares of positives in its leaves."""
        self._say(f"growing two forests of {self.n_estimators} trees on {len(X):,} rows")
        grown = [self._forest(size, X, positive, weights, random) for size in (self.min_samples_leaf, 1)]
        of_leaves, of_prior = [_honest_leaves(source, X) for source in grown]
        self.trees_ = PlainTrees.joined([source.trees for source in grown])
        shares = _shares_of_leaves(grown[1].model)
        prior = of_prior @ (shares / np.sqrt(of_prior.n_trees))
        drawn_always = of_prior.squared_norms() == 0  # no tree is left; the mean says nothing, and nothing wrong
        prior[drawn_always] = prior[~drawn_always].mean() if not drawn_always.all() else 0.0
        self._centre, self._scale = float(prior.mean()), float(prior.std()) or 1.0
        column = _FREEDOM * (prior - self._centre) / self._scale
        return TrainingLeaves(of_leaves.with_extra(column[:, None]), positive, weights), shares

    def _forest(
        self, size: int, X: NDArray[np.float32], positive: Mask, weights: Floats, random: np.random.RandomState
    ) -> Forest:
        forest = ExtraTreesClassifier(
            self.n_estimators, min_samples_leaf=size, max_features=self.max_features, bootstrap=True,
            n_jobs=self.n_jobs, random_state=random.randint(2**31 - 1),
        )  # fmt: skip
        return Forest(forest.fit(X, positive, sample_weight=weights))

    def _head(self) -> Any:
        head = PatMatNP(tau=self.tau) if self.head is None else clone(self.head)
        return head.set_params(tol=self.tol, threshold="trained")

    def _candidates(self) -> list[Candidate]:
        """What is compared; a parameter that is given is not varied."""
        alphas = ALPHAS if self.alpha == "auto" else (float(self.alpha),)
        honest = (True, False) if self.honest == "auto" else (self.honest,)
        heads = [Candidate(alpha, None, one) for alpha in alphas for one in honest]
        return [Candidate(1.0, None, honest=True, prior_alone=True), *heads] if self.alpha == "auto" else heads

    def _choose(self, rows: TrainingLeaves, random: np.random.RandomState) -> tuple[Judged, list[Judged]]:
        """The best candidate, with scores of all rows, and all candidates."""
        candidates = self._candidates()
        self._say(f"comparing {len(candidates)} heads on rows that they have not seen")
        jury = Jury.of(rows, self.tau, random)
        found = jury.judged(self._head(), candidates)
        best = chosen(found)
        if self.head is None and self.alpha == "auto" and not best.candidate.prior_alone:
            wider = min(_WIDER * self.tau, 0.5 * (1 + self.tau))
            found += jury.judged(self._head(), [replace(best.candidate, tau=wider)])
        best = chosen(found)
        if len(jury.rows.weights) == len(rows.weights):
            return best, found
        # a head of fewer rows scores on another scale: the threshold needs those of all rows
        everything = Jury.of(rows, self.tau, random, all_rows=True)
        (of_all,) = everything.judged(self._head(), [best.candidate])
        return replace(best, scores=of_all.scores), found

    def _keep(self, head: Any, best: Judged, shares: Floats, rows: TrainingLeaves) -> None:
        """Set the attributes of the fitted model: one value a leaf for the leaves and the prior together."""
        coef, n_trees = head.coef_[0].astype(np.float64), self.n_estimators
        freedom = float(coef[-1]) * _FREEDOM / self._scale
        of_leaves = np.zeros(int(self.trees_.n_leaves.sum()) - len(shares))
        if not best.candidate.prior_alone:
            of_leaves = coef[:-1] / np.sqrt(n_trees)
        self.leaf_values_ = np.concatenate([of_leaves, freedom * shares / n_trees])
        of_head = float(head.intercept_[0]) - freedom * self._centre
        negatives = ~rows.positive
        self.threshold_ = _upper_quantile(best.scores[negatives], rows.weights[negatives], self.tau) - of_head
        self.intercept_ = np.array([-self.threshold_])
        self._node_values = self.trees_.node_values(self.leaf_values_)
        for name in ("objective_", "dual_objective_", "dual_gap_", "n_iter_", "history_"):
            setattr(self, name, getattr(head, name))

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Score minus threshold: above zero means "in the top".

        {rows_and_scores}
        """
        check_is_fitted(self)
        read = self._columns.read(X)
        if is_frame(X):
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
            read = check_array(read, dtype=np.float32, order="C", ensure_all_finite="allow-nan")
        else:
            read = validate_data(self, read, dtype=np.float32, order="C", ensure_all_finite="allow-nan", reset=False)
        return np.asarray(self.trees_.scores(read, self._node_values) + self.intercept_[0])

    def _say(self, text: str) -> None:
        if self.verbose > 0:
            logger().info("TopForest: %s", text)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        tags.input_tags.allow_nan = True
        tags.classifier_tags.poor_score = True  # the budget decides how many rows are positive, not their number
        return tags


def _is_linear_and_convex(head: Any) -> bool:
    return (
        isinstance(head, TopClassifier) and getattr(head, "kernel", "linear") == "linear" and not head.false_positives
    )


def _honest_leaves(source: Forest, X: NDArray[np.float32]) -> LeafMatrix:
    return LeafMatrix.of(source.leaf_numbers(X), source.n_leaves, ~source.seen(len(X)))


def _shares_of_leaves(forest: Any) -> Floats:
    """The share of positives in each leaf, tree by tree."""
    values = [tree.tree_.value[tree.tree_.children_left < 0, 0, :] for tree in forest.estimators_]
    return np.concatenate([of_tree[:, 1] / of_tree.sum(axis=1) for of_tree in values])


def _upper_quantile(scores: Floats, weights: Floats, share: float) -> float:
    """The least of the scores above which there is at most the share of all weights."""
    order = np.argsort(-scores, kind="stable")
    above = np.cumsum(weights[order]) / weights.sum()
    return float(scores[order[np.searchsorted(above, share, side="right").clip(max=len(order) - 1)]])


def _told(best: Judged, candidates: Sequence[Judged], tau: float | None) -> dict[str, Any]:
    """What was chosen, in numbers and words; `tau` is that of the head."""
    alone = [one.worth for one in candidates if one.candidate.prior_alone]
    table = [{**asdict(one.candidate), "worth": one.worth} for one in candidates]
    prior = alone[0] if alone else None
    if len(candidates) == 1:
        why = "no choice was left"
    elif best.candidate.prior_alone:
        why = f"no head on the leaves found more than the prior alone, {best.worth:.3f}"
    else:
        more = "" if prior is None else f", the prior alone {prior:.3f}"
        why = f"the best of {len(candidates)} candidates: it found {best.worth:.3f} of the positives{more}"
    found = {"worth": best.worth, "worth_of_prior": prior, "why": why, "candidates": table}
    return {**asdict(best.candidate), "tau": tau, **found}
